//! Tokens of an issuer: those that are good, and all the ways in which one is not. And what an MCP client asks that
//! has none yet.

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use super::issuer::{AUDIENCE, Issuer, encoded, unsigned};
use super::{TOOLS, with_key};
use crate::serve::{Served, until};

fn config(issuer: &Issuer, more: &str) -> String {
    let address = &issuer.address;
    format!("{TOOLS}\n[server.jwt]\nissuer = \"{address}\"\naudience = \"{AUDIENCE}\"\n{more}\n")
}

async fn whoami(served: &Served, token: &str) -> crate::serve::Reply {
    with_key(served, token, "GET", "/v1/whoami", "").await
}

/// Claims with one of them another, or gone.
fn but(claims: &Value, name: &str, value: Value) -> Value {
    let mut claims = claims.clone();
    match value {
        Value::Null => drop(claims.as_object_mut().expect("claims").remove(name)),
        value => claims[name] = value,
    }
    claims
}

#[tokio::test]
async fn a_token_lets_in_by_its_signature_and_as_what_its_scopes_say() {
    let issuer = Issuer::start().await;
    let served = Served::with_config(&config(&issuer, "")).await;
    assert_eq!(served.get("/v1/tools").await.status, 401);
    let claims = issuer.claims();
    for key in ["ec", "ed", "rsa"] {
        let reply = whoami(&served, &issuer.token(key, &claims)).await;
        assert_eq!(reply.status, 200, "{key}: {}", reply.text);
        assert_eq!(reply.json()["name"], "jwt:alice");
        assert_eq!(reply.json()["role"], "caller");
    }
    // They were fetched once.
    assert_eq!(issuer.fetched(), 1);
    for (scope, role) in [
        (json!("steadyhand:view"), "viewer"),
        (json!("steadyhand:view steadyhand:operate"), "operator"),
        (json!("steadyhand:admin email"), "admin"),
    ] {
        let token = issuer.token("ec", &but(&claims, "scope", scope));
        assert_eq!(whoami(&served, &token).await.json()["role"], role);
    }
    let listed = but(
        &but(&claims, "scope", Value::Null),
        "scp",
        json!(["steadyhand:view"]),
    );
    assert_eq!(
        whoami(&served, &issuer.token("ec", &listed)).await.json()["role"],
        "viewer"
    );
    let many = but(&claims, "aud", json!(["https://other.example", AUDIENCE]));
    assert_eq!(
        whoami(&served, &issuer.token("ed", &many)).await.status,
        200
    );
}

#[tokio::test]
async fn a_token_that_expired_was_forged_or_is_for_another_is_refused_with_a_reason_and_no_more() {
    let issuer = Issuer::start().await;
    let other = Issuer::start().await;
    let served = Served::with_config(&config(&issuer, "revoked = [\"stolen\", \"mallory\"]")).await;
    let claims = issuer.claims();
    let now = jiff::Timestamp::now().as_second();
    let good = issuer.token("ec", &claims);
    assert_eq!(whoami(&served, &good).await.status, 200);
    let with = |name: &str, value: Value| issuer.token("ec", &but(&claims, name, value));
    let mut tampered: Vec<String> = good.split('.').map(str::to_owned).collect();
    tampered[1] = encoded(but(&claims, "sub", json!("bob")).to_string());
    // The public key as a secret that both share: the oldest trick.
    let header = json!({"alg": "HS256", "kid": "ec"});
    let message = unsigned(&header, &claims);
    let mut mac = Hmac::<Sha256>::new_from_slice(&issuer.public("ec")).expect("a key");
    mac.update(message.as_bytes());
    let confused = format!("{message}.{}", encoded(mac.finalize().into_bytes()));
    let none = format!("{}.", unsigned(&json!({"alg": "none"}), &claims));
    let other_kind = issuer.signed("ed", &json!({"alg": "EdDSA", "kid": "ec"}), &claims);
    let as_rsa = issuer.signed("ec", &json!({"alg": "RS256", "kid": "ec"}), &claims);
    let as_ps = issuer.signed("rsa", &json!({"alg": "PS256", "kid": "rsa"}), &claims);
    for (what, token, why) in [
        ("expired", with("exp", json!(now - 120)), "has expired"),
        ("no end", with("exp", Value::Null), "until when"),
        ("too early", with("nbf", json!(now + 600)), "not valid yet"),
        (
            "other issuer",
            with("iss", json!("https://evil.example")),
            "another issuer",
        ),
        ("no issuer", with("iss", Value::Null), "of whom"),
        (
            "other audience",
            with("aud", json!("https://other.example/mcp")),
            "another audience",
        ),
        ("no audience", with("aud", Value::Null), "for whom"),
        ("nobody", with("sub", Value::Null), "who it is for"),
        ("revoked token", with("jti", json!("stolen")), "was revoked"),
        (
            "revoked owner",
            with("sub", json!("mallory")),
            "was revoked",
        ),
        ("tampered", tampered.join("."), "signature"),
        (
            "signed by another issuer's key",
            other.token("ec", &claims),
            "signature",
        ),
        ("a shared secret", confused, "in a way that is not taken"),
        ("not signed", none, "the token is no JWT"),
        ("another kind of key", other_kind, ""),
        ("another algorithm", as_rsa, ""),
        ("another padding than the key's", as_ps, "another kind"),
        ("no JWT", "a.b.c".to_owned(), "no JWT"),
        ("too long", format!("{good}{}", "x".repeat(20_000)), ""),
    ] {
        let reply = whoami(&served, &token).await;
        assert_eq!(reply.status, 401, "{what}: {}", reply.text);
        let (_, _, message) = reply.refusal();
        assert!(message.contains(why), "{what}: {message}");
        let challenge = reply
            .header("www-authenticate")
            .expect("a challenge")
            .to_owned();
        assert!(
            challenge.contains("error=\"invalid_token\""),
            "{what}: {challenge}"
        );
        assert!(!reply.text.contains(&token), "{what}");
    }
    let no_scope = issuer.token("ec", &but(&claims, "scope", json!("openid email")));
    let reply = whoami(&served, &no_scope).await;
    assert_eq!(
        (reply.status, reply.refusal().1.as_str()),
        (403, "not_allowed")
    );
    let challenge = reply
        .header("www-authenticate")
        .expect("a challenge")
        .to_owned();
    assert!(
        challenge.contains("error=\"insufficient_scope\"")
            && challenge.contains("scope=\"steadyhand:call\"")
    );
    assert_eq!(whoami(&served, &good).await.status, 200);
}

