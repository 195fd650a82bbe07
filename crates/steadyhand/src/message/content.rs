//! What a message says: a text, or a list of blocks.

use std::borrow::Cow;

use serde_json::Value;

/// What a message says.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A plain text.
    Text(String),
    /// Texts, images, thinking and whatever else a provider sends, each block as it came:
    /// an object with a `type`, or a bare string.
    Blocks(Vec<Value>),
}

impl Content {
    /// The text a person reads: the text blocks one after the other, without thinking, images or files.
    ///
    /// Nothing is put between blocks: providers split sentences across them.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Blocks(blocks) => match blocks.as_slice() {
                [only] => Cow::Borrowed(block_text(only)),
                blocks => Cow::Owned(blocks.iter().map(block_text).collect()),
            },
        }
    }
}

impl Default for Content {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Vec<Value>> for Content {
    fn from(blocks: Vec<Value>) -> Self {
        Self::Blocks(blocks)
    }
}

fn block_text(block: &Value) -> &str {
    if let Value::String(text) = block {
        return text;
    }
    if block["type"] != "text" {
        return "";
    }
    block["text"].as_str().unwrap_or_default()
}
