//! `[models]`: which one is meant, what is wrong with it, and whether it can use tools.

use serde_json::json;
use steadyhand_models::Dialect;
use steadyhand_models::testing::{Line, Said, StrictProvider};

use super::strict;
use crate::support::{Workplace, parts};

const MODELS: &str = r#"
[models]
default = "local"
local = { provider = "ollama", model = "qwen3:8b" }
claude = { provider = "anthropic", model = "claude-sonnet-4-5", key = "${env:NO_SUCH_KEY}" }
"#;

#[test]
fn a_key_that_is_not_there_ends_with_3_and_says_how_to_begin_without() {
    let workplace = Workplace::with_config(MODELS);
    let run = workplace.run_words(&["chat", "--model", "claude", "hi"]);
    let (code, _, stderr) = parts(&run);
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("no key for anthropic"), "{stderr}");
    assert!(stderr.contains("NO_SUCH_KEY"), "{stderr}");
    assert!(stderr.contains("steadyhand chat --model demo"), "{stderr}");
}

#[test]
fn a_provider_without_any_key_is_said_to_have_none() {
    let workplace = Workplace::new();
    let run = workplace.run_words(&["chat", "--model", "openai/gpt-5.4-mini", "hi"]);
    let (code, _, stderr) = parts(&run);
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("no key for openai"), "{stderr}");
    assert!(stderr.contains("OPENAI_API_KEY"), "{stderr}");
}

#[test]
fn a_name_that_is_none_gets_the_one_that_was_meant() {
    let workplace = Workplace::with_config(MODELS);
    let (code, _, stderr) = parts(&workplace.run("chat --model locl hi"));
    assert_eq!(code, 8, "{stderr}");
    assert!(stderr.contains("there is no model \"locl\""), "{stderr}");
    assert!(stderr.contains("Did you mean local?"), "{stderr}");
}

#[test]
fn everything_wrong_with_models_is_told_at_once_with_its_place() {
    let workplace = Workplace::with_config(
        r#"
[models]
default = "lokal"
local = { provider = "ollama", modell = "qwen3:8b" }
gpt = { provider = "opnai", model = "gpt-5.4-mini" }
"#,
    );
    let (code, _, stderr) = parts(&workplace.run("config check"));
    assert_eq!(code, 8, "{stderr}");
    for part in [
        "models.local.modell is not a setting",
        "Did you mean model?",
        "models.gpt.provider is \"opnai\"",
        "Did you mean openai?",
        "steadyhand.toml:4",
        "steadyhand.toml:5",
    ] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    workplace.write(
        "steadyhand.toml",
        "[models]\ndefault = \"lokal\"\nlocal = { provider = \"ollama\" }\nfar = { provider = \"openai\", model = \"m\", url = \"localhost\" }\n[transcriber]\nmodel = \"nobody\"\nmqtt = { broker = \"a b\" }\n",
    );
    let (code, _, stderr) = parts(&workplace.run("config check"));
    assert_eq!(code, 8, "{stderr}");
    for part in [
        "models.default names the model \"lokal\", which is not there",
        "Did you mean local?",
        "models.local has no model",
        "models.far.url is no http or https URL",
        "transcriber.model names the model \"nobody\"",
        "transcriber.mqtt.broker",
    ] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
}

#[test]
fn models_are_active_and_all_providers_are_known() {
    let config = "[models]\na = { provider = \"anthropic\", model = \"m\", max_tokens = 100, temperature = 0.5, timeout = \"1m\", attempts = 2 }\nb = { provider = \"openai-responses\", model = \"m\" }\nc = { provider = \"scripted\" }\nd = { provider = \"ollama\", model = \"m\", num_ctx = 4096, keep_alive = \"1h\", thinking = false, recover_calls = true }\n";
    let workplace = Workplace::with_config(config);
    let checked = workplace.json("config check --json");
    assert_eq!(checked["valid"], true, "{checked}");
}

#[test]
fn several_models_and_no_default_are_a_question() {
    let config = "[models]\na = { provider = \"ollama\", model = \"m\" }\nb = { provider = \"ollama\", model = \"n\" }\n";
    let workplace = Workplace::with_config(config);
    let (code, _, stderr) = parts(&workplace.run("chat hi"));
    assert_eq!(code, 8, "{stderr}");
    assert!(stderr.contains("--model a or --model b"), "{stderr}");
}

#[test]
fn the_list_has_the_models_the_demo_and_the_last_check() {
    let workplace = Workplace::with_config(MODELS);
    let (code, _, stderr) = parts(&workplace.run("models check --model demo"));
    assert_eq!(code, 0, "{stderr}");
    let list = workplace.json("models list --json");
    let names: Vec<&str> = list["models"]
        .as_array()
        .expect("models")
        .iter()
        .filter_map(|model| model["name"].as_str())
        .collect();
    assert_eq!(names, ["local", "claude", "demo"]);
    assert_eq!(list["models"][0]["default"], true);
    assert_eq!(list["models"][0]["checked"], json!(null));
    assert_eq!(list["models"][2]["checked"]["tasks"], 7, "{list}");
}

