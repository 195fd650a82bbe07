//! The values of the configuration with the place each came from: file, line, column, or variable.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Number, Value};
use toml::de::{DeTable, DeValue};

use super::problem::Problem;
pub use super::source_file::{Place, SourceFile, plain};
use super::{NotRead, Trust};

/// Every character of a line can be wrong by itself: more than these are only counted.
const SYNTAX_ERRORS_MAX: usize = 20;

/// Where a value came from.
#[derive(Debug, Clone)]
pub enum Origin {
    /// A file.
    File {
        /// Its key, where it has one.
        key: Option<Place>,
        /// The value itself.
        value: Place,
    },
    /// An environment variable of this name.
    Variable(String),
}

/// Values by JSON Pointer, each with its origin.
#[derive(Debug, Clone)]
pub struct Document {
    /// All of it as one object.
    pub value: Value,
    origins: HashMap<String, Origin>,
}

impl Origin {
    /// `steadyhand.toml:62`, or the variable.
    pub fn short(&self) -> String {
        match self {
            Origin::File { value, .. } => value.short(),
            Origin::Variable(name) => format!("${name}"),
        }
    }

    /// Where the value stands, if in a file.
    pub fn value_place(&self) -> Option<&Place> {
        match self {
            Origin::File { value, .. } => Some(value),
            Origin::Variable(_) => None,
        }
    }

    /// Where the key stands, or the value where there is no key.
    pub fn key_place(&self) -> Option<&Place> {
        match self {
            Origin::File { key, value } => Some(key.as_ref().unwrap_or(value)),
            Origin::Variable(_) => None,
        }
    }
}

impl SourceFile {
    /// Reads a file of at most 8 MiB; messages call it by the name that is `shown`.
    pub fn read(path: &Path, shown: PathBuf, trust: &Trust) -> Result<Arc<SourceFile>, Problem> {
        const BYTES_MAX: u64 = 8 * 1024 * 1024;
        let cannot = |reason: String| {
            Problem::error(format!("{} cannot be read: {reason}", shown.display()))
        };
        let bytes = trust.read(path, BYTES_MAX).map_err(|why| match why {
            NotRead::Unreadable(error) => cannot(plain(&error)),
            NotRead::NoFile => cannot("it is not a file".to_owned()),
            NotRead::TooLarge => cannot(format!("it is larger than {} MiB", BYTES_MAX >> 20)),
            NotRead::Untrusted(file) => Problem::untrusted(&file, &shown),
        })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            cannot(format!(
                "byte {} is not UTF-8",
                error.utf8_error().valid_up_to()
            ))
        })?;
        Ok(Arc::new(SourceFile::new(shown, text)))
    }
}

impl Default for Document {
    fn default() -> Document {
        Document {
            value: Value::Object(Map::new()),
            origins: HashMap::new(),
        }
    }
}

impl Document {
    /// Reads TOML. What can be read is kept beside the problems, so that all are told at once.
    pub fn from_toml(file: &Arc<SourceFile>) -> (Document, Vec<Problem>) {
        let (table, errors) = DeTable::parse_recoverable(&file.text);
        let rest = errors.len().saturating_sub(SYNTAX_ERRORS_MAX);
        let errors = errors.into_iter().take(SYNTAX_ERRORS_MAX);
        let mut problems: Vec<Problem> = errors
            .map(|error| {
                let span = error.span().unwrap_or(0..0);
                let place = Place {
                    file: Arc::clone(file),
                    span,
                };
                Problem::error(format!("the file is no TOML: {}", error.message().trim()))
                    .at(place, "here")
            })
            .collect();
        if rest > 0 {
            problems.push(Problem::error(format!(
                "the file is no TOML in {rest} more places; mend these first"
            )));
        }
        let mut document = Document::default();
        let mut reader = TomlReader {
            file,
            document: &mut document,
        };
        let value = reader.table(table.get_ref(), &mut String::new());
        document.value = value;
        (document, problems)
    }

    /// Where the value at a pointer came from.
    pub fn origin(&self, pointer: &str) -> Option<&Origin> {
        self.origins.get(pointer)
    }

    /// The origin of the value at the pointer, or of the nearest thing around it.
    pub fn nearest_origin(&self, pointer: &str) -> Option<&Origin> {
        let mut pointer = pointer;
        loop {
            if let Some(origin) = self.origins.get(pointer) {
                return Some(origin);
            }
            pointer = &pointer[..pointer.rfind('/')?];
        }
    }

    /// Lays another document over this one: tables are merged, other values replaced.
    pub fn overlay(&mut self, over: Document) {
        merge(&mut self.value, over.value);
        self.origins.extend(over.origins);
    }

    /// Sets one value that an environment variable names: `STEADYHAND__SERVER__LISTEN`.
    pub fn set(&mut self, keys: &[String], value: Value, variable: &str) {
        let mut pointer = String::new();
        let mut target = &mut self.value;
        for key in keys {
            pointer.push('/');
            pointer.push_str(&escaped(key));
            if !target.is_object() {
                *target = Value::Object(Map::new());
            }
            target = &mut target[key.as_str()];
        }
        *target = value;
        self.origins
            .insert(pointer, Origin::Variable(variable.to_owned()));
    }
}

fn merge(under: &mut Value, over: Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                merge(under.entry(key).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over,
    }
}

/// A key as a JSON Pointer writes it.
pub fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

struct TomlReader<'a> {
    file: &'a Arc<SourceFile>,
    document: &'a mut Document,
}

impl TomlReader<'_> {
    fn table(&mut self, table: &DeTable<'_>, pointer: &mut String) -> Value {
        let mut map = Map::new();
        for (key, value) in table {
            let name: &str = key.get_ref();
            let length = pointer.len();
            pointer.push('/');
            pointer.push_str(&escaped(name));
            self.note(pointer, Some(key.span()), value.span());
            map.insert(name.to_owned(), self.value(value.get_ref(), pointer));
            pointer.truncate(length);
        }
        Value::Object(map)
    }

    fn value(&mut self, value: &DeValue<'_>, pointer: &mut String) -> Value {
        match value {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Integer(integer) => {
                let digits = integer.as_str().replace('_', "");
                i64::from_str_radix(&digits, integer.radix()).map_or(Value::Null, Value::from)
            }
            DeValue::Float(float) => {
                let number = float.as_str().replace('_', "").parse::<f64>().ok();
                number
                    .and_then(Number::from_f64)
                    .map_or(Value::Null, Value::Number)
            }
            DeValue::Boolean(boolean) => Value::Bool(*boolean),
            DeValue::Datetime(moment) => Value::String(moment.to_string()),
            DeValue::Array(items) => {
                let mut array = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    let length = pointer.len();
                    pointer.push_str(&format!("/{index}"));
                    self.note(pointer, None, item.span());
                    array.push(self.value(item.get_ref(), pointer));
                    pointer.truncate(length);
                }
                Value::Array(array)
            }
            DeValue::Table(table) => self.table(table, pointer),
        }
    }

    fn note(&mut self, pointer: &str, key: Option<Range<usize>>, value: Range<usize>) {
        let place = |span| Place {
            file: Arc::clone(self.file),
            span,
        };
        let origin = Origin::File {
            key: key.map(place),
            value: place(value),
        };
        self.document.origins.insert(pointer.to_owned(), origin);
    }
}
