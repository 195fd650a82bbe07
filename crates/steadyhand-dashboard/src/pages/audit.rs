//! `/audit`: who decided and changed what. From `GET /v1/audit`.

use maud::{Markup, html};
use serde_json::Value;

use super::super::format::{count, line, moment};
use super::super::parts::badge;
use super::super::{Menu, Page, Request};
use steadyhand_server::http::audit;
use steadyhand_server::http::status::Refused;

const ROWS: usize = 100;

pub(in super::super) async fn page(request: &Request) -> Result<Page, Refused> {
    let before = request.asked("before").and_then(|text| text.parse().ok());
    let view = audit::page(&request.app, before, 0, ROWS).await?;
    let records = view["records"].as_array().map_or(&[][..], Vec::as_slice);
    let body = html! {
        div.head.page { h1 { "Audit log" } }
        section.panel aria-labelledby="audit-title" {
            div.head { h2 id="audit-title" { "Decisions and changes" } }
            @if view["enabled"] == false { p.mute { "The audit log is switched off: " code { "[audit] enabled = false" } "." } }
            @else {
                p.mute { "The newest first. " code { "steadyhand audit verify" } " checks that the log is whole." }
                @if let Some(why) = view["problem"].as_str() { p { (badge("bad", "Not written")) " " (line(why, 400)) } }
                @if let Some(lost @ 1..) = view["unwritten"].as_u64() { p.bad { (count(lost)) " records could not be written." } }
                @if records.is_empty() { p.fine { "Nothing was decided or changed yet." } }
                @else { (table(records)) }
                @if let Some(next) = view["next"].as_u64() { p { a href=(format!("/audit?before={next}")) { "Older records" } } }
            }
        }
    };
    Ok(Page::new("Audit log", Menu::Audit, body))
}

fn table(records: &[Value]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Audit log" {
            table.rows id="audit" {
                caption.hidden { "Decisions and changes, the newest first" }
                thead { tr { th scope="col" { "When" } th scope="col" { "Who" } th scope="col" { "Action" } th scope="col" { "On" } th scope="col" { "Result" } th.wide scope="col" { "From" } th.wide scope="col" { "Record" } } }
                tbody { @for record in records { (row(record)) } }
            }
        }
    }
}

fn row(record: &Value) -> Markup {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let who = &record["who"];
    let number = record["n"].as_u64().unwrap_or(0);
    html! {
        tr id=(format!("record-{number}")) data-testid="audit-record" {
            td.mute { (moment(record["at_ms"].as_u64().unwrap_or(0))) }
            th scope="row" {
                (line(who["name"].as_str().unwrap_or("nobody in particular"), 60))
                @if let Some(role) = who["role"].as_str() { span.about { (line(role, 20)) } }
            }
            td { code { (line(&text(&record["action"]), 60)) } }
            td.said { (line(&text(&record["subject"]), 120)) }
            td { (line(&text(&record["result"]), 60)) }
            td.mute.wide { (line(&text(&record["from"]["way"]), 20)) " " (line(&text(&record["from"]["address"]), 60)) }
            td.mute.wide { (number) }
        }
    }
}
