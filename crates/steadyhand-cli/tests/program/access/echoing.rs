//! A server that repeats what it knows of our login: nobody reads it there, in whatever way it is written.

use serde_json::{Value, json};

use super::login::{Upstream, is_up, log_in, written};
use crate::gateway::Modern;
use crate::serve::{Served, until};
use crate::support::{Workplace, parts};

/// The same as far as it does not hang on what stands beside the secret.
fn found_as(secret: &str) -> Vec<String> {
    let mut forms = written(secret);
    let bases = forms.split_off(3).into_iter().enumerate();
    forms.extend(bases.map(|(before, form)| {
        let (start, end) = (before * 8, (before + secret.len()) * 8);
        form[start.div_ceil(6)..end / 6].to_owned()
    }));
    forms
}

/// All files of the state folder but those of logins.
fn kept(workplace: &Workplace) -> Vec<String> {
    let mut kept = Vec::new();
    let mut folders = vec![workplace.file(".local/state/steadyhand")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true if path.ends_with("logins") => {}
                true => folders.push(path),
                false => {
                    let bytes = std::fs::read(path).expect("a file");
                    kept.push(String::from_utf8_lossy(&bytes).into_owned());
                }
            }
        }
    }
    kept
}

#[tokio::test(flavor = "multi_thread")]
async fn s07_tokens_of_a_login_are_in_no_definition_result_error_history_or_log() {
    let upstream = Upstream::start().await;
    upstream.inner().echoes = true;
    let workplace =
        Workplace::with_config(&format!("[log]\nlevel = \"debug\"\n{}", upstream.config()));
    let (code, said) = log_in(&workplace).await;
    assert_eq!(code, Some(0), "{said}");
    let mut secrets = vec!["between-us".to_owned()];
    secrets.extend(upstream.inner().good.clone());
    secrets.extend(upstream.inner().refresh.clone());
    let served = Served::in_place(workplace).await;
    is_up(&served).await;
    let mut texts = vec![said];
    // Once with the tokens of the login, once with those that are fetched for them.
    for round in 0..2 {
        if round == 1 {
            upstream.revoke();
        }
        for args in [json!({}), json!({"fails": true})] {
            let outcome = served.call("up__send", args.clone()).await;
            let id = outcome["callId"].as_str().unwrap_or_default().to_owned();
            texts.push(outcome.to_string());
            let call = json!({"name": "up__send", "arguments": args});
            let passed = Modern::of("tools/call", call, json!({}))
                .send(&served)
                .await;
            assert!(passed.text.contains("I know: "), "{}", passed.text);
            texts.push(passed.text);
            let shown = until("it is in the history", async || {
                let shown = served.get(&format!("/v1/calls/{id}")).await;
                (shown.status == 200).then_some(shown.text)
            })
            .await;
            texts.push(shown);
        }
        secrets.extend(upstream.inner().good.clone());
        secrets.extend(upstream.inner().refresh.clone());
    }
    for path in [
        "/v1/tools",
        "/v1/servers/up",
        "/v1/servers",
        "/servers/up",
        "/tools/up__send",
        "/v1/tools/up__send",
    ] {
        texts.push(served.get(path).await.text);
    }
    let listed = Modern::of("tools/list", json!({}), json!({}));
    texts.push(listed.result(&served).await.to_string());
    let seen: Vec<Value> = texts
        .iter()
        .map(|text| json!(text.contains("I know: ")))
        .collect();
    assert!(
        seen.iter().filter(|it| **it == true).count() > 8,
        "{seen:?}"
    );
    served.signal(rustix::process::Signal::TERM);
    let (_, stderr, workplace) = served.left().await;
    texts.push(stderr);
    for command in [
        "mcp list",
        "mcp test up",
        "tools show up__send",
        "calls list",
        "doctor",
    ] {
        let (_, stdout, stderr) = parts(&workplace.run(command));
        texts.extend([stdout, stderr]);
    }
    texts.extend(kept(&workplace));
    for secret in &secrets {
        for form in found_as(secret) {
            for text in &texts {
                assert!(!text.contains(&form), "{secret} as {form} in {text}");
            }
        }
    }
}
