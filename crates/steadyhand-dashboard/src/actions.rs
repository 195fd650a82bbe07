//! What the buttons do. Each is a form, each leads to a page that shows what became of it, and each asks first when it
//! could do something twice or cut something off.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Form, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use steadyhand::{Arguments, Call};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::form::{self, Filled};
use super::format::{line, visible};
use super::{Menu, Name, Page, Request, incomplete, pages, refusal, shell};
use steadyhand_runtime::access::Identity;
use steadyhand_runtime::admission::{CallerAccount, RunningCall};
use steadyhand_runtime::approvals::ApprovalState;
use steadyhand_runtime::pins::SeenDefinition;
use steadyhand_server::http::approvals::{Decided, YesOrNo};
use steadyhand_server::http::audit::WhatChanged;
use steadyhand_server::http::status::{Refused, Why};
use steadyhand_server::http::tools::no_such_tool;
use steadyhand_server::http::{
    Account, App, Asking, Caller, alerts, approvals, history, pins, servers, tools,
};
use steadyhand_server::overview::page;
use steadyhand_server::views::{self, calls::NotAgain};

/// A call that ends within it is over when its page is shown.
const A_MOMENT: Duration = Duration::from_secs(2);
/// As long as the button says.
const SILENCE: Duration = Duration::from_secs(60 * 60);

/// What was filled in, name by name.
type Sent = Form<Vec<(String, String)>>;

fn is_sure(sent: &[(String, String)]) -> bool {
    sent.iter()
        .any(|(name, value)| name == "sure" && value == "yes")
}

/// A question before something that cannot be undone.
struct Question<'a> {
    title: &'a str,
    text: Markup,
    action: String,
    yes: &'a str,
    back: String,
    kept: &'a [(String, String)],
}

impl Question<'_> {
    fn ask(self, headers: &HeaderMap) -> Response {
        let kept = self.kept.iter().filter(|(name, _)| name != "sure");
        let body = html! {
            h1 { (self.title) }
            section.panel data-testid="question" {
                (self.text)
                form method="post" action=(self.action) {
                    input type="hidden" name="sure" value="yes";
                    @for (name, value) in kept { input type="hidden" name=(name) value=(value); }
                    div.actions {
                        button.danger type="submit" { (self.yes) }
                        a.button href=(self.back) { "Back" }
                    }
                }
            }
        };
        let page = Page::new(self.title, Menu::None, body);
        shell::whole(headers, None, &page, None).into_response()
    }
}

/// Runs a call and goes to its page, at the latest in a moment.
async fn run_and_show(
    app: Arc<App>,
    headers: &HeaderMap,
    (identity, account): (Arc<Identity>, CallerAccount),
    call: Call,
) -> Response {
    let caller = Caller::of_page(&app, identity, account);
    let call = caller.of(call);
    let id = call.id.clone();
    let (told, outcome) = oneshot::channel();
    tokio::spawn(async move {
        let ended = app.execute(call, &caller).await;
        // Nobody hears it when it took longer than a moment.
        let _ = told.send(ended.err());
    });
    if let Ok(Ok(Some(refused))) = timeout(A_MOMENT, outcome).await {
        return refusal(headers, &refused);
    }
    Redirect::to(&page("calls", &id)).into_response()
}

/// `POST /calls/{id}/replay`
pub(super) async fn replay(
    State(app): State<Arc<App>>,
    Name(id): Name,
    Asking(identity): Asking,
    Account(account): Account,
    headers: HeaderMap,
    Form(sent): Sent,
) -> Response {
    let record = match history::find(&app, &identity, &id).await {
        Ok(record) => record,
        Err(refused) => return refusal(&headers, &refused),
    };
    let tool = record.call.tool.clone();
    let is_whole = record.details.arguments.is_some() && !record.details.arguments_incomplete;
    match views::calls::again(&app.runtime, record, is_sure(&sent)) {
        Ok(call) => run_and_show(app, &headers, (identity, account), call).await,
        Err(NotAgain::NoSuchTool(tool)) => refusal(&headers, &no_such_tool(&app, &tool)),
        Err(NotAgain::NotSafe { message, help }) => {
            let is_safe = app
                .runtime
                .manager()
                .policy(&tool)
                .is_some_and(|policy| policy.safe_to_repeat);
            if is_safe || !is_whole {
                return refusal(&headers, &Refused::new(Why::NotSafeToRepeat, message, help));
            }
            let question = Question {
                title: "Run it again?",
                text: html! { p { strong { (visible(&tool)) } " is not known to be safe to repeat: running it again may do it twice." } },
                action: format!("{}/replay", page("calls", &id)),
                yes: "Run it again",
                back: page("calls", &id),
                kept: &sent,
            };
            question.ask(&headers)
        }
    }
}

