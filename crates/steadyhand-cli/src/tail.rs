//! `steadyhand calls tail`: calls as they end, one line each, until it is stopped. A running server tells them at once;
//! without one, the history file is looked at again and again.

use std::collections::HashSet;
use std::io::Write;
use std::time::Duration;

use clap::Args;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::calls::{Place, read_filter, row, unreadable};
use super::error::{Exit, Failed};
use super::remote::{Remote, in_path};
use super::{Interrupts, Session, value};
use steadyhand_server::views::calls::ask;
use steadyhand_store::history::{CallRecord, CallState, CallSummary, Filter, History};

/// How often the history file is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Calls that one look sees.
const SEEN_MAX: usize = 1000;
/// The longest line of the stream: an event is far smaller.
const LINE_BYTES_MAX: usize = 1024 * 1024;

#[derive(Args)]
pub(super) struct TailArgs {
    /// tool:home_* state:failed error:timeout caller:x >500ms, or a text
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    /// How many calls that have ended already come first
    #[arg(short = 'n', long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=1000))]
    last: u32,
}

pub(super) async fn run(
    session: &Session<'_>,
    place: &Place,
    args: &TailArgs,
) -> Result<(), Failed> {
    let words = args.filter.join(" ");
    let filter = read_filter(&words)?;
    let mut interrupts = Interrupts::listen();
    let lines = Lines { session };
    let following = async {
        match place {
            Place::There(remote) => lines.of_server(remote, &filter, &words, args.last).await,
            Place::Here(history) => lines.of_file(history, filter, args.last).await,
        }
    };
    let limit = session.time_left().unwrap_or(Duration::MAX);
    tokio::select! {
        ended = following => ended,
        // --timeout says how long to watch: that it is over is no failure.
        () = tokio::time::sleep(limit) => Ok(()),
        code = interrupts.next() => Err(Failed::new(Exit::Signal(code), "interrupted", "stopped")),
    }
}

/// Whoever reads the lines has seen enough.
struct ReaderGone;

struct Lines<'a> {
    session: &'a Session<'a>,
}

impl Lines<'_> {
    /// From the events of a server.
    async fn of_server(
        &self,
        remote: &Remote,
        filter: &Filter,
        words: &str,
        last: u32,
    ) -> Result<(), Failed> {
        // Opened before the list is read, so that no call falls between the two.
        let mut answer = remote.open("/v1/events?type=call_finished,skipped").await?;
        let mut listed = HashSet::new();
        if last > 0 {
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            query.append_pair("limit", &last.to_string());
            if !words.is_empty() {
                query.append_pair("q", words);
            }
            let page = remote.get(&format!("/v1/calls?{}", query.finish())).await?;
            let calls = page["calls"].as_array().cloned().unwrap_or_default();
            for call in calls.iter().rev().filter(|call| call["state"] != "running") {
                listed.insert(which(call));
                if self.write(call).is_err() {
                    return Ok(());
                }
            }
        }
        let mut pending = Vec::new();
        let mut kind = String::new();
        while let Some(frame) = answer.body.frame().await {
            let frame = frame.map_err(|error| remote.unreachable(&error.to_string()))?;
            let Some(piece) = frame.data_ref() else {
                continue;
            };
            pending.extend_from_slice(piece);
            while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = pending.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line);
                let line = line.trim_end();
                if let Some(name) = line.strip_prefix("event:") {
                    kind = name.trim().to_owned();
                }
                let Some(data) = line.strip_prefix("data:") else {
                    continue;
                };
                let event: Value = serde_json::from_str(data.trim()).unwrap_or_default();
                match kind.as_str() {
                    "call_finished" if listed.remove(&which(&event)) => {}
                    "call_finished" => match self.tell(remote, filter, event).await? {
                        Ok(()) => {}
                        Err(ReaderGone) => return Ok(()),
                    },
                    "skipped" => self.session.screen.note(&format!(
                        "{} events were skipped: this reader was too slow",
                        event["count"]
                    )),
                    _ => {}
                }
            }
            if pending.len() > LINE_BYTES_MAX {
                pending.clear();
            }
        }
        let message = format!("the server at {} ended", remote.address());
        Err(
            Failed::new(Exit::NotReachable, "server_unreachable", message)
                .help("Start it again: steadyhand serve"),
        )
    }

    /// A call of which an event tells, if it is meant.
    async fn tell(
        &self,
        remote: &Remote,
        filter: &Filter,
        mut event: Value,
    ) -> Result<Result<(), ReaderGone>, Failed> {
        if event.get("attempts").is_none() {
            event["attempts"] = json!(1);
        }
        // What only the stream knows is of no use in a line.
        let fields = event.as_object_mut();
        fields.map(|fields| (fields.remove("number"), fields.remove("status")));
        let mut known = event.clone();
        known["key"] = json!("");
        let Ok(call) = serde_json::from_value::<CallSummary>(known) else {
            return Ok(Ok(()));
        };
        if !filter.means(&call) {
            return Ok(Ok(()));
        }
        // Events carry no texts: why it failed, and where a text may stand, is asked for.
        if filter.text.is_empty() && call.state == CallState::Ok {
            return Ok(self.write(&event));
        }
        let path = format!("/v1/calls/{}", in_path(&call.id));
        let found = remote.get(&path).await.ok();
        let record = found.and_then(|it| serde_json::from_value::<CallRecord>(it).ok());
        if !filter.text.is_empty() && !record.as_ref().is_some_and(|it| filter.has_texts(it)) {
            return Ok(Ok(()));
        }
        if let Some(message) = record.and_then(|record| record.call.message) {
            event["message"] = json!(message);
        }
        Ok(self.write(&event))
    }

    /// From the history file, which other processes write.
    async fn of_file(&self, history: &History, filter: Filter, last: u32) -> Result<(), Failed> {
        let mut seen: Option<HashSet<String>> = None;
        loop {
            let wanted = filter.clone();
            let look = move |history: &History| history.page(&wanted, None, SEEN_MAX);
            let page = ask(history, look).await.map_err(unreadable)?;
            let ended = page.calls.iter();
            let ended: Vec<&CallSummary> = ended
                .filter(|call| call.state != CallState::Running)
                .collect();
            let now: HashSet<String> = ended.iter().map(|call| call.key.clone()).collect();
            let is_new = |call: &&CallSummary| match &seen {
                Some(seen) => !seen.contains(&call.key),
                None => true,
            };
            let mut new: Vec<&CallSummary> = ended.into_iter().filter(is_new).collect();
            if seen.is_none() {
                new.truncate(last as usize);
            }
            for call in new.into_iter().rev() {
                if self.write(&json!(call)).is_err() {
                    return Ok(());
                }
            }
            seen = Some(now);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn write(&self, call: &Value) -> Result<(), ReaderGone> {
        let screen = self.session.screen;
        let text = match screen.json {
            true => call.to_string(),
            false => {
                let mut cells = row(call);
                let message = call["message"].as_str().unwrap_or_default();
                let first_line = message.lines().next().unwrap_or_default();
                cells.push(first_line.to_owned());
                value::columns(screen, vec![cells]).replace('\n', " ")
            }
        };
        let mut stdout = std::io::stdout().lock();
        let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
        written.map_err(|_| ReaderGone)
    }
}

/// What tells one call from another: ids alone may be shared.
fn which(call: &Value) -> (String, u64) {
    let id = call["id"].as_str().unwrap_or_default().to_owned();
    (id, call["started_ms"].as_u64().unwrap_or_default())
}
