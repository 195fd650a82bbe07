//! One operation of a document, ready to be called: where its arguments go.

use serde_json::Value;
use url::Url;

use super::bytes::Content;
use super::style::Writing;

/// One operation that became a tool.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The tool it became.
    pub tool_name: String,
    /// `GET`, `POST` …
    pub method: String,
    /// As the document writes it: `/pets/{petId}`.
    pub path: String,
    /// What the document calls it.
    pub operation_id: Option<String>,
    pub server: Url,
    pub pieces: Vec<Piece>,
    pub inputs: Vec<Input>,
    pub body: Option<Body>,
}

/// One operation that did not become a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// `POST /pets`.
    pub operation: String,
    /// Why, and what would help.
    pub reason: String,
}

/// A part of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Literal(String),
    /// The wire name of a path parameter.
    Place(String),
}

/// Where a parameter goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Location {
    Path,
    Query,
    Header,
    Cookie,
}

/// One parameter: the argument it is taken from, and how it is written.
#[derive(Debug, Clone)]
pub struct Input {
    pub argument: String,
    pub wire: String,
    pub location: Location,
    pub writing: Writing,
    /// Sent where a required parameter is not given.
    pub default: Option<Value>,
}

/// The request's body.
#[derive(Debug, Clone)]
pub struct Body {
    pub media: Media,
    pub content_type: String,
    /// As the document has it: it may be a range.
    pub written_type: String,
    pub required: bool,
    pub source: BodySource,
    /// How single fields of a form are written, where the document says so.
    pub fields: Vec<(String, Field)>,
    /// How all others are written.
    pub other_fields: Field,
    /// What a body that is one argument's text is sent as.
    pub content: Content,
}

/// How the body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    Json,
    Form,
    Multipart,
    /// The argument's text as it is.
    Raw,
}

/// Which arguments the body is made of.
#[derive(Debug, Clone)]
pub enum BodySource {
    /// One argument is the body.
    Under(String),
    /// Its fields stand beside the parameters: (argument, wire name).
    Beside(Vec<(String, String)>),
}

/// One field of a form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Field {
    pub writing: Option<Writing>,
    /// Those that the document allows, the first one first.
    pub content_types: Vec<String>,
    /// Sent as a file: services look for the file name.
    pub is_file: bool,
    /// The name that the document gives the file.
    pub file_name: Option<String>,
    pub content: Content,
}

impl Operation {
    /// `POST /pets`: how configurations and lists name it.
    pub fn way(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Whether calling it twice does no more than calling it once, by the rules of HTTP (SPEC D7).
    pub fn is_safe_to_repeat(&self) -> bool {
        matches!(
            self.method.as_str(),
            "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS"
        )
    }

    /// Arguments whose name for models is not the one that the API has: (its own name, the argument). What could mean
    /// another argument is not among them.
    pub fn own_names(&self) -> Vec<(String, String)> {
        let inputs = self.inputs.iter();
        let mut names: Vec<(&String, &String)> =
            inputs.map(|input| (&input.wire, &input.argument)).collect();
        if let Some(Body {
            source: BodySource::Beside(fields),
            ..
        }) = &self.body
        {
            names.extend(fields.iter().map(|(argument, wire)| (wire, argument)));
        }
        let is_clear = |wire: &String| {
            let meanings = names.iter().filter(|(other, _)| *other == wire).count();
            meanings == 1 && !names.iter().any(|(_, argument)| *argument == wire)
        };
        names
            .iter()
            .filter(|(wire, _)| is_clear(wire))
            .map(|(wire, argument)| ((*wire).clone(), (*argument).clone()))
            .collect()
    }

    /// Whether a pattern of the configuration means it; see [`super::pick::matches`].
    pub fn is_meant_by(&self, pattern: &str) -> bool {
        super::pick::matches(
            pattern,
            &self.method,
            &self.path,
            self.operation_id.as_deref(),
            &self.tool_name,
        )
    }
}

/// `/repos/{owner}/{repo}` in pieces.
pub(super) fn pieces(path: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = path;
    while let Some(start) = rest.find('{')
        && let Some(length) = rest[start..].find('}')
    {
        if start > 0 {
            pieces.push(Piece::Literal(rest[..start].to_owned()));
        }
        pieces.push(Piece::Place(rest[start + 1..start + length].to_owned()));
        rest = &rest[start + length + 1..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest.to_owned()));
    }
    pieces
}
