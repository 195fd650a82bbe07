//! `/conversations`: what was talked about with tools at hand, and what the proxy had to mend lately. From
//! `GET /v1/conversations` and `GET /v1/exchanges`.

use maud::{Markup, html};

use super::super::format::{bytes, count, counted, line, moment, visible, when};
use super::super::parts::badge;
use super::super::{Menu, Page, Request};
use steadyhand_server::conversations::seen::{
    ConversationSummary, Conversations, LISTED_MAX, Through,
};
use steadyhand_server::http::status::Refused;
use steadyhand_server::http::{exchanges, said};
use steadyhand_server::overview;
use steadyhand_store::history::Exchange;

/// Exchanges with providers that are listed.
const EXCHANGES: usize = 10;

pub(in super::super) async fn page(request: &Request) -> Result<Page, Refused> {
    let before = request.asked("before").map(str::to_owned);
    let is_newest = before.is_none();
    let listed = said::all(&request.app, before).await?;
    let mended = match is_newest {
        true => exchanges::page(&request.app, None, EXCHANGES).await.ok(),
        false => None,
    };
    let body = html! {
        div.head.page { h1 { "Conversations" span.mute { " " (count(listed.count as u64)) } } }
        section.panel {
            @if listed.conversations.is_empty() {
                p.empty { "No conversation is kept here. " code { "steadyhand chat" } " begins one; those through the proxy are kept where "
                    code { "keep_conversations = true" } " stands under " code { "[proxy.…]" } "." }
            } @else {
                (table(&listed))
                div.foot {
                    span.mute { "Showing " (count(listed.conversations.len() as u64)) @if listed.count > LISTED_MAX { " of " (count(listed.count as u64)) } }
                    @if !is_newest { a href="/conversations" { "Newest" } }
                    @if let Some(next) = &listed.next { a rel="next" href=(format!("/conversations?before={}", visible(next))) { "Older" } }
                }
            }
        }
        @if let Some(mended) = mended.filter(|it| !it.exchanges.is_empty()) { (exchanged(&mended.exchanges)) }
    };
    Ok(Page::new("Conversations", Menu::Conversations, body))
}

fn table(listed: &Conversations) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Conversations" {
            table.rows id="conversations" {
                caption.hidden { "Conversations, the newest first" }
                thead { tr { th scope="col" { "Last said" } th scope="col" { "Began with" } th scope="col" { "Through" } th scope="col" { "Mended" } th.number.wide scope="col" { "Size" } th.wide scope="col" { "Name" } } }
                tbody {
                    @for one in &listed.conversations {
                        tr id=(format!("conversation-{}", visible(&one.id))) data-testid="conversation" {
                            td.mute { (moment(one.changed_ms)) }
                            th.said scope="row" { a.open href=(overview::page("conversations", &one.id)) { @if one.title.trim().is_empty() { "Nothing yet" } @else { (line(&one.title, 100)) } } }
                            td { (through(one)) }
                            td { @if one.fixes > 0 { (badge("warn", &counted(one.fixes as u64, "fix"))) } @else { span.mute { "–" } } }
                            td.number.wide { (bytes(one.bytes)) }
                            td.mute.wide { code { (visible(&one.id)) } }
                        }
                    }
                }
            }
        }
    }
}

fn through(one: &ConversationSummary) -> Markup {
    html! {
        @match one.through {
            Through::Chat => { "chat" }
            Through::Proxy => {
                "proxy, " (line(one.provider.as_deref().unwrap_or_default(), 40))
                @if let Some(model) = &one.model { span.about { (line(model, 60)) } }
            }
        }
    }
}

/// What was mended, refused or broken on its way to a provider and back.
fn exchanged(exchanges: &[Exchange]) -> Markup {
    html! {
        section.panel aria-labelledby="exchanges-title" {
            div.head { h2 id="exchanges-title" { "In the proxy: mended, refused, broken" } }
            div.scroll tabindex="0" role="region" aria-label="Exchanges with providers" {
                table.rows {
                    caption.hidden { "Exchanges with providers in which something was mended, refused or broken, the newest first" }
                    thead { tr { th scope="col" { "Time" } th scope="col" { "Provider" } th scope="col" { "What became of it" } th scope="col" { "What" } th scope="col" { "From" } } }
                    tbody { @for one in exchanges {
                        tr id=(format!("exchange-{}", visible(&one.key))) data-testid="exchange" {
                            td.mute { (when(one.at_ms)) }
                            th scope="row" { (line(&one.provider, 40)) @if let Some(model) = &one.model { span.about { (line(model, 60)) } } }
                            td { (fate(one)) }
                            td.said { (what(one)) }
                            td.mute { (line(one.caller.as_deref().unwrap_or("–"), 40)) }
                        }
                    } }
                }
            }
        }
    }
}

fn fate(one: &Exchange) -> Markup {
    html! {
        @if one.failure.is_some() { (badge("bad", "No answer")) }
        @else if one.refusal.is_some() { (badge("bad", "Refused")) " " span.mute { (one.status) } }
        @else if !one.problems.is_empty() { (badge("bad", "Broken answer")) }
        @else { (badge("warn", "Mended")) }
    }
}

/// The first of what there is to tell, the rest counted.
fn what(one: &Exchange) -> Markup {
    let failure = one.failure.as_ref().map(|it| it.message.as_str());
    let refusal = one.refusal.as_ref().map(|it| it.message.as_str());
    let found = one.problems.iter().chain(&one.fixes);
    let first = found.map(|it| it.message.as_str()).next();
    let told = failure.or(refusal).or(first).unwrap_or_default();
    html! {
        (line(told, 160))
        @if one.fix_count > 1 || (one.fix_count > 0 && failure.or(refusal).is_some()) { span.about { (counted(one.fix_count as u64, "fix")) " in all" } }
    }
}
