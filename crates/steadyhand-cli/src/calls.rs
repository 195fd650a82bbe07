//! `steadyhand calls`: past and running calls: listed, followed, shown, run again, written out, ended.

use std::io::Write;

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCandidates;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::error::{Exit, Failed};
use super::outcome::{self, Ended};
use super::remote::{Remote, in_path};
use super::tail::{self, TailArgs};
use super::{Interrupts, STOPPING_MAX, Session, complete, stored_keys, value, written};
use steadyhand_runtime::runtime::Runtime;
use steadyhand_runtime::source::command;
use steadyhand_server::views::{self, calls::NotAgain, calls::ask};
use steadyhand_store::history::{CallRecord, Cursor, Filter, History, HistoryError};

#[derive(Subcommand)]
pub(super) enum CallsCommand {
    /// Past and running calls, the newest first
    List(ListArgs),
    /// Everything about one call
    Show {
        /// Its id, the beginning of one, or last
        #[arg(add = ArgValueCandidates::new(complete::call_ids))]
        id: String,
    },
    /// Run a call again: a new call, linked to the old one
    Replay {
        /// Its id, the beginning of one, or last
        #[arg(add = ArgValueCandidates::new(complete::call_ids))]
        id: String,
        /// Even if its tool is not known to be safe to repeat
        #[arg(long)]
        force: bool,
    },
    /// Calls as they end, one line each, until it is stopped
    Tail(TailArgs),
    /// Every call that is meant, one line of JSON each
    Export {
        /// tool:home_* state:failed error:timeout caller:x since:1h >500ms, or a text
        #[arg(value_name = "FILTER")]
        filter: Vec<String>,
    },
    /// Idempotency keys: whether calls that have one are taken
    Keys {
        #[command(subcommand)]
        command: Option<stored_keys::StoredKeysCommand>,
    },
    /// End a call that runs
    Cancel {
        /// Its id, the beginning of one, or last
        #[arg(add = ArgValueCandidates::new(complete::call_ids))]
        id: String,
    },
}

const LIMIT: u32 = 50;

impl Default for ListArgs {
    fn default() -> ListArgs {
        ListArgs {
            filter: Vec::new(),
            limit: LIMIT,
            cursor: None,
        }
    }
}

#[derive(Args)]
pub(super) struct ListArgs {
    /// tool:home_* state:failed error:timeout caller:x since:1h >500ms, or a text
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    /// How many
    #[arg(long, default_value_t = LIMIT, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Where the page before said the next one begins
    #[arg(long)]
    cursor: Option<String>,
}

pub(super) async fn run(
    session: &Session<'_>,
    command: Option<&CallsCommand>,
) -> Result<(), Failed> {
    if let Some(CallsCommand::Keys { command }) = command {
        return stored_keys::run(session, command.as_ref()).await;
    }
    let place = match Remote::find(session).await {
        Some(remote) => Place::There(remote),
        None => Place::Here(session.past()?),
    };
    let answered = match command {
        None => list(session, &place, &ListArgs::default()).await,
        Some(command) => match command {
            CallsCommand::List(args) => list(session, &place, args).await,
            CallsCommand::Show { id } => show(session, &place, id).await,
            CallsCommand::Replay { id, force } => replay(session, &place, id, *force).await,
            CallsCommand::Tail(args) => tail::run(session, &place, args).await,
            CallsCommand::Export { filter } => export(&place, &filter.join(" ")).await,
            CallsCommand::Cancel { id } => cancel(session, &place, id).await,
            // Answered above: it needs no history.
            CallsCommand::Keys { .. } => Ok(()),
        },
    };
    // An answer may be short because of what became of the file.
    if let Place::Here(history) = &place
        && let Some(notice) = history.health().notice
    {
        session
            .screen
            .note(&format!("The history of calls: {notice}"));
    }
    answered
}

/// Where past calls are asked for.
pub(super) enum Place {
    There(Remote),
    Here(History),
}

