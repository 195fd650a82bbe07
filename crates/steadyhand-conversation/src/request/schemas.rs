//! What providers refuse in the schemas of tools.

use serde_json::{Map, Value};

use crate::place::escape;
use crate::problem::{Code, Log};
use steadyhand::check_schema;

/// How deep a schema is looked into.
const DEPTH_MAX: usize = 64;
const UNIONS: [&str; 3] = ["oneOf", "allOf", "anyOf"];

/// Draft 2020-12 with an object at its root, and no choice there.
pub(super) fn anthropic(index: usize, schema: Option<&Value>, log: &mut Log) {
    let at = format!("/tools/{index}/input_schema");
    let place = format!("tools.{index}.custom.input_schema");
    let Some(schema) = schema.filter(|schema| schema.is_object()) else {
        log.found(at, Code::BadToolSchema, "the tool has no schema")
            .says(format!("{place}: Field required"));
        return;
    };
    if UNIONS.iter().any(|key| schema.get(key).is_some()) {
        log.found(
            at,
            Code::BadToolSchema,
            "the schema has a choice at its root",
        )
        .says(format!(
            "{place}: input_schema does not support oneOf, allOf, or anyOf at the top level"
        ));
        return;
    }
    if schema["type"] != "object" {
        log.found(
            format!("{at}/type"),
            Code::BadToolSchema,
            "the arguments of a tool are an object",
        )
        .says(format!("{place}.type: Input should be 'object'"));
        return;
    }
    if check_schema(schema).is_err() {
        log.found(at, Code::BadToolSchema, "this is no JSON Schema")
            .says(format!("{place}: JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12). Learn more about tool use at https://docs.claude.com/en/docs/tool-use."));
    }
}

/// An object at the root, items in every array, and more where it is to be followed strictly.
pub(super) fn openai(
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

/// Google reads a part of OpenAPI's schemas.
pub(super) fn gemini(at: &str, place: &str, schema: Option<&Value>, log: &mut Log) {
    let Some(Value::Object(schema)) = schema else {
        return;
    };
    for key in ["additionalProperties", "$schema"] {
        if schema.contains_key(key) {
            log.found(format!("{at}/parameters/{}", escape(key)), Code::BadToolSchema, format!("{key} is not read here"))
                .says(format!("Invalid JSON payload received. Unknown name \"{key}\" at '{place}.parameters': Cannot find field."));
        }
    }
}

/// Ollama refuses hardly anything; what it does not know it drops. The arguments are an object all the same (SPEC V18).
pub(super) fn ollama(at: &str, schema: Option<&Value>, log: &mut Log) {
    let at = format!("{at}/parameters");
    let Some(Value::Object(schema)) = schema else {
        log.found(
            at,
            Code::BadToolSchema,
            "the tool has no parameters: the model cannot know its arguments; without any, write {\"type\": \"object\", \"properties\": {}}",
        );
        return;
    };
    if schema.get("type").is_none_or(|kind| kind != "object") {
        log.found(
            format!("{at}/type"),
            Code::BadToolSchema,
            "the arguments of a tool are an object",
        );
    }
    let properties = schema.get("properties");
    if properties.is_some_and(|properties| !properties.is_object() && !properties.is_null()) {
        log.found(
            format!("{at}/properties"),
            Code::BadToolSchema,
            "the properties are no object",
        )
        .says("Value looks like object, but can't find closing '}' symbol".to_owned());
    }
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
