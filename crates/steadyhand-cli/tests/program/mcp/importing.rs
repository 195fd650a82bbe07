//! Servers of other programs' files: seen, taken over, called; the files stay as they are.

use serde_json::json;

use super::{Bench, python, script};
use crate::support::parts;

const SECRET: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";

fn mcp_json() -> String {
    let server = |mode: &str| json!({"command": python(), "args": ["-S", "-E", script(), mode]});
    let mut env = server("env");
    env["env"] = json!({"GITHUB_TOKEN": SECRET, "FROM": "${HOUSE:-default}"});
    let mut off = server("well");
    off["disabled"] = json!(true);
    let servers = json!({"mcpServers": {"one": server("well"), "two": env, "old": off}});
    serde_json::to_string_pretty(&servers).expect("JSON")
}

fn imported() -> Bench {
    let bench = Bench::with("# mine\n[import]\nmcp = [\".mcp.json\"]\n");
    bench.write(".mcp.json", &mcp_json());
    bench
}

#[test]
fn servers_of_mcp_json_work_end_to_end() {
    let bench = imported();
    let (code, stdout, stderr) = parts(&bench.run("call one__echo message=hi"));
    assert_eq!((code, stdout.as_str()), (0, "hi\n"), "{stderr}");
    let (code, stdout, stderr) = parts(&bench.run("call two__environment"));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("\"FROM\": \"default\""), "{stdout}");
    assert!(
        !stdout.contains(SECRET) && stdout.contains("[redacted]"),
        "{stdout}"
    );
    let listed = bench.json("mcp list --json");
    let status = |name: &str| {
        let servers = listed["servers"].as_array().expect("servers");
        let server = servers
            .iter()
            .find(|server| server["name"] == name)
            .expect("it");
        (server["status"].clone(), server["place"].clone())
    };
    assert_eq!(status("one"), (json!("running"), json!(".mcp.json:3")));
    assert_eq!(status("old").0, "disabled");
    assert!(!listed.to_string().contains(SECRET), "{listed}");
    let (code, _, stderr) = parts(&bench.run("config check"));
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("3 MCP servers from other programs' files: one, two, old"),
        "{stderr}"
    );
    assert_eq!(bench.text(".mcp.json"), mcp_json());
    bench.assert_nobody_left();
}

#[test]
fn a_plain_mcp_json_needs_no_file_of_ours() {
    let bench = Bench::empty();
    bench.write(".mcp.json", &mcp_json());
    let (code, stdout, stderr) = parts(&bench.run("call one__echo message=hi -c .mcp.json"));
    assert_eq!((code, stdout.as_str()), (0, "hi\n"), "{stderr}");
}

#[test]
fn a_table_of_ours_adds_to_an_imported_server_without_repeating_its_command() {
    let bench = imported();
    let config = "[import]\nmcp = [\".mcp.json\"]\n[mcp.one]\neach.echo = { timeout = \"3s\" }\nalias = { echo = \"say\" }\n[mcp.two]\nenv = { OURS = \"${env:HOME}\" }\n";
    bench.write("steadyhand.toml", config);
    let (code, stdout, stderr) = parts(&bench.run("call say message=hi"));
    assert_eq!((code, stdout.as_str()), (0, "hi\n"), "{stderr}");
    let shown = bench.json("tools show one__echo --json");
    assert_eq!(shown["policy"]["timeout"]["value"], "3s");
    let (_, stdout, stderr) = parts(&bench.run("call two__environment"));
    assert!(
        stdout.contains("\"OURS\": "),
        "what it says itself stands: {stdout}{stderr}"
    );
    bench.write("steadyhand.toml", &config.replace("[mcp.one]", "[mcp.won]"));
    let (code, _, stderr) = parts(&bench.run("config check"));
    assert_eq!(code, 8, "{stderr}");
    assert!(
        stderr.contains("mcp.won has neither command nor url"),
        "{stderr}"
    );
}

#[test]
fn mcp_import_shows_what_is_there_and_changes_nothing() {
    let bench = Bench::empty();
    bench.write(".mcp.json", &mcp_json());
    bench.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"cursory": {"command": "npx", "args": ["-y", "thing", "--key", "sk-proj-abcdefghijklmnopqrstuvwxyz012345"]}}}"#,
    );
    let (code, stdout, stderr) = parts(&bench.run("mcp import"));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("one\tfound\t/"), "{stdout}");
    assert!(stdout.contains("old\tswitched off\t"), "{stdout}");
    assert!(stdout.contains("cursory\tfound\tnpx -y thing"), "{stdout}");
    assert!(
        !stdout.contains("sk-proj-abc") && !stdout.contains(SECRET),
        "{stdout}"
    );
    assert!(
        stderr.contains("steadyhand mcp import .mcp.json --all"),
        "{stderr}"
    );
    assert!(!bench.file("steadyhand.toml").exists());
    let listed = bench.json("mcp import cursor --json");
    assert_eq!(listed["count"], 1);
    assert_eq!(listed["servers"][0]["program"], "Cursor");
}

