//! `/conversations/{id}`: who said what, which call has which result, and what a provider would refuse. From
//! `GET /v1/conversations/{id}`.

use maud::{Markup, html};

use super::super::format::{bytes, counted, cut, html_bytes, json, line, moment, visible};
use super::super::parts::badge;
use super::super::{Menu, Page, Request};
use steadyhand_server::conversations::seen::{
    Said, SeenCall, SeenConversation, SeenTurn, Speaker, Through,
};
use steadyhand_server::http::said;
use steadyhand_server::http::status::Refused;
use steadyhand_server::overview;

/// What is shown of all that was said, and of one text, in bytes of HTML.
const PAGE_BYTES: usize = 40 * 1024;
const TEXT_BYTES: usize = 3 * 1024;
/// The same where one message alone is more than a page.
const SHORT_TEXT_BYTES: usize = 300;
/// What is around a text.
const MARKUP_BYTES: usize = 500;
/// Fixes that are listed.
const FIXES_MAX: usize = 10;
/// Calls that are shown of one message.
const CALLS_MAX: usize = 20;

pub(in super::super) async fn page(request: &Request, id: &str) -> Result<Page, Refused> {
    let conversation = said::read(&request.app, id).await?;
    let shown = fitting(&conversation.turns);
    let left_out = shown.first().map_or(0, |turn| turn.number - 1);
    let body = html! {
        p.way { a href="/conversations" { "Conversations" } }
        div.head.page { h1 { "Conversation " code { (visible(&conversation.id)) } " " (state(&conversation)) } }
        p.sentence data-testid="sentence" { (sentence(&conversation)) }
        (problems(&conversation))
        (fixes(&conversation))
        @if conversation.turns.is_empty() { section.panel { p.empty { "Nothing was said yet." } } }
        @if left_out > 0 || conversation.left_out_bytes > 0 {
            p.note { "What came before is not on this page: "
                @if left_out > 0 { (counted(left_out as u64, "turn")) } @else { (bytes(conversation.left_out_bytes)) }
                ". The whole is in its file in the state folder." }
        }
        @if conversation.messages_left_out > 0 {
            p.note { "It was too long to be kept whole: " (counted(conversation.messages_left_out as u64, "message")) " at its beginning are not in its file." }
        }
        @for turn in &shown { (turn_of(turn, conversation.through)) }
    };
    Ok(Page::new(
        format!("Conversation {}", line(id, 40)),
        Menu::Conversations,
        body,
    ))
}

/// A turn, or the end of it, as far as there is room.
struct Shown<'a> {
    number: usize,
    turn: &'a SeenTurn,
    said: &'a [Said],
    text_bytes: usize,
}

/// The last of what was said, as much as a page can hold.
fn fitting(turns: &[SeenTurn]) -> Vec<Shown<'_>> {
    let mut room = PAGE_BYTES;
    let mut shown = Vec::new();
    for (at, turn) in turns.iter().enumerate().rev() {
        let mut first = turn.said.len();
        let mut text_bytes = TEXT_BYTES;
        for said in turn.said.iter().rev() {
            let taken = size(said);
            // The last one is shown whatever it takes, with less of each text.
            let is_last = shown.is_empty() && first == turn.said.len();
            if taken > room && !is_last {
                break;
            }
            if taken > room {
                text_bytes = SHORT_TEXT_BYTES;
            }
            room = room.saturating_sub(taken);
            first -= 1;
        }
        let said = &turn.said[first..];
        if !said.is_empty() {
            shown.push(Shown {
                number: at + 1,
                turn,
                said,
                text_bytes,
            });
        }
        if first > 0 {
            break;
        }
    }
    shown.reverse();
    shown
}

fn size(said: &Said) -> usize {
    let text = |text: &str| html_bytes(text).min(TEXT_BYTES) + MARKUP_BYTES;
    let call = |call: &SeenCall| {
        let result = call.result.as_ref();
        text(&json(&call.arguments)) + result.map_or(0, |result| text(&result.text))
    };
    text(&said.text) + said.calls.iter().take(CALLS_MAX).map(call).sum::<usize>()
}

fn state(conversation: &SeenConversation) -> Markup {
    let is_refused = conversation.status.is_some_and(|status| status >= 400);
    match (
        conversation.open_calls.is_empty(),
        conversation.problems.is_empty(),
    ) {
        _ if is_refused => badge("bad", "Refused"),
        _ if conversation.fix_count > 0 => badge("warn", "Mended"),
        (true, true) => badge("good", "Complete"),
        // Its client runs them, and comes back with their results.
        (false, _) if conversation.through == Through::Proxy => badge("info", "Calls"),
        (false, _) => badge("bad", "Open call"),
        (true, false) => badge("warn", "Warning"),
    }
}

fn sentence(conversation: &SeenConversation) -> Markup {
    let open = conversation.open_calls.len();
    html! {
        @if let Some(provider) = &conversation.provider {
            "Through the proxy to " (line(provider, 40))
            @if let Some(model) = &conversation.model { ", " (line(model, 80)) }
            @if let Some(caller) = &conversation.caller { ", asked by " (line(caller, 60)) }
            @if let Some(status) = conversation.status { ", answered " (status) }
            ". "
        }
        (counted(conversation.turns.len() as u64, "turn")) ", " (counted(conversation.calls as u64, "call")) ". "
        @if conversation.calls == 0 { "No tool was asked for." }
        @else if open == 0 { "Every call has its result." }
        @else if conversation.through == Through::Proxy {
            (counted(open as u64, "call")) " without a result so far: its client runs them, and comes back."
        }
        @else {
            strong { (counted(open as u64, "call")) " without a result" } ", so a provider would refuse the next message: "
            @for id in conversation.open_calls.iter().take(5) { code { (line(id, 80)) } " " }
            "It is answered when the conversation goes on (" code { "steadyhand chat --resume=" (visible(&conversation.id)) } ")."
        }
        " Last said " (moment(conversation.changed_ms)) "."
        @if conversation.unreadable > 0 { " " (counted(conversation.unreadable as u64, "line")) " of its file cannot be read." }
    }
}

