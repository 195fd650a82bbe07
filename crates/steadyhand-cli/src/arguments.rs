//! Arguments of `call` as they are typed: `k=v` read by the tool's schema, `k:=json`, `k=@file`.

use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value};
use steadyhand::{InexactInteger, RepeatedName};

use super::error::{Exit, Failed};
use steadyhand_config::document::plain;

const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The arguments of a call. Later ones override earlier ones; a list may be given item by item.
pub(super) fn read(
    typed: &[String],
    whole: Option<&str>,
    schema: &Value,
    folder: &Path,
) -> Result<Value, Failed> {
    let mut args = match whole {
        Some(text) => object(text, "--args")?,
        None => Map::new(),
    };
    let mut given = Vec::new();
    for text in typed {
        if text == "-" {
            args.extend(object(&stdin()?, "stdin")?);
            continue;
        }
        let (name, value) = one(text, schema, folder)?;
        let is_list = types(schema, &name).contains(&"array");
        match args.get_mut(&name) {
            // The second and later items of a list.
            Some(Value::Array(items)) if is_list && given.contains(&name) => match value {
                Value::Array(more) => items.extend(more),
                item => items.push(item),
            },
            _ => drop(args.insert(name.clone(), value)),
        }
        given.push(name);
    }
    Ok(Value::Object(args))
}

fn one(text: &str, schema: &Value, folder: &Path) -> Result<(String, Value), Failed> {
    let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        return Err(wrong(format!("\"{text}\" is no argument")).help(
            "Write name=value, name:=JSON, name=@file, - for JSON on stdin, or --args '{…}'",
        ));
    };
    match name.strip_suffix(':') {
        Some(name) => {
            let json = match value.strip_prefix('@') {
                Some(path) => file(path, folder)?,
                None => value.to_owned(),
            };
            exact(&json, &format!("the value of {name}"))?;
            let value = serde_json::from_str(&json).map_err(|error| {
                wrong(format!(
                    "the value of {name} is no JSON: {}",
                    steadyhand::plain_words::json(&error)
                ))
                .help(format!(
                    "{name}:=… takes JSON such as 5, true, [1,2] or \"text\"; {name}=… takes text"
                ))
            })?;
            Ok((name.to_owned(), value))
        }
        None => {
            let text = match value.strip_prefix('@') {
                Some(path) => file(path, folder)?,
                None => value.to_owned(),
            };
            if !types(schema, name).contains(&"string") {
                exact(&text, &format!("the value of {name}"))?;
            }
            Ok((name.to_owned(), by_schema(text, schema, name)))
        }
    }
}

/// A text as the type that the schema states. What does not fit stays a text: the check says what is wrong.
fn by_schema(text: String, schema: &Value, name: &str) -> Value {
    let types = types(schema, name);
    if types.contains(&"string") {
        return Value::String(text);
    }
    let parsed = serde_json::from_str::<Value>(&text).ok();
    for kind in &types {
        match (kind, &parsed) {
            (&"integer" | &"number", Some(value @ Value::Number(_)))
            | (&"boolean", Some(value @ Value::Bool(_)))
            | (&"null", Some(value @ Value::Null))
            | (&"array", Some(value @ Value::Array(_)))
            | (&"object", Some(value @ Value::Object(_))) => return value.clone(),
            (&"array", _) => {
                let items = property(schema, name).and_then(|property| property.get("items"));
                let item = by_types(text, parsed, items.map_or(Vec::new(), type_names));
                return Value::Array(vec![item]);
            }
            _ => {}
        }
    }
    // A choice of values without a type: the one that is written like this.
    let choices = property(schema, name).and_then(|property| property.get("enum")?.as_array());
    let choice = choices
        .into_iter()
        .flatten()
        .find(|choice| Some(*choice) == parsed.as_ref());
    choice.cloned().unwrap_or(Value::String(text))
}

fn by_types(text: String, parsed: Option<Value>, types: Vec<&str>) -> Value {
    let fits = |value: &Value| match value {
        Value::Number(_) => types.contains(&"integer") || types.contains(&"number"),
        Value::Bool(_) => types.contains(&"boolean"),
        Value::Object(_) => types.contains(&"object"),
        Value::Array(_) => types.contains(&"array"),
        Value::Null | Value::String(_) => false,
    };
    parsed.filter(fits).unwrap_or(Value::String(text))
}

fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let properties = schema.get("properties")?;
    // A server's camelCase name may be written in snake_case: it is mended when the tool is called (SPEC D5).
    let property = properties
        .get(name)
        .or_else(|| properties.get(camel_case(name)))?;
    let target = property.get("$ref").and_then(Value::as_str);
    target
        .and_then(|target| schema.pointer(target.strip_prefix('#')?))
        .or(Some(property))
}

fn types<'a>(schema: &'a Value, name: &str) -> Vec<&'a str> {
    property(schema, name).map_or(Vec::new(), type_names)
}

fn type_names(property: &Value) -> Vec<&str> {
    let mut names = match property.get("type") {
        Some(Value::String(name)) => vec![name.as_str()],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    for choice in ["anyOf", "oneOf"] {
        let choices = property.get(choice).and_then(Value::as_array);
        for option in choices.into_iter().flatten() {
            names.extend(option.get("type").and_then(Value::as_str));
        }
    }
    names
}

fn object(text: &str, from: &str) -> Result<Map<String, Value>, Failed> {
    let example = "An object such as {\"city\":\"Oslo\"}";
    exact(text, from)?;
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(wrong(format!("{from} holds JSON, but no object")).help(example)),
        Err(error) => Err(wrong(format!(
            "{from} holds no JSON: {}",
            steadyhand::plain_words::json(&error)
        ))
        .help(example)),
    }
}

/// Names that are there twice, and integers that we could only hand over rounded, are refused.
pub(super) fn exact(text: &str, from: &str) -> Result<(), Failed> {
    if let Some(repeated) = RepeatedName::first_in(text) {
        let help = "Write one value for each name; nothing was run";
        return Err(wrong(format!("{from}: {}", repeated.message())).help(help));
    }
    match InexactInteger::first_in(text) {
        None => Ok(()),
        Some(inexact) => Err(wrong(format!("{from}: {}", inexact.message()))
            .help("Put it in quotes: name:='\"18446744073709551616\"'")),
    }
}

fn stdin() -> Result<String, Failed> {
    bounded(std::io::stdin().lock())
        .map_err(|reason| wrong(format!("stdin cannot be read: {reason}")))
}

fn file(path: &str, folder: &Path) -> Result<String, Failed> {
    let read = std::fs::File::open(folder.join(path))
        .map_err(|error| plain(&error))
        .and_then(bounded);
    read.map_err(|reason| {
        wrong(format!("{path} cannot be read: {reason}")).help(
            "name=@file reads a text file; write name:='\"@…\"' for a text that begins with @",
        )
    })
}

/// At most so much, and no more is read to find out.
fn bounded(input: impl Read) -> Result<String, String> {
    let mut bytes = Vec::new();
    input
        .take(BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| plain(&error))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(format!("it is larger than {} MiB", BYTES_MAX >> 20));
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(text) => text.to_owned(),
        None => text,
    })
}

fn wrong(message: String) -> Failed {
    Failed::new(Exit::Usage, "usage", message)
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        camel.push_str(letters.as_str());
    }
    camel
}
