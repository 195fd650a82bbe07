//! Every route of REST, from the OpenAPI document that the server itself gives out.

use serde_json::{Map, Value};

use super::{Made, cell};

const PAGE: &str = "docs/reference/rest.md";

pub(super) fn page(document: &Value) -> Made {
    let mut text = String::from(
        "From `/openapi.json`, which a running server serves to every client generator. [REST, line by line](../rest.md) has a request and an answer for each.\n\n\
         A call that failed is status 200: the outcome says how it ended, and so do the headers `steadyhand-outcome` and `steadyhand-code`. \
         Any other status is a refusal, `{\"error\": {\"code\", \"message\", \"help\"}}`, with a code of [these](errors/README.md).\n",
    );
    let empty = Map::new();
    let paths = document["paths"].as_object().unwrap_or(&empty);
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().unwrap_or(&empty) {
            text += &format!("\n## `{} {path}`\n\n", method.to_uppercase());
            let words = ["summary", "description"].map(|key| operation[key].as_str());
            for said in words.into_iter().flatten() {
                text += &format!("{}\n\n", said.trim());
            }
            text += &parameters(document, operation);
            text += &body(document, operation);
            text += &answers(document, operation);
        }
    }
    Made::new(PAGE, "REST", &text)
}

fn follow<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let target = value["$ref"]
        .as_str()
        .map(|target| target.trim_start_matches('#'));
    target
        .and_then(|target| document.pointer(target))
        .unwrap_or(value)
}

fn parameters(document: &Value, operation: &Value) -> String {
    let Some(parameters) = operation["parameters"]
        .as_array()
        .filter(|all| !all.is_empty())
    else {
        return String::new();
    };
    let mut table = String::from("| parameter | in | type | |\n|---|---|---|---|\n");
    for parameter in parameters {
        let parameter = follow(document, parameter);
        let text = |key: &str| parameter[key].as_str().unwrap_or_default();
        let required = match parameter["required"].as_bool() {
            Some(true) => "required. ",
            Some(false) | None => "",
        };
        table += &format!(
            "| `{}` | {} | {} | {required}{} |\n",
            text("name"),
            text("in"),
            kind(&parameter["schema"]),
            cell(text("description"))
        );
    }
    table + "\n"
}

/// The type of a value, in a word or two.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return format!("`{}`", name.rsplit('/').next().unwrap_or_default());
    }
    for choice in ["oneOf", "anyOf", "allOf"] {
        if let Some(choices) = schema[choice].as_array() {
            let mut kinds: Vec<String> = choices.iter().map(kind).collect();
            kinds.retain(|kind| kind != "null");
            kinds.dedup();
            return kinds.join(" or ");
        }
    }
    match (&schema["type"], schema["enum"].as_array()) {
        (_, Some(values)) => {
            let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
            values.join(", ")
        }
        (Value::String(name), _) if name == "array" => {
            format!("list of {}", kind(&schema["items"]))
        }
        (Value::String(name), _) => name.clone(),
        (Value::Array(names), _) => {
            let names = names.iter().filter_map(Value::as_str);
            names
                .filter(|name| *name != "null")
                .collect::<Vec<_>>()
                .join(" or ")
        }
        _ => "anything".to_owned(),
    }
}

fn body(document: &Value, operation: &Value) -> String {
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let schema = follow(document, schema);
    let Some(fields) = schema["properties"].as_object() else {
        return String::new();
    };
    let required = schema["required"].as_array();
    let mut table = String::from("| in the body | type | |\n|---|---|---|\n");
    for (name, field) in fields {
        let needs = required.is_some_and(|all| all.iter().any(|one| one == name.as_str()));
        let needs = if needs { "required. " } else { "" };
        let said = cell(field["description"].as_str().unwrap_or_default());
        table += &format!("| `{name}` | {} | {needs}{said} |\n", kind(field));
    }
    table + "\n"
}

fn answers(document: &Value, operation: &Value) -> String {
    let empty = Map::new();
    let responses = operation["responses"].as_object().unwrap_or(&empty);
    let mut list = String::new();
    for (status, response) in responses {
        let response = follow(document, response);
        let said = cell(response["description"].as_str().unwrap_or_default());
        list += &format!("- {status}: {said}\n");
    }
    list
}
