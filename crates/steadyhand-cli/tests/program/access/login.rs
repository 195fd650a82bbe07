//! `mcp login` at a server that asks who we are, with an authorization server of our own: the tokens, where they are
//! kept, and who fetches new ones.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::serve::{Served, program, until};
use crate::support::{PATIENCE, Workplace, client, parts};

/// An MCP server and the authorization server it trusts, in one.
#[derive(Clone, Default)]
pub(super) struct Upstream(Arc<Mutex<Inner>>);

#[derive(Default)]
pub(super) struct Inner {
    address: String,
    pub(super) good: Option<String>,
    pub(super) refresh: Option<String>,
    challenges: HashMap<String, String>,
    issued: usize,
    refreshed: usize,
    registered: usize,
    denies: bool,
    rejects_refreshing: bool,
    /// Nothing is where one would look for it: only the challenge says where to log in.
    is_elsewhere: bool,
    /// Other challenges that come before the one about tokens.
    other_challenges: &'static [&'static str],
    /// A call takes this scope, beside what listing takes.
    call_scope: Option<&'static str>,
    /// The scopes that each token was asked for.
    asked_scopes: Vec<String>,
    granted: String,
    /// The authorization server takes a client's secret only in the body.
    takes_only_post: bool,
    lasts_seconds: Option<u64>,
    /// Somebody else's address as that of the authorization server.
    issuer_elsewhere: Option<String>,
    /// Somebody else's address to log in at.
    logs_in_at: Option<String>,
    /// Tokens asked for with client credentials, granted or not.
    robot_asked: usize,
    /// It repeats what it knows of our login wherever it can.
    pub(super) echoes: bool,
    /// What never stops answering: `resource`, `about`, `register`, `token`.
    floods: Option<&'static str>,
    /// The challenge names no scope: `scope=""`.
    challenge_without_scope: bool,
    /// Nor does the metadata.
    metadata_without_scope: bool,
}

impl Upstream {
    pub(super) async fn start() -> Upstream {
        let upstream = Upstream::default();
        let app = Router::new()
            .route("/mcp", post(mcp))
            .route("/.well-known/oauth-protected-resource/mcp", get(resource))
            .route("/elsewhere", get(resource_elsewhere))
            .route("/.well-known/oauth-authorization-server", get(about))
            .route("/.well-known/oauth-authorization-server/tenant", get(about))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .with_state(upstream.clone());
        let address = crate::support::serve(app).await;
        upstream.inner().address = format!("http://{address}");
        upstream
    }

    pub(super) fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().expect("whole")
    }

    pub(super) fn config(&self) -> String {
        let address = self.inner().address.clone();
        format!(
            "[mcp.up]\nurl = \"{address}/mcp\"\nprotocol = \"legacy\"\nstart = {{ waits = [\"0s\"] }}\n"
        )
    }

    /// The tokens that were good are not any more.
    pub(super) fn revoke(&self) {
        self.inner().good = None;
    }

    /// An answer without an end, where that is what it does.
    fn flood(&self, what: &str) -> Option<Response> {
        (self.inner().floods == Some(what)).then(|| {
            let spaces = || Ok::<_, std::io::Error>(axum::body::Bytes::from(vec![b' '; 64 * 1024]));
            let body = axum::body::Body::from_stream(futures_util::stream::repeat_with(spaces));
            ([(header::CONTENT_TYPE, "application/json")], body).into_response()
        })
    }
}

async fn resource(State(up): State<Upstream>) -> Response {
    if let Some(flood) = up.flood("resource") {
        return flood;
    }
    if up.inner().is_elsewhere {
        return StatusCode::NOT_FOUND.into_response();
    }
    resource_elsewhere(State(up)).await.into_response()
}

async fn resource_elsewhere(State(up): State<Upstream>) -> Json<Value> {
    let up = up.inner();
    let issuer = up.issuer();
    let mut about = json!({"resource": format!("{}/mcp", up.address), "authorization_servers": [issuer], "scopes_supported": ["mail"]});
    if up.metadata_without_scope {
        about["scopes_supported"] = json!([]);
    }
    Json(about)
}