/// `POST /calls/{id}/cancel`
pub(super) async fn cancel(
    State(app): State<Arc<App>>,
    Name(id): Name,
    Asking(identity): Asking,
    headers: HeaderMap,
    Form(sent): Sent,
) -> Response {
    let back = page("calls", &id);
    let is_meant = |call: &RunningCall| identity.may_end(&call.caller);
    let Some(running) = app.admission.running.find(&id, is_meant) else {
        // It has ended by itself: its page says how.
        return Redirect::to(&back).into_response();
    };
    let policy = app.runtime.manager().policy(&running.tool);
    if !is_sure(&sent) && policy.is_some_and(|policy| !policy.safe_to_repeat) {
        let question = Question {
            title: "Cancel the call?",
            text: html! { p { strong { (visible(&running.tool)) } " may have done a part of its work: after a cancellation nobody knows, and it is not safe to repeat." } },
            action: format!("{back}/cancel"),
            yes: "Cancel the call",
            back,
            kept: &sent,
        };
        return question.ask(&headers);
    }
    drop(running);
    app.admission.running.cancel(&id, is_meant);
    // It ends at once, or within what its tool needs to stop.
    let gone = async {
        while app.admission.running.find(&id, is_meant).is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let _ = timeout(A_MOMENT, gone).await;
    Redirect::to(&back).into_response()
}

/// `POST /tools/{name}/run`
pub(super) async fn run(
    State(app): State<Arc<App>>,
    Name(name): Name,
    Asking(identity): Asking,
    Account(account): Account,
    headers: HeaderMap,
    Form(sent): Sent,
) -> Response {
    let manager = app.runtime.manager();
    let (Some(tool), Some(policy)) = (manager.find(&name), manager.policy(&name)) else {
        return refusal(&headers, &no_such_tool(&app, &name));
    };
    let value = |wanted: &str| {
        sent.iter()
            .find(|(key, _)| key == wanted)
            .map(|(_, value)| value.clone())
    };
    let mut filled = Filled {
        replay_of: value("replay_of"),
        ..Filled::default()
    };
    let arguments = match form::arguments(tool.schema(), &sent) {
        Ok(arguments) => arguments,
        Err((text, problem)) => {
            filled.text = Some(text);
            filled.message = Some(("bad", problem));
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            return again(app, &headers, identity, &name, &filled, status).await;
        }
    };
    filled.arguments = arguments.clone();
    if value("json").is_some_and(|text| !text.trim().is_empty()) {
        filled.text = value("json");
    }
    match manager.check(&name, Arguments::Json(arguments.clone())) {
        Some(Err(failure)) => {
            filled.message = Some(("bad", "These arguments do not fit.".to_owned()));
            if failure.problems.is_empty() {
                filled.message = Some(("bad", failure.message.clone()));
            }
            filled.problems = failure.problems;
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            return again(app, &headers, identity, &name, &filled, status).await;
        }
        Some(Ok(())) => {}
        None => return refusal(&headers, &no_such_tool(&app, &name)),
    }
    if value("do").as_deref() == Some("validate") {
        filled.message = Some(("good", "These arguments fit. Nothing was run.".to_owned()));
        return again(app, &headers, identity, &name, &filled, StatusCode::OK).await;
    }
    let call = Call::new(&name, Arguments::Json(arguments));
    let Some(of) = filled.replay_of else {
        return run_and_show(app, &headers, (identity, account), call).await;
    };
    if !policy.safe_to_repeat && !is_sure(&sent) {
        let question = Question {
            title: "Run it again?",
            text: html! { p { strong { (visible(&name)) } " is not known to be safe to repeat, and was called before with arguments like these." } },
            action: format!("{}/run", page("tools", &name)),
            yes: "Run it again",
            back: page("calls", &of),
            kept: &sent,
        };
        return question.ask(&headers);
    }
    run_and_show(app, &headers, (identity, account), call.replay_of(of)).await
}

/// The page of the tool once more, with what was filled in and what is wrong with it.
async fn again(
    app: Arc<App>,
    headers: &HeaderMap,
    identity: Arc<Identity>,
    name: &str,
    filled: &Filled,
    status: StatusCode,
) -> Response {
    let request = Request {
        app,
        query: Vec::new(),
        identity,
    };
    match pages::tool::with_form(&request, name, filled).await {
        Ok(page) => {
            let html = shell::whole(headers, Some(&request.identity), &page, None);
            (status, html).into_response()
        }
        Err(refused) => refusal(headers, &refused),
    }
}

/// `POST /tools/{name}/reset`
pub(super) async fn reset(
    State(app): State<Arc<App>>,
    Name(name): Name,
    headers: HeaderMap,
) -> Response {
    match app.runtime.manager().reset_breaker(&name) {
        true => Redirect::to(&page("tools", &name)).into_response(),
        false => refusal(&headers, &no_such_tool(&app, &name)),
    }
}

/// `POST /tools/{name}/trial`
pub(super) async fn trial(
    State(app): State<Arc<App>>,
    Name(name): Name,
    headers: HeaderMap,
) -> Response {
    match app.runtime.manager().allow_trial(&name) {
        true => Redirect::to(&page("tools", &name)).into_response(),
        false => refusal(&headers, &no_such_tool(&app, &name)),
    }
}

/// `POST /tools/{name}/accept`
pub(super) async fn accept(
    State(app): State<Arc<App>>,
    Name(name): Name,
    headers: HeaderMap,
    Form(sent): Sent,
) -> Response {
    match pins::take_over(&app, &name, as_it_was_seen(&sent)).await {
        Ok(change) => noting(Redirect::to("/tools"), pins::decided(&change)),
        Err(refused) => refusal(&headers, &refused),
    }
}

/// `POST /tools/{name}/reject`
pub(super) async fn reject(
    State(app): State<Arc<App>>,
    Name(name): Name,
    headers: HeaderMap,
    Form(sent): Sent,
) -> Response {
    match pins::turn_down(&app, &name, as_it_was_seen(&sent)).await {
        Ok(change) => noting(Redirect::to(&page("tools", &name)), pins::decided(&change)),
        Err(refused) => refusal(&headers, &refused),
    }
}

/// A decision is about the definition that was shown, and about nothing that came later.
fn as_it_was_seen(sent: &[(String, String)]) -> SeenDefinition<'_> {
    let seen = sent.iter().find(|(key, _)| key == "definition_hash");
    SeenDefinition::Hash(seen.map_or("", |(_, hash)| hash))
}

