//! A conversation at the terminal: lines in, answers out, commands that begin with a slash.

use std::path::PathBuf;
use std::time::Duration;

use steadyhand_models::End;
use tokio::time::Instant;

use super::editor::{Prompt, Typed};
use super::keys::Keys;
use super::turn::{Chat, Left, Turned, Way};
use crate::error::{Exit, Failed};
use crate::{Interrupts, value};
use steadyhand_config::document::plain;
use steadyhand_runtime::models;
use steadyhand_server::conversations;

/// Two Ctrl-C within this time leave.
pub(super) const AGAIN: Duration = Duration::from_secs(2);
const HELP: &str = "\
/tools          the tools there are
/model [NAME]   which model answers; another one from here on
/retry          ask again what was asked last
/last           the last tool result, in full
/save [FILE]    where this conversation is kept; a copy of it
/quit           leave (so does Ctrl-D)
Ctrl-C or Esc stops an answer or a tool. A line that begins with a space is never a command.";

/// What is done after a line.
enum Next {
    /// Read on; Ctrl-C stopped an answer then, and another one soon after leaves.
    Read(Option<Instant>),
    Leave,
}

/// Reads and answers until the person leaves.
pub(super) async fn run(chat: &mut Chat<'_>, interrupts: &mut Interrupts) -> Result<(), Failed> {
    let mut prompt = Prompt::new()?;
    let mut interrupted: Option<Instant> = None;
    if chat.is_unanswered() {
        chat.note("The last question has no answer yet; going on with it. Ctrl-C stops.");
        interrupted = answer(chat, &mut prompt, interrupts).await?;
    }
    loop {
        let typed = prompt.line("> ", interrupts).await;
        let line = match typed {
            Typed::Line(line) => line,
            Typed::Interrupt => {
                if interrupted.is_some_and(|at| at.elapsed() < AGAIN) {
                    return Err(Failed::silent(Exit::Signal(130)));
                }
                interrupted = Some(Instant::now());
                chat.note("Ctrl-C again or Ctrl-D to leave");
                continue;
            }
            Typed::End => return Ok(()),
            Typed::Signal(code) => return Err(Failed::silent(Exit::Signal(code))),
        };
        interrupted = None;
        if line.trim().is_empty() {
            continue;
        }
        let next = match line.strip_prefix('/') {
            Some(command) => obey(chat, command, &mut prompt, interrupts).await?,
            None => {
                chat.say(line.trim());
                Next::Read(answer(chat, &mut prompt, interrupts).await?)
            }
        };
        match next {
            Next::Read(stopped) => interrupted = stopped,
            Next::Leave => return Ok(()),
        }
    }
}

async fn obey(
    chat: &mut Chat<'_>,
    command: &str,
    prompt: &mut Prompt,
    interrupts: &mut Interrupts,
) -> Result<Next, Failed> {
    let (word, rest) = command.split_once(' ').unwrap_or((command, ""));
    let rest = rest.trim();
    match word.trim() {
        "help" | "?" => chat.note(HELP),
        "tools" => chat.note(&tools(chat)),
        "model" => model(chat, rest),
        "retry" => match chat.take_back() {
            true => return Ok(Next::Read(answer(chat, prompt, interrupts).await?)),
            false => chat.note("Nothing was asked yet."),
        },
        "last" => {
            let last = chat.last_result();
            chat.note(last.as_deref().unwrap_or("No tool was called yet."));
        }
        "save" => save(chat, rest),
        "quit" | "exit" | "q" => return Ok(Next::Leave),
        other => chat.note(&format!("There is no command /{other}. /help lists them.")),
    }
    Ok(Next::Read(None))
}

/// Answers what was said last; asks what to do where tools were used as often as they may be. Gives back when Ctrl-C
/// stopped it, if that is how it ended.
async fn answer(
    chat: &mut Chat<'_>,
    prompt: &mut Prompt,
    interrupts: &mut Interrupts,
) -> Result<Option<Instant>, Failed> {
    let mut way = Way::WithTools;
    loop {
        let mut keys = Keys::listen();
        let turned = chat.turn(way, interrupts, Some(&mut keys)).await;
        prompt.begin_with(&keys);
        drop(keys);
        match turned {
            Turned::Left(Left { code }) => return Err(Failed::silent(Exit::Signal(code))),
            Turned::Ended(ended) => match &ended.turn.end {
                End::LimitReached => {
                    let rounds = value::counted(ended.turn.rounds as usize, "round");
                    chat.note(&format!(
                        "{rounds} of tools this turn. Continue, answer now, or stop?"
                    ));
                    way = match prompt.line("[c/a/s] ", interrupts).await {
                        Typed::Line(line) if line.trim().starts_with(['c', 'C']) => Way::WithTools,
                        Typed::Line(line) if line.trim().starts_with(['a', 'A']) => Way::AnswerNow,
                        Typed::Signal(code) => return Err(Failed::silent(Exit::Signal(code))),
                        Typed::Line(_) | Typed::Interrupt | Typed::End => return Ok(None),
                    };
                }
                End::Failed(error) => {
                    chat.failed(error).print(chat.session.screen);
                    chat.note("/retry asks again.");
                    return Ok(None);
                }
                End::Cancelled => {
                    chat.note(&ended.what_was_stopped());
                    return Ok(ended.signal.map(|_| Instant::now()));
                }
                End::Refused => {
                    chat.note("The model would not answer that.");
                    return Ok(None);
                }
                End::Answered | End::CutOff => return Ok(None),
            },
        }
    }
}

fn tools(chat: &Chat<'_>) -> String {
    let tools = chat.runtime.manager().list();
    let widths = tools.iter().map(|tool| tool.name().chars().count());
    let width = value::column_width(widths);
    let lines = tools.iter().map(|tool| {
        let description = tool.description().lines().next().unwrap_or_default();
        let state = match chat.runtime.unavailable(tool.name()) {
            Some(reason) => format!("(not available: {reason}) "),
            None => String::new(),
        };
        format!("{:width$}  {state}{description}", tool.name())
    });
    let lines: Vec<String> = lines.collect();
    match lines.is_empty() {
        true => "There are no tools.".to_owned(),
        false => lines.join("\n"),
    }
}

fn model(chat: &mut Chat<'_>, name: &str) {
    if name.is_empty() {
        let names = models::list(&chat.configuration).into_iter();
        let names: Vec<String> = names.map(|model| model.name).collect();
        chat.note(&format!("{}. There are: {}", chat.who(), names.join(", ")));
        return;
    }
    let surroundings = &chat.session.surroundings;
    match models::choose(&chat.configuration, surroundings, Some(name)) {
        Ok(chosen) => {
            chat.change(chosen);
            chat.note(&format!("{} answers from here on.", chat.who()));
        }
        Err(error) => Failed::from(error).print(chat.session.screen),
    }
}

fn save(chat: &Chat<'_>, file: &str) {
    if file.is_empty() {
        chat.note(&match chat.path() {
            Some(path) => format!(
                "Kept in {} as it goes. steadyhand chat --resume goes on with it; /save FILE makes a copy.",
                path.display()
            ),
            None => "Nothing was said yet, or it cannot be kept; /save FILE makes a copy.".to_owned(),
        });
        return;
    }
    let path: PathBuf = chat.session.surroundings.current.join(file);
    let saved = conversations::save(&path, chat.conversation());
    chat.note(&match saved {
        Ok(()) => format!(
            "{} written to {}",
            value::counted(chat.conversation().len(), "message"),
            path.display()
        ),
        Err(error) => format!("{} cannot be written: {}", path.display(), plain(&error)),
    });
}
