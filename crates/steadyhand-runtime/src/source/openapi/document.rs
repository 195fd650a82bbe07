//! An OpenAPI document as it is written: JSON or YAML, its version, and where its `$ref`s lead.

use std::borrow::Cow;
use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use serde_json::Value;
use url::Url;

/// A document and its parts are not larger than this, all together.
pub const DOCUMENT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How many `$ref`s in a row are followed before it counts as a circle.
const HOPS_MAX: usize = 32;
const YAML_DEPTH_MAX: usize = 128;

/// A document with all the files it refers to. Nothing in it is trusted to be what the specification says.
#[derive(Debug, Clone)]
pub struct Document {
    /// The document itself is the first; the others by what its references call them.
    files: Vec<Value>,
    /// (file the reference stands in, text before the `#`) → file.
    links: BTreeMap<(usize, String), usize>,
    /// Where a relative server address starts from.
    pub url: Option<Url>,
    dialect: Dialect,
}

/// What differs between the versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Schemas are OpenAPI's own dialect: `nullable`, `exclusiveMinimum: true`, nothing beside a `$ref`.
    V30,
    /// Schemas are JSON Schema 2020-12.
    V31,
}

/// A value and the file it stands in, which is where its own references start from.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    pub value: &'a Value,
    pub file: usize,
}

impl<'a> At<'a> {
    /// A member of an object.
    pub fn get(self, key: &str) -> Option<At<'a>> {
        self.value.get(key).map(|value| self.with(value))
    }

    /// Another value of the same file.
    pub fn with(self, value: &'a Value) -> At<'a> {
        At { value, ..self }
    }

    pub fn text(self, key: &str) -> Option<&'a str> {
        self.value.get(key).and_then(Value::as_str)
    }

    pub fn flag(self, key: &str) -> Option<bool> {
        self.value.get(key).and_then(Value::as_bool)
    }
}

/// The place a `$ref` leads to: the same for every reference to the same thing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    pub file: usize,
    pub pointer: String,
}

impl Document {
    /// A document that is one text.
    pub fn read(text: &str, url: Option<Url>) -> Result<Document, String> {
        Document::new(parse(text)?, url)
    }

    /// A document that has been parsed.
    pub fn new(root: Value, url: Option<Url>) -> Result<Document, String> {
        let dialect = dialect(&root)?;
        Ok(Document {
            files: vec![root],
            links: BTreeMap::new(),
            url,
            dialect,
        })
    }

    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub fn root(&self) -> At<'_> {
        self.file(0)
    }

    fn file(&self, file: usize) -> At<'_> {
        At {
            value: &self.files[file],
            file,
        }
    }

    /// Takes in another file, or finds that it is there already.
    pub fn add_file(&mut self, value: Value) -> usize {
        self.files.push(value);
        self.files.len() - 1
    }

    /// From now on `name` in this file means that file.
    pub fn link(&mut self, from: usize, name: String, to: usize) {
        self.links.insert((from, name), to);
    }

    /// The names of other files in the references of one of its files.
    pub fn names_of_others(&self, file: usize) -> Vec<String> {
        let mut names = Vec::new();
        collect_names(&self.files[file], &mut names);
        names.sort();
        names.dedup();
        names
    }

    /// Where a reference in `file` leads.
    pub fn place(&self, file: usize, reference: &str) -> Result<Place, String> {
        let (name, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let file = match name {
            "" => file,
            _ => *self
                .links
                .get(&(file, name.to_owned()))
                .ok_or_else(|| format!("{reference} is in another file that was not read"))?,
        };
        let pointer = match percent_decode_str(fragment).decode_utf8() {
            Ok(Cow::Borrowed(plain)) => plain.to_owned(),
            Ok(Cow::Owned(decoded)) => decoded,
            Err(_) => return Err(format!("{reference} is no reference")),
        };
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return Err(format!("{reference}: references by anchor are not known"));
        }
        Ok(Place { file, pointer })
    }

    /// What stands at a place.
    pub fn at(&self, place: &Place) -> Option<At<'_>> {
        let file = self.file(place.file);
        file.value.pointer(&place.pointer).map(|it| file.with(it))
    }

    /// Follows `$ref` until something else stands there.
    pub fn resolve<'a>(&'a self, from: At<'a>) -> Result<At<'a>, String> {
        let mut at = from;
        for _ in 0..HOPS_MAX {
            let Some(reference) = at.text("$ref") else {
                return Ok(at);
            };
            let place = self.place(at.file, reference)?;
            at = self
                .at(&place)
                .ok_or_else(|| format!("{reference} leads nowhere"))?;
        }
        Err(match from.text("$ref") {
            Some(reference) => format!("{reference} leads in a circle"),
            None => "a $ref leads in a circle".to_owned(),
        })
    }
}

/// Reads JSON or YAML, whichever it is.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('{') {
        match serde_json::from_str(text) {
            Ok(value) => return Ok(value),
            // YAML can begin with a brace, too; what JSON says is the better explanation.
            Err(error) => {
                return parse_yaml(text).map_err(|_| {
                    format!("it is not JSON: {}", steadyhand::plain_words::json(&error))
                });
            }
        }
    }
    parse_yaml(text)
}

fn parse_yaml(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 8_000_000,
            max_nodes: 4_000_000,
            max_depth: YAML_DEPTH_MAX,
            max_documents: 1,
        },
        // `no` and `off` are names of things in documents, not truth values.
        strict_booleans: true,
        // What cannot be seen on the terminal does not belong into an error.
        with_snippet: false,
    };
    let value: Value = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| format!("it is neither JSON nor YAML: {error}"))?;
    match value {
        Value::Object(_) => Ok(value),
        _ => Err("it is no OpenAPI document: an object was expected at the top".to_owned()),
    }
}

fn dialect(root: &Value) -> Result<Dialect, String> {
    let version = |key: &str| match root.get(key) {
        Some(Value::String(text)) => Some(text.clone()),
        // `openapi: 3.1` without quotes is a number in YAML.
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    if let Some(version) = version("openapi") {
        if version == "3.0" || version.starts_with("3.0.") {
            return Ok(Dialect::V30);
        }
        // What later versions add is optional; what they changed came with 3.1.
        if version.starts_with("3.") {
            return Ok(Dialect::V31);
        }
        return Err(format!(
            "it is OpenAPI {version}; 3.0 and 3.1 can be read: ask its vendor for one of those"
        ));
    }
    if let Some(version) = version("swagger") {
        return Err(format!(
            "it is Swagger {version}, the format before OpenAPI 3: convert it once with `npx swagger2openapi --outfile openapi.json <document>` and name the result in `spec`"
        ));
    }
    Err(
        "it is no OpenAPI document: `openapi: 3.…` is missing at the top; check what `spec` names"
            .to_owned(),
    )
}

fn collect_names(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref")
                && let Some(name) = reference.split('#').next().filter(|name| !name.is_empty())
            {
                names.push(name.to_owned());
            }
            for member in members.values() {
                collect_names(member, names);
            }
        }
        Value::Array(items) => {
            for item in items {
                collect_names(item, names);
            }
        }
        _ => {}
    }
}