async fn about(State(up): State<Upstream>, uri: axum::http::Uri) -> Response {
    if let Some(flood) = up.flood("about") {
        return flood;
    }
    let up = up.inner();
    if uri.path().ends_with("/tenant") != up.is_elsewhere {
        return StatusCode::NOT_FOUND.into_response();
    }
    let at = &up.address;
    let method = match up.takes_only_post {
        true => "client_secret_post",
        false => "client_secret_basic",
    };
    let about = json!({
        "issuer": up.issuer(), "authorization_endpoint": up.logs_in_at.clone().unwrap_or(format!("{at}/authorize")), "token_endpoint": format!("{at}/token"),
        "registration_endpoint": format!("{at}/register"), "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": [method],
    });
    Json(about).into_response()
}

impl Inner {
    /// What it knows of our login, in every way of writing it.
    fn echo(&self) -> Option<String> {
        let known: Vec<String> = [&self.good, &self.refresh]
            .into_iter()
            .flatten()
            .cloned()
            .chain(["between-us".to_owned()])
            .flat_map(|secret| written(&secret))
            .collect();
        self.echoes.then(|| format!("I know: {}", known.join(" ")))
    }

    fn issuer(&self) -> String {
        if let Some(elsewhere) = &self.issuer_elsewhere {
            return elsewhere.clone();
        }
        match self.is_elsewhere {
            true => format!("{}/tenant", self.address),
            false => self.address.clone(),
        }
    }

    fn metadata(&self) -> String {
        let path = match self.is_elsewhere {
            true => "/elsewhere",
            false => "/.well-known/oauth-protected-resource/mcp",
        };
        format!("{}{path}", self.address)
    }
}

async fn register(State(up): State<Upstream>, Json(asked): Json<Value>) -> Response {
    if let Some(flood) = up.flood("register") {
        return flood;
    }
    up.inner().registered += 1;
    let answer = json!({"client_id": "made-here", "client_secret": "between-us", "redirect_uris": asked["redirect_uris"]});
    (StatusCode::CREATED, Json(answer)).into_response()
}

async fn authorize(
    State(up): State<Upstream>,
    Query(asked): Query<HashMap<String, String>>,
) -> Redirect {
    let (back, state) = (&asked["redirect_uri"], &asked["state"]);
    assert_eq!(asked["code_challenge_method"], "S256");
    assert!(asked["resource"].ends_with("/mcp"));
    if up.inner().denies {
        return Redirect::to(&format!(
            "{back}?error=access_denied&error_description=not%20today&state={state}"
        ));
    }
    let code = format!("code-{}", asked["code_challenge"]);
    let challenge = asked["code_challenge"].clone();
    let scope = asked.get("scope").cloned().unwrap_or_default();
    up.inner().granted.clone_from(&scope);
    up.inner().asked_scopes.push(scope);
    up.inner().challenges.insert(code.clone(), challenge);
    Redirect::to(&format!("{back}?code={code}&state={state}"))
}

