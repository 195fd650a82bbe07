//! The body of an operation: which of its media types is sent, and which arguments it is made of.

use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::bytes::{self, Content, FormContents};
use super::document::{At, Document};
use super::name;
use super::operation::{Body, BodySource, Field, Media};
use super::schema::Converter;
use super::style::{Style, Writing};

/// `allOf` inside `allOf` is followed so deep.
const DEPTH_MAX: usize = 16;

/// Reads a request body and adds its arguments.
pub(super) fn read<'d>(
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
    let (written, media) = chosen(document, content, types);
    let described = content.with(&types[written]);
    let schema = described.get("schema");
    let required = at.flag("required") == Some(true);
    let fields = schema.filter(|_| media != Media::Raw).and_then(|schema| {
        let mut plain = Plain::default();
        plain.collect(document, schema, 0)?;
        plain.fields(arguments)
    });
    let (mut encoding, other_fields) = match media {
        Media::Form | Media::Multipart => encoding(document, described, schema, media),
        Media::Json | Media::Raw => (Vec::new(), Field::default()),
    };
    let content = match media {
        Media::Raw => raw_content(document, written, schema),
        Media::Json | Media::Form | Media::Multipart => Content::Text,
    };
    let as_bytes = |wire: &str, schema: Value| {
        let mut fields = encoding.iter();
        match fields.find(|(name, _)| name == wire) {
            Some((_, field)) => {
                let media_type = field.content_types.first().map(String::as_str);
                field.content.described(schema, media_type)
            }
            None => schema,
        }
    };
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
                let schema = as_bytes(field.wire, converter.schema(field.schema));
                let schema = with_words(schema, &field);
                arguments.add(&field.argument, schema, required && field.required);
            }
            source
        }
        None => {
            let argument = arguments.first_free(["body".to_owned(), "request_body".to_owned()]);
            let schema = match (media, schema) {
                (Media::Raw, _) => raw_schema(content, written),
                (_, None) => raw_form(media),
                (_, Some(schema)) => {
                    let mut schema = converter.schema(schema);
                    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
                    let mut shown = Vec::new();
                    for (wire, part) in properties.into_iter().flatten() {
                        *part = as_bytes(wire, std::mem::take(part));
                        shown.push(wire.clone());
                    }
                    with_files(schema, &encoding, &other_fields, &shown)
                }
            };
            arguments.add(
                &argument,
                described_as(schema, at.text("description")),
                required,
            );
            BodySource::Under(argument)
        }
    };
    // What is written as all others are needs no mention.
    encoding.retain(|(_, field)| *field != other_fields);
    Ok(Some(Body {
        media,
        content_type: concrete(written, media),
        written_type: written.clone(),
        required,
        source,
        fields: encoding,
        other_fields,
        content,
    }))
}

/// The first of: JSON, a form, a multipart form, anything else. A form or JSON that has files in it comes after what can
/// hold their bytes.
fn chosen<'d>(
    document: &'d Document,
    content: At<'d>,
    types: &'d Map<String, Value>,
) -> (&'d String, Media) {
    let is_file = |written: &str| {
        let schema = content.with(&types[written]).get("schema");
        schema.is_some_and(|schema| Content::of(document, schema) == Content::Bytes)
    };
    let kind = |written: &str| {
        let essence = written
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        match essence.as_str() {
            // Bytes are sent as bytes, JSON is what everything else is sent as.
            "*/*" | "application/*" if is_file(written) => Media::Raw,
            "*/*" | "application/*" => Media::Json,
            "application/x-www-form-urlencoded" => Media::Form,
            "multipart/form-data" => Media::Multipart,
            json if crate::net::response::is_json(json) => Media::Json,
            _ => Media::Raw,
        }
    };
    let order = [Media::Json, Media::Form, Media::Multipart, Media::Raw];
    let mut offered = order.into_iter().filter_map(|media| {
        let written = types.keys().find(|written| kind(written) == media)?;
        Some((written, media))
    });
    let holds_files = |written: &str| {
        let schema = content.with(&types[written]).get("schema");
        schema.is_some_and(|schema| Content::of(document, schema) != Content::Text)
            || FormContents::of(document, schema).has_bytes()
    };
    let mut best = offered.next();
    if let Some((written, Media::Json | Media::Form)) = best
        && types.len() > 1
        && holds_files(written)
    {
        let for_bytes = |media| matches!(media, Media::Multipart | Media::Raw);
        best = offered.find(|(_, media)| for_bytes(*media)).or(best);
    }
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

/// A body that is neither JSON nor a form: bytes, unless its type or its schema says that it is text.
fn raw_content<'d>(document: &'d Document, written: &str, schema: Option<At<'d>>) -> Content {
    let resolved = schema.and_then(|schema| document.resolve(schema).ok());
    let is_encoded = resolved.is_some_and(|schema| schema.text("contentEncoding").is_some());
    let is_string = resolved.is_some_and(|schema| schema.text("type") == Some("string"));
    let said = schema.map_or(Content::Text, |schema| Content::of(document, schema));
    match said {
        Content::Bytes | Content::BytesOrText => Content::Bytes,
        Content::Text if is_encoded || bytes::is_textual(written) => Content::Text,
        // A type that nobody knows is text if its schema calls it a text.
        Content::Text if is_string && !bytes::is_surely_bytes(written) => Content::Text,
        Content::Text => Content::Bytes,
    }
}

