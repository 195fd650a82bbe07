//! Calls of this process that wait for the person at the terminal. A server of the same configuration lists them, too:
//! whoever decides first does.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::keyboard::Keyboard;
use crate::remote::Remote;
use crate::{Session, screen};
use steadyhand_runtime::approvals::{Approval, ApprovalState, Decision, Desk, HiddenPart, hash_of};

/// What becomes of approvals may wait to be shown.
const NEWS_MAX: usize = 1024;
/// Between two looks for a server.
const LOOK: Duration = Duration::from_secs(2);
/// Who decides here.
const PERSON: &str = "the person at the terminal";
const ARGUMENTS_SHOWN_MAX: usize = 20;
/// A longer value is cut, and a yes to it takes a word of its own.
const VALUE_CHARS_MAX: usize = 1_000;
/// What allows a call whose arguments are not all shown.
const UNSEEN: &str = "unseen";

/// The person at the terminal.
pub(crate) struct Asking {
    desk: Desk,
    /// What asks: `this chat`.
    from: &'static str,
    news: mpsc::Receiver<Approval>,
    asked: Asked,
}

/// What the person is asked now.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Option<Approval>>>);

/// Says no to what the person is asked now.
#[derive(Clone)]
pub(crate) struct Denier {
    desk: Desk,
    asked: Asked,
}

/// How far the person is with an answer.
enum Stage {
    Choosing,
    Explaining,
}

impl Asking {
    pub(crate) fn new(desk: Desk, from: &'static str) -> Asking {
        let (tell, news) = mpsc::channel(NEWS_MAX);
        desk.tell(move |approval| drop(tell.try_send(approval.clone())));
        Asking {
            desk,
            from,
            news,
            asked: Asked::default(),
        }
    }

    pub(crate) fn denier(&self) -> Denier {
        Denier {
            desk: self.desk.clone(),
            asked: self.asked.clone(),
        }
    }

    /// Asks for as long as calls run. `pause` hears whether a question stands there: nothing else is drawn then.
    pub(crate) async fn attend(
        &mut self,
        session: &Session<'_>,
        pause: impl Fn(bool),
    ) -> Infallible {
        let asked = self.asked.clone();
        let mut waiting: VecDeque<Approval> = VecDeque::new();
        let mut withdrawn: HashMap<String, CancellationToken> = HashMap::new();
        let mut elsewhere = FuturesUnordered::new();
        let mut keyboard: Option<Keyboard> = None;
        let mut stage = Stage::Choosing;
        asked.set(None);
        loop {
            // All that is known, before a question is shown that may be answered already.
            let mut news: Vec<Approval> = Vec::new();
            while let Ok(one) = self.news.try_recv() {
                news.push(one);
            }
            if news.is_empty() && asked.get().is_none() {
                match waiting.pop_front() {
                    Some(next) => {
                        pause(true);
                        keyboard = Some(Keyboard::open());
                        asked.set(Some(next.clone()));
                        write(&question(&json!(next), self.from));
                        stage = Stage::Choosing;
                    }
                    None => pause(false),
                }
            }
            if news.is_empty() {
                tokio::select! {
                    one = self.news.recv() => news.extend(one),
                    line = line_of(&mut keyboard) => {
                        stage = self.typed(line.as_deref(), stage);
                    }
                    Some(()) = elsewhere.next(), if !elsewhere.is_empty() => {}
                }
            }
            for one in news {
                if one.state == ApprovalState::Waiting {
                    let token = CancellationToken::new();
                    withdrawn.insert(one.id.clone(), token.clone());
                    elsewhere.push(ask_elsewhere(session, &self.desk, one.clone(), token));
                    waiting.push_back(one);
                    continue;
                }
                if let Some(token) = withdrawn.remove(&one.id) {
                    token.cancel();
                }
                waiting.retain(|other| other.id != one.id);
                if asked.get().is_some_and(|asked| asked.id == one.id) {
                    asked.set(None);
                    keyboard = None;
                    write(&told(&one));
                }
            }
        }
    }

