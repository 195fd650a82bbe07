//! From an operation and the arguments of a call to the request that is sent. Pure.

use reqwest::header::{ACCEPT, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use steadyhand::{Category, ToolError};

use super::bytes::{Content, Given};
use super::operation::{Body, BodySource, Field, Input, Location, Media, Operation, Piece};
use super::style::{Style, Writing, bytes_pair, encode};
use crate::net::{Method, Request};

/// Almost everything answers in JSON; what does not is welcome, too.
const ACCEPTED: &str = "application/json, */*;q=0.5";
const FORM: Writing = Writing::new(Style::Form, true);

/// The head of a part of a multipart form, and what it holds.
type Part = (String, Vec<u8>);

/// A value of a form, and the bytes that are sent in its place.
type FormItem<'v> = (&'v Value, Option<Given>);

impl Operation {
    /// The request that calls it with these arguments.
    pub fn request(&self, args: &Value) -> Result<Request, ToolError> {
        let method = Method::from_bytes(self.method.as_bytes())
            .map_err(|_| refused(format!("{} is no HTTP method", self.method)))?;
        let mut url = self.server.clone();
        url.set_fragment(None);
        let (path, fixed) = self.filled_path(args)?;
        url.set_path(&path);
        // The address is what the configuration and the document say; no value gets past its place.
        if url.path() != path {
            return Err(refused(format!(
                "{} is no path with these values",
                self.path
            )));
        }
        let mut query: Vec<String> = url.query().map(str::to_owned).into_iter().collect();
        query.extend(fixed);
        for (input, value) in self.given(args, Location::Query) {
            query.extend(input.writing.in_query(&input.wire, value));
        }
        query.retain(|pair| !pair.is_empty());
        url.set_query((!query.is_empty()).then(|| query.join("&")).as_deref());
        let mut request = Request::new(method, url);
        request.headers = self.headers(args)?;
        if let Some(body) = &self.body {
            body.write(args, &mut request)?;
        }
        Ok(request)
    }

    /// The parameters of one place that have a value; null counts as absent.
    fn given<'a>(
        &'a self,
        args: &'a Value,
        location: Location,
    ) -> impl Iterator<Item = (&'a Input, &'a Value)> {
        let here = self
            .inputs
            .iter()
            .filter(move |input| input.location == location);
        here.filter_map(|input| {
            let given = args.get(&input.argument).filter(|value| !value.is_null());
            Some((input, given.or(input.default.as_ref())?))
        })
    }

    /// The whole path, and the query that the document itself wrote behind it.
    fn filled_path(&self, args: &Value) -> Result<(String, Option<String>), ToolError> {
        let mut path = self.server.path().trim_end_matches('/').to_owned();
        let before = path.len();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => path.push_str(&literal(text)),
                Piece::Place(wire) => {
                    let found = self
                        .given(args, Location::Path)
                        .find(|(input, _)| input.wire == *wire);
                    let written =
                        found.and_then(|(input, value)| input.writing.in_path(&input.wire, value));
                    let Some(text) = written else {
                        let argument = self.argument_of(wire);
                        return Err(refused(format!(
                            "'{argument}' is part of the address and must not be empty"
                        )));
                    };
                    path.push_str(&text);
                }
            }
        }
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path.to_owned(), Some(query.to_owned())),
            None => (path, None),
        };
        let climbs = |segment: &str| matches!(segment, "." | "..");
        if path[before.min(path.len())..].split('/').any(climbs) {
            return Err(refused(
                "a value that is . or .. would lead to another address".to_owned(),
            ));
        }
        Ok((path, query))
    }

    fn argument_of<'a>(&'a self, wire: &'a str) -> &'a str {
        let mut inputs = self.inputs.iter();
        let found = inputs.find(|input| input.location == Location::Path && input.wire == wire);
        found.map_or(wire, |input| &input.argument)
    }

    fn headers(&self, args: &Value) -> Result<HeaderMap, ToolError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(ACCEPTED));
        for (input, value) in self.given(args, Location::Header) {
            let Some(text) = input.writing.in_header(value) else {
                continue;
            };
            let name = HeaderName::from_bytes(input.wire.as_bytes())
                .map_err(|_| refused(format!("{} is no name of a header", input.wire)))?;
            headers.insert(name, header_value(&input.argument, &text)?);
        }
        let cookies: Vec<String> = self
            .given(args, Location::Cookie)
            .flat_map(|(input, value)| {
                let plain = Writing {
                    allow_reserved: false,
                    ..input.writing
                };
                plain.in_query(&input.wire, value)
            })
            .collect();
        if !cookies.is_empty() {
            headers.insert(COOKIE, header_value("cookie", &cookies.join("; "))?);
        }
        Ok(headers)
    }
}

