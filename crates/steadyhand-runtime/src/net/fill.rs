//! Puts arguments into the parts of a request, each encoded for where it stands. What a value is can
//! never change where the request goes or how many parts it has.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use reqwest::Url;
use reqwest::header::HeaderValue;
use serde_json::Value;
use steadyhand::{Category, Problem, ToolError};

use steadyhand_config::document::escaped;
use steadyhand_config::template::{Template, Values};

/// All but the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// A URL with places in its path and in the values of its query, and nowhere else.
#[derive(Debug, Clone)]
pub struct UrlTemplate {
    /// Scheme, host and port: never an argument's business.
    base: Url,
    /// The path, cut at its slashes, the first one left out.
    segments: Vec<Template>,
    query: Vec<Pair>,
}

#[derive(Debug, Clone)]
struct Pair {
    /// As it goes into the URL.
    name: String,
    /// `None` for a name without `=`.
    value: Option<Template>,
}

impl UrlTemplate {
    /// Reads a URL. The error says what is wrong with it, without repeating it: it may hold a secret.
    pub fn parse(text: &str) -> Result<UrlTemplate, String> {
        let text = text.trim();
        let after_scheme = text
            .find("://")
            .filter(|&at| matches!(text[..at].to_ascii_lowercase().as_str(), "http" | "https"))
            .ok_or("it must start with http:// or https://")?
            + "://".len();
        let authority_end = text[after_scheme..]
            .find(['/', '?', '#', '\\'])
            .map_or(text.len(), |at| after_scheme + at);
        let (base, rest) = text.split_at(authority_end);
        if base.contains(['{', '}']) {
            return Err("scheme, user, host and port cannot be filled by an argument".to_owned());
        }
        let base = Url::parse(base).map_err(|error| {
            format!("it is no URL: {}", steadyhand::plain_words::address(&error))
        })?;

        let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        if !Template::parse(fragment)?.names().is_empty() {
            return Err(
                "what stands after # is never sent, so it cannot be an argument".to_owned(),
            );
        }
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        // URLs read a backslash as a slash and skip line breaks and tabs: then our cuts were not theirs.
        if path.contains('\\') || text.contains(|c: char| c.is_control()) {
            return Err("it holds a backslash, a line break or a tab; write / or %5C".to_owned());
        }
        let path = path.strip_prefix('/').unwrap_or(path);
        let segments: Vec<Template> = path
            .split('/')
            .map(Template::parse)
            .collect::<Result<_, _>>()?;
        let mut url = UrlTemplate {
            base,
            segments,
            query: Vec::new(),
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = match pair.split_once('=') {
                Some((name, value)) => (name, Some(Template::parse(value)?)),
                None => (pair, None),
            };
            let name = Template::parse(name)?
                .fill(&Values::new(&Value::Null, &Value::Null), |value| {
                    Ok::<_, String>(value.to_owned())
                })?
                .ok_or("an argument can be the value of a query parameter, not its name")?;
            url.query.push(Pair { name, value });
        }
        Ok(url)
    }

    /// The same URL with one more pair in its query.
    pub fn and_query(&mut self, name: &str, value: Template) {
        self.query.push(Pair {
            name: encode(name),
            value: Some(value),
        });
    }

    /// Scheme, host and port, as they stand in the configuration.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// The arguments in the path: without one of them there is no URL.
    pub fn path_names(&self) -> Vec<&str> {
        names(self.segments.iter())
    }

    /// The arguments in the query.
    pub fn query_names(&self) -> Vec<&str> {
        names(self.query.iter().filter_map(|pair| pair.value.as_ref()))
    }