    /// What the person typed: an answer, the beginning of one, or nothing that is one.
    fn typed(&self, line: Option<&str>, stage: Stage) -> Stage {
        let Some(approval) = self.asked.get() else {
            return Stage::Choosing;
        };
        let decide = |is_yes: bool, reason: Option<String>| {
            let decision = said(&approval, is_yes, reason);
            let _ = self.desk.decide(&approval.id, decision);
        };
        let not_shown = not_shown(&json!(approval));
        match (stage, line.map(str::trim)) {
            // Nobody is there to say yes.
            (_, None) => decide(false, None),
            (Stage::Explaining, Some(reason)) => {
                let reason = (!reason.is_empty()).then(|| reason.to_owned());
                decide(false, reason);
            }
            (Stage::Choosing, Some(word)) => match word.to_lowercase().as_str() {
                "y" | "yes" if !not_shown.is_empty() => write(&second_step(&not_shown)),
                "y" | "yes" => decide(true, None),
                UNSEEN if !not_shown.is_empty() => decide(true, None),
                "n" | "no" => decide(false, None),
                "r" => {
                    write("  Reason: ");
                    return Stage::Explaining;
                }
                _ => write("  [y] yes   [n] no   [r] no, with a reason  "),
            },
        }
        Stage::Choosing
    }
}

impl Denier {
    /// Whether the person is asked something now.
    pub(super) fn is_needed(&self) -> bool {
        self.asked.get().is_some()
    }

    /// Whether there was something to say no to.
    pub(crate) fn deny(&self) -> bool {
        let Some(approval) = self.asked.get() else {
            return false;
        };
        let decision = said(&approval, false, None);
        self.desk.decide(&approval.id, decision).is_ok()
    }
}

impl Asked {
    fn get(&self) -> Option<Approval> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set(&self, approval: Option<Approval>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = approval;
    }
}

fn said(approval: &Approval, is_yes: bool, reason: Option<String>) -> Decision {
    Decision {
        is_yes,
        arguments_hash: approval.arguments_hash.clone(),
        // The person was asked a second time where something is not shown.
        unseen: is_yes,
        reason,
        by: PERSON.to_owned(),
        from: "command",
        not_of: None,
    }
}

async fn line_of(keyboard: &mut Option<Keyboard>) -> Option<String> {
    match keyboard {
        Some(keyboard) => keyboard.line().await,
        None => std::future::pending().await,
    }
}

/// Lists the call at a server of the same configuration, once there is one, until somebody there decides or nobody
/// needs to.
async fn ask_elsewhere(
    session: &Session<'_>,
    desk: &Desk,
    approval: Approval,
    withdrawn: CancellationToken,
) {
    let asking = async {
        let remote = loop {
            if let Ok(remote) = Remote::look(session, "chat").await {
                break remote;
            }
            tokio::time::sleep(LOOK).await;
        };
        let left_ms = approval
            .expires_ms
            .saturating_sub(steadyhand::clock::wall_ms());
        let question = json!({
            "tool": approval.tool,
            "arguments": approval.arguments,
            "arguments_cut": approval.arguments_cut,
            "hidden": approval.hidden,
            "arguments_hash": approval.arguments_hash,
            "always": approval.approval == "always",
            "call_id": approval.call_id,
            "conversation": approval.conversation,
            "wait_ms": left_ms,
        });
        let decided = remote.post("/v1/approvals", Some(&question)).await;
        decided.ok().map(|reply| reply.body)
    };
    let decided = tokio::select! {
        () = withdrawn.cancelled() => return,
        decided = asking => decided.unwrap_or_default(),
    };
    let is_yes = match decided["state"].as_str() {
        Some("approved") => true,
        Some("denied") => false,
        _ => return,
    };
    let text = |name: &str| decided[name].as_str().map(str::to_owned);
    let decision = Decision {
        is_yes,
        arguments_hash: text("arguments_hash").unwrap_or_default(),
        // The server has asked for it.
        unseen: is_yes,
        reason: text("reason"),
        by: text("decided_by").unwrap_or_else(|| "the server".to_owned()),
        // The server has the record of where it was decided there.
        from: "server",
        not_of: None,
    };
    // The person here was faster: theirs counts.
    let _ = desk.decide(&approval.id, decision);
}

/// Asks about a call that waits at a server: whether the person says yes, and the reason of a no.
pub(crate) async fn ask(approval: &Value, from: &str) -> (bool, Option<String>) {
    let mut keyboard = Keyboard::open();
    write(&question(approval, from));
    let not_shown = not_shown(approval);
    loop {
        let line = keyboard.line().await;
        match line
            .as_deref()
            .map(str::trim)
            .map(str::to_lowercase)
            .as_deref()
        {
            Some("y" | "yes") if !not_shown.is_empty() => write(&second_step(&not_shown)),
            Some("y" | "yes") => return (true, None),
            Some(UNSEEN) if !not_shown.is_empty() => return (true, None),
            // Nobody is there to say yes.
            None | Some("n" | "no") => return (false, None),
            Some("r") => {
                write("  Reason: ");
                let reason = keyboard.line().await.unwrap_or_default();
                let reason = reason.trim();
                return (false, (!reason.is_empty()).then(|| reason.to_owned()));
            }
            Some(_) => write("  [y] yes   [n] no   [r] no, with a reason  "),
        }
    }
}

