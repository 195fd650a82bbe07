//! Keys: made, shown once, kept as digests, revoked at once, over processes.

use serde_json::json;

use super::{TOOLS, call, key, made, with_key};
use crate::serve::{Served, program, until};
use crate::support::{Workplace, parts};

#[tokio::test]
async fn a_key_is_shown_once_and_only_its_digest_is_kept() {
    let workplace = Workplace::with_config(TOOLS);
    let made = made(&workplace, "ci", &["--role", "operator"]);
    let key = made["key"].as_str().expect("a key").to_owned();
    assert!(key.starts_with("shk_") && key.len() > 50, "{key}");
    assert_eq!(made["role"], "operator");
    let secret = key.rsplit('_').next().expect("a secret part").to_owned();
    let (_, listed, _) = parts(&workplace.run("keys list"));
    assert!(
        listed.contains("ci") && !listed.contains(&secret),
        "{listed}"
    );
    let folder = workplace.file(".local/state/steadyhand/access");
    let mut files = 0;
    for file in std::fs::read_dir(&folder).expect("a folder").flatten() {
        let text = std::fs::read_to_string(file.path()).expect("a text");
        assert!(!text.contains(&secret), "{}", file.path().display());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = file.metadata().expect("about it").permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}", file.path().display());
        }
        files += 1;
    }
    assert!(files >= 1);
}

#[tokio::test]
async fn with_a_first_key_the_server_asks_everybody_and_a_revoked_one_is_refused_at_the_next_request()
 {
    let served = Served::with_config(TOOLS).await;
    assert_eq!(served.get("/v1/tools").await.status, 200);
    let ours = key(&served.workplace, "ours", &[]);
    let refused = served.get("/v1/tools").await;
    assert_eq!(
        (refused.status, refused.refusal().1.as_str()),
        (401, "token_missing")
    );
    assert_eq!(call(&served, &ours, "weather").await["status"], "success");
    // A command on this machine still gets in: it reads what the server left for it.
    let (code, listed, stderr) = parts(&served.workplace.run("tools list"));
    assert_eq!(code, 0, "{stderr}");
    assert!(
        listed.contains("weather") && stderr.contains("Using the server"),
        "{stderr}"
    );

    let (code, _, stderr) = parts(&served.workplace.run("keys revoke ours"));
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("No key is left") && stderr.contains("keys create NAME"),
        "{stderr}"
    );
    let refused = with_key(&served, &ours, "GET", "/v1/tools", "").await;
    let (status, code, message) = refused.refusal();
    assert_eq!((status, code.as_str()), (401, "token_missing"));
    assert!(message.contains("\"ours\" was revoked"), "{message}");
    // The last key is gone: the door stays shut.
    assert_eq!(served.get("/v1/tools").await.status, 401);
    let (code, _, _) = parts(&served.workplace.run("keys revoke ours"));
    assert_eq!(code, 2);
}

#[tokio::test]
async fn a_key_that_expired_was_forged_or_belongs_to_another_server_is_refused() {
    let workplace = Workplace::with_config(TOOLS);
    let good = key(&workplace, "good", &[]);
    let brief = key(&workplace, "brief", &["--expires", "1ms"]);
    let elsewhere = key(&Workplace::with_config(TOOLS), "good", &[]);
    let served = Served::in_place(workplace).await;
    assert_eq!(
        with_key(&served, &good, "GET", "/v1/whoami", "")
            .await
            .status,
        200
    );
    let (id, _) = good[4..].split_once('_').expect("an id");
    let mut turned = good.clone().into_bytes();
    let last = turned.last_mut().expect("a letter");
    *last = if *last == b'A' { b'B' } else { b'A' };
    let turned = String::from_utf8(turned).expect("a text");
    for forged in [
        turned,
        elsewhere,
        format!("shk_{id}_"),
        format!("shk_{id}"),
        "shk_".to_owned(),
        format!("{good}x"),
        good.to_uppercase(),
    ] {
        let reply = with_key(&served, &forged, "GET", "/v1/tools", "").await;
        assert_eq!(reply.status, 401, "{forged}: {}", reply.text);
        assert!(
            !reply
                .text
                .contains(&forged[forged.len().saturating_sub(8)..]),
            "{}",
            reply.text
        );
    }
    let reply = with_key(&served, &brief, "GET", "/v1/tools", "").await;
    let (status, _, message) = reply.refusal();
    assert!(
        status == 401 && message.contains("has expired"),
        "{message}"
    );
}

#[tokio::test]
async fn a_file_of_keys_that_cannot_be_read_lets_nobody_in_by_a_guess() {
    let workplace = Workplace::with_config(TOOLS);
    let ours = key(&workplace, "ours", &[]);
    let served = Served::in_place(workplace).await;
    assert_eq!(
        with_key(&served, &ours, "GET", "/v1/tools", "")
            .await
            .status,
        200
    );
    let folder = served.workplace.file(".local/state/steadyhand/access");
    let files = std::fs::read_dir(&folder).expect("a folder").flatten();
    let file = files
        .map(|file| file.path())
        .find(|path| path.to_string_lossy().ends_with(".keys.json"));
    let file = file.expect("the file of keys");
    // A server looks at the file again after a millisecond.
    let until_answered = async |status: u16| {
        until(&format!("{status} is answered"), async || {
            let reply = with_key(&served, &ours, "GET", "/v1/tools", "").await;
            (reply.status == status).then_some(reply)
        })
        .await
    };
    std::fs::write(&file, "{ no keys").expect("written");
    let reply = until_answered(503).await;
    assert_eq!(reply.refusal().1, "keys_unavailable");
    assert_eq!(served.get("/v1/tools").await.status, 401);
    std::fs::remove_file(&file).expect("removed");
    until_answered(401).await;
    assert_eq!(served.get("/v1/tools").await.status, 401);
}

