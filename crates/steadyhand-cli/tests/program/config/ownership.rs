//! Files that somebody else could have written: not used without consent, by any command and by any way they are named.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use steadyhand_cli::extensions::EXTENSIONS;

use crate::support::{Workplace, parts};

/// Nobody has this number.
const STRANGER: u32 = 42_424;

/// Whatever starts something of it leaves a file.
const CONFIG: &str = r#"
[tools.mark]
kind = "command"
command = ["touch", "it-ran"]
idempotent = true

[mcp.mark]
command = "touch"
args = ["it-ran"]
"#;

const HARMLESS: &str = "[tools.hello]\nkind = \"mock\"\nmock_response = \"hi\"\n";

/// Whether files can be given away here. If not, that is said: such a test would prove nothing.
fn can_give_away() -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let can = chown(folder.path(), Some(STRANGER), None).is_ok();
    if !can {
        eprintln!("SKIPPED: only root can make files of another user; run this as root");
    }
    can
}

fn give_away(path: &Path) {
    chown(path, Some(STRANGER), None).expect("root gives files away");
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
}

/// It ends with the error for files of others, which says whose the file is and what to do, and nothing was started.
fn assert_refused(workplace: &Workplace, command: &str, names: &[&str]) {
    let (code, stdout, stderr) = parts(&workplace.run(command));
    assert_eq!(code, 8, "{command}: {stdout}{stderr}");
    for name in names.iter().chain(&["--trust", "nothing was run"]) {
        assert!(stderr.contains(name), "{command}: {name} in {stderr}");
    }
    for place in ["it-ran", "here/it-ran", "there/it-ran"] {
        assert!(!workplace.file(place).exists(), "{command} ran it");
    }
}

#[test]
fn s06_no_command_uses_a_configuration_of_another_user() {
    if !can_give_away() {
        return;
    }
    let workplace = Workplace::with_config(CONFIG);
    give_away(&workplace.file("steadyhand.toml"));
    for command in [
        "call mark",
        "call mark --local",
        "tools list",
        "tools show mark",
        "batch calls.ndjson",
        "serve --listen 127.0.0.1:0",
        "mcp-stdio",
        "mcp",
        "mcp add other -- true",
        "verify",
        "chat hello",
        "models",
        "config check",
        "config show",
        "calls",
        "metrics",
    ] {
        workplace.write("calls.ndjson", "{\"tool\":\"mark\"}\n");
        assert_refused(
            &workplace,
            command,
            &["steadyhand.toml", "42424", "0644", "chown"],
        );
    }
    // These tell what there is, and use nothing of it.
    for command in ["doctor", "config path", "keys", "connect"] {
        let (_, stdout, stderr) = parts(&workplace.run(command));
        assert!(
            !workplace.file("it-ran").exists(),
            "{command}: {stdout}{stderr}"
        );
    }
    let (_, stdout, _) = parts(&workplace.run("doctor"));
    assert!(stdout.contains("42424"), "{stdout}");
    let (_, _, stderr) = parts(&workplace.run("tools list --json"));
    assert!(stderr.contains("\"config_untrusted\""), "{stderr}");
    let (code, _, stderr) = parts(&workplace.run("call mark --trust"));
    assert_eq!(code, 0, "{stderr}");
    assert!(workplace.file("it-ran").exists());
    // It was for that run.
    fs::remove_file(workplace.file("it-ran")).expect("it ran");
    assert_refused(&workplace, "call mark", &["42424"]);
}

#[test]
fn s06_a_configuration_that_others_can_write_or_replace_is_not_used() {
    let workplace = Workplace::with_config(CONFIG);
    let (file, folder) = (workplace.file("steadyhand.toml"), workplace.path());
    for (of_file, of_folder, told) in [
        (0o666, 0o755, Some("everybody can write it")),
        (0o602, 0o700, Some("everybody can write it")),
        (0o644, 0o777, Some("everybody can replace it in its folder")),
        (0o644, 0o1777, None),
        (0o600, 0o755, None),
    ] {
        mode(&file, of_file);
        mode(folder, of_folder);
        match told {
            Some(told) => assert_refused(&workplace, "call mark", &[told, "chmod"]),
            None => {
                workplace.run("call mark").code(0);
                fs::remove_file(workplace.file("it-ran")).expect("it ran");
            }
        }
    }
    if !can_give_away() {
        return;
    }
    mode(folder, 0o755);
    for (of_file, of_folder, told) in [
        (0o664, 0o755, Some("can write it")),
        (0o644, 0o775, Some("can replace it in its folder")),
        (0o644, 0o755, None),
    ] {
        chown(&file, None, Some(STRANGER)).expect("another group");
        chown(folder, None, Some(STRANGER)).expect("another group");
        mode(&file, of_file);
        mode(folder, of_folder);
        match told {
            Some(told) => assert_refused(&workplace, "call mark", &[told, "gid 42424"]),
            None => {
                workplace.run("call mark").code(0);
                fs::remove_file(workplace.file("it-ran")).expect("it ran");
            }
        }
    }
    // A folder of another user, a sticky one, too: its owner replaces what is in it.
    mode(folder, 0o1755);
    give_away(folder);
    assert_refused(&workplace, "call mark", &["its folder", "42424"]);
}

