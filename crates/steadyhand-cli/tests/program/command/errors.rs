//! Every way a program fails, in the words people read, with its category and effect (SPEC R07).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use steadyhand::{Effect, FailureCode, Outcome};
use steadyhand_runtime::source::command::CommandSettings;

use super::{call, call_in, message, script, value, with};

fn never_started(outcome: &Outcome) {
    let failure = outcome.failure().expect("a failure");
    assert_eq!(failure.code, FailureCode::ToolExecutionError);
    assert_eq!(failure.effect, Effect::None);
    assert!(!failure.retryable);
    assert_eq!(outcome.attempts, 1);
}

#[tokio::test]
async fn r07_a_program_that_is_not_there() {
    let settings = json!({"command": ["no-such-program"], "env": {"PATH": "/bin:/opt/none"}});
    let outcome = call(settings, json!({})).await;
    assert_eq!(
        message(&outcome),
        "cannot start `no-such-program`: it is not on PATH (searched /bin:/opt/none); install it, or write its full path in `command`"
    );
    never_started(&outcome);
}

#[tokio::test]
async fn r07_a_path_that_is_not_there() {
    let outcome = call(json!({"command": ["./bin/tool"]}), json!({})).await;
    assert_eq!(
        message(&outcome),
        "cannot start `./bin/tool`: there is no /./bin/tool; install it, or correct the path in `command`"
    );
    never_started(&outcome);
}

#[tokio::test]
async fn r07_a_folder_that_is_not_there() {
    let settings = json!({"command": ["true"], "cwd": "no/such/folder"});
    let outcome = call(settings, json!({})).await;
    assert_eq!(
        message(&outcome),
        "cannot start `true`: the folder /no/such/folder does not exist; make it, or change `cwd`"
    );
    never_started(&outcome);
}

#[tokio::test]
async fn r07_a_file_that_cannot_be_executed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    for (name, text, mode, expected) in [
        (
            "a",
            "#!/bin/sh\n",
            0o644,
            "/a may not be executed by this user; check its permissions (chmod +x)",
        ),
        (
            "b",
            "#!/no/interpreter\n",
            0o755,
            "/b is there, but the interpreter that its first line names is not; install it",
        ),
    ] {
        let file = path.join(name);
        fs::write(&file, text).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("set");
        let outcome = call_in(path, json!({"command": [format!("./{name}")]}), json!({})).await;
        assert!(message(&outcome).starts_with(&format!("cannot start `./{name}`: ")));
        assert!(
            message(&outcome).ends_with(expected),
            "{}",
            message(&outcome)
        );
        never_started(&outcome);
    }
}

#[tokio::test]
async fn r07_an_exit_code_comes_with_the_last_words() {
    let outcome = call(
        script("echo out; echo fatal: no such branch >&2; exit 3"),
        json!({}),
    )
    .await;
    assert_eq!(
        message(&outcome),
        "`sh` exited with code 3: fatal: no such branch"
    );
    let failure = outcome.failure().expect("a failure");
    assert_eq!(failure.code, FailureCode::ToolExecutionError);
    assert_eq!(failure.effect, Effect::Done, "it ran to its end (D19)");
    assert!(!failure.retryable, "a command is not safe to repeat (D19)");
    assert_eq!(outcome.attempts, 1);
}

#[tokio::test]
async fn r07_a_program_that_complains_on_stdout_is_quoted_too() {
    let outcome = call(script("echo 3 tests failed; exit 1"), json!({})).await;
    assert_eq!(message(&outcome), "`sh` exited with code 1: 3 tests failed");
    let outcome = call(script("exit 1"), json!({})).await;
    assert_eq!(
        message(&outcome),
        "`sh` exited with code 1 and said nothing"
    );
}

#[tokio::test]
async fn r07_words_decide_only_where_nothing_else_does() {
    let outcome = call(script("echo connection refused >&2; exit 7"), json!({})).await;
    let failure = outcome.failure().expect("a failure");
    assert_eq!(failure.code, FailureCode::NetworkError);
    assert_eq!(failure.effect, Effect::Done);
}

