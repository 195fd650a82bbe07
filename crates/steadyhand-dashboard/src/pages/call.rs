//! `/calls/{id}`: why it failed or took so long, and what the model received. From `GET /v1/calls/{id}`.

use std::time::Duration;

use maud::{Markup, html};
use steadyhand::{Effect, Failure, FailureCode, Outcome, Output, StopReason};

use super::super::draw;
use super::super::format::{self, bytes, clock, counted, json, line, moment, span, visible};
use super::super::parts::{
    begun_ms, block, button, call_state, copied_code, sentence_of, tool_link,
};
use super::super::{Menu, Page, Request};
use steadyhand_server::http::history::whole;
use steadyhand_server::http::status::Refused;
use steadyhand_server::overview;
use steadyhand_store::history::{CallDetails, CallState, CallSummary};

/// What a page shows of one value, in bytes of HTML.
const VALUE_BYTES: usize = 10 * 1024;

pub(in super::super) async fn page(request: &Request, id: &str) -> Result<Page, Refused> {
    let whole = whole(&request.app, &request.identity, id).await?;
    let (call, details) = (&whole.row.call, &whole.details);
    let list = super::calls::text(&request.query);
    let is_running = call.state == CallState::Running;
    let body = html! {
        p.way { a href=(format!("/calls{list}")) { "Calls" } }
        div.head.page {
            h1 { "Call of " (visible(&call.tool)) " " (call_state(call)) }
            (actions(call, details, id))
        }
        p.sentence data-testid="sentence" { (sentence(call, details)) }
        @if !is_running {
            section.panel aria-labelledby="time-title" {
                div.head { h2 id="time-title" { "Where the time went" } span.mute { (time(call)) } }
                @if details.stages.is_empty() { p.empty { "The tool was never started." } }
                @else { (draw::waterfall::picture(call, details)) }
            }
        }
        div.columns.even {
            section.panel aria-labelledby="arguments-title" {
                div.head { h2 id="arguments-title" { "Arguments" } }
                (arguments(details))
            }
            @if !is_running { (received(call, details)) }
        }
        @if details.tries.iter().any(|one| one.code.is_some()) { (tries(details)) }
        (facts(call, details))
    };
    Ok(Page::new(
        format!(
            "{} {}",
            super::super::parts::state_words(call).1,
            line(&call.tool, 60)
        ),
        Menu::Calls,
        body,
    ))
}

fn actions(call: &CallSummary, details: &CallDetails, id: &str) -> Markup {
    let path = overview::page("calls", id);
    html! {
        div.actions {
            @if call.state == CallState::Running {
                (button(&format!("{path}/cancel"), "Cancel", "the call"))
            } @else {
                form.inline method="post" action=(format!("{path}/replay")) { button type="submit" data-key="replay" { "Replay" } }
                @if details.arguments.is_some() && !details.arguments_incomplete {
                    a.button href=(format!("{}?from={}", overview::page("tools", &call.tool), call.key)) { "Edit and replay" }
                }
            }
        }
    }
}

/// What happened, in a sentence or two.
fn sentence(call: &CallSummary, details: &CallDetails) -> Markup {
    let tries = counted(u64::from(call.attempts), "attempt");
    let (took, time) = (format::some_span(call.took_ms), time(call));
    let why = details
        .error
        .as_ref()
        .map(|error| line(&error.message, 400))
        .or_else(|| call.message.as_ref().map(|text| line(text, 400)));
    let why = why.map(|text| sentence_of(&text)).unwrap_or_default();
    let error = details.error.as_ref();
    let effect = error.map(Failure::effect_sentence);
    let effect = effect.or(call.effect.map(Effect::sentence));
    let fallback = details
        .stages
        .iter()
        .filter_map(|stage| stage.tool.as_ref())
        .next_back();
    html! {
        @match call.state {
            CallState::Running if call.waiting_for_approval => {
                strong { "Waiting for approval" } " for " (format::running(call.started_ms, None)) ". The tool was not started. " a href="/approvals" { "Decide" }
            }
            CallState::Running => {
                strong { "Running" } " for " (format::running(begun_ms(call), call.deadline_ms)) ", " (tries) " so far."
                @if let Some(waited) = call.approval_ms { " It waited " (span(waited)) " for an approval before." }
            }
            CallState::Ok => { strong { "Answered" } " in " (time) @if call.attempts > 1 { ", at attempt " (call.attempts) } "." }
            _ if call.fallback_used => {
                strong { "Degraded." } " Answered by " @match fallback { Some(tool) => { "its fallback " (tool_link(tool)) } None => { "its fallback" } }
                " after " (tries) " of " (visible(&call.tool)) " failed: " (why) " It took " (time) "."
            }
            CallState::Timeout => { strong { "Timed out" } " after " (tries) ", " (time) ": " (why) }
            CallState::Error => { strong { "Failed" } " after " (tries) " and " (took) ": " (why) }
            CallState::Cancelled => { strong { "Cancelled" } " by its caller after " (took) "." }
            CallState::Rejected => { strong { "Refused: " } (why) }
            CallState::Interrupted => { strong { "Interrupted" } ": " (why) }
        }
        @if let Some(effect) = effect { " " (effect) }
        @if call.replayed {
            " Answered with the outcome of "
            @match &call.replay_of { Some(of) => { a data-testid="first-call" href=(earlier_call(call, of)) { "the first call" } } None => { "an earlier call" } }
            " of the same idempotency key."
        }
    }
}

