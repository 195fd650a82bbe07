//! What several providers refuse in the definitions of tools.

use serde_json::{Map, Value};

use super::wire::text;
use crate::place::escape;
use crate::problem::{Code, Log};

/// What OpenAI takes; others take as many or more.
pub(super) const TOOLS_MAX: usize = 128;
/// How deep a schema is looked into.
const DEPTH_MAX: usize = 64;
/// Choices in a schema.
pub(super) const UNIONS: [&str; 3] = ["oneOf", "allOf", "anyOf"];

/// A model chooses a tool by its description. Providers take one without; the model then guesses.
pub(super) fn description(at: &str, tool: &Value, log: &mut Log) {
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

pub(super) fn is_name(name: &str, length_max: usize) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !name.is_empty() && name.len() <= length_max && name.bytes().all(legal)
}

pub(super) fn openai_name(at: &str, place: &str, function: &Value, log: &mut Log) {
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

pub(super) fn too_many(count: usize, log: &mut Log) {
    log.found("/tools", Code::TooManyTools, format!("there are {count} tools, and {TOOLS_MAX} are taken"))
        .says(format!("Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length {count} instead."));
}

/// An object at the root, items in every array, and more where it is to be followed strictly.
pub(super) fn openai_schema(
    at: &str,
    function: &Value,
    schema: Option<&Value>,
    strict: bool,
    log: &mut Log,
) {
    let Some(schema) = schema.filter(|schema| !schema.is_null()) else {
        return;
    };
    let name = function["name"].as_str().unwrap_or_default();
    let at = format!("{at}/parameters");
    if schema["type"] != "object" {
        let found = schema["type"].as_str().unwrap_or("None");
        log.found(at, Code::BadToolSchema, "the arguments of a tool are an object")
            .says(format!("Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{found}\"'."));
        return;
    }
    let walk = Walk { name, strict };
    walk.visit(schema, &at, &mut Vec::new(), log);
}

/// The functions among the tools of chat completions, each with its place.
pub(super) fn functions(tools: &[Value]) -> impl Iterator<Item = (usize, &Value)> {
    let is_function = |tool: &Value| text(tool, "type").is_none_or(|kind| kind == "function");
    let tools = tools.iter().enumerate();
    tools
        .filter(move |(_, tool)| is_function(tool))
        .map(|(index, tool)| (index, tool.get("function").unwrap_or(&Value::Null)))
}

struct Walk<'a> {
    name: &'a str,
    strict: bool,
}

impl Walk<'_> {
    fn visit<'s>(&self, schema: &'s Value, at: &str, context: &mut Vec<&'s str>, log: &mut Log) {
        let Some(fields) = schema.as_object().filter(|_| context.len() < DEPTH_MAX) else {
            return;
        };
        if fields.get("type").is_some_and(|kind| kind == "array") && !fields.contains_key("items") {
            self.report(at, context, "array schema missing items.", log);
        }
        if self.strict && fields.get("type").is_some_and(|kind| kind == "object") {
            self.check_strict(fields, at, context, log);
        }
        for key in ["properties", "$defs", "definitions"] {
            let Some(Value::Object(inner)) = fields.get(key) else {
                continue;
            };
            for (name, schema) in inner {
                context.extend([key, name.as_str()]);
                self.visit(
                    schema,
                    &format!("{at}/{key}/{}", escape(name)),
                    context,
                    log,
                );
                context.truncate(context.len() - 2);
            }
        }
        if let Some(items) = fields.get("items") {
            context.push("items");
            self.visit(items, &format!("{at}/items"), context, log);
            context.pop();
        }
        for key in UNIONS {
            let branches = fields.get(key).and_then(Value::as_array);
            for (index, branch) in branches.into_iter().flatten().enumerate() {
                context.push(key);
                self.visit(branch, &format!("{at}/{key}/{index}"), context, log);
                context.pop();
            }
        }
    }

    fn check_strict(&self, fields: &Map<String, Value>, at: &str, context: &[&str], log: &mut Log) {
        if fields.get("additionalProperties") != Some(&Value::Bool(false)) {
            let fault = "'additionalProperties' is required to be supplied and to be false.";
            self.report(at, context, fault, log);
        }
        let required = fields.get("required").and_then(Value::as_array);
        let properties = fields.get("properties").and_then(Value::as_object);
        let is_required =
            |name: &str| required.is_some_and(|required| required.iter().any(|one| one == name));
        let names = properties.into_iter().flat_map(Map::keys);
        if let Some(missing) = names.into_iter().find(|name| !is_required(name)) {
            let fault = format!(
                "'required' is required to be supplied and to be an array including every key in properties. Missing '{missing}'."
            );
            self.report(at, context, &fault, log);
        }
    }

    fn report(&self, at: &str, context: &[&str], fault: &str, log: &mut Log) {
        let quoted: Vec<String> = context.iter().map(|step| format!("'{step}'")).collect();
        let context = match quoted.as_slice() {
            [only] => format!("({only},)"),
            all => format!("({})", all.join(", ")),
        };
        log.found(at, Code::BadToolSchema, fault.trim_end_matches('.'))
            .says(format!(
                "Invalid schema for function '{}': In context={context}, {fault}",
                self.name
            ));
    }
}