#[tokio::test]
async fn other_exit_codes_can_mean_success() {
    let settings = with(script("echo differs; exit 1"), "ok", json!([0, 1]));
    assert_eq!(value(&call(settings, json!({})).await), "differs");
}

#[tokio::test]
async fn r07_a_signal_is_named() {
    let outcome = call(script("kill -SEGV $$"), json!({})).await;
    assert_eq!(
        message(&outcome),
        "`sh` was killed by signal 11 (SIGSEGV) and said nothing"
    );
    assert_eq!(
        outcome.failure().expect("a failure").effect,
        Effect::Unknown
    );
}

#[tokio::test]
async fn r07_arguments_longer_than_the_system_allows_are_the_callers_fault() {
    let outcome = call(
        json!({"command": ["true", "{text}"]}),
        json!({"text": "x".repeat(200_000)}),
    )
    .await;
    assert_eq!(
        message(&outcome),
        "cannot start `true`: the arguments are longer than the system allows; hand long texts over with `stdin`"
    );
    let failure = outcome.failure().expect("a failure");
    assert_eq!(
        (failure.code, failure.effect),
        (FailureCode::ValidationError, Effect::None)
    );
}

#[tokio::test]
async fn secrets_of_the_environment_reach_nobody() {
    let secret = "hunter2-and-more";
    let settings = |text: &str| with(script(text), "env", json!({"DEPLOY_TOKEN": secret}));
    let said = call(
        settings("echo bad token $DEPLOY_TOKEN >&2; exit 1"),
        json!({}),
    )
    .await;
    assert_eq!(
        message(&said),
        "`sh` exited with code 1: bad token [redacted]"
    );
    let printed = call(settings("echo $DEPLOY_TOKEN"), json!({})).await;
    assert_eq!(value(&printed), "[redacted]");
    assert!(!format!("{said:?}{printed:?}").contains(secret));
}

#[test]
fn settings_do_not_show_what_may_be_secret() {
    let settings: CommandSettings = serde_json::from_value(json!({
        "command": ["curl", "-H", "Authorization: hunter2"],
        "env": {"X": "hunter2"},
        "stdin": "hunter2"
    }))
    .expect("settings");
    assert!(!format!("{settings:?}").contains("hunter2"), "{settings:?}");
}

#[tokio::test]
async fn the_environment_is_minimal() {
    // Cargo sets this one for every test.
    let own = "CARGO_MANIFEST_DIR";
    let names = async |settings: Value| -> Vec<String> {
        let outcome = call(with(settings, "output", json!("lines")), json!({})).await;
        let lines = value(&outcome).as_array().expect("lines").clone();
        let name = |line: &Value| line.as_str()?.split('=').next().map(str::to_owned);
        lines.iter().filter_map(name).collect()
    };
    let minimal = names(json!({"command": ["env"], "env": {"MINE": "1"}})).await;
    for name in &minimal {
        let known = [
            "HOME",
            "LANG",
            "LOGNAME",
            "MINE",
            "PATH",
            "SHELL",
            "STEADYHAND_RUN",
            "TERM",
            "TMPDIR",
            "TZ",
            "USER",
        ];
        assert!(
            known.contains(&name.as_str()) || name.starts_with("LC_"),
            "{name}"
        );
    }
    assert!(minimal.contains(&"PATH".to_owned()) && minimal.contains(&"MINE".to_owned()));
    let named = names(json!({"command": ["env"], "inherit_env": [own]})).await;
    assert!(named.contains(&own.to_owned()));
    let all = names(json!({"command": ["env"], "inherit_env": "all"})).await;
    assert!(all.contains(&own.to_owned()));
}

#[tokio::test]
async fn the_folder_is_relative_to_the_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().canonicalize().expect("a path");
    fs::create_dir(path.join("inner")).expect("made");
    let at = async |settings: Value| {
        let outcome = call_in(&path, settings, json!({})).await;
        Path::new(value(&outcome).as_str().expect("a path")).to_owned()
    };
    assert_eq!(at(json!({"command": ["pwd"]})).await, path);
    assert_eq!(
        at(json!({"command": ["pwd"], "cwd": "inner"})).await,
        path.join("inner")
    );
}
