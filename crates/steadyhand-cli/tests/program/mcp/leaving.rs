//! Whatever ends a command, nothing of the servers it started stays behind.

use std::process::{Child, Command, Stdio};
use tokio::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use super::{Bench, hostile, hostile_command, pause, python, with_variable};
use crate::support::{PATIENCE, parts};

fn spawned(bench: &Bench, words: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_steadyhand"))
        .args(words)
        .current_dir(bench.path())
        .env_clear()
        .envs(crate::support::measured())
        .env("PATH", std::env::var("PATH").unwrap_or_default())
        .env("HOME", bench.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "never came true: {what}");
        pause();
    }
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process"), signal).expect("it is ours");
}

/// A server that leaves a child of its own behind, with a call that never ends.
fn with_a_grandchild(bench: &Bench) -> Child {
    let child = spawned(
        bench,
        &["call", "deep__echo", "message=hi", "delay_ms=600000"],
    );
    until("the server has left a child behind", || {
        !bench.text("pids-deep").is_empty()
    });
    child
}

fn grandchildren_are_gone(bench: &Bench) {
    for pid in bench.text("pids-deep").lines() {
        let stat = format!("/proc/{pid}/stat");
        until("what the server left behind is gone", || {
            // Dead and not buried counts as gone.
            std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "))
        });
    }
}

#[test]
fn v07_an_interrupt_stops_the_call_its_server_and_what_that_left_behind() {
    let bench = Bench::with(&hostile("deep", "grandchild"));
    let child = with_a_grandchild(&bench);
    signal(&child, Signal::INT);
    let output = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    bench.assert_nobody_left();
    grandchildren_are_gone(&bench);
}

#[test]
fn v07_killed_itself_it_leaves_no_server_behind() {
    let bench = Bench::with(&hostile("deep", "grandchild"));
    let mut child = with_a_grandchild(&bench);
    signal(&child, Signal::KILL);
    child.wait().expect("it is dead");
    bench.assert_nobody_left();
    grandchildren_are_gone(&bench);
}

#[test]
fn an_interrupt_while_the_server_starts_ends_at_once() {
    let bench = Bench::empty();
    let command = hostile_command("silent_init");
    let child = spawned(&bench, &["call", "--mcp", &command, "echo", "message=hi"]);
    let mark = format!("HOME={}\0", bench.path().display());
    until("the server is there", || {
        let started = with_variable(&mark);
        started.iter().any(|line| line.starts_with(python()))
    });
    signal(&child, Signal::INT);
    let output = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(
        stderr.contains("interrupted before the tool was called"),
        "{stderr}"
    );
    bench.assert_nobody_left();
}

#[test]
fn v07_a_call_that_is_never_answered_ends_at_its_time_limit_and_tells_the_server() {
    let bench = Bench::with(&(hostile("lost", "no_response") + "timeout = \"300ms\"\n"));
    let (code, _, stderr) = parts(&bench.run("call lost__trouble"));
    assert_eq!(code, 6, "{stderr}");
    assert!(stderr.contains("lost__trouble timed out"), "{stderr}");
    bench.assert_nobody_left();
}

#[test]
fn every_command_that_looks_at_servers_stops_them_again() {
    let config = hostile("one", "well") + &hostile("down", "exit1_before_init");
    let bench = Bench::with(&config);
    for words in [
        "tools list",
        "mcp list",
        "mcp test one",
        "tools show one__echo",
        "tools list",
    ] {
        let (code, _, stderr) = parts(&bench.run(words));
        assert_eq!(code, 0, "{words}: {stderr}");
        bench.assert_nobody_left();
    }
    bench.write(
        "calls.json",
        r#"[{"name": "one__echo", "args": {"message": "hi"}}]"#,
    );
    let (code, stdout, stderr) = parts(&bench.run("batch calls.json"));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("one__echo"), "{stdout}");
    bench.assert_nobody_left();
}
