//! Texts with places for arguments: `/lights/{room}`. Values are encoded for where they stand.

mod json;

use std::convert::Infallible;
use std::fmt;

use serde_json::{Map, Value};

pub use json::JsonTemplate;

/// A text with places. `{{` and `}}` stand for the braces themselves, `${…}` is left alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Place(String),
}

impl Template {
    /// Reads a text. The error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Template, String> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let found = &rest[at..];
            if let Some(after) = found.strip_prefix("{{") {
                literal.push('{');
                rest = after;
            } else if let Some(after) = found.strip_prefix("}}") {
                literal.push('}');
                rest = after;
            } else if found.starts_with('}') {
                return Err("a } without its {; write }} for the brace itself".to_owned());
            } else {
                let end = found
                    .find('}')
                    .ok_or("a { without its }; write {{ for the brace itself")?;
                let inner = &found[1..end];
                if literal.ends_with('$') {
                    literal.push_str(&found[..=end]);
                } else if is_name(inner) {
                    if !literal.is_empty() {
                        pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                    }
                    pieces.push(Piece::Place(inner.to_owned()));
                } else {
                    return Err(format!(
                        "{{{inner}}} is no place for an argument; write {{name}}, or {{{{ for the brace itself"
                    ));
                }
                rest = &found[end + 1..];
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Template { pieces })
    }

    /// The arguments it has places for, in order, each once.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for piece in &self.pieces {
            if let Piece::Place(name) = piece
                && !names.contains(&name.as_str())
            {
                names.push(name.as_str());
            }
        }
        names
    }

    /// The argument's name when the text is one place and nothing else: its value keeps its type.
    pub fn only_place(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Place(name)] => Some(name),
            _ => None,
        }
    }

    /// The text with its places filled, each value through `encode`; `None` when an argument is absent.
    pub fn fill<E>(
        &self,
        values: &Values<'_>,
        mut encode: impl FnMut(&str) -> Result<String, E>,
    ) -> Result<Option<String>, E> {
        let mut filled = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => filled.push_str(text),
                Piece::Place(name) => match values.text(name) {
                    Some(value) => filled.push_str(&encode(&value)?),
                    None => return Ok(None),
                },
            }
        }
        Ok(Some(filled))
    }

    /// [`Template::fill`] with an encoding that takes every value.
    pub fn fill_with(&self, values: &Values<'_>, encode: fn(&str) -> String) -> Option<String> {
        let encoded = |value: &str| Ok::<_, Infallible>(encode(value));
        match self.fill(values, encoded) {
            Ok(filled) => filled,
        }
    }
}

impl fmt::Debug for Template {
    // Its literal parts may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Template({:?})", self.names())
    }
}

/// The arguments of a call; what is absent has the default that the tool's schema states.
#[derive(Clone, Copy)]
pub struct Values<'a> {
    args: &'a Value,
    properties: Option<&'a Map<String, Value>>,
}

impl<'a> Values<'a> {
    /// The arguments of a call to a tool with this schema.
    pub fn new(args: &'a Value, schema: &'a Value) -> Values<'a> {
        Values {
            args,
            properties: schema.get("properties").and_then(Value::as_object),
        }
    }

    /// The value of an argument; null counts as absent.
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        let given = self.args.get(name);
        let default = || self.properties?.get(name)?.get("default");
        given.or_else(default).filter(|value| !value.is_null())
    }

    /// The value as text: a string as it is, anything else as JSON.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}
