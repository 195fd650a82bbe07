//! Calls that a model wrote as text: found only on request, and only where tool and arguments are right.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use steadyhand::{Arguments, Call, CompiledSchema, RepeatedName, SchemaBudget};

use crate::problem::{Code, Fix};
use crate::providers::Provider;
use crate::providers::ids;
use crate::providers::wire::text;

/// The longest text that is searched.
const TEXT_BYTES_MAX: usize = 256 * 1024;
/// How many calls one text can have.
const CALLS_MAX: usize = 32;
/// How many pieces of it are looked at.
const PIECES_MAX: usize = 1_000;
/// How many of what may be calls are checked.
const CHECKS_MAX: usize = 100;
/// What compiling the schemas of their tools may take together, of the processor's time, beyond what is usual.
const COMPILE_TIME_MAX: Duration = Duration::from_millis(50);

/// The calls in a text, and what is left of it: bare JSON, fenced JSON, or `<tool_call>` (SPEC D15).
///
/// A call is only what names one of these tools (LangChain-shaped definitions) with arguments that its
/// schema takes. Everything else stays text.
pub fn recover_calls(said: &str, tools: &[Value]) -> (Vec<Call>, String) {
    if said.len() > TEXT_BYTES_MAX || !said.contains('{') {
        return (Vec::new(), said.to_owned());
    }
    let mut calls = Vec::new();
    let mut rest = String::new();
    let mut checker = Checker {
        tools,
        compiled: HashMap::new(),
        checks_left: CHECKS_MAX,
        budget: SchemaBudget::of(COMPILE_TIME_MAX),
    };
    let mut pieces = Pieces::of(said);
    let mut done = 0;
    for _ in 0..PIECES_MAX {
        let Some(piece) = pieces.next(done).filter(|_| calls.len() < CALLS_MAX) else {
            break;
        };
        rest.push_str(&said[done..piece.start]);
        match read(piece.json, &mut checker) {
            Some(found) => calls.extend(found),
            None => rest.push_str(&said[piece.start..piece.end]),
        }
        done = piece.end;
    }
    rest.push_str(&said[done..]);
    if calls.is_empty() {
        return (calls, said.to_owned());
    }
    for (index, call) in calls.iter_mut().enumerate() {
        call.id = format!("call_{}", ids::digest(&format!("{index} {said}"), 24));
    }
    (calls, rest.trim().to_owned())
}

/// Puts calls that a model wrote as text where its provider has calls. For chat completions and Ollama.
///
/// A message that has calls, or none in its text, comes back as it was.
pub fn recover(provider: Provider, mut message: Value, tools: &[Value]) -> (Value, Vec<Fix>) {
    let has_calls = message["tool_calls"]
        .as_array()
        .is_some_and(|calls| !calls.is_empty());
    let Some(said) = text(&message, "content").filter(|_| !has_calls) else {
        return (message, Vec::new());
    };
    let (calls, rest) = recover_calls(said, tools);
    if calls.is_empty() {
        return (message, Vec::new());
    }
    let fix = |(index, call): (usize, &Call)| Fix {
        at: format!("/tool_calls/{index}"),
        code: Code::BadContent,
        message: format!(
            "the model wrote a call of {} as text; it is a call now",
            call.name
        ),
    };
    let fixes = calls.iter().enumerate().map(fix).collect();
    let native: Option<Vec<Value>> = calls.iter().map(|call| as_native(provider, call)).collect();
    let Some(native) = native else {
        return (message, Vec::new());
    };
    message["content"] = json!(rest);
    message["tool_calls"] = Value::Array(native);
    (message, fixes)
}

fn as_native(provider: Provider, call: &Call) -> Option<Value> {
    let Arguments::Json(args) = &call.args else {
        return None;
    };
    let id = ids::legal(provider, &call.id);
    provider.rules().native_call(&id, &call.name, args)
}

/// A piece of text that may be a call: the JSON in it, and from where to where its marks are.
struct Piece<'a> {
    json: &'a str,
    start: usize,
    end: usize,
}

/// Finds the pieces of a text one after the other, and looks at each letter only so often.
struct Pieces<'a> {
    said: &'a str,
    tag: Mark<'a>,
    tag_end: Mark<'a>,
    fence: Mark<'a>,
}

impl<'a> Pieces<'a> {
    fn of(said: &'a str) -> Pieces<'a> {
        Pieces {
            said,
            tag: Mark::new("<tool_call>"),
            tag_end: Mark::new("</tool_call>"),
            fence: Mark::new("```"),
        }
    }

    /// The first piece from this place on.
    fn next(&mut self, from: usize) -> Option<Piece<'a>> {
        let tag = self.tag.next(self.said, from);
        let fence = self.fence.next(self.said, from);
        match (tag, fence) {
            (None, None) => self.bare(from),
            (Some(tag), fence) if fence.is_none_or(|fence| tag < fence) => {
                let inside = tag + self.tag.mark.len();
                let end = self.tag_end.next(self.said, inside);
                Some(self.piece(tag, inside, end, self.tag_end.mark))
            }
            (_, Some(fence)) => {
                let inside = fence + self.fence.mark.len();
                let end = self.fence.next(self.said, inside);
                let mut piece = self.piece(fence, inside, end, self.fence.mark);
                // The language of the fence.
                let is_language = |letter: char| letter.is_ascii_alphanumeric();
                piece.json = piece.json.trim_start_matches(is_language);
                Some(piece)
            }
            (Some(_), None) => None,
        }
    }

