//! `steadyhand serve` as its clients see it: the real program on a free port.

mod access;
mod call_ids;
mod calls;
mod causes;
mod clients;
mod commands;
mod configuration;
mod conversations;
mod document;
mod ending;
mod events;
mod history;
mod limits;
mod load;
mod problem_details;
mod rest;
mod tail;
mod tools;

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::support::{PATIENCE, Workplace};

/// Tools that answer, wait and fail as told.
const TOOLS: &str = r#"
[tools.echo]
kind = "builtin"
use = "echo"

[tools.slow]
kind = "mock"
description = "Takes its time"
input = { type = "object" }
answers = [{ result = "done", delay = "40s" }]
timeout = "50s"

[tools.brief]
kind = "mock"
description = "Takes a moment"
input = { type = "object" }
answers = [{ result = "done", delay = "300ms" }]

[tools.ill]
kind = "mock"
description = "Cannot be reached"
input = { type = "object" }
answers = [{ fail = "network" }]
retry = { attempts = 1 }
breaker = { failures = 2, cooldown = "1h" }

[tools.weather]
kind = "mock"
description = "Current weather for a city"
input = { type = "object", required = ["city"], properties = { city = { type = "string" } } }
answers = [{ when = { city = "Oslo" }, result = { sky = "rain" } }, { result = { sky = "clear" } }]

[tools.once]
kind = "mock"
description = "Must not happen twice"
input = { type = "object" }
mock_response = "done"
idempotent = false
"#;

