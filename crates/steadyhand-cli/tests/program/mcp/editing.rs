//! `mcp add` and `mcp remove`: the file is changed as a careful person would change it, or not at all.

use super::{Bench, script};
use crate::support::parts;

const OWN: &str = r#"#:schema ./steadyhand.schema.json
# My tools.    Keep this comment!

[tools.calculator]   # sums
kind = "builtin"
use  = "math_eval"

# ------ servers ------

# The calendar of the office.
[mcp.calendar]
command = "true"
env = { B = "2", A = "1" }   # in this order

[mcp.calendar.params.tool]
from_name = "toName"

[mcp.other]
command = 'false'
"#;

#[test]
fn mcp_add_writes_a_server_that_can_be_tested_at_once() {
    let bench = Bench::empty();
    let script = script();
    let words = [
        "mcp", "add", "home", "--", "python3", "-S", "-E", &script, "well",
    ];
    let (code, stdout, stderr) = parts(&bench.run_words(&words));
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stdout.starts_with("Made steadyhand.toml:\n\n[mcp.home]\n"),
        "{stdout}"
    );
    assert!(
        stderr.contains("Next: steadyhand mcp test home"),
        "{stderr}"
    );
    assert_eq!(
        bench.text("steadyhand.toml"),
        format!(
            "[mcp.home]\ncommand = \"python3\"\nargs = [\"-S\", \"-E\", {script:?}, \"well\"]\n"
        )
    );
    let (code, _, stderr) = parts(&bench.run("mcp test home"));
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn mcp_add_keeps_everything_else_to_the_letter() {
    let bench = Bench::with(OWN);
    let words = [
        "mcp",
        "add",
        "new-one",
        "--env",
        "TOKEN",
        "--env",
        "MODE=a=b c",
        "--cwd",
        "sub",
        "--",
        "uv",
        "run",
        "two words",
    ];
    let (code, _, stderr) = parts(&bench.run_words(&words));
    assert_eq!(code, 0, "{stderr}");
    let text = bench.text("steadyhand.toml");
    let added = text
        .strip_prefix(OWN)
        .unwrap_or_else(|| panic!("changed: {text}"));
    assert_eq!(
        added,
        "\n[mcp.new-one]\ncommand = \"uv\"\nargs = [\"run\", \"two words\"]\ncwd = \"sub\"\nenv = { TOKEN = \"${env:TOKEN}\", MODE = \"a=b c\" }\n"
    );
}

#[test]
fn mcp_add_refuses_a_name_that_is_taken_or_none_and_changes_nothing() {
    let bench = Bench::with(OWN);
    for (name, code_wanted, said) in [
        (
            "calendar",
            2,
            "there is an MCP server calendar already (steadyhand.toml:11)",
        ),
        ("no name", 8, "cannot be the name"),
    ] {
        let (code, _, stderr) = parts(&bench.run_words(&["mcp", "add", name, "--", "true"]));
        assert_eq!(code, code_wanted, "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
        assert_eq!(bench.text("steadyhand.toml"), OWN);
    }
    let (code, _, stderr) = parts(&bench.run("mcp add x"));
    assert_eq!(code, 2, "{stderr}");
    let left = std::fs::read_dir(bench.path()).expect("a folder");
    let left = left.map(|entry| entry.expect("an entry").file_name());
    // The audit log has what was tried.
    let left: Vec<_> = left.filter(|name| name != ".local").collect();
    assert_eq!(left.len(), 1, "nothing else is left: {left:?}");
}

#[test]
fn mcp_add_does_not_touch_a_file_that_is_wrong_already() {
    let bench = Bench::with("[tools.x]\nkind = \"mok\"\n");
    let (code, _, stderr) = parts(&bench.run("mcp add y -- true"));
    assert_eq!(code, 8, "{stderr}");
    assert_eq!(bench.text("steadyhand.toml"), "[tools.x]\nkind = \"mok\"\n");
}

#[test]
fn mcp_add_from_below_lets_the_server_run_where_it_was_typed() {
    let bench = Bench::with("# mine\n");
    bench.write("deep/er/x", "");
    let run = bench
        .command(&["mcp", "add", "here", "--", "true"])
        .current_dir(bench.file("deep/er"))
        .assert();
    let (code, _, stderr) = parts(&run);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(
        bench.text("steadyhand.toml"),
        "# mine\n\n[mcp.here]\ncommand = \"true\"\ncwd = \"deep/er\"\n"
    );
}

#[test]
fn mcp_add_warns_of_a_secret_in_the_clear() {
    let bench = Bench::empty();
    let words = ["mcp", "add", "x", "--env", "API_KEY=abcdefgh", "--", "true"];
    let (code, stdout, stderr) = parts(&bench.run_words(&words));
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("--env API_KEY alone"), "{stderr}");
    assert!(stdout.contains("API_KEY = \"…\""), "{stdout}");
    assert!(bench.text("steadyhand.toml").contains("abcdefgh"));
}