    /// A model that runs out of words leaves the mark open.
    fn piece(&self, start: usize, inside: usize, end: Option<usize>, mark: &str) -> Piece<'a> {
        let json_end = end.unwrap_or(self.said.len());
        Piece {
            json: &self.said[inside..json_end],
            start,
            end: end.map_or(json_end, |end| end + mark.len()),
        }
    }

    /// Bare JSON counts only if it is all there is.
    fn bare(&self, from: usize) -> Option<Piece<'a>> {
        let json = self.said[from..].trim();
        let is_bare = json.starts_with(['{', '[']) && json.ends_with(['}', ']']);
        is_bare.then_some(Piece {
            json,
            start: from,
            end: self.said.len(),
        })
    }
}

/// A mark, and where it was found last.
struct Mark<'a> {
    mark: &'a str,
    found: Option<usize>,
    searched: bool,
}

impl<'a> Mark<'a> {
    fn new(mark: &'a str) -> Mark<'a> {
        Mark {
            mark,
            found: None,
            searched: false,
        }
    }

    fn next(&mut self, said: &str, from: usize) -> Option<usize> {
        let is_known = self.searched && self.found.is_none_or(|found| found >= from);
        if !is_known {
            self.found = said[from..].find(self.mark).map(|found| from + found);
            self.searched = true;
        }
        self.found
    }
}

/// All the calls of one piece, or none: half of what was meant must not run.
fn read(json: &str, checker: &mut Checker<'_>) -> Option<Vec<Call>> {
    if RepeatedName::first_in(json).is_some() {
        return None;
    }
    let values: Vec<Value> = serde_json::Deserializer::from_str(json.trim())
        .into_iter()
        .collect::<Result<_, _>>()
        .ok()?;
    let calls = values.into_iter().flat_map(|value| match value {
        Value::Array(items) => items,
        other => vec![other],
    });
    let values: Vec<Value> = calls.take(CALLS_MAX + 1).collect();
    if values.is_empty() || values.len() > CALLS_MAX {
        return None;
    }
    let calls = values.into_iter().map(|value| one(value, checker));
    calls.collect()
}

/// Checks arguments, each tool's schema compiled once.
struct Checker<'a> {
    tools: &'a [Value],
    compiled: HashMap<usize, Option<CompiledSchema<'a>>>,
    checks_left: usize,
    budget: SchemaBudget,
}

impl<'a> Checker<'a> {
    fn find(&self, name: &str) -> Option<&'a Value> {
        let is_it =
            |tool: &&Value| text(tool, "name") == Some(name) || text(tool, "lc_name") == Some(name);
        self.tools.iter().find(is_it)
    }

    fn takes(&mut self, schema: &'a Value, args: &Value) -> bool {
        let Some(left) = self.checks_left.checked_sub(1) else {
            return false;
        };
        self.checks_left = left;
        let compiled = self
            .compiled
            .entry(std::ptr::from_ref(schema) as usize)
            .or_insert_with(|| self.budget.compile(schema).ok());
        compiled
            .as_ref()
            .is_some_and(|compiled| compiled.takes(args, TEXT_BYTES_MAX))
    }
}

fn one(value: Value, checker: &mut Checker<'_>) -> Option<Call> {
    let Value::Object(mut fields) = value else {
        return None;
    };
    // `{"function": {…}}` and `{"type": "function", …}` are what some models make of it.
    if let Some(Value::Object(inner)) = fields.get_mut("function") {
        fields = std::mem::take(inner);
    }
    let name = fields
        .get("name")
        .or_else(|| fields.get("function"))
        .and_then(Value::as_str)?
        .to_owned();
    let tool = checker.find(&name)?;
    let args = arguments(&mut fields)?;
    let schema = tool.get("schema").or_else(|| tool.get("parameters"))?;
    // The tool gets what the model wrote (SPEC V20).
    checker
        .takes(schema, &args)
        .then(|| Call::with_id("", name, args))
}

fn arguments(fields: &mut Map<String, Value>) -> Option<Value> {
    let found = ["arguments", "parameters", "args", "input"]
        .iter()
        .find_map(|key| fields.get_mut(*key).map(Value::take))?;
    match found {
        Value::Object(_) => Some(found),
        Value::String(text) if RepeatedName::first_in(&text).is_none() => {
            serde_json::from_str(&text).ok().filter(Value::is_object)
        }
        _ => None,
    }
}