/// A server that runs until this goes.
pub(crate) struct Served {
    process: Child,
    pub(crate) address: SocketAddr,
    stderr: Arc<Mutex<String>>,
    pub(crate) workplace: Workplace,
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text)
            .unwrap_or_else(|error| panic!("no JSON ({error}): {} {}", self.status, self.text))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// The code and the message of a refusal; it must say what to do, too.
    pub(crate) fn refusal(&self) -> (u16, String, String) {
        let error = &self.json()["error"];
        let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
        assert!(!text("help").is_empty(), "no help in {}", self.text);
        (self.status, text("code"), text("message"))
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

impl Served {
    /// A server with the tools above.
    pub(crate) async fn start() -> Served {
        Served::with_config(TOOLS).await
    }

    /// A server with this configuration.
    pub(crate) async fn with_config(config: &str) -> Served {
        Served::in_place(Workplace::with_config(config)).await
    }

    pub(crate) async fn in_place(workplace: Workplace) -> Served {
        Served::listening(workplace, "127.0.0.1:0").await
    }

    pub(crate) async fn listening(workplace: Workplace, address: &str) -> Served {
        Served::told(workplace, address, &[]).await
    }

    /// A server with more arguments.
    pub(crate) async fn told(workplace: Workplace, address: &str, arguments: &[&str]) -> Served {
        let arguments = [&["--listen", address], arguments].concat();
        let begun = Served::begin(workplace, &[], &arguments).await;
        begun.unwrap_or_else(|words| panic!("no server: {words}"))
    }

    /// A server that another program starts; none if that program does not.
    pub(crate) async fn wrapped(workplace: Workplace, wrapper: &[&str]) -> Option<Served> {
        let begun = Served::begin(workplace, wrapper, &["--listen", "127.0.0.1:0"]).await;
        begun.ok()
    }

    /// The error is what it said instead of serving.
    async fn begin(
        workplace: Workplace,
        wrapper: &[&str],
        arguments: &[&str],
    ) -> Result<Served, String> {
        let arguments = [&["serve", "--json"], arguments].concat();
        let mut process = wrapped_program(&workplace, wrapper, &arguments);
        let mut process = process.spawn().expect("the program starts");
        let stderr = Arc::new(Mutex::new(String::new()));
        let mut errors = BufReader::new(process.stderr.take().expect("a pipe")).lines();
        let heard = Arc::clone(&stderr);
        let hearing = tokio::spawn(async move {
            while let Ok(Some(line)) = errors.next_line().await {
                let mut heard = heard.lock().expect("no test panics here");
                heard.push_str(&line);
                heard.push('\n');
            }
        });
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let first = timeout(PATIENCE, lines.next_line()).await;
        let said = first.expect("the server is up in time").expect("its words");
        let Some(said) = said else {
            let _ = timeout(PATIENCE, hearing).await;
            return Err(stderr.lock().expect("whole").clone());
        };
        let said: Value = serde_json::from_str(&said).expect("one line of JSON");
        let address = said["address"].as_str().expect("an address");
        Ok(Served {
            address: address.parse().expect("an address and a port"),
            process,
            stderr,
            workplace,
        })
    }

    pub(crate) fn stderr(&self) -> String {
        self.stderr.lock().expect("no test panics here").clone()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id().expect("it runs")
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.pid()).ok();
        let pid = pid.and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(pid.expect("a process"), signal).expect("it runs");
    }

    /// Waits for the end that something else brings about.
    pub(crate) async fn ended(mut self) -> (Option<i32>, String) {
        let ended = timeout(PATIENCE, self.process.wait()).await;
        let status = ended.expect("it ends in time").expect("a status");
        (status.code(), self.stderr())
    }

    /// The folder again, once the server is gone.
    pub(crate) async fn killed(mut self) -> Workplace {
        self.process.kill().await.expect("it ran");
        self.workplace
    }

    /// The folder again, once the server has ended by itself.
    pub(crate) async fn stopped(self) -> Workplace {
        self.left().await.2
    }

    /// How it ended by itself, what it had said, and the folder again.
    pub(crate) async fn left(mut self) -> (Option<i32>, String, Workplace) {
        let ended = timeout(PATIENCE, self.process.wait()).await;
        let status = ended.expect("it ends in time").expect("a status");
        (status.code(), self.stderr(), self.workplace)
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.send("POST", path, &[], &body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.send("DELETE", path, &[], "").await
    }

    /// What commands on this machine show: the server has written it into its private file.
    pub(crate) fn local_token(&self) -> String {
        let folder = std::fs::read_dir(self.workplace.file(".local/state/steadyhand/servers"));
        let folder = folder.expect("a folder");
        let said = folder.filter_map(|entry| {
            let text = std::fs::read_to_string(entry.ok()?.path()).ok()?;
            let said: Value = serde_json::from_str(&text).ok()?;
            let is_it = said["address"] == self.address.to_string();
            is_it.then(|| said["token"].as_str().map(str::to_owned))?
        });
        said.last().expect("the file of this server")
    }

    /// A request of somebody who may decide.
    pub(crate) async fn decide(&self, path: &str, body: Value) -> Reply {
        let shown = format!("Bearer {}", self.local_token());
        let headers = [("authorization", shown.as_str())];
        self.send("POST", path, &headers, &body.to_string()).await
    }

    /// The path of a link that logs a browser in once.
    pub(crate) fn login_path(&self) -> String {
        let (_, _, stderr) = crate::support::parts(&self.workplace.run("approvals"));
        let (_, link) = stderr.split_once("/login?").expect("a link");
        let query = link.split_whitespace().next().expect("a code");
        format!("/login?{query}")
    }

    /// The structured view of a call of a tool.
    pub(crate) async fn call(&self, tool: &str, args: Value) -> Value {
        let reply = self
            .post("/v1/calls", json!({"name": tool, "args": args}))
            .await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        reply.json()
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let request = request(self.address, method, path, headers, body);
        let mut stream = self.connect().await;
        stream.write_all(request.as_bytes()).await.expect("sent");
        reply(&mut stream).await
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("it listens")
    }
}

/// The program as a user would start it.
pub(crate) fn program(workplace: &Workplace, arguments: &[&str]) -> Command {
    wrapped_program(workplace, &[], arguments)
}

fn wrapped_program(workplace: &Workplace, wrapper: &[&str], arguments: &[&str]) -> Command {
    let words = [wrapper, &[env!("CARGO_BIN_EXE_steadyhand")], arguments].concat();
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .current_dir(workplace.path())
        .env_clear()
        .envs(crate::support::measured())
        .env("PATH", std::env::var("PATH").unwrap_or_default())
        .env("HOME", workplace.path())
        .env("LANG", "C.UTF-8")
        .envs(workplace.variables().iter().cloned())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

pub(crate) fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    if !headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"))
    {
        text.push_str(&format!("host: {address}\r\n"));
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    text
}

/// Reads one answer; the connection may stay open.
pub(crate) async fn reply(stream: &mut TcpStream) -> Reply {
    timeout(PATIENCE, whole_reply(stream))
        .await
        .expect("an answer in time")
        .expect("a whole answer")
}

/// None if the connection ends before the answer does.
pub(crate) async fn whole_reply(stream: &mut TcpStream) -> Option<Reply> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let mut body = bytes.split_off(head_end);
    match header(&head, "content-length").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => {
            while body.len() < length {
                if stream.read_buf(&mut body).await.ok()? == 0 {
                    return None;
                }
            }
        }
        None => {
            while !body.ends_with(b"0\r\n\r\n") && stream.read_buf(&mut body).await.ok()? > 0 {}
        }
    }
    Some(Reply {
        status: status.expect("a status line"),
        head,
        text: String::from_utf8_lossy(&body).into_owned(),
    })
}

/// Looks until it is so, and gives back what was seen then.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let patience = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(
            tokio::time::Instant::now() < patience,
            "never came true: {what}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until a call of this tool runs in the server; gives back its id.
pub(crate) async fn runs(served: &Served, tool: &str) -> String {
    until(&format!("{tool} runs"), async || {
        let listed = served
            .get(&format!("/v1/calls?state=running&tool={tool}"))
            .await
            .json();
        let running = listed["calls"].as_array().expect("a list").first().cloned();
        Some(running?["id"].as_str()?.to_owned())
    })
    .await
}
