//! Who may see the pages and press their buttons: the login where a token is set, and forms of our own pages only.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Form, MatchedPath, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use secrecy::ExposeSecret;
use serde::Deserialize;

use super::{Menu, Page, pages, refusal, shell};
use steadyhand_config::role::Right;
use steadyhand_runtime::access::Identity;
use steadyhand_runtime::audit::{AuditActor, AuditEvent};
use steadyhand_server::http::browser_login::{LASTS, SESSION_COOKIE, cookie, identify};
use steadyhand_server::http::status::{Refused, WasRefused, Why};
use steadyhand_server::http::{App, Asking, Peer, audit, rights};

const THEME_COOKIE: &str = "steadyhand_theme";
/// Everything comes from here, nothing is run or styled that is not one of our own files.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The first parts of paths that are pages.
const PARTS: [&str; 14] = [
    "",
    "calls",
    "tools",
    "servers",
    "approvals",
    "alerts",
    "conversations",
    "trends",
    "audit",
    "config",
    "theme",
    "login",
    "logout",
    "assets",
];

/// Whether a path is one of the dashboard's: it has a login of its own.
pub(super) fn owns(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next();
    PARTS.contains(&first.unwrap_or_default())
}

/// Lets in who has shown the token, and takes forms from our own pages only.
pub(super) async fn check(
    State(app): State<Arc<App>>,
    Extension(Peer(peer)): Extension<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let (path, headers) = (request.uri().path().to_owned(), request.headers().clone());
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if !is_read && !is_own_form(&headers) {
        let refused = Refused::new(
            Why::Foreign,
            "the form was not sent by a page of this server",
            "Open the dashboard itself, and press the button there; programs use POST under /v1",
        );
        return dressed(refusal(&headers, &refused));
    }
    let is_open = path == "/login" || path == "/theme" || path.starts_with("/assets/");
    if is_open {
        return dressed(next.run(request).await);
    }
    let identity = match identify(&app, &headers, peer.ip()).await {
        Ok(identity) => identity,
        // A stream ends for good with 204; one that got a page would try again for ever.
        Err(_) if live_wanted(&headers) => return StatusCode::NO_CONTENT.into_response(),
        Err(refused) if refused.why() == Why::TooFast => {
            return dressed(waiting(refusal(&headers, &refused), refused));
        }
        Err(refused) => {
            let back = match is_read {
                true => request.uri().to_string(),
                false => "/".to_owned(),
            };
            let form = login_form(&headers, &back, Login::Wanted, StatusCode::UNAUTHORIZED);
            return dressed(noted(form, refused));
        }
    };
    let right = right_of(&request, is_read);
    if !identity.may(right) {
        let refused = Refused::new(
            Why::NotAllowed,
            format!(
                "You are logged in as {}, which may not {} here",
                identity.role.word(),
                right.word()
            ),
            format!("Log in with a key of another role: {}", right.roles()),
        );
        return dressed(noted(refusal(&headers, &refused), refused));
    }
    let is_change = !is_read && matches!(right, Right::Operate | Right::Administer);
    if is_change && !identity.may_decide() && !is_open_change(&request) {
        let back = decision_page(&path);
        let form = login_form(&headers, back, Login::ToDecide, StatusCode::UNAUTHORIZED);
        return dressed(noted(form, rights::undecided()));
    }
    request.extensions_mut().insert(Asking(identity));
    dressed(match is_change {
        true => audit::write_down_button(&app, request, next).await,
        false => next.run(request).await,
    })
}

/// The buttons of operators that work without a login where a server asks nobody for credentials: the same as the routes
/// of REST.
fn is_open_change(request: &Request) -> bool {
    let path = request.extensions().get::<MatchedPath>();
    let path = path.map(MatchedPath::as_str).unwrap_or_default();
    let buttons = [
        "/tools/{name}/reset",
        "/tools/{name}/trial",
        "/servers/{name}/restart",
        "/config/reload",
    ];
    buttons.contains(&path)
}

/// The page that has the button.
fn decision_page(path: &str) -> &str {
    match path.split('/').nth(1) {
        Some("approvals") => "/approvals",
        Some("alerts") => "/alerts",
        _ => "/tools",
    }
}

