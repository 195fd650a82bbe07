//! `/alerts`: what goes wrong now, what went wrong earlier and what ended it. From `GET /v1/alerts`.

use maud::{Markup, html};
use serde_json::Value;

use super::super::format::{count, line, until, visible, when};
use super::super::parts::{badge, button};
use super::super::{Menu, Page, Request};
use steadyhand_server::http::status::Refused;
use steadyhand_server::overview;

const ROWS: usize = 40;

pub(in super::super) async fn page(request: &Request) -> Result<Page, Refused> {
    let view = request.app.alerts.view();
    let alerts = view["alerts"].as_array().map_or(&[][..], Vec::as_slice);
    let (over, now): (Vec<&Value>, Vec<&Value>) =
        alerts.iter().partition(|alert| alert["state"] == "cleared");
    let body = html! {
        div.head.page { h1 { "Alerts" span.mute { " " (count(now.len() as u64)) " now" } } }
        section.panel aria-labelledby="now-title" {
            div.head { h2 id="now-title" { "Now" } }
            @if now.is_empty() { p.fine { span.dot.good {} strong { "No alert" } } }
            @else { (current(&now)) }
        }
        @if !over.is_empty() { (earlier(&over)) }
        (rules(&view))
    };
    let title = match now.len() {
        0 => "Alerts".to_owned(),
        some => format!("({some}) Alerts"),
    };
    Ok(Page::new(title, Menu::Alerts, body))
}

fn text<'a>(alert: &'a Value, key: &str) -> &'a str {
    alert[key].as_str().unwrap_or_default()
}

fn current(now: &[&Value]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Alerts now" {
            table.rows id="alerts" {
                caption.hidden { "Alerts now" }
                thead { tr { th scope="col" { "About" } th scope="col" { "State" } th scope="col" { "What" } th scope="col" { "Since" } th.wide scope="col" { "Rule" } th scope="col" { span.hidden { "Actions" } } } }
                tbody { @for alert in now.iter().take(ROWS) {
                    @let id = text(alert, "id");
                    @let path = overview::page("alerts", id);
                    tr id=(format!("alert-{}", visible(id))) data-testid="alert" data-state=(text(alert, "state")) {
                        th scope="row" { (subject(alert)) }
                        td {
                            @if text(alert, "state") == "acknowledged" { (badge("warn", "Acknowledged")) @if let Some(by) = alert["acknowledged_by"].as_str() { span.about { "by " (line(by, 40)) } } }
                            @else { (badge("bad", "Raised")) }
                            @if let Some(at) = alert["silenced_until_ms"].as_u64() { span.about { "Silenced, over " (until(at)) } }
                        }
                        td.said { (line(text(alert, "message"), 240)) }
                        td.mute { (when(alert["raised_ms"].as_u64().unwrap_or(0))) }
                        td.mute.wide { code { (line(text(alert, "rule"), 60)) } }
                        td.act {
                            @if text(alert, "state") == "raised" { (button(&format!("{path}/ack"), "Acknowledge", &visible(text(alert, "subject")))) }
                            @if alert["silenced_until_ms"].is_null() { (button(&format!("{path}/silence"), "Silence 1 h", &visible(text(alert, "subject")))) }
                        }
                    }
                } }
            }
        }
        @if now.len() > ROWS { p.mute { (count((now.len() - ROWS) as u64)) " more: see GET /v1/alerts." } }
    }
}

/// The page of what it is about.
fn subject(alert: &Value) -> Markup {
    let name = text(alert, "subject");
    let kind = match text(alert, "watched") {
        "server_down" => "servers",
        "approval_waiting" => return html! { a.open href="/approvals" { (line(name, 80)) } },
        "invalid_responses" | "mended_conversations" => return html! { (line(name, 80)) },
        _ => "tools",
    };
    html! { a.open href=(overview::page(kind, name)) { (line(name, 80)) } }
}

fn earlier(over: &[&Value]) -> Markup {
    html! {
        section.panel aria-labelledby="earlier-title" {
            div.head { h2 id="earlier-title" { "Earlier" } }
            div.scroll tabindex="0" role="region" aria-label="Earlier alerts" {
                table.rows {
                    caption.hidden { "Alerts that are over" }
                    thead { tr { th scope="col" { "About" } th scope="col" { "What" } th scope="col" { "From" } th scope="col" { "To" } th scope="col" { "What ended it" } } }
                    tbody { @for alert in over.iter().take(ROWS) {
                        tr id=(format!("alert-{}", visible(text(alert, "id")))) data-testid="alert" data-state="cleared" {
                            th scope="row" { (subject(alert)) }
                            td.said { (line(text(alert, "message"), 200)) }
                            td.mute { (when(alert["raised_ms"].as_u64().unwrap_or(0))) }
                            td.mute { (when(alert["cleared_ms"].as_u64().unwrap_or(0))) }
                            td.said { (line(text(alert, "cleared_because"), 160)) }
                        }
                    } }
                }
            }
        }
    }
}

fn rules(view: &Value) -> Markup {
    let rules = view["rules"].as_array().into_iter().flatten();
    let webhooks = view["webhooks"].as_array().map_or(&[][..], Vec::as_slice);
    html! {
        section.panel aria-labelledby="rules-title" {
            div.head { h2 id="rules-title" { "Rules in force" } }
            ul.kinds { @for rule in rules.take(60) { li { code { (line(rule.as_str().unwrap_or_default(), 120)) } } } }
            @if !webhooks.is_empty() {
                h3 { "Who is told" }
                ul.plain { @for one in webhooks.iter().take(20) {
                    li { code { (line(text(one, "to"), 120)) } " "
                        span.mute { (one["sent"].as_u64().unwrap_or(0)) " told, " (one["failed"].as_u64().unwrap_or(0)) " not, " (one["dropped"].as_u64().unwrap_or(0)) " dropped" @if let Some(error) = one["last_error"].as_str() { ". Last: " (line(error, 160)) } } }
                } }
            }
        }
    }
}
