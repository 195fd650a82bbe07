//! `steadyhand connect`: what other programs' files are told about us, and that nothing else in them changes.

use serde_json::{Value, json};

use crate::serve::Served;
use crate::support::{Workplace, parts};

const SERVER: &str =
    "[server]\nlisten = \"127.0.0.1:7499\"\n\n[tools.echo]\nkind = \"builtin\"\nuse = \"echo\"\n";
const GUARDED: &str = "[server]\nlisten = \"127.0.0.1:7499\"\ntoken = \"${env:MY_TOKEN}\"\n";

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_steadyhand")
}

/// What else is in a folder, beside what is expected.
fn backups(workplace: &Workplace, folder: &str) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(workplace.file(folder)).expect("a folder");
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    paths
        .filter(|path| path.to_string_lossy().contains(".before-"))
        .collect()
}

#[test]
fn every_client_gets_what_its_file_must_say() {
    let workplace = Workplace::with_config(SERVER);
    let says = |client: &str| {
        let (code, stdout, stderr) = parts(&workplace.run(&format!("connect {client}")));
        assert_eq!(code, 0, "{client}: {stderr}");
        (stdout, stderr)
    };
    let json = |client: &str| -> Value { serde_json::from_str(&says(client).0).expect("JSON") };
    let url = "http://127.0.0.1:7499/mcp";
    assert_eq!(
        json("claude-code"),
        json!({"mcpServers": {"steadyhand": {"type": "http", "url": url}}})
    );
    assert_eq!(
        json("cursor"),
        json!({"mcpServers": {"steadyhand": {"url": url}}})
    );
    assert_eq!(
        json("vscode"),
        json!({"servers": {"steadyhand": {"type": "http", "url": url}}})
    );
    assert_eq!(
        says("codex").0,
        format!("[mcp_servers.steadyhand]\nurl = \"{url}\"\n")
    );
    assert_eq!(says("curl").0, "curl -s http://127.0.0.1:7499/v1/tools\n");
    let config = workplace.file("steadyhand.toml").display().to_string();
    assert_eq!(
        json("claude-desktop"),
        json!({"mcpServers": {"steadyhand": {
            "command": program(), "args": ["--config", config, "mcp-stdio"]
        }}})
    );
    let (_, notes) = says("claude-code");
    assert!(notes.contains("This belongs into ~/.mcp.json"), "{notes}");
    assert!(
        notes.contains(&format!("claude mcp add --transport http steadyhand {url}")),
        "{notes}"
    );
    assert!(
        notes.contains("steadyhand serve"),
        "nothing listens there yet: {notes}"
    );
    let (_, notes) = says("cursor --stdio");
    assert!(
        notes.contains("steadyhand connect cursor --stdio --install"),
        "{notes}"
    );
    let (code, _, stderr) = parts(&workplace.run("connect claude-desktop --http"));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("Claude Desktop"), "{stderr}");
    let (code, _, stderr) = parts(&workplace.run("connect emacs"));
    assert_eq!(code, 2, "{stderr}");
}

#[test]
fn a_token_is_named_and_never_written() {
    let mut workplace = Workplace::with_config(GUARDED);
    workplace.set("MY_TOKEN", "very-secret-token-1");
    for (client, names) in [
        ("claude-code", "\"Bearer ${MY_TOKEN}\""),
        ("cursor", "\"Bearer ${env:MY_TOKEN}\""),
        ("vscode", "\"Bearer ${input:steadyhand-token}\""),
        ("codex", "bearer_token_env_var = \"MY_TOKEN\""),
        ("curl", "-H \"Authorization: Bearer $MY_TOKEN\""),
    ] {
        let (code, stdout, stderr) = parts(&workplace.run(&format!("connect {client}")));
        assert_eq!(code, 0, "{client}: {stderr}");
        assert!(stdout.contains(names), "{client}: {stdout}");
        assert!(
            !format!("{stdout}{stderr}").contains("very-secret"),
            "{stdout}{stderr}"
        );
    }
    let asked: Value =
        serde_json::from_str(&parts(&workplace.run("connect vscode")).1).expect("JSON");
    assert_eq!(asked["inputs"][0]["id"], "steadyhand-token");
    assert_eq!(asked["inputs"][0]["password"], true);
}

/// What a careful person has written.
const CURSOR: &str = r#"// My servers.
{
  "mcpServers": {
    // The time of day.
    "time": { "command": "uvx", "args": ["mcp-server-time"], "env": { "KEY": "somebody-elses-key-1" } }, // here
    "off": {"command": "x", "disabled": true}
  },
  "theme": "dark", // a trailing comma follows
}
"#;

