//! What a turn looks like: the answer on stdout as it comes, one line for each tool on stderr. What is written stays.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar};
use serde_json::Value;
use steadyhand::{Event, Outcome, ToolManager, ToolMessage};
use steadyhand_models::{AgentEvent, NoticeCode};
use tokio::time::Instant;

use super::ShowTools;
use super::line::{self, Ended, Mark};
use super::live::{live_line, live_lines, lonely_line, width};
use crate::markdown;
use crate::screen::{self, Screen};
use crate::value;

/// What is over sooner would only flicker.
const GLIMPSE: Duration = Duration::from_millis(200);
/// From then on a running call shows how long it may still take.
const LONG: Duration = Duration::from_secs(2);
/// A model that takes longer to say something shows that it was asked.
const SILENCE: Duration = Duration::from_secs(1);
/// What `--show-tools full` prints of a result.
const RESULT_CHARS_MAX: usize = 4000;

/// Draws a conversation. Belongs to one terminal.
pub(super) struct Show {
    how: How,
    tools: ShowTools,
    manager: ToolManager,
    model: String,
    text: Option<markdown::Stream>,
    /// The last letter on stdout was a line break, or there was none yet.
    is_fresh: bool,
    drawn: Option<MultiProgress>,
    calls: Vec<Shown>,
    waiting: Option<Waiting>,
    /// The result that came last.
    last: Option<ToolMessage>,
    /// Somebody is being asked: nothing is drawn over the question.
    is_paused: bool,
}

/// How this run may talk.
#[derive(Clone, Copy)]
struct How {
    /// The answer goes to stdout as it comes.
    speaks: bool,
    /// Each event as JSON instead.
    events: bool,
    quiet: bool,
    /// Lines for people, drawn over while something runs.
    live: bool,
    /// Lines for people; else lines for logs.
    pretty: bool,
    color: bool,
    stdout_is_terminal: bool,
}

/// A call that has not got its last line yet.
struct Shown {
    id: String,
    name: String,
    args: String,
    began: Instant,
    note: Option<String>,
    ended: Option<String>,
    bar: Option<ProgressBar>,
}

struct Waiting {
    since: Instant,
    thinks: bool,
    bar: Option<ProgressBar>,
}

impl Show {
    pub(super) fn new(
        screen: &Screen,
        tools: ShowTools,
        events: bool,
        manager: &ToolManager,
        model: &str,
    ) -> Show {
        let pretty = screen.stderr_is_terminal && !screen.plain;
        let how = How {
            speaks: !screen.json,
            events: screen.json && events,
            quiet: screen.quiet,
            live: screen.has_bars() && !screen.quiet,
            pretty,
            color: screen.stderr_color,
            stdout_is_terminal: screen.stdout_is_terminal,
        };
        let styles = screen.stdout_is_terminal && screen.stdout_color && !screen.plain;
        Show {
            how,
            tools,
            manager: manager.clone(),
            model: model.to_owned(),
            text: styles.then(markdown::Stream::default),
            is_fresh: true,
            drawn: None,
            calls: Vec::new(),
            waiting: None,
            last: None,
            is_paused: false,
        }
    }

    /// Another model answers from here on.
    pub(super) fn set_model(&mut self, model: &str) {
        model.clone_into(&mut self.model);
    }

    /// The result that came last.
    pub(super) fn last(&self) -> Option<&ToolMessage> {
        self.last.as_ref()
    }

    pub(super) fn event(&mut self, event: &AgentEvent) {
        if self.how.events {
            let line = serde_json::to_string(event).unwrap_or_default();
            self.write(&format!("{line}\n"));
        }
        match event {
            AgentEvent::Asked { .. } => self.wait(),
            AgentEvent::Text { text } => self.say(text),
            AgentEvent::Thinking { .. } => {
                if let Some(waiting) = &mut self.waiting {
                    waiting.thinks = true;
                }
            }
            AgentEvent::Retry {
                attempt,
                attempts_max,
                wait_ms,
                reason,
            } => {
                let wait = value::duration(Duration::from_millis(*wait_ms));
                let text = format!("{reason}; asked again in {wait}, {attempt} of {attempts_max}");
                self.remark(Mark::Look, &text);
            }
            AgentEvent::Notice(notice) => match notice.code {
                // Who is asked what to do then need not be told.
                NoticeCode::LimitReached | NoticeCode::OpenCallsAnswered => {}
                _ => self.remark(Mark::Look, &notice.message),
            },
            AgentEvent::CallStarted {
                call_id,
                name,
                args,
            } => self.start(call_id, name, args),
            AgentEvent::CallFinished {
                call_id,
                name,
                elapsed_ms,
                result,
                outcome,
            } => {
                let elapsed = Duration::try_from_secs_f64(elapsed_ms / 1e3).unwrap_or_default();
                self.finish(call_id, name, elapsed, result, outcome.as_ref());
            }
            AgentEvent::Message { .. } => self.stop_waiting(),
        }
    }