async fn token(State(up): State<Upstream>, headers: HeaderMap, body: String) -> Response {
    if let Some(flood) = up.flood("token") {
        return flood;
    }
    let asked = url::form_urlencoded::parse(body.as_bytes()).into_owned();
    let asked: HashMap<String, String> = asked.collect();
    let wrong =
        |why: &str| (StatusCode::BAD_REQUEST, Json(json!({ "error": why }))).into_response();
    let shown = headers.get(header::AUTHORIZATION);
    if asked["grant_type"] == "client_credentials" {
        let shown = shown.and_then(|shown| shown.to_str().ok());
        return robot_token(&mut up.inner(), shown, &asked);
    }
    let expected = base64::prelude::BASE64_STANDARD.encode("made-here:between-us");
    if shown.is_none_or(|shown| shown != &format!("Basic {expected}")) {
        return wrong("invalid_client");
    }
    let mut up = up.inner();
    match asked["grant_type"].as_str() {
        "authorization_code" => {
            let Some(challenge) = up.challenges.remove(&asked["code"]) else {
                return wrong("invalid_grant");
            };
            let verifier = BASE64.encode(Sha256::digest(&asked["code_verifier"]));
            if verifier != challenge {
                return wrong("invalid_grant");
            }
        }
        "refresh_token" => {
            // Each is good for one time.
            if up.rejects_refreshing || up.refresh.as_ref() != asked.get("refresh_token") {
                return wrong("invalid_grant");
            }
            up.refreshed += 1;
        }
        _ => return wrong("unsupported_grant_type"),
    }
    up.issued += 1;
    let (access, refresh) = (
        format!("access-{}", up.issued),
        format!("refresh-{}", up.issued),
    );
    up.good = Some(access.clone());
    up.refresh = Some(refresh.clone());
    let granted = up.granted.clone();
    Json(json!({"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600, "scope": granted}))
        .into_response()
}

/// A token for a client that nobody attends: no refresh token, and not a word about scopes.
fn robot_token(up: &mut Inner, shown: Option<&str>, asked: &HashMap<String, String>) -> Response {
    up.robot_asked += 1;
    let basic = base64::prelude::BASE64_STANDARD.encode("robot:robot-secret");
    let is_known = match up.takes_only_post {
        true => {
            let text = |name: &str| asked.get(name).map(String::as_str);
            text("client_id") == Some("robot") && text("client_secret") == Some("robot-secret")
        }
        false => shown == Some(&*format!("Basic {basic}")),
    };
    if !is_known || up.denies {
        let why =
            json!({"error": "invalid_client", "error_description": "robot-secret is not known"});
        return (StatusCode::UNAUTHORIZED, Json(why)).into_response();
    }
    assert_eq!(asked["resource"], format!("{}/mcp", up.address));
    up.issued += 1;
    let access = format!("access-{}", up.issued);
    up.good = Some(access.clone());
    up.granted = asked.get("scope").cloned().unwrap_or_default();
    let scope = up.granted.clone();
    up.asked_scopes.push(scope);
    let lasts = up.lasts_seconds.unwrap_or(3600);
    Json(json!({"access_token": access, "token_type": "Bearer", "expires_in": lasts}))
        .into_response()
}

async fn mcp(
    State(up): State<Upstream>,
    headers: HeaderMap,
    Json(message): Json<Value>,
) -> Response {
    let shown = headers.get(header::AUTHORIZATION);
    let shown = shown
        .and_then(|shown| shown.to_str().ok())
        .unwrap_or_default();
    let (metadata, good, others, scope) = {
        let up = up.inner();
        let scope = if up.challenge_without_scope {
            ""
        } else {
            "mail"
        };
        (up.metadata(), up.good.clone(), up.other_challenges, scope)
    };
    if good.is_none_or(|good| shown != format!("Bearer {good}")) {
        let challenge = format!("Bearer resource_metadata=\"{metadata}\", scope=\"{scope}\"");
        let answer = format!("{shown} is none of ours");
        let challenges = others.iter().copied().chain([challenge.as_str()]);
        let challenges = challenges.map(|challenge| (header::WWW_AUTHENTICATE, challenge));
        return (
            StatusCode::UNAUTHORIZED,
            AppendHeaders(challenges.collect::<Vec<_>>()),
            answer,
        )
            .into_response();
    }
    let (needed, granted) = {
        let up = up.inner();
        (up.call_scope, up.granted.clone())
    };
    if let Some(needed) = needed
        && message["method"] == "tools/call"
        && !granted.split(' ').any(|scope| scope == needed)
    {
        let challenge = format!(
            "Bearer error=\"insufficient_scope\", scope=\"{needed}\", resource_metadata=\"{metadata}\""
        );
        return (
            StatusCode::FORBIDDEN,
            [(header::WWW_AUTHENTICATE, challenge)],
            "more is needed",
        )
            .into_response();
    }
    let echo = up.inner().echo();
    let method = message["method"].as_str().unwrap_or_default();
    let result = match method {
        "tools/call" if echo.is_some() && message["params"]["arguments"]["fails"] == true => {
            let error = json!({"code": -32603, "message": echo, "data": {"more": echo}});
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
            return Json(answer).into_response();
        }
        "tools/call" if let Some(echo) = &echo => {
            json!({"content": [{"type": "text", "text": echo}], "structuredContent": {"echo": echo, echo: 1}})
        }
        "tools/list" if let Some(echo) = &echo => {
            json!({"tools": [{"name": "send", "description": echo, "_meta": {"x/echo": echo}, "inputSchema": {"type": "object", "properties": {"fails": {"description": echo}}}}]})
        }
        "initialize" if let Some(echo) = &echo => {
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "up", "version": "1", "title": echo}, "instructions": echo})
        }
        "initialize" => {
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "up", "version": "1"}})
        }
        "tools/list" => {
            json!({"tools": [{"name": "send", "description": "Sends a mail", "inputSchema": {"type": "object"}}]})
        }
        "tools/call" => json!({"content": [{"type": "text", "text": "sent"}]}),
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).into_response()
}

