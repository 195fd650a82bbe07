//! `/tools/{name}`: how a tool fares, why its breaker is open, what governs it, and a form to try it. From
//! `GET /v1/tools/{name}`, `/v1/trends?tool=`, `/v1/calls?tool=`.

use maud::{Markup, html};
use serde_json::Value;
use steadyhand::BreakerState;

use super::super::draw;
use super::super::form::{self, Filled};
use super::super::format::{self, clock, count, counted, line, some_share, visible};
use super::super::parts::{
    badge, block, breaker_state, button, call_path, call_state, failure_text, took,
};
use super::super::{Menu, Page, Request};
use steadyhand_config::role::Right;
use steadyhand_runtime::pins::suspicious_in;
use steadyhand_server::http::history::{Calls, calls, trends_of};
use steadyhand_server::http::status::Refused;
use steadyhand_server::http::tools::no_such_tool;
use steadyhand_server::overview;
use steadyhand_server::views;
use steadyhand_store::history::{CallSummary, Counts, Trends, Window};

/// The last calls, as squares and in a list.
const LAST: usize = 20;
const LISTED: usize = 8;
const SCHEMA_BYTES: usize = 8 * 1024;

pub(in super::super) async fn page(request: &Request, name: &str) -> Result<Page, Refused> {
    let from = match request.asked("from") {
        Some(id) => Filled::of_call(request, id).await?,
        None => Filled::default(),
    };
    with_form(request, name, &from).await
}

/// The page with a form that holds something already.
pub(in super::super) async fn with_form(
    request: &Request,
    name: &str,
    filled: &Filled,
) -> Result<Page, Refused> {
    let app = &request.app;
    let Some(view) = views::tools::one(&app.runtime, name) else {
        return left_out(request, name);
    };
    let name = view["name"].as_str().unwrap_or(name);
    let window: Window = request
        .asked("window")
        .and_then(|text| text.parse().ok())
        .unwrap_or_default();
    let trends = trends_of(app, Some(name.to_owned()), window).await.ok();
    let change = app.pins.change_of(name);
    let is_foreign = view["kind"] == "mcp";
    let pairs =
        [("tool", name), ("limit", "20")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    let last = calls(app, &request.identity, &pairs).await.ok();
    let last = last.map(|Calls { calls, .. }| {
        calls
            .into_iter()
            .map(|listed| listed.call)
            .take(LAST)
            .collect()
    });
    let last: Vec<CallSummary> = last.unwrap_or_default();
    let body = html! {
        p.way { a href="/tools" { "Tools" } }
        div.head.page {
            h1 { (visible(name)) " " (state(&view)) }
            span.mute { (line(&kind(&view), 120)) }
        }
        (description(&view, is_foreign && change.is_none()))
        @if let Some(change) = &change { (super::changes::of_tool(change, &request.identity)) }
        @if let Some(reason) = view["reason"].as_str() { p.bad data-testid="reason" { (line(reason, 600)) } }
        nav.quick aria-label="How far back" {
            @for (one, label) in super::trends::WINDOWS {
                a href=(format!("{}?window={}", overview::page("tools", name), one.as_str())) aria-current=[(one == window).then_some("true")] { (label) }
            }
        }
        @if let Some(trends) = &trends { (figures(&view, trends)) }
        div.columns.even {
            section.panel aria-labelledby="times-title" {
                div.head { h2 id="times-title" { "Latency, last " (window_word(window)) } a href=(format!("/trends?window={}&tool={}", window.as_str(), query(name))) { "Trends" } }
                @if let Some(trends) = &trends {
                    (draw::histogram::picture(&trends.times))
                    @if !trends.times.is_empty() { (super::trends::times(trends).draw(trends)) }
                    (super::super::parts::marks(&trends.marks, 3))
                }
                @else { p.empty { "The history cannot be read." } }
            }
            section.panel aria-labelledby="try-title" {
                div.head { h2 id="try-title" { "Try it" } }
                (form::form(name, &view["schema"], filled, is_safe(&view)))
            }
        }
        (breaker(&view, name, &last))
        section.panel aria-labelledby="last-title" {
            div.head { h2 id="last-title" { "Last calls" } a href=(format!("/calls?tool={}", query(name))) { "All of them" } }
            (list(&last))
        }
        (failures(&view["metrics"]["errorsByCode"]))
        (policy(&view["policy"]))
        section.panel aria-labelledby="definition-title" {
            div.head { h2 id="definition-title" { "Definition" } span.mute { "about " (count(tokens(&view))) " tokens in a model's context" } }
            details { summary { "JSON Schema of its arguments" } (block("JSON Schema", &format::json(&view["schema"]), SCHEMA_BYTES)) }
        }
    };
    Ok(Page::new(line(name, 60), Menu::Tools, body))
}

fn window_length(window: Window) -> &'static str {
    match window {
        Window::Hour => "1 h",
        Window::Day => "1 day",
        Window::Week => "7 days",
    }
}

