//! Takes the known fields out of a JSON object, remembering where it is for the errors.

use serde_json::Map;
use serde_json::Value;

use super::error::FormatError;
use super::escape::unescape_all;
use crate::message::Content;
use crate::message::Extra;

pub(super) const A_STRING: &str = "a string";
pub(super) const AN_OBJECT: &str = "an object";
const A_LIST: &str = "a list";
const A_CONTENT: &str = "a string or a list of blocks";
const A_BLOCK: &str = "an object or a string";

/// The fields of one object not taken yet, in their order.
pub(super) struct Fields {
    at: String,
    map: Map<String, Value>,
}

impl Fields {
    pub(super) fn of(
        value: Value,
        at: String,
        expected: &'static str,
    ) -> Result<Self, FormatError> {
        match value {
            Value::Object(map) => Ok(Self { at, map }),
            other => Err(FormatError::new(at, expected, Some(&other))),
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.map.get(key)
    }

    /// The place of a field of this object.
    pub(super) fn place(&self, key: &str) -> String {
        format!("{}/{key}", self.at)
    }

    /// The error that says a field is not what it should be.
    pub(super) fn wrong(&self, key: &str, expected: &'static str) -> FormatError {
        FormatError::new(self.place(key), expected, self.get(key))
    }

    /// What nobody took.
    pub(super) fn rest(self) -> Extra {
        Extra(self.map)
    }

    /// Takes a field out, leaving the order of the others.
    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        self.map.shift_remove(key)
    }

    /// Takes a field unless it is null: that stays where it is, to be written back as it came.
    pub(super) fn take_unless_null(&mut self, key: &str) -> Option<Value> {
        if self.map.get(key).is_none_or(Value::is_null) {
            return None;
        }
        self.take(key)
    }

    /// The same fields, with LangChain's escapes inside them undone.
    pub(super) fn unescaped(mut self) -> Self {
        unescape_all(&mut self.map);
        self
    }

    pub(super) fn take_object(&mut self, key: &str) -> Result<Self, FormatError> {
        let at = self.place(key);
        match self.take(key) {
            Some(value) => Self::of(value, at, AN_OBJECT),
            None => Err(FormatError::new(at, AN_OBJECT, None)),
        }
    }

    pub(super) fn take_string(&mut self, key: &str) -> Result<String, FormatError> {
        match self.take(key) {
            Some(Value::String(text)) => Ok(text),
            other => Err(FormatError::new(self.place(key), A_STRING, other.as_ref())),
        }
    }

    pub(super) fn take_optional_string(
        &mut self,
        key: &str,
    ) -> Result<Option<String>, FormatError> {
        match self.take_unless_null(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(FormatError::new(self.place(key), A_STRING, Some(&other))),
        }
    }

    /// The objects of a list. One that has none stays where it is, to be written back as it came.
    pub(super) fn take_objects(&mut self, key: &str) -> Result<Vec<Self>, FormatError> {
        let has_none =
            |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if self.get(key).is_none_or(has_none) {
            return Ok(Vec::new());
        }

        let at = self.place(key);
        match self.take(key) {
            Some(Value::Array(items)) => items
                .into_iter()
                .enumerate()
                .map(|(index, item)| Self::of(item, format!("{at}/{index}"), AN_OBJECT))
                .collect(),
            other => Err(FormatError::new(at, A_LIST, other.as_ref())),
        }
    }

    /// Whether the object has no content, or none but null.
    pub(super) fn says_nothing(&self) -> bool {
        self.get("content").is_none_or(Value::is_null) && !self.has("content_blocks")
    }

    pub(super) fn take_content(&mut self) -> Result<Content, FormatError> {
        // JavaScript leaves `content` out of a message made of standard blocks.
        let key = if !self.has("content") && self.has("content_blocks") {
            "content_blocks"
        } else {
            "content"
        };
        let at = self.place(key);
        match self.take(key) {
            Some(Value::String(text)) => Ok(Content::Text(text)),
            Some(Value::Array(blocks)) => checked_blocks(blocks, &at),
            other => Err(FormatError::new(at, A_CONTENT, other.as_ref())),
        }
    }
}

fn checked_blocks(blocks: Vec<Value>, at: &str) -> Result<Content, FormatError> {
    let is_block = |value: &Value| value.is_object() || value.is_string();
    if let Some(index) = blocks.iter().position(|block| !is_block(block)) {
        return Err(FormatError::new(
            format!("{at}/{index}"),
            A_BLOCK,
            blocks.get(index),
        ));
    }
    Ok(Content::Blocks(blocks))
}
