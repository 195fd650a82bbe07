//! The dashboard as people see it: real pages of the real program in a real Chromium.

mod access;
mod actions;
mod changed;
mod decide;
mod hostile;
mod keeps;
mod live;
mod pages;
mod phone;
mod proxied;
mod questions;
mod reading;
mod talks;

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::serve::Served;
use crate::support::{PATIENCE, Workplace};

/// Browsers are heavy: one at a time.
static BROWSERS: Semaphore = Semaphore::const_new(1);

/// Tools of every fate, a server that runs and one that cannot.
pub(crate) const SET: &str = r#"
[tools.weather]
kind = "mock"
description = "Current weather for a city"
input = { type = "object", required = ["city"], properties = { city = { type = "string", description = "Where", examples = ["Oslo"] } } }
answers = [{ when = { city = "Oslo" }, result = { temp_c = 4, sky = "rain" } }, { result = { temp_c = 18, sky = "clear" } }]
idempotent = true

[tools.home_lights]
kind = "mock"
description = "Turn the lights of a room on or off"
answers = [{ fail = "network", message = "connect to 10.0.0.7: no route to host" }]
timeout = "1s"
retry = { attempts = 2, backoff = "20ms" }
breaker = { failures = 3, cooldown = "1h" }
idempotent = true
[tools.home_lights.input]
type = "object"
required = ["area", "state"]
[tools.home_lights.input.properties]
area = { type = "string", examples = ["kitchen"] }
state = { type = "string", enum = ["on", "off"] }
brightness = { type = "integer", minimum = 1, maximum = 100 }
transition = { type = "object", properties = { seconds = { type = "number" }, curve = { type = "string" } } }

[tools.home_scene]
kind = "mock"
description = "Applies a scene"
input = { type = "object" }
answers = [{ fail = "hang" }]
retry = { attempts = 3, backoff = "50ms" }
timeout = "300ms"
fallback = { tool = "weather", args = { city = "Oslo" } }
idempotent = true

[tools.slow_report]
kind = "mock"
description = "Takes its time"
input = { type = "object" }
answers = [{ result = "done", delay = "50s" }]
timeout = "55s"
deadline = "58s"
idempotent = true

[tools.once]
kind = "mock"
description = "Must not happen twice"
input = { type = "object" }
mock_response = "done"
idempotent = false

[tools.math]
kind = "builtin"
use = "math_eval"

[mcp.calendar]
command = "sh"
args = ["-c", "echo starting calendar >&2; echo \"ModuleNotFoundError: No module named 'mcp'\" >&2; exit 1"]
start = { timeout = "5s", restarts = 1 }
"#;

/// A tool that somebody must say yes to.
pub(crate) const UNLOCK: &str = r#"
[tools.home_unlock]
kind = "mock"
description = "Unlocks a door"
input = { type = "object", required = ["door"], properties = { door = { type = "string" }, password = { type = "string" } } }
answers = [{ result = "unlocked" }]
approval = "always"
"#;

/// A server and a browser that looks at it.
pub(crate) struct Browser {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    _turn: SemaphorePermit<'static>,
}

impl Browser {
    pub(crate) async fn start(served: &Served) -> Browser {
        Browser::at(&format!("http://{}", served.address)).await
    }

