//! What Mistral answers.

use serde_json::{Value, json};

use super::MistralFormat;
use crate::providers::chat::response::{self, ArgumentsAs, Style};
use crate::providers::mender::Mender;
use crate::providers::rules::ResponseRules;
use crate::providers::wire::text;

const STYLE: Style = Style {
    is_plain_text: false,
    calls_say_type: false,
    arguments: ArgumentsAs::Either,
};

impl ResponseRules for MistralFormat {
    fn is_error(&self, response: &Value) -> bool {
        text(response, "object") == Some("error")
            || response.get("error").is_some_and(|error| !error.is_null())
    }

    fn mend(&self, mender: &mut Mender<'_>, response: &mut Value) {
        response::mend_choices(mender, response, STYLE);
    }

    fn name_result(&self, result: &mut Value, name: &str) {
        result["name"] = json!(name);
    }

    fn native_call(&self, id: &str, name: &str, arguments: &Value) -> Option<Value> {
        Some(response::native_call(id, name, arguments))
    }
}
