//! `steadyhand batch FILE`: many calls at once, as many outcomes, in the same order (SPEC R10).

use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};
use steadyhand::{Call, InexactInteger, RepeatedName, plain_words};

use super::error::{Exit, Failed};
use super::outcome::{self, Ended};
use super::rehearsal::RehearsalArgs;
use super::remote::Remote;
use super::{Interrupts, STOPPING_MAX, Session, value, written};
use steadyhand_config::document::plain;
use steadyhand_runtime::source::command;
use steadyhand_server::http::calls::CallBody;

const BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Lines that are no JSON are told one by one up to here.
const FAULTS_SHOWN_MAX: usize = 5;

#[derive(Args)]
pub(super) struct BatchArgs {
    /// A JSON file with a list of calls or {"calls": […]}, or JSONL with one a line; - for stdin
    file: PathBuf,
    #[command(flatten)]
    rehearsal: RehearsalArgs,
}

pub(super) async fn run(session: &Session<'_>, args: &BatchArgs) -> Result<(), Failed> {
    let mut interrupts = Interrupts::listen();
    let calls = args.read(session)?;
    let running = outcomes(session, args, &calls);
    let outcomes = tokio::select! {
        outcomes = running => outcomes?,
        // What runs is dropped, and withdrawn with that; here or in the server.
        code = interrupts.next() => {
            command::settle(STOPPING_MAX).await;
            let failed = Failed::new(Exit::Signal(code), "interrupted", "interrupted; calls that ran were withdrawn");
            return Err(failed.help("steadyhand calls list shows what became of those a server ran"));
        }
    };
    let ended: Vec<Ended> = outcomes.iter().map(Ended::read).collect::<Result<_, _>>()?;
    match session.screen.json {
        true => session.screen.json(&json!({ "outcomes": outcomes })),
        false => session
            .screen
            .answer(&value::columns(session.screen, rows(session, &ended))),
    }
    let failed = ended.iter().filter(|ended| !ended.is_answered()).count();
    session.screen.note(&format!(
        "{}, {failed} failed",
        value::counted(ended.len(), "call")
    ));
    // One failure stands for all: its code is the command's.
    match ended.iter().find(|ended| !ended.is_answered()) {
        Some(first) => match &first.failure {
            Some(failure) => Err(outcome::failed(first, failure)),
            None => Ok(()),
        },
        None => Ok(()),
    }
}

/// Structured views, in the order of the calls.
async fn outcomes(
    session: &Session<'_>,
    args: &BatchArgs,
    calls: &[Value],
) -> Result<Vec<Value>, Failed> {
    if !args.rehearsal.is_asked_for()
        && let Some(remote) = Remote::find(session).await
    {
        let sent: Vec<Value> = calls.iter().map(as_sent).collect();
        let body = json!({ "calls": sent });
        let reply = remote.post("/v1/batches", Some(&body)).await?;
        let outcomes = reply.body["outcomes"].as_array().cloned();
        return outcomes.ok_or_else(|| Failed::unexpected("the server's answer has no outcomes"));
    }
    command::adopt_orphans();
    let rehearsal = args.rehearsal.read(session)?;
    let runtime = session.runtime(|options| rehearsal.apply(options)).await?;
    let history = session.remember(&runtime);
    let take = rehearsal.begin(session, &runtime)?;
    let calls = calls.iter().map(|call| read_call(call).caller("cli"));
    let outcomes = runtime.executor().execute_batch(calls.collect());
    let outcomes = match session.time_left() {
        None => Ok(outcomes.await),
        Some(left) => tokio::time::timeout(left, outcomes).await,
    };
    session.stop(&runtime, &mut Interrupts::listen()).await;
    take.end(session).await;
    written(session, history).await;
    let too_late = |_| Failed::timed_out(session.global.timeout.unwrap_or_default());
    let outcomes = outcomes.map_err(too_late)?;
    Ok(outcomes.iter().map(|outcome| json!(outcome)).collect())
}

/// A call as a server takes it: without fields that mean nothing. Something else goes as it is: the server answers it.
fn as_sent(call: &Value) -> Value {
    Call::deserialize(call).map_or_else(|_| call.clone(), |call| json!(call))
}

/// The call; something else stands for itself as one that is answered and never run.
fn read_call(sent: &Value) -> Call {
    let call = Call::deserialize(sent);
    call.unwrap_or_else(|_| CallBody::read(&sent.to_string()))
}

