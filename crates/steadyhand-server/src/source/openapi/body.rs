//! The body of an operation: which of its media types is sent, and which arguments it is made of.

use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::document::{At, Document};
use super::name;
use super::operation::{Body, BodySource, Field, Media};
use super::schema::Converter;
use super::style::{Style, Writing};

/// `allOf` inside `allOf` is followed so deep.
const DEPTH_MAX: usize = 16;

/// Reads a request body and adds its arguments.
pub(crate) fn read<'d>(
    document: &'d Document,
    at: At<'d>,
    converter: &mut Converter<'d>,
    arguments: &mut Arguments,
) -> Result<Option<Body>, String> {
    let content = at.get("content");
    let types = content.and_then(|content| content.value.as_object());
    let Some((content, types)) = content.zip(types).filter(|(_, types)| !types.is_empty()) else {
        // A body that nobody describes: the specification allows it, nothing can be sent.
        return Ok(None);
    };
    let (written, media) = chosen(types);
    let described = content.with(&types[written]);
    let schema = described.get("schema");
    let required = at.flag("required") == Some(true);
    let fields = schema.filter(|_| media != Media::Raw).and_then(|schema| {
        let mut plain = Plain::default();
        plain.collect(document, schema, 0)?;
        plain.fields(arguments)
    });
    let mut encoding = encoding(document, described, schema);
    let source = match fields {
        Some(fields) => {
            let beside = fields
                .iter()
                .map(|field| (field.argument.clone(), field.wire.to_owned()));
            let source = BodySource::Beside(beside.collect());
            if !required {
                // Without a body nothing of it is needed; with one, what it requires is.
                let names = |fields: &[&BodyField<'_>]| -> Vec<String> {
                    fields.iter().map(|field| field.argument.clone()).collect()
                };
                let all: Vec<&BodyField<'_>> = fields.iter().collect();
                let needed: Vec<&BodyField<'_>> =
                    fields.iter().filter(|field| field.required).collect();
                arguments.need_together(&names(&all), &names(&needed));
            }
            for field in fields {
                let schema = with_words(converter.schema(field.schema), &field);
                arguments.add(&field.argument, schema, required && field.required);
            }
            source
        }
        None => {
            let argument = arguments.first_free(["body".to_owned(), "request_body".to_owned()]);
            let schema = match (media, schema) {
                (Media::Raw, _) | (_, None) => raw_schema(media, written),
                (_, Some(schema)) => converter.schema(schema),
            };
            arguments.add(
                &argument,
                described_as(schema, at.text("description")),
                required,
            );
            BodySource::Under(argument)
        }
    };
    if !matches!(media, Media::Form | Media::Multipart) {
        encoding.clear();
    }
    Ok(Some(Body {
        media,
        content_type: concrete(written, media),
        required,
        source,
        fields: encoding,
    }))
}

/// The first of: JSON, a form, a multipart form, anything else as text.
fn chosen(types: &Map<String, Value>) -> (&String, Media) {
    let kind = |written: &str| {
        let essence = written
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        match essence.as_str() {
            "*/*" | "application/*" => Media::Json,
            "application/x-www-form-urlencoded" => Media::Form,
            "multipart/form-data" => Media::Multipart,
            json if crate::net::response::is_json(json) => Media::Json,
            _ => Media::Raw,
        }
    };
    let order = [Media::Json, Media::Form, Media::Multipart, Media::Raw];
    let best = order.into_iter().find_map(|media| {
        let written = types.keys().find(|written| kind(written) == media)?;
        Some((written, media))
    });
    // Every type is one of the four, and there is at least one.
    best.unwrap_or_else(|| (types.keys().next().expect("not empty"), Media::Raw))
}

/// A range of types stands for one that we can write.
fn concrete(written: &str, media: Media) -> String {
    match (written.contains('*'), media) {
        (false, _) => written.to_owned(),
        (true, Media::Raw) if written.starts_with("text/") => "text/plain".to_owned(),
        (true, Media::Raw) => "application/octet-stream".to_owned(),
        (true, _) => "application/json".to_owned(),
    }
}

fn raw_schema(media: Media, written: &str) -> Value {
    match media {
        Media::Raw => {
            json!({ "type": "string", "description": format!("Sent as it is, as {written}.") })
        }
        Media::Form | Media::Multipart => json!({ "type": "object" }),
        Media::Json => json!({}),
    }
}

fn described_as(mut schema: Value, words: Option<&str>) -> Value {
    if let (Some(words), Some(members)) = (words, schema.as_object_mut()) {
        members.entry("description").or_insert(json!(words));
    }
    schema
}

