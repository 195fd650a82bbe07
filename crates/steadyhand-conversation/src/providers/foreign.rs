//! Messages in another provider's shape: read whoever wrote them, and written as their provider takes them.
//!
//! One message can become several: OpenAI has a message for each result where Anthropic has one for all.

mod read;
mod write;

use std::collections::HashMap;

use serde_json::Value;

use super::Provider;
use super::wire::text;
use crate::problem::{Code, Log};

pub(crate) use write::{FILE_NAME, block, chat_part, data_url, split};

/// A message of whatever shape, as far as it can be said in every other.
pub(crate) struct Said {
    pub(crate) role: Role,
    pub(crate) parts: Vec<Part>,
    /// There was thinking, which no other provider reads.
    pub(crate) has_thoughts: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    Model,
    System,
}

pub(crate) enum Part {
    Text(String),
    /// An image: its type, and its bytes in base64.
    Image(String, String),
    ImageUrl(String),
    /// The one kind of document that all take: its bytes in base64, and its name.
    Pdf(String, Option<String>),
    Call {
        id: Option<String>,
        name: String,
        /// An object, or its text.
        arguments: Value,
    },
    Result {
        id: Option<String>,
        name: Option<String>,
        content: Vec<Part>,
        is_error: bool,
    },
    /// Something else, which is kept as JSON.
    Other(Value),
}

/// Which of the messages that were given a message is, or was made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) index: usize,
    /// It is the very message, so that places in it are places in what was given.
    pub(crate) is_same: bool,
}

/// The messages, with those in another shape written anew; and where each comes from, if any was.
pub(crate) fn translate(
    provider: Provider,
    messages: Vec<Value>,
    base: &str,
    log: &mut Log,
) -> (Vec<Value>, Option<Vec<Given>>) {
    let is_foreign = |message: &Value| foreign_mark(provider, message).is_some();
    if !messages.iter().any(is_foreign) {
        return (messages, None);
    }
    let mut translated = Vec::with_capacity(messages.len());
    let mut given = Vec::with_capacity(messages.len());
    // Some providers' results say the id only, some must say the name.
    let mut names: HashMap<String, String> = HashMap::new();
    for (index, message) in messages.into_iter().enumerate() {
        let mark = foreign_mark(provider, &message);
        let Some((mark, said)) = mark.and_then(|mark| Some((mark, read::message(&message)?)))
        else {
            translated.push(message);
            given.push(Given {
                index,
                is_same: true,
            });
            continue;
        };
        for part in &said.parts {
            if let Part::Call {
                id: Some(id), name, ..
            } = part
            {
                names.insert(id.clone(), name.clone());
            }
        }
        // Nothing of it can be read elsewhere: thinking, or a name for what is kept at its provider.
        let is_left_out = mark.whose == RESPONSES && said.parts.is_empty();
        let fix = match (is_left_out, said.has_thoughts) {
            (true, true) => {
                "the model's thinking is left out: only its own provider reads it".to_owned()
            }
            (true, false) => "it is left out: only its own provider reads it".to_owned(),
            (false, true) => {
                format!("it is written as {provider} reads it, without the model's thinking")
            }
            (false, false) => format!("it is written as {provider} reads it"),
        };
        let code = match mark.what {
            "tool" => Code::WrongRole,
            _ => Code::BadContent,
        };
        log.found(
            format!("{base}/{index}"),
            code,
            format!("this message is written as {} does", mark.whose),
        )
        .says(says(provider, index, &message, mark))
        .fixed(fix);
        if is_left_out {
            continue;
        }
        for made in provider.rules().write(said, &names) {
            translated.push(made);
            given.push(Given {
                index,
                is_same: false,
            });
        }
    }
    (translated, Some(given))
}

/// By what a message is known to be somebody else's.
#[derive(Debug, Clone, Copy)]
struct Mark<'a> {
    whose: &'static str,
    /// The field, or the type of a block, that tells.
    what: &'a str,
}

/// A message in somebody else's shape.
pub(crate) struct SeenShape<'a> {
    pub(crate) index: usize,
    pub(crate) message: &'a Value,
    pub(crate) whose: &'static str,
    /// The field, or the type of a block, that tells.
    pub(crate) what: &'a str,
    pub(crate) is_block: bool,
}

/// The type of [`Part::Pdf`].
pub(crate) const PDF: &str = "application/pdf";

pub(crate) const LANGCHAIN: &str = "LangChain";
pub(crate) const OPENAI: &str = "OpenAI";
pub(crate) const OLD_CALLS: &str = "OpenAI (function_call)";
pub(crate) const OLLAMA: &str = "Ollama";
pub(crate) const RESPONSES: &str = "OpenAI's Responses API";
pub(crate) const ANTHROPIC: &str = "Anthropic";
pub(crate) const GEMINI: &str = "Gemini";
pub(crate) const CONVERSE: &str = "Bedrock's Converse API";