/// A secret, and the same in hexadecimal digits and in base64 at each of its places, as it stands among others.
pub(super) fn written(secret: &str) -> Vec<String> {
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let bases = ["", "a", "ab"]
        .map(|before| base64::prelude::BASE64_STANDARD.encode(format!("{before}{secret}and more")));
    [secret.to_owned(), hex.to_uppercase(), hex]
        .into_iter()
        .chain(bases)
        .collect()
}

/// Runs `mcp login`, and goes where a browser would: its exit code, and what it said.
pub(super) async fn log_in(workplace: &Workplace) -> (Option<i32>, String) {
    log_in_with(workplace, &[]).await
}

async fn log_in_with(workplace: &Workplace, more: &[&str]) -> (Option<i32>, String) {
    let words = [&["mcp", "login", "up"], more].concat();
    let mut child = program(workplace, &words)
        .stderr(Stdio::piped())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("stderr")).lines();
    let mut said = String::new();
    let reading = async {
        while let Some(line) = lines.next_line().await.expect("a line") {
            said.push_str(&format!("{line}\n"));
            if line.trim().starts_with("http") {
                // The page at the end is ours.
                let page = client().get(line.trim()).send().await.expect("an answer");
                let page = page.text().await.expect("a page");
                assert!(page.contains("can be closed"), "{page}");
            }
        }
        child.wait().await.expect("its end").code()
    };
    let code = tokio::time::timeout(PATIENCE, reading)
        .await
        .expect("it ends");
    (code, said)
}