/// What one must be allowed to see a page or press a button: the same as at the route of REST that does it.
fn right_of(request: &Request, is_read: bool) -> Right {
    let path = request.extensions().get::<MatchedPath>();
    match path.map(MatchedPath::as_str) {
        Some("/logout") => Right::Know,
        Some("/audit") => Right::Administer,
        _ if is_read => Right::View,
        Some("/calls/{id}/cancel" | "/calls/{id}/replay" | "/tools/{name}/run") => Right::Call,
        Some("/config/reload" | "/tools/{name}/disable" | "/tools/{name}/enable") => {
            Right::Administer
        }
        _ => Right::Operate,
    }
}

/// With when to come back.
fn waiting(mut response: Response, refused: Refused) -> Response {
    let seconds = refused.wait().as_secs_f64().ceil().max(1.0);
    let seconds = HeaderValue::from(seconds as u64);
    response.headers_mut().insert(header::RETRY_AFTER, seconds);
    noted(response, refused)
}

/// With the refusal, to be written down as such.
fn noted(mut response: Response, refused: Refused) -> Response {
    let refused = WasRefused(Arc::new(refused));
    response.extensions_mut().insert(refused);
    response
}

fn live_wanted(headers: &HeaderMap) -> bool {
    headers
        .get(header::ACCEPT)
        .is_some_and(|accept| accept == "text/event-stream")
}

