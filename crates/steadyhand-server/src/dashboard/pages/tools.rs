//! `/tools`: every tool in a line, those in trouble first. From the tools of `GET /v1/overview`, and
//! `GET /v1/tool-changes`.

use maud::{Markup, html};

use super::super::draw;
use super::super::format::{clock, count, line, some_share, some_span, visible};
use super::super::parts::{badge, breaker_state, tool_link};
use super::super::{Menu, Page, Request};
use crate::http::status::Refused;
use crate::overview::{self, ToolRow};

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
    let tools: Vec<ToolRow> = overview.tools.into_iter().filter(is_meant).collect();
    let body = html! {
        div.head.page {
            h1 { "Tools" span.mute { " " (count(all as u64)) } }
            form.search role="search" action="/tools" method="get" {
                label.hidden for="q" { "Search tools" }
                input id="q" name="q" type="search" placeholder="Name, description or source" value=(asked) data-keep;
                button type="submit" { "Search" }
            }
        }
        (super::changes::panel(&request.app.pins.changes()))
        section.panel { (table(&tools, ROWS, "/tools")) }
        @if tools.len() > ROWS { p.mute { (count((tools.len() - ROWS) as u64)) " more: search for them." } }
        @if all == 0 {
            section.panel { p.empty { "No tools. A configuration names them: " a href="/config" { "Config" } } }
        } @else if tools.is_empty() {
            p.empty { "No tool is called like that." }
        }
    };
    Ok(Page::new("Tools", Menu::Tools, body))
}

/// Tools in lines.
pub(super) fn table(tools: &[ToolRow], most: usize, place: &str) -> Markup {
    let is_full = place == "/tools";
    html! {
        div.scroll tabindex="0" role="region" aria-label="Tools" {
            table.rows id="tools" {
                caption.hidden { "Tools, those in trouble first" }
                thead { tr {
                    th scope="col" { "Tool" }
                    @if is_full { th.wide scope="col" { "From" } }
                    th scope="col" { "Breaker" }
                    th.number scope="col" { "Calls" }
                    th.number scope="col" title="Errors and time-outs among the calls that ran" { "Errors" }
                    th.number.wide scope="col" { "p50" }
                    th.number scope="col" { "p95" }
                    th.wide scope="col" { "Trend" }
                    th scope="col" { "Last error" }
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
                    a href=(overview::page("calls", &error.call)) { (clock(error.at_ms)) } " " (line(&error.message, 100))
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
