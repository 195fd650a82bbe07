//! Small switches: a tool that is left out, a secret that is kept, everything that passes over the wire.

use crate::mcp::{Bench, hostile};
use crate::support::{Workplace, parts};

#[test]
fn a_tool_that_is_switched_off_is_offered_to_nobody_until_it_is_on_again() {
    let config = "# mine\n[tools.echo]\nkind = \"builtin\" # here\nuse = \"echo\"\n\n[tools.other]\nkind = \"builtin\"\nuse = \"echo\"\n";
    let workplace = Workplace::with_config(config);
    let (code, stdout, stderr) = parts(&workplace.run("tools disable echo"));
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stdout.contains("steadyhand.toml says tools.echo.enabled = false"),
        "{stdout}"
    );
    let text = std::fs::read_to_string(workplace.file("steadyhand.toml")).expect("the file");
    assert_eq!(
        text,
        config.replace("use = \"echo\"\n\n", "use = \"echo\"\nenabled = false\n\n")
    );
    let listed = workplace.json("tools list --json");
    assert_eq!(listed["count"], 1, "{listed}");
    let (code, _, stderr) = parts(&workplace.run("call echo text=hi"));
    assert_eq!(code, 5, "{stderr}");
    assert!(stderr.contains("steadyhand tools enable echo"), "{stderr}");
    assert_eq!(workplace.json("tools enable echo --json")["changed"], true);
    assert_eq!(workplace.json("tools enable echo --json")["changed"], false);
    assert_eq!(parts(&workplace.run("call echo text=hi")).0, 0);
    let (code, _, stderr) = parts(&workplace.run("tools disable ecco"));
    assert_eq!(code, 5, "{stderr}");
    assert!(stderr.contains("Did you mean echo?"), "{stderr}");
}

#[test]
fn one_tool_of_a_server_is_switched_off_alone() {
    let bench = Bench::with(&hostile("search", "well"));
    // Its tools are known once it has been up.
    assert_eq!(parts(&bench.run("call search__echo message=hi")).0, 0);
    assert_eq!(parts(&bench.run("tools disable search__echo")).0, 0);
    let (_, stdout, _) = parts(&bench.run("tools list"));
    assert!(
        !stdout.contains("search__echo\t") && stdout.contains("search__note\t"),
        "{stdout}"
    );
}

#[test]
fn with_vv_every_message_of_a_server_is_seen_and_no_secret_with_it() {
    let config = hostile("search", "well") + "env.KEY = \"${env:MY_KEY}\"\n";
    let mut workplace = Workplace::with_config(&config);
    workplace.set("MY_KEY", "hunter2-hunter2");
    let (code, _, stderr) = parts(&workplace.run("-vv call search__echo message=hunter2-hunter2"));
    assert_eq!(code, 0, "{stderr}");
    let seen = |words: &str| stderr.lines().any(|line| line.contains(words));
    assert!(
        seen(r#"{"jsonrpc":"2.0""#) && seen(r#""method":"tools/call""#),
        "{stderr}"
    );
    assert!(seen("way=\"sent\"") && seen("way=\"received\""), "{stderr}");
    let wire = stderr.lines().filter(|line| line.contains("way="));
    for line in wire {
        assert!(!line.contains("hunter2"), "{line}");
    }
}

#[test]
fn a_secret_that_cannot_be_kept_is_not_shown() {
    let mut workplace = Workplace::new();
    // Not the key store of whoever runs this.
    workplace.set("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/bus");
    let run = workplace.command(&["config", "set-secret", "anthropic"]);
    let (code, stdout, stderr) = parts(&run.stdin("sk-very-secret-1\n").assert());
    assert_eq!((code, stdout.as_str()), (3, ""), "{stderr}");
    assert!(
        stderr.contains("anthropic was not kept") && stderr.contains("help: "),
        "{stderr}"
    );
    assert!(!stderr.contains("very-secret"), "{stderr}");
    let run = workplace.command(&["config", "set-secret", "a/b"]);
    assert_eq!(parts(&run.stdin("x").assert()).0, 2);
}
