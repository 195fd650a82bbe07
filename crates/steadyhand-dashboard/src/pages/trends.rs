//! `/trends`: an hour, a day or a week in pictures. From `GET /v1/trends` with the same query.

use maud::{Markup, html};

use super::super::draw::chart::{Chart, Series, Shape};
use super::super::draw::histogram;
use super::super::format::{
    count, counted, line, moment, share, some_share, some_span, span, visible, when,
};
use super::super::parts;
use super::super::sort::{First, Sort};
use super::super::{Menu, Page, Request};
use steadyhand_server::http::history::{callers_of, trends_of};
use steadyhand_server::http::status::Refused;
use steadyhand_store::history::{CallerTotals, Callers, Counts, Trends, Window};

const MARKS: usize = 12;
/// Callers that are listed.
const CALLERS: usize = 30;
pub(super) const WINDOWS: [(Window, &str); 3] = [
    (Window::Hour, "Hour"),
    (Window::Day, "Day"),
    (Window::Week, "Week"),
];

pub(in super::super) async fn page(request: &Request) -> Result<Page, Refused> {
    let window: Window = request
        .asked("window")
        .and_then(|text| text.parse().ok())
        .unwrap_or_default();
    let tool = request.asked("tool").map(str::to_owned);
    let trends = trends_of(&request.app, tool.clone(), window).await?;
    let callers = callers_of(&request.app, tool.clone(), window).await?;
    let tools = request.app.runtime.manager().list();
    let body = html! {
        div.head.page {
            h1 { "Trends" @if let Some(tool) = &tool { span.mute { " of " (visible(tool)) } } }
            nav.quick aria-label="How far back" {
                @for (one, name) in WINDOWS {
                    a href=(address(tool.as_deref(), one)) aria-current=[(one == window).then_some("true")] { (name) }
                }
            }
            form.search action="/trends" method="get" {
                label for="tool" { "Tool" }
                select id="tool" name="tool" data-keep {
                    option value="" { "All tools" }
                    @for one in tools.iter().take(500) {
                        option value=(one.name()) selected[tool.as_deref() == Some(one.name())] { (visible(one.name())) }
                    }
                }
                input type="hidden" name="window" value=(window.as_str());
                button type="submit" { "Show" }
            }
        }
        (sums(&trends.total, &trends.previous))
        section.panel { (charts(&trends)) (parts::marks(&trends.marks, MARKS)) }
        (by_caller(&callers, &request.query))
        section.panel aria-labelledby="times-title" {
            div.head { h2 id="times-title" { "How long calls took" } }
            (histogram::picture(&trends.times))
        }
    };
    Ok(Page::new("Trends", Menu::Trends, body))
}

/// Who called, how often, and how that went.
fn by_caller(callers: &Callers, query: &[(String, String)]) -> Markup {
    let sort = Sort::of("/trends", query, "-calls");
    let mut rows: Vec<&CallerTotals> = callers.callers.iter().collect();
    rows.sort_by(|a, b| match sort.key() {
        "caller" => sort.by(a.caller.as_ref(), b.caller.as_ref()),
        "failed" => sort.by(Some(a.counts.failed()), Some(b.counts.failed())),
        "refused" => sort.by(Some(a.counts.rejected), Some(b.counts.rejected)),
        "errors" => sort.by(a.counts.error_rate(), b.counts.error_rate()),
        "p95" => sort.by(a.counts.p95, b.counts.p95),
        "last" => sort.by(Some(a.last_ms), Some(b.last_ms)),
        _ => sort.by(Some(a.counts.calls), Some(b.counts.calls)),
    });
    html! {
        section.panel id="callers" aria-labelledby="callers-title" {
            div.head { h2 id="callers-title" { "Totals per caller" } @if let Some(ms) = callers.counted_from_ms { span.mute { "calls since " (moment(ms)) ": there are too many to count all" } } }
            @if rows.is_empty() { p.empty { "No calls in this time." } }
            @else {
                div.scroll tabindex="0" role="region" aria-label="Callers" {
                    table.rows {
                        caption.hidden { "Totals per caller" }
                        thead { tr {
                            (sort.head("caller", "Caller", "", First::Smallest)) (sort.head("calls", "Calls", "number", First::Largest)) (sort.head("failed", "Failed", "number", First::Largest)) (sort.head("refused", "Refused", "number", First::Largest))
                            (sort.head("errors", "Errors", "number", First::Largest)) (sort.head("p95", "p95", "number", First::Largest)) (sort.head("last", "Last call", "number", First::Largest))
                        } }
                        tbody { @for one in rows.iter().take(CALLERS) {
                            tr data-testid="caller" data-caller=(one.caller.as_deref().unwrap_or_default()) {
                                th scope="row" { @match &one.caller { Some(caller) => { a.open href=(calls_of(caller, callers)) { (line(caller, 60)) } } None => "without a name" } }
                                td.number { (count(one.counts.calls)) }
                                td.number { (count(one.counts.failed())) }
                                td.number { (count(one.counts.rejected)) }
                                td.number { (some_share(one.counts.error_rate())) }
                                td.number { (some_span(one.counts.p95)) }
                                td.number { (when(one.last_ms)) }
                            }
                        } }
                    }
                }
                @if rows.len() > CALLERS { p.note { (count((rows.len() - CALLERS) as u64)) " more: see GET /v1/callers." } }
            }
        }
    }
}

