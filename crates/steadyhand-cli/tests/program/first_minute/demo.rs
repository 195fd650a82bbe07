//! The demo set: no key, no network, nothing configured, and everything to see that can go wrong.

use rustix::process::Signal;
use serde_json::{Value, json};
use snapbox::str;

use crate::serve::{Served, until};
use crate::support::{Workplace, parts};

/// Every file below a folder, as a path relative to it.
fn files(workplace: &Workplace) -> Vec<String> {
    let mut folders = vec![workplace.path().to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let below = path.strip_prefix(workplace.path()).expect("below");
                    files.push(below.display().to_string());
                }
            }
        }
    }
    files
}

fn callers(calls: &Value) -> Vec<String> {
    let calls = calls["calls"].as_array().expect("calls").iter();
    let callers = calls.map(|call| call["caller"].as_str().unwrap_or_default().to_owned());
    callers.collect()
}

#[test]
fn without_a_configuration_there_is_the_demo_set_and_nothing_is_wrong_with_it() {
    let workplace = Workplace::new();
    workplace
        .run("config check")
        .code(0)
        .stdout_eq(str![[r#"
No configuration file, so this is the demo set: 11 tools, 1 MCP server. Your own: steadyhand init

"#]])
        .stderr_eq(str![]);
    let listed = workplace.json("tools list --json");
    let tools = listed["tools"].as_array().expect("tools").iter();
    let names: Vec<&str> = tools.filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(
        names,
        [
            "weather",
            "calculator",
            "slow_report",
            "flaky",
            "door_unlock",
            "datetime",
            "echo",
            "math_eval",
            "search",
            "uuid",
            "volume",
        ]
    );
    // Where each value comes from can be asked, as with any other file.
    let shown = workplace.json("config show --json");
    let settings = shown["settings"].as_array().expect("settings").iter();
    let cooldown = settings
        .filter(|row| row["setting"] == "tools.flaky.breaker.cooldown")
        .map(|row| row["origin"].as_str().unwrap_or_default().to_owned())
        .next();
    assert!(cooldown.is_some_and(|origin| origin.starts_with("demo.toml:")));
}

#[test]
fn its_tools_answer_without_a_server_too() {
    let workplace = Workplace::new();
    workplace
        .run("call weather city=Oslo -q")
        .code(0)
        .stdout_eq(str![[r#"
temp_c	4
sky	rain

"#]])
        .stderr_eq(str![]);
    let outcome = workplace.json("call calculator expression=6*7 --json");
    assert_eq!(outcome["output"], json!({"result": 42}));
}

#[test]
fn r11_its_flaky_tool_is_tried_twice_and_then_its_fallback_answers() {
    let workplace = Workplace::new();
    let outcome = workplace.json("call flaky --json");
    assert_eq!(outcome["fallbackUsed"], true, "{outcome}");
    assert_eq!(outcome["output"]["next_bus"], "unknown", "{outcome}");
    assert_eq!(outcome["error"]["code"], "NETWORK_ERROR", "{outcome}");
}

#[test]
fn a_door_is_not_unlocked_where_nobody_can_say_yes() {
    let (code, _, stderr) = parts(&Workplace::new().run("call door_unlock door=front"));
    assert_eq!(code, 7, "{stderr}");
}

#[test]
fn its_model_answers_with_a_tool_and_says_that_it_is_no_ai() {
    let workplace = Workplace::new();
    let (code, stdout, stderr) = parts(&workplace.run_words(&["chat", "Will it rain in Oslo?"]));
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(stdout, "weather says: temp_c 4, sky rain\n");
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(
        lines[0],
        "demo (demo model, a fixed script, not an AI), 11 tools (broken_server not running)."
    );
    assert!(lines[1].starts_with("tool ok weather "), "{stderr}");
    assert_eq!(lines.len(), 2, "nothing else is said: {stderr}");
}

#[test]
fn its_broken_server_says_every_step_its_last_words_and_what_to_do() {
    let (code, stdout, stderr) = parts(&Workplace::new().run("mcp test broken_server"));
    assert_eq!(code, 4, "{stderr}");
    let said = format!("{stdout}{stderr}");
    for part in [
        "initialize",
        "exited with code 1",
        "the environment variable CALENDAR_TOKEN is not set",
        "env = { CALENDAR_TOKEN = \"${env:CALENDAR_TOKEN}\" }  under [mcp.broken_server]",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_dashboard_has_traffic_trouble_a_question_and_a_server_that_does_not_start() {
    let served = Served::in_place(Workplace::new()).await;
    let seen = until("there is trouble to see", async || {
        let seen = served.get("/v1/overview").await.json();
        let breaker = |tool: &Value| tool["name"] == "flaky" && tool["breaker"] != "closed";
        let is_open = seen["tools"].as_array()?.iter().any(breaker);
        let problems = seen["problems"].as_array()?.iter();
        let names: Vec<&str> = problems.filter_map(|it| it["subject"].as_str()).collect();
        let has_all = ["broken_server", "door_unlock", "flaky"]
            .iter()
            .all(|name| names.contains(name));
        (is_open && has_all).then_some(seen)
    })
    .await;
    let lanes = seen["lanes"]["lanes"].as_array().expect("lanes").iter();
    let lanes: Vec<&str> = lanes.filter_map(|lane| lane["tool"].as_str()).collect();
    assert!(lanes.contains(&"slow_report"), "{lanes:?}");
    assert!(lanes.contains(&"door_unlock"), "{lanes:?}");
    // Whose calls these are is said wherever they are listed.
    let calls = until("calls are written down", async || {
        let calls = served.get("/v1/calls?tool=weather").await.json();
        (callers(&calls).len() >= 2).then_some(calls)
    })
    .await;
    assert!(
        callers(&calls)
            .iter()
            .all(|caller| caller == "demo traffic"),
        "{calls}"
    );
    let page = served.get("/servers/broken_server").await.text;
    for part in [
        "find command",
        "Likely cause",
        "CALENDAR_TOKEN is not set",
        "exited with code 1",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    // Nothing waits for the demo's own calls, and nothing was said about what is broken on purpose.
    served.signal(Signal::TERM);
    let (code, stderr, workplace) = served.left().await;
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let elsewhere: Vec<String> = files(&workplace)
        .into_iter()
        .filter(|file| !file.starts_with(".local/state/steadyhand/"))
        // What a program counts while `scripts/coverage` measures, if nobody has told it where.
        .filter(|file| !file.ends_with(".profraw"))
        .collect();
    assert_eq!(elsewhere, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_traffic_can_be_left_out() {
    let served = Served::told(Workplace::new(), "127.0.0.1:0", &["--no-demo-traffic"]).await;
    served.call("weather", json!({"city": "Oslo"})).await;
    let calls = until("the call is written down", async || {
        let calls = served.get("/v1/calls").await.json();
        (!callers(&calls).is_empty()).then_some(calls)
    })
    .await;
    let callers = callers(&calls);
    assert!(
        !callers.iter().any(|caller| caller == "demo traffic"),
        "{callers:?}"
    );
}

#[test]
fn a_configuration_of_ones_own_takes_its_place() {
    let workplace = Workplace::with_config("[tools.mine]\nkind = \"mock\"\nmock_response = 1\n");
    let listed = workplace.json("tools list --json");
    assert_eq!(listed["count"], 1, "{listed}");
    assert_eq!(listed["tools"][0]["name"], "mine");
}