pub(super) async fn is_up(served: &Served) {
    until("the server is up", async || {
        let tools = served.get("/v1/tools").await.text;
        tools.contains("up__send").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_kept_for_its_owner_alone_and_new_tokens_are_fetched_once_for_all() {
    let upstream = Upstream::start().await;
    let served = Served::in_place(Workplace::with_config(&upstream.config())).await;
    // It says what to do, and not what was shown.
    until("the login is asked for", async || {
        let servers = served.get("/v1/servers").await.text;
        servers.contains("steadyhand mcp login up").then_some(())
    })
    .await;
    let (code, said) = log_in(&served.workplace).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("Logged in to up at http://127.0.0.1"),
        "{said}"
    );
    assert!(
        !said.contains("access-1") && !said.contains("between-us"),
        "{said}"
    );
    assert_eq!(upstream.inner().registered, 1);
    let folder = served.workplace.file(".local/state/steadyhand/logins");
    for file in std::fs::read_dir(&folder).expect("a folder").flatten() {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = file.metadata().expect("about it").permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}", file.path().display());
        }
    }
    // The server that runs finds the login by itself.
    let restarted = served.post("/v1/servers/up/restart", json!({})).await;
    assert_eq!(restarted.status, 200, "{}", restarted.text);
    is_up(&served).await;
    assert_eq!(
        served.call("up__send", json!({})).await["status"],
        "success"
    );

    upstream.revoke();
    let calls = (0..30).map(|_| served.call("up__send", json!({})));
    for outcome in futures_util::future::join_all(calls).await {
        assert_eq!(outcome["status"], "success", "{outcome}");
    }
    assert_eq!(upstream.inner().refreshed, 1);

    // Nobody can fetch new ones any more: the person is told, and nothing was done.
    upstream.inner().rejects_refreshing = true;
    upstream.revoke();
    let outcome = served.call("up__send", json!({})).await;
    assert_eq!(
        outcome["error"]["code"], "AUTHENTICATION_ERROR",
        "{outcome}"
    );
    assert_eq!(outcome["error"]["effect"], "none", "{outcome}");
    let message = outcome["error"]["message"].as_str().expect("a message");
    assert!(
        message.contains("run: steadyhand mcp login up"),
        "{message}"
    );
    assert!(!message.contains("access-2"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_is_refused_or_forgotten_leaves_nothing_behind() {
    let upstream = Upstream::start().await;
    upstream.inner().denies = true;
    let workplace = Workplace::with_config(&format!(
        "{}\n[mcp.local]\ncommand = \"cat\"\n",
        upstream.config()
    ));
    let (code, said) = log_in(&workplace).await;
    assert_eq!(code, Some(3), "{said}");
    assert!(
        said.contains("the login was refused: access_denied: not today"),
        "{said}"
    );
    upstream.inner().denies = false;
    assert_eq!(log_in(&workplace).await.0, Some(0));
    let (code, _, stderr) = parts(&workplace.run("mcp logout up"));
    assert_eq!(code, 0, "{stderr}");
    let folder = workplace.file(".local/state/steadyhand/logins");
    let left = std::fs::read_dir(&folder).expect("a folder").flatten();
    let left: Vec<_> = left
        .filter(|file| file.path().extension().is_some_and(|end| end == "json"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let (code, _, stderr) = parts(&workplace.run("mcp login local"));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("there is nothing to log in to"), "{stderr}");
    let (code, _, stderr) = parts(&workplace.run("mcp login nobody"));
    assert!(
        code != 0 && stderr.contains("there is no MCP server nobody"),
        "{stderr}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_goes_where_the_challenge_says_and_asks_for_what_it_names() {
    let upstream = Upstream::start().await;
    upstream.inner().is_elsewhere = true;
    let served = Served::in_place(Workplace::with_config(&upstream.config())).await;
    let (code, said) = log_in(&served.workplace).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("/tenant for mail"), "{said}");
    assert_eq!(upstream.inner().asked_scopes, ["mail"]);
    let restarted = served.post("/v1/servers/up/restart", json!({})).await;
    assert_eq!(restarted.status, 200, "{}", restarted.text);
    is_up(&served).await;
    // New tokens are fetched there, too.
    upstream.revoke();
    let outcome = served.call("up__send", json!({})).await;
    assert_eq!(outcome["status"], "success", "{outcome}");
    assert_eq!(upstream.inner().refreshed, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_challenge_that_says_where_to_log_in_is_found_among_others() {
    for others in [
        &["Basic realm=\"bearer of bad news\""][..],
        &["Bearer error=\"invalid_token\"", "Negotiate"],
        &["Bearer realm=\"up\", scope=\"other\"", "Basic realm=\"up\""],
    ] {
        let upstream = Upstream::start().await;
        upstream.inner().is_elsewhere = true;
        upstream.inner().other_challenges = others;
        let workplace = Workplace::with_config(&upstream.config());
        let (code, said) = log_in(&workplace).await;
        assert_eq!(code, Some(0), "{others:?}: {said}");
        assert_eq!(upstream.inner().asked_scopes, ["mail"], "{others:?}");
        let (code, _, stderr) = parts(&workplace.run("call up__send"));
        assert_eq!(code, 0, "{stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_needs_a_further_scope_says_so_and_a_login_asks_for_it_beside_the_others() {
    for follows_the_advice in [true, false] {
        let upstream = Upstream::start().await;
        upstream.inner().is_elsewhere = true;
        let workplace = Workplace::with_config(&upstream.config());
        let (code, said) = log_in(&workplace).await;
        assert_eq!(code, Some(0), "{said}");
        upstream.inner().call_scope = Some("send");
        let (code, stdout, stderr) = parts(&workplace.run("call up__send --json"));
        assert_ne!(code, 0, "{stdout}");
        let outcome: Value = serde_json::from_str(&stdout).expect("an outcome");
        assert_eq!(outcome["error"]["effect"], "none", "{outcome}");
        let advice = "steadyhand mcp login up --scope mail --scope send";
        assert!(outcome.to_string().contains(advice), "{outcome} {stderr}");
        let more: &[&str] = match follows_the_advice {
            true => &["--scope", "mail", "--scope", "send"],
            // It is known what was missing.
            false => &[],
        };
        let (code, said) = log_in_with(&workplace, more).await;
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(upstream.inner().asked_scopes, ["mail", "mail send"]);
        let (code, _, stderr) = parts(&workplace.run("call up__send"));
        assert_eq!(code, 0, "{stderr}");
    }
}

/// A server that nobody attends.
pub(super) fn unattended(upstream: &Upstream, more: &str) -> Workplace {
    let config = upstream.config();
    let mut workplace = Workplace::with_config(&format!(
        "{config}\n[mcp.up.oauth]\ngrant = \"client_credentials\"\nclient_id = \"robot\"\nclient_secret = \"${{env:ROBOT}}\"\n{more}\n"
    ));
    workplace.set("ROBOT", "robot-secret");
    workplace
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_nobody_attends_gets_its_token_and_renews_it_by_itself() {
    for takes_only_post in [false, true] {
        let upstream = Upstream::start().await;
        upstream.inner().is_elsewhere = true;
        upstream.inner().takes_only_post = takes_only_post;
        let served = Served::in_place(unattended(&upstream, "")).await;
        is_up(&served).await;
        let outcome = served.call("up__send", json!({})).await;
        assert_eq!(outcome["status"], "success", "{outcome}");
        assert_eq!(upstream.inner().asked_scopes, ["mail"]);
        // It is not taken any more: one is fetched, for all.
        upstream.revoke();
        let calls = (0..20).map(|_| served.call("up__send", json!({})));
        for outcome in futures_util::future::join_all(calls).await {
            assert_eq!(outcome["status"], "success", "{outcome}");
        }
        assert_eq!(upstream.inner().issued, 2);
        // More is needed than before.
        upstream.inner().call_scope = Some("send");
        let outcome = served.call("up__send", json!({})).await;
        assert_eq!(outcome["status"], "success", "{outcome}");
        assert_eq!(upstream.inner().asked_scopes[2], "mail send");
        served.signal(rustix::process::Signal::TERM);
        let (_, stderr) = served.ended().await;
        assert!(
            !stderr.contains("robot-secret") && !stderr.contains("access-"),
            "{stderr}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_challenge_that_names_no_scope_leaves_it_to_the_metadata() {
    for (metadata_without_scope, asked) in [(false, "mail"), (true, "")] {
        let upstream = Upstream::start().await;
        upstream.inner().challenge_without_scope = true;
        upstream.inner().metadata_without_scope = metadata_without_scope;
        let workplace = unattended(&upstream, "");
        let (code, stdout, stderr) = parts(&workplace.run("mcp login up --json"));
        assert_eq!(code, 0, "{stdout}{stderr}");
        let login: Value = serde_json::from_str(&stdout).expect("JSON");
        let scopes: Vec<&str> = asked.split_whitespace().collect();
        assert_eq!(login["scopes"], json!(scopes), "{login}");
        let (code, _, stderr) = parts(&workplace.run("call up__send"));
        assert_eq!(code, 0, "{stderr}");
        // It is not taken any more: another one is fetched for the same.
        upstream.revoke();
        let (code, _, stderr) = parts(&workplace.run("call up__send"));
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(upstream.inner().asked_scopes, [asked, asked]);
    }
}

/// An answer about a login that never ends is read up to a bound, whoever logs in.
#[tokio::test(flavor = "multi_thread")]
async fn s01_an_authorization_server_that_never_stops_ends_the_login_with_an_error() {
    for what in ["about", "register", "token"] {
        let upstream = Upstream::start().await;
        upstream.inner().floods = Some(what);
        let workplace = Workplace::with_config(&upstream.config());
        let (code, said) = log_in(&workplace).await;
        assert_eq!(code, Some(3), "{what}: {said}");
        assert!(
            said.contains("answers with more than 1 MiB"),
            "{what}: {said}"
        );
    }
    let upstream = Upstream::start().await;
    upstream.inner().floods = Some("token");
    let workplace = unattended(&upstream, "");
    let (code, _, stderr) = parts(&workplace.run("mcp login up"));
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("answers with more than 1 MiB"), "{stderr}");
    // What says where to log in is not needed where the server itself is asked.
    let upstream = Upstream::start().await;
    upstream.inner().floods = Some("resource");
    let workplace = Workplace::with_config(&upstream.config());
    let (_, said) = log_in(&workplace).await;
    assert!(said.len() < 8 * 1024, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_over_is_renewed_before_it_is_shown() {
    let upstream = Upstream::start().await;
    upstream.inner().lasts_seconds = Some(1);
    let workplace = unattended(&upstream, "scopes = [\"all\"]");
    for calls in 1..=2 {
        let (code, _, stderr) = parts(&workplace.run("call up__send"));
        assert_eq!(code, 0, "{stderr}");
        assert!(
            upstream.inner().issued >= calls,
            "{}",
            upstream.inner().issued
        );
    }
    assert!(
        upstream
            .inner()
            .asked_scopes
            .iter()
            .all(|asked| asked == "all")
    );
    let (code, stdout, stderr) = parts(&workplace.run("mcp login up --json"));
    assert_eq!(code, 0, "{stderr}");
    let login: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(login["renews"], true, "{login}");
    assert_eq!(login["scopes"], json!(["all"]), "{login}");
}

#[tokio::test(flavor = "multi_thread")]
async fn client_credentials_that_are_refused_are_told_without_the_secret_and_not_tried_for_every_call()
 {
    let upstream = Upstream::start().await;
    upstream.inner().denies = true;
    let workplace = unattended(&upstream, "");
    let (code, stdout, stderr) = parts(&workplace.run("-vv call up__send --json"));
    assert_ne!(code, 0, "{stdout}");
    assert!(
        stdout.contains("no token for client credentials") && stdout.contains("[mcp.up.oauth]"),
        "{stdout}"
    );
    assert!(
        !stdout.contains("robot-secret") && !stderr.contains("robot-secret"),
        "{stdout}{stderr}"
    );
    let (code, _, stderr) = parts(&workplace.run("mcp login up"));
    assert_eq!(code, 3, "{stderr}");
    assert!(
        stderr.contains("invalid_client") && !stderr.contains("robot-secret"),
        "{stderr}"
    );
    upstream.inner().denies = false;
    let served = Served::in_place(workplace).await;
    is_up(&served).await;
    upstream.inner().denies = true;
    upstream.revoke();
    let before = upstream.inner().robot_asked;
    let calls = (0..10).map(|_| served.call("up__send", json!({})));
    for outcome in futures_util::future::join_all(calls).await {
        assert_eq!(
            outcome["error"]["code"], "AUTHENTICATION_ERROR",
            "{outcome}"
        );
        assert_eq!(outcome["error"]["effect"], "none", "{outcome}");
        assert!(!outcome.to_string().contains("robot-secret"), "{outcome}");
    }
    let asked = upstream.inner().robot_asked - before;
    assert!(asked < 10, "{asked}");
}

#[test]
fn client_credentials_without_a_client_are_a_fault_of_the_configuration() {
    let workplace = Workplace::with_config(
        "[mcp.up]\nurl = \"http://127.0.0.1:1/mcp\"\n[mcp.up.oauth]\ngrant = \"client_credentials\"\ntoken_url = \"nowhere\"\n[mcp.other]\nurl = \"http://127.0.0.1:1/mcp\"\noauth = { client_auth = \"post\" }\n",
    );
    let (code, _, stderr) = parts(&workplace.run("config check"));
    assert_ne!(code, 0);
    for words in [
        "client_credentials needs client_id and client_secret",
        "is no http or https URL",
        "belongs to grant = \"client_credentials\"",
    ] {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_cannot_send_a_login_to_private_addresses() {
    let upstream = Upstream::start().await;
    let workplace = Workplace::with_config(&upstream.config());
    for address in [
        "http://169.254.169.254",
        "http://10.0.0.1",
        "http://metadata.google.internal",
    ] {
        upstream.inner().issuer_elsewhere = Some(address.to_owned());
        let (code, said) = log_in(&workplace).await;
        assert_eq!(code, Some(3), "{address}: {said}");
        assert!(!said.contains("with a browser"), "{address}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_web_address_is_shown_to_log_in_at() {
    let upstream = Upstream::start().await;
    let workplace = Workplace::with_config(&upstream.config());
    for wrong in [
        "javascript:alert(1)//",
        "file:///etc/passwd",
        "steam://run/1",
    ] {
        upstream.inner().logs_in_at = Some(wrong.to_owned());
        let (code, said) = log_in(&workplace).await;
        assert_eq!(code, Some(3), "{wrong}: {said}");
        assert!(!said.contains("with a browser"), "{wrong}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_answer_does_not_end_a_login() {
    let upstream = Upstream::start().await;
    let workplace = Workplace::with_config(&upstream.config());
    let mut child = program(&workplace, &["mcp", "login", "up"])
        .stderr(Stdio::piped())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("stderr")).lines();
    let mut said = String::new();
    let reading = async {
        let mut silent = Vec::new();
        while let Some(line) = lines.next_line().await.expect("a line") {
            said.push_str(&format!("{line}\n"));
            if !line.trim().starts_with("http") {
                continue;
            }
            let address: url::Url = line.trim().parse().expect("an address");
            let asked: HashMap<String, String> = address.query_pairs().into_owned().collect();
            let (back, state) = (&asked["redirect_uri"], &asked["state"]);
            let at: url::Url = back.parse().expect("an address");
            let at = format!("127.0.0.1:{}", at.port().expect("a port"));
            // More than are served at once, and not a word of any.
            for _ in 0..80 {
                silent.push(
                    tokio::net::TcpStream::connect(&at)
                        .await
                        .expect("it listens"),
                );
            }
            for forged in [
                "code=stolen&state=guess".to_owned(),
                "code=stolen".to_owned(),
                "error=access_denied".to_owned(),
                "error=access_denied&state=guess".to_owned(),
                format!("code=stolen&state=guess&state={state}"),
                format!("code=stolen&state={state}&iss=https%3A%2F%2Fevil.example"),
                format!("state={state}"),
            ] {
                let page = client().get(format!("{back}?{forged}")).send().await;
                let page = page.expect("an answer");
                assert_eq!(page.status(), 400, "{forged}");
                let policy = page.headers().get("content-security-policy");
                assert!(policy.is_some(), "{forged}");
            }
            let page = client().get(address).send().await.expect("an answer");
            let page = page.text().await.expect("a page");
            assert!(page.contains("can be closed"), "{page}");
        }
        child.wait().await.expect("its end").code()
    };
    let code = tokio::time::timeout(PATIENCE, reading).await;
    assert_eq!(code.expect("it ends"), Some(0), "{said}");
}