impl Body {
    fn write(&self, args: &Value, request: &mut Request) -> Result<(), ToolError> {
        let Some(value) = self.value(args) else {
            return Ok(());
        };
        let mut content_type = self.content_type.clone();
        let bytes = match self.media {
            Media::Json => value.to_string().into_bytes(),
            Media::Raw => match value {
                Value::String(text) => match self.given(&text)? {
                    Some(given) => {
                        if let Some(media_type) = given.media_type
                            && fits_range(&media_type, &self.written_type)
                        {
                            content_type = media_type;
                        }
                        given.bytes
                    }
                    None => text.into_bytes(),
                },
                other => other.to_string().into_bytes(),
            },
            Media::Form => self.form(&value)?.into_bytes(),
            Media::Multipart => {
                let (boundary, bytes) = self.multipart(&value)?;
                content_type = format!("{content_type}; boundary={boundary}");
                bytes
            }
        };
        let content_type = header_value("the content type", &content_type)?;
        request.headers.insert(CONTENT_TYPE, content_type);
        request.body = Some(bytes);
        Ok(())
    }

    fn value(&self, args: &Value) -> Option<Value> {
        match &self.source {
            BodySource::Under(argument) => {
                // Null is a value a JSON body can have, if somebody really asks for it.
                args.get(argument).cloned()
            }
            BodySource::Beside(fields) => {
                let given = |(argument, wire): &(String, String)| {
                    Some((wire.clone(), args.get(argument)?.clone()))
                };
                let members: Map<String, Value> = fields.iter().filter_map(given).collect();
                (self.required || !members.is_empty()).then_some(Value::Object(members))
            }
        }
    }

    fn field(&self, name: &str) -> Field {
        let mut fields = self.fields.iter();
        fields
            .find(|(known, _)| known == name)
            .map_or_else(|| self.other_fields.clone(), |(_, field)| field.clone())
    }

    fn form(&self, value: &Value) -> Result<String, ToolError> {
        let Some(members) = value.as_object() else {
            return Ok(encode(&value.to_string()));
        };
        let mut pairs: Vec<String> = Vec::new();
        for (name, value) in members {
            let field = self.field(name);
            let Some(items) = self.items_with_bytes(name, value, &field)? else {
                let writing = field.writing.unwrap_or(plain_form(value));
                pairs.extend(writing.in_query(name, value));
                continue;
            };
            for (item, given) in items {
                match given {
                    Some(given) => pairs.push(bytes_pair(name, &given.bytes)),
                    None => pairs.extend(plain_form(item).in_query(name, item)),
                }
            }
        }
        Ok(pairs.join("&"))
    }

    /// The bytes of a body that is one argument; none where its text is sent.
    fn given(&self, text: &str) -> Result<Option<Given>, ToolError> {
        let argument = match &self.source {
            BodySource::Under(argument) => argument,
            BodySource::Beside(_) => "body",
        };
        let given = self.content.given(text);
        given.map_err(|fault| no_bytes(argument, fault))
    }

    /// What models call a field.
    fn argument_of<'a>(&'a self, wire: &'a str) -> &'a str {
        match &self.source {
            BodySource::Under(_) => wire,
            BodySource::Beside(fields) => {
                let mut fields = fields.iter();
                let found = fields.find(|(_, known)| known == wire);
                found.map_or(wire, |(argument, _)| argument)
            }
        }
    }

    fn multipart(&self, value: &Value) -> Result<(String, Vec<u8>), ToolError> {
        let members = value.as_object();
        let mut parts: Vec<Part> = Vec::new();
        for (name, value) in members.into_iter().flatten() {
            let field = self.field(name);
            if let Some(items) = self.items_with_bytes(name, value, &field)? {
                for (item, given) in items {
                    match given {
                        Some(given) => parts.push(file_part(name, given, &field)),
                        None => {
                            let texts = plain_form(item).in_parts(name, item).into_iter();
                            let part = |(name, text): (String, String)| {
                                (part_head(&name, None, None), text.into_bytes())
                            };
                            parts.extend(texts.map(part));
                        }
                    }
                }
                continue;
            }
            let writing = field.writing.unwrap_or(plain_form(value));
            let kind = match (field.sent_type(), value, field.is_file) {
                (Some(kind), _, _) => Some(kind.to_owned()),
                (None, Value::Object(_), _) => Some("application/json".to_owned()),
                (None, _, true) => Some("application/octet-stream".to_owned()),
                (None, _, false) => None,
            };
            for (name, text) in writing.in_parts(name, value) {
                let file_name = field.is_file.then_some(&*name);
                let head = part_head(&name, kind.as_deref(), file_name);
                parts.push((head, text.into_bytes()));
            }
        }
        // Made from what is sent: nobody can write a text that contains its own boundary.
        let mut digest = Sha256::new();
        for (head, content) in &parts {
            digest.update(head.as_bytes());
            digest.update(content);
        }
        let marks = digest.finalize();
        let mut boundary = "steadyhand-".to_owned();
        marks
            .iter()
            .take(16)
            .for_each(|byte| boundary.push_str(&format!("{byte:02x}")));
        let mut bytes = Vec::new();
        for (head, content) in parts {
            bytes.extend_from_slice(format!("--{boundary}\r\n{head}\r\n\r\n").as_bytes());
            bytes.extend_from_slice(&content);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        Ok((boundary, bytes))
    }

    /// The value of a field, or each of several under one name, with the bytes that stand in its place; none if all of
    /// it is sent as text.
    fn items_with_bytes<'v>(
        &self,
        name: &str,
        value: &'v Value,
        field: &Field,
    ) -> Result<Option<Vec<FormItem<'v>>>, ToolError> {
        if field.content == Content::Text {
            return Ok(None);
        }
        let items = match value {
            Value::Array(items) => items.iter().collect(),
            one => vec![one],
        };
        let mut with_bytes = Vec::new();
        for item in items {
            let given = match item {
                Value::String(text) => field.content.given(text),
                Value::Null => Ok(None),
                _ if field.content == Content::Bytes => Err("is no text"),
                _ => Ok(None),
            };
            let given = given.map_err(|fault| no_bytes(self.argument_of(name), fault))?;
            with_bytes.push((item, given));
        }
        let has_bytes = with_bytes.iter().any(|(_, given)| given.is_some());
        Ok(has_bytes.then_some(with_bytes))
    }
}