    /// The URL for these arguments. A list in the query becomes one pair for each of its items.
    pub fn fill(&self, values: &Values<'_>) -> Result<Url, ToolError> {
        let mut path = String::new();
        for segment in &self.segments {
            path.push('/');
            path.push_str(&fill_segment(segment, values)?);
        }
        let mut pairs = Vec::new();
        for pair in &self.query {
            match &pair.value {
                None => pairs.push(pair.name.clone()),
                Some(value) => pairs.extend(
                    fill_query(value, values)
                        .into_iter()
                        .map(|value| format!("{}={value}", pair.name)),
                ),
            }
        }
        let mut url = self.base.clone();
        url.set_path(&path);
        url.set_query(
            match pairs.is_empty() {
                true => None,
                false => Some(pairs.join("&")),
            }
            .as_deref(),
        );
        Ok(url)
    }
}

/// One segment: its value can neither add a segment nor take one away.
fn fill_segment(segment: &Template, values: &Values<'_>) -> Result<String, ToolError> {
    for name in segment.names() {
        let Some(text) = values.text(name) else {
            return Err(wrong_argument(name, "path", "is needed for the URL"));
        };
        // Encoded or not, many servers decode a path before they walk it.
        if text
            .split(['/', '\\'])
            .any(|part| matches!(part, "." | ".."))
        {
            return Err(wrong_argument(
                name,
                "path",
                "must not hold the path steps \".\" or \"..\"",
            ));
        }
    }
    let filled = segment.fill_with(values, encode).unwrap_or_default();
    let places = segment.names();
    let Some(name) = places.first() else {
        return Ok(filled);
    };
    match percent_decode_str(&filled).decode_utf8_lossy().as_ref() {
        "" => Err(wrong_argument(
            name,
            "path",
            "must not be empty: it is a part of the URL's path",
        )),
        "." | ".." => Err(wrong_argument(
            name,
            "path",
            "must not make the path step \".\" or \"..\"",
        )),
        _ => Ok(filled),
    }
}

fn fill_query(value: &Template, values: &Values<'_>) -> Vec<String> {
    let list = value
        .only_place()
        .and_then(|name| values.get(name)?.as_array());
    match list {
        Some(items) => items.iter().map(|item| encode(&as_text(item))).collect(),
        None => value.fill_with(values, encode).into_iter().collect(),
    }
}

/// The value of a header; `None` when an argument of it is absent.
pub fn header(template: &Template, values: &Values<'_>) -> Result<Option<HeaderValue>, ToolError> {
    for name in template.names() {
        let fits = |text: String| text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
        if !values.text(name).is_none_or(fits) {
            return Err(wrong_argument(
                name,
                "header",
                "may hold only printable ASCII characters: it is sent in a header",
            ));
        }
    }
    let Some(text) = template.fill_with(values, str::to_owned) else {
        return Ok(None);
    };
    let mut value = HeaderValue::from_str(text.trim_matches([' ', '\t'])).map_err(|_| {
        ToolError::answer("a header of the configuration holds a line break").never_started()
    })?;
    // Any header may be a key: it is kept out of debug output and of compression tables.
    value.set_sensitive(true);
    Ok(Some(value))
}

/// An object as the body of a form; lists become one pair for each item.
pub fn form(value: &Value) -> String {
    let mut pairs = url::form_urlencoded::Serializer::new(String::new());
    for (name, field) in value.as_object().into_iter().flatten() {
        match field {
            Value::Array(items) => {
                for item in items {
                    pairs.append_pair(name, &as_text(item));
                }
            }
            other => {
                pairs.append_pair(name, &as_text(other));
            }
        }
    }
    pairs.finish()
}

/// An argument that cannot stand where it is needed.
pub fn wrong_argument(name: &str, code: &str, why: &str) -> ToolError {
    let message = format!("'{name}' {why}");
    ToolError::of(
        Category::Validation,
        format!("Invalid parameters: {message}"),
    )
    .problems(vec![Problem {
        at: format!("/{}", escaped(name)),
        code: code.to_owned(),
        message,
        expected: None,
        got: None,
        example: None,
    }])
    .never_started()
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

fn names<'a>(templates: impl Iterator<Item = &'a Template>) -> Vec<&'a str> {
    let mut names = Vec::new();
    for name in templates.flat_map(Template::names) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
