//! Commands that run programs end in time and leave nothing behind.

use std::time::Duration;

use crate::support::{PATIENCE, Workplace, parts};

/// A number of seconds that no other process sleeps for.
fn mark(number: u32) -> String {
    format!("60.{number}{:07}", std::process::id())
}

/// Processes whose command line holds this mark.
fn left(mark: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("a Linux system");
    processes
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(mark))
        .collect()
}

#[test]
fn v07_a_command_whose_grandchild_sleeps_is_stopped_at_its_time_limit_and_leaves_no_process() {
    let mark = &mark(1);
    let workplace = Workplace::with_config(&format!(
        r#"
[tools.sleeper]
kind = "command"
command = ["sh", "-c", "sh -c 'trap \"\" TERM; sleep {mark}; sleep {mark}' & sleep {mark}"]
timeout = "1s"
"#
    ));
    let (code, _, stderr) = parts(&workplace.run("call sleeper"));
    assert_eq!(code, 6, "{stderr}");
    assert!(stderr.contains("sleeper timed out"), "{stderr}");
    assert_eq!(left(mark), Vec::<String>::new());
}

#[test]
fn v07_a_daemon_that_left_its_session_and_its_environment_is_stopped_too() {
    let mark = &mark(3);
    let workplace = Workplace::with_config(&format!(
        r#"
[tools.daemon]
kind = "command"
command = ["sh", "-c", "(setsid env -i sleep {mark} >/dev/null 2>&1 &); echo started"]
"#
    ));
    let (code, stdout, stderr) = parts(&workplace.run("call daemon"));
    assert_eq!((code, stdout.as_str()), (0, "started\n"), "{stderr}");
    assert_eq!(left(mark), Vec::<String>::new());
}

#[test]
fn an_interrupt_cancels_the_call_and_stops_its_program() {
    let mark = &mark(2);
    let workplace = Workplace::with_config(&format!(
        "[tools.sleeper]\nkind = \"command\"\ncommand = [\"sleep\", \"{mark}\"]\n"
    ));
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_steadyhand"))
        .args(["call", "sleeper"])
        .current_dir(workplace.path())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    until("the tool has started", || !left(mark).is_empty());
    let pid =
        rustix::process::Pid::from_raw(i32::try_from(program.id()).expect("a pid")).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is ours");
    let status = program.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    assert_eq!(left(mark), Vec::<String>::new());
}

#[test]
fn v07_a_killed_program_takes_its_tools_with_it() {
    let mark = &mark(4);
    let workplace = Workplace::with_config(&format!(
        r#"
[tools.sleeper]
kind = "command"
command = ["sh", "-c", "(setsid sh -c 'trap \"\" TERM; sleep {mark}; :' &) ; sleep {mark} & sleep {mark}; :"]
"#
    ));
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_steadyhand"))
        .args(["call", "sleeper"])
        .current_dir(workplace.path())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the program starts");
    // Two shells, three that sleep.
    until("the tool has started", || left(mark).len() >= 5);
    program.kill().expect("it is ours");
    program.wait().expect("it ends");
    until("nothing is left", || left(mark).is_empty());
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let mut patience = PATIENCE.as_millis() / 20;
    while !is_so() {
        assert!(patience > 0, "never happened: {what}");
        patience -= 1;
        std::thread::park_timeout(Duration::from_millis(20));
    }
}
