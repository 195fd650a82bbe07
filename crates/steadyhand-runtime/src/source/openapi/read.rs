//! From a document to tools: every operation becomes one, or is listed with the reason why not.
//!
//! Arguments of a tool:
//! - each parameter is one argument under its own name; where a name is used in two places, path comes
//!   before query, header and cookie, and the later ones are called `query_id`, `header_id`, `cookie_id`;
//! - if the body is one plain object (properties, `required`, `allOf` of such, nothing else), and none of
//!   its fields has the name of a parameter, its fields stand beside the parameters; in every other case
//!   the whole body is the argument `body` (`request_body` where a parameter is called `body`);
//! - names that model providers refuse (`filter[name]`, `StartTime<`) are spelled otherwise;
//! - what the configuration sends with every request (`auth`, `headers`) is no argument.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};
use steadyhand::near_names::{COMPARED_NAMES_MAX, compared};
use url::Url;

use super::arguments::Arguments;
use super::body;
use super::document::{At, Document};
use super::name::{self, Nameless};
use super::operation::{Location, Operation, Piece, Skipped, pieces};
use super::parameter::Parameter;
use super::pick;
use super::schema::Converter;
use super::server::Servers;

const METHODS: [&str; 9] = [
    "get", "put", "post", "delete", "options", "head", "patch", "trace", "query",
];
const DESCRIPTION_CHARS_MAX: usize = 1_000;
const NOTES_MAX: usize = 200;
/// The longest name of an operation, and the longest reason, that is told.
const OPERATION_BYTES_MAX: usize = 300;
const REASON_BYTES_MAX: usize = 1_000;
/// What the configuration says about the operations of a document.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Only operations that one of these means; empty means all.
    pub include: Vec<String>,
    /// No operation that one of these means.
    pub exclude: Vec<String>,
    /// Stands before every tool's name.
    pub prefix: String,
    /// Where the service is, whatever the document says.
    pub base: Option<Url>,
    /// Headers that are sent with every request, in lower case.
    pub sent_headers: Vec<String>,
    /// The query parameter that is sent with every request.
    pub sent_query: Option<String>,
}

/// What became of a document.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// The tools, in the document's order.
    pub tools: Vec<Prepared>,
    /// Operations that cannot be tools, with the reason.
    pub skipped: Vec<Skipped>,
    /// How many operations `include` and `exclude` leave out.
    pub left_out: usize,
    /// What is not quite as the document says.
    pub notes: Vec<String>,
}

/// One tool before it can be called.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Where its arguments go.
    pub operation: Arc<Operation>,
    /// What models are told.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: Value,
}

impl Reading {
    /// How many operations the document has.
    pub fn operations(&self) -> usize {
        self.tools.len() + self.skipped.len() + self.left_out
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX {
            self.notes
                .push(steadyhand::cut::text(&note, REASON_BYTES_MAX));
        }
    }

    /// A document may have names of any length: nobody reads a page of one.
    fn skip(&mut self, operation: &str, reason: &str) {
        self.skipped.push(Skipped {
            operation: steadyhand::cut::text(operation, OPERATION_BYTES_MAX),
            reason: steadyhand::cut::text(reason, REASON_BYTES_MAX),
        });
    }
}

