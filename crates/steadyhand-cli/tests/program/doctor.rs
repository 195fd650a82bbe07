//! `steadyhand doctor` as somebody meets it at three in the morning: what is broken, where, and what to do.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::mcp::{Bench, hostile};
use crate::serve::Served;
use crate::support::{Workplace, parts, serve};

const QUIET: &str = "[server]\nlisten = \"127.0.0.1:0\"\n";

/// The check of an id and a name.
fn of<'a>(report: &'a Value, id: &str, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().expect("checks");
    let mut found = checks
        .iter()
        .filter(|it| it["id"] == id && it["name"] == name);
    found
        .next()
        .unwrap_or_else(|| panic!("no {id} of {name} in {report:#}"))
}

/// A port that nothing listens on.
fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    listener.local_addr().expect("bound").port()
}

#[test]
fn three_things_that_are_broken_are_found_with_what_to_do_about_each() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = taken.local_addr().expect("bound").port();
    let nobody = closed_port();
    let config = format!(
        r#"[server]
listen = "127.0.0.1:{port}"

[tools.calculator]
kind = "builtin"
use = "math_eval"

[tools.petstore]
kind = "http"
url = "http://127.0.0.1:9/pets"
headers = {{ "X-Api-Key" = "${{env:PETSTORE_KEY}}" }}

[models]
local = {{ provider = "ollama", model = "qwen3:8b", url = "http://127.0.0.1:{nobody}" }}
"#
    ) + &hostile("search", "well")
        + &hostile("calendar", "traceback");
    let bench = Bench::with(&config);
    let (code, stdout, stderr) = parts(&bench.run("doctor"));
    assert_eq!(code, 4, "{stdout}{stderr}");
    let lines: Vec<&str> = stdout.lines().collect();
    let after = |mark: &str, name: &str| {
        let start = format!("  {mark} {name} ");
        let at = lines.iter().position(|line| line.starts_with(&start));
        let at = at.unwrap_or_else(|| panic!("no line {start:?} in\n{stdout}"));
        let below = lines[at + 1..].iter();
        let below = below.take_while(|line| line.starts_with("     "));
        [lines[at]]
            .into_iter()
            .chain(below.copied())
            .collect::<Vec<_>>()
            .join("\n")
    };
    for group in ["Config", "Servers", "Models", "State", "Machine"] {
        assert!(lines.contains(&group), "no group {group} in\n{stdout}");
    }
    assert!(after("●", "file").contains("steadyhand.toml: 2 tools, 2 MCP servers"));
    let secret = after("▲", "secrets");
    assert!(
        secret.contains("PETSTORE_KEY")
            && secret.contains("petstore is disabled (steadyhand.toml:11)"),
        "{secret}"
    );
    assert!(
        secret.contains("\n                  ->") || secret.contains("-> "),
        "{secret}"
    );
    assert!(after("●", "search").contains("running, "));
    let calendar = after("✗", "calendar");
    for words in [
        "exited with code 1 at initialize",
        "No module named 'mcp'",
        "-> ",
        "steadyhand mcp test calendar",
    ] {
        assert!(calendar.contains(words), "no {words:?} in\n{calendar}");
    }
    let local = after("✗", "local");
    assert!(
        local.contains(&format!("nothing listens on 127.0.0.1:{nobody}")),
        "{local}"
    );
    assert!(local.contains("-> Start it: ollama serve"), "{local}");
    let machine = after("✗", &format!("port {port}"));
    let us = format!("(pid {})", std::process::id());
    assert!(
        machine.contains("taken by ") && machine.contains(&us),
        "{machine}"
    );
    assert!(machine.contains("steadyhand serve --listen"), "{machine}");
    assert!(
        stdout.contains(" 1 note, 3 to fix.   steadyhand doctor --json"),
        "{stdout}"
    );
    bench.assert_nobody_left();
}

