//! `/`: is anything broken, what fails, what is slow, what runs, what changed. From `GET /v1/overview`.

use maud::{Markup, html};

use super::super::draw::{
    self,
    chart::{Chart, Series, Shape},
};
use super::super::format::{self, clock, count, line, some_share, some_span};
use super::super::parts::{self, call_path, call_state, took};
use super::super::sort::Sort;
use super::super::{Menu, Page, Request};
use super::tools::{sort, table};
use steadyhand_server::http::status::Refused;
use steadyhand_server::overview::{self, Figures};
use steadyhand_store::history::{CallState, CallSummary, Counts, Trends};

/// Tools that are listed; the page of tools has all.
const TOOLS: usize = 15;
/// Changes that are listed.
const MARKS: usize = 4;

pub(in super::super) async fn page(request: &Request) -> Result<Page, Refused> {
    let mut overview = overview::look(&request.app).await;
    let order = Sort::of("/", &request.query, "");
    sort(&mut overview.tools, &order);
    let count = overview.problems.len();
    let title = match count {
        0 => "Overview".to_owned(),
        _ => format!("({count}) Overview"),
    };
    let body = html! {
        h1.hidden { "Overview" }
        (parts::problems(&overview.problems, overview.tools.len()))
        (figures(&overview.figures))
        section.panel aria-labelledby="lanes-title" {
            div.head {
                h2 id="lanes-title" { "Calls, last 30 seconds" }
                a href="/calls?state=running" { "Running " (overview.figures.in_flight) }
            }
            (draw::lanes::picture(&overview.lanes, overview.at_ms))
        }
        @if let Some(hour) = &overview.hour {
            section.panel aria-labelledby="hour-title" {
                div.head { h2 id="hour-title" { "Last hour" } a href="/trends" { "Trends" } }
                (hour_chart(hour))
                (parts::marks(&hour.marks, MARKS))
            }
        }
        @if let Some(problem) = &overview.history_problem {
            section.panel { p.bad { (problem) } }
        }
        div.columns {
            section.panel aria-labelledby="tools-title" {
                div.head {
                    h2 id="tools-title" { "Tools" span.mute { " by trouble, last hour" } }
                    @if overview.tools.len() > TOOLS { a href="/tools" { "All " (overview.tools.len()) } }
                }
                (table(&overview.tools, TOOLS, &order, false))
            }
            section.panel.recent aria-labelledby="recent-title" {
                div.head { h2 id="recent-title" { "Recent calls" } a href="/calls" { "All" } }
                (recent(&overview.recent))
            }
        }
    };
    Ok(Page::new(title, Menu::Overview, body))
}

fn figures(figures: &Figures) -> Markup {
    let breakers = match figures.breakers {
        0 => "–".to_owned(),
        all => format!("{} of {all}", figures.breakers_open),
    };
    let servers = match figures.servers {
        0 => "–".to_owned(),
        all => format!("{} of {all}", figures.servers_up),
    };
    let bad = |is: bool| is.then_some("bad");
    let rate = figures.error_rate_5m;
    html! {
        dl.figures id="figures" {
            div { dt { "In flight" } dd data-testid="in-flight" { (count(figures.in_flight as u64)) } }
            div { dt { "Calls, 1 min" } dd { (count(figures.calls_1m)) } }
            div title="Errors and time-outs among the calls whose tool ran" { dt { "Errors, 5 min" } dd class=[bad(rate.is_some_and(|rate| rate >= 0.05))] { (some_share(rate)) } }
            div { dt { "p95, 5 min" } dd { (some_span(figures.p95_5m)) } }
            div { dt { "Breakers open" } dd class=[bad(figures.breakers_open > 0)] { (breakers) } }
            div { dt { "Servers up" } dd class=[bad(figures.servers_up < figures.servers)] { (servers) } }
            div { dt { "To approve" } dd { a href="/approvals" { (count(figures.waiting as u64)) } } }
            div { dt { "Alerts" } dd class=[bad(figures.alerts > 0)] { a href="/alerts" { (count(figures.alerts as u64)) } } }
        }
    }
}

fn hour_chart(hour: &Trends) -> Markup {
    let of = |pick: fn(&Counts) -> u64| -> Vec<Option<f64>> {
        hour.buckets
            .iter()
            .map(|bucket| Some(pick(&bucket.counts) as f64))
            .collect()
    };
    let chart = Chart {
        id: "chart-hour",
        title: "Calls a minute",
        summary: parts::in_words(&hour.total),
        series: vec![
            Series {
                name: "calls",
                tone: "calm",
                shape: Shape::Columns,
                values: of(|it| it.calls),
            },
            Series {
                name: "failed",
                tone: "bad",
                shape: Shape::Columns,
                values: of(Counts::failed),
            },
        ],
        unit: |value| count(value as u64),
        least: 5.0,
    };
    chart.draw(hour)
}

fn recent(calls: &[CallSummary]) -> Markup {
    html! {
        @if calls.is_empty() {
            p.empty { "No calls yet. Try a tool: " a href="/tools" { "Tools" } }
        } @else {
            table.rows id="recent" {
                caption.hidden { "The last calls" }
                thead.hidden { tr { th scope="col" { "Time" } th scope="col" { "Tool" } th scope="col" { "Result" } th scope="col" { "Took" } } }
                tbody {
                    @for call in calls {
                        tr id=(format!("recent-{}", call.key)) data-testid="call" data-status=(call.state.as_str()) {
                            td.mute { (clock(call.started_ms)) }
                            th scope="row" { a href=(call_path(call)) { (line(&call.tool, 64)) } }
                            td { (call_state(call)) }
                            td.number { @if call.state == CallState::Running { (format::running(parts::begun_ms(call), None)) } @else { (took(call)) } }
                        }
                    }
                }
            }
        }
    }
}
