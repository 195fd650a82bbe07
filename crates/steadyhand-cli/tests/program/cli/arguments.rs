//! Arguments of `call`: `k=v` is read by the tool's schema, not by how it looks.

use serde_json::{Value, json};

use crate::support::{Workplace, parts};

const CONFIG: &str = r#"
[tools.show]
kind = "builtin"
use = "echo"
[tools.show.input]
type = "object"
[tools.show.input.properties]
brightness = { type = "integer" }
ratio = { type = "number" }
zip = { type = "string" }
on = { type = "boolean" }
tags = { type = "array", items = { type = "string" } }
sizes = { type = "array", items = { type = "integer" } }
more = { type = "object" }
either = { type = ["integer", "string"] }
maybe = { anyOf = [{ type = "integer" }, { type = "null" }] }
level = { enum = [1, 2, "max"] }
"#;

fn received(workplace: &Workplace, words: &[&str]) -> Value {
    let mut all = vec!["call", "show", "--json"];
    all.extend(words);
    let (code, stdout, stderr) = parts(&workplace.run_words(&all));
    assert_eq!(code, 0, "{words:?}: {stderr}");
    let outcome: Value = serde_json::from_str(&stdout).expect("an outcome");
    outcome["output"]["echo"].clone()
}

#[test]
fn values_are_read_by_the_schema() {
    let workplace = Workplace::with_config(CONFIG);
    let cases: &[(&[&str], Value)] = &[
        (&["brightness=60"], json!({"brightness": 60})),
        (&["zip=012"], json!({"zip": "012"})),
        (&["ratio=0.5"], json!({"ratio": 0.5})),
        (&["on=true"], json!({"on": true})),
        (&["tags=a", "tags=b"], json!({"tags": ["a", "b"]})),
        (&["tags=[\"a\",\"b\"]"], json!({"tags": ["a", "b"]})),
        (&["sizes=1", "sizes=2"], json!({"sizes": [1, 2]})),
        (&["more={\"a\":1}"], json!({"more": {"a": 1}})),
        (&["either=5"], json!({"either": "5"})),
        (&["maybe=5"], json!({"maybe": 5})),
        (&["level=2", "zip==="], json!({"level": 2, "zip": "=="})),
        (&["level=max"], json!({"level": "max"})),
        (&["undeclared=5"], json!({"undeclared": "5"})),
        (&["undeclared:=5"], json!({"undeclared": 5})),
        (
            &["--args", "{\"zip\":\"1\",\"on\":false}", "zip=2"],
            json!({"zip": "2", "on": false}),
        ),
        (&["zip=1", "zip=2"], json!({"zip": "2"})),
    ];
    for (words, expected) in cases {
        assert_eq!(received(&workplace, words), *expected, "{words:?}");
    }
}

#[test]
fn values_come_from_files_and_from_stdin() {
    let workplace = Workplace::with_config(CONFIG);
    workplace.write("zip.txt", "0150");
    workplace.write("more.json", "{\"deep\":[1]}");
    assert_eq!(
        received(&workplace, &["zip=@zip.txt"]),
        json!({"zip": "0150"})
    );
    assert_eq!(
        received(&workplace, &["more:=@more.json"]),
        json!({"more": {"deep": [1]}})
    );
    let piped = workplace
        .command(&["call", "show", "--json", "-", "zip=9"])
        .stdin("{\"on\":true}")
        .assert();
    let (_, stdout, _) = parts(&piped);
    let outcome: Value = serde_json::from_str(&stdout).expect("an outcome");
    assert_eq!(outcome["output"]["echo"], json!({"on": true, "zip": "9"}));
}

#[test]
fn what_is_no_argument_is_named_with_the_next_step() {
    let workplace = Workplace::with_config(CONFIG);
    for (words, part) in [
        (&["nonsense"][..], "\"nonsense\" is no argument"),
        (&["more:={"], "the value of more is no JSON"),
        (
            &["zip=@missing.txt"],
            "missing.txt cannot be read: there is no such file",
        ),
        (&["--args", "[1]"], "--args holds JSON, but no object"),
    ] {
        let mut all = vec!["call", "show"];
        all.extend(words);
        let (code, stdout, stderr) = parts(&workplace.run_words(&all));
        assert_eq!((code, stdout.as_str()), (2, ""), "{words:?}");
        assert!(
            stderr.contains(part) && stderr.contains("help:"),
            "{words:?}: {stderr}"
        );
    }
}

#[test]
fn v20_an_integer_that_would_be_rounded_is_refused_and_a_string_of_its_digits_is_not() {
    let workplace = Workplace::with_config(CONFIG);
    let long = "18446744073709551616";
    for argument in [
        format!("brightness={long}"),
        format!("more:={{\"a\": {long}}}"),
    ] {
        let (code, _, stderr) = parts(&workplace.run_words(&["call", "show", &argument]));
        assert_eq!(code, 2, "{argument}: {stderr}");
        assert!(stderr.contains(long), "{stderr}");
    }
    let shown = received(&workplace, &[&format!("zip={long}")]);
    assert_eq!(shown["zip"], long);
}
