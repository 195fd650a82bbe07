//! Which file applies, what overrides what, and where each value comes from.

use serde_json::Value;

use crate::support::{Workplace, parts};

const CONFIG: &str = r#"
[defaults]
timeout = "7s"

[tools.a]
kind = "mock"
mock_response = 1
deadline = "20s"
"#;

fn origin(shown: &Value, setting: &str) -> (Value, String) {
    let settings = shown["settings"].as_array().expect("settings");
    let row = settings
        .iter()
        .find(|row| row["setting"] == setting)
        .unwrap_or_else(|| panic!("no {setting} in {shown}"));
    let origin = row["origin"].as_str().expect("an origin").to_owned();
    (row["value"].clone(), origin)
}

#[test]
fn config_show_says_where_each_value_comes_from() {
    let mut workplace = Workplace::with_config(CONFIG);
    workplace.write("steadyhand.local.toml", "[tools.a]\ndeadline = \"30s\"\n");
    workplace.set("STEADYHAND__DEFAULTS__RETRY__ATTEMPTS", "2");
    let shown = workplace.json("config show --json");
    assert_eq!(
        origin(&shown, "defaults.timeout"),
        ("7s".into(), "steadyhand.toml:3".to_owned())
    );
    assert_eq!(
        origin(&shown, "tools.a.deadline"),
        ("30s".into(), "steadyhand.local.toml:2".to_owned())
    );
    assert_eq!(
        origin(&shown, "defaults.retry.attempts"),
        (
            2.into(),
            "$STEADYHAND__DEFAULTS__RETRY__ATTEMPTS".to_owned()
        )
    );
    assert_eq!(
        origin(&shown, "defaults.breaker.failures"),
        (5.into(), "default".to_owned())
    );
}

#[test]
fn tools_show_says_where_each_value_of_the_policy_comes_from() {
    let workplace = Workplace::with_config(CONFIG);
    let shown = workplace.json("tools show a --json");
    let policy = |name: &str| {
        (
            shown["policy"][name]["value"].clone(),
            shown["policy"][name]["origin"].clone(),
        )
    };
    assert_eq!(policy("timeout"), ("7s".into(), "steadyhand.toml:3".into()));
    assert_eq!(
        policy("deadline"),
        ("20s".into(), "steadyhand.toml:8".into())
    );
    assert_eq!(policy("retry.attempts"), ("4".into(), "default".into()));
}

#[test]
fn a_variable_that_sets_nonsense_is_named() {
    let mut workplace = Workplace::with_config(CONFIG);
    workplace.set("STEADYHAND__DEFAULTS__TIMEOUT", "soon");
    let (code, _, stderr) = parts(&workplace.run("config check"));
    assert_eq!(code, 8);
    assert!(stderr.contains("STEADYHAND__DEFAULTS__TIMEOUT"), "{stderr}");
}

#[test]
fn the_flag_comes_before_the_variable_before_the_folder_before_the_users_own() {
    let mut workplace = Workplace::new();
    let tool = |name: &str| format!("[tools.{name}]\nkind = \"mock\"\nmock_response = 1\n");
    workplace.write(".config/steadyhand/steadyhand.toml", &tool("users_own"));
    let listed = |workplace: &Workplace, flags: &str| {
        workplace.json(&format!("tools list --json {flags}"))["tools"][0]["name"].clone()
    };
    assert_eq!(listed(&workplace, ""), "users_own");
    workplace.write("steadyhand.toml", &tool("here"));
    assert_eq!(listed(&workplace, ""), "here");
    workplace.write("elsewhere.toml", &tool("by_variable"));
    workplace.set("STEADYHAND_CONFIG", "elsewhere.toml");
    assert_eq!(listed(&workplace, ""), "by_variable");
    workplace.write("flag.toml", &tool("by_flag"));
    assert_eq!(listed(&workplace, "-c flag.toml"), "by_flag");
    let shown = workplace.json("config path --json -c flag.toml");
    assert_eq!(shown["by"], "--config");
}

#[test]
fn the_file_is_found_upwards_to_the_root_of_the_repository() {
    let workplace = Workplace::with_config("[tools.above]\nkind = \"mock\"\nmock_response = 1\n");
    workplace.write("inner/deep/.keep", "");
    let listed = workplace
        .command(&["tools", "list", "--json"])
        .current_dir(workplace.file("inner/deep"))
        .assert();
    let (_, stdout, _) = parts(&listed);
    assert!(stdout.contains("above"), "{stdout}");
    workplace.write("inner/.git/HEAD", "ref");
    let listed = workplace
        .command(&["tools", "list", "--json"])
        .current_dir(workplace.file("inner/deep"))
        .assert();
    let (_, stdout, _) = parts(&listed);
    assert!(!stdout.contains("above"), "{stdout}");
}

#[test]
fn the_printed_schema_is_one_and_knows_every_section() {
    let workplace = Workplace::new();
    let schema = workplace.json("config schema");
    jsonschema::meta::validate(&schema).expect("a valid JSON Schema");
    let validator = jsonschema::validator_for(&schema).expect("a schema that compiles");
    let right =
        serde_json::json!({"tools": {"a": {"kind": "mock", "mock_response": 1, "timeout": "1s"}}});
    assert!(validator.is_valid(&right));
    let wrong = serde_json::json!({"tools": {"a": {"kind": "mock", "mock_responce": 1}}});
    assert!(!validator.is_valid(&wrong));
    for section in [
        "server",
        "import",
        "defaults",
        "models",
        "transcriber",
        "documents",
        "tools",
        "mcp",
        "proxy",
        "alerts",
        "telemetry",
    ] {
        assert!(schema["properties"].get(section).is_some(), "{section}");
    }
}
