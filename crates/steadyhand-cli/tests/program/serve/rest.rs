//! `docs/rest.md` is true: its configuration is served, its lines are run, and what it shows is in the answers.

use serde_json::Value;
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

use super::Served;
use crate::support::{PATIENCE, Workplace};

const PAGE: &str = include_str!("../../../../../docs/rest.md");
const ADDRESS: &str = "localhost:7400";

/// Lines to run, and what the last of them answers.
struct Step {
    commands: Vec<String>,
    status: u16,
    shown: Shown,
}

enum Shown {
    Json(Value),
    Text(String),
}

/// The fenced parts of the page: their first words, and what is in them.
fn parts() -> Vec<(&'static str, &'static str)> {
    let pieces: Vec<&str> = PAGE.split("```").collect();
    let fenced = pieces.iter().skip(1).step_by(2);
    fenced.filter_map(|piece| piece.split_once('\n')).collect()
}

fn steps() -> Vec<Step> {
    let parts = parts();
    let pairs = parts.windows(2).filter(|pair| pair[0].0 == "sh");
    let step = |pair: &[(&str, &str)]| {
        let (kind, answer) = pair[1];
        let (kind, status) = kind.split_once(' ').unwrap_or((kind, "200"));
        let shown = match kind {
            "json" => Shown::Json(
                serde_json::from_str(answer)
                    .unwrap_or_else(|error| panic!("what is shown is no JSON ({error}): {answer}")),
            ),
            "text" => Shown::Text(answer.to_owned()),
            other => panic!("an answer of the kind {other:?} behind {}", pair[0].1),
        };
        let commands = pair[0].1.split("curl ").skip(1);
        Step {
            commands: commands
                .map(|rest| format!("curl {}", rest.trim()))
                .collect(),
            status: status.parse().expect("a status"),
            shown,
        }
    };
    pairs.map(step).collect()
}

/// The method and the path that a line asks for.
fn asked(command: &str) -> (&'static str, &str) {
    let method = match command {
        _ if command.contains("-X DELETE") => "delete",
        _ if command.contains(" -G ") => "get",
        _ if command.contains("-X POST") || command.contains(" -d ") => "post",
        _ => "get",
    };
    let (_, rest) = command.split_once(ADDRESS).expect("an address");
    let end = rest.find(['?', '\'', ' ', '\n']).unwrap_or(rest.len());
    (method, &rest[..end])
}

/// Whether a path is one of those that `/v1/calls/{id}` means.
fn is_one_of(path: &str, template: &str) -> bool {
    let (mut words, mut wanted) = (path.split('/'), template.split('/'));
    words.clone().count() == wanted.clone().count()
        && words.all(|word| {
            let wanted = wanted.next().unwrap_or_default();
            wanted == word || wanted.starts_with('{')
        })
}

/// The status and the body.
async fn run(command: &str, address: &str) -> (u16, String) {
    let command = command.replace(ADDRESS, address);
    let command = command.replacen("curl ", "curl -w '\\n%{http_code}' ", 1);
    let mut shell = Command::new("sh");
    shell.args(["-c", &command]).kill_on_drop(true);
    let ran = timeout(PATIENCE, shell.output()).await;
    let ran = ran.expect("it ends in time").expect("a shell");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    let (body, status) = said.rsplit_once('\n').unwrap_or_else(|| {
        let errors = String::from_utf8_lossy(&ran.stderr).into_owned();
        panic!("{command} says nothing (./test installs curl): {errors}")
    });
    (status.parse().expect("a status"), body.to_owned())
}

