//! What a server writes on stderr (SPEC V03, V04, V08): warnings without being asked, and as `[log]` says.

use serde_json::json;

use crate::serve::{Served, until};
use crate::support::{Workplace, parts};

const TOOLS: &str = r#"
[tools.greet]
kind = "mock"
input = { type = "object", required = ["name"], properties = { name = { type = "string" } } }
mock_response = "hello"
[tools.flaky]
kind = "mock"
answers = [{ every = 2, result = "well" }, { fail = "network" }]
retry = { attempts = 3, backoff = "1ms" }
breaker = { enabled = false }
[tools.ill]
kind = "mock"
answers = [{ fail = "refusal" }]
[tools.slow]
kind = "mock"
answers = [{ result = 1, delay = "1100ms" }]
[tools.gone]
kind = "mock"
answers = [{ fail = "network" }]
retry = { attempts = 1 }
breaker = { failures = 1, cooldown = "1h" }
[[alerts]]
when = "breaker_open"
notify = { log = "info" }
"#;

async fn calls(served: &Served) {
    for (name, args) in [
        ("greet", json!({"name": "Ann"})),
        ("greet", json!({"nam": "Bob", "password": "hunter22222"})),
        (
            "teleport",
            json!({"to": "Mars", "token": "t0ps3cret-t0ps3cret"}),
        ),
        ("flaky", json!({})),
        ("ill", json!({})),
        ("slow", json!({})),
        ("gone", json!({})),
    ] {
        let _ = served
            .post("/v1/calls", json!({"name": name, "args": args}))
            .await;
    }
}

async fn hears(served: &Served, part: &str) -> String {
    until(&format!("the log has {part}"), async || {
        let stderr = served.stderr();
        stderr.contains(part).then_some(stderr)
    })
    .await
}

#[tokio::test]
async fn v03_v08_warnings_and_named_lines_are_on_stderr_without_being_asked_for() {
    let served = Served::with_config(TOOLS).await;
    calls(&served).await;
    for part in [
        "unknown tool",
        "succeeded on attempt 2",
        "call failed",
        "slow call",
        "breaker",
    ] {
        hears(&served, part).await;
    }
    let stderr = hears(&served, "raised").await;
    let line = |part: &str| {
        let found = stderr.lines().find(|line| line.contains(part));
        found
            .unwrap_or_else(|| panic!("{part}: {stderr}"))
            .to_owned()
    };
    assert!(line("unknown tool").contains("Mars"), "{stderr}");
    let invalid = line("VALIDATION_ERROR");
    assert!(
        invalid.contains("Bob") && invalid.contains("greet"),
        "{stderr}"
    );
    for secret in ["hunter22222", "t0ps3cret"] {
        assert!(!stderr.contains(secret), "{secret}: {stderr}");
    }
    // Single calls that went well are not warnings.
    assert!(!stderr.contains("Ann"), "{stderr}");
}

#[tokio::test]
async fn one_setting_says_what_is_written_and_a_reload_changes_it() {
    let served = Served::with_config(&format!("{TOOLS}\n[log]\nlevel = \"off\"\n")).await;
    calls(&served).await;
    assert_eq!(served.stderr(), "");
    let all = format!("{TOOLS}\n[log]\nlevel = \"info\"\nformat = \"json\"\n");
    served.workplace.write("steadyhand.toml", &all);
    assert_eq!(
        served.post("/v1/config/reload", json!({})).await.status,
        200
    );
    until("calls are logged", async || {
        let _ = served.call("greet", json!({"name": "Ann"})).await;
        served.stderr().contains("call succeeded").then_some(())
    })
    .await;
    let stderr = served.stderr();
    let line = stderr.lines().find(|line| line.contains("call succeeded"));
    let line: serde_json::Value = serde_json::from_str(line.expect("a line")).expect("JSON");
    assert_eq!(line["tool"], "greet");
    assert_eq!(line["level"], "INFO");
}

#[test]
fn commands_that_end_are_quiet() {
    let workplace = Workplace::with_config(TOOLS);
    let (code, _, stderr) = parts(&workplace.run("-q call flaky"));
    assert_eq!((code, stderr.as_str()), (0, ""));
    let (_, _, stderr) = parts(&workplace.run("call ill"));
    assert!(!stderr.contains("WARN"), "{stderr}");
}
