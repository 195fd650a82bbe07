//! `${env:…}`, `${file:…}`, `${keyring:…}`.

use std::fs;

use serde_json::json;
use steadyhand_config::reference::Resolver;
use steadyhand_config::secret::looks_like_a_key;

use super::{exposed, surroundings};

fn resolver() -> Resolver {
    Resolver::new(surroundings(), "/work/app")
}

#[test]
fn references_are_replaced_once_and_nothing_is_run() {
    for (written, expected) in [
        ("plain", "plain"),
        ("${env:REGION}", "north-europe"),
        (
            "a ${env:REGION} b ${env:REGION}",
            "a north-europe b north-europe",
        ),
        ("${env:REGION:-else}", "north-europe"),
        ("${env:NOT_SET:-else}", "else"),
        ("${env:NOT_SET:-}", ""),
        ("${env:EMPTY}", ""),
        ("${env:EMPTY:-else}", "else"),
        ("${env:NOT_SET:-https://h:1/?a=b:-c}", "https://h:1/?a=b:-c"),
        ("${keyring:steadyhand/google}", "ya29-from-the-keyring"),
        ("$${env:REGION}", "${env:REGION}"),
        (
            "cost: $5, $HOME, {x}, $(reboot), `reboot`",
            "cost: $5, $HOME, {x}, $(reboot), `reboot`",
        ),
        ("ünï ${env:REGION} ✓", "ünï north-europe ✓"),
    ] {
        let resolved = resolver().resolve(written);
        let resolved = resolved.unwrap_or_else(|unresolved| panic!("{written}: {unresolved}"));
        assert_eq!(resolved.text, expected, "{written}");
    }
}

#[test]
fn a_reference_that_stands_for_nothing_is_named_with_its_place_and_a_way_out() {
    for (written, column, reason, help) in [
        (
            "${env:NOT_SET}",
            1,
            "NOT_SET is not set",
            "${env:NOT_SET:-…}",
        ),
        ("ünï ${env:NOT_SET}", 5, "NOT_SET is not set", "set it"),
        ("${env:}", 1, "'' is no name", "${env:NAME}"),
        ("${env:A B}", 1, "'A B' is no name", "${env:NAME}"),
        (
            "${env:REGION:else}",
            1,
            "'REGION:else' is no name",
            "${env:NAME:-default}",
        ),
        ("x ${env:REGION", 3, "never closed", "$${"),
        (
            "${env:A:-${env:REGION}}",
            1,
            "cannot hold another",
            "${env:NAME}",
        ),
        ("${REGION}", 1, "does not say where", "${env:REGION}"),
        ("${}", 1, "no reference", "$${"),
        (
            "${vault:x}",
            1,
            "no kind of reference 'vault'",
            "${keyring:service/user}",
        ),
        ("${file:}", 1, "names no file", "${file:/path}"),
        (
            "${file:missing.txt}",
            1,
            "/work/app/missing.txt cannot be read",
            "create the file",
        ),
        ("${file:/}", 1, "/ is no file", "regular file"),
        (
            "${keyring:steadyhand}",
            1,
            "names no entry",
            "${keyring:service/user}",
        ),
        (
            "${keyring:steadyhand/x}",
            1,
            "no entry for user 'x'",
            "password manager",
        ),
        (
            "${keyring:nowhere/x}",
            1,
            "no key store that can be reached: no D-Bus",
            "${env:NAME}",
        ),
        ("${keyring:locked/x}", 1, "is locked", "unlock it"),
    ] {
        let unresolved = resolver().resolve(written).expect_err(written);
        assert_eq!(unresolved.column, column, "{written}");
        assert!(
            unresolved.reason.contains(reason),
            "{written}: {unresolved}"
        );
        assert!(unresolved.help.contains(help), "{written}: {unresolved}");
        assert!(
            written.contains(&unresolved.reference),
            "{written}: {unresolved}"
        );
    }
}

#[test]
fn files_are_read_beside_the_configuration_within_bounds() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, content: &[u8]| {
        fs::write(folder.path().join(name), content).expect("a file");
    };
    write("token", b"s3cret-value\r\n");
    write("two lines", b"one\ntwo\n\n");
    write("empty", b"\n");
    write("large", &vec![b'x'; 64 * 1024 + 1]);
    write("full", &vec![b'x'; 64 * 1024]);
    write("binary", &[0xff, 0xfe]);
    let resolver = Resolver::new(surroundings(), folder.path());
    let read = |name: &str| resolver.resolve(&format!("${{file:{name}}}"));
    assert_eq!(read("token").expect("readable").text, "s3cret-value");
    assert_eq!(read("two lines").expect("readable").text, "one\ntwo");
    assert_eq!(read("full").expect("readable").text.len(), 64 * 1024);
    for (name, reason) in [
        ("empty", "is empty"),
        ("large", "larger than 64 KiB"),
        ("binary", "not valid UTF-8"),
    ] {
        let unresolved = read(name).expect_err(name);
        assert!(unresolved.reason.contains(reason), "{name}: {unresolved}");
    }
    let absolute = folder.path().join("token");
    let absolute = format!("Bearer ${{file:{}}}", absolute.display());
    assert_eq!(
        resolver.resolve(&absolute).expect("readable").text,
        "Bearer s3cret-value"
    );
}