/// What a model that does everything right would say.
fn a_good_model() -> Vec<Line> {
    let both = Said::default()
        .call("get_weather", json!({"city": "Oslo"}))
        .call("get_weather", json!({"city": "Rome"}));
    vec![
        Line::calls("get_weather", json!({"city": "Oslo"})),
        Line::says("It is -7 degrees."),
        Line::calls("set_light", json!({"room": "kitchen", "brightness": 40})),
        Line::says("Done."),
        Line::calls("get_time", json!({"city": "Tokyo"})),
        Line::says("It is 05:17."),
        Line::Says(both),
        Line::says("Snow and sun."),
        Line::calls("find_contact", json!({"name": "Anna"})),
        Line::calls(
            "send_message",
            json!({"number": "5550137", "text": "dinner is ready"}),
        ),
        Line::says("Sent."),
        Line::calls("read_note", json!({"title": "shopping"})),
        Line::calls("read_note", json!({"title": "shopping", "force": true})),
        Line::says("There are 9 eggs."),
        Line::says("Good morning!"),
    ]
}

/// What one that does everything wrong would say.
fn a_bad_model() -> Vec<Line> {
    vec![
        Line::says("It is warm."),
        Line::calls(
            "set_light",
            json!({"room": "cellar", "brightness": "a lot"}),
        ),
        Line::says("Done."),
        Line::calls("get_weather", json!({"city": "Tokyo"})),
        Line::says("Morning."),
        Line::calls("get_weather", json!({"city": "Oslo"})),
        Line::calls("get_weather", json!({"city": "Rome"})),
        Line::says("Both fine."),
        Line::calls("send_message", json!({"number": "1", "text": "dinner"})),
        Line::says("Sent."),
        Line::calls("read_note", json!({"title": "shopping"})),
        Line::says("I cannot read it."),
        Line::calls("set_timer", json!({"minutes": 1})),
        Line::says("Good morning."),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_check_passes_a_good_model_and_remembers_it() {
    let provider = StrictProvider::start(Dialect::OpenAi, a_good_model()).await;
    let workplace = Workplace::with_config(&strict("openai", &provider.url()));
    let checked = workplace.json("models check --model strict --json");
    assert_eq!(checked["passed"], 7, "{checked:#}");
    assert_eq!(provider.refused(), Vec::<String>::new());
    assert_eq!(provider.lines_left(), 0);
    let list = workplace.json("models --json");
    assert_eq!(list["models"][0]["checked"]["passed"], 7, "{list}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_check_says_of_a_bad_model_what_it_did() {
    let provider = StrictProvider::start(Dialect::Anthropic, a_bad_model()).await;
    let workplace = Workplace::with_config(&strict("anthropic", &provider.url()));
    let (code, stdout, stderr) = parts(&workplace.run("models check --model strict"));
    assert_eq!(code, 0, "{stderr}");
    let rows: Vec<Vec<&str>> = stdout
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    let grades: Vec<&str> = rows.iter().map(|row| row[2]).collect();
    assert_eq!(
        grades,
        [
            "failed", "failed", "failed", "partly", "failed", "failed", "failed"
        ],
        "{stdout}"
    );
    assert!(
        stdout.contains("get_time was not called, but get_weather"),
        "{stdout}"
    );
    assert!(stdout.contains("both, one after the other"), "{stdout}");
    assert!(stdout.contains("it called set_timer"), "{stdout}");
    assert!(stderr.contains("0 of 7 tasks passed"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_of_the_configuration_reaches_its_provider_and_no_output() {
    let provider = StrictProvider::start(Dialect::Anthropic, [Line::says("Hello.")]).await;
    provider.wants_key("sk-ant-very-secret-0123456789");
    let config = format!(
        "[models.a]\nprovider = \"anthropic\"\nmodel = \"m\"\nurl = \"{}\"\nkey = \"${{env:MY_KEY}}\"\nattempts = 1\n",
        provider.url()
    );
    let mut workplace = Workplace::with_config(&config);
    workplace.set("MY_KEY", "sk-ant-very-secret-0123456789");
    let (code, stdout, stderr) = parts(&workplace.run("chat hi -vv"));
    assert_eq!((code, stdout.as_str()), (0, "Hello.\n"), "{stderr}");
    assert!(!stderr.contains("very-secret"), "{stderr}");
    provider.wants_key("another");
    provider.then(Line::says("never"));
    let (code, _, stderr) = parts(&workplace.run("chat hi"));
    assert_eq!(code, 3, "{stderr}");
    assert!(!stderr.contains("very-secret"), "{stderr}");
}
