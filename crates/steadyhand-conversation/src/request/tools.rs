//! The tools of a request, as each provider wants them defined.

use std::collections::HashSet;

use serde_json::Value;

use super::schemas;
use crate::problem::{Code, Log};
use crate::provider::Provider;
use crate::wire::text;

/// What OpenAI takes; others take as many or more.
const TOOLS_MAX: usize = 128;

/// Says what is wrong with the tools of a request.
pub(super) fn check(provider: Provider, tools: &Value, log: &mut Log) {
    let Value::Array(list) = tools else {
        // Google takes one tool without a list around it.
        if provider != Provider::Gemini || !tools.is_object() {
            let says = match provider {
                Provider::Anthropic => Some("tools: Input should be a valid array".to_owned()),
                _ => None,
            };
            log.found("/tools", Code::BadField, "the tools are no list")
                .says(says);
        }
        return;
    };
    match provider {
        Provider::Anthropic => anthropic(list, log),
        Provider::OpenAi | Provider::Mistral => chat(provider, list, log),
        Provider::Ollama => ollama(list, log),
        Provider::OpenAiResponses => responses(list, log),
        Provider::Gemini => gemini(list, log),
        Provider::BedrockConverse => converse(list, log),
        Provider::LangChain => langchain(list, log),
    }
}

/// A model chooses a tool by its description. Providers take one without; the model then guesses.
fn description(at: &str, tool: &Value, log: &mut Log) {
    let says_something = text(tool, "description").is_some_and(|said| !said.trim().is_empty());
    if says_something {
        return;
    }
    let name = text(tool, "name").unwrap_or_default();
    log.found(
        format!("{at}/description"),
        Code::MissingDescription,
        format!("the tool {name:?} has no description, so the model cannot know when to use it"),
    );
}