/// A file as a part of a multipart form.
fn file_part(name: &str, given: Given, field: &Field) -> Part {
    let ranges = &field.content_types;
    let is_allowed =
        |own: &String| ranges.is_empty() || ranges.iter().any(|range| fits_range(own, range));
    let own_type = given.media_type.filter(is_allowed);
    let kind = own_type.as_deref().or(field.sent_type());
    let kind = kind.unwrap_or("application/octet-stream");
    let file_name = given.file_name.as_deref().or(field.file_name.as_deref());
    let head = part_head(name, Some(kind), Some(file_name.unwrap_or(name)));
    (head, given.bytes)
}

impl Field {
    /// The first type of those that the document allows, if it is one and no range.
    fn sent_type(&self) -> Option<&str> {
        let first = self.content_types.first().map(String::as_str);
        first.filter(|it| !it.contains('*'))
    }
}

/// Whether a media type is one of a range: `image/*`, or the type itself.
fn fits_range(media_type: &str, range: &str) -> bool {
    let essence = |text: &str| {
        let text = text.split(';').next().unwrap_or_default();
        text.trim().to_ascii_lowercase()
    };
    let (media_type, range) = (essence(media_type), essence(range));
    match range.strip_suffix('*') {
        Some("*/") => true,
        Some(beginning) => media_type.starts_with(beginning),
        None => media_type == range,
    }
}

/// Nothing is sent in the place of bytes that nobody can read.
fn no_bytes(argument: &str, fault: &str) -> ToolError {
    refused(format!(
        "'{argument}' {fault}; give the bytes as base64 (with its padding), or as a data: URL such as data:image/png;base64,iVBORw0…"
    ))
}

/// Where the document does not say how: lists repeat their name, objects are JSON.
fn plain_form(value: &Value) -> Writing {
    match value {
        Value::Object(_) => Writing::new(Style::Json, false),
        _ => FORM,
    }
}

fn part_head(name: &str, content_type: Option<&str>, file_name: Option<&str>) -> String {
    let quoted = |text: &str| {
        text.replace('"', "%22")
            .replace('\r', "%0D")
            .replace('\n', "%0A")
    };
    let mut head = format!("Content-Disposition: form-data; name=\"{}\"", quoted(name));
    if let Some(file_name) = file_name {
        head.push_str(&format!("; filename=\"{}\"", quoted(file_name)));
    }
    if let Some(kind) = content_type.filter(|kind| !kind.contains(['\r', '\n'])) {
        head.push_str(&format!("\r\nContent-Type: {kind}"));
    }
    head
}

/// A path as the document writes it may hold characters that a URL must not.
fn literal(text: &str) -> String {
    use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
    const PATH: &AsciiSet = &CONTROLS
        .add(b' ')
        .add(b'"')
        .add(b'<')
        .add(b'>')
        .add(b'`')
        .add(b'{')
        .add(b'}')
        .add(b'#')
        .add(b'\\')
        .add(b'^')
        .add(b'|');
    utf8_percent_encode(text, PATH).to_string()
}

fn header_value(argument: &str, text: &str) -> Result<HeaderValue, ToolError> {
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_| {
        refused(format!(
            "'{argument}' is sent in a header and must not hold line breaks or control characters"
        ))
    })
}

/// The arguments passed their schema but cannot be sent.
fn refused(message: String) -> ToolError {
    ToolError::of(
        Category::Validation,
        format!("Invalid parameters: {message}"),
    )
    .never_started()
}