#[test]
fn an_installation_changes_nothing_else_keeps_a_copy_and_happens_once() {
    let workplace = Workplace::with_config(SERVER);
    workplace.write(".cursor/mcp.json", CURSOR);
    let (code, stdout, stderr) = parts(&workplace.run("connect cursor --install"));
    assert_eq!(code, 0, "{stderr}");
    let file = workplace.file(".cursor/mcp.json");
    let after = std::fs::read_to_string(&file).expect("the file");
    let expected = CURSOR.replace(
        r#"    "off": {"command": "x", "disabled": true}
"#,
        r#"    "off": {"command": "x", "disabled": true},
    "steadyhand": {
      "url": "http://127.0.0.1:7499/mcp"
    }
"#,
    );
    assert_eq!(after, expected);
    assert!(
        stdout.contains("~/.cursor/mcp.json\n+     \"steadyhand\": {"),
        "{stdout}"
    );
    assert!(!stdout.contains("somebody-elses-key"), "{stdout}");
    assert!(
        !stdout.contains('-') || !stdout.contains("\n- "),
        "nothing is taken away: {stdout}"
    );
    let copies = backups(&workplace, ".cursor");
    assert_eq!(copies.len(), 1);
    assert_eq!(std::fs::read_to_string(&copies[0]).expect("a copy"), CURSOR);
    assert!(stderr.contains(".before-"), "{stderr}");
    let (code, stdout, _) = parts(&workplace.run("connect cursor --install"));
    assert_eq!(code, 0);
    assert!(stdout.contains("nothing was changed"), "{stdout}");
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), expected);
    assert_eq!(backups(&workplace, ".cursor").len(), 1);
}

