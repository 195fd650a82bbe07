//! Clients whose machine is gone without a word: no end, no reset, nothing. In a network of the test's own, which is
//! switched off while they are connected.

use std::process::Stdio;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

use super::{Fault, TOOLS, readers};
use crate::serve::{Served, request, runs, until};
use crate::support::PATIENCE;

const ROLE: &str = "STEADYHAND_TEST_INSIDE";

#[cfg(target_os = "linux")]
#[tokio::test]
async fn clients_that_vanish_without_a_word_are_found_out_and_their_calls_ended() {
    const NAME: &str =
        "faults::vanished::clients_that_vanish_without_a_word_are_found_out_and_their_calls_ended";
    if std::env::var_os(ROLE).is_some() {
        return inside().await;
    }
    let fault = Fault::begin(
        "half-open connections",
        "a client that is gone without a word is asked for, at a pace set by patience, and given up; its call is ended",
    );
    for user in [&["-n"][..], &["-r", "-n"]] {
        let this = std::env::current_exe().expect("a test has a program");
        let mut command = Command::new("unshare");
        command
            .args(user)
            .arg(this)
            .args(["--exact", NAME, "--nocapture", "--test-threads=1"])
            .env(ROLE, "1")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let Ok(Ok(ran)) = timeout(PATIENCE * 2, command.output()).await else {
            continue;
        };
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        let errors = String::from_utf8_lossy(&ran.stderr).into_owned();
        if !said.contains("inside: ") {
            continue;
        }
        assert!(ran.status.success(), "{said}\n{errors}");
        return fault.got("its call CANCELLED, its stream of events and its connection closed");
    }
    fault.got("not tried: no network of one's own can be made here");
}

/// Switches the network on or off; whether that worked.
async fn switch(word: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(["link", "set", "lo", word]).kill_on_drop(true);
    command.status().await.is_ok_and(|status| status.success())
}

/// Connections of the server that it takes for alive.
fn established(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/self/net/tcp").expect("a table");
    let is_meant = |line: &&str| {
        let mut words = line.split_whitespace().skip(1);
        let local = words.next().unwrap_or_default();
        local.ends_with(&format!(":{port:04X}")) && words.nth(1) == Some("01")
    };
    table.lines().filter(is_meant).count()
}

async fn inside() {
    if !switch("up").await {
        return;
    }
    println!("inside: there is a network");
    let limits = "[server]\nlimits = { patience = \"1s\" }";
    let soon = "[tools.soon]\nkind = \"mock\"\ndescription = \"Ends soon\"\ninput = { type = \"object\" }\nanswers = [{ result = 1, delay = \"700ms\" }]\n";
    let config = TOOLS.replace("[server]", limits) + soon;
    let served = Served::with_config(&config).await;
    let address = served.address;
    let mut calling = served.connect().await;
    let call = json!({"name": "slow", "id": "s1"}).to_string();
    let call = request(address, "POST", "/v1/calls", &[], &call);
    calling.write_all(call.as_bytes()).await.expect("sent");
    runs(&served, "slow").await;
    let mut watching = served.connect().await;
    let watch = request(address, "GET", "/v1/events", &[], "");
    watching.write_all(watch.as_bytes()).await.expect("sent");
    let mut sending = served.connect().await;
    let head =
        format!("POST /v1/calls HTTP/1.1\r\nhost: {address}\r\ncontent-length: 99\r\n\r\n{{");
    sending.write_all(head.as_bytes()).await.expect("sent");
    // Ends while nobody is there: what is told of it is on its way for ever, and keepalive asks nobody meanwhile.
    let mut soon = served.connect().await;
    let call = request(address, "POST", "/v1/calls", &[], r#"{"name": "soon"}"#);
    soon.write_all(call.as_bytes()).await.expect("sent");
    runs(&served, "soon").await;

    assert!(switch("down").await, "the network is switched off");
    until("the server has given them up", async || {
        (established(address.port()) == 0).then_some(())
    })
    .await;
    assert!(switch("up").await, "the network is switched on");
    until("the call is ended", async || {
        let metrics = served.get("/v1/metrics/slow").await.json();
        (metrics["cancelled"] == 1 && metrics["inFlight"] == 0).then_some(())
    })
    .await;
    assert_eq!(readers(&served).await, Some(0.0));
    drop((calling, watching, sending, soon));
}