/// An approval, as REST lists it, in words.
fn question(approval: &Value, from: &str) -> String {
    let tool = approval["tool"].as_str().unwrap_or_default();
    let mut text = format!("  {} wants to run\n", screen::visible(tool));
    for (name, value) in rows(&approval["arguments"]) {
        text.push_str(&format!("    {name:<8} {value}\n"));
    }
    for part in not_shown(approval) {
        text.push_str(&format!("    not shown: {part}\n"));
    }
    let how = match approval["approval"].as_str() {
        Some("always") => "asks every time",
        _ => "a yes counts for the same arguments in this conversation",
    };
    text.push_str(&format!("    {:<8} {from}, {how}\n", "from"));
    let moment = |name: &str| approval[name].as_u64().unwrap_or(0);
    let wait_ms = moment("expires_ms").saturating_sub(moment("asked_ms"));
    let wait = humantime::format_duration(Duration::from_millis(wait_ms));
    text.push_str(&format!(
        "  Allow?  [y] yes   [n] no   [r] no, with a reason   (waits {wait})  "
    ));
    text
}

/// Asks once more, where a yes is to something that nobody has seen.
fn second_step(not_shown: &[String]) -> String {
    let mut text = String::from("  A yes would be to parts that are not shown:\n");
    for part in not_shown {
        text.push_str(&format!("    {part}\n"));
    }
    text.push_str("  Allow them unseen?  [unseen] yes   [n] no   [r] no, with a reason  ");
    text
}

/// What the person does not see: what the approval itself does not show, and what is too long for a terminal.
fn not_shown(approval: &Value) -> Vec<String> {
    let hidden = approval["hidden"].as_array().into_iter().flatten();
    let hidden = hidden.filter_map(|part| HiddenPart::deserialize(part).ok());
    let mut parts: Vec<String> = hidden
        .map(|part| screen::visible(&part.in_words()))
        .collect();
    let fields = approval["arguments"].as_object().into_iter().flatten();
    for (index, (name, value)) in fields.enumerate() {
        let text = text_of(value);
        let (chars, name) = (text.chars().count(), screen::visible(name));
        if index >= ARGUMENTS_SHOWN_MAX || chars > VALUE_CHARS_MAX {
            let hash = hash_of(&text);
            parts.push(format!("{name}: {} bytes, {hash}", text.len()));
        }
    }
    parts
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Arguments by name, each in a line of its own; a terminal wraps what is longer.
fn rows(arguments: &Value) -> Vec<(String, String)> {
    let shown = |value: &Value| {
        let text = text_of(value);
        let cut: String = text.chars().take(VALUE_CHARS_MAX).collect();
        let mark = if cut.len() < text.len() { "…" } else { "" };
        screen::visible(&cut).replace(['\n', '\t'], " ") + mark
    };
    let Value::Object(fields) = arguments else {
        return vec![("with".to_owned(), shown(arguments))];
    };
    let mut rows: Vec<(String, String)> = fields
        .iter()
        .take(ARGUMENTS_SHOWN_MAX)
        .map(|(name, value)| (screen::visible(name), shown(value)))
        .collect();
    if fields.len() > rows.len() {
        let more = fields.len() - rows.len();
        rows.push(("…".to_owned(), format!("and {more} more")));
    }
    rows
}

/// What became of it, where the person did not see it being decided.
fn told(approval: &Approval) -> String {
    let by = approval.decided_by.as_deref().unwrap_or_default();
    let reason = approval.reason.as_deref();
    let reason = reason.map(|reason| format!(": {}", screen::visible(reason)));
    let reason = reason.unwrap_or_default();
    match approval.state {
        ApprovalState::Approved | ApprovalState::Denied if by == PERSON => String::new(),
        ApprovalState::Approved => format!("\n  Allowed by {by}.\n"),
        ApprovalState::Denied => format!("\n  Denied by {by}{reason}.\n"),
        ApprovalState::Expired => "\n  Nobody said anything in time.\n".to_owned(),
        ApprovalState::Withdrawn | ApprovalState::Waiting => "\n".to_owned(),
    }
}

fn write(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush());
}
