//! `/config`: the settings in force and where each comes from, and how the last change went. From `GET /v1/config`.

use maud::{Markup, html};
use serde_json::Value;

use super::super::format::{bytes, counted, line, moment, visible};
use super::super::parts::{badge, button, copied_code};
use super::super::{Menu, Page, Request};
use steadyhand_config::connect::{Client, Us, own_command, token_variable};
use steadyhand_server::http::App;
use steadyhand_server::http::config::effective;
use steadyhand_server::http::status::Refused;
use steadyhand_server::serve::presence::reachable;
use steadyhand_server::views;
use steadyhand_store::history::{Health, HealthState};

/// Settings of one page.
const ROWS: usize = 300;

pub(in super::super) async fn page(request: &Request) -> Result<Page, Refused> {
    let app = &request.app;
    let view = effective(app);
    let tools = views::tools::list(&app.runtime, |_| true);
    let settings = view["settings"].as_array().cloned().unwrap_or_default();
    let file = view["file"].as_str();
    let body = html! {
        div.head.page {
            h1 { "Config" }
            (button("/config/reload", "Reload", ""))
        }
        section.panel {
            p {
                @match file {
                    Some(file) => { "From " code { (visible(file)) } }
                    None => { "No configuration file: the demo set. " code { "steadyhand init" } " writes one of your own" }
                }
                ", generation " strong { (view["generation"]) } " in force."
            }
            (last_reload(&view["last_reload"], &view["generation"]))
        }
        (remarks(&tools["problems"]))
        section.panel aria-labelledby="settings-title" {
            div.head { h2 id="settings-title" { "Settings in force" span.mute { " secrets are hidden" } } }
            div.scroll tabindex="0" role="region" aria-label="Settings" {
                table.rows id="settings" {
                    caption.hidden { "Settings in force" }
                    thead { tr { th scope="col" { "Setting" } th scope="col" { "Value" } th scope="col" { "From" } } }
                    tbody {
                        @for setting in settings.iter().take(ROWS) {
                            tr {
                                th scope="row" { code { (line(setting["setting"].as_str().unwrap_or_default(), 120)) } }
                                td { code { (line(&value(&setting["value"]), 120)) } }
                                td.mute { (line(setting["origin"].as_str().unwrap_or_default(), 80)) }
                            }
                        }
                    }
                }
            }
            @if settings.len() > ROWS { p.mute { (counted((settings.len() - ROWS) as u64, "more setting")) ": see GET /v1/config." } }
        }
        (history(&app.history.health()))
        @if let Some(reason) = app.runtime.executor().key_store_trouble() {
            section.panel aria-labelledby="keys-title" {
                div.head { h2 id="keys-title" { "Idempotency keys" } }
                p { (badge("bad", "Refused")) " Calls with an idempotency key are not run." }
                p.bad { (line(&reason, 800)) }
            }
        }
        (connect(app))
    };
    Ok(Page::new("Config", Menu::Config, body))
}

fn value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn last_reload(last: &Value, generation: &Value) -> Markup {
    html! {
        @if last["ok"] == false {
            div.refused data-testid="refused" {
                p { (badge("bad", "Refused")) " The last change has problems, and generation " (generation) " stays in force." }
                ul {
                    @for problem in last["problems"].as_array().into_iter().flatten().take(30) {
                        li {
                            @if let Some(place) = place(problem) { code { (line(&place, 120)) } " " }
                            (line(problem["message"].as_str().unwrap_or_default(), 300))
                            @if let Some(help) = problem["help"].as_str() { span.mute { " " (line(help, 200)) } }
                        }
                    }
                }
            }
        } @else if last["ok"] == true {
            p { (badge("good", "Reloaded")) " The last change is in force." }
        }
    }
}

fn place(problem: &Value) -> Option<String> {
    let file = problem["file"].as_str()?;
    Some(match problem["line"].as_u64() {
        Some(line) => format!("{file}:{line}"),
        None => file.to_owned(),
    })
}

fn remarks(problems: &Value) -> Markup {
    let problems = problems.as_array().map_or(&[][..], Vec::as_slice);
    html! {
        @if !problems.is_empty() {
            section.panel aria-labelledby="missing-title" {
                div.head { h2 id="missing-title" { "Missing, or worth a look" } }
                ul.plain {
                    @for problem in problems.iter().take(30) {
                        li { strong { (line(problem["name"].as_str().unwrap_or_default(), 80)) } " "
                            (line(problem["reason"].as_str().unwrap_or_default(), 400))
                            @if let Some(place) = problem["place"].as_str() { " " code { (line(place, 100)) } } }
                    }
                }
            }
        }
    }
}

fn history(health: &Health) -> Markup {
    html! {
        section.panel aria-labelledby="history-title" {
            div.head { h2 id="history-title" { "History of calls" } }
            p {
                @match health.state {
                    HealthState::Ok => (badge("good", "Written")),
                    HealthState::Degraded => (badge("bad", "Not written")),
                }
                " " code { (visible(&health.path)) } ", " (bytes(health.bytes))
                @if health.dropped > 0 { ", " (counted(health.dropped, "call")) " not written" }
            }
            @if let Some(reason) = &health.reason { p.bad { (line(reason, 400)) " since " (moment(health.since_ms)) } }
            @if let Some(notice) = &health.notice { p.mute { (line(notice, 400)) } }
        }
    }
}

/// One line for each program that can use the tools; `steadyhand connect` says more.
fn connect(app: &App) -> Markup {
    let generation = app.runtime.generation();
    let configuration = &generation.configuration;
    let server = &configuration.root.server;
    let scheme = if server.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let asks = !app.access.load().is_open();
    let us = Us {
        name: "steadyhand".to_owned(),
        base: format!("{scheme}://{}", reachable(app.address)),
        token: asks.then(|| token_variable(server)),
        command: own_command(configuration.file.as_deref(), None),
    };
    html! {
        section.panel aria-labelledby="connect-title" {
            div.head { h2 id="connect-title" { "Connect a client" } }
            dl.pairs data-testid="connect" {
                @for client in Client::ALL {
                    dt { (client.title()) }
                    dd { (copied_code("the command", &client.line(client.usual_way(), &us), 400)) }
                }
            }
        }
    }
}
