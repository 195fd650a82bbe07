//! Nothing survives the death of its owner, of whatever it dies.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::support::{Owner, is_there, mark, none_is_left, processes, run_at_least, signal, until};

/// A leader and a child that take no notice of polite signals.
const STUBBORN: &str = "trap '' TERM HUP INT; sleep 600 & while :; do sleep 600; done";
/// A daemon in a session of its own, whose parent is gone.
const DAEMON: &str = "(setsid sh -c 'trap \"\" TERM HUP; sleep 601; :' &) ; sleep 600; :";

/// Kills the owner, then waits until its programs and its guard are gone.
async fn dies_with_everything(mut owner: Owner, marks: &[&str]) {
    let guard = owner.guarded().await;
    owner.kill();
    for mark in marks {
        none_is_left(mark).await;
    }
    until("the guard is gone", || !is_there(guard)).await;
}

#[tokio::test]
async fn v07_children_that_ignore_signals_die_with_a_killed_owner() {
    let (mut owner, mark) = (Owner::start(), mark());
    owner.run(&mark, STUBBORN);
    run_at_least(&mark, 3).await;
    dies_with_everything(owner, &[&mark]).await;
}

#[tokio::test]
async fn v07_a_daemon_with_a_session_of_its_own_dies_with_a_killed_owner() {
    let (mut owner, mark) = (Owner::start(), mark());
    owner.run(&mark, DAEMON);
    run_at_least(&mark, 4).await;
    dies_with_everything(owner, &[&mark]).await;
}

#[tokio::test]
async fn v07_a_daemon_dies_with_a_killed_owner_even_when_its_program_has_ended() {
    let (mut owner, mark) = (Owner::start(), mark());
    owner.run(&mark, "setsid sh -c 'trap \"\" TERM; sleep 601; :' &");
    run_at_least(&mark, 2).await;
    dies_with_everything(owner, &[&mark]).await;
}

#[tokio::test]
async fn v07_a_daemon_without_environment_dies_with_a_killed_owner() {
    let (mut owner, mark, hidden) = (Owner::start(), mark(), mark());
    let script = format!(
        "env -i PATH=\"$PATH\" setsid sh -c 'trap \"\" TERM; sleep 601; :' {hidden} & sleep 600; :"
    );
    owner.run(&mark, &script);
    run_at_least(&hidden, 1).await;
    run_at_least(&mark, 2).await;
    dies_with_everything(owner, &[&mark, &hidden]).await;
}

#[tokio::test]
async fn v07_marks_are_found_without_grep() {
    let mark = mark();
    let folder = tempfile::tempdir().expect("a folder");
    for tool in ["sh", "sleep", "setsid"] {
        let there = which::which(tool).expect("a usual tool");
        std::os::unix::fs::symlink(there, folder.path().join(tool)).expect("a link");
    }
    let mut owner = Owner::start_with(|command| {
        command.env("PATH", folder.path());
    });
    owner.run(&mark, DAEMON);
    run_at_least(&mark, 4).await;
    dies_with_everything(owner, &[&mark]).await;
}

#[tokio::test]
async fn v07_a_killed_guard_is_replaced_by_one_that_knows_everything() {
    let (mut owner, before, after) = (Owner::start(), mark(), mark());
    owner.run(&before, STUBBORN);
    owner.run(&before, DAEMON);
    run_at_least(&before, 7).await;
    let mut guard = owner.guarded().await;
    for _ in 0..2 {
        signal(guard, Signal::KILL);
        until("another guard is there", || {
            owner.guard().is_some_and(|now| now != guard)
        })
        .await;
        guard = owner.guarded().await;
    }
    owner.run(&after, DAEMON);
    run_at_least(&after, 4).await;
    dies_with_everything(owner, &[&before, &after]).await;
}

#[tokio::test]
async fn v07_a_guard_that_does_not_listen_holds_nobody_up_and_is_replaced() {
    let (mut owner, first, second) = (Owner::start(), mark(), mark());
    owner.run(&first, STUBBORN);
    let guard = owner.guarded().await;
    signal(guard, Signal::STOP);
    let mut runs = 0;
    while owner.guard() == Some(guard) {
        let short = owner.run("short", ":");
        owner.order(&format!("stop {short}"));
        runs += 1;
        assert!(runs < 5000, "nobody noticed");
    }
    owner.run(&second, DAEMON);
    run_at_least(&first, 3).await;
    run_at_least(&second, 4).await;
    dies_with_everything(owner, &[&first, &second]).await;
}

#[tokio::test]
async fn v07_polite_signals_do_not_stop_the_guard() {
    let (mut owner, mark) = (Owner::start(), mark());
    owner.run(&mark, STUBBORN);
    run_at_least(&mark, 3).await;
    let guard = owner.guarded().await;
    // It ignores signals from its first line on; before that it is replaced.
    let trap = "SigIgn:\t";
    until("it ignores signals", || {
        let status = fs::read_to_string(format!("/proc/{guard}/status")).unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix(trap));
        ignored.is_some_and(|bits| u64::from_str_radix(bits, 16).unwrap_or(0) & (1 << 14) != 0)
    })
    .await;
    for polite in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        signal(guard, polite);
    }
    assert_eq!(owner.guard(), Some(guard));
    dies_with_everything(owner, &[&mark]).await;
}

