//! Real SDKs send histories that died in public: straight to a strict provider each gets the provider's own 400, through
//! the proxy each gets an answer, whole and streamed.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use steadyhand_conversation::Provider as Rules;
use steadyhand_strict::StrictProviders;
use tokio::process::Command;
use tokio::time::timeout;

use super::{peer, proxy_with};
use crate::serve::{Served, until};
use crate::support::PATIENCE;

/// How a client is run: the program, and the words before its name and base URL.
struct Client {
    language: &'static str,
    program: PathBuf,
    words: Vec<String>,
}

pub(super) fn script(name: &str) -> String {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/proxy/clients");
    own.join(name).display().to_string()
}

fn python(home: &str) -> Client {
    Client {
        language: "Python",
        program: peer(&format!("{home}/bin/python")),
        words: vec!["-I".to_owned(), script("sdks.py")],
    }
}

/// Debian's Node is too old for some of them.
fn node(home: &str) -> Client {
    Client {
        language: "JavaScript",
        program: peer("conformance/bin/node"),
        words: vec![script("sdks.mjs"), peer(home).display().to_string()],
    }
}

impl Client {
    /// What it says about each history.
    async fn run(&self, name: &str, base_url: &str) -> Vec<Value> {
        let output = Command::new(&self.program)
            .args(&self.words)
            .args([name, base_url])
            .stdin(Stdio::null())
            // Nothing may lead it around us.
            .env_remove("HTTP_PROXY")
            .env_remove("http_proxy")
            .env("NO_PROXY", "127.0.0.1")
            .kill_on_drop(true)
            .output();
        let output = timeout(PATIENCE * 3, output).await;
        let output = output.expect("it ends in time").expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{name}\n{said}\n{stderr}");
        let told: Value =
            serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}\n{stderr}"));
        told.as_array().expect("rows").clone()
    }
}

/// Only the base URL changes. `refusals` are parts of what the provider says to each history, in order.
async fn check(client: Client, name: &str, rules: Rules, refusals: &[&str]) {
    let strict = StrictProviders::start().await.expect("a port");
    let direct = strict.base_url(rules);
    let rows = client.run(name, &direct).await;
    assert_eq!(rows.len(), 2 * refusals.len(), "{rows:#?}");
    for (row, refusal) in rows
        .chunks(2)
        .zip(refusals)
        .flat_map(|(pair, it)| [(&pair[0], it), (&pair[1], it)])
    {
        assert_eq!(row["status"], 400, "{name}, directly: {row}");
        let message = row["message"].as_str().unwrap_or_default();
        assert!(message.contains(refusal), "{name}, directly: {row}");
    }
    let (served, base_url) = before(&direct, rules, "").await;
    let mended = client.run(name, &base_url).await;
    assert_eq!(mended.len(), rows.len());
    for (row, before) in mended.iter().zip(&rows) {
        assert_eq!(row["answer"], "ok", "{name}, through the proxy: {row}");
        tell(&format!("{name} ({})", client.language), row, before);
    }
    let heard = strict.heard();
    let through = &heard[heard.len() - mended.len()..];
    assert!(through.iter().all(|one| one.status == 200));
    let exchanges = until("each is in the history", async || {
        let listed = served.get("/v1/exchanges?limit=1000").await.json();
        let exchanges = listed["exchanges"].as_array().expect("a list").clone();
        (exchanges.len() >= mended.len()).then_some(exchanges)
    })
    .await;
    assert_eq!(exchanges.len(), mended.len());
    for exchange in exchanges {
        assert!(exchange["fix_count"].as_u64() > Some(0), "{exchange}");
    }
    assert!(!served.stderr().contains("key-of-the-client"));
}

/// The proxy before a strict provider, and what a client is given as its base URL.
async fn before(direct: &str, rules: Rules, more: &str) -> (Served, String) {
    let site = match rules {
        Rules::OpenAiResponses => "openai",
        rules => rules.as_str(),
    };
    // A strict provider stands for the provider itself.
    let more = format!("host = \"original\"\n{more}");
    let served = proxy_with(site, direct, &more).await;
    // What SDKs of this provider add to their base URL is the provider's own path.
    let version = match site {
        "openai" => "/v1",
        _ => "",
    };
    let base_url = format!("http://{}/proxy/{site}{version}", served.address);
    (served, base_url)
}