/// The headers of every page.
fn dressed(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let fixed = [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// Browsers say from which page a form comes, and no page can make them say something else.
fn is_own_form(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text("sec-fetch-site") {
        return site == "same-origin";
    }
    let host = text("host").unwrap_or_default();
    let origin = text("origin").unwrap_or_default();
    let from = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    from.is_some_and(|from| from.eq_ignore_ascii_case(host))
}

/// Whether the browser has a login.
pub(super) fn is_logged_in(headers: &HeaderMap) -> bool {
    cookie(headers, SESSION_COOKIE).is_some_and(|kept| !kept.is_empty())
}

/// The colours that were chosen.
pub(super) fn theme_of(headers: &HeaderMap) -> Option<&'static str> {
    match cookie(headers, THEME_COOKIE)? {
        "light" => Some("light"),
        "dark" => Some("dark"),
        _ => None,
    }
}

#[derive(Deserialize)]
pub(super) struct LoginForm {
    #[serde(default)]
    token: String,
    #[serde(default)]
    back: String,
}

#[derive(Deserialize)]
pub(super) struct LoginQuery {
    /// Of a link that `steadyhand serve` or `steadyhand approvals` printed.
    code: Option<String>,
    #[serde(default)]
    back: String,
}

/// `GET /login`
pub(super) async fn login_page(
    State(app): State<Arc<App>>,
    Extension(Peer(peer)): Extension<Peer>,
    headers: HeaderMap,
    Query(query): Query<LoginQuery>,
) -> Response {
    if let Some(code) = &query.code
        && app.login_codes.take(&app.door.local, code)
    {
        let local = app.door.local.expose_secret();
        let identified = app
            .access
            .load_full()
            .identify_by(Some(local), peer.ip())
            .await;
        note_login(&app, &identified, Peer(peer));
        return logged_in(&app, &headers, local, &query.back);
    }
    let identity = identify(&app, &headers, peer.ip()).await;
    if identity
        .as_ref()
        .is_ok_and(|identity| identity.may_decide())
    {
        return Redirect::to(own_path(&query.back)).into_response();
    }
    let login = match (query.code, identity) {
        (Some(_), _) => Login::Problem(
            "This link was used before, or its time is up. steadyhand approvals prints another one.",
        ),
        (None, Ok(_)) => Login::ToDecide,
        (None, Err(_)) => Login::Wanted,
    };
    login_form(&headers, &query.back, login, StatusCode::OK)
}

/// `POST /login`
pub(super) async fn login(
    State(app): State<Arc<App>>,
    Extension(Peer(peer)): Extension<Peer>,
    headers: HeaderMap,
    Form(form): Form<LoginForm>,
) -> Response {
    let shown = form.token.trim();
    let access = app.access.load_full();
    let identified = access.identify_by(Some(shown), peer.ip()).await;
    note_login(&app, &identified, Peer(peer));
    let refused = match identified {
        Ok(identity) if identity.may_decide() => {
            return logged_in(&app, &headers, shown, &form.back);
        }
        // It lets everybody in, and has not looked at what was shown.
        Ok(_) => rights::undecided(),
        Err(refused) if refused.why() == Why::TooFast => {
            let wait = "Too many wrong tokens were tried here. Wait a moment, and try again.";
            let status = refused.status();
            let form = login_form(&headers, &form.back, Login::Problem(wait), status);
            return waiting(form, refused);
        }
        Err(refused) => refused,
    };
    let wrong = Login::Problem("That is neither the token of this server nor one of its keys.");
    let form = login_form(&headers, &form.back, wrong, StatusCode::UNAUTHORIZED);
    noted(form, refused)
}

fn logged_in(app: &App, headers: &HeaderMap, credential: &str, back: &str) -> Response {
    let session = app.sessions.begin(credential);
    let mut response = Redirect::to(own_path(back)).into_response();
    let cookie = (SESSION_COOKIE, session.as_str());
    set_cookie(&mut response, headers, cookie, LASTS.as_secs());
    response
}

/// Writes down that somebody came in, or tried to. What was shown is not written down.
fn note_login(app: &App, identified: &Result<Arc<Identity>, Refused>, peer: Peer) {
    // Attempts that were not even looked at would push everything else out of the log.
    if matches!(identified, Err(refused) if refused.why() == Why::TooFast) {
        return;
    }
    let mut event = AuditEvent::of_server("login");
    event.from.way = "dashboard".to_owned();
    event.from.address = Some(peer.address());
    event.who = match identified {
        Ok(identity) => audit::actor(app, identity),
        Err(_) => AuditActor::default(),
    };
    let result = match identified {
        Ok(identity) if identity.may_decide() => "done",
        // Where nobody is asked for credentials nobody guesses them either: whoever shows wrong ones is not slowed down,
        // and must not fill the log.
        Ok(_) if app.door.may_change_unidentified().is_err() => return,
        Ok(_) | Err(_) => "refused",
    };
    app.audit.note(event.result(result));
}

/// `POST /logout`
pub(super) async fn logout(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    if let Some(kept) = cookie(&headers, SESSION_COOKIE) {
        app.sessions.end(kept);
    }
    let mut response = Redirect::to("/login").into_response();
    set_cookie(&mut response, &headers, (SESSION_COOKIE, ""), 0);
    response
}

#[derive(Deserialize)]
pub(super) struct ThemeForm {
    #[serde(default)]
    theme: String,
    #[serde(default)]
    back: String,
}

/// `POST /theme`
pub(super) async fn theme(headers: HeaderMap, Form(form): Form<ThemeForm>) -> Response {
    let mut response = Redirect::to(own_path(&form.back)).into_response();
    let theme = match form.theme.as_str() {
        "light" => "light",
        "dark" => "dark",
        _ => "auto",
    };
    let cookie = (THEME_COOKIE, theme);
    set_cookie(&mut response, &headers, cookie, 365 * 24 * 60 * 60);
    response
}

fn set_cookie(response: &mut Response, asked: &HeaderMap, cookie: (&str, &str), seconds: u64) {
    let (name, value) = cookie;
    // A browser that came over TLS shows it nowhere else.
    let origin = asked.get(header::ORIGIN);
    let is_tls = origin.is_some_and(|origin| origin.as_bytes().starts_with(b"https://"));
    let secure = if is_tls { "; Secure" } else { "" };
    let cookie =
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
}

/// A way back that leads nowhere else.
fn own_path(back: &str) -> &str {
    let is_plain = back
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    match back.starts_with('/') && !back.starts_with("//") && is_plain {
        true => back,
        false => "/",
    }
}

/// Why somebody sees the form.
#[derive(Debug, Clone, Copy)]
pub(super) enum Login {
    /// Nobody is let in without.
    Wanted,
    /// Pages are for everybody, and a decision is not.
    ToDecide,
    /// What was shown is none.
    Problem(&'static str),
}

fn login_form(headers: &HeaderMap, back: &str, login: Login, status: StatusCode) -> Response {
    let page = Page::new(
        "Log in",
        Menu::None,
        pages::login::body(own_path(back), login),
    );
    (status, shell::bare(headers, &page)).into_response()
}