async fn list(session: &Session<'_>, place: &Place, args: &ListArgs) -> Result<(), Failed> {
    let words = args.filter.join(" ");
    let page = match place {
        Place::There(remote) => {
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            query.append_pair("limit", &args.limit.to_string());
            if !words.is_empty() {
                query.append_pair("q", &words);
            }
            if let Some(cursor) = &args.cursor {
                query.append_pair("cursor", cursor);
            }
            remote.get(&format!("/v1/calls?{}", query.finish())).await?
        }
        Place::Here(history) => {
            let cursor = args.cursor.as_deref().map(str::parse::<Cursor>);
            let cursor = cursor.transpose().map_err(unreadable)?;
            let (filter, limit) = (read_filter(&words)?, args.limit as usize);
            let page = move |history: &History| history.page(&filter, cursor, limit);
            json!(ask(history, page).await.map_err(unreadable)?)
        }
    };
    let screen = session.screen;
    if screen.json {
        screen.json(&page);
        return Ok(());
    }
    let calls = page["calls"].as_array().cloned().unwrap_or_default();
    let mut rows = Vec::new();
    if screen.stdout_is_terminal {
        rows.push(
            ["TIME", "TOOL", "FROM", "RESULT", "TOOK", "TRIES", "ID"]
                .map(str::to_owned)
                .to_vec(),
        );
    }
    rows.extend(calls.iter().map(row));
    match calls.is_empty() {
        true => screen.note("No calls."),
        false => screen.answer(&value::columns(screen, rows)),
    }
    if let Some(next) = page["next"].as_str() {
        screen.note(&format!("There are more: --cursor {next}"));
    }
    Ok(())
}

pub(super) fn row(call: &Value) -> Vec<String> {
    let text = |name: &str| call[name].as_str().unwrap_or_default().to_owned();
    let took = match (call["took_ms"].as_f64(), call["elapsed_ms"].as_f64()) {
        (Some(ms), _) => duration(ms),
        (None, Some(ms)) if call["waiting_for_approval"] == true => duration(ms),
        (None, Some(ms)) => {
            let running = duration(ms - call["approval_ms"].as_f64().unwrap_or(0.0));
            match call["deadline_ms"].as_f64() {
                Some(deadline) => format!("{running} of {}", duration(deadline)),
                None => running,
            }
        }
        (None, None) => String::new(),
    };
    let result = match call["code"].as_str() {
        Some(code) if call["fallback_used"] == true => format!("{code}, fallback"),
        Some(code) => code.to_owned(),
        None if call["waiting_for_approval"] == true => "waiting for approval".to_owned(),
        None => text("state"),
    };
    vec![
        moment(&call["started_ms"]),
        text("tool"),
        text("caller"),
        result,
        took,
        call["attempts"].to_string(),
        text("id"),
    ]
}

