//! `/calls`: calls by filter, page by page. From `GET /v1/calls` with the same query.

use maud::{Markup, html};

use super::super::format::{clock, count, line, moment, visible};
use super::super::parts::{button, call_path, call_state, failure_text, short_id, took, tool_link};
use super::super::sort::{First, Sort};
use super::super::{Menu, Page, Request};
use steadyhand_server::http::history::{self, Calls};
use steadyhand_server::http::status::Refused;
use steadyhand_store::history::{CallState, CallSummary};

/// How far back, by one click.
const RANGES: [(&str, &str); 5] = [
    ("Any time", ""),
    ("15 min", "15m"),
    ("1 h", "1h"),
    ("1 day", "1d"),
    ("7 days", "7d"),
];
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
        }
        (range(&query))
        p.words.mute { "Words: " code { "tool:home_*" } " " code { "state:failed" } " " code { "error:timeout" } " " code { ">500ms" } " " code { "since:1h" } ". The list follows new calls by itself; in a terminal: " code { "steadyhand calls tail" } }
        @match &calls {
            Ok(calls) => { (list(calls, &query)) }
            Err(refused) => {
                section.panel data-testid="refused" { p.bad { (line(refused.message(), 400)) } p.mute { (line(refused.help(), 400)) } }
            }
        }
    };
    Ok(Page::new("Calls", Menu::Calls, body))
}

/// When the calls came in: the last so long, or from one moment to another.
fn range(query: &[(String, String)]) -> Markup {
    let said = |wanted: &str| {
        let found = query.iter().find(|(name, _)| name == wanted);
        found.map_or("", |(_, value)| value.as_str())
    };
    let is_custom =
        !said("until").is_empty() || RANGES.iter().all(|(_, since)| *since != said("since"));
    let kept = |name: &str| !matches!(name, "since" | "until" | "cursor");
    html! {
        div.range {
            nav.quick aria-label="Calls by time" {
                @for (name, since) in RANGES {
                    @let is_here = !is_custom && said("since") == since;
                    a href=(with(&without_pairs(query, &["until"]), "since", since)) aria-current=[is_here.then_some("true")] { (name) }
                }
            }
            details open[is_custom] {
                summary { "From … to …" }
                form action="/calls" method="get" {
                    label for="since" { "From" } input id="since" name="since" type="datetime-local" data-keep data-moment=[moment_of(said("since"))];
                    label for="until" { "to" } input id="until" name="until" type="datetime-local" data-keep data-moment=[moment_of(said("until"))];
                    @for (name, value) in query.iter().filter(|(name, _)| kept(name)) { input type="hidden" name=(name) value=(value); }
                    button type="submit" { "Show" }
                }
                @if is_custom { p.note { @if let Some(ms) = moment_of(said("since")) { "From " (moment(ms)) } @if let Some(ms) = moment_of(said("until")) { " to " (moment(ms)) } } }
            }
        }
    }
}

/// A moment of a query, in milliseconds since 1970; none for how long ago.
fn moment_of(text: &str) -> Option<u64> {
    let ms = text.parse::<u64>().ok();
    ms.or_else(|| {
        let moment: jiff::Timestamp = text.parse().ok()?;
        u64::try_from(moment.as_millisecond()).ok()
    })
}

fn without_pairs(query: &[(String, String)], names: &[&str]) -> Vec<(String, String)> {
    let kept = query
        .iter()
        .filter(|(name, _)| !names.contains(&name.as_str()));
    kept.cloned().collect()
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
    let sort = Sort::of("/calls", query, "-time");
    let is_newest = !query.iter().any(|(name, _)| name == "cursor");
    html! {
        section.panel {
            @if calls.calls.is_empty() {
                p.empty { "No call fits." @if !query.is_empty() { " " a href="/calls" { "Show all" } } }
            } @else {
                div.scroll tabindex="0" role="region" aria-label="Calls" {
                    table.rows id="calls" {
                        caption.hidden { "Calls" }
                        thead { tr {
                            (sort.head("time", "Time", "", First::Largest)) (sort.head("tool", "Tool", "", First::Smallest)) (sort.head("state", "Result", "", First::Smallest))
                            (sort.head("took", "Took", "number", First::Largest)) (sort.head("tries", "Tries", "number", First::Largest)) (sort.head("caller", "From", "", First::Smallest))
                            th scope="col" { "Id" } th scope="col" { "What it said" } th scope="col" { span.hidden { "Actions" } }
                        } }
                        tbody { @for listed in &calls.calls { (row(&listed.call, query)) } }
                    }
                }
            }
            div.foot {
                span.mute { "Showing " (count(calls.calls.len() as u64)) @if let Some(ms) = calls.searched_to_ms { ", searched back to " (moment(ms)) } @if let Some(of) = calls.sorted_of { ", sorted among the newest " (count(of as u64)) " that fit" } }
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
            td.mute { @match &call.caller { Some(caller) => { a href=(format!("/calls{}", text(&[("caller".to_owned(), caller.clone())]))) { (line(caller, 30)) } } None => "–" } }
            td { a.open href=(format!("{path}{within}")) title=(visible(&call.id)) { code { (short_id(&call.id)) } } }
            td.said { (failure_text(call, 100)) }
            td.act {
                @if call.state == CallState::Running { (button(&format!("{path}/cancel"), "Cancel", &visible(&call.tool))) }
                @else { (button(&format!("{path}/replay"), "Replay", &visible(&call.tool))) }
            }
        }
    }
}

/// The filter without the place in it.
fn filter_of(query: &[(String, String)]) -> Vec<(String, String)> {
    let is_filter = |name: &str| !matches!(name, "cursor" | "limit" | "sort");
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
pub(in super::super) fn text(pairs: &[(String, String)]) -> String {
    if pairs.is_empty() {
        return String::new();
    }
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs);
    format!("?{}", query.finish())
}
