//! `/calls`: calls by filter, page by page. From `GET /v1/calls` with the same query.

use maud::{Markup, html};

use super::super::format::{clock, count, line, moment, visible};
use super::super::parts::{button, call_path, call_state, short_id, took, tool_link};
use super::super::{Menu, Page, Request};
use crate::history::{CallState, CallSummary};
use crate::http::history::{self, Calls};
use crate::http::status::Refused;

/// What is asked for by one click.
const QUICK: [(&str, &str); 5] = [
    ("All", ""),
    ("Running", "running"),
    ("Failed", "failed"),
    ("Fallback", "fallback"),
    ("OK", "ok"),
];

pub(in super::super) async fn page(request: &Request) -> Result<Page, Refused> {
    let query: Vec<(String, String)> = request
        .query
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .cloned()
        .collect();
    let calls = history::calls(&request.app, &request.identity, &query).await;
    let body = html! {
        div.head.page { h1 { "Calls" } (search(&query)) }
        nav.quick aria-label="Calls by state" {
            @for (name, state) in QUICK {
                @let is_here = query.iter().any(|(key, value)| key == "state" && value == state)
                    || (state.is_empty() && !query.iter().any(|(key, _)| key == "state"));
                a href=(with(&query, "state", state)) aria-current=[is_here.then_some("true")] { (name) }
            }
            span.mute { "Words: " code { "tool:home_*" } " " code { "state:failed" } " " code { "error:timeout" } " " code { ">500ms" } " " code { "since:1h" } }
        }
        @match &calls {
            Ok(calls) => { (list(calls, &query)) }
            Err(refused) => {
                section.panel data-testid="refused" { p.bad { (line(refused.message(), 400)) } p.mute { (line(refused.help(), 400)) } }
            }
        }
    };
    Ok(Page::new("Calls", Menu::Calls, body))
}

fn search(query: &[(String, String)]) -> Markup {
    let words = query.iter().find(|(name, _)| name == "q");
    let kept = |name: &str| !matches!(name, "q" | "cursor");
    html! {
        form.search role="search" action="/calls" method="get" {
            label.hidden for="q" { "Search calls" }
            input id="q" name="q" type="search" placeholder="tool:home_* error:timeout >500ms" value=[words.map(|(_, value)| value)] data-keep;
            @for (name, value) in query.iter().filter(|(name, _)| kept(name)) {
                input type="hidden" name=(name) value=(value);
            }
            button type="submit" { "Search" }
        }
    }
}

fn list(calls: &Calls, query: &[(String, String)]) -> Markup {
    let is_newest = !query.iter().any(|(name, _)| name == "cursor");
    html! {
        section.panel {
            @if calls.calls.is_empty() {
                p.empty { "No call fits." @if !query.is_empty() { " " a href="/calls" { "Show all" } } }
            } @else {
                div.scroll tabindex="0" role="region" aria-label="Calls" {
                    table.rows id="calls" {
                        caption.hidden { "Calls, the newest first" }
                        thead { tr {
                            th scope="col" { "Time" } th scope="col" { "Tool" } th scope="col" { "Result" }
                            th.number scope="col" { "Took" } th.number scope="col" { "Tries" } th scope="col" { "From" }
                            th scope="col" { "Id" } th scope="col" { "What it said" } th scope="col" { span.hidden { "Actions" } }
                        } }
                        tbody { @for listed in &calls.calls { (row(&listed.call, query)) } }
                    }
                }
            }
            div.foot {
                span.mute { "Showing " (count(calls.calls.len() as u64)) @if let Some(ms) = calls.searched_to_ms { ", searched back to " (moment(ms)) } }
                @if !is_newest { a href=(without(query, "cursor")) { "Newest" } }
                @if let Some(next) = &calls.next { a rel="next" href=(with(query, "cursor", next)) { "Older" } }
                a href=(format!("/v1/calls.ndjson{}", text(&filter_of(query)))) { "Export NDJSON" }
            }
        }
    }
}

fn row(call: &CallSummary, query: &[(String, String)]) -> Markup {
    let path = call_path(call);
    // The page of the call finds its neighbours by the same filter.
    let within = text(&filter_of(query));
    html! {
        tr id=(format!("call-{}", visible(&call.key))) data-testid="call" data-status=(call.state.as_str()) {
            td.mute { (clock(call.started_ms)) }
            th scope="row" { (tool_link(&call.tool)) }
            td { (call_state(call)) }
            td.number { (took(call)) }
            td.number { (call.attempts) }
            td.mute { (line(call.caller.as_deref().unwrap_or("–"), 30)) }
            td { a.open href=(format!("{path}{within}")) title=(visible(&call.id)) { code { (short_id(&call.id)) } } }
            td.said { (line(call.message.as_deref().unwrap_or(""), 100)) }
            td.act {
                @if call.state == CallState::Running { (button(&format!("{path}/cancel"), "Cancel", &visible(&call.tool))) }
                @else { (button(&format!("{path}/replay"), "Replay", &visible(&call.tool))) }
            }
        }
    }
}

/// The filter without the place in it.
fn filter_of(query: &[(String, String)]) -> Vec<(String, String)> {
    let is_filter = |name: &str| !matches!(name, "cursor" | "limit");
    query
        .iter()
        .filter(|(name, _)| is_filter(name))
        .cloned()
        .collect()
}

/// The same list with another value; an empty one takes the name away.
fn with(query: &[(String, String)], name: &str, value: &str) -> String {
    let mut pairs: Vec<(String, String)> = query
        .iter()
        .filter(|(key, _)| key != name && (key != "cursor" || name == "cursor"))
        .cloned()
        .collect();
    if !value.is_empty() {
        pairs.push((name.to_owned(), value.to_owned()));
    }
    format!("/calls{}", text(&pairs))
}

fn without(query: &[(String, String)], name: &str) -> String {
    with(query, name, "")
}

/// The pairs as they stand in an address.
pub(super) fn text(pairs: &[(String, String)]) -> String {
    if pairs.is_empty() {
        return String::new();
    }
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs);
    format!("?{}", query.finish())
}
