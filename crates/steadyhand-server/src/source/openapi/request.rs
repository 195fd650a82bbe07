//! From an operation and the arguments of a call to the request that is sent. Pure.

use reqwest::header::{ACCEPT, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use steadyhand::{Category, ToolError};

use super::operation::{Body, BodySource, Field, Input, Location, Media, Operation, Piece};
use super::style::{Style, Writing, encode};
use crate::net::{Method, Request};

/// Almost everything answers in JSON; what does not is welcome, too.
const ACCEPTED: &str = "application/json, */*;q=0.5";
const FORM: Writing = Writing::new(Style::Form, true);

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
                Value::String(text) => text.into_bytes(),
                other => other.to_string().into_bytes(),
            },
            Media::Form => self.form(&value).into_bytes(),
            Media::Multipart => {
                let (boundary, bytes) = self.multipart(&value);
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
            .map(|(_, field)| field.clone())
            .unwrap_or_default()
    }

    fn form(&self, value: &Value) -> String {
        let Some(members) = value.as_object() else {
            return encode(&value.to_string());
        };
        let pair = |(name, value): (&String, &Value)| {
            let writing = self.field(name).writing.unwrap_or(plain_form(value));
            writing.in_query(name, value)
        };
        members.iter().flat_map(pair).collect::<Vec<_>>().join("&")
    }

    fn multipart(&self, value: &Value) -> (String, Vec<u8>) {
        let members = value.as_object();
        let mut parts = Vec::new();
        for (name, value) in members.into_iter().flatten() {
            let field = self.field(name);
            let writing = field.writing.unwrap_or(plain_form(value));
            let kind = match (&field.content_type, value, field.is_file) {
                (Some(kind), _, _) => Some(kind.clone()),
                (None, Value::Object(_), _) => Some("application/json".to_owned()),
                (None, _, true) => Some("application/octet-stream".to_owned()),
                (None, _, false) => None,
            };
            for (name, text) in writing.in_parts(name, value) {
                parts.push((part_head(&name, kind.as_deref(), field.is_file), text));
            }
        }
        // Made from what is sent: nobody can write a text that contains its own boundary.
        let mut digest = Sha256::new();
        for (head, text) in &parts {
            digest.update(head.as_bytes());
            digest.update(text.as_bytes());
        }
        let marks = digest.finalize();
        let mut boundary = "steadyhand-".to_owned();
        marks
            .iter()
            .take(16)
            .for_each(|byte| boundary.push_str(&format!("{byte:02x}")));
        let mut bytes = Vec::new();
        for (head, text) in parts {
            bytes.extend_from_slice(format!("--{boundary}\r\n{head}\r\n\r\n").as_bytes());
            bytes.extend_from_slice(text.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        (boundary, bytes)
    }
}

/// Where the document does not say how: lists repeat their name, objects are JSON.
fn plain_form(value: &Value) -> Writing {
    match value {
        Value::Object(_) => Writing::new(Style::Json, false),
        _ => FORM,
    }
}

fn part_head(name: &str, content_type: Option<&str>, is_file: bool) -> String {
    let name = name
        .replace('"', "%22")
        .replace('\r', "%0D")
        .replace('\n', "%0A");
    let mut head = format!("Content-Disposition: form-data; name=\"{name}\"");
    if is_file {
        head.push_str(&format!("; filename=\"{name}\""));
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