#[test]
fn s06_what_a_link_leads_to_counts_and_the_link_and_its_folder() {
    if !can_give_away() {
        return;
    }
    let workplace = Workplace::new();
    let link = workplace.file("here/steadyhand.toml");
    workplace.write("there/steadyhand.toml", CONFIG);
    workplace.write("here/.keep", "");
    symlink(workplace.file("there/steadyhand.toml"), &link).expect("a link");
    let command = "-c here/steadyhand.toml call mark";
    workplace.run(command).code(0);
    fs::remove_file(workplace.file("here/it-ran")).expect("it ran");
    mode(&workplace.file("here"), 0o777);
    assert_refused(&workplace, command, &["its folder", "here", "0777"]);
    mode(&workplace.file("here"), 0o1777);
    workplace.run(command).code(0);
    fs::remove_file(workplace.file("here/it-ran")).expect("it ran");
    std::os::unix::fs::lchown(&link, Some(STRANGER), None).expect("a link of another");
    assert_refused(&workplace, command, &["the link", "42424"]);
    std::os::unix::fs::lchown(&link, Some(0), None).expect("our link");
    give_away(&workplace.file("there/steadyhand.toml"));
    assert_refused(&workplace, command, &["belongs to", "42424"]);
    // A folder on the way that is a link is a link, too.
    chown(workplace.file("there/steadyhand.toml"), Some(0), None).expect("ours again");
    symlink(workplace.file("there"), workplace.file("way")).expect("a link");
    let command = "-c way/steadyhand.toml call mark";
    workplace.run(command).code(0);
    fs::remove_file(workplace.file("there/it-ran")).expect("it ran");
    std::os::unix::fs::lchown(workplace.file("way"), Some(STRANGER), None).expect("a link");
    assert_refused(&workplace, command, &["the link", "way"]);
    assert!(!workplace.file("there/it-ran").exists());
}

#[test]
fn s06_files_that_a_configuration_names_are_not_used_either() {
    if !can_give_away() {
        return;
    }
    let schema = r#"{"type":"object"}"#;
    let servers = r#"{"mcpServers":{"other":{"command":"touch","args":["it-ran"]}}}"#;
    let flex = r#"{"tools":{"registry":[{"name":"flex","description":"d","schema":{"type":"object"},"implementation":{"type":"mock","mockResponse":"x"}}]}}"#;
    for (name, text, config) in [
        ("steadyhand.local.toml", CONFIG, HARMLESS.to_owned()),
        (
            "servers.json",
            servers,
            format!("{HARMLESS}[import]\nmcp = [\"servers.json\"]\n"),
        ),
        (
            "flex.json",
            flex,
            format!("{HARMLESS}[import]\nflex_chat = [\"flex.json\"]\n"),
        ),
        (
            "input.json",
            schema,
            "[tools.hello]\nkind = \"mock\"\ninput = \"input.json\"\nmock_response = \"hi\"\n"
                .to_owned(),
        ),
    ] {
        let workplace = Workplace::with_config(&config);
        workplace.write(name, text);
        workplace.run("call hello").code(0);
        give_away(&workplace.file(name));
        let _ = fs::remove_file(workplace.file("it-ran"));
        assert_refused(&workplace, "call hello", &[name, "42424"]);
        workplace.run("call hello --trust").code(0);
    }
}