/// How long it took, and of how long it might have; the wait for an approval counts apart.
fn time(call: &CallSummary) -> String {
    let took = format::some_span(call.took_ms);
    let of = |deadline: f64| format!(" of {}", span(deadline));
    let of = call.deadline_ms.map(of).unwrap_or_default();
    match (call.took_ms, call.approval_ms) {
        (Some(all), Some(waited)) => {
            let running = span((all - waited).max(0.0));
            format!(
                "{took}: {} waiting for approval, then {running}{of}",
                span(waited)
            )
        }
        _ => format!("{took}{of}"),
    }
}

/// The page of the call that this one repeats. Callers may use one id for both: then the list has them.
fn earlier_call(call: &CallSummary, of: &str) -> String {
    match call.id == of {
        true => format!(
            "/calls{}",
            super::calls::text(&[("text".to_owned(), of.to_owned())])
        ),
        false => overview::page("calls", of),
    }
}

fn arguments(details: &CallDetails) -> Markup {
    html! {
        @match &details.arguments {
            Some(arguments) => { (block("Arguments", &json(arguments), VALUE_BYTES)) }
            None => { p.empty { "They are not kept." } }
        }
        @if details.arguments_incomplete { p.note { "Not whole: secrets are hidden, or they were too large to keep." } }
        @if !details.dropped_arguments.is_empty() { p.note { "Not passed on, since the tool does not take it: " (line(&details.dropped_arguments.join(", "), 400)) } }
        @if !details.coerced.is_empty() { p.note { (counted(details.coerced.len() as u64, "slip")) " in them mended before the tool got them." } }
    }
}

/// What the model reads as the result: made by the same code that makes it for the model.
fn received(call: &CallSummary, details: &CallDetails) -> Markup {
    let text = sent(call, details);
    html! {
        section.panel aria-labelledby="result-title" data-testid="received" {
            div.head { h2 id="result-title" { "What the model received" } }
            dl.pairs {
                dt { "Call id" } dd { (copied_code("the id", &call.id, 120)) }
                dt { "is_error" } dd { (if call.state == CallState::Ok { "false" } else { "true" }) }
                @if let Some(count) = details.result_bytes { dt { "Size" } dd { (bytes(count)) } }
                dt { "Truncated" } dd {
                    @match &details.truncated {
                        Some(cut) => { "yes: the tool gave " (bytes(cut.full_bytes as u64)) ", over its limit of " (bytes(cut.limit_bytes as u64)) }
                        None => { "no" }
                    }
                }
            }
            @if text.trim().is_empty() { p.empty { "The tool answered with no content." } }
            @else { (block("What the model received", &text, VALUE_BYTES)) }
            @if details.result_cut { p.note { "Only the beginning is kept here; the caller got more." } }
        }
    }
}

