//! `steadyhand chat`: a conversation at the terminal, or one answer for a prompt or stdin.

pub(crate) mod asking;
mod editor;
mod keyboard;
mod keys;
mod line;
mod live;
mod record;
mod refused;
mod show;
mod talk;
mod turn;

use std::io::IsTerminal;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCandidates;
use serde_json::json;
use steadyhand_models::{AtLimit, End};
use tokio::io::AsyncReadExt;

use super::error::{Exit, Failed};
use super::rehearsal::RehearsalArgs;
use super::{Interrupts, Session, complete, screen, starting, value, written};
use record::Ended;
use show::Show;
use steadyhand_runtime::approvals::Desk;
use steadyhand_runtime::models;
use steadyhand_runtime::runtime::{Degraded, Runtime};
use steadyhand_runtime::source::command;
use steadyhand_server::conversations;
use steadyhand_server::views;
use turn::{Chat, Keeps, Left, Turned, Way};

/// The longest text that is taken from stdin.
const STDIN_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// With a prompt, stdin need not say anything: it may be somebody else's pipe.
const STDIN_WAIT: Duration = Duration::from_secs(3);

#[derive(Args)]
pub(super) struct ChatArgs {
    /// What to ask; stdin is added to it. Without both, a conversation begins
    prompt: Option<String>,
    /// The model: a name of [models], provider/model such as ollama/qwen3:8b, or demo
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::model_names))]
    model: Option<String>,
    /// What the model is told before everything else
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Go on with a conversation: the last one, or --resume=ID
    #[arg(long, value_name = "ID", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    resume: Option<String>,
    /// Do not keep this conversation
    #[arg(long, conflicts_with = "resume")]
    no_save: bool,
    /// What is shown of tools: full with their results, a line for each, or none
    #[arg(short = 't', long, value_enum, default_value_t = ShowTools::Line, value_name = "HOW")]
    show_tools: ShowTools,
    /// How many rounds of tools one question may take
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    max_iterations: Option<u32>,
    /// With --json: a line for every event as it happens, the answer last
    #[arg(long, requires = "json")]
    events: bool,
    /// Allow a tool that needs approval: a name, or a pattern
    #[arg(long, value_name = "PATTERN")]
    approve: Vec<String>,
    #[command(flatten)]
    rehearsal: RehearsalArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ShowTools {
    Full,
    Line,
    None,
}

pub(super) async fn run(session: &Session<'_>, args: &ChatArgs) -> Result<(), Failed> {
    let mut interrupts = Interrupts::listen();
    let configuration = session.configuration()?;
    let mut chosen = models::choose(&configuration, &session.surroundings, args.model.as_deref())?;
    if args.system.is_some() {
        chosen.system.clone_from(&args.system);
    }
    chosen.max_iterations = args.max_iterations.or(chosen.max_iterations);
    let is_talk = args.prompt.is_none() && std::io::stdin().is_terminal();
    if is_talk && session.global.no_input {
        return Err(nothing_asked());
    }
    let asked = match is_talk {
        true => None,
        false => Some(asked(args, &mut interrupts).await?),
    };
    let found = match &args.resume {
        Some(id) => Some(find(session, id)?),
        None => None,
    };
    let rehearsal = args.rehearsal.read(session)?;
    // Programs whose parents are gone become our children, so that none can slip away.
    command::adopt_orphans();
    let rounds = configuration.max_iterations;
    let desk = can_ask(session).then(Desk::default);
    if let Some(desk) = &desk {
        desk.set_wait(configuration.approval_wait());
    }
    let keys = session.keys(configuration.file.as_deref());
    let told_at_top = ToldAtTop::default();
    let runtime = session.runtime_of(configuration, |options| {
        options.approved.clone_from(&args.approve);
        options.keys = Some(Arc::clone(&keys) as _);
        options.desk.clone_from(&desk);
        options.degraded = told_after_the_top(session, &told_at_top);
        rehearsal.apply(options);
    });
    let runtime = tokio::select! {
        runtime = runtime => runtime?,
        code = interrupts.next() => return Err(Failed::interrupted(code)),
    };
    // Nothing waits for MCP servers but what needs their tools: the first request to the model, and calls (SPEC V16).
    starting::first_tools(session, &runtime).await?;
    let history = session.remember(&runtime);
    let audit = desk.as_ref().map(|desk| {
        let generation = runtime.generation();
        session.audit_approvals(desk, &generation.configuration, history.clone())
    });
    let take = rehearsal.begin(session, &runtime)?;
    let at_limit = match is_talk {
        true => AtLimit::Return,
        false => AtLimit::Answer,
    };
    let (tools, model) = (runtime.manager(), chosen.model.name().to_owned());
    let show = Show::new(session.screen, args.show_tools, args.events, tools, &model);
    let settings = turn::settings(at_limit, rounds);
    let mut chat = Chat::new(session, &runtime, chosen, settings, show);
    chat.ask_at(desk);
    if args.no_save {
        chat.keeps(Keeps::No);
    }
    let _watch = chat.watch();
    tell_the_top(&chat, is_talk, &told_at_top);
    if let Some(found) = found {
        tell_what_was_found(&chat, &found);
        chat.go_on(found.stored, found.messages);
    }
    let ended = match asked {
        None => talk::run(&mut chat, &mut interrupts).await,
        Some(asked) => once(&mut chat, &asked, &mut interrupts).await,
    };
    if is_talk && let Some(id) = chat.id() {
        chat.note(&format!("steadyhand chat --resume={id} goes on with this."));
    }
    session.stop(&runtime, &mut interrupts).await;
    take.end(session).await;
    session.close_keys(Some(keys)).await;
    if let Some(audit) = audit {
        audit.flush().await;
    }
    written(session, history).await;
    ended
}

