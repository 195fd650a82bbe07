//! Tools whose definition is another than before: what it was, what it is, what is suspicious about it, and the buttons
//! that decide. A part of `/tools` and of the tool's own page, from `GET /v1/tool-changes`.

use maud::{Markup, html};
use serde_json::Value;

use super::super::format::{counted, cut, line, visible, when};
use super::super::parts::badge;
use steadyhand_config::role::Right;
use steadyhand_runtime::access::Identity;
use steadyhand_runtime::pins::{Change, Difference, PinnedKind, suspicious_passages};
use steadyhand_server::overview;

/// Tools, and places in one of them, that are shown.
const TOOLS: usize = 8;
const PLACES: usize = 8;
/// Places on the page of the tool itself.
const ALL_PLACES: usize = 50;
/// What is shown of one text: in the list, and on the page of the tool itself.
const SHOWN_CHARS: usize = 160;
const SHOWN_BYTES: usize = 2000;
/// All texts of one page together.
const PAGE_BYTES: usize = 24 * 1024;

pub(super) fn panel(changes: &[Change], identity: &Identity) -> Markup {
    // What is kept away waits for somebody.
    let weight = |change: &&Change| (change.rejected, !change.quarantined);
    let mut shown: Vec<&Change> = changes.iter().collect();
    shown.sort_by_key(weight);
    html! {
        @if !changes.is_empty() {
            section.panel id="changes" aria-labelledby="changes-title" data-testid="tool-changes" {
                div.head { h2 id="changes-title" { "Not the definition that was accepted" } span.mute { "from MCP servers" } }
                @for change in shown.iter().take(TOOLS) {
                    div.change id=(format!("change-{}", visible(&change.tool))) data-testid="tool-change" data-tool=(change.tool) {
                        p { strong { a href=(overview::page("tools", &change.tool)) { (visible(&change.tool)) } } " " (state(change)) }
                        (signs(change))
                        (places(change, PLACES, &mut |text| marked(&line(text, SHOWN_CHARS))))
                        (buttons(change, identity))
                    }
                }
                @if changes.len() > TOOLS { p.note { (counted((changes.len() - TOOLS) as u64, "more tool")) ": see GET /v1/tool-changes." } }
            }
        }
    }
}

/// The change on the page of the tool itself, with all of its texts.
pub(super) fn of_tool(change: &Change, identity: &Identity) -> Markup {
    let mut room = PAGE_BYTES;
    let mut shown = |text: &str| {
        let (shown, rest) = cut(text, SHOWN_BYTES.min(room));
        room -= shown.len().min(room);
        html! { (marked(&shown)) @if rest > 0 { span.mute { " … " (rest) " bytes more: see GET /v1/tool-changes" } } }
    };
    html! {
        section.panel id="changes" aria-labelledby="changes-title" data-testid="tool-change" data-tool=(change.tool) {
            div.head { h2 id="changes-title" { @if change.is_new { "It is new" } @else if change.differences.is_empty() { "Its definition is suspicious" } @else { "Its definition changed" } } }
            p { (state(change)) }
            (signs(change))
            div.change { (places(change, ALL_PLACES, &mut shown)) }
            (buttons(change, identity))
        }
    }
}

fn state(change: &Change) -> Markup {
    html! {
        @if change.rejected { (badge("bad", "Rejected")) }
        @else if change.quarantined { (badge("bad", "Kept away")) }
        @else { (badge("warn", "Taken over")) }
        span.mute { @if change.is_new { " new" } " " (kind(change.kind)) " from " (line(&change.source, 60)) ", seen " (when(change.at_ms)) }
        @if change.hints_held { span.bad data-testid="hints-held" { " What it says of itself (read-only, safe to repeat, harmless) is not believed until it is accepted." } }
    }
}

fn kind(kind: PinnedKind) -> &'static str {
    match kind {
        PinnedKind::Tool => "tool",
        PinnedKind::Prompt => "prompt",
        PinnedKind::Resource => "resource",
        PinnedKind::ResourceTemplate => "template of resources",
        PinnedKind::Instructions => "instructions",
    }
}

fn signs(change: &Change) -> Markup {
    html! { @for sign in change.suspicious.iter().take(PLACES) { p.bad data-testid="suspicious" { "Suspicious: " (line(sign, 200)) } } }
}

fn places(change: &Change, most: usize, shown: &mut dyn FnMut(&str) -> Markup) -> Markup {
    html! {
        @if !change.differences.is_empty() {
            dl.pairs {
                @for place in change.differences.iter().take(most) { dt { code { (line(&place.at, 60)) } } dd { (difference(place, shown)) } }
            }
            @if change.differences.len() > most { p.note { (counted((change.differences.len() - most) as u64, "more place")) ": see GET /v1/tool-changes." } }
        }
    }
}

fn difference(place: &Difference, shown: &mut dyn FnMut(&str) -> Markup) -> Markup {
    html! {
        @if !place.before.is_null() { del { span.hidden { "Before: " } (shown(&text(&place.before))) } }
        @if !place.after.is_null() { ins { span.hidden { "Now: " } (shown(&text(&place.after))) } }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// A text of somebody else's with its suspicious passages marked.
pub(super) fn marked(text: &str) -> Markup {
    let mut pieces: Vec<(&str, &str)> = Vec::new();
    let mut at = 0;
    for range in suspicious_passages(text) {
        pieces.push((&text[at..range.start], &text[range.start..range.end]));
        at = range.end;
    }
    html! {
        @for (before, passage) in pieces { (visible(before)) mark title="suspicious" { (visible(passage)) } }
        (visible(&text[at..]))
    }
}

/// What may be done about it, by whom. Nothing but what was seen here is decided.
fn buttons(change: &Change, identity: &Identity) -> Markup {
    let path = overview::page("tools", &change.tool);
    let is_tool = change.kind == PinnedKind::Tool;
    let one = |action: &str, label: &str| {
        html! {
            form.inline method="post" action=(format!("{path}/{action}")) {
                input type="hidden" name="definition_hash" value=(change.definition_hash);
                button type="submit" { (label) span.hidden { " " (visible(&change.tool)) } }
            }
        }
    };
    html! {
        @if identity.may(Right::Operate) {
            div.actions {
                (one("accept", "Accept"))
                @if !change.rejected { (one("reject", "Reject")) }
                @if is_tool && identity.may(Right::Administer) { (one("disable", "Disable")) }
            }
            p.note { "Accept: models get it as it is now. " @if !change.rejected { "Reject: it stays away until its server gives it another definition. " } @if is_tool && identity.may(Right::Administer) { "Disable: it stays away whatever it says; the configuration file says so." } }
        }
    }
}