/// A row of the table in docs/proxy.md.
fn tell(name: &str, row: &Value, before: &Value) {
    let way = match row["streams"] == true {
        true => "streamed",
        false => "whole",
    };
    println!(
        "\nsdk-row|{name}|{}|{way}|{} {}|{}",
        row["history"].as_str().unwrap_or_default(),
        before["status"],
        before["message"].as_str().unwrap_or_default(),
        row["answer"].as_str().unwrap_or_default(),
    );
}

const NO_RESULT: &str = "`tool_use` ids were found without `tool_result` blocks immediately after";
const NO_USE: &str = "unexpected `tool_use_id` found in `tool_result` blocks";
const NO_TOOL_MESSAGE: &str = "must be followed by tool messages responding to each 'tool_call_id'";
const NO_TOOL_CALLS: &str =
    "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'";

#[tokio::test(flavor = "multi_thread")]
async fn r03_anthropics_sdk_for_python_gets_answers_where_it_got_400() {
    let refusals = [
        NO_RESULT,
        NO_USE,
        "each tool_use must have a single result",
        "String should match pattern",
    ];
    check(
        python("model-sdks-py"),
        "anthropic",
        Rules::Anthropic,
        &refusals,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r03_anthropics_sdk_for_typescript_gets_answers_where_it_got_400() {
    check(
        node("model-sdks-js"),
        "anthropic",
        Rules::Anthropic,
        &[NO_RESULT, NO_USE],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r03_openais_sdk_for_python_gets_answers_where_it_got_400() {
    let refusals = [NO_TOOL_MESSAGE, NO_TOOL_CALLS, NO_TOOL_MESSAGE];
    check(python("model-sdks-py"), "openai", Rules::OpenAi, &refusals).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r03_openais_sdk_for_typescript_gets_answers_where_it_got_400() {
    let refusals = [NO_TOOL_MESSAGE, NO_TOOL_CALLS];
    check(node("model-sdks-js"), "openai", Rules::OpenAi, &refusals).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r03_openais_sdk_gets_responses_where_it_got_400() {
    let refusals = [
        "No tool output found for function call",
        "No tool call found for function call output",
    ];
    check(
        python("model-sdks-py"),
        "openai-responses",
        Rules::OpenAiResponses,
        &refusals,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r03_ollamas_sdk_for_python_gets_answers_where_it_got_400() {
    check(
        python("model-sdks-py"),
        "ollama",
        Rules::Ollama,
        &["a call has no result"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r03_langchain_gets_answers_of_anthropic_where_it_got_400() {
    let refusals = [NO_RESULT, NO_USE];
    check(
        python("langchain-providers"),
        "langchain-anthropic",
        Rules::Anthropic,
        &refusals,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r03_langchain_gets_answers_of_openai_where_it_got_400() {
    let refusals = [NO_TOOL_MESSAGE, NO_TOOL_CALLS];
    check(
        python("langchain-providers"),
        "langchain-openai",
        Rules::OpenAi,
        &refusals,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r03_vercels_ai_sdk_gets_answers_of_anthropic_where_it_got_400() {
    let refusals = ["String should match pattern"];
    check(
        node("vercel-ai"),
        "vercel-anthropic",
        Rules::Anthropic,
        &refusals,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r03_vercels_ai_sdk_gets_answers_of_openai_where_it_got_400() {
    let refusals = ["string too long"];
    check(node("vercel-ai"), "vercel-openai", Rules::OpenAi, &refusals).await;
}

/// What is told while tools are run is a stream of our own making: the SDKs must read it as the provider's.
#[tokio::test(flavor = "multi_thread")]
async fn l07_the_sdks_read_what_is_told_while_tools_are_offered() {
    for (name, rules) in [
        ("anthropic", Rules::Anthropic),
        ("openai", Rules::OpenAi),
        ("openai-responses", Rules::OpenAiResponses),
        ("ollama", Rules::Ollama),
    ] {
        let strict = StrictProviders::start().await.expect("a port");
        let more = "execute = true\n[tools.echo]\nkind = \"builtin\"\nuse = \"echo\"";
        let (served, base_url) = before(&strict.base_url(rules), rules, more).await;
        for row in python("model-sdks-py").run(name, &base_url).await {
            assert_eq!(row["answer"], "ok", "{name}: {row}");
        }
        let offered = strict.heard().pop().expect("a request").request;
        assert!(
            offered["tools"].to_string().contains("\"echo\""),
            "{offered}"
        );
        drop(served);
    }
}
