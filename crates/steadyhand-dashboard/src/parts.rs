//! What several pages show in the same way.

use maud::{Markup, html};
use steadyhand::BreakerState;

use super::format::{self, counted, cut, failure_line, line, some_span, visible, when};
use steadyhand_server::overview::{Problem, Severity, page};
use steadyhand_store::history::{CallState, CallSummary, Counts, Mark};

/// A state in words, with a colour that says the same.
pub(super) fn badge(tone: &str, word: &str) -> Markup {
    html! { span.badge.(tone) { (word) } }
}

/// How a call stands, or ended.
pub(super) fn call_state(call: &CallSummary) -> Markup {
    let (tone, word) = state_words(call);
    badge(tone, word)
}

pub(super) fn state_words(call: &CallSummary) -> (&'static str, &'static str) {
    match call.state {
        _ if call.fallback_used => ("warn", "Fallback"),
        CallState::Running if call.waiting_for_approval => ("warn", "Waiting for approval"),
        CallState::Running => ("info", "Running"),
        CallState::Ok => ("good", "OK"),
        CallState::Error => ("bad", "Failed"),
        CallState::Timeout => ("bad", "Timed out"),
        CallState::Cancelled => ("mute", "Cancelled"),
        CallState::Rejected => ("bad", "Refused"),
        CallState::Interrupted => ("bad", "Interrupted"),
    }
}

pub(super) fn breaker_state(state: Option<BreakerState>) -> Markup {
    match state {
        Some(BreakerState::Closed) => badge("good", "Closed"),
        Some(BreakerState::Open) => badge("bad", "Open"),
        Some(BreakerState::HalfOpen) => badge("warn", "Half-open"),
        None => html! { span.mute { "None" } },
    }
}

/// The page of a call: by its key, which no other call has; one that runs has none yet.
pub(super) fn call_path(call: &CallSummary) -> String {
    match call.state {
        CallState::Running => page("calls", &call.id),
        _ => page("calls", &call.key),
    }
}

/// The page of a call that runs.
pub(super) fn call_path_of_running(id: &str) -> String {
    page("calls", id)
}

pub(super) fn tool_link(tool: &str) -> Markup {
    html! { a href=(page("tools", tool)) { (visible(tool)) } }
}

/// An id is long: its end tells it from others.
pub(super) fn short_id(id: &str) -> String {
    let shown = visible(id);
    let chars = shown.chars().count();
    match chars > 14 {
        true => format!("…{}", shown.chars().skip(chars - 8).collect::<String>()),
        false => shown,
    }
}

/// What is broken, or that nothing is.
pub(super) fn problems(problems: &[Problem], tools: usize) -> Markup {
    html! {
        section.problems id="problems" aria-label="Problems" data-testid="problems" {
            @if problems.is_empty() {
                p.fine { span.dot.good {} strong { @if tools == 0 { "No tools yet" } @else { "All tools answer" } }
                    @if tools == 0 { span.mute { " Add some to steadyhand.toml, then reload." } } }
            } @else {
                ul {
                    @for problem in problems {
                        li.(tone(problem.severity)) data-testid="problem" {
                            span.word { (word(problem.severity)) }
                            strong { (visible(&problem.subject)) }
                            span.what { (failure_line(&problem.message, 240))
                                @if let Some(until_ms) = problem.until_ms { "; " (next(problem)) " " (format::until(until_ms)) } }
                            a href=(problem.path) { (problem.see) span.hidden { " of " (visible(&problem.subject)) } }
                        }
                    }
                }
            }
        }
    }
}

fn next(problem: &Problem) -> &'static str {
    match problem.path.split('/').nth(1) {
        Some("servers") => "next start",
        Some("calls") => "its deadline is",
        Some("approvals") => "it expires",
        _ => "next trial",
    }
}

fn tone(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "bad",
        Severity::Warning => "warn",
    }
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "Broken",
        Severity::Warning => "Warning",
    }
}

