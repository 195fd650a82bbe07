//! `/conversations`: what was talked about with tools at hand. From `GET /v1/conversations`.

use maud::{Markup, html};

use super::super::format::{bytes, count, line, moment, visible};
use super::super::{Menu, Page, Request};
use crate::conversations::seen::{Conversations, LISTED_MAX};
use crate::http::said;
use crate::http::status::Refused;
use crate::overview;

pub(in super::super) async fn page(request: &Request) -> Result<Page, Refused> {
    let before = request.asked("before").map(str::to_owned);
    let is_newest = before.is_none();
    let listed = said::all(&request.app, before).await?;
    let body = html! {
        div.head.page { h1 { "Conversations" span.mute { " " (count(listed.count as u64)) } } }
        section.panel {
            @if listed.conversations.is_empty() {
                p.empty { "No conversation is kept here. " code { "steadyhand chat" } " begins one." }
            } @else {
                (table(&listed))
                div.foot {
                    span.mute { "Showing " (count(listed.conversations.len() as u64)) @if listed.count > LISTED_MAX { " of " (count(listed.count as u64)) } }
                    @if !is_newest { a href="/conversations" { "Newest" } }
                    @if let Some(next) = &listed.next { a rel="next" href=(format!("/conversations?before={}", visible(next))) { "Older" } }
                }
            }
        }
    };
    Ok(Page::new("Conversations", Menu::Conversations, body))
}

fn table(listed: &Conversations) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Conversations" {
            table.rows id="conversations" {
                caption.hidden { "Conversations, the newest first" }
                thead { tr { th scope="col" { "Last said" } th scope="col" { "Began with" } th.number scope="col" { "Size" } th scope="col" { "Name" } } }
                tbody {
                    @for one in &listed.conversations {
                        tr id=(format!("conversation-{}", visible(&one.id))) data-testid="conversation" {
                            td.mute { (moment(one.changed_ms)) }
                            th.said scope="row" { a.open href=(overview::page("conversations", &one.id)) { @if one.title.trim().is_empty() { "Nothing yet" } @else { (line(&one.title, 100)) } } }
                            td.number { (bytes(one.bytes)) }
                            td.mute { code { (visible(&one.id)) } }
                        }
                    }
                }
            }
        }
    }
}
