//! What OpenAI's Chat Completions answer.

use serde_json::Value;

use super::OpenAiFormat;
use crate::providers::chat::response::{self, ArgumentsAs, Style};
use crate::providers::mender::Mender;
use crate::providers::rules::ResponseRules;

const STYLE: Style = Style {
    is_plain_text: false,
    calls_say_type: true,
    arguments: ArgumentsAs::Text,
};

impl ResponseRules for OpenAiFormat {
    fn mend(&self, mender: &mut Mender<'_>, response: &mut Value) {
        response::mend_choices(mender, response, STYLE);
    }

    fn native_call(&self, id: &str, name: &str, arguments: &Value) -> Option<Value> {
        Some(response::native_call(id, name, arguments))
    }
}
