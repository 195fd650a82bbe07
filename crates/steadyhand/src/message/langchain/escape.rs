//! Undoes LangChain's escaping of data that looks like its own constructors.

use serde_json::Map;
use serde_json::Value;

/// LangChain wraps an object that has a key `lc` in an object with this one key, so that reading a
/// tool's arguments never constructs anything.
const ESCAPED: &str = "__lc_escaped__";

/// Opens every wrapper inside these fields.
pub(super) fn unescape_all(fields: &mut Map<String, Value>) {
    fields.values_mut().for_each(unescape);
}

fn unescape(value: &mut Value) {
    match value {
        // What is wrapped was not touched any further, so there is nothing to look for inside.
        Value::Object(fields)
            if fields.len() == 1 && fields.get(ESCAPED).is_some_and(Value::is_object) =>
        {
            *value = fields[ESCAPED].take();
        }
        Value::Object(fields) => unescape_all(fields),
        Value::Array(items) => items.iter_mut().for_each(unescape),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
