//! From the arguments of a call to those of the program: one element stays one element, whatever it holds.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use steadyhand::ToolError;

use super::error;
use steadyhand_config::SecretText;
use steadyhand_config::extensions::Fault;
use steadyhand_config::template::{Template, Values};

/// Ends the name of a place that takes a list: each item becomes an element of its own.
const SPREAD: &str = "...";

/// One part of `command`: an element, or a list of elements that are left out together.
#[derive(Debug, Clone)]
pub enum Part {
    /// An element.
    Element(SecretText),
    /// Elements that are left out together when the argument of one of them is absent.
    Together(Vec<SecretText>),
}

/// The elements after the program's name, ready to be filled.
#[derive(Debug)]
pub(super) struct ArgumentList {
    parts: Vec<Vec<Element>>,
    /// Arguments whose values may begin with a dash.
    allow_dash: Vec<String>,
}

#[derive(Debug)]
struct Element {
    at: String,
    template: Template,
    /// A value stands at the very beginning, where a dash would make it an option.
    begins_with_value: bool,
    /// Takes a list: one element for each item.
    spread: Option<String>,
    /// After `--`, where no program looks for options any more.
    after_separator: bool,
    /// A fixed option such as `-n`, which may want the next element for itself.
    is_option: bool,
    /// May be left out with the others of its part.
    optional: bool,
}

impl ArgumentList {
    pub(super) fn parse(parts: &[Part], allow_dash: &[String]) -> Result<ArgumentList, Fault> {
        let mut after_separator = false;
        let mut list = Vec::new();
        for (index, part) in parts.iter().enumerate().skip(1) {
            let at = format!("/command/{index}");
            let (texts, optional) = match part {
                Part::Element(text) => (std::slice::from_ref(text), false),
                Part::Together(texts) => (texts.as_slice(), true),
            };
            let mut elements = Vec::new();
            for (inner, text) in texts.iter().enumerate() {
                let at = match optional {
                    true => format!("{at}/{inner}"),
                    false => at.clone(),
                };
                let element = Element::parse(text.expose(), at, after_separator, optional)?;
                // One that may be left out protects nothing.
                after_separator |= text.expose() == "--" && !optional;
                elements.push(element);
            }
            list.push(elements);
        }
        Ok(ArgumentList {
            parts: list,
            allow_dash: allow_dash.to_vec(),
        })
    }

    /// The arguments that have a place here, whether each may be absent, and whether it is a list.
    pub(super) fn places(&self) -> Vec<Place<'_>> {
        let mut places = Vec::new();
        for element in self.parts.iter().flatten() {
            for name in element.names() {
                places.push(Place {
                    name,
                    at: &element.at,
                    optional: element.optional,
                    list: element.spread.is_some(),
                });
            }
        }
        places
    }

    /// An argument that may be absent, after an option that would then take the next element for its value.
    pub(super) fn ambiguous(&self, may_be_absent: impl Fn(&str) -> bool) -> Option<Fault> {
        let mut pairs = self.parts.windows(2);
        pairs.find_map(|pair| match pair {
            [before, here] => {
                let (option, element) = (before.last()?, here.first()?);
                let name = element.names().into_iter().find(|name| may_be_absent(name))?;
                (option.is_option && !option.optional && !element.optional).then(|| Fault {
                    at: element.at.clone(),
                    message: format!("{{{name}}} may be absent, and the option before it would then stand alone"),
                    help: Some(format!(
                        "write the two as a list of their own, [\"-x\", \"{{{name}}}\"], and both are left out; or make `{name}` required or give it a default in `input`"
                    )),
                })
            }
            _ => None,
        })
    }

    /// The program's arguments for one call.
    pub(super) fn fill(&self, values: &Values<'_>) -> Result<Vec<String>, ToolError> {
        let mut filled = Vec::new();
        let mut after_option = false;
        for part in &self.parts {
            let mut together = Vec::new();
            let mut absent = false;
            for element in part {
                match element.fill(values, &self.allow_dash)? {
                    Some(texts) => together.extend(texts),
                    None if after_option && !element.optional => {
                        let name = element
                            .names()
                            .into_iter()
                            .find(|name| values.get(name).is_none());
                        return Err(error::bad_argument(
                            name.unwrap_or_default(),
                            "is needed: an option of the program waits for it".to_owned(),
                        ));
                    }
                    None => absent = true,
                }
            }
            if !absent {
                filled.append(&mut together);
            }
            after_option = part
                .last()
                .is_some_and(|last| last.is_option && !last.optional);
        }
        Ok(filled)
    }
}

/// A place for an argument.
pub(super) struct Place<'a> {
    pub(super) name: &'a str,
    pub(super) at: &'a str,
    pub(super) optional: bool,
    pub(super) list: bool,
}

