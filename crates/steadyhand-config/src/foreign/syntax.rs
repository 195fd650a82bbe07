//! The three languages configuration files are written in.

use std::fmt;

use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, ast};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use toml::de::{DeTable, DeValue};

use super::{Field, Held, Node};

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// JSON; comments and trailing commas are allowed
    Json,
    Toml,
    Yaml,
}

const DEPTH_MAX: usize = 128;

impl Syntax {
    pub(super) fn parse(self, text: &str) -> Result<Node, Fault> {
        match self {
            Syntax::Json => json(text),
            Syntax::Toml => toml(text),
            Syntax::Yaml => yaml(text),
        }
    }
}

/// The byte, and what is wrong there.
pub(super) type Fault = (usize, String);

fn check_depth(depth: usize, at: usize) -> Result<(), Fault> {
    match depth > DEPTH_MAX {
        true => Err((
            at,
            format!("it is nested more than {DEPTH_MAX} levels deep"),
        )),
        false => Ok(()),
    }
}

/// JSON as other programs read their files: comments and trailing commas are allowed, nothing else is.
pub fn jsonc() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn json(text: &str) -> Result<Node, Fault> {
    let parsed = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &jsonc())
        .map_err(|error| (error.range().start, error.kind().to_string()))?;
    match parsed.value {
        Some(value) => from_json(value, 0),
        None => Err((0, "it is empty".to_owned())),
    }
}

fn from_json(value: ast::Value<'_>, depth: usize) -> Result<Node, Fault> {
    let at = value.start();
    check_depth(depth, at)?;
    let held = match value {
        ast::Value::NullKeyword(_) => Held::Null,
        ast::Value::BooleanLit(lit) => Held::Bool(lit.value),
        ast::Value::NumberLit(lit) => match serde_json::from_str(lit.value) {
            Ok(number) => Held::Number(number),
            Err(_) => return Err((at, format!("{} is no number", cut(lit.value)))),
        },
        ast::Value::StringLit(lit) => Held::Text(lit.value.into_owned()),
        ast::Value::Array(array) => {
            let items = array.elements.into_iter();
            Held::List(
                items
                    .map(|item| from_json(item, depth + 1))
                    .collect::<Result<_, _>>()?,
            )
        }
        ast::Value::Object(object) => {
            let fields = object.properties.into_iter().map(|field| {
                Ok(Field {
                    at: field.start(),
                    node: from_json(field.value, depth + 1)?,
                    name: field.name.into_string(),
                })
            });
            Held::Table(fields.collect::<Result<_, _>>()?)
        }
    };
    Ok(Node { at, held })
}

fn toml(text: &str) -> Result<Node, Fault> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        (at, error.message().to_owned())
    })?;
    from_toml(table.span().start, DeValue::Table(table.into_inner()), 0)
}

fn from_toml(at: usize, value: DeValue<'_>, depth: usize) -> Result<Node, Fault> {
    check_depth(depth, at)?;
    let held = match value {
        DeValue::String(text) => Held::Text(text.into_owned()),
        DeValue::Boolean(value) => Held::Bool(value),
        DeValue::Datetime(moment) => Held::Text(moment.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Held::Number(number.into()),
            Err(_) => return Err((at, format!("{} is too large", cut(number.as_str())))),
        },
        DeValue::Float(number) => {
            let parsed: Option<f64> = number.as_str().parse().ok();
            match parsed.and_then(Number::from_f64) {
                Some(number) => Held::Number(number),
                None => Held::Text(number.as_str().to_owned()),
            }
        }
        DeValue::Array(items) => {
            let items = items.into_iter();
            let items =
                items.map(|item| from_toml(item.span().start, item.into_inner(), depth + 1));
            Held::List(items.collect::<Result<_, _>>()?)
        }
        DeValue::Table(fields) => {
            let fields = fields.into_iter().map(|(name, item)| {
                Ok(Field {
                    at: name.span().start,
                    node: from_toml(item.span().start, item.into_inner(), depth + 1)?,
                    name: name.into_inner().into_owned(),
                })
            });
            Held::Table(fields.collect::<Result<_, _>>()?)
        }
    };
    Ok(Node { at, held })
}

fn yaml(text: &str) -> Result<Node, Fault> {
    let mut options = serde_saphyr::Options::default();
    options.with_snippet = false;
    if let Some(budget) = options.budget.as_mut() {
        budget.max_depth = DEPTH_MAX;
    }
    serde_saphyr::from_str_with_options::<Node>(text, options).map_err(|error| {
        let at = error.location().map_or(0, |location| start(&location));
        (at, error.to_string())
    })
}

fn start(location: &serde_saphyr::Location) -> usize {
    location
        .span()
        .byte_offset()
        .map_or(0, |offset| offset as usize)
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        let spanned = serde_saphyr::Spanned::<Held>::deserialize(deserializer)?;
        Ok(Node {
            at: start(&spanned.referenced),
            held: spanned.value,
        })
    }
}

impl<'de> Deserialize<'de> for Held {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Held, D::Error> {
        deserializer.deserialize_any(HeldVisitor)
    }
}

struct HeldVisitor;

impl<'de> Visitor<'de> for HeldVisitor {
    type Value = Held;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Held, E> {
        Ok(Held::Null)
    }

    fn visit_none<E>(self) -> Result<Held, E> {
        Ok(Held::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Held, D::Error> {
        Held::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Held, E> {
        Ok(Held::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Held, E> {
        Ok(Held::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Held, E> {
        Ok(Held::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Held, E> {
        Ok(Number::from_f64(value).map_or(Held::Null, Held::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Held, E> {
        Ok(Held::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Held, E> {
        Ok(Held::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Held, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Held::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Held, A::Error> {
        let mut table = Vec::new();
        while let Some(name) = fields.next_key::<serde_saphyr::Spanned<String>>()? {
            table.push(Field {
                at: start(&name.referenced),
                name: name.value,
                node: fields.next_value()?,
            });
        }
        Ok(Held::Table(table))
    }
}

/// Errors may quote a file; not a page of it.
fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}
