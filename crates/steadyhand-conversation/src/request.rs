//! What concerns a request as a whole: its fields and tools, and rules that look beyond one message.

mod anthropic;
mod converse;
mod deepseek;
mod extra_fields;
mod fields;
mod gemini;
mod neighbours;
mod schemas;
mod tools;

use serde_json::{Value, json};

use super::host::Host;
use super::options::Options;
use super::place::Places;
use super::problem::{Code, Log};
use super::provider::Provider;
use super::texts;

pub(super) use neighbours::{place_system, prepare, rearrange, settle};

/// Says what is wrong with a request and cannot be mended: only its sender knows what was meant.
pub(super) fn check(provider: Provider, options: &Options, value: &Value, log: &mut Log) {
    fields::check(provider, options, value, log);
    let tools = match provider {
        Provider::BedrockConverse => value.pointer("/toolConfig/tools"),
        _ => value.get("tools"),
    };
    if let Some(tools) = tools.filter(|tools| !tools.is_null()) {
        tools::check(provider, tools, log);
    }
}

/// Mends what is wrong with a request around its messages.
pub(super) fn mend(
    provider: Provider,
    options: &Options,
    request: &mut Value,
    messages: &mut Vec<Value>,
    places: Places<'_>,
    log: &mut Log,
) {
    let key = match provider {
        // As Amazon's own clients write it.
        Provider::BedrockConverse => "modelId",
        _ => "model",
    };
    let model = request.get(key).and_then(Value::as_str);
    let model = options.model_or(model).map(str::to_owned);
    match provider {
        Provider::Anthropic => {
            let host = options.served_by();
            anthropic::mend(request, messages, model.as_deref(), host, places, log);
        }
        Provider::Gemini => gemini::mend(messages, model.as_deref(), places, log),
        Provider::Mistral => {
            let ends_badly = messages.last().is_some_and(|last| {
                let goes_on = last.get("prefix") == Some(&Value::Bool(true));
                last["role"] == "assistant" && !goes_on
            });
            let says = "Expected last role User or Tool (or Assistant with prefix) for serving but got assistant";
            let is_alone = messages.len() == 1 && messages[0]["role"] == "assistant";
            if is_alone {
                let says = "Conversation must start with a user message or system message";
                go_on(messages, places, says, log);
                // Only the last message can be a beginning to go on from.
                if messages[0].get("prefix") == Some(&Value::Bool(true)) {
                    messages[0]["prefix"] = json!(false);
                }
            } else if ends_badly {
                go_on(messages, places, says, log);
            }
        }
        Provider::BedrockConverse => {
            converse::mend(request, messages, model.as_deref(), places, log);
        }
        Provider::OpenAi if options.served_by() == Host::DeepSeek => {
            deepseek::mend(request, messages, model.as_deref(), places, log);
        }
        Provider::OpenAi | Provider::OpenAiResponses | Provider::Ollama | Provider::LangChain => {}
    }
}

/// Lets the user say that the model should go on, where it does not by itself.
fn go_on(messages: &mut Vec<Value>, places: Places<'_>, says: &str, log: &mut Log) {
    log.found(
        places.of(messages.len().saturating_sub(1)),
        Code::TrailingAssistant,
        "the conversation ends with the model's own words",
    )
    .says(says.to_owned())
    .fixed("the user asks it to go on");
    messages.push(json!({"role": "user", "content": texts::CONTINUE}));
}