/// Whether everything that is shown is there; `…` stands for anything.
fn fits(shown: &Value, got: &Value, at: &str) -> Result<(), String> {
    match (shown, got) {
        (Value::String(shown), _) if shown == "…" => Ok(()),
        (Value::String(shown), Value::String(got)) if is_like(shown, got) => Ok(()),
        (Value::Object(shown), Value::Object(got)) => shown.iter().try_for_each(|(key, value)| {
            let at = format!("{at}/{key}");
            let got = got.get(key).ok_or(format!("{at} is not there"))?;
            fits(value, got, &at)
        }),
        (Value::Array(shown), Value::Array(got)) => {
            let is_rest = |value: &Value| value == "…";
            let count = shown.iter().position(is_rest).unwrap_or(shown.len());
            if got.len() < count || (count == shown.len() && got.len() > count) {
                return Err(format!("{at} has {} elements", got.len()));
            }
            let pairs = shown.iter().take(count).zip(got).enumerate();
            let mut checked = pairs.map(|(n, (shown, got))| fits(shown, got, &format!("{at}/{n}")));
            checked.try_for_each(|one| one)
        }
        _ if shown == got => Ok(()),
        _ => Err(format!("{at} is {got}, not {shown}")),
    }
}

fn is_like(shown: &str, got: &str) -> bool {
    let pieces: Vec<&str> = shown.split('…').collect();
    let [first, between @ .., last] = pieces.as_slice() else {
        return shown == got;
    };
    let Some(mut rest) = got.strip_prefix(first) else {
        return false;
    };
    for piece in between {
        match rest.split_once(piece) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn check(step: &Step, status: u16, body: &str) -> Result<(), String> {
    if status != step.status {
        return Err(format!("status {status}: {body}"));
    }
    match &step.shown {
        Shown::Json(shown) => {
            let got = serde_json::from_str(body).map_err(|error| format!("{error}: {body}"))?;
            fits(shown, &got, "").map_err(|why| format!("{why}: {body}"))
        }
        Shown::Text(shown) => shown.lines().try_for_each(|shown| {
            let is_there = body.lines().any(|line| is_like(shown, line));
            is_there
                .then_some(())
                .ok_or(format!("no line like {shown:?}: {body}"))
        }),
    }
}

#[tokio::test]
async fn r14_every_line_of_the_page_on_rest_answers_what_it_shows() {
    let peers = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../target/peers/mcp-npm/node_modules/.bin"
    );
    let found = parts().into_iter().find(|(kind, _)| *kind == "toml");
    let mut workplace = Workplace::with_config(found.expect("a configuration").1);
    let path = std::env::var("PATH").unwrap_or_default();
    workplace.set("PATH", &format!("{peers}:{path}"));
    let served = Served::in_place(workplace).await;
    let address = served.address.to_string();
    let steps = steps();
    let mut aside = Vec::new();
    for step in &steps {
        let (last, before) = step.commands.split_last().expect("a line");
        for command in before {
            match command.strip_suffix('&') {
                None => drop(run(command, &address).await),
                Some(command) => {
                    let (command, address) = (command.to_owned(), address.clone());
                    aside.push(tokio::spawn(async move { run(&command, &address).await }));
                }
            }
        }
        // A call that was just begun or ended may not be told of yet.
        let patience = Instant::now() + PATIENCE;
        loop {
            let (status, body) = run(last, &address).await;
            match check(step, status, &body) {
                Ok(()) => break,
                Err(why) => assert!(Instant::now() < patience, "{last}: {why}"),
            }
            sleep(std::time::Duration::from_millis(100)).await;
        }
    }
    for call in aside {
        let (status, body) = call.await.expect("it ran");
        assert_eq!(status, 200, "{body}");
    }

    let document = served.get("/openapi.json").await.json();
    let lines: Vec<(&str, &str)> = steps
        .iter()
        .flat_map(|step| step.commands.iter().map(|command| asked(command)))
        .collect();
    for (template, methods) in document["paths"].as_object().expect("paths") {
        for method in methods.as_object().expect("methods").keys() {
            let is_tried = lines
                .iter()
                .any(|(asked, path)| asked == method && is_one_of(path, template));
            assert!(is_tried, "docs/rest.md does not try {method} {template}");
        }
    }
}
