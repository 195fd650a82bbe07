//! Small changes that make a schema what JSON Schema 2020-12 and model providers expect.

use serde_json::{Map, Value, json};

use super::circle;

/// One value without parts: written where it is used, it is shorter and easier to read than a reference.
pub(super) fn is_small(value: &Value) -> bool {
    const PARTS: [&str; 14] = [
        "$ref",
        "properties",
        "items",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "additionalProperties",
        "prefixItems",
        "patternProperties",
        "if",
        "dependentSchemas",
        "contains",
        "propertyNames",
    ];
    value
        .as_object()
        .is_some_and(|members| PARTS.iter().all(|part| !members.contains_key(*part)))
        && bytes(value) < 1_000
}

/// The words beside a reference say what the thing is for here; they win over its own.
pub(super) fn described(mut schema: Value, members: &Map<String, Value>) -> Value {
    if let (Some(text @ Value::String(_)), Some(out)) =
        (members.get("description"), schema.as_object_mut())
    {
        out.insert("description".to_owned(), text.clone());
    }
    schema
}

pub(super) fn types(value: &Value) -> Option<Value> {
    const KNOWN: [&str; 7] = [
        "string", "number", "integer", "boolean", "array", "object", "null",
    ];
    let known = |value: &Value| match value.as_str() {
        // Left over from Swagger 2.
        Some("file") => Some("string".to_owned()),
        Some(name) => KNOWN.contains(&name).then(|| name.to_owned()),
        None => None,
    };
    match value {
        Value::Array(several) => {
            let mut names: Vec<String> = several.iter().filter_map(known).collect();
            names.dedup();
            (!names.is_empty()).then(|| json!(names))
        }
        one => known(one).map(Value::String),
    }
}

pub(super) fn count(value: &Value) -> Option<u64> {
    let whole = || {
        value
            .as_f64()
            .filter(|it| *it >= 0.0 && it.fract() == 0.0)
            .map(|it| it as u64)
    };
    value.as_u64().or_else(whole)
}

/// 3.0 writes `exclusiveMinimum: true` beside the minimum.
pub(super) fn mend_bounds(members: &Map<String, Value>, out: &mut Map<String, Value>) {
    for (flag, bound) in [
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ] {
        if members.get(flag) == Some(&Value::Bool(true))
            && let Some(limit) = out.shift_remove(bound)
        {
            out.insert(flag.to_owned(), limit);
        }
    }
}

/// YAML reads an unquoted `1.0` or `true` as what it looks like; a text was meant.
pub(super) fn mend_texts(out: &mut Map<String, Value>) {
    if out.get("type") != Some(&json!("string")) {
        return;
    }
    let mend = |value: &mut Value| {
        if value.is_number() || value.is_boolean() {
            *value = Value::String(value.to_string());
        }
    };
    if let Some(Value::Array(options)) = out.get_mut("enum") {
        options.iter_mut().for_each(mend);
    }
    if let Some(default) = out.get_mut("default") {
        mend(default);
    }
}

pub(super) fn nullable(mut out: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Array(options)) = out.get_mut("enum")
        && !options.contains(&Value::Null)
    {
        options.push(Value::Null);
    }
    match out.get("type").cloned() {
        Some(Value::String(name)) if name != "null" => {
            out.insert("type".to_owned(), json!([name, "null"]));
        }
        Some(Value::Array(mut names)) if !names.contains(&json!("null")) => {
            names.push(json!("null"));
            out.insert("type".to_owned(), names.into());
        }
        _ => {}
    }
    // These would still refuse null: it has to be a choice of its own.
    if ["allOf", "anyOf", "oneOf", "$ref", "not"]
        .iter()
        .any(|key| out.contains_key(*key))
    {
        let description = out.shift_remove("description");
        let mut wrapped = Map::new();
        wrapped.insert("anyOf".to_owned(), json!([out, { "type": "null" }]));
        wrapped.extend(description.map(|text| ("description".to_owned(), text)));
        return wrapped;
    }
    out
}

/// Takes the words out of a schema.
pub(super) fn strip(schema: &mut Value) {
    if let Some(members) = schema.as_object_mut() {
        for word in ["description", "examples", "title"] {
            members.shift_remove(word);
        }
    }
    circle::for_each_part(schema, &mut strip);
}

/// How large it is as JSON.
pub(super) fn bytes(value: &impl serde::Serialize) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, written: &[u8]) -> std::io::Result<usize> {
            self.0 += written.len();
            Ok(written.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX,
    }
}
