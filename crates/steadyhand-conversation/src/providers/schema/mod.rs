//! Schemas of tools, rewritten as providers read them.

pub(super) mod refs;
pub(super) mod rewrite;
pub(super) mod roots;

use serde_json::{Value, json};

/// With an object at the root and no choice there, in the newest words.
pub(super) fn plain(schema: Value) -> Result<Value, String> {
    roots::plain(rewrite::modern(schema))
}

/// The same with items in every list and properties at the root, as OpenAI wants it.
pub(super) fn with_items(schema: Value) -> Result<Value, String> {
    let mut schema = plain(schema)?;
    rewrite::give_items(&mut schema, &json!({}));
    if let Some(root) = schema.as_object_mut() {
        root.entry("properties").or_insert_with(|| json!({}));
    }
    Ok(schema)
}
