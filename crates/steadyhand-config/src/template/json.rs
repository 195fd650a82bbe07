//! JSON values whose texts have places for arguments.

use serde_json::{Map, Value};

use super::{Template, Values};
use crate::document::escaped;

/// A JSON value whose texts have places.
#[derive(Debug, Clone)]
pub enum JsonTemplate {
    /// Nothing to fill.
    Fixed(Value),
    /// A text with places.
    Text(Template),
    /// Items.
    List(Vec<JsonTemplate>),
    /// Fields; their names are fixed.
    Fields(Vec<(String, JsonTemplate)>),
}

impl JsonTemplate {
    /// Reads a value. The error says what is wrong, and where (a JSON Pointer).
    pub fn parse(value: &Value) -> Result<JsonTemplate, (String, String)> {
        let below = |key: String| move |(at, why): (String, String)| (format!("/{key}{at}"), why);
        Ok(match value {
            Value::String(text) => {
                let template = Template::parse(text).map_err(|why| (String::new(), why))?;
                JsonTemplate::Text(template)
            }
            Value::Array(items) => JsonTemplate::List(
                items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| {
                        JsonTemplate::parse(item).map_err(below(index.to_string()))
                    })
                    .collect::<Result<_, _>>()?,
            ),
            Value::Object(fields) => JsonTemplate::Fields(
                fields
                    .iter()
                    .map(|(key, field)| {
                        let field = JsonTemplate::parse(field).map_err(below(escaped(key)));
                        field.map(|field| (key.clone(), field))
                    })
                    .collect::<Result<_, _>>()?,
            ),
            Value::Null | Value::Bool(_) | Value::Number(_) => JsonTemplate::Fixed(value.clone()),
        })
    }

    /// The arguments it has places for, each with its JSON Pointer.
    pub fn places(&self) -> Vec<(String, &str)> {
        match self {
            JsonTemplate::Fixed(_) => Vec::new(),
            JsonTemplate::Text(text) => text
                .names()
                .into_iter()
                .map(|name| (String::new(), name))
                .collect(),
            JsonTemplate::List(items) => below(
                items
                    .iter()
                    .enumerate()
                    .map(|(i, item)| (i.to_string(), item)),
            ),
            JsonTemplate::Fields(fields) => {
                below(fields.iter().map(|(key, field)| (escaped(key), field)))
            }
        }
    }

    /// The value for these arguments: a text that is one place takes the argument with its type, any
    /// other takes it as text. What has an absent argument is left out; `None` if that is all.
    pub fn fill(&self, values: &Values<'_>) -> Option<Value> {
        match self {
            JsonTemplate::Fixed(value) => Some(value.clone()),
            JsonTemplate::Text(text) => match text.only_place() {
                Some(name) => values.get(name).cloned(),
                None => text.fill_with(values, str::to_owned).map(Value::String),
            },
            JsonTemplate::List(items) => {
                Some(items.iter().filter_map(|item| item.fill(values)).collect())
            }
            JsonTemplate::Fields(fields) => {
                let filled = fields
                    .iter()
                    .filter_map(|(key, field)| Some((key.clone(), field.fill(values)?)));
                Some(Value::Object(filled.collect::<Map<_, _>>()))
            }
        }
    }
}

fn below<'a>(parts: impl Iterator<Item = (String, &'a JsonTemplate)>) -> Vec<(String, &'a str)> {
    parts
        .flat_map(|(key, part)| {
            let inner = part.places().into_iter();
            inner.map(move |(at, name)| (format!("/{key}{at}"), name))
        })
        .collect()
}