    /// What the engine tells about a call that runs.
    pub(super) fn engine(&mut self, event: &Event) {
        let (id, note) = match event {
            Event::AttemptFailed {
                call_id,
                tool_name,
                attempt,
                message,
                retry_in_ms: Some(_),
                ..
            } => {
                let most = self.manager.policy(tool_name);
                let most = most.map_or(0, |policy| policy.retry.attempts);
                // It may have another policy by now.
                let most = most.max(attempt + 1);
                (call_id, format!("{message}, try {} of {most}", attempt + 1))
            }
            Event::FallbackStarted { call_id, .. } => {
                (call_id, "failed, asking its fallback".to_owned())
            }
            _ => return,
        };
        let Some(call) = self.calls.iter_mut().find(|call| call.id == *id) else {
            return;
        };
        let line = format!("tool retry {} {note} call={id}", call.name);
        call.note = Some(note);
        if !self.how.pretty {
            self.log(&line);
        }
    }

    /// Takes away what is drawn over, for a question.
    pub(super) fn pause(&mut self) {
        self.is_paused = true;
        self.stop_waiting();
        self.end_text();
        for call in &mut self.calls {
            if let Some(bar) = call.bar.take() {
                bar.finish_and_clear();
            }
        }
        self.drawn = None;
    }

    pub(super) fn resume(&mut self) {
        self.is_paused = false;
    }

    /// Draws what runs, as it is now.
    pub(super) fn tick(&mut self) {
        if !self.how.live || self.is_paused {
            return;
        }
        let now = Instant::now();
        self.show_waiting(now);
        if self.tools == ShowTools::None {
            return;
        }
        let is_due = |call: &Shown| call.ended.is_none() && now - call.began >= GLIMPSE;
        if !self.calls.iter().any(is_due) {
            return;
        }
        let width = width();
        let drawn = self.drawn.get_or_insert_with(live_lines);
        for call in &mut self.calls {
            let line = match &call.ended {
                Some(line) => line.clone(),
                None => running(call, now, &self.manager, width),
            };
            let bar = call.bar.get_or_insert_with(|| drawn.add(live_line()));
            bar.set_message(line);
        }
    }

    /// The turn is over: nothing is left half drawn.
    pub(super) fn end(&mut self) {
        self.is_paused = false;
        self.stop_waiting();
        self.calls.retain_mut(|call| {
            if let Some(bar) = call.bar.take() {
                bar.finish_and_clear();
            }
            false
        });
        self.drawn = None;
        self.end_text();
    }

    /// A line for people, below what was said.
    pub(super) fn remark(&mut self, mark: Mark, text: &str) {
        self.stop_waiting();
        self.end_text();
        match self.how.pretty {
            true => {
                let text = text.lines().next().unwrap_or_default();
                let line = line::drawn(mark, "", "", None, width(), self.how.color);
                self.log(&format!("{line} {text}"));
            }
            false => self.log(&format!("note: {text}")),
        }
    }

    fn start(&mut self, id: &str, name: &str, args: &Value) {
        self.stop_waiting();
        self.end_text();
        self.calls.push(Shown {
            id: id.to_owned(),
            name: name.to_owned(),
            args: line::arguments(args),
            began: Instant::now(),
            note: None,
            ended: None,
            bar: None,
        });
    }

    fn finish(
        &mut self,
        id: &str,
        name: &str,
        elapsed: Duration,
        result: &ToolMessage,
        outcome: Option<&Arc<Outcome>>,
    ) {
        self.stop_waiting();
        self.end_text();
        self.last = Some(result.clone());
        let place = self
            .calls
            .iter()
            .position(|call| call.id == id && call.ended.is_none());
        let place = place.unwrap_or_else(|| {
            self.start(id, name, &Value::Null);
            self.calls.len() - 1
        });
        let call = &self.calls[place];
        let ended = Ended {
            call_id: id,
            name,
            args: &call.args,
            elapsed,
            result,
            outcome: outcome.map(|outcome| &**outcome),
        };
        let mut text = match self.how.pretty {
            true => ended.drawn(width(), self.how.color),
            false => ended.logged(),
        };
        if self.tools == ShowTools::Full {
            text.push_str(&in_full(&ended));
        }
        self.calls[place].ended = Some(text);
        self.write_what_ended();
    }