async fn show(session: &Session<'_>, place: &Place, id: &str) -> Result<(), Failed> {
    let call = match place {
        Place::There(remote) => remote.get(&format!("/v1/calls/{}", in_path(id))).await?,
        Place::Here(history) => {
            json!(find(history, id).await?)
        }
    };
    let screen = session.screen;
    if screen.json {
        screen.json(&call);
        return Ok(());
    }
    let mut head = vec![
        vec!["id".to_owned(), shown(&call["id"])],
        vec!["tool".to_owned(), shown(&call["tool"])],
        vec!["at".to_owned(), moment(&call["started_ms"])],
        vec!["state".to_owned(), state_of(&call)],
    ];
    for (name, field) in [
        ("from", "caller"),
        ("code", "code"),
        ("effect", "effect"),
        ("message", "message"),
        ("repeats", "replay_of"),
    ] {
        if let Some(text) = call[field].as_str() {
            head.push(vec![name.to_owned(), text.to_owned()]);
        }
    }
    for (name, field) in [("took", "took_ms"), ("so far", "elapsed_ms")] {
        if let Some(ms) = call[field].as_f64() {
            head.push(vec![name.to_owned(), duration(ms)]);
        }
    }
    if let Some(ms) = call["approval_ms"].as_f64() {
        let by = call["approval"]["approved_by"].as_str();
        let by = by.map_or(String::new(), |by| format!(", approved by {by}"));
        let waited = format!("waited {}{by}", duration(ms));
        head.push(vec!["approval".to_owned(), waited]);
    }
    head.push(vec!["attempts".to_owned(), call["attempts"].to_string()]);
    let mut text = value::columns(screen, head);
    let mut section = |title: &str, body: String| {
        let body: String = body.lines().map(|line| format!("  {line}\n")).collect();
        text.push_str(&format!("\n\n{}\n{}", screen.bold(title), body.trim_end()));
    };
    let notes = call["notes"].as_array().into_iter().flatten();
    let notes: Vec<String> = notes.map(shown).collect();
    if !notes.is_empty() {
        section("Done on purpose", notes.join("\n"));
    }
    let dropped = call["dropped_arguments"].as_array().into_iter().flatten();
    let dropped: Vec<String> = dropped.map(shown).collect();
    if !dropped.is_empty() {
        section(
            "Arguments it does not take, not passed on",
            dropped.join("\n"),
        );
    }
    if let Some(arguments) = call.get("arguments") {
        section("Arguments", value::shown(screen, arguments));
    }
    if let Some(result) = call.get("result") {
        section("Result", value::shown(screen, result));
    }
    let stages = call["stages"].as_array().cloned().unwrap_or_default();
    if !stages.is_empty() {
        let rows = stages.iter().map(stage_row).collect();
        section("Where the time went", value::columns(screen, rows));
    }
    screen.answer(&text);
    Ok(())
}

fn state_of(call: &Value) -> String {
    match call["waiting_for_approval"] == true {
        true => "waiting for approval; its tool was not started".to_owned(),
        false => shown(&call["state"]),
    }
}

fn stage_row(stage: &Value) -> Vec<String> {
    let (start, end) = (stage["start_ms"].as_f64(), stage["end_ms"].as_f64());
    let took = duration(end.unwrap_or(0.0) - start.unwrap_or(0.0));
    let name = match (stage["attempt"].as_u64(), stage["tool"].as_str()) {
        (_, Some(tool)) => format!("{} {tool}", shown(&stage["kind"])),
        (Some(attempt), None) => format!("{} {attempt}", shown(&stage["kind"])),
        (None, None) => shown(&stage["kind"]),
    };
    vec![name, took, shown(&stage["message"])]
}

async fn replay(session: &Session<'_>, place: &Place, id: &str, force: bool) -> Result<(), Failed> {
    let mut interrupts = Interrupts::listen();
    let running = replayed(session, place, id, force);
    let view = tokio::select! {
        view = running => view?,
        code = interrupts.next() => {
            command::settle(STOPPING_MAX).await;
            let failed = Failed::new(Exit::Signal(code), "interrupted", "interrupted; the call was withdrawn");
            return Err(failed);
        }
    };
    if session.screen.json {
        session.screen.json(&view);
    }
    outcome::show(session, &Ended::read(&view)?)
}

async fn replayed(
    session: &Session<'_>,
    place: &Place,
    id: &str,
    force: bool,
) -> Result<Value, Failed> {
    let history = match place {
        Place::There(remote) => {
            let path = format!("/v1/calls/{}/replay?force={force}", in_path(id));
            return Ok(remote.post(&path, None).await?.body);
        }
        Place::Here(history) => history,
    };
    let record = find(history, id).await?;
    command::adopt_orphans();
    let runtime = session.runtime(|_| {}).await?;
    let _ = history.attach(runtime.executor());
    let ended = again_here(&runtime, record, force).await;
    session.stop(&runtime, &mut Interrupts::listen()).await;
    written(session, Some(history.clone())).await;
    ended
}

