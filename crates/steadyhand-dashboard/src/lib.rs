//! The dashboard: pages made on the server from what REST answers, kept fresh by one stream each.
//!
//! A page's address gives the page to a browser, the same page again and again to an `EventSource`, and only its
//! inner part to our script when it polls. Everything works without a script, too.

#![allow(
    missing_docs,
    reason = "a part of the program, not a library for others: names say what things are"
)]

mod actions;
mod assets;
mod draw;
mod form;
mod format;
mod guard;
mod live;
mod pages;
mod parts;
mod shell;
mod sort;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use maud::Markup;
use tower_http::compression::CompressionLayer;

use live::show;
use steadyhand_runtime::access::Identity;
use steadyhand_runtime::admission::CallerAccount;
use steadyhand_server::http::status::{Refused, Why};
use steadyhand_server::http::{Account, App, Asked, Asking, Named, Pages};

/// What a page is made from, besides the state of things.
pub struct Request {
    pub app: Arc<App>,
    /// What stands behind the question mark.
    pub query: Vec<(String, String)>,
    /// Who asks.
    pub identity: Arc<Identity>,
}

impl Request {
    /// A value of the query.
    pub fn asked(&self, name: &str) -> Option<&str> {
        let found = self
            .query
            .iter()
            .find(|(key, value)| key == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }
}

/// One page.
pub struct Page {
    pub title: String,
    /// Which part of the menu it belongs to.
    pub menu: Menu,
    pub body: Markup,
    /// Calls that wait for a yes, for the menu.
    pub waiting: usize,
}

impl Page {
    pub fn new(title: impl Into<String>, menu: Menu, body: Markup) -> Page {
        Page {
            title: title.into(),
            menu,
            body,
            waiting: 0,
        }
    }
}

/// The menu, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Menu {
    Overview,
    Calls,
    Tools,
    Servers,
    Approvals,
    Alerts,
    Conversations,
    Trends,
    Audit,
    Config,
    /// A page that is in no part of it.
    None,
}

/// All pages and actions.
pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(overview))
        .route("/calls", get(calls))
        .route("/calls/{id}", get(call))
        .route("/calls/{id}/cancel", post(actions::cancel))
        .route("/calls/{id}/replay", post(actions::replay))
        .route("/tools", get(tools))
        .route("/tools/{name}", get(tool))
        .route("/tools/{name}/run", post(actions::run))
        .route("/tools/{name}/reset", post(actions::reset))
        .route("/tools/{name}/trial", post(actions::trial))
        .route("/tools/{name}/accept", post(actions::accept))
        .route("/tools/{name}/reject", post(actions::reject))
        .route("/tools/{name}/disable", post(actions::disable))
        .route("/tools/{name}/enable", post(actions::enable))
        .route("/servers", get(servers))
        .route("/servers/{name}", get(server))
        .route("/servers/{name}/restart", post(actions::restart))
        .route("/approvals", get(approvals))
        .route("/approvals/{id}", post(actions::decide))
        .route("/alerts", get(alerts))
        .route("/alerts/{id}/ack", post(actions::acknowledge))
        .route("/alerts/{id}/silence", post(actions::silence))
        .route("/conversations", get(conversations))
        .route("/conversations/{id}", get(conversation))
        .route("/trends", get(trends))
        .route("/audit", get(audit))
        .route("/config", get(config))
        .route("/config/reload", post(actions::reload))
        .route("/theme", post(guard::theme))
        .route("/login", get(guard::login_page).post(guard::login))
        .route("/logout", post(guard::logout))
        .route("/assets/{name}", get(assets::serve))
        .layer(CompressionLayer::new())
}

/// The dashboard, for the server.
pub const PAGES: Pages = Pages {
    owns: guard::owns,
    routes: guarded,
};

/// Who is not let in sees the way in.
fn guarded(app: &Arc<App>) -> Router<Arc<App>> {
    routes().layer(middleware::from_fn_with_state(
        Arc::clone(app),
        guard::check,
    ))
}

/// The address that was asked for.
#[derive(Clone)]
pub struct Address {
    headers: HeaderMap,
    uri: Uri,
    query: Vec<(String, String)>,
    identity: Arc<Identity>,
    account: CallerAccount,
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for Address {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        state: &S,
    ) -> Result<Address, Response> {
        let query = Asked::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let Asked(query) = query.map_err(|refused| refusal(&parts.headers, &refused))?;
        let Ok(Asking(identity)) = Asking::from_request_parts(parts, state).await;
        let Ok(Account(account)) = Account::from_request_parts(parts, state).await;
        Ok(Address {
            identity,
            account,
            headers: parts.headers.clone(),
            uri: parts.uri.clone(),
            query,
        })
    }
}

/// A name in the path; what cannot be read is told as a page.
pub struct Name(pub String);

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for Name {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        state: &S,
    ) -> Result<Name, Response> {
        match Named::from_request_parts(parts, state).await {
            Ok(Named(name)) => Ok(Name(name)),
            Err(refused) => Err(refusal(&parts.headers, &refused)),
        }
    }
}

/// Routes of pages that are about everything of a kind.
macro_rules! pages {
    ($($name:ident),*) => {$(
        async fn $name(State(app): State<Arc<App>>, address: Address) -> Response {
            show(app, address, |request| async move { pages::$name::page(&request).await }).await
        }
    )*};
}

/// Routes of pages that are about one thing.
macro_rules! named_pages {
    ($($name:ident),*) => {$(
        async fn $name(State(app): State<Arc<App>>, Name(name): Name, address: Address) -> Response {
            show(app, address, move |request| {
                let name = name.clone();
                async move { pages::$name::page(&request, &name).await }
            }).await
        }
    )*};
}

pages!(
    overview,
    calls,
    tools,
    servers,
    approvals,
    alerts,
    conversations,
    trends,
    audit,
    config
);
named_pages!(call, tool, server, conversation);

/// A refusal as a page.
pub fn refusal(headers: &HeaderMap, refused: &Refused) -> Response {
    let body = parts::refusal(refused.message(), refused.help());
    let page = Page::new("That did not work", Menu::None, body);
    (refused.status(), shell::whole(headers, None, &page, None)).into_response()
}

/// What is not in a form that was sent.
pub fn incomplete(message: &str) -> Refused {
    Refused::new(
        Why::BadRequest,
        message,
        "Go back, reload the page and try again",
    )
}