#[tokio::test]
async fn an_address_that_others_reach_is_served_with_keys_alone() {
    let workplace = Workplace::with_config(TOOLS);
    let ours = key(&workplace, "ours", &[]);
    let served = Served::listening(workplace, "0.0.0.0:0").await;
    let port = served.address.port();
    let host = format!("127.0.0.1:{port}");
    let local = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let shown = format!("Bearer {ours}");
    for (headers, status) in [
        (vec![("host", host.as_str())], 401),
        (vec![("host", &host), ("authorization", &shown)], 200),
    ] {
        let request = crate::serve::request(local, "GET", "/v1/tools", &headers, "");
        let mut stream = tokio::net::TcpStream::connect(local)
            .await
            .expect("it listens");
        tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes())
            .await
            .expect("sent");
        assert_eq!(crate::serve::reply(&mut stream).await.status, status);
    }
    // A key that lets nobody in is no credential to serve on.
    let workplace = Workplace::with_config(TOOLS);
    key(&workplace, "gone", &[]);
    workplace.run("keys revoke gone");
    let refused = program(&workplace, &["serve", "--listen", "0.0.0.0:0"])
        .output()
        .await;
    assert_eq!(refused.expect("it ends").status.code(), Some(2));
}

#[tokio::test]
async fn keys_are_made_listed_and_revoked_over_rest_by_an_admin_alone() {
    let workplace = Workplace::with_config(TOOLS);
    let admin = key(&workplace, "admin", &["--role", "admin"]);
    let operator = key(&workplace, "op", &["--role", "operator"]);
    let served = Served::in_place(workplace).await;
    let wanted = json!({"name": "robot", "role": "caller", "allow": ["weather"], "rate": "5/s"});
    let wanted = wanted.to_string();
    let refused = with_key(&served, &operator, "POST", "/v1/keys", &wanted).await;
    assert_eq!(
        (refused.status, refused.refusal().1.as_str()),
        (403, "not_allowed")
    );
    let made = with_key(&served, &admin, "POST", "/v1/keys", &wanted)
        .await
        .json();
    let robot = made["key"].as_str().expect("a key").to_owned();
    let who = with_key(&served, &robot, "GET", "/v1/whoami", "")
        .await
        .json();
    assert_eq!(who["name"], "robot");
    assert_eq!(who["role"], "caller");
    assert_eq!(who["rate"], "5/s");
    assert_eq!(who["tools"]["allow"], json!(["weather"]));
    let again = with_key(&served, &admin, "POST", "/v1/keys", &wanted).await;
    assert_eq!(again.status, 400, "{}", again.text);
    let listed = with_key(&served, &admin, "GET", "/v1/keys", "").await;
    assert_eq!(listed.json()["count"], 3);
    assert!(!listed.text.contains("sha256"), "{}", listed.text);
    let path = format!("/v1/keys/{}", made["id"].as_str().expect("an id"));
    assert_eq!(
        with_key(&served, &admin, "DELETE", &path, "").await.status,
        200
    );
    assert_eq!(
        with_key(&served, &robot, "GET", "/v1/whoami", "")
            .await
            .status,
        401
    );
    assert_eq!(
        with_key(&served, &admin, "DELETE", &path, "").await.status,
        404
    );
}

#[tokio::test]
async fn the_first_key_is_not_made_by_whoever_reaches_an_open_server() {
    let served = Served::with_config(TOOLS).await;
    let reply = served
        .post("/v1/keys", json!({"name": "mine", "role": "admin"}))
        .await;
    assert_eq!(
        (reply.status, reply.refusal().1.as_str()),
        (403, "not_allowed")
    );
    assert_eq!(served.get("/v1/tools").await.status, 200);
}

#[tokio::test]
async fn what_was_refused_is_on_record_in_memory_and_in_a_file() {
    let workplace = Workplace::with_config(TOOLS);
    let admin = key(&workplace, "admin", &["--role", "admin"]);
    let viewer = key(&workplace, "eye", &["--role", "viewer"]);
    let caller = key(&workplace, "hand", &["--tool", "weather"]);
    let served = Served::in_place(workplace).await;
    served.get("/v1/tools?token=hidden").await;
    with_key(&served, "shk_000000000000_guessed", "GET", "/v1/tools", "").await;
    with_key(&served, &viewer, "POST", "/v1/calls", "{}").await;
    call(&served, &caller, "shell").await;
    let refusals = with_key(&served, &admin, "GET", "/v1/refusals", "").await;
    assert!(!refusals.text.contains("hidden") && !refusals.text.contains("guessed"));
    let refusals = refusals.json();
    let told: Vec<(&str, &str, &str)> = refusals["refusals"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| {
            let text = |name: &str| one[name].as_str().unwrap_or("-");
            (text("who"), text("asked"), text("code"))
        })
        .collect();
    assert_eq!(
        told,
        [
            ("hand", "call", "tool_not_allowed"),
            ("eye", "POST /v1/calls", "not_allowed"),
            ("-", "GET /v1/tools", "token_missing"),
            ("-", "GET /v1/tools", "token_missing"),
        ]
    );
    let folder = served.workplace.file(".local/state/steadyhand/access");
    until("the file has them", async || {
        let files = std::fs::read_dir(&folder).ok()?.flatten();
        let mut files = files.map(|file| file.path());
        let file = files.find(|path| path.to_string_lossy().ends_with(".refusals.ndjson"))?;
        let text = std::fs::read_to_string(file).ok()?;
        (text.lines().count() == 4 && text.contains("tool_not_allowed")).then_some(())
    })
    .await;
}