async fn again_here(runtime: &Runtime, record: CallRecord, force: bool) -> Result<Value, Failed> {
    let since = Instant::now();
    // A tool of a server that is still starting; why it does not come, its call would say.
    let _ = runtime.arrival(&record.call.tool).await;
    let call = match views::calls::again(runtime, record, force) {
        Ok(call) => call,
        Err(NotAgain::NoSuchTool(tool)) => {
            return Err(super::tools::no_such_tool(runtime, &tool));
        }
        Err(NotAgain::NotSafe { message, help }) => {
            return Err(Failed::new(Exit::Refused, "not_safe_to_repeat", message).help(help));
        }
    };
    let outcome = runtime
        .executor()
        .execute(call.caller("cli").waiting_since(since))
        .await;
    Ok(json!(outcome))
}

async fn export(place: &Place, words: &str) -> Result<(), Failed> {
    match place {
        Place::There(remote) => {
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            query.append_pair("q", words);
            let path = match words.is_empty() {
                true => "/v1/calls.ndjson".to_owned(),
                false => format!("/v1/calls.ndjson?{}", query.finish()),
            };
            remote.copy(&path, &mut std::io::stdout().lock()).await
        }
        Place::Here(history) => {
            let filter = read_filter(words)?;
            let export = move |history: &History| {
                let mut stdout = std::io::BufWriter::new(std::io::stdout().lock());
                history.export(&filter, &mut stdout)?;
                let _ = stdout.flush();
                Ok(())
            };
            match ask(history, export).await {
                // A reader that has seen enough has closed the pipe: nothing is wrong.
                Err(HistoryError::Export(_)) | Ok(()) => Ok(()),
                Err(error) => Err(unreadable(error)),
            }
        }
    }
}

async fn cancel(session: &Session<'_>, place: &Place, id: &str) -> Result<(), Failed> {
    let Place::There(remote) = place else {
        return Err(Failed::new(
            Exit::NotReachable,
            "no_server",
            "no server of this configuration runs, so no call runs in one",
        )
        .help("A call of another command is ended with Ctrl-C there"));
    };
    let view = remote.delete(&format!("/v1/calls/{}", in_path(id))).await?;
    match session.screen.json {
        true => session.screen.json(&view),
        false => session
            .screen
            .answer(&format!("{} is being ended", shown(&view["id"]))),
    }
    Ok(())
}

async fn find(history: &History, id: &str) -> Result<CallRecord, Failed> {
    let wanted = id.to_owned();
    let found = ask(history, move |history| history.find(&wanted, None)).await;
    found.map_err(unreadable)?.ok_or_else(|| no_such_call(id))
}

pub(super) fn read_filter(words: &str) -> Result<Filter, Failed> {
    let now_ms = jiff::Timestamp::now().as_millisecond().max(0) as u64;
    Filter::parse(words, now_ms).map_err(|error| {
        Failed::new(Exit::Usage, "usage", error.to_string())
            .help("steadyhand calls list tool:home_* state:failed since:1h")
    })
}

fn no_such_call(id: &str) -> Failed {
    Failed::new(
        Exit::ToolError,
        "no_such_call",
        format!("there is no call {id}"),
    )
    .help("steadyhand calls list shows those that are kept")
}

pub(super) fn unreadable(error: HistoryError) -> Failed {
    let exit = match error {
        HistoryError::Ambiguous { .. } => {
            return Failed::new(Exit::Usage, "usage", error.to_string())
                .help("Give more of the id: steadyhand calls list shows it");
        }
        HistoryError::Cursor(_) => Exit::Usage,
        HistoryError::Unavailable(_) | HistoryError::Export(_) => Exit::NotReachable,
    };
    Failed::new(exit, "history_unavailable", error.to_string()).help(
        "steadyhand serve keeps a history; history = { path = \"…\" } under [server] says where",
    )
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn duration(ms: f64) -> String {
    value::duration(std::time::Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default())
}

/// A moment as people in front of this machine read it.
fn moment(ms: &Value) -> String {
    let moment = ms.as_i64().map(jiff::Timestamp::from_millisecond);
    match moment {
        Some(Ok(moment)) => {
            let here = moment.to_zoned(jiff::tz::TimeZone::system());
            here.strftime("%Y-%m-%d %H:%M:%S").to_string()
        }
        _ => String::new(),
    }
}