/// Reads all operations. `told` hears how many of how many are done.
pub fn read(document: &Document, choice: &Choice, told: &mut dyn FnMut(u64, u64)) -> Reading {
    let mut reading = Reading::default();
    let found = find(document, &mut reading);
    let nameless: Vec<Nameless<'_>> = found.iter().map(Found::nameless).collect();
    let names = name::tool_names(&choice.prefix, &nameless);
    let servers = Servers::new(document, choice);
    let mut converter = Converter::new(document);
    let mut pending: Vec<(Operation, String, Map<String, Value>)> = Vec::new();
    let mut meant: HashSet<&str> = HashSet::new();
    for (operation, tool_name) in found.iter().zip(&names) {
        if !operation.is_chosen(choice, tool_name, &mut meant) {
            reading.left_out += 1;
            continue;
        }
        match operation.prepare(document, &mut converter, &servers, choice, tool_name) {
            Ok(prepared) => pending.push(prepared),
            Err(reason) => reading.skip(&operation.way(), &reason),
        }
    }
    let (definitions, notes) = converter.finish();
    for note in notes {
        reading.note(note);
    }
    let total = pending.len() as u64;
    for (done, (operation, description, root)) in pending.into_iter().enumerate() {
        let (schema, note) = definitions.put_into(root);
        if let Some(note) = note {
            reading.note(format!("{}: {note}", operation.tool_name));
        }
        reading.tools.push(Prepared {
            operation: Arc::new(operation),
            description,
            schema,
        });
        told(done as u64 + 1, total);
    }
    for pattern in choice.include.iter().chain(&choice.exclude) {
        if !meant.contains(pattern.as_str()) {
            let note = nothing_meant(pattern, &found, &names);
            reading.note(note);
        }
    }
    reading
}

/// An operation as it stands in the document.
struct Found<'d> {
    method: String,
    path: String,
    item: At<'d>,
    value: At<'d>,
}

/// All operations below `paths`, in order.
fn find<'d>(document: &'d Document, reading: &mut Reading) -> Vec<Found<'d>> {
    let mut found = Vec::new();
    let root = document.root();
    let paths = root.get("paths").and_then(|paths| paths.value.as_object());
    for (path, item) in paths.into_iter().flatten() {
        if path.starts_with("x-") {
            continue;
        }
        let path = match path.starts_with('/') {
            true => path.clone(),
            false => format!("/{path}"),
        };
        let item = match document.resolve(root.with(item)) {
            Ok(item) => item,
            Err(fault) => {
                let reason = format!("its path is described elsewhere, and {fault}");
                reading.skip(&format!("* {path}"), &reason);
                continue;
            }
        };
        for (key, value) in item.value.as_object().into_iter().flatten() {
            if METHODS.contains(&key.as_str()) {
                found.push(Found {
                    method: key.to_ascii_uppercase(),
                    path: path.clone(),
                    item,
                    value: item.with(value),
                });
            }
        }
    }
    let hooks = root
        .get("webhooks")
        .and_then(|hooks| hooks.value.as_object());
    if let Some(count) = hooks.map(Map::len).filter(|count| *count > 0) {
        reading.note(format!(
            "{count} webhooks are requests that the service makes; they are no tools"
        ));
    }
    found
}

impl<'d> Found<'d> {
    fn way(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    fn id(&self) -> Option<&'d str> {
        self.value
            .text("operationId")
            .filter(|id| !id.trim().is_empty())
    }

