//! The settings of an endpoint, read: what becomes a request once the arguments are there.

use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::Value;
use steadyhand::{Invocation, Output, ToolError};

use super::{Fault, HttpSettings};
use crate::net::fill::{self, UrlTemplate};
use crate::net::response::is_json;
use crate::net::{Method, Request, Response};
use steadyhand_config::document::escaped;
use steadyhand_config::template::{JsonTemplate, Template, Values};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const FORM: &str = "application/x-www-form-urlencoded";
const KEYS_SHOWN_MAX: usize = 20;

/// All that stays the same from call to call.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) method: Method,
    pub(super) url: UrlTemplate,
    pub(super) headers: Vec<(HeaderName, Template)>,
    pub(super) body: Option<(JsonTemplate, BodyFormat)>,
    pub(super) select: Option<String>,
    /// Every place, with where it stands in the settings.
    pub(super) places: Vec<Place>,
}

#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) at: String,
    pub(super) name: String,
    pub(super) in_path: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum BodyFormat {
    Json,
    Form,
}

impl Plan {
    /// Reads the settings; all faults at once. There is a plan when there are none.
    pub(super) fn read(settings: &HttpSettings) -> (Option<Plan>, Vec<Fault>) {
        let mut faults = Vec::new();
        let method = read_method(settings, &mut faults);
        let url = read_url(settings, &mut faults);
        let headers = read_headers(settings, &mut faults);
        let body = read_body(settings, &mut faults);
        if let Some(select) = &settings.select
            && !select.is_empty()
            && !select.starts_with('/')
        {
            faults.push(fault(
                "/select",
                "a JSON Pointer starts with /",
                format!("Write \"/{}\"", select.replace('.', "/")),
            ));
        }
        let sends_body = settings.body.is_some();
        if sends_body && matches!(method, Some(Method::GET | Method::HEAD)) {
            faults.push(fault(
                "/body",
                "a GET or HEAD request has no body",
                "Set method = \"POST\", or put the values in query".to_owned(),
            ));
        }
        let (Some(method), Some(url), true) = (method, url, faults.is_empty()) else {
            return (None, faults);
        };
        let plan = Plan {
            places: places(settings, &url, &headers, body.as_ref()),
            method,
            url,
            headers,
            body,
            select: settings.select.clone(),
        };
        (Some(plan), faults)
    }

    /// SPEC D7: by the method.
    pub(super) fn is_safe_to_repeat(&self) -> bool {
        matches!(
            self.method,
            Method::GET | Method::HEAD | Method::PUT | Method::DELETE | Method::OPTIONS
        )
    }

    /// The request of one attempt.
    pub(super) fn request(
        &self,
        invocation: &Invocation<'_>,
        schema: &Value,
    ) -> Result<Request, ToolError> {
        let values = Values::new(invocation.args, schema);
        let mut request = Request::new(self.method.clone(), self.url.fill(&values)?);
        for (name, template) in &self.headers {
            if let Some(value) = fill::header(template, &values)? {
                request.headers.insert(name, value);
            }
        }
        if let Some((template, format)) = &self.body
            && let Some(body) = template.fill(&values)
        {
            let (bytes, content_type) = match format {
                BodyFormat::Json => (body.to_string(), "application/json"),
                BodyFormat::Form => (fill::form(&body), FORM),
            };
            request.body = Some(bytes.into_bytes());
            let content_type = HeaderValue::from_static(content_type);
            request.headers.entry(CONTENT_TYPE).or_insert(content_type);
        }
        // Services that know such keys then act once, however often we have to ask. The others have
        // no use for it: GET, PUT and DELETE can be repeated anyway.
        if matches!(self.method, Method::POST | Method::PATCH)
            && let Ok(key) = HeaderValue::from_str(invocation.idempotency_key())
        {
            request.headers.entry(IDEMPOTENCY_KEY).or_insert(key);
        }
        request.carry_trace(invocation.traceparent());
        Ok(request)
    }
}

/// The selected part of a JSON answer.
pub(super) fn select(response: &Response, pointer: &str) -> Result<Output, ToolError> {
    let json = response.json()?;
    if let Some(part) = json.pointer(pointer) {
        return Ok(Output::json(part.clone()));
    }
    Err(ToolError::answer(missing(&json, pointer)).result_lost())
}

/// Says how far the pointer leads, and what there is.
fn missing(json: &Value, pointer: &str) -> String {
    let mut reached = "";
    for (at, _) in pointer.match_indices('/').skip(1) {
        if json.pointer(&pointer[..at]).is_none() {
            break;
        }
        reached = &pointer[..at];
    }
    let there = match json.pointer(reached) {
        Some(Value::Object(fields)) => {
            let shown: Vec<&str> = fields
                .keys()
                .take(KEYS_SHOWN_MAX)
                .map(String::as_str)
                .collect();
            let more = match fields.len() > shown.len() {
                true => ", …",
                false => "",
            };
            format!("has the keys {}{more}", shown.join(", "))
        }
        Some(Value::Array(items)) => format!("is a list of {} items", items.len()),
        _ => "is neither an object nor a list".to_owned(),
    };
    let place = match reached {
        "" => "the answer".to_owned(),
        reached => format!("{reached} in the answer"),
    };
    format!("the answer has nothing at {pointer} (select): {place} {there}")
}