#[test]
fn another_way_replaces_how_we_are_reached_and_keeps_what_the_user_has_added() {
    let mut workplace = Workplace::with_config(GUARDED);
    workplace.set("MY_TOKEN", "very-secret-token-1");
    let written = r#"{
  "mcpServers": {
    "steadyhand": {
      "url": "http://127.0.0.1:1/mcp",
      "headers": { "Authorization": "Bearer pasted-by-hand-123456", "X-Mine": "1" },
      "autoApprove": ["echo"]
    }
  }
}
"#;
    workplace.write(".cursor/mcp.json", written);
    let installed = workplace.json("connect cursor --install --json");
    assert_eq!(installed["changed"], true);
    assert!(
        !installed.to_string().contains("pasted-by-hand"),
        "{installed}"
    );
    let read = || -> Value {
        let text = std::fs::read_to_string(workplace.file(".cursor/mcp.json")).expect("the file");
        serde_json::from_str(&text).expect("JSON")
    };
    assert_eq!(
        read()["mcpServers"]["steadyhand"],
        json!({
            "url": "http://127.0.0.1:7499/mcp",
            "headers": {"Authorization": "Bearer pasted-by-hand-123456", "X-Mine": "1"},
            "autoApprove": ["echo"]
        })
    );
    let installed = workplace.json("connect cursor --stdio --install --json");
    assert!(
        !installed.to_string().contains("pasted-by-hand"),
        "{installed}"
    );
    let ours = &read()["mcpServers"]["steadyhand"];
    assert_eq!(
        (&ours["url"], &ours["headers"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(ours["autoApprove"], json!(["echo"]));
    assert_eq!(ours["command"], program());
}

#[test]
fn a_file_that_cannot_be_read_is_left_alone() {
    let workplace = Workplace::with_config(SERVER);
    for (client, file, text, line) in [
        (
            "cursor",
            ".cursor/mcp.json",
            "{\n  \"mcpServers\": {\n    \"a\": \n}\n",
            "line 4",
        ),
        (
            "claude-code",
            ".mcp.json",
            "[]\n",
            "something else than an object",
        ),
        (
            "vscode",
            ".vscode/mcp.json",
            "{\"servers\": 3}\n",
            "servers is no object",
        ),
        (
            "codex",
            ".codex/config.toml",
            "model = \"x\"\n[mcp_servers\n",
            "line 2",
        ),
    ] {
        workplace.write(file, text);
        let (code, stdout, stderr) = parts(&workplace.run(&format!("connect {client} --install")));
        assert_eq!((code, stdout.as_str()), (8, ""), "{client}: {stderr}");
        assert!(
            stderr.contains(line) && stderr.contains("was not changed"),
            "{stderr}"
        );
        assert!(stderr.contains("help: "), "{stderr}");
        let after = std::fs::read_to_string(workplace.file(file)).expect("the file");
        assert_eq!(after, text);
    }
}

#[test]
fn codex_and_vscode_keep_their_comments_too() {
    let mut workplace = Workplace::with_config(GUARDED);
    workplace.set("MY_TOKEN", "very-secret-token-1");
    let codex = "# my settings\nmodel = \"gpt-5.4\"   # the big one\n\n[mcp_servers.time]\ncommand = 'uvx'\n\n[tui]\nnotifications = true\n";
    workplace.write(".codex/config.toml", codex);
    assert_eq!(parts(&workplace.run("connect codex --install")).0, 0);
    let read = |file: &str| std::fs::read_to_string(workplace.file(file)).expect("the file");
    let expected = format!(
        "{codex}\n[mcp_servers.steadyhand]\nurl = \"http://127.0.0.1:7499/mcp\"\nbearer_token_env_var = \"MY_TOKEN\"\n"
    );
    assert_eq!(read(".codex/config.toml"), expected);
    let again = workplace.json("connect codex --install --json");
    assert_eq!(again["changed"], false, "{again}");
    // The other way, and a key of the user's own.
    let own = expected.replace(
        "[mcp_servers.steadyhand]\n",
        "[mcp_servers.steadyhand]\ntool_timeout_sec = 90 # slow\n",
    );
    workplace.write(".codex/config.toml", &own);
    assert_eq!(
        parts(&workplace.run("connect codex --stdio --install")).0,
        0
    );
    let changed = read(".codex/config.toml");
    assert!(
        changed.starts_with(codex) && changed.contains("tool_timeout_sec = 90 # slow\n"),
        "{changed}"
    );
    assert!(
        changed.contains("mcp-stdio") && !changed.contains("url ="),
        "{changed}"
    );

    let vscode = "{\n\t// asked once\n\t\"inputs\": [\n\t\t{ \"type\": \"promptString\", \"id\": \"other\" }\n\t],\n\t\"servers\": {}\n}\n";
    workplace.write(".vscode/mcp.json", vscode);
    assert_eq!(parts(&workplace.run("connect vscode --install")).0, 0);
    let changed = read(".vscode/mcp.json");
    assert!(
        changed.contains("\t// asked once\n") && changed.contains("\"id\": \"other\""),
        "{changed}"
    );
    assert!(
        changed.contains("\t\t\"steadyhand\": {\n\t\t\t\"type\": \"http\""),
        "{changed}"
    );
    assert_eq!(changed.matches("steadyhand-token").count(), 2, "{changed}");
    let again = workplace.json("connect vscode --install --json");
    assert_eq!(again["changed"], false, "{changed}");
}

#[test]
fn a_link_stays_a_link_and_permissions_stay_as_they_are() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let workplace = Workplace::with_config(SERVER);
    workplace.write("dotfiles/mcp.json", "{}\n");
    let real = workplace.file("dotfiles/mcp.json");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).expect("ours");
    std::fs::create_dir_all(workplace.file(".cursor")).expect("a folder");
    symlink(&real, workplace.file(".cursor/mcp.json")).expect("a link");
    assert_eq!(parts(&workplace.run("connect cursor --install")).0, 0);
    assert!(workplace.file(".cursor/mcp.json").is_symlink());
    let text = std::fs::read_to_string(&real).expect("the file");
    assert!(text.contains("steadyhand"), "{text}");
    let mode = std::fs::metadata(&real)
        .expect("the file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_installed_works_over_http_and_on_stdio() {
    let served = Served::with_config("[tools.echo]\nkind = \"builtin\"\nuse = \"echo\"\n").await;
    let workplace = &served.workplace;
    for way in ["--http", "--stdio"] {
        let (code, _, stderr) =
            parts(&workplace.run(&format!("connect claude-code {way} --install")));
        assert_eq!(code, 0, "{stderr}");
        assert!(
            !stderr.contains("No server of this configuration runs"),
            "{stderr}"
        );
        // As that program would: by its file.
        let run = workplace.run("call claude-code:steadyhand echo text=hello --json");
        let (code, stdout, stderr) = parts(&run);
        assert_eq!(code, 0, "{way}: {stdout}{stderr}");
        assert!(stdout.contains("hello"), "{way}: {stdout}");
    }
    let (code, _, stderr) = parts(&workplace.run("call claude-code:steadyhnd echo text=x"));
    assert_eq!(code, 5, "{stderr}");
    assert!(
        stderr.contains("Did you mean claude-code:steadyhand?"),
        "{stderr}"
    );
    let (code, _, stderr) = parts(&workplace.run("call claude-code:steadyhand"));
    assert_eq!(code, 2, "{stderr}");
    assert!(
        stderr.contains("which tool of claude-code:steadyhand?"),
        "{stderr}"
    );
}
