//! `steadyhand calls tail`: calls as they end, with and without a server.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};
use tokio::time::timeout;

use super::{Served, wrapped_program};
use crate::support::{PATIENCE, Workplace};

/// A tail that runs until this goes.
struct Tail {
    _process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Tail {
    fn start(workplace: &Workplace, arguments: &[&str]) -> Tail {
        let arguments = [&["calls", "tail"], arguments].concat();
        let mut process = wrapped_program(workplace, &[], &arguments)
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let stdout = process.stdout.take().expect("a pipe");
        Tail {
            _process: process,
            lines: BufReader::new(stdout).lines(),
        }
    }

    async fn line(&mut self) -> String {
        let line = timeout(PATIENCE, self.lines.next_line()).await;
        let line = line.expect("a line in time").expect("its words");
        line.expect("it goes on")
    }

    async fn json(&mut self) -> Value {
        serde_json::from_str(&self.line().await).expect("one line of JSON")
    }
}

#[tokio::test]
async fn a_tail_tells_calls_of_a_server_as_they_end_by_the_filter() {
    let served = Served::start().await;
    served
        .post(
            "/v1/calls",
            json!({"name": "weather", "id": "w0", "args": {"city": "Oslo"}}),
        )
        .await;
    let mut all = Tail::start(&served.workplace, &["--json"]);
    assert_eq!(all.json().await["id"], "w0", "what has ended comes first");
    let mut failed = Tail::start(&served.workplace, &["--json", "-n", "0", "state:failed"]);
    let mut text = Tail::start(&served.workplace, &["-n", "1", "Bergen"]);
    // A filter that finds one from before says that the others listen, too.
    served
        .post(
            "/v1/calls",
            json!({"name": "weather", "id": "w1", "args": {"city": "Bergen"}}),
        )
        .await;
    assert!(text.line().await.contains("w1"));
    let caller = [("steadyhand-caller", "voice")];
    let mut heard = Value::Null;
    for number in 0..50 {
        let ill = json!({"name": "echo", "id": format!("i{number}"), "args": 7}).to_string();
        served.send("POST", "/v1/calls", &caller, &ill).await;
        if let Ok(line) = timeout(
            std::time::Duration::from_millis(500),
            failed.lines.next_line(),
        )
        .await
        {
            heard = serde_json::from_str(&line.expect("words").expect("a line")).expect("JSON");
            break;
        }
    }
    assert_eq!(heard["tool"], "echo", "{heard}");
    assert_eq!(heard["state"], "rejected", "{heard}");
    assert!(
        heard["caller"]
            .as_str()
            .is_some_and(|caller| caller.contains("voice")),
        "{heard}"
    );
    assert!(
        heard["message"]
            .as_str()
            .is_some_and(|message| !message.is_empty()),
        "{heard}"
    );
    assert_eq!(all.json().await["id"], "w1");
    // Its end is the server's.
    served.signal(rustix::process::Signal::TERM);
    let _ = served.stopped().await;
    while let Ok(Ok(Some(_))) = timeout(PATIENCE, all.lines.next_line()).await {}
}

#[tokio::test]
async fn without_a_server_a_tail_reads_the_history_of_other_commands() {
    let place = Workplace::with_config(super::TOOLS);
    let workplace = place.shared();
    let call = move |city: &'static str| {
        let workplace = workplace.shared();
        tokio::task::spawn_blocking(move || workplace.run(&format!("call weather city={city}")))
    };
    call("Oslo").await.expect("it ran");
    let mut tail = Tail::start(&place, &["--json"]);
    assert_eq!(tail.json().await["tool"], "weather");
    call("Rome").await.expect("it ran");
    assert_eq!(tail.json().await["state"], "ok");
}