fn raw_schema(content: Content, written: &str) -> Value {
    let media_type = Some(written).filter(|it| !it.contains('*'));
    let schema =
        json!({ "type": "string", "description": format!("Sent as it is, as {written}.") });
    match content {
        Content::Text => schema,
        Content::Bytes | Content::BytesOrText => {
            let schema = json!({ "type": "string", "description": format!("Sent as {written}.") });
            content.described(schema, media_type)
        }
    }
}

/// A form or JSON that nobody describes.
fn raw_form(media: Media) -> Value {
    match media {
        Media::Form | Media::Multipart => json!({ "type": "object" }),
        Media::Json | Media::Raw => json!({}),
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
    described: At<'d>,
    schema: Option<At<'d>>,
    media: Media,
) -> (Vec<(String, Field)>, Field) {
    let mut plain = Plain::default();
    if let Some(schema) = schema {
        let _ = plain.collect(document, schema, 0);
    }
    let contents = FormContents::of(document, schema);
    let with_content = |content| Field {
        is_file: content == Content::Bytes,
        content,
        ..Field::default()
    };
    let other_fields = with_content(contents.others());
    let named = contents.named();
    let mut fields: Vec<(String, Field)> = named
        .map(|(name, content)| (name.to_owned(), with_content(content)))
        .collect();
    let said = described
        .get("encoding")
        .and_then(|it| it.value.as_object());
    for (name, said) in said.into_iter().flatten() {
        let said = described.with(said);
        let place = match fields.iter().position(|(known, _)| known == name) {
            Some(place) => place,
            None => {
                fields.push((name.clone(), Field::default()));
                fields.len() - 1
            }
        };
        let field = &mut fields[place].1;
        let types = said.text("contentType").unwrap_or_default().split(',');
        let types = types.map(str::trim).filter(|it| !it.is_empty());
        field.content_types = types.map(str::to_owned).collect();
        let first_type = field.content_types.first().map(String::as_str);
        let is_json = first_type.is_some_and(crate::net::response::is_json);
        let is_text = plain.is_text(document, name);
        if media == Media::Multipart
            && field.content == Content::Text
            && is_text
            && first_type.is_some_and(bytes::is_surely_bytes)
        {
            field.content = Content::Bytes;
            field.is_file = true;
        }
        field.file_name = file_name(document, said);
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
    (fields, other_fields)
}

/// Says which fields are files where the schema of the field itself is out of reach: in a choice, or under any name.
fn with_files(
    mut schema: Value,
    fields: &[(String, Field)],
    other_fields: &Field,
    shown: &[String],
) -> Value {
    let is_file = |field: &Field| field.content != Content::Text;
    let hidden = fields
        .iter()
        .filter(|(name, field)| is_file(field) && !shown.contains(name));
    let mut files: Vec<&str> = hidden.map(|(name, _)| name.as_str()).collect();
    if is_file(other_fields) {
        files.push("fields of any other name");
    }
    let Some(members) = schema.as_object_mut().filter(|_| !files.is_empty()) else {
        return schema;
    };
    let own = members.get("description").and_then(Value::as_str);
    let own = own.unwrap_or_default().trim_end();
    let words = format!(
        "{own} Give files ({}) as base64 (with its padding), or as data: URLs.",
        files.join(", ")
    );
    members.insert("description".to_owned(), json!(words.trim_start()));
    schema
}

/// The name in a content-disposition that the document fixes for a part.
fn file_name<'d>(document: &'d Document, encoding: At<'d>) -> Option<String> {
    let headers = encoding.get("headers")?;
    let mut named = headers.value.as_object()?.iter();
    let (_, header) = named.find(|(name, _)| name.eq_ignore_ascii_case("content-disposition"))?;
    let header = document.resolve(headers.with(header)).ok()?;
    let schema = header.get("schema")?;
    let schema = document.resolve(schema).unwrap_or(schema);
    let fixed = ["const", "default", "example"].iter();
    let fixed = fixed
        .filter_map(|key| schema.text(key))
        .chain(header.text("example"))
        .next()?;
    let (_, rest) = fixed.split_once("filename=")?;
    let name = rest.split(';').next()?.trim().trim_matches('"');
    (!name.is_empty()).then(|| name.to_owned())
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
    /// Whether a property is a text, or nothing is said of what it is.
    fn is_text(&self, document: &'d Document, name: &str) -> bool {
        let mut properties = self.properties.iter();
        let Some((_, part)) = properties.find(|(known, _)| *known == name) else {
            return true;
        };
        let part = document.resolve(*part).unwrap_or(*part);
        part.text("contentEncoding").is_none()
            && part
                .value
                .get("type")
                .is_none_or(|kind| *kind == json!("string"))
    }

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