#[tokio::test]
async fn the_guard_holds_nothing_of_its_owner_open() {
    let (mut owner, mark) = (Owner::start(), mark());
    owner.run(&mark, "exec sleep 600");
    let guard = owner.guarded().await;
    let file = |number: u32| fs::read_link(format!("/proc/{guard}/fd/{number}"));
    for output in [1, 2] {
        assert_eq!(file(output).expect("it is open"), Path::new("/dev/null"));
    }
    let input = file(0).expect("it is open").display().to_string();
    assert!(input.starts_with("socket:"), "{input}");
    // And its programs hold nothing of the guard's. What this test was started with, everyone has.
    let sockets = |pid: u32| -> BTreeSet<PathBuf> {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).expect("it lives");
        let targets = files
            .flatten()
            .filter_map(|file| fs::read_link(file.path()).ok());
        let is_socket = |target: &PathBuf| target.to_string_lossy().starts_with("socket:");
        targets.filter(is_socket).collect()
    };
    let of_the_program = sockets(processes(&mark)[0]);
    assert!(of_the_program.is_subset(&sockets(std::process::id())));
    dies_with_everything(owner, &[&mark]).await;
}

#[tokio::test]
async fn v07_the_guard_does_not_hear_what_the_owners_terminal_sends() {
    let mark = mark();
    // A group of its own, as a shell gives to every job.
    let mut owner = Owner::start_with(|command| {
        command.process_group(0);
    });
    owner.run(&mark, STUBBORN);
    run_at_least(&mark, 3).await;
    let guard = owner.guarded().await;
    let group = i32::try_from(owner.pid()).ok();
    let group = group.and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process_group(group.expect("a number"), Signal::KILL).expect("sent");
    none_is_left(&mark).await;
    until("the guard is gone", || !is_there(guard)).await;
}

#[tokio::test]
async fn v07_an_owner_that_ends_leaves_neither_programs_nor_its_guard() {
    let (mut owner, mark) = (Owner::start(), mark());
    owner.run(&mark, STUBBORN);
    run_at_least(&mark, 3).await;
    let guard = owner.guarded().await;
    owner.end("end");
    none_is_left(&mark).await;
    until("the guard is gone", || !is_there(guard)).await;
}

#[tokio::test]
async fn v07_an_owner_that_exits_in_the_middle_leaves_nothing() {
    let (mut owner, mark) = (Owner::start(), mark());
    owner.run(&mark, DAEMON);
    run_at_least(&mark, 4).await;
    let guard = owner.guarded().await;
    owner.end("vanish");
    none_is_left(&mark).await;
    until("the guard is gone", || !is_there(guard)).await;
}

#[tokio::test]
async fn what_was_left_to_go_on_outlives_a_killed_owner() {
    let (mut owner, kept, mark) = (Owner::start(), mark(), mark());
    let keeper = owner.run(&kept, "sleep 600 & :");
    owner.order(&format!("leave {keeper}"));
    owner.run(&mark, STUBBORN);
    run_at_least(&mark, 3).await;
    dies_with_everything(owner, &[&mark]).await;
    let left = processes(&kept);
    assert_eq!(left.len(), 1, "it was to go on");
    signal(left[0], Signal::KILL);
    none_is_left(&kept).await;
}

#[tokio::test]
async fn v07_an_owner_within_a_run_and_its_programs_die_with_the_outer_owner() {
    let (mut outer, mark, inner_mark) = (Owner::start(), mark(), mark());
    let inner = env!("CARGO_BIN_EXE_steadyhand-process-owner");
    // The inner owner's input stays open as long as the pipe's writer sleeps.
    let orders = format!(
        "echo 'start {inner_mark} {}'; sleep 600",
        DAEMON.replace('\'', "'\\''")
    );
    outer.run(&mark, &format!("({orders}) | {inner}"));
    run_at_least(&inner_mark, 4).await;
    dies_with_everything(outer, &[&mark, &inner_mark]).await;
}

#[tokio::test]
#[allow(clippy::print_stdout, reason = "what was measured")]
async fn idle_programs_cost_nothing() {
    const PROGRAMS: usize = 50;
    const IDLE_MS: u32 = 3000;
    let (mut owner, mark) = (Owner::start(), mark());
    for _ in 0..PROGRAMS {
        owner.run(&mark, "exec sleep 600");
    }
    run_at_least(&mark, PROGRAMS).await;
    let guard = owner.guarded().await;
    owner.order("idle 1");
    let used = |pid: u32| (wakes(pid), ticks(pid));
    let (owner_before, guard_before) = (used(owner.pid()), used(guard));
    owner.order(&format!("idle {IDLE_MS}"));
    let (owner_after, guard_after) = (used(owner.pid()), used(guard));
    let woken = owner_after.0 - owner_before.0;
    println!(
        "{PROGRAMS} idle programs, {IDLE_MS} ms: the owner woke {woken} times and used {} ticks, its guard {} times and {} ticks",
        owner_after.1 - owner_before.1,
        guard_after.0 - guard_before.0,
        guard_after.1 - guard_before.1,
    );
    // To look at them all every 250 ms would be more.
    assert!(woken < 8, "woke {woken} times");
}

/// How often the threads of a process went to sleep.
fn wakes(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
    let of = |thread: fs::DirEntry| -> Option<u64> {
        let status = fs::read_to_string(thread.path().join("status")).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse().ok()
    };
    threads.flatten().filter_map(of).sum()
}

/// The CPU time of a process so far, in hundredths of a second.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let rest = stat.rsplit_once(") ").expect("a name").1;
    let used = rest.split(' ').skip(11).take(2);
    used.filter_map(|field| field.parse::<u64>().ok()).sum()
}
