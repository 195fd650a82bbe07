//! What is decided and changed, by every way it can be: each is in the audit log, with who, when, from where, before and after.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{key, with_key};
use crate::pins::{tool, workplace};
use crate::serve::{Reply, Served, until};
use crate::support::parts;

const CONFIG: &str = r#"pin = "quarantine"

[tools.unlock]
kind = "mock"
description = "Unlocks a door"
input = { type = "object" }
approval = "always"
answers = [{ result = "unlocked" }]

[tools.ill]
kind = "mock"
description = "Cannot be reached"
input = { type = "object" }
answers = [{ fail = "network" }]
retry = { attempts = 1 }
breaker = { failures = 1, cooldown = "1h" }

[audit]
node = "attic"
"#;

/// How somebody asks for it. What stands in braces is filled in.
enum Way {
    Rest(&'static str, &'static str, &'static str),
    Button(&'static str, &'static str),
    Command(&'static str),
}

use Way::{Button, Command, Rest};

/// What there must be before.
#[derive(Clone, Copy)]
enum Needs {
    Nothing,
    /// A call that waits for a yes.
    Approval,
    /// A definition that changed.
    Change,
    /// An alert that is raised.
    Alert,
}

/// The action, what it is done to, what it needs, and every way to do it.
type Row = (&'static str, &'static str, Needs, &'static [Way]);

const ROWS: [Row; 21] = [
    (
        "approval.decide",
        "{id}",
        Needs::Approval,
        &[
            Rest(
                "POST",
                "/v1/approvals/{id}",
                r#"{"decision": "approve", "arguments_hash": "{hash}"}"#,
            ),
            Button(
                "/approvals/{id}",
                "decision=deny&arguments_hash={form_hash}",
            ),
            Command("approve {id}"),
        ],
    ),
    (
        "pin.accept",
        "up__send",
        Needs::Change,
        &[
            Rest(
                "POST",
                "/v1/tool-changes/up__send/accept",
                r#"{"definition_hash": "{hash}"}"#,
            ),
            Button("/tools/up__send/accept", "definition_hash={form_hash}"),
            Command("tools accept up__send"),
        ],
    ),
    (
        "pin.reject",
        "up__send",
        Needs::Change,
        &[
            Rest("POST", "/v1/tool-changes/up__send/reject", "{}"),
            Button("/tools/up__send/reject", "definition_hash={form_hash}"),
            Command("tools reject up__send"),
        ],
    ),
    (
        "alert.acknowledge",
        "{id}",
        Needs::Alert,
        &[
            Rest("POST", "/v1/alerts/{id}/ack", "{}"),
            Button("/alerts/{id}/ack", ""),
            Command("alerts ack {id}"),
        ],
    ),
    (
        "alert.silence",
        "{id}",
        Needs::Alert,
        &[
            Rest("POST", "/v1/alerts/{id}/silence", ""),
            Button("/alerts/{id}/silence", ""),
            Command("alerts silence {id}"),
        ],
    ),
    (
        "breaker.trial",
        "ill",
        Needs::Nothing,
        &[
            Rest("POST", "/v1/tools/ill/breaker/trial", ""),
            Button("/tools/ill/trial", ""),
        ],
    ),
    (
        "breaker.reset",
        "ill",
        Needs::Nothing,
        &[
            Rest("POST", "/v1/tools/ill/breaker/reset", ""),
            Button("/tools/ill/reset", ""),
            Command("tools reset ill"),
        ],
    ),
    (
        "server.restart",
        "up",
        Needs::Nothing,
        &[
            Rest("POST", "/v1/servers/up/restart", ""),
            Button("/servers/up/restart", "sure=yes"),
            Command("mcp restart up"),
        ],
    ),
    (
        "key.create",
        "bob",
        Needs::Nothing,
        &[Rest(
            "POST",
            "/v1/keys",
            r#"{"name": "bob", "role": "viewer"}"#,
        )],
    ),
    (
        "key.revoke",
        "bob",
        Needs::Nothing,
        &[Rest("DELETE", "/v1/keys/bob", "")],
    ),
    (
        "key.create",
        "eve",
        Needs::Nothing,
        &[Command("keys create eve")],
    ),
    (
        "key.revoke",
        "eve",
        Needs::Nothing,
        &[Command("keys revoke eve")],
    ),
    (
        "tool.disable",
        "ill",
        Needs::Nothing,
        &[Rest("POST", "/v1/tools/ill/disable", "")],
    ),
    (
        "tool.enable",
        "ill",
        Needs::Nothing,
        &[Rest("POST", "/v1/tools/ill/enable", "")],
    ),
    (
        "tool.disable",
        "ill",
        Needs::Nothing,
        &[Button("/tools/ill/disable", "sure=yes")],
    ),
    (
        "tool.enable",
        "ill",
        Needs::Nothing,
        &[Button("/tools/ill/enable", "sure=yes")],
    ),
    (
        "tool.disable",
        "ill",
        Needs::Nothing,
        &[Command("tools disable ill")],
    ),
    (
        "tool.enable",
        "ill",
        Needs::Nothing,
        &[Command("tools enable ill")],
    ),
    (
        "server.add",
        "extra",
        Needs::Nothing,
        &[Command("mcp add extra -- python3 server.py")],
    ),
    (
        "server.remove",
        "extra",
        Needs::Nothing,
        &[Command("mcp remove extra")],
    ),
    (
        "config.reload",
        "",
        Needs::Nothing,
        &[
            Rest("POST", "/v1/config/reload", ""),
            Button("/config/reload", ""),
            Command("config reload"),
        ],
    ),
];

struct Bench {
    served: Served,
    key: String,
    /// Of somebody else, who calls tools: nobody approves calls of their own.
    callers_key: String,
    /// Definitions that were made, each another one.
    changes: AtomicUsize,
}

impl Bench {
    async fn rest(&self, method: &str, path: &str, body: &str) -> Reply {
        with_key(&self.served, &self.key, method, path, body).await
    }

    async fn get(&self, path: &str) -> Value {
        self.rest("GET", path, "").await.json()
    }

    /// Makes what is needed: its id and its hash.
    async fn prepare(&self, needs: Needs) -> (String, String) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match needs {
            Needs::Nothing => Default::default(),
            Needs::Approval => {
                let one = until("a call waits", async || {
                    let view = self.get("/v1/approvals").await;
                    let mut all = view["approvals"].as_array()?.iter();
                    all.find(|one| one["state"] == "waiting").cloned()
                })
                .await;
                (text(&one["id"]), text(&one["arguments_hash"]))
            }
            Needs::Change => {
                let number = self.changes.fetch_add(1, Ordering::Relaxed);
                let words = format!("Sends mail number {number}");
                self.served
                    .workplace
                    .write("tool.json", &tool(&words, "to"));
                self.rest("POST", "/v1/servers/up/restart", "").await;
                let one = until("the change is seen", async || {
                    let view = self.get("/v1/tool-changes").await;
                    let one = view["changes"].as_array()?.first()?.clone();
                    let is_it = one["differences"].to_string().contains(&words);
                    (is_it && one["rejected"] == false).then_some(one)
                })
                .await;
                (text(&one["tool"]), text(&one["definition_hash"]))
            }
            Needs::Alert => {
                self.rest("POST", "/v1/calls", r#"{"name": "ill"}"#).await;
                let one = until("an alert is raised", async || {
                    let view = self.get("/v1/alerts").await;
                    let mut all = view["alerts"].as_array()?.iter();
                    let is_it = |it: &&Value| it["subject"] == "ill" && it["state"] != "cleared";
                    all.find(is_it).cloned()
                })
                .await;
                (text(&one["id"]), String::new())
            }
        }
    }

    async fn ask(&self, way: &Way, filled: impl Fn(&str) -> String) {
        match way {
            Rest(method, path, body) => {
                let reply = self.rest(method, &filled(path), &filled(body)).await;
                assert_eq!(reply.status, 200, "{path}: {}", reply.text);
            }
            Button(path, form) => {
                let own = format!("http://{}", self.served.address);
                let shown = format!("Bearer {}", self.key);
                let headers = [
                    ("content-type", "application/x-www-form-urlencoded"),
                    ("origin", own.as_str()),
                    ("authorization", shown.as_str()),
                ];
                let (path, form) = (filled(path), filled(form));
                let reply = self.served.send("POST", &path, &headers, &form).await;
                assert_eq!(reply.status, 303, "{path}: {}", reply.text);
            }
            Command(words) => {
                let (place, words) = (self.served.workplace.shared(), filled(words));
                let run = tokio::task::spawn_blocking(move || parts(&place.run(&words)));
                let (code, _, stderr) = run.await.expect("it ran");
                assert_eq!(code, 0, "{stderr}");
            }
        }
    }

    async fn records(&self) -> Vec<Value> {
        let view = self.get("/v1/audit?limit=1000").await;
        view["records"].as_array().expect("a list").clone()
    }
}

impl Way {
    /// As the log calls it.
    fn word(&self) -> &'static str {
        match self {
            Rest(..) => "rest",
            Button(..) => "dashboard",
            Command(_) => "command",
        }
    }
}

fn find<'a>(
    all: &'a [Value],
    action: &str,
    subject: &str,
    way: &Way,
    result: &str,
) -> Option<&'a Value> {
    all.iter().find(|record| {
        let about = record["subject"].as_str().unwrap_or_default();
        (&record["action"], &record["result"]) == (&json!(action), &json!(result))
            && (about, &record["from"]["way"]) == (subject, &json!(way.word()))
    })
}