fn read_method(settings: &HttpSettings, faults: &mut Vec<Fault>) -> Option<Method> {
    const KNOWN: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    let text = settings.method.as_deref().unwrap_or("GET");
    let upper = text.to_ascii_uppercase();
    if KNOWN.contains(&upper.as_str()) {
        return upper.parse().ok();
    }
    let near = super::check::nearest(&upper, KNOWN.into_iter());
    let known = KNOWN.join(", ");
    faults.push(fault(
        "/method",
        &format!("\"{text}\" is no method"),
        match near {
            Some(near) => format!("Did you mean \"{near}\"? There are {known}"),
            None => format!("Write one of {known}"),
        },
    ));
    None
}

fn read_url(settings: &HttpSettings, faults: &mut Vec<Fault>) -> Option<UrlTemplate> {
    let mut url = match UrlTemplate::parse(settings.url.expose()) {
        Ok(url) => url,
        Err(why) => {
            let help = "Write one such as \"https://api.example.com/rooms/{room}?lang={lang}\"";
            faults.push(fault("/url", &why, help.to_owned()));
            return None;
        }
    };
    for (name, text) in &settings.query {
        match Template::parse(text.expose()) {
            Ok(template) => url.and_query(name, template),
            Err(why) => {
                faults.push(place_fault(format!("/query/{}", escaped(name)), why));
            }
        }
    }
    Some(url)
}

fn read_headers(settings: &HttpSettings, faults: &mut Vec<Fault>) -> Vec<(HeaderName, Template)> {
    /// The client's own business: two opinions about where a request ends are an attack.
    const OWN: [&str; 6] = [
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
    ];
    let mut headers = Vec::new();
    for (name, text) in &settings.headers {
        let at = format!("/headers/{}", escaped(name));
        let Ok(header) = name.parse::<HeaderName>() else {
            let help = "Use letters, digits and hyphens, as in \"X-Api-Key\"".to_owned();
            faults.push(fault(&at, "this is no name for a header", help));
            continue;
        };
        if OWN.contains(&header.as_str()) {
            let help = "Leave it out: it is set for every request".to_owned();
            faults.push(fault(&at, "this header cannot be chosen", help));
            continue;
        }
        match Template::parse(text.expose()) {
            Err(why) => faults.push(place_fault(at, why)),
            Ok(_)
                if text
                    .expose()
                    .bytes()
                    .any(|byte| !matches!(byte, b'\t' | b' '..=b'~')) =>
            {
                let help = "Use printable ASCII characters only; a secret from a file may end in a line break";
                faults.push(fault(
                    &at,
                    "this value cannot stand in a header",
                    help.to_owned(),
                ));
            }
            Ok(template) => headers.push((header, template)),
        }
    }
    headers
}

fn read_body(
    settings: &HttpSettings,
    faults: &mut Vec<Fault>,
) -> Option<(JsonTemplate, BodyFormat)> {
    let body = settings.body.as_ref()?;
    let template = match JsonTemplate::parse(&body.0) {
        Ok(template) => template,
        Err((at, why)) => {
            faults.push(place_fault(format!("/body{at}"), why));
            return None;
        }
    };
    let content_type = settings
        .headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let Some((name, text)) = content_type else {
        return Some((template, BodyFormat::Json));
    };
    let essence = text
        .expose()
        .split(';')
        .next()
        .unwrap_or("")
        .trim()
        .to_ascii_lowercase();
    if is_json(&essence) {
        return Some((template, BodyFormat::Json));
    }
    if essence == FORM && body.0.is_object() {
        return Some((template, BodyFormat::Form));
    }
    let (message, help) = match essence == FORM {
        true => (
            "a form's body is a table of names and values",
            "Write body = { name = \"{name}\" }".to_owned(),
        ),
        false => (
            "a body is sent as JSON or as a form, and this is neither",
            format!("Leave it out for JSON, or write \"{FORM}\""),
        ),
    };
    faults.push(fault(&format!("/headers/{}", escaped(name)), message, help));
    None
}

fn places(
    settings: &HttpSettings,
    url: &UrlTemplate,
    headers: &[(HeaderName, Template)],
    body: Option<&(JsonTemplate, BodyFormat)>,
) -> Vec<Place> {
    let mut places = Vec::new();
    let mut add = |at: String, name: &str, in_path: bool| {
        places.push(Place {
            at,
            name: name.to_owned(),
            in_path,
        });
    };
    for name in url.path_names() {
        add("/url".to_owned(), name, true);
    }
    for name in url.query_names() {
        let in_query = settings.query.iter().find(|(_, text)| {
            Template::parse(text.expose()).is_ok_and(|template| template.names().contains(&name))
        });
        let at = match in_query {
            Some((key, _)) => format!("/query/{}", escaped(key)),
            None => "/url".to_owned(),
        };
        add(at, name, false);
    }
    for (header, template) in headers {
        let key = settings
            .headers
            .keys()
            .find(|key| key.eq_ignore_ascii_case(header.as_str()));
        let key = key.map_or(header.as_str(), String::as_str);
        for name in template.names() {
            add(format!("/headers/{}", escaped(key)), name, false);
        }
    }
    for (at, name) in body.iter().flat_map(|(template, _)| template.places()) {
        add(format!("/body{at}"), name, false);
    }
    places
}

fn fault(at: &str, message: &str, help: String) -> Fault {
    Fault {
        at: at.to_owned(),
        message: message.to_owned(),
        help: Some(help),
    }
}

fn place_fault(at: String, why: String) -> Fault {
    Fault {
        at,
        message: why,
        help: None,
    }
}
