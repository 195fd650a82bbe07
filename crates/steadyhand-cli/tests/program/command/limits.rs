//! Memory and CPU time have limits, from the first instruction on; children inherit them.

use serde_json::{Value, json};

use super::{call, message, script, value, with};

/// Takes so many megabytes, by writing to them.
fn taking(megabytes: u32) -> Value {
    json!({"command": ["python3", "-c", format!("x = bytearray({megabytes} << 20); print(len(x) >> 20)")]})
}

#[tokio::test]
async fn a_program_gets_no_more_memory_than_its_limit() {
    let limits = json!({"memory": "256MiB"});
    let outcome = call(with(taking(64), "limits", limits.clone()), json!({})).await;
    assert_eq!(value(&outcome), "64");
    let outcome = call(with(taking(1024), "limits", limits), json!({})).await;
    assert!(
        message(&outcome).contains("`python3` exited with code 1"),
        "{}",
        message(&outcome)
    );
    assert!(
        message(&outcome).contains("MemoryError"),
        "{}",
        message(&outcome)
    );
}

#[tokio::test]
async fn what_a_program_starts_has_the_same_limit() {
    let text = "python3 -c 'x = bytearray(1 << 30)'";
    let settings = with(script(text), "limits", json!({"memory": "256MiB"}));
    let outcome = call(settings, json!({})).await;
    assert!(
        message(&outcome).contains("MemoryError"),
        "{}",
        message(&outcome)
    );
}

#[tokio::test]
async fn a_program_that_uses_up_its_cpu_time_is_told_so() {
    let settings = with(
        script("while :; do :; done"),
        "limits",
        json!({"cpu": "1s"}),
    );
    let outcome = call(settings, json!({})).await;
    assert_eq!(
        message(&outcome),
        "`sh` was killed by signal 24 (SIGXCPU): it used up its CPU time of 1s (limits.cpu) and said nothing"
    );
}

#[tokio::test]
async fn a_limited_program_gets_its_arguments_unchanged_and_its_faults_are_still_named() {
    let limits = json!({"memory": "256MiB", "cpu": "10s"});
    let settings =
        json!({"command": ["printf", "%s|", "--", "-a", "--data=1", "{x}"], "limits": limits});
    let outcome = call(settings, json!({"x": "--help"})).await;
    assert_eq!(value(&outcome), "--|-a|--data=1|--help|");
    let outcome = call(
        json!({"command": ["/etc/passwd"], "limits": limits}),
        json!({}),
    )
    .await;
    assert_eq!(
        message(&outcome),
        "cannot start `/etc/passwd`: /etc/passwd may not be executed by this user; check its permissions (chmod +x)"
    );
}
