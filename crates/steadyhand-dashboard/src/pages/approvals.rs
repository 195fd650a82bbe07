//! `/approvals`: who waits for a yes or a no. From `GET /v1/approvals`.

use maud::{Markup, html};

use super::super::format::{count, cut, json, line, until, visible, when};
use super::super::parts::{badge, tool_link};
use super::super::{Menu, Page, Request};
use steadyhand_runtime::approvals::{Approval, ApprovalState};
use steadyhand_server::http::status::Refused;
use steadyhand_server::overview;

/// What one page shows of those that wait, and of those that are over.
const WAITING: usize = 20;
const OVER: usize = 20;
/// More than the approval itself shows, nearly always.
const ARGUMENTS_BYTES: usize = 64 * 1024;

pub(in super::super) async fn page(request: &Request) -> Result<Page, Refused> {
    let approvals = request.app.desk.list();
    let is_waiting = |approval: &Approval| approval.state == ApprovalState::Waiting;
    let (waiting, over): (Vec<Approval>, Vec<Approval>) =
        approvals.into_iter().partition(is_waiting);
    let body = html! {
        div.head.page { h1 { "Approvals" span.mute { " " (count(waiting.len() as u64)) " waiting" } } }
        section.panel aria-label="Waiting" {
            @if waiting.is_empty() {
                p.empty { "Nobody waits for a yes. A tool with " code { "approval = \"always\"" } " or " code { "\"ask\"" } " would." }
            }
            @for approval in waiting.iter().take(WAITING) { (question(approval, request.identity.may_decide())) }
            @if waiting.len() > WAITING { p.mute { (count((waiting.len() - WAITING) as u64)) " more, once these are decided." } }
        }
        @if !over.is_empty() { (earlier(&over)) }
    };
    let title = match waiting.len() {
        0 => "Approvals".to_owned(),
        some => format!("({some}) Approvals"),
    };
    Ok(Page::new(title, Menu::Approvals, body))
}

fn question(approval: &Approval, may_decide: bool) -> Markup {
    let (arguments, rest) = cut(&json(&approval.arguments), ARGUMENTS_BYTES);
    let id = visible(&approval.id);
    let field = format!("reason-{id}");
    html! {
        div.question id=(format!("approval-{id}")) data-testid="approval" data-tool=(approval.tool) {
            div.head {
                strong { (tool_link(&approval.tool)) }
                span.mute { "asked by " (line(approval.caller.as_deref().unwrap_or("unknown"), 80))
                    @if let Some(conversation) = &approval.conversation { " in " (line(conversation, 60)) } }
                span.expires { "expires " (until(approval.expires_ms)) }
            }
            pre tabindex="0" aria-label=(format!("Arguments for {}", visible(&approval.tool))) { (arguments) }
            @if !approval.hidden.is_empty() || rest > 0 { (not_shown(approval, rest)) }
            @if !may_decide {
                p.note data-testid="log-in" { "To decide, " a href="/login?back=/approvals" { "log in" } " with the link that " code { "steadyhand approvals" } " prints, or use " code { "steadyhand approve " (id) } "." }
            }
            @else { form.actions method="post" action=(overview::page("approvals", &approval.id)) {
                // A yes is to what was seen: to other arguments it is none.
                input type="hidden" name="arguments_hash" value=(approval.arguments_hash);
                @if rest > 0 { input type="hidden" name="rest" value=(rest); }
                button.primary type="submit" name="decision" value="approve" { "Approve" span.hidden { " " (visible(&approval.tool)) } }
                button type="submit" name="decision" value="deny" { "Deny" span.hidden { " " (visible(&approval.tool)) } }
                label.hidden for=(field) { "Reason, if you deny it" }
                input id=(field) name="reason" maxlength="500" placeholder="Reason, if you deny it" autocomplete="off" data-keep;
            } }
            @if approval.approval == "ask" && approval.conversation.is_some() {
                p.note { "A yes holds for the same arguments in this conversation." }
            }
        }
    }
}

/// What this page does not show, with sizes and hashes: a yes to it takes a second step.
pub(in super::super) fn not_shown(approval: &Approval, rest: usize) -> Markup {
    html! {
        div data-testid="not-shown" {
            p.note { "Not everything is shown. The arguments as a whole are " code { (approval.arguments_hash) } "." }
            ul {
                @for part in &approval.hidden { li { (visible(&part.in_words())) } }
                @if rest > 0 { li { (count(rest as u64)) " bytes at the end: too large for this page" } }
            }
        }
    }
}

fn earlier(over: &[Approval]) -> Markup {
    html! {
        section.panel aria-labelledby="earlier-title" {
            div.head { h2 id="earlier-title" { "Earlier" } }
            div.scroll tabindex="0" role="region" aria-label="Earlier approvals" {
                table.rows {
                    caption.hidden { "Approvals that were decided, expired or withdrawn" }
                    thead { tr { th scope="col" { "Time" } th scope="col" { "Tool" } th scope="col" { "What became of it" } th scope="col" { "By" } th scope="col" { "Asked by" } th scope="col" { "Reason" } th scope="col" { "Call" } } }
                    tbody { @for one in over.iter().take(OVER) {
                        tr id=(format!("over-{}", visible(&one.id))) data-testid="decided" data-state=(one.state.word()) {
                            td.mute { (when(one.decided_ms.unwrap_or(one.asked_ms))) }
                            th scope="row" { (tool_link(&one.tool)) }
                            td { (state(one.state)) }
                            td { (line(one.decided_by.as_deref().unwrap_or("–"), 60)) }
                            td.mute { (line(one.caller.as_deref().unwrap_or("–"), 60)) }
                            td.said { (line(one.reason.as_deref().unwrap_or("–"), 160)) }
                            td { a.open href=(overview::page("calls", &one.call_id)) { "See the call" } }
                        }
                    } }
                }
            }
        }
    }
}

fn state(state: ApprovalState) -> Markup {
    match state {
        ApprovalState::Waiting => badge("info", "Waiting"),
        ApprovalState::Approved => badge("good", "Approved"),
        ApprovalState::Denied => badge("bad", "Denied"),
        ApprovalState::Expired => badge("warn", "Expired"),
        ApprovalState::Withdrawn => badge("mute", "Withdrawn"),
    }
}
