//! Writes a cassette: each call as it ends, each tool as it is listed. A line is with the system when the next one is
//! begun, so a killed process loses at most the calls of its last moment.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use steadyhand::redact::Secrets;
use steadyhand::{Event, FailureCode, Observer, ObserverQueue, Outcome, Tool, Watch};
use steadyhand_process::private;

use super::line::{Call, Definition, Head, Line, Missing, Said};
use super::{FILE_BYTES_MAX, LINE_BYTES_MAX, VERSION};
use crate::runtime::Runtime;
use steadyhand_config::Trust;
use steadyhand_config::document::plain;

/// Events the recorder may lag behind.
const QUEUE_MAX: usize = 65_536;
/// How long the end waits for what is still to be written.
const FINISHING_MAX: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A recording that goes on until it is finished.
pub struct Recording {
    shared: Arc<Shared>,
    watch: Watch,
    following: tokio::task::JoinHandle<()>,
}

/// What a recording holds in the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Calls that this process has written.
    pub calls: u64,
    /// Calls that are not in it although they ended, and why the last of them is not.
    pub missing: u64,
    pub reason: Option<String>,
}

struct Shared {
    runtime: Runtime,
    state: Mutex<State>,
}

struct State {
    file: File,
    bytes: u64,
    /// The last write broke off in the middle of a line.
    torn: bool,
    known: HashMap<String, Definition>,
    summary: Summary,
}

impl Recording {
    /// Records what this executor does from here on. A file that is a cassette already is continued.
    pub fn begin(path: &Path, runtime: &Runtime) -> Result<Recording, String> {
        let (state, executor) = (State::open(path, runtime.trust())?, runtime.executor());
        let shared = Arc::new(Shared {
            runtime: runtime.clone(),
            state: Mutex::new(state),
        });
        let queue = ObserverQueue {
            events_max: QUEUE_MAX,
            gather: Duration::ZERO,
        };
        let recorder = Recorder(Arc::clone(&shared));
        let watch = executor.observe_with_queue(recorder, queue);
        let watch = watch.map_err(|error| format!("there is no thread for it: {error}"))?;
        let (followed, mut changes) = (Arc::clone(&shared), executor.tools().changes());
        let following = tokio::spawn(async move {
            loop {
                followed.note_tools();
                if changes.changed().await.is_err() {
                    return;
                }
            }
        });
        Ok(Recording {
            shared,
            watch,
            following,
        })
    }

    /// Waits for what is still to be written, and says what there is.
    pub async fn finish(self) -> Summary {
        self.following.abort();
        let until = tokio::time::Instant::now() + FINISHING_MAX;
        while !self.watch.is_up_to_date() && tokio::time::Instant::now() < until {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        self.shared.note_tools();
        let mut state = self.shared.state();
        let dropped = self.watch.dropped();
        if dropped > 0 {
            state.missed(
                dropped,
                "more calls ended at once than could be written down",
            );
        }
        state.tell_missing();
        state.summary.clone()
    }
}

struct Recorder(Arc<Shared>);

impl Observer for Recorder {
    fn wants(&self, event: &Event) -> bool {
        matches!(event, Event::Finished { .. })
    }