/// Whether somebody sits there who can be asked for a yes.
pub(super) fn can_ask(session: &Session<'_>) -> bool {
    session.can_ask()
}

/// One question, one answer.
async fn once(chat: &mut Chat<'_>, asked: &str, interrupts: &mut Interrupts) -> Result<(), Failed> {
    let before = chat.conversation().len();
    chat.say(asked);
    let ended = match chat.turn(Way::WithTools, interrupts, None).await {
        Turned::Ended(ended) => ended,
        Turned::Left(Left { code }) => return Err(Failed::silent(Exit::Signal(code))),
    };
    let is_timed_out = chat.session.time_left().is_some_and(|left| left.is_zero());
    let failed = match &ended.turn.end {
        End::Answered | End::CutOff => None,
        End::Failed(error) => return Err(chat.failed(error)),
        End::Cancelled if ended.signal.is_none() && is_timed_out => {
            let limit = chat.session.global.timeout.unwrap_or_default();
            return Err(Failed::timed_out(limit));
        }
        End::Cancelled => {
            chat.note(&ended.what_was_stopped());
            Some(Failed::silent(Exit::Signal(ended.signal.unwrap_or(130))))
        }
        End::Refused => {
            let message = "the model would not answer that";
            Some(Failed::new(Exit::Refused, "refusal", message))
        }
        End::LimitReached => {
            let message = format!("no answer after {} rounds of tools", ended.turn.rounds);
            let failed = Failed::new(Exit::Refused, "max_iterations", message);
            Some(failed.help("Allow more with --max-iterations, or max_iterations of the model"))
        }
    };
    if chat.session.screen.json {
        print_json(chat, &ended, before);
    }
    failed.map_or(Ok(()), Err)
}

fn print_json(chat: &Chat<'_>, ended: &Ended, before: usize) {
    let chosen = chat.chosen();
    let calls: Vec<_> = ended.calls.iter().map(|call| call.to_json()).collect();
    let problems = what_is_missing(chat.runtime);
    let view = json!({
        // Next to events it is the last of them.
        "type": "end",
        "text": ended.turn.text,
        "stop_reason": ended.turn.end.as_str(),
        "model": chosen.model.name(),
        "provider": chosen.model.provider().as_str(),
        "note": chosen.model.note(),
        "conversation": chat.id(),
        "rounds": ended.turn.rounds,
        "calls": calls,
        "usage": ended.turn.usage,
        "tools": chat.runtime.manager().len(),
        "problems": problems,
        "messages": &chat.conversation()[before..],
    });
    let line = serde_json::to_string(&view).unwrap_or_default();
    chat.session.screen.exact(&line);
}

/// The servers that were told as not running at the top; empty until the top is told.
type ToldAtTop = Arc<OnceLock<Vec<String>>>;

/// A server that does not start is told at the top, if that is known then; else as soon as it is.
fn told_after_the_top(session: &Session<'_>, told_at_top: &ToldAtTop) -> Degraded {
    let is_silent = session.screen.quiet || session.screen.json;
    let told_at_top = Arc::clone(told_at_top);
    Arc::new(move |_, failure| {
        let told = told_at_top.get();
        if told.is_some_and(|told| !told.contains(&failure.server)) && !is_silent {
            let text = not_running(&failure.server, &failure.summary());
            screen::line(&text);
        }
    })
}

fn not_running(server: &str, reason: &str) -> String {
    format!("{server} is not running: {reason}; steadyhand mcp test {server} shows every step")
}