fn anthropic(tools: &[Value], log: &mut Log) {
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let at = format!("/tools/{index}");
        if !tool.is_object() {
            log.found(at, Code::BadField, "this is no tool")
                .says(format!("tools.{index}: Input should be an object"));
            continue;
        }
        let name = text(tool, "name").unwrap_or_default();
        if !name.is_empty() && !names.insert(name) {
            log.found(
                format!("{at}/name"),
                Code::BadToolName,
                format!("another tool is called {name}"),
            )
            .says("tools: Tool names must be unique.".to_owned());
        }
        // The provider's own tools have other fields.
        if text(tool, "type").is_some_and(|kind| kind != "custom") {
            continue;
        }
        if !is_name(name, 128) {
            log.found(
                format!("{at}/name"),
                Code::BadToolName,
                format!("the name {name:?} is not taken"),
            )
            .says(format!(
                "tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            ));
        }
        description(&at, tool, log);
        schemas::anthropic(index, tool.get("input_schema"), log);
    }
}

fn chat(provider: Provider, tools: &[Value], log: &mut Log) {
    if tools.len() > TOOLS_MAX && provider == Provider::OpenAi {
        too_many(tools.len(), log);
    }
    for (index, tool) in tools.iter().enumerate() {
        if text(tool, "type").is_some_and(|kind| kind != "function") {
            continue;
        }
        let at = format!("/tools/{index}/function");
        let function = tool.get("function").unwrap_or(&Value::Null);
        let place = format!("tools[{index}].function");
        match provider {
            Provider::Mistral => {
                let name = text(function, "name").unwrap_or_default();
                if !is_name(name, 64) {
                    log.found(format!("{at}/name"), Code::BadToolName, format!("the name {name:?} is not taken"))
                        .says(format!("Function name was {name} but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64."));
                }
            }
            _ => {
                openai_name(&at, &place, function, log);
                let strict = function["strict"] == true;
                schemas::openai(&at, function, function.get("parameters"), strict, log);
            }
        }
        if function.is_object() {
            description(&at, function, log);
        }
    }
}

/// `{type: "function", function: {name, description, parameters}}` (SPEC V18). Ollama takes anything else without a
/// word, and the model then sees an empty tool or none.
fn ollama(tools: &[Value], log: &mut Log) {
    for (index, tool) in tools.iter().enumerate() {
        let at = format!("/tools/{index}");
        let is_function = text(tool, "type") == Some("function");
        let Some(function) = tool.get("function").filter(|one| one.is_object()) else {
            let looks_like = match tool.get("schema").is_some() {
                true => "this tool is in LangChain's shape",
                false => "this is no tool in Ollama's shape",
            };
            log.found(
                at,
                Code::BadToolShape,
                format!("{looks_like}: the model does not see it; write {OLLAMAS_SHAPE}"),
            );
            continue;
        };
        if !is_function {
            log.found(
                format!("{at}/type"),
                Code::BadToolShape,
                "the type of a tool is \"function\"",
            );
        }
        let at = format!("{at}/function");
        if text(function, "name").is_none_or(str::is_empty) {
            log.found(
                format!("{at}/name"),
                Code::BadToolName,
                "the tool has no name",
            );
        }
        description(&at, function, log);
        schemas::ollama(&at, function.get("parameters"), log);
    }
}

const OLLAMAS_SHAPE: &str =
    r#"{"type": "function", "function": {"name": …, "description": …, "parameters": …}}"#;

/// `{toolSpec: {name, description, inputSchema: {json}}}`, under `toolConfig`.
fn converse(tools: &[Value], log: &mut Log) {
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let at = format!("/toolConfig/tools/{index}");
        if tool.get("cachePoint").is_some() || tool.get("systemTool").is_some() {
            continue;
        }
        let Some(spec) = tool.get("toolSpec").filter(|spec| spec.is_object()) else {
            log.found(at, Code::BadToolShape, "a tool is described under toolSpec")
                .says(format!(
                    "The format of the value at toolConfig.tools.{index} is invalid. Provide a json object for the field and try again."
                ));
            continue;
        };
        let name = text(spec, "name").unwrap_or_default();
        if !is_name(name, 64) {
            log.found(
                format!("{at}/toolSpec/name"),
                Code::BadToolName,
                format!("the name {name:?} is not taken"),
            )
            .says(format!(
                "1 validation error detected: Value '{name}' at 'toolConfig.tools.{}.member.toolSpec.name' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+",
                index + 1
            ));
        } else if !names.insert(name) {
            log.found(
                format!("{at}/toolSpec/name"),
                Code::BadToolName,
                format!("another tool is called {name}"),
            )
            .says(format!(
                "The tool {name} is already defined at toolConfig.tools.{index}."
            ));
        }
        description(&format!("{at}/toolSpec"), spec, log);
        if !spec["inputSchema"]["json"].is_object() {
            log.found(
                format!("{at}/toolSpec/inputSchema"),
                Code::BadToolSchema,
                "the tool has no schema under inputSchema.json",
            )
            .says(format!(
                "The value at toolConfig.tools.{index}.toolSpec.inputSchema.json is invalid. Provide a json object for the field and try again."
            ));
        }
    }
}

/// `{name, description, schema}`, which every other shape is made from.
fn langchain(tools: &[Value], log: &mut Log) {
    for (index, tool) in tools.iter().enumerate() {
        let at = format!("/tools/{index}");
        if !tool.is_object() {
            log.found(at, Code::BadToolShape, "this is no tool");
            continue;
        }
        // Its models also take tools in the shape of their provider.
        let is_native = ["function", "input_schema", "functionDeclarations"]
            .iter()
            .any(|key| tool.get(key).is_some());
        if is_native || tool.get("lc").is_some() {
            continue;
        }
        if text(tool, "name").is_none_or(str::is_empty) {
            log.found(
                format!("{at}/name"),
                Code::BadToolName,
                "the tool has no name",
            );
        }
        description(&at, tool, log);
        let schema = ["schema", "parameters", "args_schema"]
            .iter()
            .find_map(|key| tool.get(key));
        if !schema.is_some_and(Value::is_object) {
            log.found(
                format!("{at}/schema"),
                Code::BadToolSchema,
                "the tool has no schema for its arguments",
            );
        }
    }
}

