//! Tools whose definition is another than before: what it was, what it is, and the button that accepts it. A part of
//! `/tools`, from `GET /v1/tool-changes`.

use maud::{Markup, html};
use serde_json::Value;

use super::super::format::{counted, line, visible, when};
use super::super::parts::badge;
use crate::overview;
use crate::pins::{Change, Difference};

/// Tools, and places in one of them, that are shown.
const TOOLS: usize = 8;
const PLACES: usize = 8;
const SHOWN_CHARS: usize = 160;

pub(super) fn panel(changes: &[Change]) -> Markup {
    // What is kept away waits for somebody.
    let (kept_away, others): (Vec<&Change>, Vec<&Change>) =
        changes.iter().partition(|change| change.quarantined);
    let shown = kept_away.into_iter().chain(others).take(TOOLS);
    html! {
        @if !changes.is_empty() {
            section.panel id="changes" aria-labelledby="changes-title" data-testid="tool-changes" {
                div.head { h2 id="changes-title" { "Not the definition that was accepted" } span.mute { "from MCP servers" } }
                @for change in shown { (one(change)) }
                @if changes.len() > TOOLS { p.note { (counted((changes.len() - TOOLS) as u64, "more tool")) ": see GET /v1/tool-changes." } }
            }
        }
    }
}

fn one(change: &Change) -> Markup {
    let action = format!("{}/accept", overview::page("tools", &change.tool));
    html! {
        div.change id=(format!("change-{}", visible(&change.tool))) data-testid="tool-change" data-tool=(change.tool) {
            p {
                strong { (visible(&change.tool)) } " "
                @if change.quarantined { (badge("bad", "Kept away")) } @else { (badge("warn", "Taken over")) }
                span.mute { " from " (line(&change.source, 60)) ", seen " (when(change.at_ms)) }
            }
            @for sign in change.suspicious.iter().take(PLACES) { p.bad { "Suspicious: " (line(sign, 200)) } }
            @if !change.differences.is_empty() {
                dl.pairs {
                    @for place in change.differences.iter().take(PLACES) { dt { code { (line(&place.at, 60)) } } dd { (difference(place)) } }
                }
                @if change.differences.len() > PLACES { p.note { (counted((change.differences.len() - PLACES) as u64, "more place")) ": see GET /v1/tool-changes." } }
            }
            form.inline method="post" action=(action) {
                // What was seen here is what is accepted, and nothing that came later.
                input type="hidden" name="seen_ms" value=(change.at_ms);
                button type="submit" { "Accept" span.hidden { " " (visible(&change.tool)) } }
            }
        }
    }
}

fn difference(place: &Difference) -> Markup {
    html! {
        @if !place.before.is_null() { del { span.hidden { "Before: " } (text(&place.before)) } }
        @if !place.after.is_null() { ins { span.hidden { "Now: " } (text(&place.after)) } }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => line(text, SHOWN_CHARS),
        value => line(&value.to_string(), SHOWN_CHARS),
    }
}