/// How the fields of a form are written.
fn encoding<'d>(
    document: &'d Document,
    media: At<'d>,
    schema: Option<At<'d>>,
) -> Vec<(String, Field)> {
    let mut plain = Plain::default();
    let mut fields: Vec<(String, Field)> = Vec::new();
    if let Some(schema) = schema {
        let _ = plain.collect(document, schema, 0);
        for (name, part) in &plain.properties {
            let part = document.resolve(*part).unwrap_or(*part);
            let item = part
                .get("items")
                .and_then(|item| document.resolve(item).ok());
            let is_file = [Some(part), item].into_iter().flatten().any(is_binary);
            if is_file {
                fields.push((
                    (*name).to_owned(),
                    Field {
                        is_file,
                        ..Field::default()
                    },
                ));
            }
        }
    }
    let said = media.get("encoding").and_then(|it| it.value.as_object());
    for (name, said) in said.into_iter().flatten() {
        let said = media.with(said);
        let place = match fields.iter().position(|(known, _)| known == name) {
            Some(place) => place,
            None => {
                fields.push((name.clone(), Field::default()));
                fields.len() - 1
            }
        };
        let field = &mut fields[place].1;
        let first_type = said
            .text("contentType")
            .and_then(|types| types.split(',').next());
        field.content_type = first_type
            .map(|it| it.trim().to_owned())
            .filter(|it| !it.contains('*'));
        let is_json = field
            .content_type
            .as_deref()
            .is_some_and(crate::net::response::is_json);
        let style = said.text("style").and_then(Style::named);
        let explode = said.flag("explode");
        field.writing = match (style, explode, is_json) {
            (None, None, true) => Some(Writing::new(Style::Json, false)),
            (None, None, false) => None,
            (style, explode, _) => {
                let style = style.unwrap_or(Style::Form);
                Some(Writing {
                    style,
                    explode: explode.unwrap_or(style == Style::Form),
                    allow_reserved: said.flag("allowReserved") == Some(true),
                })
            }
        };
    }
    fields
}

fn is_binary(schema: At<'_>) -> bool {
    matches!(schema.text("format"), Some("binary" | "base64"))
        || schema.text("type") == Some("file")
        || schema.text("contentMediaType") == Some("application/octet-stream")
}

/// A body that is one object and nothing more: what can stand beside the parameters.
#[derive(Default)]
struct Plain<'d> {
    properties: Vec<(&'d str, At<'d>)>,
    required: Vec<&'d str>,
}

struct BodyField<'d> {
    argument: String,
    wire: &'d str,
    schema: At<'d>,
    required: bool,
}

impl<'d> Plain<'d> {
    /// Takes in a schema and those its `allOf` names; `None` as soon as one says more than a plain object does.
    fn collect(&mut self, document: &'d Document, schema: At<'d>, depth: usize) -> Option<()> {
        let schema = document.resolve(schema).ok()?;
        let members = schema.value.as_object().filter(|_| depth < DEPTH_MAX)?;
        for (key, value) in members {
            let fits = match key.as_str() {
                "type" => value == "object" || *value == json!(["object"]),
                "properties" => value.is_object(),
                "required" => value.is_array(),
                "allOf" => value.is_array(),
                "additionalProperties" => *value == json!(false),
                "nullable" => *value == json!(false),
                "title" | "description" | "example" | "examples" | "default" | "xml"
                | "externalDocs" | "deprecated" | "$schema" | "$id" | "$comment" | "readOnly"
                | "writeOnly" => true,
                extension => extension.starts_with("x-"),
            };
            if !fits {
                return None;
            }
        }
        for (name, part) in members
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            if self.properties.iter().any(|(known, _)| known == name) {
                return None;
            }
            self.properties.push((name, schema.with(part)));
        }
        let required = members.get("required").and_then(Value::as_array);
        self.required
            .extend(required.into_iter().flatten().filter_map(Value::as_str));
        for part in members
            .get("allOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            self.collect(document, schema.with(part), depth + 1)?;
        }
        // What only comes back is not sent.
        let is_read_only = |part: &At<'d>| {
            part.flag("readOnly") == Some(true)
                || document
                    .resolve(*part)
                    .is_ok_and(|it| it.flag("readOnly") == Some(true))
        };
        self.properties.retain(|(_, part)| !is_read_only(part));
        Some(())
    }

    /// Its fields as arguments; `None` where they cannot stand beside the parameters.
    fn fields(self, arguments: &Arguments) -> Option<Vec<BodyField<'d>>> {
        if self.properties.is_empty() {
            return None;
        }
        let mut fields: Vec<BodyField<'d>> = Vec::new();
        for (wire, schema) in self.properties {
            let argument = name::argument_name(wire);
            if arguments.has(&argument) || fields.iter().any(|field| field.argument == argument) {
                return None;
            }
            fields.push(BodyField {
                argument,
                wire,
                schema,
                required: self.required.contains(&wire),
            });
        }
        Some(fields)
    }
}

fn with_words(schema: Value, field: &BodyField<'_>) -> Value {
    let mut schema = match schema {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    if field.argument != field.wire {
        let own = schema
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let words = format!("{own} Sent as {}.", field.wire);
        schema.insert("description".to_owned(), json!(words.trim()));
    }
    Value::Object(schema)
}