#[test]
fn where_nothing_is_wrong_the_exit_code_is_zero_and_notes_do_not_change_that() {
    let bench = Bench::with(&(QUIET.to_owned() + &hostile("search", "well")));
    let (code, stdout, stderr) = parts(&bench.run("doctor"));
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(stdout.contains(" 0 notes, 0 to fix."), "{stdout}");
    bench.assert_nobody_left();
    // No file at all is a note, and what is broken on purpose in the demo set is one.
    let mut empty = Workplace::new();
    empty.set("STEADYHAND__SERVER__LISTEN", "127.0.0.1:0");
    let (code, stdout, stderr) = parts(&empty.run("doctor --plain"));
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(stdout.contains("  ! file "), "{stdout}");
    assert!(stdout.contains("broken on purpose"), "{stdout}");
    assert!(stdout.is_ascii(), "{stdout}");
}

#[test]
fn the_report_for_others_holds_no_secret_and_no_home_folder() {
    let config = QUIET.to_owned()
        + r#"
[mcp.talks]
command = "sh"
args = ["-c", "echo \"logging in with $KEY at $HOME\" >&2; exit 3"]
env = { KEY = "${env:TALKS_KEY}" }

[models]
remote = { provider = "anthropic", model = "claude-sonnet-4-5", key = "${env:OTHER_KEY}" }
"#;
    let mut workplace = Workplace::with_config(&config);
    workplace.set("TALKS_KEY", "hunter2-in-plain-sight");
    workplace.set("OTHER_KEY", "sk-ant-REDACTED");
    let run = workplace.run("doctor --json");
    let (code, stdout, stderr) = parts(&run);
    assert_eq!((code, stderr.as_str()), (4, ""), "{stdout}");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    for secret in [
        "hunter2",
        "sk-ant-api03",
        &workplace.path().display().to_string(),
    ] {
        assert!(!stdout.contains(secret), "{secret} in {report:#}");
    }
    assert_eq!(report["ok"], false);
    assert_eq!(report["counts"]["to_fix"], 1, "{report:#}");
    let talks = of(&report, "servers.start", "talks");
    assert_eq!(talks["state"], "fix");
    assert_eq!(talks["details"]["exit_code"], 3);
    assert!(
        talks["evidence"][0]
            .as_str()
            .is_some_and(|it| it.contains("logging in with")),
        "{talks:#}"
    );
    let model = of(&report, "models.reach", "remote");
    assert_eq!(model["state"], "ok");
    assert!(
        model["text"]
            .as_str()
            .is_some_and(|it| it.contains("key set, not contacted")),
        "{model:#}"
    );
    for (id, name) in [
        ("config.file", "file"),
        ("state.folder", "folder"),
        ("state.history", "history"),
        ("machine.disk", "disk"),
        ("machine.port", "port"),
    ] {
        assert!(!of(&report, id, name)["text"].is_null());
    }
}

#[test]
fn a_wrong_file_is_told_with_all_its_problems_and_the_rest_is_looked_at_all_the_same() {
    let config = "[server]\nlistne = \"127.0.0.1:0\"\n\n[tools.x]\nkind = \"builtin\"\nuse = \"math_evil\"\n";
    let workplace = Workplace::with_config(config);
    let report = workplace.json("doctor --json");
    let file = of(&report, "config.file", "file");
    assert_eq!(file["state"], "fix");
    let evidence = file["evidence"].to_string();
    assert!(
        evidence.contains("steadyhand.toml:2: ") && evidence.contains("listen?"),
        "{evidence}"
    );
    assert!(evidence.contains("steadyhand.toml:6: "), "{evidence}");
    assert_eq!(
        file["details"]["problems"].as_array().map(Vec::len),
        Some(2)
    );
    assert_eq!(of(&report, "state.folder", "folder")["state"], "ok");
}

