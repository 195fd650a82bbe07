//! One parameter of an operation: its argument, and how it is written into the request.

use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::document::At;
use super::operation::{Input, Location};
use super::read::Choice;
use super::schema::Converter;
use super::style::{Style, Writing};

/// HTTP itself decides these; the specification says so of the first three.
const HEADERS_OF_HTTP: [&str; 8] = [
    "accept",
    "content-type",
    "authorization",
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "cookie",
];

/// One parameter; without a description if only the path names it.
pub(super) struct Parameter<'d> {
    pub name: String,
    pub location: Location,
    pub at: Option<At<'d>>,
}

impl<'d> Parameter<'d> {
    pub(super) fn read(at: At<'d>) -> Result<Parameter<'d>, String> {
        let Some(name) = at.text("name").filter(|name| !name.is_empty()) else {
            return Err("a parameter has no name".to_owned());
        };
        let location = match at.text("in") {
            Some("path") => Location::Path,
            Some("query") => Location::Query,
            Some("header") => Location::Header,
            Some("cookie") => Location::Cookie,
            other => {
                let place = other.unwrap_or("no place");
                return Err(format!(
                    "its parameter {name} is in {place}; path, query, header and cookie are known"
                ));
            }
        };
        Ok(Parameter {
            name: name.to_owned(),
            location,
            at: Some(at),
        })
    }

    pub(super) fn is_sent_anyway(&self, choice: &Choice) -> bool {
        let lower = self.name.to_ascii_lowercase();
        match self.location {
            Location::Header => {
                HEADERS_OF_HTTP.contains(&lower.as_str()) || choice.sent_headers.contains(&lower)
            }
            Location::Query => choice.sent_query.as_deref() == Some(&self.name),
            Location::Path | Location::Cookie => false,
        }
    }

    pub(super) fn input(
        &self,
        converter: &mut Converter<'d>,
        arguments: &mut Arguments,
    ) -> Result<Input, String> {
        let content = self.at.and_then(|at| {
            let types = at.get("content")?;
            let (_, first) = types.value.as_object()?.iter().next()?;
            Some(types.with(first))
        });
        let written_as_json = content.is_some();
        let schema = content.or(self.at).and_then(|at| at.get("schema"));
        let mut schema = match schema.map(|schema| converter.schema(schema)) {
            Some(Value::Object(members)) => members,
            None if self.at.is_none() => Map::from_iter([("type".to_owned(), json!("string"))]),
            Some(_) | None => Map::new(),
        };
        let argument = arguments.free_name(&self.name, self.location);
        let mut words = Vec::new();
        words.extend(
            self.at
                .and_then(|at| at.text("description"))
                .map(str::to_owned),
        );
        if words.is_empty() {
            words.extend(
                schema
                    .get("description")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            );
        }
        if argument != self.name {
            words.push(format!("Sent as {}.", self.name));
        }
        if !words.is_empty() {
            schema.insert("description".to_owned(), json!(words.join(" ")));
        }
        if self.at.and_then(|at| at.flag("deprecated")) == Some(true) {
            schema.insert("deprecated".to_owned(), json!(true));
        }
        if let Some(example) = self.at.and_then(|at| at.get("example")) {
            schema.entry("examples").or_insert(json!([example.value]));
        }
        let needed = self.location == Location::Path
            || self.at.and_then(|at| at.flag("required")) == Some(true);
        // A required parameter whose usual value is known need not be asked for.
        let default = schema
            .get("default")
            .filter(|value| needed && !value.is_null())
            .cloned();
        arguments.add(
            &argument,
            Value::Object(schema),
            needed && default.is_none(),
        );
        Ok(Input {
            argument,
            wire: self.name.clone(),
            location: self.location,
            writing: self.writing(written_as_json),
            default,
        })
    }

    fn writing(&self, as_json: bool) -> Writing {
        if as_json {
            return Writing::new(Style::Json, false);
        }
        let usual = match self.location {
            Location::Path | Location::Header => Style::Simple,
            Location::Query | Location::Cookie => Style::Form,
        };
        let named = self.at.and_then(|at| Style::named(at.text("style")?));
        let style = named.unwrap_or(usual);
        let explode = self.at.and_then(|at| at.flag("explode"));
        Writing {
            style,
            explode: explode.unwrap_or(style == Style::Form),
            allow_reserved: self.at.and_then(|at| at.flag("allowReserved")) == Some(true),
        }
    }
}