fn window_word(window: Window) -> &'static str {
    match window {
        Window::Hour => "hour",
        Window::Day => "day",
        Window::Week => "week",
    }
}

/// What the tool says of itself. A server's text may speak to the model: such passages are marked.
fn description(view: &Value, is_checked: bool) -> Markup {
    let text = line(view["description"].as_str().unwrap_or_default(), 600);
    let found = match is_checked {
        true => suspicious_in(
            view["description"].as_str().unwrap_or_default(),
            &view["schema"],
        ),
        false => Vec::new(),
    };
    html! {
        p.about { @if is_checked { (super::changes::marked(&text)) } @else { (text) } }
        @for sign in found.iter().take(5) { p.bad data-testid="suspicious" { "Suspicious: " (line(sign, 200)) } }
    }
}

/// A tool that is known and not offered: why, and what can be done about it.
fn left_out(request: &Request, name: &str) -> Result<Page, Refused> {
    let app = &request.app;
    let change = app.pins.change_of(name);
    let is_off = app.runtime.is_switched_off(name);
    let all = app.runtime.left_out().into_iter();
    let mut reasons = all.filter(|(_, it)| it.name == name);
    // That it is switched off is the last reason, and weighs more than the others.
    let found = if is_off {
        reasons.next_back()
    } else {
        reasons.next()
    };
    if change.is_none() && found.is_none() {
        return Err(no_such_tool(app, name));
    }
    let body = html! {
        p.way { a href="/tools" { "Tools" } }
        div.head.page {
            h1 { (visible(name)) " " @if is_off { (badge("mute", "Disabled")) } @else { (badge("bad", "Not offered")) } }
            @if let Some((source, _)) = &found { span.mute { "from " (line(source, 60)) } }
        }
        @if let Some((_, it)) = &found { p.bad data-testid="reason" { (line(&it.reason, 600)) } }
        @if is_off && request.identity.may(Right::Administer) {
            div.actions { (button(&format!("{}/enable", overview::page("tools", name)), "Enable", &visible(name))) }
        }
        @if let Some(change) = &change { (super::changes::of_tool(change, &request.identity)) }
        p { a href=(format!("/calls?tool={}", query(name))) { "Its calls" } }
    };
    Ok(Page::new(line(name, 60), Menu::Tools, body))
}

fn query(name: &str) -> String {
    url::form_urlencoded::byte_serialize(name.as_bytes()).collect()
}

fn state(view: &Value) -> Markup {
    match (view["available"].as_bool(), view["state"].as_str()) {
        (Some(false), state) => badge(
            "bad",
            match state {
                Some("not running") => "Not running",
                Some("starting") => "Starting",
                _ => "Disabled",
            },
        ),
        _ => match breaker_of(view) {
            Some(BreakerState::Closed) | None => badge("good", "Ready"),
            some => breaker_state(some),
        },
    }
}

fn breaker_of(view: &Value) -> Option<BreakerState> {
    match view["breaker"]["state"].as_str()? {
        "open" => Some(BreakerState::Open),
        "half-open" => Some(BreakerState::HalfOpen),
        _ => Some(BreakerState::Closed),
    }
}

fn kind(view: &Value) -> String {
    let text = |key: &str| view[key].as_str().unwrap_or_default();
    let value = |key: &str| {
        view["policy"][key]["value"]
            .as_str()
            .unwrap_or("–")
            .to_owned()
    };
    format!(
        "{}, timeout {}, {}, {} at once",
        text("kind"),
        value("timeout"),
        match value("retry.attempts").as_str() {
            "1" => "1 attempt".to_owned(),
            attempts if is_safe(view) => format!("up to {attempts} attempts"),
            _ => "not repeated once it may have run".to_owned(),
        },
        value("limits.concurrency")
    )
}

fn is_safe(view: &Value) -> bool {
    view["policy"]["idempotent"]["value"] == "yes"
}

fn figures(view: &Value, trends: &Trends) -> Markup {
    let (now, before) = (&trends.total, &trends.previous);
    let number = |counts: &Counts| count(counts.calls);
    html! {
        dl.figures {
            div { dt { "Calls, " (window_length(trends.window)) } dd { (number(now)) span.before { "before: " (number(before)) } } }
            div title="Errors and time-outs among the calls that ran" { dt { "Errors" } dd class=[now.error_rate().filter(|rate| *rate >= 0.05).map(|_| "bad")] { (some_share(now.error_rate())) span.before { "before: " (some_share(before.error_rate())) } } }
            div { dt { "p50" } dd { (format::some_span(now.p50)) span.before { "before: " (format::some_span(before.p50)) } } }
            div { dt { "p95" } dd { (format::some_span(now.p95)) span.before { "before: " (format::some_span(before.p95)) } } }
            div { dt { "In flight" } dd { (view["metrics"]["inFlight"].as_u64().unwrap_or(0)) @if let Some(queued @ 1..) = view["metrics"]["queued"].as_u64() { span.before { (queued) " waiting" } } } }
            div { dt { "Retries" } dd { (count(now.retries)) span.before { "before: " (count(before.retries)) } } }
        }
    }
}