    /// Lines that are final, in the order asked: one that ended early waits for those before it.
    fn write_what_ended(&mut self) {
        if !self.how.pretty {
            // A log wants to know at once.
            let place = self.calls.iter().position(|call| call.ended.is_some());
            if let Some(place) = place {
                let call = self.calls.remove(place);
                self.log_call(&call.ended.unwrap_or_default());
            }
            return;
        }
        while self.calls.first().is_some_and(|call| call.ended.is_some()) {
            let call = self.calls.remove(0);
            if let Some(bar) = &call.bar {
                bar.finish_and_clear();
            }
            self.log_call(&call.ended.unwrap_or_default());
        }
        if self.calls.is_empty() {
            self.drawn = None;
        }
    }

    fn log_call(&self, text: &str) {
        if self.tools != ShowTools::None {
            self.log(text);
        }
    }

    /// A line on stderr, above what is drawn over.
    fn log(&self, text: &str) {
        if self.how.quiet {
            return;
        }
        let write = || {
            let _ = writeln!(std::io::stderr().lock(), "{text}");
        };
        match &self.drawn {
            Some(drawn) => drawn.suspend(write),
            None => write(),
        }
    }

    fn wait(&mut self) {
        self.waiting = Some(Waiting {
            since: Instant::now(),
            thinks: false,
            bar: None,
        });
    }

    fn show_waiting(&mut self, now: Instant) {
        let Some(waiting) = &mut self.waiting else {
            return;
        };
        let since = now - waiting.since;
        if since < SILENCE {
            return;
        }
        let bar = waiting.bar.get_or_insert_with(lonely_line);
        let does = if waiting.thinks {
            "thinks"
        } else {
            "was asked"
        };
        let text = format!("{} {does}, Ctrl-C stops", self.model);
        let line = line::drawn(Mark::Running, &text, "", Some(since), width(), false);
        bar.set_message(line);
    }

    fn stop_waiting(&mut self) {
        if let Some(bar) = self.waiting.take().and_then(|waiting| waiting.bar) {
            bar.finish_and_clear();
        }
    }

    fn say(&mut self, text: &str) {
        self.stop_waiting();
        if !self.how.speaks || text.is_empty() {
            return;
        }
        let text = match self.how.stdout_is_terminal {
            true => screen::visible(text),
            false => text.to_owned(),
        };
        self.is_fresh = text.ends_with('\n');
        let text = match &mut self.text {
            Some(stream) => stream.push(&text),
            None => text,
        };
        self.write(&text);
    }

    fn end_text(&mut self) {
        if let Some(rest) = self.text.as_mut().map(markdown::Stream::finish) {
            self.write(&rest);
        }
        if !self.is_fresh {
            self.write("\n");
            self.is_fresh = true;
        }
    }

    #[allow(
        clippy::unused_self,
        reason = "what is written belongs to this terminal"
    )]
    fn write(&self, text: &str) {
        let mut stdout = std::io::stdout().lock();
        // A reader that has seen enough has closed the pipe.
        let _ = stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush());
    }
}

fn running(call: &Shown, now: Instant, tools: &ToolManager, width: usize) -> String {
    let elapsed = now - call.began;
    let mark = match call.note {
        Some(_) => Mark::Look,
        None => Mark::Running,
    };
    let mut more = String::new();
    if elapsed >= LONG
        && let Some(policy) = tools.policy(&call.name)
    {
        more = format!("of {}, Ctrl-C stops", value::duration(policy.deadline));
    }
    if let Some(note) = &call.note {
        more = format!("{more}  {note}");
    }
    let text = format!("{} {}", call.name, call.args);
    line::drawn(mark, text.trim_end(), &more, Some(elapsed), width, false)
}

fn in_full(ended: &Ended<'_>) -> String {
    let text = ended.result.content.text();
    let text: String = text.chars().take(RESULT_CHARS_MAX).collect();
    let text = screen::visible(&text);
    let lines = text.lines().map(|line| format!("\n      {line}"));
    lines.collect()
}
