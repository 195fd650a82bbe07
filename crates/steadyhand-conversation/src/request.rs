//! What concerns a request as a whole, and cannot be mended: only its sender knows what was meant.

use serde_json::Value;

use crate::envelope::key_in;
use crate::options::Options;
use crate::place::escape;
use crate::problem::{Code, Log};
use crate::providers::Provider;
use crate::providers::rules::Rules;

/// Says what is wrong with a request.
pub(super) fn check(provider: Provider, options: &Options, value: &Value, log: &mut Log) {
    let rules = provider.rules();
    check_fields(provider, options, value, log);
    let tools = rules.tools_in(value).filter(|tools| !tools.is_null());
    match tools {
        None => {}
        Some(Value::Array(tools)) => rules.check_tools(tools, log),
        Some(tool) if tool.is_object() && rules.takes_one_tool() => {}
        Some(_) => {
            log.found("/tools", Code::BadField, "the tools are no list")
                .says(rules.says_to_tools_that_are_no_list().map(str::to_owned));
        }
    }
}

/// Says what is missing or of no use to the provider.
fn check_fields(provider: Provider, options: &Options, value: &Value, log: &mut Log) {
    let rules = provider.rules();
    let key = rules.messages_key();
    let Some(request) = value.as_object() else {
        if value.as_array().is_none_or(Vec::is_empty) {
            no_messages(rules, "", log);
        }
        return;
    };
    match request.get(key) {
        Some(Value::Array(messages)) if !messages.is_empty() => {
            rules.check_contents(options, value, messages, log);
        }
        Some(Value::String(_)) if rules.takes_one_text() => {}
        None if rules.is_stored(value) => {}
        // They stand under another provider's key, which is told where they are read.
        None if key_in(provider, value).is_some() => {}
        Some(_) | None => no_messages(rules, &format!("/{key}"), log),
    }
    let names_model = request.get("model").is_some_and(Value::is_string)
        || options.served_by().names_model()
        || rules.is_stored(value);
    if let Some(says) = rules.says_to_no_model().filter(|_| !names_model) {
        log.found("/model", Code::MissingField, "this field is required")
            .says(says.to_owned());
    }
    rules.check_fields(value, log);
    for key in request.keys() {
        let Some(says) = rules.says_to_field(key) else {
            continue;
        };
        let at = format!("/{}", escape(key));
        log.found(at, Code::BadField, "the provider takes no such field")
            .says(says);
    }
}

fn no_messages(rules: &dyn Rules, at: &str, log: &mut Log) {
    log.found(at, Code::NoMessages, "there are no messages")
        .says(rules.says_to_no_messages().map(str::to_owned));
}