fn rows(session: &Session<'_>, ended: &[Ended]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    if session.screen.stdout_is_terminal {
        rows.push(["TOOL", "RESULT", "TOOK", "ID"].map(str::to_owned).to_vec());
    }
    for ended in ended {
        let result = match (&ended.failure, &ended.output) {
            (Some(failure), _) => failure.to_string(),
            (None, Some(Value::String(text))) => text.clone(),
            (None, Some(output)) => output.to_string(),
            (None, None) => String::new(),
        };
        rows.push(vec![
            ended.tool_name.clone(),
            first_line(&result),
            value::duration(ended.took),
            ended.call_id.clone(),
        ]);
    }
    rows
}

/// A table has one line for each call.
fn first_line(text: &str) -> String {
    const CHARS_MAX: usize = 120;
    let line = text.lines().next().unwrap_or_default();
    match line.chars().count() > CHARS_MAX {
        true => format!("{}…", line.chars().take(CHARS_MAX).collect::<String>()),
        false => line.to_owned(),
    }
}

impl BatchArgs {
    /// The calls as they are in the file: one that is none fails alone.
    fn read(&self, session: &Session<'_>) -> Result<Vec<Value>, Failed> {
        let cannot = |reason: String| {
            Failed::new(
                Exit::Usage,
                "usage",
                format!("{} cannot be read: {reason}", self.file.display()),
            )
            .help("A list of calls such as [{\"name\": \"echo\", \"args\": {}}], or one a line")
        };
        let text = self.text(session).map_err(|error| cannot(plain(&error)))?;
        if text.len() as u64 > BYTES_MAX {
            return Err(cannot(format!("it is larger than {} MiB", BYTES_MAX >> 20)));
        }
        if let Some(inexact) = InexactInteger::first_in(&text) {
            let place = match inexact.at.is_empty() {
                true => String::new(),
                false => format!("{}: ", inexact.at),
            };
            return Err(cannot(format!("{place}{}", inexact.message())));
        }
        // This holds for a list as well as for one call a line.
        if let Some(repeated) = RepeatedName::first_in(&text) {
            return Err(cannot(format!(
                "{}, and nothing was run",
                repeated.message()
            )));
        }
        let is_list = text.trim_start().starts_with('[');
        match serde_json::from_str::<Value>(&text) {
            Ok(Value::Object(mut fields)) if fields.contains_key("calls") => {
                return match fields.remove("calls") {
                    Some(Value::Array(calls)) => Ok(calls),
                    _ => Err(cannot("calls must be a list".to_owned())),
                };
            }
            Ok(Value::Array(calls)) => return Ok(calls),
            Ok(call) => return Ok(vec![call]),
            Err(error) if is_list => {
                let fault = plain_words::json(&error);
                return Err(cannot(format!("it is no JSON: {fault}")));
            }
            Err(_) => {}
        }
        let mut calls = Vec::new();
        let mut faults = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            match serde_json::from_str(line) {
                Ok(call) => calls.push(call),
                Err(error) => {
                    let (fault, column) = (plain_words::json_fault(&error), error.column());
                    faults.push(format!("line {}, column {column}: {fault}", index + 1));
                }
            }
        }
        // What was meant by a broken line is unknown, and it may belong to the others: nothing is run.
        match faults.len() {
            0 => Ok(calls),
            count => {
                let rest = count.saturating_sub(FAULTS_SHOWN_MAX);
                faults.truncate(FAULTS_SHOWN_MAX);
                if rest > 0 {
                    faults.push(format!("and {rest} more"));
                }
                let lines = if count == 1 { "line is" } else { "lines are" };
                Err(cannot(format!(
                    "{count} {lines} no JSON, and nothing was run: {}",
                    faults.join("; ")
                )))
            }
        }
    }

    fn text(&self, session: &Session<'_>) -> std::io::Result<String> {
        let mut text = String::new();
        match self.file.as_os_str() == "-" {
            true => std::io::stdin()
                .lock()
                .take(BYTES_MAX + 1)
                .read_to_string(&mut text)?,
            false => std::fs::File::open(session.surroundings.current.join(&self.file))?
                .take(BYTES_MAX + 1)
                .read_to_string(&mut text)?,
        };
        Ok(text)
    }
}
