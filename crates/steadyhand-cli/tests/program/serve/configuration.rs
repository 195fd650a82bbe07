//! The configuration of a server that runs: shown without secrets, and changed while calls run.

use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::{Served, reply, request, runs, until};
use crate::support::Workplace;

#[tokio::test]
async fn the_settings_in_force_are_shown_with_their_origins_and_without_secrets() {
    let mut workplace = Workplace::with_config(
        r#"
[server]
token = "t0p-secret-token-of-this-test"

[tools.echo]
kind = "builtin"
use = "echo"
timeout = "5s"

[tools.far]
kind = "http"
url = "http://127.0.0.1:1/{name}"
headers = { Authorization = "Bearer ${env:FAR_KEY}" }
"#,
    );
    workplace.set("FAR_KEY", "an0ther-secret-of-this-test");
    let served = Served::in_place(workplace).await;
    let token = [("authorization", "Bearer t0p-secret-token-of-this-test")];
    let shown = served.send("GET", "/v1/config", &token, "").await;
    assert_eq!(shown.status, 200);
    for secret in ["t0p-secret", "an0ther-secret"] {
        assert!(!shown.text.contains(secret), "{}", shown.text);
    }
    let shown = shown.json();
    assert_eq!(shown["generation"], 1);
    assert_eq!(shown["last_reload"], json!(null));
    let settings = shown["settings"].as_array().expect("a list");
    let of = |name: &str| {
        let found = settings.iter().find(|setting| setting["setting"] == name);
        found.expect("a setting of this name").clone()
    };
    assert_eq!(of("tools.echo.timeout")["value"], "5s");
    assert_eq!(of("tools.echo.timeout")["origin"], "steadyhand.toml:8");
    assert_eq!(of("defaults.deadline")["origin"], "default");
    assert_eq!(of("server.token")["value"], "[hidden]");
}

const BEFORE: &str = r#"
[tools.changing]
kind = "mock"
description = "Changes"
input = { type = "object" }
answers = [{ result = "before", delay = "1s" }]
"#;

#[tokio::test]
async fn a_changed_file_is_taken_over_while_calls_run_and_none_is_dropped() {
    let served = Served::with_config(BEFORE).await;
    let mut caller = served.connect().await;
    let call = json!({"name": "changing"}).to_string();
    let call = request(served.address, "POST", "/v1/calls", &[], &call);
    caller.write_all(call.as_bytes()).await.expect("sent");
    runs(&served, "changing").await;

    let after = BEFORE.replace("\"before\", delay = \"1s\"", "\"after\"");
    served.workplace.write("steadyhand.toml", &after);
    let reloaded = served.post("/v1/config/reload", json!({})).await;
    assert_eq!(reloaded.status, 200, "{}", reloaded.text);
    assert!(reloaded.json()["generation"].as_u64() >= Some(2));
    let outcome = served.call("changing", json!({})).await;
    assert_eq!(outcome["output"], "after");
    // The call from before goes on to its end.
    assert_eq!(reply(&mut caller).await.json()["output"], "before");

    // A change alone does it, too; and a hangup.
    served
        .workplace
        .write("steadyhand.toml", &after.replace("after", "later"));
    until("the changed file is taken over", async || {
        let outcome = served.call("changing", json!({})).await;
        (outcome["output"] == "later").then_some(())
    })
    .await;
    let before = served.get("/v1/config").await.json()["generation"].as_u64();
    served.signal(rustix::process::Signal::HUP);
    until("the hangup reads the file again", async || {
        let now = served.get("/v1/config").await.json()["generation"].as_u64();
        (now > before).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_wrong_file_changes_nothing_and_the_answer_says_what_is_wrong() {
    let served = Served::with_config(&BEFORE.replace(", delay = \"1s\"", "")).await;
    served
        .workplace
        .write("steadyhand.toml", "[tools.changing]\nkind = \"mok\"\n");
    let reply = served.post("/v1/config/reload", json!({})).await;
    let (status, code, message) = reply.refusal();
    assert_eq!((status, code.as_str()), (422, "config_invalid"));
    assert!(message.contains("nothing was changed"), "{message}");
    let problem = &reply.json()["error"]["problems"][0];
    assert_eq!(problem["line"], 2);
    assert_eq!(problem["file"], "steadyhand.toml");
    assert!(
        problem["help"]
            .as_str()
            .is_some_and(|help| help.contains("mock"))
    );
    let outcome = served.call("changing", json!({})).await;
    assert_eq!(outcome["output"], "before");
    let shown = served.get("/v1/config").await.json();
    assert_eq!(shown["last_reload"]["ok"], false);
    assert_eq!(shown["generation"], 1);
}

#[tokio::test]
async fn a_token_that_is_set_later_is_asked_for_from_then_on() {
    let served = Served::with_config(BEFORE).await;
    assert_eq!(served.get("/v1/tools").await.status, 200);
    let with_token = format!("[server]\ntoken = \"letmein\"\n{BEFORE}");
    served.workplace.write("steadyhand.toml", &with_token);
    served.post("/v1/config/reload", json!({})).await;
    until("the token is asked for", async || {
        (served.get("/v1/tools").await.status == 401).then_some(())
    })
    .await;
    let token = [("authorization", "Bearer letmein")];
    assert_eq!(
        served.send("GET", "/v1/tools", &token, "").await.status,
        200
    );
}
