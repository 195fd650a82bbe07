//! `/servers/{name}`: is it up, at which step did it fail, what did it print, what to do. From `GET /v1/servers` and its
//! logs.

use maud::{Markup, html};
use serde_json::Value;

use super::super::format::{
    self, bytes, clock, counted, cut, html_bytes, line, moment, span, visible,
};
use super::super::parts::{button, copied_code, copy_button, sentence_of};
use super::super::{Menu, Page, Request};
use super::servers::status;
use steadyhand_server::http::servers::find;
use steadyhand_server::http::status::Refused;
use steadyhand_server::overview;
use steadyhand_server::views;

/// What is shown of its last lines, in bytes of HTML.
const LOG_BYTES: usize = 24 * 1024;
const LOG_LINES: usize = 200;
const LINE_BYTES: usize = 2 * 1024;
const LINE_MARKUP_BYTES: usize = 140;
/// The steps of a start, as the server's state names them.
const STEPS: [&str; 4] = ["find command", "start process", "initialize", "tools/list"];

pub(in super::super) async fn page(request: &Request, name: &str) -> Result<Page, Refused> {
    let runtime = &request.app.runtime;
    let Some(view) = views::servers::one(runtime, name) else {
        return Err(find(&request.app, name)
            .err()
            .unwrap_or_else(|| super::super::incomplete("there is no such server")));
    };
    let log = runtime
        .server(name)
        .map(|server| server.logs())
        .unwrap_or_default();
    let path = overview::page("servers", name);
    let is_used = view["phase"] != "disabled";
    let is_up = view["phase"] == "running";
    let body = html! {
        p.way { a href="/servers" { "Servers" } }
        div.head.page {
            h1 { (visible(name)) " " (status(&view)) }
            @if is_used { div.actions { (button(&format!("{path}/restart"), if is_up { "Restart" } else { "Start now" }, "")) } }
        }
        p.sentence data-testid="sentence" { (sentence(&view)) }
        @if let Some(help) = view["failure"]["help"].as_str().filter(|help| !help.is_empty()) {
            section.panel.cause data-testid="cause" { div.head { h2 { "Likely cause, and what to do" } } p.lines { (cut(help, 4096).0) } }
        }
        @if is_used {
            div.columns.start {
                section.panel aria-labelledby="steps-title" {
                    div.head { h2 id="steps-title" { "Start" } span.mute { "start " (view["attempt"]) " of " (view["attempts_max"]) } }
                    (steps(&view))
                }
                section.panel aria-labelledby="log-title" {
                    div.head { h2 id="log-title" { "What it printed" } span.mute { (counted(log.len() as u64, "line")) } }
                    (lines(&log))
                }
            }
        }
        (facts(&view))
    };
    Ok(Page::new(line(name, 60), Menu::Servers, body))
}

fn sentence(view: &Value) -> Markup {
    let next = view["next_try_in_ms"]
        .as_u64()
        .map(|ms| steadyhand::clock::wall_ms() + ms);
    html! {
        @match view["phase"].as_str().unwrap_or_default() {
            "running" => { strong { "Running." } " " (counted(view["tools"].as_u64().unwrap_or(0), "tool")) @if let Some(ms) = view["start_ms"].as_f64() { ", up after " (span(ms)) } "." }
            "idle" => { strong { "Idle." } " It is started when one of its tools is called." }
            "disabled" => { strong { "Disabled." } " " (line(view["reason"].as_str().unwrap_or_default(), 300)) }
            _ => {
                (sentence_of(&line(view["failure"]["message"].as_str().or(view["reason"].as_str()).unwrap_or("It is being started."), 500)))
                @if let Some(next) = next { " Next start " (format::until(next)) "." }
            }
        }
    }
}