#[tokio::test]
async fn keys_of_an_issuer_come_and_go_and_unknown_names_do_not_make_us_ask_again_and_again() {
    let mut issuer = Issuer::start().await;
    let served = Served::with_config(&config(&issuer, "")).await;
    let claims = issuer.claims();
    let old = issuer.token("ec", &claims);
    assert_eq!(whoami(&served, &old).await.status, 200);
    issuer.add_ec("next");
    issuer.hide("ec");
    let next = issuer.token("next", &claims);
    until("the new key is known", async || {
        (whoami(&served, &next).await.status == 200).then_some(())
    })
    .await;
    // With it, the one that is gone is gone.
    assert_eq!(whoami(&served, &old).await.status, 401);
    let before = issuer.fetched();
    for number in 0..50 {
        let made_up = issuer.signed(
            "next",
            &json!({"alg": "ES256", "kid": format!("k{number}")}),
            &claims,
        );
        assert_eq!(whoami(&served, &made_up).await.status, 401);
    }
    assert!(
        issuer.fetched() <= before + 20,
        "{} fetches",
        issuer.fetched() - before
    );
}

#[tokio::test]
async fn an_issuer_that_is_away_is_said_to_be_and_its_known_keys_go_on() {
    let issuer = Issuer::start().await;
    let token = issuer.token("ec", &issuer.claims());
    issuer.go_away();
    let served = Served::with_config(&config(&issuer, "")).await;
    let reply = whoami(&served, &token).await;
    assert_eq!(
        (reply.status, reply.refusal().1.as_str()),
        (503, "keys_unavailable"),
        "{}",
        reply.text
    );
    let issuer = Issuer::start().await;
    let served = Served::with_config(&config(&issuer, "")).await;
    let token = issuer.token("ec", &issuer.claims());
    assert_eq!(whoami(&served, &token).await.status, 200);
    issuer.go_away();
    assert_eq!(whoami(&served, &token).await.status, 200);
}