fn responses(tools: &[Value], log: &mut Log) {
    if tools.len() > TOOLS_MAX {
        too_many(tools.len(), log);
    }
    for (index, tool) in tools.iter().enumerate() {
        let at = format!("/tools/{index}");
        let Some(kind) = text(tool, "type") else {
            log.found(at, Code::BadToolShape, "this tool does not say its type")
                .says(format!(
                    "Missing required parameter: 'tools[{index}].type'."
                ));
            continue;
        };
        if kind != "function" {
            continue;
        }
        description(&at, tool, log);
        openai_name(&at, &format!("tools[{index}]"), tool, log);
        // Strict is on here unless it is switched off, but it then mends the schema itself.
        schemas::openai(
            &at,
            tool,
            tool.get("parameters"),
            tool["strict"] == true,
            log,
        );
    }
}

fn gemini(tools: &[Value], log: &mut Log) {
    for (index, tool) in tools.iter().enumerate() {
        let key = ["functionDeclarations", "function_declarations"]
            .into_iter()
            .find(|key| tool.get(key).is_some());
        let Some(key) = key else {
            // Google's own tools are one key each; what has a name is a function of somebody else's shape.
            if let Some(odd) = ["name", "function"]
                .iter()
                .find(|key| tool.get(key).is_some())
            {
                log.found(
                    format!("/tools/{index}"),
                    Code::BadToolShape,
                    "functions are listed under functionDeclarations",
                )
                .says(format!("Invalid JSON payload received. Unknown name \"{odd}\" at 'tools[{index}]': Cannot find field."));
            }
            continue;
        };
        let functions = tool[key].as_array().map_or(&[][..], Vec::as_slice);
        for (number, function) in functions.iter().enumerate() {
            let at = format!("/tools/{index}/{key}/{number}");
            let place = format!("tools[{index}].function_declarations[{number}]");
            let name = text(function, "name").unwrap_or_default();
            if !crate::wire::is_legal_name(Provider::Gemini, name) {
                log.found(format!("{at}/name"), Code::BadToolName, format!("the name {name:?} is not taken"))
                    .says(format!("* GenerateContentRequest.{place}.name: Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.) or dashes (-), with a maximum length of 64."));
            }
            description(&at, function, log);
            schemas::gemini(&at, &place, function.get("parameters"), log);
        }
    }
}

fn openai_name(at: &str, place: &str, function: &Value, log: &mut Log) {
    let says = match function.get("name") {
        None | Some(Value::Null) => format!("Missing required parameter: '{place}.name'."),
        Some(Value::String(name)) if name.is_empty() => format!(
            "Invalid '{place}.name': empty string. Expected a string with minimum length 1, but got an empty string instead."
        ),
        Some(Value::String(name)) if !is_name(name, usize::MAX) => format!(
            "Invalid '{place}.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        ),
        Some(Value::String(name)) if name.len() > 64 => format!(
            "Invalid '{place}.name': string too long. Expected a string with maximum length 64, but got a string with length {} instead.",
            name.len()
        ),
        Some(Value::String(_)) => return,
        Some(_) => format!("Invalid type for '{place}.name': expected a string."),
    };
    log.found(
        format!("{at}/name"),
        Code::BadToolName,
        "the name of the tool is not taken",
    )
    .says(says);
}

fn too_many(count: usize, log: &mut Log) {
    log.found("/tools", Code::TooManyTools, format!("there are {count} tools, and {TOOLS_MAX} are taken"))
        .says(format!("Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length {count} instead."));
}

fn is_name(name: &str, length_max: usize) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !name.is_empty() && name.len() <= length_max && name.bytes().all(legal)
}
