//! `mcp login` at a server that asks who we are, with an authorization server of our own: the tokens, where they are
//! kept, and who fetches new ones.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
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
struct Upstream(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    address: String,
    good: Option<String>,
    refresh: Option<String>,
    challenges: HashMap<String, String>,
    issued: usize,
    refreshed: usize,
    registered: usize,
    denies: bool,
    rejects_refreshing: bool,
}

impl Upstream {
    async fn start() -> Upstream {
        let upstream = Upstream::default();
        let app = Router::new()
            .route("/mcp", post(mcp))
            .route("/.well-known/oauth-protected-resource/mcp", get(resource))
            .route("/.well-known/oauth-authorization-server", get(about))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .with_state(upstream.clone());
        let address = crate::support::serve(app).await;
        upstream.inner().address = format!("http://{address}");
        upstream
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().expect("whole")
    }

    fn config(&self) -> String {
        let address = self.inner().address.clone();
        format!(
            "[mcp.up]\nurl = \"{address}/mcp\"\nprotocol = \"legacy\"\nstart = {{ waits = [\"0s\"] }}\n"
        )
    }

    /// The tokens that were good are not any more.
    fn revoke(&self) {
        self.inner().good = None;
    }
}

async fn resource(State(up): State<Upstream>) -> Json<Value> {
    let address = up.inner().address.clone();
    Json(
        json!({"resource": format!("{address}/mcp"), "authorization_servers": [address], "scopes_supported": ["mail"]}),
    )
}

async fn about(State(up): State<Upstream>) -> Json<Value> {
    let at = up.inner().address.clone();
    Json(json!({
        "issuer": at, "authorization_endpoint": format!("{at}/authorize"), "token_endpoint": format!("{at}/token"),
        "registration_endpoint": format!("{at}/register"), "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["client_secret_basic"],
    }))
}

async fn register(
    State(up): State<Upstream>,
    Json(asked): Json<Value>,
) -> (StatusCode, Json<Value>) {
    up.inner().registered += 1;
    let answer = json!({"client_id": "made-here", "client_secret": "between-us", "redirect_uris": asked["redirect_uris"]});
    (StatusCode::CREATED, Json(answer))
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
    up.inner().challenges.insert(code.clone(), challenge);
    Redirect::to(&format!("{back}?code={code}&state={state}"))
}

async fn token(State(up): State<Upstream>, headers: HeaderMap, body: String) -> Response {
    let asked = url::form_urlencoded::parse(body.as_bytes()).into_owned();
    let asked: HashMap<String, String> = asked.collect();
    let wrong =
        |why: &str| (StatusCode::BAD_REQUEST, Json(json!({ "error": why }))).into_response();
    let shown = headers.get(header::AUTHORIZATION);
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
    Json(json!({"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600, "scope": "mail"}))
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
    let (address, good) = {
        let up = up.inner();
        (up.address.clone(), up.good.clone())
    };
    if good.is_none_or(|good| shown != format!("Bearer {good}")) {
        let challenge = format!(
            "Bearer resource_metadata=\"{address}/.well-known/oauth-protected-resource/mcp\", scope=\"mail\""
        );
        let answer = format!("{shown} is none of ours");
        return (
            StatusCode::UNAUTHORIZED,
            [(header::WWW_AUTHENTICATE, challenge)],
            answer,
        )
            .into_response();
    }
    let result = match message["method"].as_str().unwrap_or_default() {
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

/// Runs `mcp login`, and goes where a browser would: its exit code, and what it said.
pub(super) async fn log_in(workplace: &Workplace) -> (Option<i32>, String) {
    let mut child = program(workplace, &["mcp", "login", "up"])
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

async fn is_up(served: &Served) {
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