/// Which model, which tools, what failed to start.
fn tell_the_top(chat: &Chat<'_>, is_talk: bool, told: &ToldAtTop) {
    let runtime = chat.runtime;
    let servers = views::servers::all(runtime);
    let running = servers
        .iter()
        .filter(|server| matches!(starting::text(server, "phase"), "running" | "idle"))
        .count();
    let down: Vec<&str> = servers
        .iter()
        .filter(|server| starting::text(server, "phase") == "down")
        .map(|server| starting::text(server, "name"))
        .collect();
    let mut top = format!(
        "{}, {}",
        chat.who(),
        value::counted(runtime.manager().len(), "tool")
    );
    if running > 0 {
        let servers = value::counted(running, "server");
        top.push_str(&format!(", {servers} running"));
    }
    // The top is told once: the first value stays.
    let _ = told.set(down.iter().map(|&name| name.to_owned()).collect());
    if !down.is_empty() {
        top.push_str(&format!(" ({} not running)", down.join(", ")));
    }
    top.push_str(&starting::in_words(runtime));
    top.push('.');
    if is_talk {
        top.push_str(" /help");
    }
    // What is broken on purpose has its word in the line below.
    if !runtime.generation().configuration.is_demo {
        for problem in what_is_missing(runtime) {
            chat.note(&problem);
        }
    }
    chat.note(&top);
}

/// Servers that did not start and sources that could not be loaded, each with the reason.
fn what_is_missing(runtime: &Runtime) -> Vec<String> {
    let generation = runtime.generation();
    let problems = generation.problems.iter().map(ToString::to_string);
    let servers = views::servers::all(runtime);
    let down = servers
        .iter()
        .filter(|server| starting::text(server, "phase") == "down")
        .map(|server| {
            let name = starting::text(server, "name");
            not_running(name, starting::text(server, "reason"))
        });
    problems.chain(down).collect()
}

fn tell_what_was_found(chat: &Chat<'_>, found: &conversations::Found) {
    let said = value::counted(found.messages.len(), "message");
    let mut text = format!("Conversation {}, {said} so far.", found.stored.id());
    if found.unreadable > 0 {
        text.push_str(&format!(
            " {} could not be read and left out: it was cut off while it was written.",
            value::counted(found.unreadable, "line")
        ));
    }
    chat.note(&text);
}

fn find(session: &Session<'_>, id: &str) -> Result<conversations::Found, Failed> {
    let id = Some(id).filter(|id| !id.is_empty());
    conversations::find(&session.state(), id).map_err(|error| {
        let help = match &error {
            conversations::NotFound::Open(_) => "Leave that one first",
            _ => "steadyhand chat begins one; steadyhand chat --resume goes on with the last",
        };
        Failed::new(Exit::Usage, "no_conversation", error.to_string()).help(help)
    })
}

/// The prompt, with what stdin says below it.
async fn asked(args: &ChatArgs, interrupts: &mut Interrupts) -> Result<String, Failed> {
    let piped = tokio::select! {
        piped = stdin(args.prompt.is_some()) => piped?,
        code = interrupts.next() => return Err(Failed::interrupted(code)),
    };
    let parts = args.prompt.clone().into_iter().chain(piped);
    let asked = parts.collect::<Vec<_>>().join("\n\n");
    match asked.trim().is_empty() {
        true => Err(nothing_asked()),
        false => Ok(asked),
    }
}

async fn stdin(has_prompt: bool) -> Result<Option<String>, Failed> {
    if std::io::stdin().is_terminal() {
        return Ok(None);
    }
    let mut stdin = tokio::io::stdin();
    let mut text = Vec::new();
    let first = stdin.read_buf(&mut text);
    let first = match has_prompt {
        false => first.await,
        true => match tokio::time::timeout(STDIN_WAIT, first).await {
            Ok(first) => first,
            // It is open, and nobody writes to it.
            Err(_) => return Ok(None),
        },
    };
    let cannot = |error: std::io::Error| {
        let reason = steadyhand_config::document::plain(&error);
        Failed::new(
            Exit::Usage,
            "usage",
            format!("stdin cannot be read: {reason}"),
        )
    };
    if first.map_err(cannot)? == 0 {
        return Ok(None);
    }
    let mut rest = stdin.take(STDIN_BYTES_MAX);
    rest.read_to_end(&mut text).await.map_err(cannot)?;
    if text.len() as u64 > STDIN_BYTES_MAX {
        let message = format!("stdin has more than {} MiB", STDIN_BYTES_MAX >> 20);
        return Err(Failed::new(Exit::Usage, "usage", message)
            .help("Give the model a part of it, or a tool that reads the file"));
    }
    let text = String::from_utf8_lossy(&text).trim_end().to_owned();
    Ok(Some(text).filter(|text| !text.is_empty()))
}

fn nothing_asked() -> Failed {
    Failed::new(Exit::Usage, "usage", "nothing is asked")
        .help("steadyhand chat \"What is 12 * 34?\", or a question on stdin")
}