fn breaker(view: &Value, name: &str, last: &[CallSummary]) -> Markup {
    let Some(state) = breaker_of(view) else {
        return html! {};
    };
    let policy = |key: &str| {
        view["policy"][key]["value"]
            .as_str()
            .unwrap_or("–")
            .to_owned()
    };
    let failures = view["breaker"]["failures"].as_u64().unwrap_or(0);
    let rest_ms = view["breaker"]["trialInMs"].as_u64();
    let trial_at_ms = rest_ms.map(|ms| steadyhand::clock::wall_ms() + ms);
    let path = overview::page("tools", name);
    html! {
        section.panel aria-labelledby="breaker-title" data-testid="breaker" {
            div.head { h2 id="breaker-title" { "Breaker " (breaker_state(Some(state))) } span.mute { "opened " (counted(view["breaker"]["trips"].as_u64().unwrap_or(0), "time")) } }
            @if !last.is_empty() {
                div.last { "Last " (last.len()) " calls " (draw::breaker::squares(last)) " " strong { (failures) " in a row" } " failed, limit " (policy("breaker.failures")) }
            }
            (draw::breaker::machine(state, &policy("breaker.failures"), &policy("breaker.cooldown"), trial_at_ms))
            @if let Some(at_ms) = view["breaker"]["lastFailure"].as_u64() { (last_failure(&view["breaker"]["lastError"], at_ms)) }
            @if state != BreakerState::Closed {
                div.actions {
                    @if state == BreakerState::Open { (button(&format!("{path}/trial"), "Try now", "let the next call through")) }
                    (button(&format!("{path}/reset"), "Close", "the breaker by hand"))
                }
            }
        }
    }
}

/// What the tool last said: the reason why its breaker is open, if it is. Refused calls do not replace it.
fn last_failure(error: &Value, at_ms: u64) -> Markup {
    html! {
        p data-testid="last-failure" {
            span.mute { "Last failure " (clock(at_ms)) }
            @if let Some(message) = error["message"].as_str() {
                " " code { (visible(error["code"].as_str().unwrap_or_default())) } " " (line(message, 400))
                @if let Some(call) = error["callId"].as_str() { " " a href=(overview::page("calls", call)) { "The call" } }
            }
        }
    }
}

fn list(calls: &[CallSummary]) -> Markup {
    html! {
        @if calls.is_empty() { p.empty { "It was not called yet." } }
        @else {
            table.rows {
                caption.hidden { "Last calls" }
                thead.hidden { tr { th scope="col" { "Time" } th scope="col" { "Result" } th scope="col" { "Took" } th scope="col" { "What it said" } } }
                tbody { @for call in calls.iter().take(LISTED) {
                    tr id=(format!("last-{}", visible(&call.key))) data-testid="call" data-status=(call.state.as_str()) {
                        th scope="row" { a.open href=(call_path(call)) { (clock(call.started_ms)) } }
                        td { (call_state(call)) }
                        td.number { (took(call)) }
                        td.said { (failure_text(call, 120)) }
                    }
                } }
            }
        }
    }
}

fn failures(codes: &Value) -> Markup {
    let codes = codes.as_object();
    html! {
        @if let Some(codes) = codes.filter(|codes| !codes.is_empty()) {
            section.panel aria-labelledby="kinds-title" {
                div.head { h2 id="kinds-title" { "Failures by kind" span.mute { " since the start" } } }
                ul.kinds { @for (code, calls) in codes { li { code { (visible(code)) } " " strong { (count(calls.as_u64().unwrap_or(0))) } } } }
            }
        }
    }
}

fn policy(policy: &Value) -> Markup {
    html! {
        section.panel aria-labelledby="policy-title" {
            div.head { h2 id="policy-title" { "Policy" span.mute { " and where each value comes from" } } }
            dl.policy {
                @for (name, setting) in policy.as_object().into_iter().flatten() {
                    div { dt { (name) } dd { (line(setting["value"].as_str().unwrap_or_default(), 80)) span.mute { (line(setting["origin"].as_str().unwrap_or_default(), 60)) } } }
                }
            }
        }
    }
}

/// About four bytes of JSON are a token.
fn tokens(view: &Value) -> u64 {
    let text =
        [&view["name"], &view["description"], &view["schema"]].map(|part| part.to_string().len());
    (text.iter().sum::<usize>() / 4) as u64
}