#[test]
fn s06_cassettes_and_plans_of_faults_that_others_could_have_written_are_not_used() {
    let workplace = Workplace::with_config(HARMLESS);
    workplace.run("call hello --record tape.jsonl").code(0);
    workplace.write(
        "plan.toml",
        "version = 1\n[[rule]]\ntools = [\"hello\"]\nevery = 1\nfail = \"network\"\n",
    );
    for (name, command) in [
        ("tape.jsonl", "call hello --replay tape.jsonl"),
        ("tape.jsonl", "call hello --record tape.jsonl"),
        ("plan.toml", "call hello --chaos plan.toml"),
    ] {
        mode(&workplace.file(name), 0o666);
        let (code, stdout, stderr) = parts(&workplace.run(command));
        assert_ne!(code, 0, "{command}: {stdout}");
        for part in [name, "everybody can write it", "--trust"] {
            assert!(stderr.contains(part), "{command}: {part} in {stderr}");
        }
        let (_, _, stderr) = parts(&workplace.run(&format!("{command} --trust")));
        assert!(!stderr.contains("everybody can write it"), "{stderr}");
        mode(&workplace.file(name), 0o600);
        let (_, _, stderr) = parts(&workplace.run(command));
        assert!(!stderr.contains("everybody can write it"), "{stderr}");
    }
}

#[test]
fn s06_without_a_home_folder_state_is_kept_where_we_started_only_if_it_is_there_and_ours_alone() {
    let mut workplace = Workplace::with_config(HARMLESS);
    workplace.set("HOME", "").set("XDG_STATE_HOME", "relative");
    let folder = workplace.file(".steadyhand/steadyhand");
    fs::create_dir_all(&folder).expect("made");
    mode(&folder, 0o700);
    mode(&workplace.file(".steadyhand"), 0o700);
    let (code, _, stderr) = parts(&workplace.run("keys create mine"));
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("from an earlier version") && stderr.contains("--state DIR"),
        "{stderr}"
    );
    assert!(folder.join("access").is_dir());
    let (_, shown, _) = parts(&workplace.run("doctor --json"));
    assert!(shown.contains("state.place"), "{shown}");
}

#[test]
fn s06_secrets_and_documents_of_others_disable_what_needs_them() {
    if !can_give_away() {
        return;
    }
    let workplace = Workplace::with_config(
        "[tools.keyed]\nkind = \"mock\"\nmock_response = \"${file:key.txt}\"\n\
         [tools.spec]\nkind = \"openapi\"\nspec = \"api.json\"\n\
         [import]\nmcp = [\"servers.json\"]\n",
    );
    workplace.write("key.txt", "sesame-sesame\n");
    workplace.write(
        "api.json",
        r#"{"openapi":"3.0.0","info":{"title":"t","version":"1"},"servers":[{"url":"http://127.0.0.1:9"}],
        "paths":{"/a":{"get":{"operationId":"ask_a","responses":{"200":{"description":"d"}}}}}}"#,
    );
    workplace.write("vars.env", "KEY=abcdefgh\n");
    workplace.write(
        "servers.json",
        r#"{"servers":{"other":{"type":"stdio","command":"touch","args":["it-ran"],"envFile":"${workspaceFolder}/vars.env"}}}"#,
    );
    for name in ["key.txt", "api.json", "vars.env"] {
        give_away(&workplace.file(name));
    }
    let (code, stdout, stderr) = parts(&workplace.run("call keyed"));
    assert_ne!(code, 0, "{stdout}");
    for part in ["key.txt", "42424", "--trust"] {
        assert!(stderr.contains(part), "{part} in {stderr}");
    }
    let (_, stdout, stderr) = parts(&workplace.run("tools list"));
    let both = format!("{stdout}{stderr}");
    assert!(both.contains("api.json is not used"), "{both}");
    assert!(!workplace.file("it-ran").exists(), "{both}");
    let (code, stdout, stderr) = parts(&workplace.run("call keyed --trust"));
    assert_eq!(code, 0, "{stdout}{stderr}");
}

#[test]
fn s06_a_configuration_of_a_folder_above_is_named_before_anything_runs() {
    let workplace = Workplace::with_config(HARMLESS);
    workplace.write("below/.keep", "");
    let run = |arguments: &[&str]| {
        let below = workplace.file("below");
        parts(&workplace.command(arguments).current_dir(below).assert())
    };
    let (code, _, stderr) = run(&["call", "hello"]);
    assert_eq!(code, 0, "{stderr}");
    let named = workplace.file("steadyhand.toml").display().to_string();
    assert!(stderr.contains(&named), "{stderr}");
    let (_, _, stderr) = parts(&workplace.run("call hello"));
    assert!(!stderr.contains(&named), "{stderr}");
    if can_give_away() {
        give_away(&workplace.file("steadyhand.toml"));
        let (code, _, stderr) = run(&["call", "hello"]);
        assert_eq!(code, 8, "{stderr}");
        assert!(stderr.contains("42424"), "{stderr}");
    }
}