/// What of a message its provider does not read, where another one does.
fn foreign_mark(provider: Provider, message: &Value) -> Option<Mark<'_>> {
    let fields = message.as_object()?;
    // Nearly all messages: a role, and words in the content.
    let is_plain = fields.len() == 2
        && fields.contains_key("role")
        && fields.get("content").is_some_and(Value::is_string);
    if is_plain && text(message, "role") != Some("tool") {
        return None;
    }
    let found = mark(provider, message)?;
    (!provider.rules().reads().contains(&found.whose)).then_some(found)
}

fn mark(provider: Provider, message: &Value) -> Option<Mark<'_>> {
    let rules = provider.rules();
    let role = text(message, "role");
    let kind = text(message, "type");
    let has = |key: &str| message.get(key).is_some_and(|value| !value.is_null());
    if has("lc") || (role.is_none() && kind.is_some_and(read::is_langchain_kind)) {
        return Some(Mark {
            whose: LANGCHAIN,
            what: "type",
        });
    }
    if let Some(kind) = kind.filter(|kind| role.is_none() && read::is_item_kind(kind)) {
        return Some(Mark {
            whose: RESPONSES,
            what: kind,
        });
    }
    if message.get("parts").is_some_and(Value::is_array) {
        // What is said in both is read from the content.
        let whose = match has("content") && !rules.has_parts() {
            true => OPENAI,
            false => GEMINI,
        };
        let is_told = !rules.reads_words_of_parts() || has_more_than_words(message);
        return is_told.then_some(Mark {
            whose,
            what: "parts",
        });
    }
    let has_calls = message["tool_calls"]
        .as_array()
        .is_some_and(|calls| !calls.is_empty());
    if has_calls {
        return Some(Mark {
            whose: OPENAI,
            what: "tool_calls",
        });
    }
    // Anthropic's results say which call they answer; Ollama's need not.
    let is_of_ollama = role == Some("tool")
        && (has_images_beside(message)
            || (rules.results_say_their_call() && !message["tool_call_id"].is_string()));
    if is_of_ollama {
        return Some(Mark {
            whose: OLLAMA,
            what: "tool",
        });
    }
    if role == Some("tool") {
        return Some(Mark {
            whose: OPENAI,
            what: "tool",
        });
    }
    if message.get("function_call").is_some_and(Value::is_object) || role == Some("function") {
        return Some(Mark {
            whose: OLD_CALLS,
            what: "function_call",
        });
    }
    if has_images_beside(message) {
        return Some(Mark {
            whose: OLLAMA,
            what: "images",
        });
    }
    let blocks = message.get("content").and_then(Value::as_array)?;
    blocks.iter().find_map(|block| block_mark(provider, block))
}

/// Images as Ollama has them.
fn has_images_beside(message: &Value) -> bool {
    let images = message.get("images").and_then(Value::as_array);
    images.is_some_and(|images| !images.is_empty() && images.iter().all(Value::is_string))
}

fn has_more_than_words(message: &Value) -> bool {
    let parts = message["parts"].as_array().into_iter().flatten();
    let keys = [
        "functionCall",
        "function_call",
        "functionResponse",
        "function_response",
        "inlineData",
        "inline_data",
        "fileData",
        "file_data",
    ];
    let mut parts = parts.filter(|part| keys.iter().any(|key| part.get(key).is_some()));
    parts.next().is_some()
}

/// By what a block is known to be somebody else's. Blocks that only one message can hold are mended where they are.
fn block_mark(provider: Provider, block: &Value) -> Option<Mark<'_>> {
    match text(block, "type") {
        Some(kind @ ("tool_use" | "tool_result")) => Some(Mark {
            whose: ANTHROPIC,
            what: kind,
        }),
        Some(kind) => {
            // Nothing in Google's or Bedrock's messages has a type.
            let is_any = provider.rules().has_no_types();
            let whose = match kind {
                "input_text" | "output_text" | "input_image" => RESPONSES,
                "image_url" => OPENAI,
                _ => ANTHROPIC,
            };
            is_any.then_some(Mark { whose, what: kind })
        }
        None => ["toolUse", "toolResult"]
            .into_iter()
            .find(|key| block.get(key).is_some())
            .map(|what| Mark {
                whose: CONVERSE,
                what,
            }),
    }
}

/// What the provider says to it.
fn says(provider: Provider, index: usize, message: &Value, mark: Mark<'_>) -> Option<String> {
    let what = mark.what;
    let is_block = message["content"].is_array() && what != "tool" && message.get(what).is_none();
    provider.rules().says_to_shape(&SeenShape {
        index,
        message,
        whose: mark.whose,
        what,
        is_block,
    })
}