/// With what the audit log is to say of it.
fn noting(answer: Redirect, changed: WhatChanged) -> Response {
    let mut response = answer.into_response();
    response.extensions_mut().insert(changed);
    response
}

/// `POST /tools/{name}/disable`
pub(super) async fn disable(
    State(app): State<Arc<App>>,
    Name(name): Name,
    headers: HeaderMap,
    Form(sent): Sent,
) -> Response {
    let Some(switch) = app.runtime.switch_of(&name) else {
        return refusal(&headers, &no_such_tool(&app, &name));
    };
    let back = page("tools", &switch.tool);
    if !is_sure(&sent) {
        let question = Question {
            title: "Disable the tool?",
            text: html! { p { strong { (visible(&switch.tool)) } " is then in no list and cannot be called. The configuration file will say " code { (visible(&switch.setting(false))) } "." } },
            action: format!("{back}/disable"),
            yes: "Disable it",
            back,
            kept: &sent,
        };
        return question.ask(&headers);
    }
    match tools::switch(&app, &name, false).await {
        Ok(_) => Redirect::to(&back).into_response(),
        Err(refused) => refusal(&headers, &refused),
    }
}

/// `POST /tools/{name}/enable`
pub(super) async fn enable(
    State(app): State<Arc<App>>,
    Name(name): Name,
    headers: HeaderMap,
) -> Response {
    match tools::switch(&app, &name, true).await {
        Ok(switch) => Redirect::to(&page("tools", &switch.tool)).into_response(),
        Err(refused) => refusal(&headers, &refused),
    }
}