    fn observe(&self, event: &Event) {
        let Event::Finished {
            at_ms,
            args: Some(args),
            kind: Some(_),
            secrets,
            outcome,
            ..
        } = event
        else {
            return;
        };
        if is_of_the_moment(outcome) {
            return;
        }
        let tool = self.0.runtime.manager().find(&outcome.tool_name);
        let name = tool.map_or_else(|| outcome.tool_name.clone(), |tool| tool.name().to_owned());
        let call = call_of(name, args, outcome, secrets, *at_ms);
        let mut state = self.0.state();
        match state.write(&Line::Call(Box::new(call))) {
            Ok(()) => state.summary.calls += 1,
            Err(reason) => {
                tracing::error!(tool = outcome.tool_name, reason, "a call is not recorded");
                state.missed(1, &reason);
            }
        }
    }
}

/// Whether an outcome belongs to its moment and its caller, not to the call: told again it would be a lie. What is
/// wrong with arguments is found out anew.
fn is_of_the_moment(outcome: &Outcome) -> bool {
    let Some(failure) = outcome.failure() else {
        return outcome.replayed;
    };
    match failure.code {
        FailureCode::Cancelled | FailureCode::ToolNotFound | FailureCode::IdempotencyConflict => {
            true
        }
        FailureCode::ValidationError | FailureCode::AuthenticationError => outcome.attempts == 0,
        FailureCode::NetworkError
        | FailureCode::Timeout
        | FailureCode::RateLimitError
        | FailureCode::ToolExecutionError
        | FailureCode::CircuitOpen
        | FailureCode::Overloaded
        | FailureCode::ApprovalDenied
        | FailureCode::ApprovalExpired => outcome.replayed,
    }
}

fn call_of(tool: String, args: &Value, outcome: &Outcome, secrets: &Secrets, at_ms: u64) -> Call {
    let said = |output| Said::of(output, secrets);
    Call {
        tool,
        arguments: args.clone(),
        output: outcome.result.as_ref().ok().map(said),
        failure: outcome
            .failure()
            .map(|failure| failure.without_secrets(secrets)),
        fallback: outcome.fallback.as_deref().map(said),
        attempts: outcome.attempts,
        took_ms: outcome.running_time().as_secs_f64() * 1e3,
        at: moment(at_ms),
    }
}

fn moment(at_ms: u64) -> String {
    let at = i64::try_from(at_ms).unwrap_or_default();
    jiff::Timestamp::from_millisecond(at).map_or_else(|_| String::new(), |at| at.to_string())
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down the tools that are new or have changed.
    fn note_tools(&self) {
        for tool in self.runtime.manager().list() {
            let definition = self.definition(&tool);
            let mut state = self.state();
            if state.known.get(tool.name()) == Some(&definition) {
                continue;
            }
            let line = Line::Tool(Box::new(definition.clone()));
            if let Err(reason) = state.write(&line) {
                tracing::error!(tool = tool.name(), reason, "a tool is not recorded");
                return;
            }
            state.known.insert(definition.name.clone(), definition);
        }
    }

    fn definition(&self, tool: &Tool) -> Definition {
        let policy = self
            .runtime
            .manager()
            .policy(tool.name())
            .unwrap_or_default();
        Definition {
            name: tool.name().to_owned(),
            lc_name: tool.lc_name().map(str::to_owned),
            description: tool.description().to_owned(),
            schema: tool.schema().clone(),
            kind: tool.kind().to_owned(),
            source: tool.source().map(str::to_owned),
            safe_to_repeat: policy.safe_to_repeat,
            coerce: policy.coerce,
            strict: policy.strict,
            mcp: self.written_by_server(tool),
        }
    }
}

impl Shared {
    /// As its MCP server wrote it: annotations, what it answers, members nobody knows.
    fn written_by_server(&self, tool: &Tool) -> Option<Value> {
        let server = tool.source().filter(|_| tool.kind() == "mcp")?;
        let definition = self.runtime.server(server)?.definition(tool.name())?;
        serde_json::from_str(definition.get()).ok()
    }
}

impl State {
    fn open(path: &Path, trust: &Trust) -> Result<State, String> {
        let failed = |error: std::io::Error| plain(&error);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        // Calls are added to a cassette of ours, never to somebody's other file.
        let known = match std::fs::metadata(path) {
            Ok(about) if about.len() > 0 => super::Tape::read(path, trust)?.into_definitions(),
            Ok(_) | Err(_) => HashMap::new(),
        };
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        // What tools answered may be private.
        let mut file = private::open_in_any_folder(path, &mut options).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        let mut state = State {
            torn: bytes > 0 && !ends_a_line(&mut file).map_err(failed)?,
            file,
            bytes,
            known,
            summary: Summary::default(),
        };
        if bytes == 0 {
            state.write(&Line::Cassette(Head {
                version: VERSION,
                program: format!("steadyhand {}", env!("CARGO_PKG_VERSION")),
                at: moment(steadyhand::clock::wall_ms()),
            }))?;
        }
        Ok(state)
    }

    fn write(&mut self, line: &Line) -> Result<(), String> {
        let mut text = serde_json::to_vec(line).map_err(|error| error.to_string())?;
        if text.len() > LINE_BYTES_MAX {
            return Err(format!("it is larger than {LINE_BYTES_MAX} bytes"));
        }
        text.push(b'\n');
        if self.torn {
            text.insert(0, b'\n');
        }
        if self.bytes + text.len() as u64 > FILE_BYTES_MAX {
            return Err(format!("the cassette has reached {FILE_BYTES_MAX} bytes"));
        }
        self.torn = true;
        self.file.write_all(&text).map_err(|error| plain(&error))?;
        self.torn = false;
        self.bytes += text.len() as u64;
        Ok(())
    }

    fn missed(&mut self, calls: u64, reason: &str) {
        self.summary.missing += calls;
        self.summary.reason = Some(reason.to_owned());
    }

    /// Whoever replays it is told, too.
    fn tell_missing(&mut self) {
        let (calls, reason) = (self.summary.missing, self.summary.reason.clone());
        if let (1.., Some(reason)) = (calls, reason) {
            let _ = self.write(&Line::Missing(Missing { calls, reason }));
        }
    }
}

fn ends_a_line(file: &mut File) -> std::io::Result<bool> {
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