#[test]
fn mcp_add_takes_an_address_with_headers() {
    let bench = Bench::empty();
    let token = "Authorization: Bearer ${env:TOKEN}";
    let words = [
        "mcp",
        "add",
        "remote",
        "https://127.0.0.1:1/mcp",
        "--header",
        token,
    ];
    let (code, _, stderr) = parts(&bench.run_words(&words));
    assert_eq!(code, 0, "{stderr}");
    let (code, _, stderr) = parts(&bench.run("mcp add other -- http://127.0.0.1:1/sse"));
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(
        bench.text("steadyhand.toml"),
        "[mcp.remote]\nurl = \"https://127.0.0.1:1/mcp\"\nheaders = { Authorization = \"Bearer ${env:TOKEN}\" }\n\n[mcp.other]\nurl = \"http://127.0.0.1:1/sse\"\n"
    );
    let clear = [
        "mcp",
        "add",
        "x",
        "http://127.0.0.1:1/",
        "--header",
        "Authorization: Bearer abcdefghijkl",
    ];
    let (code, stdout, stderr) = parts(&bench.run_words(&clear));
    assert_eq!(code, 0, "{stderr}");
    assert!(!stdout.contains("abcdefghijkl"), "{stdout}");
    assert!(stderr.contains("stands in the file as it is"), "{stderr}");
    for wrong in [
        vec!["mcp", "add", "y", "ftp://127.0.0.1"],
        vec![
            "mcp",
            "add",
            "y",
            "http://127.0.0.1:1/",
            "--header",
            "nothing",
        ],
        vec!["mcp", "add", "y", "http://127.0.0.1:1/", "--env", "A=1"],
        vec!["mcp", "add", "y", "--header", "a: b", "--", "true"],
    ] {
        let (code, _, stderr) = parts(&bench.run_words(&wrong));
        assert_eq!(code, 2, "{wrong:?}: {stderr}");
        assert!(stderr.contains("help: "), "{stderr}");
    }
}

#[test]
fn mcp_remove_takes_the_server_with_its_comment_and_its_tables_and_nothing_else() {
    let bench = Bench::with(OWN);
    let (code, stdout, stderr) = parts(&bench.run("mcp remove calendar"));
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(stdout, "Removed [mcp.calendar] from steadyhand.toml\n");
    let (before, rest) = OWN.split_once("# The calendar").expect("a comment");
    let (_, after) = rest.split_once("[mcp.other]").expect("a table");
    assert_eq!(
        bench.text("steadyhand.toml"),
        format!("{before}[mcp.other]{after}")
    );
    let (code, _, stderr) = parts(&bench.run("mcp remove other"));
    assert_eq!(code, 0, "{stderr}");
    let left = bench.text("steadyhand.toml");
    assert!(!left.contains("[mcp"), "{left}");
    assert!(left.contains("# My tools.    Keep this comment!"), "{left}");
    assert!(left.contains("# ------ servers ------"), "{left}");
    let (code, _, stderr) = parts(&bench.run("config check"));
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn a_linked_file_stays_linked_and_its_permissions_stay() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::empty();
    bench.write("real/mine.toml", "# mine\n");
    let real = bench.file("real/mine.toml");
    std::fs::set_permissions(&real, PermissionsExt::from_mode(0o640)).expect("a file");
    std::os::unix::fs::symlink(&real, bench.file("steadyhand.toml")).expect("a link");
    let (code, _, stderr) = parts(&bench.run("mcp add x -- true"));
    assert_eq!(code, 0, "{stderr}");
    assert!(bench.file("steadyhand.toml").is_symlink());
    assert!(bench.text("real/mine.toml").contains("[mcp.x]"));
    let mode = std::fs::metadata(&real)
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
}

#[test]
fn a_file_of_another_program_is_not_written() {
    let bench = Bench::empty();
    let mcp_json = r#"{"mcpServers": {}}"#;
    bench.write(".mcp.json", mcp_json);
    let (code, _, stderr) = parts(&bench.run("mcp add x -c .mcp.json -- true"));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("read, never written"), "{stderr}");
    assert_eq!(bench.text(".mcp.json"), mcp_json);
}

#[test]
fn tables_that_are_written_inline_are_added_to_and_removed_from() {
    let text = "mcp = { a = { command = \"true\" } }\n".to_owned();
    let bench = Bench::with(&text);
    let (code, _, stderr) = parts(&bench.run("mcp add b -- false"));
    assert_eq!(code, 0, "{stderr}");
    assert!(
        bench
            .text("steadyhand.toml")
            .contains("b = { command = \"false\" }")
    );
    let (code, _, stderr) = parts(&bench.run("mcp remove b"));
    assert_eq!(code, 0, "{stderr}");
    assert!(!bench.text("steadyhand.toml").contains("false"));
}
