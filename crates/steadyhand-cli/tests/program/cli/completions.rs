//! What shells offer while a line is typed, and the manual.

use crate::support::{Workplace, parts};

const CONFIG: &str = r#"
[tools.home_lights]
kind = "builtin"
use = "echo"

[mcp.calendar]
command = "true"

[models]
local = { provider = "ollama", model = "qwen3:8b" }
"#;

/// What is offered behind these words, as fish asks for it.
fn offered(workplace: &mut Workplace, words: &[&str]) -> Vec<String> {
    workplace.set("STEADYHAND_COMPLETE", "fish");
    let words = [&["--", "steadyhand"], words].concat();
    let (code, stdout, stderr) = parts(&workplace.run_words(&words));
    assert_eq!(code, 0, "{stderr}");
    let names = stdout
        .lines()
        .map(|line| line.split('\t').next().unwrap_or_default().to_owned());
    names.collect()
}

#[test]
fn names_of_tools_servers_models_and_calls_are_completed() {
    let mut workplace = Workplace::with_config(CONFIG);
    let (code, _, stderr) = parts(&workplace.run("call home_lights text=x --id the-call-1"));
    assert_eq!(code, 0, "{stderr}");
    for (words, name) in [
        (&["call", ""][..], "home_lights"),
        (&["tools", "show", "home"], "home_lights"),
        (&["mcp", "test", ""], "calendar"),
        (&["chat", "--model", ""], "local"),
        (&["calls", "show", ""], "the-call-1"),
        (&["connect", ""], "claude-desktop"),
        (&["doc"], "doctor"),
    ] {
        let offered = offered(&mut workplace, words);
        assert!(
            offered.iter().any(|it| it == name),
            "{words:?}: {offered:?}"
        );
    }
}

#[test]
fn a_configuration_that_the_line_names_is_the_one_that_counts() {
    let mut workplace = Workplace::with_config(CONFIG);
    workplace.write(
        "other.toml",
        "[tools.another]\nkind = \"builtin\"\nuse = \"echo\"\n",
    );
    let names = offered(&mut workplace, &["-c", "other.toml", "call", ""]);
    assert!(names.contains(&"another".to_owned()), "{names:?}");
    assert!(!names.contains(&"home_lights".to_owned()), "{names:?}");
}

#[test]
fn a_package_gets_the_files_of_all_shells_and_a_page_for_every_command() {
    let workplace = Workplace::new();
    let (code, _, stderr) = parts(&workplace.run("completions --into out"));
    assert_eq!(code, 0, "{stderr}");
    for file in [
        "steadyhand",
        "_steadyhand",
        "steadyhand.fish",
        "steadyhand.ps1",
        "steadyhand.elv",
    ] {
        let text = std::fs::read_to_string(workplace.file(&format!("out/{file}")));
        assert!(
            text.is_ok_and(|text| text.contains("STEADYHAND_COMPLETE")),
            "{file}"
        );
    }
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let (code, stdout, _) = parts(&workplace.run(&format!("completions {shell}")));
        assert_eq!(code, 0);
        assert!(stdout.contains("STEADYHAND_COMPLETE"), "{stdout}");
    }
    let written = workplace.json("man out/man1 --json");
    let files: Vec<&str> = written["files"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| it.as_str())
        .collect();
    for page in [
        "steadyhand.1",
        "steadyhand-call.1",
        "steadyhand-doctor.1",
        "steadyhand-mcp-test.1",
    ] {
        assert!(files.contains(&page), "{files:?}");
        let text =
            std::fs::read_to_string(workplace.file(&format!("out/man1/{page}"))).expect("a page");
        assert!(
            text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"),
            "{text}"
        );
    }
    let (code, stdout, _) = parts(&workplace.run("man"));
    assert_eq!(code, 0);
    assert!(stdout.contains(".TH steadyhand 1"), "{stdout}");
}
