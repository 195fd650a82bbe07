//! How a server ends: nothing new is begun, what runs is waited for, and every call is answered.

use rustix::process::Signal;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{Served, program, reply, request, runs, until};
use crate::faults::Fault;
use crate::support::Workplace;

async fn begin(served: &Served, tool: &str) -> TcpStream {
    let mut stream = served.connect().await;
    let call = json!({"name": tool, "id": tool}).to_string();
    let call = request(served.address, "POST", "/v1/calls", &[], &call);
    stream.write_all(call.as_bytes()).await.expect("sent");
    runs(served, tool).await;
    stream
}

#[tokio::test]
async fn a_signal_ends_an_idle_server_at_once_and_takes_its_address_file_away() {
    for (signal, _) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let served = Served::start().await;
        let servers = served.workplace.file(".local/state/steadyhand/servers");
        let files = || std::fs::read_dir(&servers).expect("a folder").count();
        assert_eq!(files(), 1);
        served.signal(signal);
        let workplace_kept = servers.clone();
        let (code, stderr) = served.ended().await;
        assert_eq!(code, Some(0), "{stderr}");
        assert!(
            !workplace_kept.exists()
                || std::fs::read_dir(&workplace_kept)
                    .expect("a folder")
                    .count()
                    == 0
        );
    }
}

#[tokio::test]
async fn calls_that_run_are_waited_for_and_answered_while_new_ones_are_refused() {
    let served = Served::start().await;
    let mut caller = begin(&served, "brief").await;
    let mut other = served.connect().await;
    other
        .write_all(b"GET /health/ready HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .expect("sent");
    assert_eq!(reply(&mut other).await.status, 200);
    served.signal(Signal::INT);
    until("it does not listen any more", async || {
        TcpStream::connect(served.address)
            .await
            .is_err()
            .then_some(())
    })
    .await;
    // The connection from before is still heard, if the server still waits for the call.
    let call = request(
        served.address,
        "POST",
        "/v1/calls",
        &[],
        r#"{"name": "echo"}"#,
    );
    if other.write_all(call.as_bytes()).await.is_ok()
        && let Some(late) = super::whole_reply(&mut other).await
    {
        let (status, code, _) = late.refusal();
        assert_eq!((status, code.as_str()), (503, "shutting_down"));
        assert_eq!(late.header("connection"), Some("close"));
    }
    let outcome = reply(&mut caller).await;
    assert_eq!(outcome.json()["output"], "done");
    let (code, stderr) = served.ended().await;
    assert_eq!(code, Some(0), "{stderr}");
}

#[tokio::test]
async fn a_new_call_on_an_open_connection_is_refused_while_the_server_waits() {
    let fault = Fault::begin(
        "SIGTERM, and a call that does not end",
        "new calls 503; after ten seconds it is cancelled and its caller told; exit code 143",
    );
    let served = Served::start().await;
    let mut caller = begin(&served, "slow").await;
    let mut other = served.connect().await;
    let ready = request(served.address, "GET", "/health/ready", &[], "");
    other.write_all(ready.as_bytes()).await.expect("sent");
    assert_eq!(reply(&mut other).await.status, 200);
    served.signal(Signal::TERM);
    until("it does not listen any more", async || {
        TcpStream::connect(served.address)
            .await
            .is_err()
            .then_some(())
    })
    .await;
    let call = request(
        served.address,
        "POST",
        "/v1/calls",
        &[],
        r#"{"name": "echo"}"#,
    );
    other.write_all(call.as_bytes()).await.expect("sent");
    let refused = reply(&mut other).await;
    assert_eq!(refused.header("connection"), Some("close"));
    let (status, code, _) = refused.refusal();
    assert_eq!((status, code.as_str()), (503, "shutting_down"));
    // After ten seconds the call is ended, and its caller is told.
    let outcome = reply(&mut caller).await;
    assert_eq!(outcome.status, 200);
    assert_eq!(outcome.json()["error"]["code"], "CANCELLED");
    let (code, stderr) = served.ended().await;
    assert_eq!(code, Some(143), "{stderr}");
    fault.got("503 for the new one; CANCELLED for the old one; exit code 143");
}

#[tokio::test]
async fn people_are_told_what_is_waited_for_and_a_second_interrupt_ends_it_at_once() {
    let workplace = Workplace::with_config(super::TOOLS);
    let mut process = program(&workplace, &["serve", "--listen", "127.0.0.1:0"]);
    let mut process = process.spawn().expect("it starts");
    let mut stdout = process.stdout.take().expect("a pipe");
    let mut shown = Vec::new();
    until("it is ready", async || {
        let mut piece = [0; 1024];
        let read = tokio::io::AsyncReadExt::read(&mut stdout, &mut piece)
            .await
            .ok()?;
        shown.extend_from_slice(&piece[..read]);
        String::from_utf8_lossy(&shown)
            .contains("Ctrl-C stops.")
            .then_some(())
    })
    .await;
    let shown = String::from_utf8_lossy(&shown).into_owned();
    assert!(shown.starts_with("steadyhand.toml: 6 tools.\n"), "{shown}");
    let address = shown
        .split("REST       http://")
        .nth(1)
        .and_then(|rest| rest.split('/').next());
    let address = address
        .expect("an address")
        .parse()
        .expect("an address and a port");
    assert!(shown.contains("Ready in "), "{shown}");

    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let call = request(address, "POST", "/v1/calls", &[], r#"{"name": "slow"}"#);
    stream.write_all(call.as_bytes()).await.expect("sent");
    until("the call runs", async || {
        let mut asking = TcpStream::connect(address).await.ok()?;
        let ready = request(address, "GET", "/health/ready", &[], "");
        asking.write_all(ready.as_bytes()).await.ok()?;
        (reply(&mut asking).await.json()["running"] == 1).then_some(())
    })
    .await;
    let pid =
        rustix::process::Pid::from_raw(process.id().expect("it runs") as i32).expect("a process");
    rustix::process::kill_process(pid, Signal::INT).expect("it runs");
    let mut stderr = tokio::io::BufReader::new(process.stderr.take().expect("a pipe"));
    let mut line = String::new();
    tokio::time::timeout(
        crate::support::PATIENCE,
        tokio::io::AsyncBufReadExt::read_line(&mut stderr, &mut line),
    )
    .await
    .expect("it says something")
    .expect("a line");
    assert!(
        line.starts_with("Stopping: waiting for 1 call, up to 10s: slow "),
        "{line}"
    );
    assert!(line.contains("Ctrl-C again ends at once"), "{line}");
    rustix::process::kill_process(pid, Signal::INT).expect("it runs");
    let ended = tokio::time::timeout(crate::support::PATIENCE, process.wait()).await;
    assert_eq!(ended.expect("it ends").expect("a status").code(), Some(130));
}