/// A foreign text in full, or as much of it as a page can hold.
pub(super) fn block(label: &str, text: &str, bytes_max: usize) -> Markup {
    let (shown, rest) = cut(text, bytes_max);
    html! {
        div.copyable {
            pre tabindex="0" aria-label=(label) data-copied { (shown) }
            (copy_button(label))
        }
        @if rest > 0 {
            p.note { "Cut here: " (format::bytes(rest as u64)) " more. The whole is in the REST answer." }
        }
    }
}

/// Copies what is marked as `data-copied` beside it; only where scripts run.
pub(super) fn copy_button(what: &str) -> Markup {
    html! { button.copy type="button" aria-live="polite" title=(format!("Copy: {what}")) { "Copy" } }
}

/// A text in one line that people carry elsewhere: an id, a command. All of it is copied, even if less is shown.
pub(super) fn copied_code(what: &str, text: &str, chars_max: usize) -> Markup {
    html! { span.copyable { code data-copied=(text) { (line(text, chars_max)) } " " (copy_button(what)) } }
}

/// What changed, as a list under a chart.
pub(super) fn marks(marks: &[Mark], most: usize) -> Markup {
    let shown = marks.iter().rev().take(most);
    html! {
        @if !marks.is_empty() {
            ul.marks aria-label="What changed" data-testid="marks" {
                @for mark in shown {
                    li { span.flag.(mark.kind.as_str()) {} (when(mark.at_ms)) " " (line(&mark.text, 160)) }
                }
                @if marks.len() > most { li.mute { (counted((marks.len() - most) as u64, "earlier change")) } }
            }
        }
    }
}

/// Something was not done, and what to do.
pub(super) fn refusal(message: &str, help: &str) -> Markup {
    html! {
        h1 { "That did not work" }
        section.panel {
            p { (line(message, 2000)) }
            @if !help.is_empty() { p.mute { (line(help, 1000)) } }
            p { a.button href="/" { "To the overview" } }
        }
    }
}

/// A form that is one button.
pub(super) fn button(action: &str, label: &str, about: &str) -> Markup {
    html! {
        form.inline method="post" action=(action) {
            button type="submit" { (label) @if !about.is_empty() { span.hidden { " " (about) } } }
        }
    }
}

/// Since when the deadline of a running call counts: since its approval, if it needed one.
pub(super) fn begun_ms(call: &CallSummary) -> u64 {
    call.started_ms + call.approval_ms.unwrap_or(0.0) as u64
}

/// What became of the calls of a span of time. The error rate is the share of failed calls among those that ran.
pub(super) fn in_words(counts: &Counts) -> String {
    let mut words = vec![counted(counts.calls, "call")];
    if let Some(rate) = counts.error_rate() {
        let (failed, ran) = (format::count(counts.failed()), format::count(counts.ran));
        words.push(format!(
            "{failed} of the {ran} that ran failed ({})",
            format::share(rate)
        ));
    }
    for (number, what) in [
        (counts.rejected, "refused"),
        (counts.cancelled, "cancelled"),
    ] {
        if number > 0 {
            words.push(format!("{} {what}", format::count(number)));
        }
    }
    words.join(", ")
}

/// Why a call failed, and what it did out there.
pub(super) fn failure_text(call: &CallSummary, chars_max: usize) -> Markup {
    let message = call.message.as_deref().unwrap_or_default();
    html! {
        @if !message.is_empty() { (sentence_of(&line(message, chars_max))) " " }
        @if let Some(effect) = call.effect { (effect.sentence()) }
    }
}

/// With a full stop, for what comes after it.
pub(super) fn sentence_of(text: &str) -> String {
    let text = text.trim_end();
    match text.ends_with(['.', '!', '?', '…']) || text.is_empty() {
        true => text.to_owned(),
        false => format!("{text}."),
    }
}

/// How long a call took, or has been running.
pub(super) fn took(call: &CallSummary) -> Markup {
    match call.state {
        CallState::Running if call.waiting_for_approval => format::running(call.started_ms, None),
        CallState::Running => format::running(begun_ms(call), call.deadline_ms),
        _ => html! { (some_span(call.took_ms)) },
    }
}
