//! A cassette as it is read: its tools, and its calls by tool and arguments.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::line::{Call, Definition, Line};
use super::{FILE_BYTES_MAX, LINE_BYTES_MAX, VERSION, canonical};
use steadyhand_config::document::plain;
use steadyhand_config::{NotRead, Trust};

/// Lines that are named when they cannot be read; the others are counted.
const NAMED_MAX: usize = 5;

/// A cassette, ready to answer.
#[derive(Debug)]
pub struct Tape {
    path: PathBuf,
    /// As it was typed.
    name: String,
    definitions: Vec<Definition>,
    calls: HashMap<String, HashMap<String, Recorded>>,
    count: usize,
    /// What whoever uses it should know: lines that are not whole, calls that were left out.
    remarks: Vec<String>,
    answered: AtomicU64,
    unknown: AtomicU64,
}

/// The same call, as often as it was made.
#[derive(Debug, Default)]
struct Recorded {
    calls: Vec<Call>,
    told: AtomicUsize,
}

impl Tape {
    /// Reads all of it. The error says what is wrong with the file.
    pub fn read(path: &Path, trust: &Trust) -> Result<Tape, String> {
        let file = trust.open(path, FILE_BYTES_MAX).map_err(|why| match why {
            NotRead::Unreadable(error) => plain(&error),
            NotRead::TooLarge => format!("it is larger than {FILE_BYTES_MAX} bytes"),
            why => why.to_string(),
        })?;
        let mut tape = Tape {
            path: path.to_owned(),
            name: path.display().to_string(),
            definitions: Vec::new(),
            calls: HashMap::new(),
            count: 0,
            remarks: Vec::new(),
            answered: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
        };
        tape.take_in(BufReader::new(file))?;
        Ok(tape)
    }

    fn take_in(&mut self, mut lines: impl BufRead) -> Result<(), String> {
        let (mut unread, mut number) = (Vec::new(), 0);
        loop {
            let mut line = Vec::new();
            let limit = LINE_BYTES_MAX as u64 + 2;
            let read = lines.by_ref().take(limit).read_until(b'\n', &mut line);
            if read.map_err(|error| plain(&error))? == 0 {
                break;
            }
            number += 1;
            if line.trim_ascii().is_empty() {
                continue;
            }
            match (number, serde_json::from_slice::<Line>(&line)) {
                (1, Ok(Line::Cassette(head))) if head.version == VERSION => {}
                (1, Ok(Line::Cassette(head))) => {
                    return Err(format!(
                        "it is a cassette of version {}, made by {}; this program reads version {VERSION}",
                        head.version, head.program
                    ));
                }
                (1, _) => {
                    return Err("it is no cassette: its first line does not say so".to_owned());
                }
                (_, Ok(line)) => self.add(line),
                (_, Err(error)) => {
                    let fault = steadyhand::plain_words::json_fault(&error);
                    unread.push(format!("line {number} ({fault})"));
                }
            }
        }
        if number == 0 {
            return Err("it is empty".to_owned());
        }
        if !unread.is_empty() {
            // A killed recorder leaves half a line behind.
            let named: Vec<&str> = unread.iter().take(NAMED_MAX).map(String::as_str).collect();
            let (count, named) = (unread.len(), named.join(", "));
            self.remarks
                .push(format!("{count} of its lines cannot be read: {named}"));
        }
        Ok(())
    }

    fn add(&mut self, line: Line) {
        match line {
            Line::Cassette(_) => {}
            Line::Tool(tool) => match self.definitions.iter_mut().find(|it| it.name == tool.name) {
                Some(before) => *before = *tool,
                None => self.definitions.push(*tool),
            },
            Line::Call(call) => {
                let of_tool = self.calls.entry(call.tool.clone()).or_default();
                let same = of_tool.entry(canonical::of(&call.arguments)).or_default();
                same.calls.push(*call);
                self.count += 1;
            }
            Line::Missing(missing) => self.remarks.push(format!(
                "{} calls were made and are not in it: {}",
                missing.calls, missing.reason
            )),
        }
    }

    /// The next recorded call of this tool with these arguments: in the order they were made, the last one again and
    /// again.
    pub(super) fn next(&self, tool: &str, arguments: &Value) -> Option<&Call> {
        let found = self
            .calls
            .get(tool)
            .and_then(|calls| calls.get(&canonical::of(arguments)));
        let Some(recorded) = found else {
            self.unknown.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        self.answered.fetch_add(1, Ordering::Relaxed);
        let told = recorded.told.fetch_add(1, Ordering::Relaxed);
        recorded.calls.get(told).or(recorded.calls.last())
    }

    /// The arguments that were recorded for a tool, each once, in the order of the text.
    pub(super) fn arguments_of(&self, tool: &str) -> Vec<&str> {
        let calls = self.calls.get(tool).into_iter().flatten();
        let mut arguments: Vec<&str> = calls.map(|(arguments, _)| arguments.as_str()).collect();
        arguments.sort_unstable();
        arguments
    }

    pub(super) fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// A tool as its MCP server wrote it.
    pub fn mcp_definition(&self, tool: &str) -> Option<Box<RawValue>> {
        let mut tools = self.definitions.iter();
        let definition = tools.find(|it| it.name == tool)?.mcp.as_ref()?;
        to_raw_value(definition).ok()
    }

    pub(super) fn into_definitions(self) -> HashMap<String, Definition> {
        let named = |tool: Definition| (tool.name.clone(), tool);
        self.definitions.into_iter().map(named).collect()
    }

    /// The same, called so in messages.
    #[must_use]
    pub fn called(mut self, name: &Path) -> Tape {
        self.name = name.display().to_string();
        self
    }

    /// What it is called in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many tools and calls it holds.
    pub fn size(&self) -> (usize, usize) {
        (self.definitions.len(), self.count)
    }

    /// What whoever uses it should know.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Calls that were answered from it, and calls that are not in it.
    pub fn used(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.answered), count(&self.unknown))
    }
}