#[test]
fn mcp_import_takes_all_over_by_reading_the_file_where_it_is() {
    let bench = Bench::empty();
    bench.write(".mcp.json", &mcp_json());
    let (code, stdout, stderr) = parts(&bench.run("mcp import .mcp.json --all"));
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stdout.starts_with("steadyhand.toml now reads .mcp.json: 3 servers (one, two, old)"),
        "{stdout}"
    );
    let text = bench.text("steadyhand.toml");
    assert_eq!(text, "[import]\nmcp = [\".mcp.json\"]\n");
    let (code, stdout, stderr) = parts(&bench.run("call one__echo message=hi"));
    assert_eq!((code, stdout.as_str()), (0, "hi\n"), "{stderr}");
    // Once more changes nothing.
    let (code, _, stderr) = parts(&bench.run("mcp import .mcp.json --all"));
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(bench.text("steadyhand.toml"), text);
}

#[test]
fn mcp_import_takes_some_and_leaves_the_others_out() {
    let bench = Bench::with("# mine\n[tools.x]\nkind = \"mock\"\nmock_response = 1\n");
    bench.write(".mcp.json", &mcp_json());
    let (code, _, stderr) = parts(&bench.run("mcp import .mcp.json one"));
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(
        bench.text("steadyhand.toml"),
        "# mine\n[tools.x]\nkind = \"mock\"\nmock_response = 1\n\n[import]\nmcp = [\".mcp.json\"]\nskip = [\"two\", \"old\"]\n"
    );
    let (code, _, stderr) = parts(&bench.run("mcp import .mcp.json two"));
    assert_eq!(code, 0, "{stderr}");
    assert!(
        bench
            .text("steadyhand.toml")
            .ends_with("skip = [\"old\"]\n")
    );
    let (code, stdout, stderr) = parts(&bench.run("mcp remove one"));
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stdout.contains("one of .mcp.json is left out from now on"),
        "{stdout}"
    );
    assert!(
        bench
            .text("steadyhand.toml")
            .ends_with("skip = [\"old\", \"one\"]\n")
    );
    assert_eq!(bench.text(".mcp.json"), mcp_json());
}

#[test]
fn mcp_import_says_what_is_not_there() {
    let bench = Bench::empty();
    bench.write(".mcp.json", &mcp_json());
    for (words, said) in [
        (
            "mcp import nothing.json",
            "nothing.json is neither a file nor a known program",
        ),
        ("mcp import curser", "Did you mean cursor?"),
        ("mcp import .mcp.json ones", "Did you mean one?"),
        (
            "mcp import cursor --all",
            "there are no MCP servers in cursor",
        ),
    ] {
        let (code, _, stderr) = parts(&bench.run(words));
        assert_eq!(code, 2, "{words}: {stderr}");
        assert!(stderr.contains(said), "{words}: {stderr}");
    }
    assert!(!bench.file("steadyhand.toml").exists());
}

#[test]
fn what_connect_wrote_into_another_file_is_not_imported_back() {
    for way in ["--http", "--stdio"] {
        let bench = Bench::with("[import]\nmcp = [\"cursor\"]\n");
        bench.write(".cursor/mcp.json", &mcp_json());
        let (code, _, stderr) =
            parts(&bench.run(&format!("connect cursor {way} --install --scope project")));
        assert_eq!(code, 0, "{stderr}");
        assert!(bench.text(".cursor/mcp.json").contains("\"steadyhand\""));
        let listed = bench.json("mcp list --json");
        let servers = listed["servers"].as_array().expect("servers").iter();
        let names: Vec<_> = servers.map(|server| server["name"].clone()).collect();
        assert_eq!(names, ["one", "two", "old"], "{way}");
        let (code, stdout, stderr) = parts(&bench.run("call one__echo message=hi"));
        assert_eq!((code, stdout.as_str()), (0, "hi\n"), "{stderr}");
        bench.assert_nobody_left();
    }
}

#[test]
fn a_configuration_that_starts_itself_does_so_a_few_times_only() {
    let program = env!("CARGO_BIN_EXE_steadyhand");
    let mut bench = Bench::with(&format!(
        "[tools.ping]\nkind = \"mock\"\nmock_response = \"pong\"\n\n[mcp.me]\ncommand = {program:?}\nargs = [\"mcp-stdio\"]\n"
    ));
    let (code, stdout, stderr) = parts(&bench.run("call me__ping"));
    assert_eq!((code, stdout.as_str()), (0, "pong\n"), "{stderr}");
    bench.assert_nobody_left();
    bench.workplace.set("STEADYHAND_RUN", "a.1.b.1.c.1.d.1.");
    let (code, _, stderr) = parts(&bench.run("call ping"));
    assert_eq!(code, 8, "{stderr}");
    assert!(
        stderr.contains("Steadyhand was started by itself, 4 times over")
            && stderr.contains("give it a file of its own with -c"),
        "{stderr}"
    );
}