#[test]
fn nothing_on_other_machines_is_contacted_unless_asked_for() {
    let config = QUIET.to_owned()
        + r#"
[mcp.github]
url = "https://mcp.nowhere.invalid/mcp"

[tools.api]
kind = "openapi"
spec = "https://api.nowhere.invalid/openapi.json"

[models]
claude = { provider = "anthropic", model = "claude-sonnet-4-5", key = "${env:NOT_SET}" }
"#;
    let workplace = Workplace::with_config(&config);
    let report = workplace.json("doctor --json");
    let github = of(&report, "servers.start", "github");
    assert_eq!(github["state"], "info");
    assert!(
        github["text"]
            .as_str()
            .is_some_and(|it| it.contains("not contacted (use --online)")),
        "{github:#}"
    );
    assert_eq!(of(&report, "config.source", "api")["state"], "info");
    // What is wrong without asking anybody is told.
    let claude = of(&report, "models.reach", "claude");
    assert_eq!(claude["state"], "fix", "{claude:#}");
    assert!(
        claude["text"]
            .as_str()
            .is_some_and(|it| it.starts_with("no key for anthropic")),
        "{claude:#}"
    );
    assert!(claude["next"].to_string().contains("NOT_SET"), "{claude:#}");
    assert_eq!(report["counts"]["to_fix"], 1, "{report:#}");
    let online = workplace.json("doctor --online --json");
    let github = of(&online, "servers.start", "github");
    assert_eq!(github["state"], "fix", "{github:#}");
    let api = of(&online, "config.source", "api");
    assert_eq!(api["state"], "fix", "{api:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_ollama_does_not_have_is_named_with_the_way_to_get_it() {
    let tags = || async { axum::Json(json!({"models": [{"name": "llama3.2:latest"}]})) };
    let address = serve(axum::Router::new().route("/api/tags", axum::routing::get(tags))).await;
    let config = format!(
        "{QUIET}\n[models]\nthere = {{ provider = \"ollama\", model = \"llama3.2\", url = \"http://{address}\" }}\nmissing = {{ provider = \"ollama\", model = \"qwen3:8b\", url = \"http://{address}\" }}\n"
    );
    let report = Workplace::with_config(&config).json("doctor --json");
    assert_eq!(of(&report, "models.reach", "there")["state"], "ok");
    let missing = of(&report, "models.reach", "missing");
    assert_eq!(missing["state"], "fix");
    assert_eq!(missing["next"], json!(["Get it: ollama pull qwen3:8b"]));
}

#[test]
fn a_history_that_is_no_database_any_more_is_found() {
    let config = "[server]\nlisten = \"127.0.0.1:0\"\nhistory = { path = \"calls.db\" }\n\n[tools.echo]\nkind = \"builtin\"\nuse = \"echo\"\n";
    let workplace = Workplace::with_config(config);
    let absent = workplace.json("doctor --json");
    assert_eq!(of(&absent, "state.history", "history")["state"], "ok");
    assert!(
        !workplace.file("calls.db").exists(),
        "looking makes no file"
    );
    assert_eq!(parts(&workplace.run("call echo text=hi")).0, 0);
    let sound = workplace.json("doctor --json");
    let text = of(&sound, "state.history", "history")["text"].to_string();
    assert!(text.contains("calls.db is sound"), "{text}");
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(workplace.file(&format!("calls.db{end}")));
    }
    workplace.write("calls.db", &"this is no database ".repeat(500));
    let broken = workplace.json("doctor --json");
    let history = of(&broken, "state.history", "history");
    assert_eq!(history["state"], "fix", "{history:#}");
    assert!(
        history["next"].to_string().contains("sets it aside"),
        "{history:#}"
    );
}

#[test]
fn a_state_folder_that_is_none_and_a_program_that_is_missing_are_found() {
    let config = QUIET.to_owned()
        + "[tools.log]\nkind = \"command\"\ncommand = [\"no-such-program\", \"{count}\"]\n";
    let workplace = Workplace::with_config(&config);
    workplace.write("taken", "a file");
    let report = workplace.json("doctor --json --state taken/state");
    let folder = of(&report, "state.folder", "folder");
    assert_eq!(folder["state"], "fix", "{folder:#}");
    assert!(
        folder["text"]
            .as_str()
            .is_some_and(|it| it.contains("taken is no folder")),
        "{folder:#}"
    );
    let program = of(&report, "config.program", "log");
    assert_eq!(
        program["text"],
        "no-such-program is not in PATH (steadyhand.toml:3)"
    );
}