/// `POST /servers/{name}/restart`
pub(super) async fn restart(
    State(app): State<Arc<App>>,
    Name(name): Name,
    headers: HeaderMap,
    Form(sent): Sent,
) -> Response {
    let server = match servers::find(&app, &name) {
        Ok(server) => server,
        Err(refused) => return refusal(&headers, &refused),
    };
    let back = page("servers", &name);
    if server.state().phase == steadyhand_mcp::Phase::Running && !is_sure(&sent) {
        let question = Question {
            title: "Restart the server?",
            text: html! { p { strong { (visible(&name)) } " is running. Calls that run on it end, and each is told what is known of its effect." } },
            action: format!("{back}/restart"),
            yes: "Restart it",
            back,
            kept: &sent,
        };
        return question.ask(&headers);
    }
    server.restart();
    Redirect::to(&back).into_response()
}

/// `POST /config/reload`
pub(super) async fn reload(State(app): State<Arc<App>>) -> Response {
    // The page says how it went.
    if let Err(report) = app.runtime.reload().await {
        tracing::debug!(
            report = line(&report.to_string(), 200),
            "a reload by hand was refused"
        );
    }
    Redirect::to("/config").into_response()
}

/// `POST /approvals/{id}`
pub(super) async fn decide(
    State(app): State<Arc<App>>,
    Name(id): Name,
    Asking(identity): Asking,
    Account(account): Account,
    headers: HeaderMap,
    Form(sent): Sent,
) -> Response {
    let value = |wanted: &str| {
        let found = sent.iter().find(|(key, _)| key == wanted);
        found.map(|(_, value)| value.trim().to_owned())
    };
    let decision = match value("decision").as_deref() {
        Some("approve") => YesOrNo::Approve,
        Some("deny") => YesOrNo::Deny,
        _ => return refusal(&headers, &incomplete("neither approve nor deny was said")),
    };
    let said = Decided {
        decision,
        arguments_hash: value("arguments_hash").unwrap_or_default(),
        unseen: is_sure(&sent),
        reason: value("reason"),
    };
    if decision == YesOrNo::Approve
        && !said.unseen
        && let Some(question) = unseen(&app, &id, &sent)
    {
        return question.ask(&headers);
    }
    let caller = Caller::of_page(&app, identity, account);
    match approvals::say(&app, &caller, &id, said, "dashboard") {
        Ok(_) => Redirect::to("/approvals").into_response(),
        Err(refused) => refusal(&headers, &refused),
    }
}

/// The second step of a yes to arguments that the page did not show as a whole.
fn unseen<'a>(app: &App, id: &str, sent: &'a [(String, String)]) -> Option<Question<'a>> {
    let approval = app.desk.list().into_iter().find(|one| one.id == id)?;
    let rest = sent.iter().find(|(name, _)| name == "rest");
    let rest = rest.and_then(|(_, rest)| rest.parse().ok()).unwrap_or(0);
    let is_waiting = approval.state == ApprovalState::Waiting;
    let is_whole = approval.hidden.is_empty() && rest == 0;
    (is_waiting && !is_whole).then(|| Question {
        title: "Approve what is not shown?",
        text: html! {
            p { "A yes to " strong { (visible(&approval.tool)) } " is also a yes to the parts of its arguments that are not shown." }
            (pages::approvals::not_shown(&approval, rest))
        },
        action: page("approvals", id),
        yes: "Approve unseen",
        back: "/approvals".to_owned(),
        kept: sent,
    })
}

/// `POST /alerts/{id}/ack`
pub(super) async fn acknowledge(
    State(app): State<Arc<App>>,
    Name(id): Name,
    Asking(identity): Asking,
    Account(account): Account,
    headers: HeaderMap,
) -> Response {
    let caller = Caller::of_page(&app, identity, account);
    match app.alerts.acknowledge(&id, &caller.name) {
        Some(_) => Redirect::to("/alerts").into_response(),
        None => refusal(&headers, &alerts::no_such_alert(&id)),
    }
}

/// `POST /alerts/{id}/silence`
pub(super) async fn silence(
    State(app): State<Arc<App>>,
    Name(id): Name,
    headers: HeaderMap,
) -> Response {
    match app.alerts.silence(&id, SILENCE) {
        Some(_) => Redirect::to("/alerts").into_response(),
        None => refusal(&headers, &alerts::no_such_alert(&id)),
    }
}
