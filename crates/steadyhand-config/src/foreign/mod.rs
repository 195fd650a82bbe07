//! JSON with comments, TOML and YAML read into one kind of tree that remembers where everything stands.

mod place;
mod syntax;

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

pub use place::Place;
use place::Places;
pub use syntax::{Syntax, jsonc};

/// A file of another program, as far as it could be read.
pub struct Document<'t> {
    pub root: Node,
    places: Places<'t>,
}

/// Why a file could not be read.
#[derive(Debug)]
pub struct Broken {
    pub at: Place,
    pub message: String,
}

/// A value, and the byte where it starts.
pub struct Node {
    pub at: usize,
    pub held: Held,
}

/// What a value is.
pub enum Held {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Table(Vec<Field>),
}

/// A named value, and the byte where its name starts.
pub struct Field {
    pub name: String,
    pub at: usize,
    pub node: Node,
}

impl<'t> Document<'t> {
    pub fn read(text: &'t str, syntax: Syntax) -> Result<Document<'t>, Broken> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let places = Places::of(text);
        match syntax.parse(text) {
            Ok(root) => Ok(Document { root, places }),
            Err((at, message)) => Err(Broken {
                at: places.find(at),
                message,
            }),
        }
    }

    /// Line and column of a byte.
    pub fn place(&self, at: usize) -> Place {
        self.places.find(at)
    }
}

impl Node {
    /// A field of a table. Where a name stands twice, the last counts, as it does for JavaScript.
    pub fn get(&self, name: &str) -> Option<&Node> {
        let field = self.fields()?.iter().rev().find(|field| field.name == name);
        Some(&field?.node)
    }

    pub fn fields(&self) -> Option<&[Field]> {
        match &self.held {
            Held::Table(fields) => Some(fields),
            _ => None,
        }
    }

    pub fn items(&self) -> Option<&[Node]> {
        match &self.held {
            Held::List(items) => Some(items),
            _ => None,
        }
    }

    pub fn text(&self) -> Option<&str> {
        match &self.held {
            Held::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn bool(&self) -> Option<bool> {
        match self.held {
            Held::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// A text, or a number or truth value written out: people leave the quotes out.
    pub fn as_written(&self) -> Option<Cow<'_, str>> {
        match &self.held {
            Held::Text(text) => Some(Cow::Borrowed(text)),
            Held::Number(number) => Some(Cow::Owned(number.to_string())),
            Held::Bool(value) => Some(Cow::Borrowed(if *value { "true" } else { "false" })),
            Held::Null | Held::List(_) | Held::Table(_) => None,
        }
    }

    pub fn number(&self) -> Option<f64> {
        match &self.held {
            Held::Number(number) => number.as_f64(),
            _ => None,
        }
    }

    /// What it is, in words for an error text.
    pub fn kind(&self) -> &'static str {
        match self.held {
            Held::Null => "null",
            Held::Bool(_) => "true or false",
            Held::Number(_) => "a number",
            Held::Text(_) => "a text",
            Held::List(_) => "a list",
            Held::Table(_) => "a table",
        }
    }

    /// The value without places.
    pub fn value(&self) -> Value {
        match &self.held {
            Held::Null => Value::Null,
            Held::Bool(value) => Value::Bool(*value),
            Held::Number(number) => Value::Number(number.clone()),
            Held::Text(text) => Value::String(text.clone()),
            Held::List(items) => items.iter().map(Node::value).collect(),
            Held::Table(fields) => {
                let mut map = Map::new();
                for field in fields {
                    map.insert(field.name.clone(), field.node.value());
                }
                Value::Object(map)
            }
        }
    }
}