fn sent(call: &CallSummary, details: &CallDetails) -> String {
    let answer = details
        .result
        .clone()
        .map(|value| match &details.result_text {
            Some(text) => Output::json_with_text(value, text),
            None => Output::json(value),
        });
    let (result, fallback) = match (&details.error, answer) {
        (Some(failure), answer) => (Err(Box::new(failure.clone())), answer.map(Box::new)),
        (None, Some(answer)) => (Ok(answer), None),
        (None, None) => return String::new(),
    };
    let outcome = Outcome {
        call_id: call.id.clone(),
        tool_name: call.tool.clone(),
        result,
        fallback,
        execution_time: Duration::ZERO,
        approval_time: Duration::ZERO,
        attempts: call.attempts,
        coerced: Vec::new(),
        dropped_arguments: Vec::new(),
        replayed: false,
    };
    match outcome.message().content {
        steadyhand::Content::Text(text) => text,
        _ => String::new(),
    }
}

fn tries(details: &CallDetails) -> Markup {
    html! {
        section.panel aria-labelledby="tries-title" {
            div.head { h2 id="tries-title" { "Attempts" } }
            table.rows {
                caption.hidden { "Attempts" }
                thead { tr { th.number scope="col" { "No" } th.number scope="col" { "Took" } th scope="col" { "How it ended" } th scope="col" { "What next" } } }
                tbody {
                    @for one in &details.tries {
                        tr {
                            th.number scope="row" { (one.attempt) }
                            td.number { @match one.end_ms { Some(end) => (span(end - one.start_ms)), None => "–" } }
                            td { @match one.code { Some(code) => { code { (code.as_str()) } " " (line(one.message.as_deref().unwrap_or(""), 300)) } None => "Answered" } }
                            td.mute { @match (one.retry_in_ms, one.stopped) {
                                (Some(ms), _) => { "Again after " (span(ms)) }
                                (None, Some(reason)) => { (stopped(reason)) }
                                (None, None) => {}
                            } }
                        }
                    }
                }
            }
        }
    }
}

fn stopped(reason: StopReason) -> &'static str {
    match reason {
        StopReason::NoAttemptsLeft => "No attempts left",
        StopReason::NotRetryable => "Trying again would not help",
        StopReason::MayHaveActed => "It may have acted, and is not safe to repeat",
        StopReason::NoTimeLeft => "No time left for another",
        StopReason::NoBudgetLeft => "The tool's retry budget is used up",
    }
}

fn facts(call: &CallSummary, details: &CallDetails) -> Markup {
    let error = details.error.as_ref();
    html! {
        section.panel aria-labelledby="facts-title" {
            div.head { h2 id="facts-title" { "About this call" } }
            dl.pairs {
                dt { "Id" } dd { (copied_code("the id", &call.id, 200)) }
                dt { "Tool" } dd { (tool_link(&call.tool)) @if let Some(source) = call.source.as_ref().filter(|source| **source != call.tool) { span.mute { " of " (line(source, 80)) } } }
                dt { "Came in" } dd { (moment(call.started_ms)) " (" (clock(call.started_ms)) ")" }
                dt { "From" } dd { (line(call.caller.as_deref().unwrap_or("unknown"), 120)) }
                @if let Some(waited) = call.approval_ms { dt { "Approval" } dd data-testid="approval" { "Waited " (span(waited)) @if let Some(by) = details.approval.as_ref().and_then(|wait| wait.approved_by.as_deref()) { ", approved by " (line(by, 120)) } } }
                @if let Some(of) = &call.replay_of { dt { @if call.replayed { "First call of its key" } @else { "Replay of" } } dd { a href=(earlier_call(call, of)) { code { (line(of, 120)) } } } }
                @if let Some(trace) = &details.traceparent { dt { "Trace" } dd { code { (line(trace, 80)) } } }
                @if let Some(code) = call.code { dt { "Code" } dd { code { (code.as_str()) } " " (retryable(error, code)) } }
                @if let Some(error) = error.filter(|error| !error.user_message.is_empty()) { dt { "For people" } dd { (line(&error.user_message, 300)) } }
            }
            @if let Some(command) = command(call, details) {
                details { summary { "As a command" } (block("Command", &command, VALUE_BYTES)) }
            }
        }
    }
}

fn retryable(error: Option<&Failure>, code: FailureCode) -> &'static str {
    match error.map_or(code.is_retryable(), |error| error.retryable) {
        true => "another try could help",
        false => "another try would not help",
    }
}

fn command(call: &CallSummary, details: &CallDetails) -> Option<String> {
    let arguments = details
        .arguments
        .as_ref()
        .filter(|_| !details.arguments_incomplete)?;
    let arguments = arguments.to_string();
    let words = ["steadyhand", "call", &call.tool, "--args", &arguments];
    shlex::try_join(words).ok()
}
