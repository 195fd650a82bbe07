//! Google's rules about a conversation as a whole: signatures of thoughts.

use serde_json::{Value, json};

use crate::place::Places;
use crate::problem::{Code, Log};
use crate::providers::wire::text;

/// What Google takes in place of a signature that is lost.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Mends them.
pub(super) fn mend(contents: &mut [Value], model: Option<&str>, places: Places<'_>, log: &mut Log) {
    if model.is_some_and(wants_signatures) {
        signatures(contents, places, log);
    }
}

fn wants_signatures(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let version = name.strip_prefix("gemini-").unwrap_or_default();
    let major: String = version.chars().take_while(char::is_ascii_digit).collect();
    major.parse::<u32>().is_ok_and(|major| major >= 3)
}

/// Since the user's last words, the first call of each step must have its signature.
fn signatures(contents: &mut [Value], places: Places<'_>, log: &mut Log) {
    let says_something = |content: &Value| {
        let is_text = |part: &Value| part.get("text").is_some();
        text(content, "role") != Some("model")
            && content["parts"]
                .as_array()
                .is_some_and(|parts| parts.iter().any(is_text))
    };
    let start = contents.iter().rposition(says_something).unwrap_or(0);
    let mut position = 0;
    for (index, content) in contents.iter_mut().enumerate().skip(start) {
        if text(content, "role") != Some("model") {
            continue;
        }
        let Some(parts) = content["parts"].as_array_mut() else {
            continue;
        };
        let is_call = |part: &Value| {
            part.get("functionCall").is_some() || part.get("function_call").is_some()
        };
        position += 1;
        let Some(part) = parts.iter().position(is_call) else {
            continue;
        };
        let signed = ["thoughtSignature", "thought_signature"]
            .iter()
            .any(|key| parts[part].get(key).is_some());
        if signed {
            continue;
        }
        let name = parts[part]["functionCall"]["name"]
            .as_str()
            .unwrap_or_default();
        log.found(
            format!("{}/parts/{part}", places.of(index)),
            Code::MissingSignature,
            "this call has lost the signature of its thought",
        )
        .says(format!("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:{name}` , position {position}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details."))
        .fixed("it says that there is none to check");
        parts[part]["thoughtSignature"] = json!(NO_SIGNATURE);
    }
}
