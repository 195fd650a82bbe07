//! `/tools`: every tool in a line, those in trouble first. From the tools of `GET /v1/overview`, and
//! `GET /v1/tool-changes`.

use std::cmp::Ordering;

use maud::{Markup, html};

use super::super::draw;
use super::super::format::{clock, count, failure_line, line, some_share, some_span, visible};
use super::super::parts::{badge, breaker_state, tool_link};
use super::super::sort::{First, Sort};
use super::super::{Menu, Page, Request};
use steadyhand_server::http::status::Refused;
use steadyhand_server::overview::{self, ToolRow};

/// Lines of one page.
const ROWS: usize = 60;

pub(in super::super) async fn page(request: &Request) -> Result<Page, Refused> {
    let overview = overview::look(&request.app).await;
    let asked = request.asked("q").unwrap_or_default().to_lowercase();
    let is_meant = |tool: &ToolRow| {
        let texts = [&tool.name, &tool.description, &tool.kind];
        let source = tool.source.iter();
        texts
            .into_iter()
            .chain(source)
            .any(|text| text.to_lowercase().contains(&asked))
    };
    let all = overview.tools.len();
    let mut tools: Vec<ToolRow> = overview.tools.into_iter().filter(is_meant).collect();
    let order = Sort::of("/tools", &request.query, "");
    sort(&mut tools, &order);
    let body = html! {
        div.head.page {
            h1 { "Tools" span.mute { " " (count(all as u64)) } }
            form.search role="search" action="/tools" method="get" {
                label.hidden for="q" { "Search tools" }
                input id="q" name="q" type="search" placeholder="Name, description or source" value=(asked) data-keep;
                @if let Some(order) = request.asked("sort") { input type="hidden" name="sort" value=(order); }
                button type="submit" { "Search" }
            }
        }
        (super::changes::panel(&request.app.pins.changes(), &request.identity))
        section.panel { (table(&tools, ROWS, &order, true)) }
        @if tools.len() > ROWS { p.mute { (count((tools.len() - ROWS) as u64)) " more: search for them." } }
        @if all == 0 {
            section.panel { p.empty { "No tools. A configuration names them: " a href="/config" { "Config" } } }
        } @else if tools.is_empty() {
            p.empty { "No tool is called like that." }
        }
    };
    Ok(Page::new("Tools", Menu::Tools, body))
}

/// In the order that was asked for; those in trouble first if none was.
pub(super) fn sort(tools: &mut [ToolRow], order: &Sort<'_>) {
    let breaker = |tool: &ToolRow| tool.breaker.map(|state| format!("{state:?}"));
    tools.sort_by(|a, b| match order.key() {
        "name" => order.by(Some(&a.name), Some(&b.name)),
        "from" => order.by(Some((&a.kind, &a.source)), Some((&b.kind, &b.source))),
        "breaker" => order.by(breaker(a), breaker(b)),
        "calls" => order.by(Some(a.hour.calls), Some(b.hour.calls)),
        "errors" => order.by(a.error_rate, b.error_rate),
        "p50" => order.by(a.hour.p50, b.hour.p50),
        "p95" => order.by(a.hour.p95, b.hour.p95),
        "last" => {
            let at_ms = |tool: &ToolRow| tool.last_error.as_ref().map(|error| error.at_ms);
            order.by(at_ms(a), at_ms(b))
        }
        _ => Ordering::Equal,
    });
}

/// Tools in lines.
pub(super) fn table(tools: &[ToolRow], most: usize, order: &Sort<'_>, is_full: bool) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Tools" {
            table.rows id="tools" {
                caption.hidden { "Tools" }
                thead { tr {
                    (order.head("name", "Tool", "", First::Smallest))
                    @if is_full { (order.head("from", "From", "wide", First::Smallest)) }
                    (order.head("breaker", "Breaker", "", First::Largest))
                    (order.head("calls", "Calls", "number", First::Largest))
                    (order.head("errors", "Errors", "number", First::Largest))
                    (order.head("p50", "p50", "number wide", First::Largest))
                    (order.head("p95", "p95", "number", First::Largest))
                    th.wide scope="col" { "Trend" }
                    (order.head("last", "Last error", "", First::Largest))
                } }
                tbody {
                    @for tool in tools.iter().take(most) { (row(tool, is_full)) }
                }
            }
        }
    }
}

fn row(tool: &ToolRow, is_full: bool) -> Markup {
    let breaker = tool.breaker.map(|state| serde_json::json!(state));
    let breaker = breaker
        .as_ref()
        .and_then(|state| state.as_str())
        .unwrap_or("none");
    let is_bad = tool.error_rate.is_some_and(|rate| rate >= 0.05);
    html! {
        tr id=(format!("tool-{}", visible(&tool.name))) data-testid="tool-row" data-tool=(tool.name) data-breaker=(breaker) {
            th scope="row" {
                (tool_link(&tool.name))
                @if is_full { span.about { (line(&tool.description, 90)) } }
            }
            @if is_full { td.mute.wide { (tool.kind) @if let Some(source) = tool.source.as_ref().filter(|source| **source != tool.name) { ", " (visible(source)) } } }
            td {
                @if tool.reason.is_some() { (badge("bad", unavailable(&tool.state))) }
                @else { (breaker_state(tool.breaker)) }
            }
            td.number { (count(tool.hour.calls)) }
            td.number class=[is_bad.then_some("bad")] { (some_share(tool.error_rate)) }
            td.number.wide { (some_span(tool.hour.p50)) }
            td.number {
                (some_span(tool.hour.p95))
                @if tool.is_slower() {
                    @if let Some(factor) = tool.slower { span.slower.warn { (format!("{factor:.1}")) "× slower" } }
                } @else if tool.is_slow() {
                    span.slower.warn { "slow" }
                }
            }
            td.wide { (draw::spark(&tool.trend)) }
            td.said {
                @if let Some(reason) = &tool.reason { (line(reason, 100)) }
                @else if let Some(error) = &tool.last_error {
                    a href=(overview::page("calls", &error.call)) { (clock(error.at_ms)) } " " (failure_line(&error.message, 100))
                } @else { span.mute { "–" } }
            }
        }
    }
}

fn unavailable(state: &str) -> &'static str {
    match state {
        "starting" => "Starting",
        "restarting" => "Restarting",
        "not running" => "Not running",
        "stopped" => "Stopped",
        _ => "Disabled",
    }
}
