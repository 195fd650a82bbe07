//! Looking at processes, and an owner of groups that may be killed.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

/// Far longer than anything here takes: only a test that hangs gets there.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Looks again and again until it is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < end, "never happened: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) fn mark() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// The living processes that have `mark` in their arguments or in their environment.
pub(crate) fn processes(mark: &str) -> Vec<u32> {
    let holds = |pid: &u32, file: &str| {
        let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        bytes
            .windows(mark.len())
            .any(|part| part == mark.as_bytes())
    };
    let entries = fs::read_dir("/proc").expect("Linux").flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        // A zombie has neither.
        .filter(|pid| holds(pid, "cmdline") || holds(pid, "environ"))
        .collect()
}

/// Waits until so many processes with the mark are there.
pub(crate) async fn run_at_least(mark: &str, count: usize) {
    until("all processes run", || processes(mark).len() >= count).await;
}

pub(crate) async fn none_is_left(mark: &str) {
    until("nothing is left", || processes(mark).is_empty()).await;
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a number"), signal).expect("it is there");
}

/// Whether a process is there, alive or waiting to be reaped.
pub(crate) fn is_there(pid: u32) -> bool {
    fs::exists(format!("/proc/{pid}")).expect("Linux")
}

/// The process of `owner.rs`. Dropping it kills it.
pub(crate) struct Owner {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Owner {
    pub(crate) fn start() -> Owner {
        Owner::start_with(|_| {})
    }

    pub(crate) fn start_with(change: impl FnOnce(&mut Command)) -> Owner {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steadyhand-process-owner"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        change(&mut command);
        let mut child = command.spawn().expect("the owner");
        Owner {
            orders: child.stdin.take().expect("its input"),
            answers: BufReader::new(child.stdout.take().expect("its output")),
            child,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gives an order and waits for the answer.
    pub(crate) fn order(&mut self, line: &str) -> String {
        writeln!(self.orders, "{line}").expect("it reads");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("it answers");
        assert!(answer.ends_with('\n'), "no answer to {line}");
        answer.trim_end().to_owned()
    }

    /// Starts a script; the number of its program.
    pub(crate) fn run(&mut self, mark: &str, script: &str) -> u32 {
        let answer = self.order(&format!("start {mark} {script}"));
        answer.parse().expect("a number")
    }

    /// Gives the last order, and waits for the end and for the end of its output.
    pub(crate) fn end(&mut self, line: &str) {
        writeln!(self.orders, "{line}").expect("it reads");
        let mut rest = String::new();
        self.answers.read_line(&mut rest).expect("it ends");
        assert_eq!(rest, "");
        assert!(self.child.wait().expect("its end").success());
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it is there");
        self.child.wait().expect("it is dead");
    }

    /// The guard that watches over it now.
    pub(crate) fn guard(&self) -> Option<u32> {
        let own = format!("PPid:\t{}\n", self.pid());
        let is_guard = |pid: &u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.contains(&own)
        };
        processes("steadyhand-guard").into_iter().find(is_guard)
    }

    pub(crate) async fn guarded(&self) -> u32 {
        until("a guard is there", || self.guard().is_some()).await;
        self.guard().expect("it stays")
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
