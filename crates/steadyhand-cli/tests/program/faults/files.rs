//! The program has no file left to open: what is open goes on, what needs a new one is told or waits.

use rustix::process::Resource;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{Fault, TOOLS, limit};
use crate::serve::{Served, reply, request};

const PROGRAM: &str = "[tools.program]\nkind = \"command\"\ncommand = [\"true\"]\n";
const WAITING: usize = 30;

async fn ask(served: &Served, stream: &mut TcpStream, tool: &str) {
    let call = json!({"name": tool}).to_string();
    let call = request(served.address, "POST", "/v1/calls", &[], &call);
    stream.write_all(call.as_bytes()).await.expect("sent");
}

async fn call(served: &Served, stream: &mut TcpStream, tool: &str) -> Value {
    ask(served, stream, tool).await;
    let reply = reply(stream).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()
}

#[tokio::test]
async fn without_files_to_open_what_is_open_goes_on_and_the_rest_is_told_or_waits() {
    let fault = Fault::begin(
        "no more files",
        "open connections are answered; a program that cannot be started is one failure, effect none; who comes waits, and is served when there are some again",
    );
    let served = Served::with_config(&format!("{TOOLS}\n{PROGRAM}")).await;
    let mut open = served.connect().await;
    assert_eq!(
        call(&served, &mut open, "program").await["status"],
        "success"
    );
    // Those it has it keeps; no other gets a number.
    limit(&served, Resource::Nofile, Some(1));
    for _ in 0..20 {
        assert_eq!(call(&served, &mut open, "echo").await["status"], "success");
    }
    let failed = call(&served, &mut open, "program").await;
    let words = failed["error"]["message"].as_str().unwrap_or_default();
    assert_eq!(failed["error"]["effect"], "none", "{failed}");
    assert!(words.contains("open files"), "{failed}");
    let mut late = Vec::new();
    for _ in 0..WAITING {
        let mut stream = served.connect().await;
        ask(&served, &mut stream, "echo").await;
        late.push(stream);
    }
    assert_eq!(call(&served, &mut open, "echo").await["status"], "success");
    limit(&served, Resource::Nofile, None);
    for stream in &mut late {
        let reply = reply(stream).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
    }
    assert_eq!(
        call(&served, &mut open, "program").await["status"],
        "success"
    );
    fault.got(format!(
        "22 of 22 calls answered; \"{words}\", effect none; {WAITING} who waited were served"
    ));
}
