//! Real peers: Mistral's own validator and the types of the providers' SDKs as judges, and langchain-ollama's tools beside ours.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use serde_json::{Value, json};
use steadyhand_conversation::strict;
use steadyhand_conversation::{Code, Provider, What, convert_tools, repair, validate};

use super::render::{Step, calls, render, result, says, user};
use super::writer::Writer;

#[test]
fn r03_mistrals_own_validator_accepts_every_repair_and_is_never_stricter_than_ours() {
    let mut broken: Vec<Value> = Vec::new();
    let valid = [
        user("u1"),
        calls(&["a", "b"]),
        result("a", "r1"),
        result("b", "r2"),
        says("a1"),
        user("u2"),
        calls(&["c"]),
        result("c", "r3"),
    ];
    let steps = |steps: &[Step]| render(Provider::Mistral, steps);
    for index in 0..valid.len() {
        for other in 0..valid.len() {
            let mut moved = valid.to_vec();
            let step = moved.remove(index);
            broken.push(steps(&moved));
            moved.insert(other.min(moved.len()), step.clone());
            broken.push(steps(&moved));
            let mut twice = valid.to_vec();
            twice.insert(other, step);
            broken.push(steps(&twice));
        }
        broken.push(steps(&valid[index..]));
        broken.push(steps(&valid[..=index]));
    }
    broken.push(super::render::request(
        Provider::Mistral,
        json!([
            {"role": "user", "content": "u"},
            {"role": "assistant", "tool_calls": [{"id": "call_search", "function": {"name": "look it up", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_search", "content": "r"},
            {"role": "system", "content": "s"},
            {"role": "assistant", "content": "a", "prefix": true},
            {"role": "assistant", "content": "b"},
        ]),
    ));
    let mend = |request: &Value| repair(Provider::Mistral, request.clone()).0;
    let repaired: Vec<Value> = broken.iter().map(mend).collect();
    let both: Vec<Value> = broken.iter().chain(&repaired).cloned().collect();
    let verdicts = ask(
        "mistral-common",
        "mistral_oracle.py",
        Value::Array(both.clone()),
    );
    let verdicts = verdicts.as_array().expect("one verdict each");
    assert_eq!(verdicts.len(), both.len());
    let mut refused = 0;
    for (request, verdict) in both.iter().zip(verdicts) {
        let strict = strict::mistral(request);
        if let Some(words) = verdict.as_str() {
            refused += 1;
            let (_, body) = strict.expect_err(words);
            let ours = body["message"].as_str().expect("it says why");
            assert!(
                words.contains(ours),
                "Mistral: {words}\nours: {ours}\n{request:#}"
            );
        } else {
            assert_eq!(strict, Ok(()), "{request:#}");
        }
    }
    assert!(refused > 50, "only {refused} were broken");
    for (request, verdict) in repaired.iter().zip(&verdicts[broken.len()..]) {
        assert_eq!(verdict, &Value::Null, "{request:#}");
    }
}

#[test]
fn r03_mistrals_own_validator_accepts_the_repair_of_anything() {
    let repaired = repairs_of_anything(Provider::Mistral);
    let requests: Vec<&Value> = repaired.iter().map(|(_, repaired)| repaired).collect();
    let verdicts = ask("mistral-common", "mistral_oracle.py", json!(requests));
    let verdicts = verdicts.as_array().expect("one verdict each");
    for ((broken, repaired), verdict) in repaired.iter().zip(verdicts) {
        // It knows fewer fields than the service, which takes the `index` of a call; unknown ones pass here.
        let words = verdict.as_str().unwrap_or_default();
        let is_field = words.matches("[type=").count() == words.matches("extra_forbidden,").count();
        assert!(is_field, "{words}\n{broken}\n{repaired:#}");
    }
}

/// Breakages of one conversation: every step left out, moved or doubled, and the conversation cut anywhere.
fn broken_everywhere(provider: Provider) -> Vec<Value> {
    let valid = [
        user("u1"),
        calls(&["a", "b"]),
        result("a", "r1"),
        result("b", "r2"),
        says("a1"),
        user("u2"),
        calls(&["c"]),
        result("c", "r3"),
    ];
    let mut broken = Vec::new();
    for index in 0..valid.len() {
        for other in 0..valid.len() {
            let mut moved = valid.to_vec();
            let step = moved.remove(index);
            moved.insert(other.min(moved.len()), step.clone());
            broken.push(render(provider, &moved));
            let mut twice = valid.to_vec();
            twice.insert(other, step);
            broken.push(render(provider, &twice));
        }
        broken.push(render(provider, &valid[index..]));
        broken.push(render(provider, &valid[..=index]));
    }
    // Histories of every other provider.
    for from in Provider::ALL {
        let history: Vec<Value> = valid
            .iter()
            .flat_map(|step| super::render::message(from, step, &valid))
            .collect();
        broken.push(super::render::request(provider, json!(history)));
    }
    broken
}

#[test]
fn r03_the_types_of_the_providers_own_sdks_accept_every_repair() {
    let judges: [(&str, &[Provider]); 2] = [
        (
            "model-sdks-py",
            &[
                Provider::Anthropic,
                Provider::OpenAi,
                Provider::OpenAiResponses,
                Provider::Ollama,
            ],
        ),
        (
            "cloud-sdks-py",
            &[Provider::Gemini, Provider::BedrockConverse],
        ),
    ];
    for (peer, providers) in judges {
        let mut asked = Vec::new();
        for provider in providers {
            for broken in broken_everywhere(*provider) {
                let (repaired, _) = repair(*provider, broken);
                asked.push(json!({"provider": provider, "request": repaired}));
            }
        }
        // They refuse what is no message of theirs.
        let odd = |provider: &Provider| {
            let key = super::render::key(*provider);
            json!({"provider": provider, "request": {key: [{"role": 5, "content": 7, "parts": 7}]}})
        };
        asked.extend(providers.iter().map(odd));
        let verdicts = ask(peer, "provider_types.py", json!(asked));
        let verdicts = verdicts.as_array().expect("one verdict each");
        assert_eq!(verdicts.len(), asked.len());
        let (real, odd) = verdicts.split_at(asked.len() - providers.len());
        for (verdict, asked) in real.iter().zip(&asked) {
            assert_eq!(verdict, &Value::Null, "{asked:#}");
        }
        assert!(odd.iter().all(Value::is_string), "{odd:?}");
    }
}

#[test]
fn r01_every_field_that_anthropics_own_sdk_sends_is_known() {
    let fields = ask("model-sdks-py", "anthropic_fields.py", json!(null));
    let fields = fields.as_array().expect("a list");
    assert!(fields.len() > 20, "{fields:?}");
    let mut asked = render(Provider::Anthropic, &[user("u1")]);
    for field in fields.iter().filter_map(Value::as_str) {
        if asked.get(field).is_none() {
            asked[field] = json!(null);
        }
    }
    let found = validate(Provider::Anthropic, What::Request, &asked);
    assert!(
        found.iter().all(|one| one.code != Code::BadField),
        "{found:#?}"
    );
}

#[test]
fn l05_langchain_itself_reads_every_repair_and_what_it_makes_of_it_is_accepted() {
    let repaired = repairs_of_anything(Provider::LangChain);
    let lists: Vec<&Value> = repaired.iter().map(|(_, one)| &one["messages"]).collect();
    let answers = ask("langchain-py", "langchain_openai.py", json!(lists));
    let answers = answers.as_array().expect("one answer each");
    let mut faults = Vec::new();
    for ((broken, repaired), answer) in repaired.iter().zip(answers) {
        let request = json!({"model": "m", "messages": answer});
        // LangChain passes the names of tools on as they are.
        let is_name = |body: &Value| {
            body["error"]["param"]
                .as_str()
                .is_some_and(|param| param.ends_with(".name"))
        };
        let is_taken = match strict::openai_chat(&request) {
            Ok(()) => true,
            Err((_, body)) => is_name(&body),
        };
        if !answer.is_array() || !is_taken {
            faults.push(format!("{answer}\n{broken}\n{repaired}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

/// Conversations with anything in any field, and what their repair made of them.
fn repairs_of_anything(provider: Provider) -> Vec<(Value, Value)> {
    let one = |seed| {
        let broken = json!(Writer::new(provider, seed).messages());
        let request = super::render::request(provider, broken.clone());
        (broken, repair(provider, request).0)
    };
    (0..500).map(one).collect()
}

#[test]
fn v18_ollama_gets_what_langchain_ollama_sends() {
    let definitions = json!([
        {"name": "weather", "description": "Tells the weather", "schema": {"type": "object", "properties": {
            "city": {"type": "string", "description": "Where"},
            "days": {"type": "array", "items": {"type": "integer"}},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            "exact": {"type": "boolean"},
        }, "required": ["city"]}},
        {"name": "nothing", "description": "Takes no arguments", "schema": {"type": "object", "properties": {}}},
    ]);
    let theirs = ask(
        "langchain-ollama",
        "langchain_ollama_tools.py",
        definitions.clone(),
    );
    let list = definitions.as_array().expect("a list");
    assert_eq!(
        Value::Array(convert_tools(Provider::Ollama, list).tools),
        theirs
    );
    // Where theirs loses what is inside an object or a choice, ours keeps it.
    let nested = json!([{"name": "n", "description": "d", "schema": {"type": "object", "properties": {
        "o": {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]},
    }}}]);
    let theirs = ask(
        "langchain-ollama",
        "langchain_ollama_tools.py",
        nested.clone(),
    );
    let ours = convert_tools(Provider::Ollama, nested.as_array().expect("a list"));
    assert_eq!(
        theirs[0]["function"]["parameters"]["properties"]["o"],
        json!({"type": "object"})
    );
    assert_eq!(ours.tools[0]["function"]["parameters"], nested[0]["schema"]);
}

/// A file of a peer.
pub(super) fn installed(peer: &str, file: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = root
        .ancestors()
        .map(|directory| directory.join("target/peers").join(peer).join(file))
        .find(|candidate| candidate.exists());
    found.unwrap_or_else(|| panic!("run ./test once: it installs {peer}"))
}

/// Runs a script of `tests/peers` in a peer's home. Each script ends itself after two minutes.
pub(super) fn ask(peer: &str, script: &str, input: Value) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut child = Command::new(installed(peer, "bin/python"))
        .arg("-I")
        .arg(root.join("tests/peers").join(script))
        .env("LANGSMITH_TRACING", "false")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let writer = thread::spawn(move || stdin.write_all(input.to_string().as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {errors}");
    writer.join().expect("it writes").expect("it is read");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{script}: {error}"))
}