#[cfg(unix)]
#[test]
fn a_pipe_in_place_of_a_secret_file_is_refused_instead_of_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(
        made.is_ok_and(|status| status.success()),
        "mkfifo is part of every Unix"
    );
    let resolver = Resolver::new(surroundings(), folder.path());
    let unresolved = resolver.resolve("${file:pipe}").expect_err("a pipe");
    assert!(unresolved.reason.ends_with("is no file"), "{unresolved}");
}

#[test]
fn what_must_be_hidden_is_known_by_where_it_came_from_and_what_it_is_called() {
    for (field, written, secrets) in [
        ("url", "${env:REGION}", vec!["north-europe"]),
        ("url", "${env:NOT_SET:-north-europe}", vec![]),
        ("url", "${env:TOKEN}", vec!["tok-123456789"]),
        ("url", "${env:NOT_SET_TOKEN:-fallback}", vec!["fallback"]),
        (
            "Authorization",
            "Bearer ${env:REGION}",
            vec!["north-europe"],
        ),
        ("apiKey", "${env:REGION}", vec!["north-europe"]),
        ("X-Auth", "${env:REGION}", vec!["north-europe"]),
        ("monkey", "${env:NOT_SET:-north-europe}", vec![]),
        ("url", "${env:SHORT_KEY}", vec![]),
        ("url", "${env:DATABASE}", vec!["postgres://me:hunter2@db/x"]),
        (
            "url",
            "${keyring:steadyhand/google}",
            vec!["ya29-from-the-keyring"],
        ),
    ] {
        let resolved = resolver().resolve_field(field, written).expect(written);
        assert_eq!(exposed(&resolved.secrets), secrets, "{field} = {written}");
    }
}

#[test]
fn a_tree_is_resolved_in_place_and_what_is_missing_is_listed_by_pointer() {
    let mut tree = json!({
        "tools": {
            "a/b~c": {"headers": {"Authorization": "Bearer ${env:TOKEN}"}, "n": 3, "on": true, "x": null},
            "other": {"args": ["${env:REGION}", "${env:NOT_SET} ${env:ALSO_NOT}", "$${x}"]},
        },
        "${env:REGION}": "names stay",
    });
    let resolution = resolver().resolve_tree(&mut tree);
    let expected = json!({
        "tools": {
            "a/b~c": {"headers": {"Authorization": "Bearer tok-123456789"}, "n": 3, "on": true, "x": null},
            "other": {"args": ["north-europe", "${env:NOT_SET} ${env:ALSO_NOT}", "${x}"]},
        },
        "${env:REGION}": "names stay",
    });
    assert_eq!(tree, expected);
    let unresolved = resolution.unresolved.iter();
    let unresolved: Vec<(&str, &str)> = unresolved
        .map(|(pointer, one)| (pointer.as_str(), one.reference.as_str()))
        .collect();
    let expected = [
        ("/tools/other/args/1", "${env:NOT_SET}"),
        ("/tools/other/args/1", "${env:ALSO_NOT}"),
    ];
    assert_eq!(unresolved, expected);
    assert_eq!(
        exposed(&resolution.secrets),
        ["tok-123456789", "north-europe"]
    );
    assert_eq!(resolution.unresolved[1].1.column, 16);
}

#[test]
fn no_secret_is_in_a_debug_text() {
    let resolver = resolver();
    let mut tree = json!({"token": "${env:TOKEN}", "k": "${keyring:steadyhand/google}"});
    let resolved = resolver.resolve("${env:TOKEN}").expect("set");
    let shown = format!(
        "{resolver:?} {resolved:?} {:?}",
        resolver.resolve_tree(&mut tree)
    );
    for secret in ["tok-123456789", "ya29-from-the-keyring", "hunter2"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[test]
fn a_key_in_the_clear_is_recognised_and_a_reference_or_a_word_is_not() {
    for (text, is_key) in [
        (concat!("sk-", "ant-api03-0123456789abcdef"), true),
        ("Bearer 0123456789abcdef0123", true),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", true),
        ("postgres://me:hunter2@db/x", true),
        ("AKIAIOSFODNN7EXAMPLE", true),
        ("Bearer ${env:TOKEN}", false),
        ("https://{user}:{pass}@host/", false),
        ("Basic authentication of users", false),
        ("sk-learn-is-a-library-for-python", false),
        ("https://example.org/a:b@c", false),
        ("npx -y @modelcontextprotocol/server-memory", false),
    ] {
        assert_eq!(looks_like_a_key(text), is_key, "{text}");
    }
}
