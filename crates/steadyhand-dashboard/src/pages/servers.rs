//! `/servers`: every MCP server in a line. From `GET /v1/servers`.

use std::cmp::Ordering;

use maud::{Markup, html};
use serde_json::Value;

use super::super::format::{counted, line, visible};
use super::super::parts::badge;
use super::super::sort::{First, Sort};
use super::super::{Menu, Page, Request};
use steadyhand_server::http::status::Refused;
use steadyhand_server::overview;
use steadyhand_server::views;

pub(in super::super) async fn page(request: &Request) -> Result<Page, Refused> {
    let mut servers = views::servers::all(&request.app.runtime);
    let sort = Sort::of("/servers", &request.query, "");
    let text = |server: &Value, key: &str| server[key].as_str().map(str::to_owned);
    servers.sort_by(|a, b| match sort.key() {
        key @ ("name" | "status" | "place") => sort.by(text(a, key), text(b, key)),
        key @ ("tools" | "starts" | "deaths") => sort.by(a[key].as_u64(), b[key].as_u64()),
        _ => Ordering::Equal,
    });
    let body = html! {
        div.head.page { h1 { "Servers" span.mute { " " (servers.len()) } } }
        section.panel {
            @if servers.is_empty() {
                p.empty { "No MCP servers. " code { "steadyhand mcp add" } " adds one, " code { "steadyhand mcp import" } " takes over what other programs have." }
            } @else {
                div.scroll tabindex="0" role="region" aria-label="Servers" {
                    table.rows id="servers" {
                        caption.hidden { "MCP servers" }
                        thead { tr {
                            (sort.head("name", "Server", "", First::Smallest)) (sort.head("status", "State", "", First::Smallest)) (sort.head("tools", "Tools", "number", First::Largest))
                            (sort.head("starts", "Starts", "number", First::Largest)) (sort.head("deaths", "Deaths", "number", First::Largest)) (sort.head("place", "Configured at", "", First::Smallest))
                            th scope="col" { "What is the matter" }
                        } }
                        tbody { @for server in &servers { (row(server)) } }
                    }
                }
            }
        }
    };
    Ok(Page::new("Servers", Menu::Servers, body))
}

fn row(server: &Value) -> Markup {
    let name = server["name"].as_str().unwrap_or_default();
    let number = |key: &str| {
        server[key]
            .as_u64()
            .map_or("–".to_owned(), |number| number.to_string())
    };
    html! {
        tr id=(format!("server-{}", visible(name))) data-testid="server-row" data-server=(name) data-state=(server["status"].as_str().unwrap_or_default()) {
            th scope="row" { a.open href=(overview::page("servers", name)) { (visible(name)) } @if let Some(command) = server["command"].as_str() { span.about { code { (line(command, 80)) } } } }
            td { (status(server)) }
            td.number { (number("tools")) }
            td.number { (number("starts")) }
            td.number { (number("deaths")) }
            td.mute { (line(server["place"].as_str().unwrap_or("–"), 60)) }
            td.said { @match server["reason"].as_str() { Some(reason) => (line(reason, 160)), None => { span.mute { @if server["noise_lines"].as_u64() > Some(0) { (counted(server["noise_lines"].as_u64().unwrap_or(0), "line")) " on stdout that are no messages" } @else { "–" } } } } }
        }
    }
}

/// Its state in a word.
pub(super) fn status(server: &Value) -> Markup {
    match server["status"].as_str().unwrap_or_default() {
        "running" => badge("good", "Running"),
        "idle" => badge("mute", "Idle"),
        "starting" => badge("info", "Starting"),
        "restarting" => badge("warn", "Restarting"),
        "not running" => badge("bad", "Not running"),
        "stopped" => badge("mute", "Stopped"),
        "disabled" => badge("mute", "Disabled"),
        other => badge("mute", &line(other, 30)),
    }
}