    fn nameless(&self) -> Nameless<'_> {
        Nameless {
            method: &self.method,
            path: &self.path,
            id: self.id(),
        }
    }

    fn is_chosen<'c>(
        &self,
        choice: &'c Choice,
        tool_name: &str,
        meant: &mut HashSet<&'c str>,
    ) -> bool {
        let mut is_meant = |patterns: &'c [String]| {
            let mut any = false;
            for pattern in patterns {
                if pick::matches(pattern, &self.method, &self.path, self.id(), tool_name) {
                    meant.insert(pattern);
                    any = true;
                }
            }
            any
        };
        let included = is_meant(&choice.include) || choice.include.is_empty();
        let excluded = is_meant(&choice.exclude);
        included && !excluded
    }

    fn prepare(
        &self,
        document: &'d Document,
        converter: &mut Converter<'d>,
        servers: &Servers<'d>,
        choice: &Choice,
        tool_name: &str,
    ) -> Result<(Operation, String, Map<String, Value>), String> {
        if !self.value.value.is_object() {
            return Err("it is no object in the document".to_owned());
        }
        if matches!(self.method.as_str(), "TRACE" | "QUERY") {
            return Err(format!("{} requests are not sent", self.method));
        }
        let server = servers.of(self.value, self.item)?;
        let pieces = pieces(&self.path);
        let mut arguments = Arguments::default();
        let mut inputs = Vec::new();
        for parameter in self.parameters(document, &pieces)? {
            if parameter.is_sent_anyway(choice) {
                continue;
            }
            inputs.push(parameter.input(converter, &mut arguments)?);
        }
        let body = match self.value.get("requestBody") {
            Some(body) => {
                let body = document
                    .resolve(body)
                    .map_err(|fault| format!("its body: {fault}"))?;
                body::read(document, body, converter, &mut arguments)?
            }
            None => None,
        };
        let operation = Operation {
            tool_name: tool_name.to_owned(),
            method: self.method.clone(),
            path: self.path.clone(),
            operation_id: self.id().map(str::to_owned),
            server,
            pieces,
            inputs,
            body,
        };
        Ok((operation, self.description(), arguments.into_schema()))
    }

    /// Its own parameters, those of its path where it does not replace them, and places of the path
    /// that nobody describes; by location, then in the document's order.
    fn parameters(
        &self,
        document: &'d Document,
        pieces: &[Piece],
    ) -> Result<Vec<Parameter<'d>>, String> {
        let mut parameters: Vec<Parameter<'d>> = Vec::new();
        for owner in [self.value, self.item] {
            let list = owner
                .get("parameters")
                .and_then(|list| list.value.as_array());
            for entry in list.into_iter().flatten() {
                let at = document
                    .resolve(owner.with(entry))
                    .map_err(|fault| format!("a parameter: {fault}"))?;
                let parameter = Parameter::read(at)?;
                let same = |other: &Parameter<'_>| {
                    other.name == parameter.name && other.location == parameter.location
                };
                if parameters.iter().any(same) {
                    continue;
                }
                parameters.push(parameter);
            }
        }
        let is_place = |name: &str| {
            pieces
                .iter()
                .any(|piece| matches!(piece, Piece::Place(place) if place == name))
        };
        parameters.retain(|it| it.location != Location::Path || is_place(&it.name));
        for piece in pieces {
            if let Piece::Place(name) = piece
                && !parameters
                    .iter()
                    .any(|it| it.location == Location::Path && it.name == *name)
            {
                parameters.push(Parameter {
                    name: name.clone(),
                    location: Location::Path,
                    at: None,
                });
            }
        }
        // Stable: within a location the document's order stays.
        parameters.sort_by_key(|parameter| parameter.location);
        Ok(parameters)
    }

    fn description(&self) -> String {
        let summary = self
            .value
            .text("summary")
            .map(str::trim)
            .unwrap_or_default();
        let more = self
            .value
            .text("description")
            .map(str::trim)
            .unwrap_or_default();
        let mut text = match (summary, more) {
            ("", "") => self.way(),
            ("", more) => more.to_owned(),
            (summary, "") => summary.to_owned(),
            (summary, more) if more.starts_with(summary) => more.to_owned(),
            (summary, more) => format!("{summary}\n\n{more}"),
        };
        if self.value.flag("deprecated") == Some(true) {
            text.insert_str(0, "Deprecated. ");
        }
        if text.chars().count() > DESCRIPTION_CHARS_MAX {
            text = text.chars().take(DESCRIPTION_CHARS_MAX).collect();
            text.push('…');
        }
        text
    }
}

fn nothing_meant(pattern: &str, found: &[Found<'_>], names: &[String]) -> String {
    let ways = found.iter().map(Found::way);
    let ids = found.iter().filter_map(|it| it.id().map(str::to_owned));
    let wrong = compared(pattern);
    let nearest = ways
        .chain(ids)
        .chain(names.iter().cloned())
        .take(COMPARED_NAMES_MAX)
        .map(|known| (strsim::jaro_winkler(&wrong, &compared(&known)), known))
        .filter(|(likeness, _)| *likeness >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((_, near)) => format!("\"{pattern}\" means no operation; did you mean \"{near}\"?"),
        None => format!(
            "\"{pattern}\" means no operation; write METHOD /path as in the document, an operationId or a tool's name, * for anything"
        ),
    }
}