fn calls_of(caller: &str, callers: &Callers) -> String {
    let mut pairs = vec![
        ("caller".to_owned(), caller.to_owned()),
        ("since".to_owned(), callers.window.as_str().to_owned()),
    ];
    pairs.extend(
        callers
            .tool
            .iter()
            .map(|tool| ("tool".to_owned(), tool.clone())),
    );
    format!("/calls{}", super::calls::text(&pairs))
}

fn address(tool: Option<&str>, window: Window) -> String {
    let mut pairs = vec![("window".to_owned(), window.as_str().to_owned())];
    pairs.extend(tool.map(|tool| ("tool".to_owned(), tool.to_owned())));
    format!("/trends{}", super::calls::text(&pairs))
}

/// The window as numbers, each with what it was before.
pub(super) fn sums(now: &Counts, before: &Counts) -> Markup {
    let rows = [
        ("Calls", count(now.calls), count(before.calls)),
        (
            "Error rate",
            some_share(now.error_rate()),
            some_share(before.error_rate()),
        ),
        ("p50", some_span(now.p50), some_span(before.p50)),
        ("p95", some_span(now.p95), some_span(before.p95)),
        ("Retries", count(now.retries), count(before.retries)),
        ("Breaker trips", count(now.trips), count(before.trips)),
    ];
    html! {
        dl.figures {
            @for (name, now, before) in rows { div { dt { (name) } dd { (now) span.before { "before: " (before) } } } }
        }
    }
}

/// How long calls took, over time.
pub(super) fn times(trends: &Trends) -> Chart<'static> {
    let of = |pick: fn(&Counts) -> Option<f64>| {
        let buckets = trends.buckets.iter();
        buckets.map(|bucket| pick(&bucket.counts)).collect()
    };
    let total = &trends.total;
    Chart {
        id: "chart-times",
        title: "Time",
        summary: format!("p50 {}, p95 {}", some_span(total.p50), some_span(total.p95)),
        series: vec![
            Series {
                name: "p50",
                tone: "calm",
                shape: Shape::Line,
                values: of(|it| it.p50),
            },
            Series {
                name: "p95",
                tone: "warn",
                shape: Shape::Line,
                values: of(|it| it.p95),
            },
        ],
        unit: span,
        least: 1.0,
    }
}

/// Everything that is counted, over time.
pub(super) fn charts(trends: &Trends) -> Markup {
    let of = |pick: &dyn Fn(&Counts) -> Option<f64>| -> Vec<Option<f64>> {
        trends
            .buckets
            .iter()
            .map(|bucket| pick(&bucket.counts))
            .collect()
    };
    let some = |number: u64| Some(number as f64);
    let per = span(trends.bucket_ms as f64);
    let total = &trends.total;
    let charts = [
        Chart {
            id: "chart-calls",
            title: "Calls",
            summary: format!("{}; a column is {per}", parts::in_words(total)),
            series: vec![
                Series {
                    name: "calls",
                    tone: "calm",
                    shape: Shape::Columns,
                    values: of(&|it| some(it.calls)),
                },
                Series {
                    name: "failed",
                    tone: "bad",
                    shape: Shape::Columns,
                    values: of(&|it| some(it.failed())),
                },
            ],
            unit: |value| count(value as u64),
            least: 5.0,
        },
        Chart {
            id: "chart-errors",
            title: "Error rate",
            summary: format!(
                "{} of the {} calls that ran",
                some_share(total.error_rate()),
                count(total.ran)
            ),
            series: vec![Series {
                name: "errors",
                tone: "bad",
                shape: Shape::Line,
                values: of(&Counts::error_rate),
            }],
            unit: share,
            least: 0.1,
        },
        times(trends),
        Chart {
            id: "chart-retries",
            title: "Retries and breaker trips",
            summary: format!(
                "{}, {}",
                counted(total.retries, "retry"),
                counted(total.trips, "trip")
            ),
            series: vec![
                Series {
                    name: "retries",
                    tone: "calm",
                    shape: Shape::Columns,
                    values: of(&|it| some(it.retries)),
                },
                Series {
                    name: "trips",
                    tone: "bad",
                    shape: Shape::Columns,
                    values: of(&|it| some(it.trips)),
                },
            ],
            unit: |value| count(value as u64),
            least: 5.0,
        },
    ];
    html! { div.charts { @for chart in &charts { (chart.draw(trends)) } } }
}