#[test]
fn a_folder_that_root_may_write_to_but_that_takes_no_files_is_found() {
    let workplace = Workplace::with_config(QUIET);
    let report = workplace.json("doctor --json --state /proc/steadyhand");
    let folder = of(&report, "state.folder", "folder");
    assert_eq!(folder["state"], "fix", "{folder:#}");
    assert!(folder["next"].to_string().contains("--state DIR"));
}

#[test]
fn keys_that_would_have_calls_refused_are_found() {
    let config = QUIET.to_owned() + "[tools.echo]\nkind = \"builtin\"\nuse = \"echo\"\n";
    let workplace = Workplace::with_config(&config);
    let call = "call echo text=hi --idempotency-key k1 --state st";
    assert_eq!(parts(&workplace.run(call)).0, 0);
    let report = workplace.json("doctor --json --state st");
    assert!(!report.to_string().contains("state.keys"), "{report:#}");
    let folder = std::fs::read_dir(workplace.file("st/history")).expect("the state folder");
    for file in folder.map(|file| file.expect("a file").path()) {
        match file.to_string_lossy() {
            name if name.ends_with(".keys.db") => {
                std::fs::write(&file, "this is no database ".repeat(500)).expect("written");
            }
            name if name.contains(".keys.db-") => std::fs::remove_file(&file).expect("removed"),
            _ => {}
        }
    }
    assert_ne!(parts(&workplace.run(call)).0, 0, "it is refused");
    let report = workplace.json("doctor --json --state st");
    let keys = of(&report, "state.keys", "keys");
    assert_eq!(keys["state"], "fix", "{keys:#}");
    assert!(keys["next"].to_string().contains(".keys.db"), "{keys:#}");
}

#[test]
fn files_of_other_programs_that_nobody_reads_are_mentioned() {
    let workplace = Workplace::with_config(QUIET);
    workplace.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"time": {"command": "uvx"}, "steadyhand": {"url": "http://127.0.0.1:7400/mcp"}}}"#,
    );
    let report = workplace.json("doctor --json");
    let found = of(&report, "config.found", "not used");
    assert_eq!(found["state"], "info");
    assert_eq!(found["text"], "~/.cursor/mcp.json: time");
    assert!(
        found["next"]
            .to_string()
            .contains("steadyhand mcp import cursor --all"),
        "{found:#}"
    );
}

#[test]
fn a_server_that_hangs_holds_nothing_up_for_longer_than_it_is_given() {
    let config = QUIET.to_owned() + &hostile("files", "silent_init").replace("10s", "50s");
    let bench = Bench::with(&config);
    let report = bench.json("doctor --json --timeout 2s");
    let files = of(&report, "servers.start", "files");
    assert_eq!(files["state"], "note", "{files:#}");
    assert!(
        files["text"]
            .as_str()
            .is_some_and(|it| it.contains("at initialize")),
        "{files:#}"
    );
    assert_eq!(of(&report, "state.folder", "folder")["state"], "ok");
    bench.assert_nobody_left();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_runs_is_asked_and_not_started_a_second_time() {
    let config = "[tools.echo]\nkind = \"builtin\"\nuse = \"echo\"\n".to_owned()
        + &hostile("search", "well");
    let served = Served::with_config(&config).await;
    let report = served.workplace.json("doctor --json");
    let running = of(&report, "running.answers", "serve");
    assert_eq!(running["state"], "ok", "{report:#}");
    let text = running["text"].as_str().unwrap_or_default();
    assert!(
        text.starts_with(&format!("answers at {}", served.address)),
        "{text}"
    );
    let checks = report["checks"].as_array().expect("checks").iter();
    let port = checks
        .filter(|it| it["id"] == "machine.port")
        .map(|it| it["text"].to_string());
    let port: Vec<String> = port.collect();
    assert!(
        port[0].contains(&format!("pid {}", served.pid())),
        "{port:?}"
    );
    // How often it was started is written down where it runs.
    let pids = std::fs::read_to_string(served.workplace.file("pids-search")).unwrap_or_default();
    assert!(pids.lines().count() <= 1, "{pids}");
}
