//! Orphans that become our children end with the run that started them, and with no other.

use rustix::process::Signal;

use crate::support::{Owner, is_there, mark, none_is_left, processes, run_at_least, signal, until};

/// A leader with a child.
const PLAIN: &str = "sleep 600 & sleep 601; :";

/// Starts a daemon that has no environment, a session of its own and no parent: nothing tells whose it is.
fn hides(hidden: &str, then: &str) -> String {
    format!(
        "(env -i PATH=\"$PATH\" setsid sh -c 'trap \"\" TERM; sleep 602; :' {hidden} &) ; {then}"
    )
}

/// Waits until the hidden one has left the session of its run, and the shell that started it has left it to the owner.
async fn is_hidden(hidden: &str, owner: &Owner, leader: u32) {
    let is_away = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u32>().ok();
        let (parent, session) = (number(1), number(3));
        parent == Some(owner.pid()) && session == Some(pid)
    };
    until("it is in a session of its own", || {
        // The leader has the mark too, in its script.
        let mut others = processes(hidden).into_iter().filter(|pid| *pid != leader);
        others.any(is_away)
    })
    .await;
}

#[tokio::test]
async fn v07_a_hidden_orphan_ends_with_the_only_run() {
    let (mut owner, run, hidden) = (Owner::start(), mark(), mark());
    owner.order("adopt");
    let leader = owner.run(&run, &hides(&hidden, "sleep 600; :"));
    run_at_least(&hidden, 1).await;
    let orphans = processes(&hidden);
    owner.order(&format!("stop {leader}"));
    assert!(processes(&run).is_empty());
    // Not even as zombies: they have become the owner's children.
    assert!(!orphans.into_iter().any(is_there));
}

#[tokio::test]
async fn v07_stopping_one_run_touches_no_other_and_not_the_guard() {
    let (mut owner, first, second) = (Owner::start(), mark(), mark());
    owner.order("adopt");
    let leader = owner.run(&first, PLAIN);
    // Its daemon is an orphan and thus a child of the owner, as the leaders are.
    owner.run(&second, "(setsid sh -c 'sleep 603; :' &) ; sleep 600; :");
    run_at_least(&first, 3).await;
    run_at_least(&second, 4).await;
    let (others, guard) = (processes(&second), owner.guarded().await);
    owner.order(&format!("stop {leader}"));
    assert!(processes(&first).is_empty());
    assert_eq!(processes(&second), others);
    assert_eq!(owner.guard(), Some(guard));
    owner.order("stop-all");
    assert!(processes(&second).is_empty());
}

#[tokio::test]
async fn v07_an_orphan_that_may_be_of_two_runs_ends_with_the_last() {
    let (mut owner, first, second, hidden) = (Owner::start(), mark(), mark(), mark());
    owner.order("adopt");
    let server = owner.run(&first, PLAIN);
    let tool = owner.run(&second, &hides(&hidden, ":"));
    run_at_least(&first, 3).await;
    is_hidden(&hidden, &owner, tool).await;
    owner.order(&format!("stop {tool}"));
    assert_eq!(processes(&first).len(), 3, "the other run goes on");
    assert!(!processes(&hidden).is_empty(), "nobody knows whose it is");
    owner.order(&format!("stop {server}"));
    assert!(processes(&first).is_empty());
    assert!(processes(&hidden).is_empty());
}

#[tokio::test]
async fn v07_runs_that_are_stopped_at_once_leave_no_orphan() {
    let (mut owner, first, second) = (Owner::start(), mark(), mark());
    let hidden = mark();
    owner.order("adopt");
    owner.run(&first, &hides(&hidden, "sleep 600; :"));
    owner.run(&second, &hides(&hidden, "sleep 600; :"));
    run_at_least(&hidden, 4).await;
    owner.order("stop-all");
    for mark in [first, second, hidden] {
        assert!(processes(&mark).is_empty());
    }
}

#[tokio::test]
async fn what_was_left_to_go_on_is_not_taken_by_another_run() {
    let (mut owner, server, kept) = (Owner::start(), mark(), mark());
    owner.order("adopt");
    let leader = owner.run(&server, PLAIN);
    // Without a mark, but in the session of its own run.
    let script = format!("env -i PATH=\"$PATH\" sh -c 'sleep 604; :' {kept} & :");
    let keeper = owner.run("keeper", &script);
    run_at_least(&server, 3).await;
    run_at_least(&kept, 1).await;
    owner.order(&format!("leave {keeper}"));
    owner.order(&format!("stop {leader}"));
    assert!(processes(&server).is_empty());
    let left = processes(&kept);
    assert!(!left.is_empty(), "it was to go on");
    // Its child has no mark at all: find it by its session.
    let session = rustix::process::Pid::from_raw(i32::try_from(keeper).expect("a number"));
    let _ = rustix::process::kill_process_group(session.expect("a number"), Signal::KILL);
    for pid in processes(&kept) {
        signal(pid, Signal::KILL);
    }
    none_is_left(&kept).await;
}

/// A container's first process may be in a session that began outside: its number is 0 in there.
#[test]
fn v07_a_hidden_orphan_ends_in_a_container_whose_session_is_outside() {
    let contained = |program: &str, arguments: &[&str]| {
        let mut unshare = std::process::Command::new("unshare");
        unshare.args(["--pid", "--fork", "--mount-proc", "--", program]);
        unshare.args(arguments).output()
    };
    if !contained("true", &[]).is_ok_and(|output| output.status.success()) {
        use std::io::Write as _;
        // Past the capture of the tests, which shows nothing of one that passes.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: this machine lets us make no process namespace"
        );
        return;
    }
    let tests = std::env::current_exe().expect("the path of these tests");
    let test = "adoption::v07_a_hidden_orphan_ends_with_the_only_run";
    let output = contained(&tests.to_string_lossy(), &["--exact", test]).expect("it starts");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && told.contains("1 passed"),
        "{told}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