#[tokio::test]
async fn an_mcp_client_without_a_token_learns_where_to_get_one_and_with_one_uses_its_tools() {
    let issuer = Issuer::start().await;
    let more = "tools = [\"weather\"]\nrate = \"2/hour\"";
    let served = Served::with_config(&config(&issuer, more)).await;
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let reply = served.post("/mcp", initialize.clone()).await;
    assert_eq!(reply.status, 401);
    let challenge = reply.header("www-authenticate").expect("a challenge");
    let wanted = "http://127.0.0.1:7400/.well-known/oauth-protected-resource/mcp";
    assert!(
        challenge.starts_with("Bearer ")
            && challenge.contains(&format!("resource_metadata=\"{wanted}\"")),
        "{challenge}"
    );
    for path in [
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-protected-resource",
    ] {
        let metadata = served.get(path).await.json();
        assert_eq!(metadata["resource"], AUDIENCE);
        assert_eq!(metadata["authorization_servers"], json!([issuer.address]));
        assert_eq!(metadata["bearer_methods_supported"], json!(["header"]));
        assert!(
            metadata["scopes_supported"]
                .as_array()
                .expect("scopes")
                .contains(&json!("steadyhand:call"))
        );
    }

    let claims = issuer.claims();
    let alice = format!("Bearer {}", issuer.token("ec", &claims));
    let bob = format!(
        "Bearer {}",
        issuer.token("ec", &but(&claims, "sub", json!("bob")))
    );
    let send = async |who: &str, session: Option<&str>, message: Value| {
        let mut headers = vec![
            ("authorization", who),
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
        ];
        headers.extend(session.map(|session| ("mcp-session-id", session)));
        served
            .send("POST", "/mcp", &headers, &message.to_string())
            .await
    };
    let begun = send(&alice, None, initialize).await;
    assert_eq!(begun.status, 200, "{}", begun.text);
    let session = begun
        .header("mcp-session-id")
        .expect("a session")
        .to_owned();
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let listed = send(&alice, Some(&session), list.clone()).await;
    assert!(
        listed.text.contains("\"weather\"") && !listed.text.contains("shell"),
        "{}",
        listed.text
    );
    // A session is for whoever opened it.
    assert_eq!(send(&bob, Some(&session), list).await.status, 404);
    let call = |id: u64, tool: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}});
    let refused = send(&alice, Some(&session), call(3, "shell")).await;
    assert!(
        refused.text.contains("jwt:alice may not use 'shell'"),
        "{}",
        refused.text
    );
    for id in 4..6 {
        let answered = send(&alice, Some(&session), call(id, "weather")).await;
        assert!(answered.text.contains("rain"), "{}", answered.text);
    }
    let beyond = send(&alice, Some(&session), call(6, "weather")).await;
    assert!(
        beyond.text.contains("may make 2/hour calls"),
        "{}",
        beyond.text
    );
    // A key is as good as a token there.
    let resources = json!({"jsonrpc": "2.0", "id": 7, "method": "resources/list"});
    let listed = send(&alice, Some(&session), resources).await;
    assert!(listed.text.contains("\"resources\":[]"), "{}", listed.text);
}

#[tokio::test]
async fn settings_of_an_issuer_that_make_no_sense_are_told_with_their_place() {
    for (more, why) in [
        (
            "issuer = \"login\"\naudience = \"http://127.0.0.1/mcp\"",
            "server.jwt.issuer: \"login\" is no web address",
        ),
        (
            "issuer = \"https://login.example\"\naudience = \"tools\"",
            "server.jwt.audience: \"tools\" is no web address",
        ),
        (
            "issuer = \"https://login.example\"\naudience = \"https://t.example/mcp\"\nalgorithms = [\"HS256\"]",
            "\"HS256\" is not taken",
        ),
        (
            "issuer = \"https://login.example\"\naudience = \"https://t.example/mcp\"\nalgorithms = [\"none\"]",
            "\"none\" is not taken",
        ),
    ] {
        let workplace = crate::support::Workplace::with_config(&format!("[server.jwt]\n{more}\n"));
        let (code, _, stderr) = crate::support::parts(&workplace.run("config check"));
        assert_eq!(code, 8, "{more}: {stderr}");
        assert!(stderr.contains(why), "{more}: {stderr}");
    }
    let served = Served::with_config(TOOLS).await;
    let reply = served
        .get("/.well-known/oauth-protected-resource/mcp")
        .await;
    assert_eq!(reply.status, 404);
}

#[tokio::test]
async fn a_token_that_is_to_be_read_by_rules_of_its_own_is_refused() {
    let issuer = Issuer::start().await;
    let served = Served::with_config(&config(&issuer, "")).await;
    let claims = issuer.claims();
    let plain = issuer.signed("ec", &json!({"alg": "ES256", "kid": "ec"}), &claims);
    assert_eq!(whoami(&served, &plain).await.status, 200);
    for more in [
        json!({"crit": ["exp"], "exp": 1}),
        json!({"crit": ["b64"], "b64": false}),
        json!({"crit": []}),
        json!({"crit": null}),
        json!({"crit": "alg"}),
        json!({"CRIT": ["x"]}),
        json!({"b64": false}),
        json!({"b64": true}),
        json!({"zip": "DEF"}),
        json!({"enc": "A256GCM"}),
        json!({"cty": "JWT"}),
        json!({"cty": "application/jwt"}),
        json!({"alg": "none"}),
        json!({"alg": "nOnE"}),
        json!({"alg": ["ES256"]}),
    ] {
        let mut header = json!({"alg": "ES256", "kid": "ec"});
        let fields = header.as_object_mut().expect("a header");
        fields.extend(more.as_object().expect("members").clone());
        let token = issuer.signed("ec", &header, &claims);
        let reply = whoami(&served, &token).await;
        assert_eq!(reply.status, 401, "{header}: {}", reply.text);
    }
}