impl Element {
    fn parse(
        text: &str,
        at: String,
        after_separator: bool,
        optional: bool,
    ) -> Result<Element, Fault> {
        let fault = |message: String| Fault {
            at: at.clone(),
            message,
            help: None,
        };
        let template = Template::parse(text).map_err(fault)?;
        if text.contains('\0') {
            return Err(fault(
                "holds a NUL byte, which no program can be given".to_owned(),
            ));
        }
        let spread = template
            .only_place()
            .and_then(|name| name.strip_suffix(SPREAD));
        let spread = spread.map(str::to_owned);
        if spread.is_none() && template.names().iter().any(|name| name.ends_with(SPREAD)) {
            return Err(fault(
                "{name...} takes a list and must be an element of its own".to_owned(),
            ));
        }
        let fixed = template.names().is_empty();
        Ok(Element {
            begins_with_value: !fixed && text.starts_with('{') && !text.starts_with("{{"),
            spread,
            after_separator,
            is_option: fixed
                && text.starts_with('-')
                && !matches!(text, "-" | "--")
                && !text.contains('='),
            optional,
            template,
            at,
        })
    }

    fn names(&self) -> Vec<&str> {
        match &self.spread {
            Some(name) => vec![name],
            None => self.template.names(),
        }
    }

    /// What it becomes; `None` when an argument is absent.
    fn fill(
        &self,
        values: &Values<'_>,
        allow_dash: &[String],
    ) -> Result<Option<Vec<String>>, ToolError> {
        let texts = match &self.spread {
            Some(name) => match values.get(name) {
                Some(Value::Array(items)) if items.is_empty() => None,
                Some(Value::Array(items)) => Some(items.iter().map(as_text).collect()),
                Some(one) => Some(vec![as_text(one)]),
                None => None,
            },
            None => {
                let filled = self
                    .template
                    .fill(values, |value| Ok::<_, ToolError>(value.to_owned()))?;
                filled.map(|text| vec![text])
            }
        };
        for text in texts.iter().flatten() {
            self.check(text, allow_dash)?;
        }
        Ok(texts)
    }

    fn check(&self, text: &str, allow_dash: &[String]) -> Result<(), ToolError> {
        let name = self.names().first().copied().unwrap_or_default();
        if text.contains('\0') {
            return Err(error::bad_argument(
                name,
                "holds a NUL byte, which no program can be given".to_owned(),
            ));
        }
        let safe = self.after_separator || allow_dash.iter().any(|allowed| allowed == name);
        if self.begins_with_value && text.starts_with('-') && !safe {
            let message = format!(
                "may not begin with a dash: the program could take it for an option. (In the configuration: put \"--\" before {{{name}}}, or join it to its option as in \"--option={{{name}}}\", or name it in `allow_dash`.)"
            );
            return Err(error::bad_argument(name, message));
        }
        Ok(())
    }
}

/// The JSON Schema of arguments that are known by their places only.
pub(super) fn schema_of<'a>(places: impl Iterator<Item = Place<'a>>) -> Value {
    let mut properties = Map::new();
    let mut required: Vec<&str> = Vec::new();
    for place in places {
        let schema = match place.list {
            true => json!({"type": "array", "items": {"type": "string"}}),
            false => json!({"type": "string"}),
        };
        properties.entry(place.name).or_insert(schema);
        if !place.optional && !required.contains(&place.name) {
            required.push(place.name);
        }
    }
    json!({"type": "object", "properties": properties, "required": required})
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Reads `command`: a list of parts, or a text that is the program alone.
pub(super) fn parts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Part>, D::Error> {
    struct Reader;

    impl<'de> Visitor<'de> for Reader {
        type Value = Vec<Part>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of the program and its arguments, or the program as a text")
        }

        fn visit_str<E>(self, text: &str) -> Result<Vec<Part>, E> {
            Ok(vec![Part::Element(text.into())])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<Part>, A::Error> {
            let mut parts = Vec::new();
            while let Some(part) = items.next_element()? {
                parts.push(part);
            }
            Ok(parts)
        }
    }

    deserializer.deserialize_any(Reader)
}

/// The JSON Schema of `command`.
pub(super) fn parts_schema(generator: &mut SchemaGenerator) -> Schema {
    let part = generator.subschema_for::<Part>();
    schemars::json_schema!({"type": ["string", "array"], "items": part})
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Part, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Part;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or a list of texts that are left out together")
            }

            fn visit_str<E>(self, text: &str) -> Result<Part, E> {
                Ok(Part::Element(text.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Part, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = items.next_element::<SecretText>()? {
                    texts.push(text);
                }
                Ok(Part::Together(texts))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Part {
    fn schema_name() -> Cow<'static, str> {
        "CommandPart".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let text = generator.subschema_for::<SecretText>();
        schemars::json_schema!({
            "description": "an element, or a list of elements that are left out together when an argument is absent",
            "anyOf": [text, {"type": "array", "items": text}]
        })
    }
}