    pub(crate) async fn at(url: &str) -> Browser {
        let turn = BROWSERS.acquire().await.expect("never closed");
        let peers = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers/browser");
        assert!(
            std::path::Path::new(peers)
                .join("node_modules/playwright-core")
                .exists(),
            "playwright-core is missing: ./test installs it (or: . scripts/peers.sh; install_peers target/peers)"
        );
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/browser.mjs");
        let mut process = Command::new("node")
            .args([script, peers, url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("node starts");
        let input = process.stdin.take().expect("a pipe");
        let output = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let mut browser = Browser {
            process,
            input,
            output,
            _turn: turn,
        };
        browser.reply("Chromium starts").await;
        browser
    }

    /// From now on every page is asked for with a login of somebody who may decide.
    pub(crate) async fn log_in(&mut self, served: &Served) {
        let path = served.login_path();
        self.run(&format!("await logIn('{path}')")).await;
    }

    /// Runs this, with what `browser.mjs` has in its tools; gives back what it returns.
    pub(crate) async fn run(&mut self, js: &str) -> Value {
        let line = format!("{}\n", json!({ "js": js }));
        self.input
            .write_all(line.as_bytes())
            .await
            .expect("it reads");
        self.reply(js).await
    }

    async fn reply(&mut self, what: &str) -> Value {
        // It gives up by itself before that, and says at what.
        let line = timeout(PATIENCE * 2, self.output.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("no answer to: {what}"));
        let Some(line) = line.expect("its words") else {
            panic!("the driver ended at: {what}");
        };
        let mut reply: Value = serde_json::from_str(&line).expect("one line of JSON");
        assert!(
            reply["error"].is_null(),
            "{}\nat: {what}",
            reply["error"].as_str().unwrap_or_default()
        );
        reply["value"].take()
    }

    /// No page has complained of anything: a script that failed, a file that is missing, a rule of the page's policy.
    pub(crate) async fn no_complaints(&mut self) {
        // That arguments do not fit is an answer, which browsers tell as if it were a fault.
        let js = "return complaints.filter((text) => !text.includes('status of 422'))";
        assert_eq!(self.run(js).await, json!([]));
    }

    pub(crate) async fn close(mut self) {
        drop(self.input);
        let _ = timeout(PATIENCE, self.process.wait()).await;
    }
}

/// A server with the set above, and the calls that show it.
pub(crate) async fn seeded() -> Served {
    let served = Served::with_config(SET).await;
    seed(&served).await;
    served
}

pub(crate) async fn seed(served: &Served) {
    for city in ["Oslo", "Bergen", "Oslo"] {
        served.call("weather", json!({"city": city})).await;
    }
    served.call("weather", json!({"town": "Oslo"})).await;
    served.call("math", json!({"expression": "2^10"})).await;
    for _ in 0..4 {
        served
            .call("home_lights", json!({"area": "kitchen", "state": "on"}))
            .await;
    }
    served.call("home_scene", json!({})).await;
    served.call("once", json!({})).await;
    served.call("no_such_tool", json!({})).await;
    let said = [
        json!({"type": "human", "content": "What is 1 + 1?"}),
        json!({"type": "ai", "content": "", "tool_calls": [{"type": "tool_call", "id": "c1", "name": "math", "args": {"expression": "1 + 1"}},
            {"type": "tool_call", "id": "c2", "name": "math", "args": {"expression": "2 + 2"}}]}),
        json!({"type": "tool", "content": "2", "tool_call_id": "c1", "name": "math", "status": "success"}),
    ];
    let lines: Vec<String> = said.iter().map(Value::to_string).collect();
    served.workplace.write(
        ".local/state/steadyhand/conversations/20260101-000000-abcdef.jsonl",
        &format!("{}\n", lines.join("\n")),
    );
}

/// Waits until the server that cannot start is known to be down.
pub(crate) async fn calendar_is_down(served: &Served) {
    crate::serve::until("calendar is down", async || {
        let servers = served.get("/v1/servers").await.json();
        let state = servers["servers"][0]["status"].as_str()?.to_owned();
        (state == "not running").then_some(())
    })
    .await;
}

/// A call that goes on in the background; its id.
pub(crate) async fn slow_call(served: &Served) -> String {
    let address = served.address;
    let body = json!({"name": "slow_report", "args": {}}).to_string();
    tokio::spawn(async move {
        let mut stream = tokio::net::TcpStream::connect(address)
            .await
            .expect("it listens");
        let request = crate::serve::request(address, "POST", "/v1/calls", &[], &body);
        stream.write_all(request.as_bytes()).await.expect("sent");
        // Its answer comes when it is cancelled, or with the end of the test.
        let _ = crate::serve::whole_reply(&mut stream).await;
    });
    crate::serve::runs(served, "slow_report").await
}

/// Every page there is, those of things that were seeded included.
pub(crate) async fn all_pages(served: &Served) -> Vec<String> {
    let calls = served.get("/v1/calls?limit=20").await.json();
    let mut pages: Vec<String> = [
        "/",
        "/calls",
        "/calls?state=failed",
        "/calls?q=tool%3Aweather",
        "/calls?q=nonsense%3Ax",
        "/tools",
        "/tools?q=home",
        "/tools/weather",
        "/tools/home_lights",
        "/tools/home_scene",
        "/tools/math",
        "/servers",
        "/servers/calendar",
        "/approvals",
        "/alerts",
        "/conversations",
        "/trends",
        "/trends?window=7d&tool=weather",
        "/audit",
        "/config",
        "/tools/nobody",
        "/calls/nobody",
    ]
    .map(str::to_owned)
    .into();
    let talks = served.get("/v1/conversations").await.json();
    let talks = talks["conversations"].as_array().expect("a list").clone();
    let ids = talks.iter().map(|talk| talk["id"].as_str().expect("an id"));
    pages.extend(ids.map(|id| format!("/conversations/{id}")));
    let keys = calls["calls"].as_array().expect("a list").iter();
    pages.extend(keys.map(|call| format!("/calls/{}", call["key"].as_str().expect("a key"))));
    pages
}

pub(crate) fn place(config: &str) -> Workplace {
    Workplace::with_config(config)
}
