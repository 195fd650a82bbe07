//! `steadyhand init`: what it finds, what it asks, what it writes, and what it leaves alone.

use snapbox::str;

use crate::chat::pty::Terminal;
use crate::support::{Workplace, parts};

const SHARED: &str = r#"{"mcpServers": {
  "files": {"command": "true", "args": ["/srv"]},
  "github": {"command": "true", "env": {"GITHUB_TOKEN": "ghp_abcdefghijklmnopqrstuvwxyz0123456789"}}
}}"#;
const DESKTOP: &str =
    r#"{"mcpServers": {"notes": {"command": "true"}, "files": {"command": "false"}}}"#;
const DESKTOP_FILE: &str = ".config/Claude/claude_desktop_config.json";

/// A project with servers of other programs.
fn with_servers() -> Workplace {
    let workplace = Workplace::new();
    workplace.write(".mcp.json", SHARED);
    workplace.write(DESKTOP_FILE, DESKTOP);
    workplace
}

fn written(workplace: &Workplace) -> String {
    std::fs::read_to_string(workplace.file("steadyhand.toml")).expect("the file")
}

#[test]
fn where_nothing_is_found_nothing_is_asked_and_the_file_is_right() {
    let workplace = Workplace::new();
    workplace
        .run("init")
        .code(0)
        .stdout_eq(str![[r#"
steadyhand.toml is written: 1 tool. Comments in it say what else there is.

"#]])
        .stderr_eq(str![[r#"
No MCP servers found in the files of other programs.
Next: steadyhand config check
      steadyhand serve
      steadyhand connect claude-code

"#]]);
    workplace
        .run("config check")
        .code(0)
        .stdout_eq(str![[r#"
steadyhand.toml is right: 1 tool, 0 warnings

"#]])
        .stderr_eq(str![]);
    let outcome = workplace.json("call calculator expression=6*7 --json");
    assert_eq!(outcome["output"]["result"], 42);
}

#[test]
fn all_that_is_found_is_taken_over_with_yes_and_no_secret_is_copied() {
    let workplace = with_servers();
    workplace
        .run("init --yes")
        .code(0)
        .stdout_eq(str![[r#"
steadyhand.toml is written: 1 tool, 3 MCP servers (files, github and notes). Comments in it say what else there is.

"#]])
        .stderr_eq(str![[r#"
Found 3 MCP servers in .mcp.json and Claude Desktop:
  files   true /srv  (.mcp.json)
  github  true  (.mcp.json)
  notes   true  (Claude Desktop)
Next: steadyhand config check
      steadyhand serve
      steadyhand mcp test files
      steadyhand connect claude-code

"#]]);
    let text = written(&workplace);
    assert!(
        text.contains("mcp  = [\".mcp.json\", \"claude-desktop\"]"),
        "{text}"
    );
    assert!(!text.contains("ghp_"), "{text}");
    let (code, stdout, _) = parts(&workplace.run("config check"));
    assert_eq!(code, 0, "{stdout}");
    assert!(stdout.starts_with("steadyhand.toml is right: "), "{stdout}");
    let read = std::fs::read_to_string(workplace.file(".mcp.json")).expect("theirs");
    assert_eq!(read, SHARED, "files of others are read, never written");
}

#[test]
fn where_nobody_can_be_asked_it_says_which_flag_would_answer_and_writes_nothing() {
    let workplace = with_servers();
    for words in ["init", "init --no-input", "init --json"] {
        let (code, stdout, stderr) = parts(&workplace.run(words));
        assert_eq!((code, stdout.as_str()), (2, ""), "{words}: {stderr}");
        assert!(stderr.contains("--yes"), "{words}: {stderr}");
        assert!(!workplace.file("steadyhand.toml").exists(), "{words}");
    }
    let said = workplace.json("init --no-import --json");
    assert_eq!(said["servers"], serde_json::json!([]));
    assert_eq!(said["found"][0]["name"], "files", "{said}");
    assert_eq!(said["found"][0]["taken"], false, "{said}");
    assert!(written(&workplace).contains("#[import]"));
}

#[test]
fn a_file_that_is_there_is_only_replaced_when_that_is_said_and_kept_beside() {
    let workplace = Workplace::with_config("# mine\n");
    let (code, _, stderr) = parts(&workplace.run("init --yes"));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("nothing was changed"), "{stderr}");
    assert!(stderr.contains("--force"), "{stderr}");
    assert_eq!(written(&workplace), "# mine\n");
    let said = workplace.json("init --yes --force --json");
    assert_eq!(said["kept"], "steadyhand.toml.before");
    let kept = std::fs::read_to_string(workplace.file("steadyhand.toml.before"));
    assert_eq!(kept.expect("the old one"), "# mine\n");
    assert!(written(&workplace).contains("[tools.calculator]"));
    // Once more takes nothing away of what is kept.
    let said = workplace.json("init --yes --force --json");
    assert_eq!(said["kept"], "steadyhand.toml.before-2");
    let kept = std::fs::read_to_string(workplace.file("steadyhand.toml.before"));
    assert_eq!(kept.expect("the oldest one"), "# mine\n");
}

#[test]
fn every_example_in_the_file_is_right_once_its_sign_is_taken_away() {
    let workplace = with_servers();
    workplace.run("init --no-import").code(0);
    let is_example = |line: &str| line.starts_with('#') && !line.starts_with("# ");
    let text = written(&workplace);
    let uncommented: Vec<&str> = text
        .lines()
        .map(|line| {
            line.strip_prefix('#')
                .filter(|_| is_example(line))
                .unwrap_or(line)
        })
        .collect();
    assert!(uncommented.contains(&"[tools.home_lights]"), "{text}");
    workplace.write("steadyhand.toml", &uncommented.join("\n"));
    let (code, stdout, stderr) = parts(&workplace.run("config check"));
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stdout.contains("3 tools, 4 MCP servers"),
        "{stdout}{stderr}"
    );
}

#[test]
fn a_model_whose_key_is_there_is_used_and_its_key_stays_where_it_is() {
    let mut workplace = Workplace::new();
    workplace.set("ANTHROPIC_API_KEY", "sk-ant-secret");
    workplace.run("init").code(0);
    let text = written(&workplace);
    assert!(text.contains("default = \"claude\"\nclaude  = {"), "{text}");
    assert!(!text.contains("sk-ant-secret"), "{text}");
    workplace.run("config check").code(0);
}

#[test]
fn another_programs_file_is_never_written() {
    let workplace = with_servers();
    let (code, _, stderr) = parts(&workplace.run("init --yes --force -c .mcp.json"));
    assert_eq!(code, 2, "{stderr}");
    let read = std::fs::read_to_string(workplace.file(".mcp.json")).expect("theirs");
    assert_eq!(read, SHARED);
}

#[test]
fn at_a_terminal_it_asks_which_to_take_over() {
    let workplace = with_servers();
    let mut terminal = Terminal::start(&workplace, &["init"]);
    terminal.wait_for("Found 3 MCP servers in .mcp.json and Claude Desktop:");
    terminal.wait_for("[Y] all  [n] none  [s] some");
    terminal.line("s");
    terminal.wait_for("files (.mcp.json)?");
    terminal.line("");
    terminal.wait_for("github (.mcp.json)?");
    terminal.line("n");
    terminal.wait_for("notes (Claude Desktop)?");
    terminal.line("y");
    terminal.wait_for("2 MCP servers (files and notes)");
    assert_eq!(terminal.ended().0, Some(0));
    let text = written(&workplace);
    assert!(text.contains("skip = [\"github\"]"), "{text}");
}