/// Who, when and from where.
fn assert_told(record: &Value, way: &Way) {
    let who = &record["who"];
    match way {
        Rest(..) | Button(..) => {
            assert_eq!(record["from"]["address"], "127.0.0.1", "{record}");
            assert_eq!(
                (&who["name"], &who["role"]),
                (&json!("ann"), &json!("admin"))
            );
            assert!(who["by"] == "key" && who["key"].is_string(), "{record}");
        }
        Command(_) => assert_eq!(who["by"], "local", "{record}"),
    }
    assert_eq!(record["node"], "attic", "{record}");
    assert!(
        record["at_ms"].as_u64() > Some(1_700_000_000_000),
        "{record}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn s08_every_decision_and_change_by_every_way_is_in_the_log_with_who_when_from_where_before_and_after()
 {
    let place = workplace(CONFIG, &tool("Sends a mail", "to"));
    let [ann, robot] = [("ann", "admin"), ("robot", "caller")]
        .map(|(name, role)| key(&place, name, &["--role", role]));
    let bench = Bench {
        served: Served::in_place(place).await,
        key: ann,
        callers_key: robot,
        changes: AtomicUsize::new(0),
    };
    until("the server's tool is known", async || {
        let tool = bench.get("/v1/tools/up__send").await;
        tool["name"].is_string().then_some(())
    })
    .await;
    for (action, subject, needs, ways) in &ROWS {
        for way in *ways {
            let calling = async {
                if matches!(needs, Needs::Approval) {
                    let (served, call) = (&bench.served, r#"{"name": "unlock"}"#);
                    with_key(served, &bench.callers_key, "POST", "/v1/calls", call).await;
                }
            };
            let deciding = async {
                let (id, hash) = bench.prepare(*needs).await;
                let filled = |text: &str| {
                    text.replace("{id}", &id)
                        .replace("{form_hash}", &hash.replace(':', "%3A"))
                        .replace("{hash}", &hash)
                };
                bench.ask(way, filled).await;
                filled(subject)
            };
            let ((), subject) = tokio::join!(calling, deciding);
            let what = format!("{action} of {subject:?} by {}", way.word());
            let all = until(&format!("{what} is written down"), async || {
                let all = bench.records().await;
                find(&all, action, &subject, way, "done")
                    .is_some()
                    .then_some(all)
            })
            .await;
            let done = find(&all, action, &subject, way, "done").expect("found before");
            // The body of a request for a key names it, and is not read yet.
            let about = match (*action, way) {
                ("key.create", Rest(..)) => "",
                _ => &subject,
            };
            let asked = find(&all, action, about, way, "asked");
            let asked = asked.unwrap_or_else(|| panic!("{what}: not before it was done"));
            assert!(asked["n"].as_u64() < done["n"].as_u64(), "{what}");
            for record in [asked, done] {
                assert_told(record, way);
                // There was nothing before a new key.
                assert_eq!(
                    record["before"].is_null(),
                    *action == "key.create",
                    "{what}: {record}"
                );
            }
            assert!(done["after"].is_object(), "{what}: {done}");
            assert!(asked["after"].is_null(), "{what}: {asked}");
            if *action == "approval.decide" {
                let became = match way {
                    Button(..) => "approval.denied",
                    Rest(..) | Command(_) => "approval.approved",
                };
                let became = find(&all, became, &subject, way, "done");
                let became = became.unwrap_or_else(|| panic!("{what}: what became of it"));
                assert_eq!(became["before"]["state"], "waiting", "{became}");
                assert!(became["who"]["name"].is_string(), "{became}");
            }
        }
    }
    let form = format!("token={}", bench.key);
    bench
        .ask(&Button("/login", "{form}"), |text| {
            text.replace("{form}", &form)
        })
        .await;
    let login = until("the login is written down", async || {
        let all = bench.records().await;
        find(&all, "login", "", &Button("", ""), "done").cloned()
    })
    .await;
    assert_told(&login, &Button("", ""));
    // Without a server, commands decide and write it down themselves.
    bench.served.signal(rustix::process::Signal::TERM);
    let place = bench.served.stopped().await;
    place.write("tool.json", &tool("Sends it elsewhere", "to"));
    let (code, _, stderr) = parts(&place.run("tools accept up__send"));
    assert_eq!(code, 0, "{stderr}");
    let listed = place.json("audit list --limit 2 --json");
    let all = listed["records"].as_array().expect("a list");
    for (result, has_after) in [("asked", false), ("done", true)] {
        let found = find(all, "pin.accept", "up__send", &Command(""), result);
        let record = found.unwrap_or_else(|| panic!("{result} in {listed}"));
        assert_told(record, &Command(""));
        assert!(record["before"].is_object(), "{record}");
        assert_eq!(record["after"]["accepted"] == true, has_after, "{record}");
    }
}