fn steps(view: &Value) -> Markup {
    let done: Vec<(&str, f64)> = view["steps"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| {
            (
                one["step"].as_str().unwrap_or_default(),
                one["took_ms"].as_f64().unwrap_or(0.0),
            )
        })
        .collect();
    let at = view["step"].as_str();
    let is_failed = view["failure"].is_object() && view["phase"] != "running";
    let failed_at = view["failure"]["step"].as_str();
    html! {
        ol.steps data-testid="steps" {
            @for step in STEPS {
                @let took = done.iter().find(|(name, _)| *name == step).map(|(_, ms)| *ms);
                @let is_here = at == Some(step);
                li {
                    span.name { (step) @if step == "find command" { @if let Some(program) = view["program"].as_str() { code { (line(program, 60)) } } } @if step == "start process" { @if let Some(pid) = view["pid"].as_u64() { span.mute { " pid " (pid) } } } }
                    @match took {
                        _ if is_failed && failed_at == Some(step) => { span.number { @if let Some(ms) = took { (span(ms)) } } span.badge.bad { "Failed" } }
                        Some(ms) => { span.number { (span(ms)) } span.badge.good { "Done" } }
                        None if is_here && !is_failed => { span.number {} span.badge.info { "Now" } }
                        None if view["phase"] == "running" => { span.number {} span.badge.good { "Done" } }
                        None => { span.number {} span.badge.mute { "Not reached" } }
                    }
                }
            }
        }
        @if failed_at == Some("running") && is_failed { p.bad { "It was up, and did not stay up." } }
    }
}

fn lines(log: &[steadyhand_mcp::LogLine]) -> Markup {
    let mut room = LOG_BYTES;
    let mut shown = Vec::new();
    for one in log.iter().rev().take(LOG_LINES) {
        let (text, rest) = cut(&one.text, LINE_BYTES);
        let bytes = html_bytes(&text) + LINE_MARKUP_BYTES;
        if bytes > room {
            break;
        }
        room -= bytes;
        shown.push((one, text, rest));
    }
    shown.reverse();
    html! {
        @if shown.is_empty() { p.empty { "Nothing." } }
        @else {
            div.copyable {
            div.log tabindex="0" role="log" aria-label="What it printed" data-testid="log" data-copied {
                @for (one, text, rest) in shown {
                    @let stream = serde_json::json!(one.stream);
                    @let stream = stream.as_str().unwrap_or("stderr");
                    div.(stream) { (clock(one.at_ms)) " " @if stream != "stderr" { span.word { (stream) } " " } span.text { (text) } @if rest > 0 { span.mute { " … " (bytes(rest as u64)) " more" } } }
                }
            }
            (copy_button("what it printed"))
            }
        }
    }
}

fn facts(view: &Value) -> Markup {
    let text = |key: &str| view[key].as_str();
    let number = |key: &str| view[key].as_u64().unwrap_or(0);
    html! {
        section.panel aria-labelledby="facts-title" {
            div.head { h2 id="facts-title" { "About this server" } }
            dl.pairs {
                @if let Some(command) = text("command") { dt { "Command" } dd { (copied_code("the command", command, 300)) } }
                @if let Some(place) = text("place") { dt { "Configured at" } dd { code { (line(place, 120)) } } }
                @if let Some(transport) = text("transport") { dt { "Transport" } dd { (transport) } }
                dt { "Starts" } dd { (number("starts")) " of " (number("tries")) " tries, ended by itself " (counted(number("deaths"), "time")) }
                dt { "Tools" } dd { (number("tools")) @if let Some(ms) = view["tools_seen_ms"].as_u64() { ", last told " (moment(ms)) } " " a href=(format!("/tools?q={}", text("name").unwrap_or_default())) { "Show" } }
                dt { "stdout that is no message" } dd { (counted(number("noise_lines"), "line")) }
                @if let Some(code) = view["failure"]["exit_code"].as_i64() { dt { "Exit code" } dd { (code) } }
            }
            @for note in view["notes"].as_array().into_iter().flatten().take(10) { p.note { (line(note.as_str().unwrap_or_default(), 300)) } }
            @if let Some(unusable) = view["unusable"].as_array().filter(|list| !list.is_empty()) {
                h3 { "Tools it lists that cannot be used" }
                ul.plain { @for one in unusable.iter().take(30) { li { code { (line(one["name"].as_str().unwrap_or_default(), 80)) } " " (line(one["reason"].as_str().unwrap_or_default(), 200)) } } }
                @if number("unusable_count") > 30 { p.note { "and " (counted(number("unusable_count") - 30, "more tool")) ": see steadyhand mcp test" } }
            }
        }
    }
}