#[test]
fn s06_a_running_server_does_not_take_over_what_others_change_later() {
    if !can_give_away() {
        return;
    }
    let workplace = Workplace::with_config(HARMLESS);
    let file = workplace.file("steadyhand.toml");
    let about = fs::metadata(&file).expect("the file");
    assert_eq!(about.uid(), 0);
    give_away(&file);
    let surroundings = trusting(&workplace);
    let load = || steadyhand_config::Configuration::load(Some(&file), &surroundings, &EXTENSIONS);
    assert!(load().is_ok(), "as it is when it is read first");
    fs::write(&file, CONFIG).expect("the stranger writes");
    give_away(&file);
    let report = load().err().expect("a refusal");
    let told = report.problems[0].to_string();
    assert!(told.contains("changed since it was trusted"), "{told}");
    fs::write(&file, HARMLESS).expect("what was trusted");
    assert!(load().is_ok());
}

fn trusting(workplace: &Workplace) -> steadyhand_config::Surroundings {
    use std::sync::Arc;
    use steadyhand_config::{Surroundings, keyring::SystemKeyring};
    let keyring = Arc::new(SystemKeyring::default());
    Surroundings::given([], workplace.path(), workplace.path(), keyring).trusting_everything()
}

/// Runs the program at a terminal where a person types this: its exit code, and what the person saw.
fn at_a_terminal(workplace: &Workplace, words: &[&str], typed: &str) -> (Option<i32>, String) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::io::{Read, Write};
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&person).expect("a terminal");
    unlockpt(&person).expect("a terminal");
    let name = ptsname(&person, Vec::new()).expect("its name");
    let name = name.into_string().expect("text");
    let terminal = || {
        let mut options = fs::File::options();
        options
            .read(true)
            .write(true)
            .open(&name)
            .expect("it opens")
    };
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_steadyhand"))
        .args(words)
        .current_dir(workplace.path())
        .env_clear()
        .envs(crate::support::measured())
        .env("PATH", std::env::var("PATH").unwrap_or_default())
        .env("HOME", workplace.path())
        .env("TERM", "dumb")
        .stdin(terminal())
        .stdout(std::process::Stdio::null())
        .stderr(terminal())
        .spawn()
        .expect("it starts");
    let mut person = fs::File::from(person);
    person.write_all(typed.as_bytes()).expect("typed");
    let code = child.wait().expect("its end").code();
    let mut seen = vec![0; 64 * 1024];
    // The program is gone: what it wrote is there.
    let size = person.read(&mut seen).unwrap_or_default();
    (code, String::from_utf8_lossy(&seen[..size]).into_owned())
}

#[test]
fn s06_at_a_terminal_a_person_is_asked_and_a_yes_is_for_what_they_were_shown() {
    if !can_give_away() {
        return;
    }
    let workplace = Workplace::with_config(CONFIG);
    give_away(&workplace.file("steadyhand.toml"));
    for (typed, is_used) in [
        ("n\n", false),
        ("\n", false),
        ("\u{4}", false),
        ("y\n", true),
    ] {
        let (code, seen) = at_a_terminal(&workplace, &["call", "mark", "--local"], typed);
        assert!(seen.contains("Use it? [y/N]"), "{typed:?}: {seen}");
        assert!(seen.contains("42424"), "{typed:?}: {seen}");
        assert_eq!(code == Some(0), is_used, "{typed:?}: {seen}");
        assert_eq!(workplace.file("it-ran").exists(), is_used, "{typed:?}");
    }
    // Where nobody is to be asked, nobody is.
    fs::remove_file(workplace.file("it-ran")).expect("it ran");
    let (code, seen) = at_a_terminal(&workplace, &["call", "mark", "--no-input"], "y\n");
    assert_eq!(code, Some(8), "{seen}");
    assert!(!seen.contains("Use it?"), "{seen}");
    // Secrets that it names are asked about before anything runs.
    let workplace = Workplace::with_config(
        "[tools.keyed]\nkind = \"mock\"\nmock_response = \"${file:key.txt}\"\n",
    );
    workplace.write("key.txt", "sesame-sesame\n");
    give_away(&workplace.file("key.txt"));
    let (code, seen) = at_a_terminal(&workplace, &["call", "keyed", "--local"], "y\n");
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("key.txt"), "{seen}");
}
