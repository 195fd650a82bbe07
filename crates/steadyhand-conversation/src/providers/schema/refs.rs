//! Writes out references, for providers that do not follow them.

use serde_json::{Map, Value, json};

use steadyhand::schema_limits::SCHEMA_BYTES_MAX;

/// How often references may be followed within each other; deeper ones become any value.
const NESTING_MAX: usize = 8;
/// How many schemas the result may have.
const NODES_MAX: usize = SCHEMA_BYTES_MAX / 16;
/// How long its names and texts may be together.
const TEXT_BYTES_MAX: usize = 4 * SCHEMA_BYTES_MAX;

/// The schema with every reference replaced by what it refers to.
pub(crate) fn inline(schema: Value) -> Result<Value, String> {
    if !has_refs(&schema) {
        return Ok(schema);
    }
    let mut writer = Writer {
        document: &schema,
        following: Vec::new(),
        nodes: 0,
        text_bytes: 0,
    };
    let mut written = writer.write(&schema)?;
    if let Some(root) = written.as_object_mut() {
        root.shift_remove("$defs");
        root.shift_remove("definitions");
        root.entry("type").or_insert_with(|| json!("object"));
    }
    Ok(written)
}

fn has_refs(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            fields.get("$ref").is_some_and(Value::is_string) || fields.values().any(has_refs)
        }
        Value::Array(items) => items.iter().any(has_refs),
        _ => false,
    }
}

struct Writer<'a> {
    document: &'a Value,
    following: Vec<String>,
    nodes: usize,
    text_bytes: usize,
}

impl Writer<'_> {
    fn write(&mut self, schema: &Value) -> Result<Value, String> {
        self.nodes += 1;
        self.text_bytes += match schema {
            Value::String(text) => text.len(),
            Value::Object(fields) => fields.keys().map(String::len).sum(),
            _ => 0,
        };
        if self.nodes > NODES_MAX || self.text_bytes > TEXT_BYTES_MAX {
            return Err("its schema is too large once its references are written out".to_owned());
        }
        match schema {
            Value::Object(fields) => self.write_object(fields),
            Value::Array(items) => items.iter().map(|item| self.write(item)).collect(),
            other => Ok(other.clone()),
        }
    }

    fn write_object(&mut self, fields: &Map<String, Value>) -> Result<Value, String> {
        let Some(Value::String(target)) = fields.get("$ref") else {
            let mut written = Map::new();
            for (key, value) in fields {
                // They are written where they are used.
                let is_store = (key == "$defs" || key == "definitions") && value.is_object();
                if !is_store {
                    written.insert(key.clone(), self.write(value)?);
                }
            }
            return Ok(Value::Object(written));
        };
        let mut written = self.follow(target)?;
        // What stands beside a reference holds too.
        for (key, value) in fields.iter().filter(|(key, _)| *key != "$ref") {
            if key != "$defs" && key != "definitions" {
                let value = self.write(value)?;
                written.insert(key.clone(), value);
            }
        }
        Ok(Value::Object(written))
    }

    fn follow(&mut self, target: &str) -> Result<Map<String, Value>, String> {
        let Some(pointer) = target.strip_prefix('#') else {
            return Err(format!("its schema refers to {target}, which is not in it"));
        };
        let Some(found) = self.document.pointer(pointer) else {
            return Err(format!("its schema refers to {target}, which is not in it"));
        };
        let is_circle = self.following.iter().filter(|one| *one == target).count() > 0;
        if is_circle || self.following.len() >= NESTING_MAX {
            // What contains itself has no end; here it may be anything of the kind.
            let mut any = Map::new();
            if let Some(kind) = found.get("type") {
                any.insert("type".to_owned(), kind.clone());
            }
            let name = target.rsplit('/').next().unwrap_or(target);
            any.insert("description".to_owned(), json!(format!("Another {name}.")));
            return Ok(any);
        }
        self.following.push(target.to_owned());
        let written = self.write(found);
        self.following.pop();
        match written? {
            Value::Object(fields) => Ok(fields),
            // `true` is any value; `false` is none, which no tool can mean.
            _ => Ok(Map::new()),
        }
    }
}