fn problems(conversation: &SeenConversation) -> Markup {
    html! {
        @if !conversation.problems.is_empty() {
            section.panel.cause aria-labelledby="problems-title" data-testid="faults" {
                div.head { h2 id="problems-title" { "What a provider would refuse, mended when it goes on" } }
                ul.plain { @for problem in &conversation.problems { li { code { (visible(&problem.code)) } " " (line(&problem.message, 300)) } } }
            }
        }
    }
}

fn fixes(conversation: &SeenConversation) -> Markup {
    let more = conversation.fix_count - conversation.fixes.len().min(conversation.fix_count);
    html! {
        @if conversation.fix_count > 0 {
            section.panel.cause aria-labelledby="fixes-title" data-testid="fixes" {
                div.head { h2 id="fixes-title" { "Mended on the way to the provider, in the last request" } }
                ul.plain { @for fix in conversation.fixes.iter().take(FIXES_MAX) {
                    li { code { (visible(&fix.code)) } " at " code { (line(&fix.at, 80)) } " " (line(&fix.message, 200)) }
                } }
                @let more = more + conversation.fixes.len().saturating_sub(FIXES_MAX);
                @if more > 0 { p.note { (counted(more as u64, "more fix")) } }
            }
        }
    }
}

fn turn_of(shown: &Shown<'_>, through: Through) -> Markup {
    let (turn, number) = (shown.turn, shown.number);
    let is_whole = turn.calls == turn.results;
    let left_out = turn.said.len() - shown.said.len();
    html! {
        section.panel.turn id=(format!("turn-{number}")) aria-labelledby=(format!("turn-{number}-title")) data-testid="turn" {
            div.head {
                h2 id=(format!("turn-{number}-title")) { "Turn " (number) }
                @if turn.calls > 0 {
                    span.mute { (counted(turn.calls as u64, "call")) ", " (counted(turn.results as u64, "result")) " "
                        @if is_whole { (badge("good", "Complete")) } @else if through == Through::Proxy { (badge("info", "Calls")) } @else { (badge("bad", "Open call")) } }
                }
            }
            @if left_out > 0 { p.note { "The first " (counted(left_out as u64, "message")) " of it are not on this page." } }
            @for said in shown.said { (message(said, shown.text_bytes, through)) }
        }
    }
}

fn message(said: &Said, text_bytes: usize, through: Through) -> Markup {
    let (who, word) = match said.by {
        Speaker::System => ("system", "Told to be"),
        Speaker::Human => ("human", "Person"),
        Speaker::Model => ("model", "Model"),
        Speaker::Tool => ("tool", "Result without its call"),
        Speaker::Other => ("other", "Other"),
    };
    html! {
        div.message.(who) {
            span.who { (word) }
            div {
                @if !said.text.trim().is_empty() { p.lines { (text(&said.text, said.bytes, text_bytes)) } }
                @else if said.calls.is_empty() { p.mute { "Said nothing." } }
                @for call in said.calls.iter().take(CALLS_MAX) { (called(call, text_bytes, through)) }
                @if said.calls.len() > CALLS_MAX { p.note { (counted((said.calls.len() - CALLS_MAX) as u64, "more call")) } }
            }
        }
    }
}

fn called(call: &SeenCall, text_bytes: usize, through: Through) -> Markup {
    html! {
        details.called data-testid="called" {
            summary {
                strong { (line(&call.tool, 80)) } " "
                @match &call.result {
                    None if through == Through::Proxy => (badge("info", "No result yet")),
                    None => (badge("bad", "No result")),
                    Some(result) if result.is_error => (badge("bad", "Failed")),
                    Some(_) => (badge("good", "OK")),
                }
                " " code.mute { (line(&call.arguments.to_string(), 90)) }
            }
            dl.pairs {
                dt { "Id" } dd {
                    @match through {
                        Through::Chat => { a href=(overview::page("calls", &call.id)) { code { (line(&call.id, 120)) } } }
                        // Run by the client, not here.
                        Through::Proxy => { code { (line(&call.id, 120)) } }
                    }
                }
                dt { "Arguments" } dd { pre tabindex="0" aria-label="Arguments" { (cut(&json(&call.arguments), text_bytes).0) } }
                dt { "Result" } dd {
                    @match &call.result {
                        None => { "None: the model waits for it." }
                        Some(result) if result.text.trim().is_empty() => { "The tool answered with no content." }
                        Some(result) => { pre tabindex="0" aria-label="Result" { (text(&result.text, result.bytes, text_bytes)) } }
                    }
                }
            }
        }
    }
}

/// As much of it as fits, and how much there is besides.
fn text(text: &str, all: usize, bytes_max: usize) -> Markup {
    let (shown, _) = cut(text, bytes_max);
    let is_cut = shown.len() < visible(text).len() || text.len() < all;
    html! { (shown) @if is_cut { span.mute { " … " (bytes(all as u64)) " in all" } } }
}
