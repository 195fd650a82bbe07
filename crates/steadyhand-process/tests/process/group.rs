//! A group is one program and all it starts, until nothing is left of it.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use steadyhand_process::{Exit, Group, Pipes, settle, start};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::time::timeout;

use crate::support::{LONG, is_there, mark, none_is_left, processes, run_at_least, until};

const SHORT: Duration = Duration::from_millis(100);

fn shell(mark: &str, script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script, mark]).env("TEST_MARK", mark);
    command
}

/// Starts a script and waits until so many of its processes are there.
async fn running(script: &str, count: usize) -> (Group, String) {
    let mark = mark();
    let (group, _) = start(|| shell(&mark, script)).await.expect("a shell");
    run_at_least(&mark, count).await;
    (group, mark)
}

#[tokio::test]
async fn v07_a_grandchild_that_ignores_term_is_killed() {
    let script = "sh -c 'trap \"\" TERM; while :; do sleep 600; done' & sleep 601; :";
    let (group, mark) = running(script, 4).await;
    group.stop(SHORT).await;
    assert!(processes(&mark).is_empty());
}

#[tokio::test]
async fn v07_a_daemon_that_ignores_term_is_killed_although_its_program_has_ended() {
    let script = "(setsid sh -c 'trap \"\" TERM; sleep 600; :' &)";
    let (mut group, mark) = running(script, 2).await;
    assert_eq!(group.ended().await.expect("it ends"), Exit::Code(0));
    group.stop(SHORT).await;
    assert!(processes(&mark).is_empty());
}

#[tokio::test]
async fn v07_python_and_the_pool_it_forked_end_together() {
    let mark = mark();
    let script = "import multiprocessing as m, signal, time\n\
                  signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
                  [m.get_context('fork').Process(target=time.sleep, args=(600,)).start() for _ in range(3)]\n\
                  time.sleep(600)";
    let (group, _) = start(|| {
        let mut command = Command::new("python3");
        command.args(["-c", script]).env("TEST_MARK", &mark);
        command
    })
    .await
    .expect("python3");
    run_at_least(&mark, 4).await;
    group.stop(SHORT).await;
    none_is_left(&mark).await;
}

#[tokio::test]
async fn v07_a_program_may_tidy_up_as_long_as_its_grace_lasts() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tidy");
    let script = format!(
        "trap 'echo yes > {}; exit' TERM; sleep 600 & wait",
        file.display()
    );
    let (group, mark) = running(&script, 2).await;
    group.stop(LONG).await;
    assert_eq!(fs::read_to_string(&file).expect("written"), "yes\n");
    assert!(processes(&mark).is_empty());
}

#[tokio::test]
async fn v07_stopping_goes_on_when_nobody_waits_for_it() {
    let (group, mark) = running("trap '' TERM; while :; do sleep 600; done", 2).await;
    assert!(timeout(SHORT, group.stop(SHORT * 2)).await.is_err());
    settle(LONG).await;
    assert!(processes(&mark).is_empty());
}

#[tokio::test]
async fn v07_a_dropped_group_is_stopped() {
    let (group, mark) = running("sleep 600 & sleep 601; :", 3).await;
    drop(group);
    settle(LONG).await;
    assert!(processes(&mark).is_empty());
}

#[test]
fn v07_a_group_dropped_without_a_runtime_is_killed_at_once() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (group, mark) = runtime.block_on(running(
        "trap '' TERM; (setsid sleep 600 &) ; sleep 601; :",
        3,
    ));
    drop(group);
    runtime.block_on(none_is_left(&mark));
}

#[tokio::test]
async fn the_end_of_a_program_may_be_asked_for_again_and_again() {
    let (mut group, _) = running("sleep 600; :", 1).await;
    assert!(timeout(SHORT, group.ended()).await.is_err(), "it runs");
    assert!(
        timeout(SHORT, group.ended()).await.is_err(),
        "it still runs"
    );
    crate::support::signal(group.pid(), rustix::process::Signal::KILL);
    for _ in 0..3 {
        assert_eq!(group.ended().await.expect("it ends"), Exit::Signal(9));
    }
    // Its number is still its own.
    assert!(is_there(group.pid()));
    let pid = group.pid();
    group.stop(SHORT).await;
    until("it is reaped", || !is_there(pid)).await;
}

#[tokio::test]
async fn an_end_says_how_it_came() {
    for (script, text) in [
        ("exit 0", "exited with code 0"),
        ("exit 1", "exited with code 1"),
        ("kill -KILL $$", "was killed by signal 9 (SIGKILL)"),
        ("kill -SEGV $$", "was killed by signal 11 (SIGSEGV)"),
    ] {
        let (mut group, _) = start(|| shell("", script)).await.expect("a shell");
        assert_eq!(group.ended().await.expect("it ends").to_string(), text);
    }
}

#[tokio::test]
async fn a_program_talks_through_its_pipes() {
    let (mut group, pipes) = start(|| {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    })
    .await
    .expect("cat");
    let Pipes {
        stdin,
        stdout,
        stderr,
    } = pipes;
    assert!(stderr.is_none(), "nobody asked for it");
    let mut stdin = stdin.expect("its input");
    stdin.write_all(b"hello").await.expect("written");
    drop(stdin);
    let mut heard = String::new();
    let mut stdout = stdout.expect("its output");
    stdout.read_to_string(&mut heard).await.expect("read");
    assert_eq!(heard, "hello");
    assert!(group.ended().await.expect("it ends").is_success());
}

#[tokio::test]
async fn a_program_that_was_left_goes_on_and_is_reaped() {
    let (mut group, mark) = running("sleep 600 & :", 1).await;
    group.ended().await.expect("it ends");
    let pid = group.pid();
    group.leave();
    until("the leader is reaped", || !is_there(pid)).await;
    let left = processes(&mark);
    assert_eq!(left.len(), 1);
    crate::support::signal(left[0], rustix::process::Signal::KILL);
    none_is_left(&mark).await;
}

#[tokio::test]
async fn a_file_that_is_being_written_is_tried_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("program");
    fs::copy(which::which("true").expect("a usual tool"), &file).expect("a copy");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("executable");
    let writer = fs::File::options().append(true).open(&file).expect("open");
    let busy = start(|| Command::new(&file));
    let closed = async {
        tokio::time::sleep(SHORT / 2).await;
        drop(writer);
    };
    let (started, ()) = tokio::join!(busy, closed);
    let (mut group, _) = started.expect("it is free now");
    assert!(group.ended().await.expect("it ends").is_success());
}

#[tokio::test]
async fn a_program_that_is_not_there_does_not_start() {
    let error = Group::start(Command::new(Path::new("/nowhere/program"))).expect_err("not there");
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
