//! `/mcp` as an OAuth resource server, from the outside: a client that knows nothing but its address finds the issuer,
//! registers, logs in there, and is let in with what it got. The client is a second Steadyhand.

use std::collections::HashMap;
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

use super::TOOLS;
use super::issuer::Issuer;
use super::login::log_in;
use crate::serve::{Served, until};
use crate::support::Workplace;

/// What an authorization server keeps of those who log in.
#[derive(Default)]
struct Desk {
    challenges: Mutex<HashMap<String, String>>,
    /// Whom tokens were asked for.
    resources: Mutex<Vec<String>>,
    /// What is given to whoever logs in.
    token: Mutex<String>,
}

fn authorization_server(desk: &Arc<Desk>) -> Router {
    Router::new()
        .route("/.well-known/oauth-authorization-server", get(about))
        .route("/register", post(register))
        .route("/authorize", get(authorize))
        .route("/token", post(token))
        .with_state(Arc::clone(desk))
}

async fn about(headers: HeaderMap) -> Json<Value> {
    let host = headers[header::HOST].to_str().expect("a host");
    let at = format!("http://{host}");
    Json(json!({
        "issuer": at, "authorization_endpoint": format!("{at}/authorize"), "token_endpoint": format!("{at}/token"),
        "registration_endpoint": format!("{at}/register"), "jwks_uri": format!("{at}/keys"),
        "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
    }))
}

async fn register(Json(asked): Json<Value>) -> (StatusCode, Json<Value>) {
    let answer = json!({"client_id": "second", "redirect_uris": asked["redirect_uris"], "token_endpoint_auth_method": "none"});
    (StatusCode::CREATED, Json(answer))
}

async fn authorize(
    State(desk): State<Arc<Desk>>,
    Query(asked): Query<HashMap<String, String>>,
) -> Redirect {
    assert_eq!(asked["code_challenge_method"], "S256");
    let (back, state) = (&asked["redirect_uri"], &asked["state"]);
    let mut resources = desk.resources.lock().expect("whole");
    resources.push(asked["resource"].clone());
    let code = format!("code-{}", resources.len());
    let mut challenges = desk.challenges.lock().expect("whole");
    challenges.insert(code.clone(), asked["code_challenge"].clone());
    Redirect::to(&format!("{back}?code={code}&state={state}"))
}

async fn token(State(desk): State<Arc<Desk>>, body: String) -> Response {
    let asked = url::form_urlencoded::parse(body.as_bytes()).into_owned();
    let asked: HashMap<String, String> = asked.collect();
    let challenge = desk
        .challenges
        .lock()
        .expect("whole")
        .remove(&asked["code"]);
    let shown = BASE64.encode(Sha256::digest(&asked["code_verifier"]));
    if challenge != Some(shown) {
        let wrong = json!({"error": "invalid_grant"});
        return (StatusCode::BAD_REQUEST, Json(wrong)).into_response();
    }
    let token = desk.token.lock().expect("whole").clone();
    Json(json!({"access_token": token, "token_type": "Bearer", "expires_in": 600})).into_response()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_knows_only_the_address_logs_in_at_the_issuer_and_is_let_in() {
    let desk: Arc<Desk> = Arc::default();
    let issuer = Issuer::serving(authorization_server(&desk)).await;
    let front = Served::with_config(TOOLS).await;
    let audience = format!("http://{}/mcp", front.address);
    let address = &issuer.address;
    front.workplace.write(
        "steadyhand.toml",
        &format!("{TOOLS}\n[server.jwt]\nissuer = \"{address}\"\naudience = \"{audience}\"\n"),
    );
    until("it asks who is there", async || {
        (front.get("/v1/tools").await.status == 401).then_some(())
    })
    .await;

    let mut claims = issuer.claims();
    claims["aud"] = json!(audience);
    claims["sub"] = json!("second");
    *desk.token.lock().expect("whole") = issuer.token("ec", &claims);
    let place = format!("[mcp.up]\nurl = \"{audience}\"\nstart = {{ waits = [\"0s\"] }}\n");
    let place = Workplace::with_config(&place);
    let (code, said) = log_in(&place).await;
    assert_eq!(code, Some(0), "{said}");
    // The token was asked for this server, by the name it gives itself.
    let resources = desk.resources.lock().expect("whole").clone();
    assert_eq!(resources, std::slice::from_ref(&audience));
    let second = Served::in_place(place).await;
    until("its tools are here", async || {
        let tools = second.get("/v1/tools").await.text;
        tools.contains("up__weather").then_some(())
    })
    .await;
    let outcome = second.call("up__weather", json!({})).await;
    assert_eq!(outcome["status"], "success", "{outcome}");

    // A token for somebody else's server is of no use here, though the issuer is the right one.
    let other = Workplace::with_config(&format!(
        "[mcp.up]\nurl = \"{audience}\"\nstart = {{ waits = [\"0s\"] }}\n"
    ));
    claims["aud"] = json!("https://other.example/mcp");
    *desk.token.lock().expect("whole") = issuer.token("ec", &claims);
    assert_eq!(log_in(&other).await.0, Some(0));
    let third = Served::in_place(other).await;
    until("it is told", async || {
        let servers = third.get("/v1/servers").await.text;
        servers.contains("steadyhand mcp login up").then_some(())
    })
    .await;
    assert!(!third.get("/v1/tools").await.text.contains("up__weather"));
}
