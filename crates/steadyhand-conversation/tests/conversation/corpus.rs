//! Real traffic: what a provider accepted is found faultless and comes back as it was; what it refused is not.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use steadyhand_conversation::{
    Code, Host, Options, Provider, What, messages_key, repair_response, repair_with, validate_with,
};

use super::render::written;

/// One exchange with a real provider.
struct Row {
    provider: Provider,
    options: Options,
    what: What,
    request: Value,
    status: u64,
    response: String,
    name: String,
}

#[test]
fn r01_every_request_that_a_provider_accepted_is_faultless() {
    for row in rows().iter().filter(|row| row.status == 200) {
        let mut found = validate_with(row.provider, &row.options, row.what, &row.request);
        // Many a tool of these has no description. Providers take it, so nothing says that they would not.
        found.retain(|one| one.code != Code::MissingDescription || one.provider_text.is_some());
        assert!(found.is_empty(), "{}: {found:#?}", row.name);
    }
}

#[test]
fn t06_every_answer_of_a_provider_comes_back_to_the_last_byte() {
    let mut looked_at = 0;
    for row in rows().iter().filter(|row| row.status == 200) {
        let Ok(response) = serde_json::from_str::<Value>(&row.response) else {
            continue; // A stream.
        };
        if row.what == What::Match {
            continue; // A number of tokens.
        }
        let (repaired, fixes) = repair_response(row.provider, response.clone());
        if row.name.ends_with("tool_calls_without_id.yaml") {
            let codes: Vec<&str> = fixes.iter().map(|one| one.code.as_str()).collect();
            assert!(codes.iter().all(|code| *code == "bad_call_id"), "{codes:?}");
            continue;
        }
        assert!(fixes.is_empty(), "{}: {fixes:#?}", row.name);
        assert_eq!(repaired.to_string(), response.to_string(), "{}", row.name);
        looked_at += 1;
    }
    assert!(looked_at == 0 || looked_at > 400, "{looked_at}");
}

#[test]
fn r01_every_request_that_a_provider_refused_has_its_fault_found() {
    for row in rows().iter().filter(|row| row.status == 400) {
        let found = validate_with(row.provider, &row.options, row.what, &row.request);
        let response: Value = serde_json::from_str(&row.response).expect("an error is JSON");
        let said = response["error"]["message"].as_str().expect("it says why");
        let is_said = |text: &str| said.starts_with(text);
        let texts: Vec<&str> = found
            .iter()
            .filter_map(|one| one.provider_text.as_deref())
            .collect();
        assert!(
            texts.iter().any(|text| is_said(text)),
            "{}: {said}\n{found:#?}",
            row.name
        );
    }
}

#[test]
fn r03_every_request_that_a_provider_accepted_comes_back_to_the_last_byte() {
    for row in rows().iter().filter(|row| row.status == 200) {
        let (repaired, fixes) = repair_with(row.provider, &row.options, row.request.clone());
        assert!(fixes.is_empty(), "{}: {fixes:#?}", row.name);
        assert_eq!(
            repaired.to_string(),
            row.request.to_string(),
            "{}",
            row.name
        );
    }
}

#[test]
fn r03_whatever_becomes_of_an_accepted_request_it_is_mended_once() {
    for (number, row) in rows().iter().filter(|row| row.status == 200).enumerate() {
        // Three of the twelve ways each, so that all are tried on every provider.
        for breakage in (number..number + 3).map(|way| way % 12) {
            let mut broken = row.request.clone();
            break_it(row.provider, &mut broken, breakage, number);
            let (once, _) = repair_with(row.provider, &row.options, broken.clone());
            let (twice, more) = repair_with(row.provider, &row.options, once.clone());
            let is_same = written(&once) == written(&twice);
            assert!(
                more.is_empty() && is_same,
                "{} {breakage}\n{more:#?}\nbroken {broken:#}\nonce {once:#}",
                row.name
            );
        }
    }
}

/// Does to a request what applications do by mistake.
fn break_it(provider: Provider, request: &mut Value, breakage: usize, number: usize) {
    let key = messages_key(provider);
    let Some(Value::Array(messages)) = request.get_mut(key) else {
        return;
    };
    if messages.is_empty() {
        return;
    }
    let at = number % messages.len();
    match breakage {
        0 => {
            messages.remove(at);
        }
        1 => messages.insert(at, messages[at].clone()),
        2 => messages.reverse(),
        3 => messages.truncate(at + 1),
        4 => {
            messages.drain(..at);
        }
        5 => messages.swap(0, at),
        6 => messages.insert(at, json!({"role": "system", "content": "s"})),
        7 => {
            let blank = json!({"role": "user", "content": [{"type": "text", "text": ""}]});
            messages.insert(at, blank);
            messages.insert(at + 1, json!({"role": "system", "content": "s"}));
            messages.insert(at + 2, json!({"role": "system", "content": "t"}));
        }
        8 => messages[at]["content"] = json!(" "),
        9 => messages[at] = json!(null),
        10 => {
            let call =
                json!({"id": "c", "type": "function", "function": {"name": "n", "arguments": "{"}});
            let said = json!({"role": "assistant", "content": "", "tool_calls": [call]});
            messages.insert(at, said);
        }
        _ => {
            let call = json!({"type": "tool_use", "id": "c", "name": "n", "input": {}});
            messages.insert(at, json!({"role": "assistant", "content": [call]}));
            let result = json!({"type": "tool_result", "tool_use_id": "d", "content": " "});
            messages.insert(at + 1, json!({"role": "user", "content": [result]}));
        }
    }
}

#[test]
fn r02_every_answer_of_a_provider_is_whole() {
    for row in rows().iter().filter(|row| row.status == 200) {
        let Ok(response) = serde_json::from_str::<Value>(&row.response) else {
            continue; // A stream.
        };
        if response.get("input_tokens").is_some() && response.get("content").is_none() {
            continue; // The answer to a question for the number of tokens.
        }
        let found = validate_with(row.provider, &row.options, What::Response, &response);
        if row.name.ends_with("tool_calls_without_id.yaml") {
            // A service that speaks OpenAI's language, and forgets the ids.
            let codes: Vec<&str> = found.iter().map(|one| one.code.as_str()).collect();
            assert!(codes.iter().all(|code| *code == "bad_call_id"), "{codes:?}");
            continue;
        }
        assert!(found.is_empty(), "{}: {found:#?}", row.name);
    }
}

/// All exchanges, or none and a word about it.
fn rows() -> Vec<Row> {
    let Some(path) = shared("data/provider-corpus.jsonl") else {
        return Vec::new();
    };
    let text = fs::read_to_string(path).expect("the corpus can be read");
    text.lines().map(row).collect()
}

/// A file of the recordings that are kept beside the project.
pub(super) fn shared(file: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("STEADYHAND_SHARED").map_or_else(beside, PathBuf::from);
    let path = folder.join(file);
    if !path.exists() {
        say(&format!(
            "SKIPPED: {} is absent; set STEADYHAND_SHARED to the folder with the recordings",
            path.display()
        ));
        return None;
    }
    Some(path)
}

pub(super) fn say(text: &str) {
    use std::io::Write as _;
    // Past the capture of the tests, which shows nothing of one that passes.
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn row(line: &str) -> Row {
    let mut row: Value = serde_json::from_str(line).expect("a row is JSON");
    let path = row["path"].as_str().expect("a path").to_owned();
    let source = row["source"].as_str().expect("a source").to_owned();
    let provider = match (row["provider"].as_str(), path.as_str()) {
        (Some("mistral"), _) => Provider::Mistral,
        (_, path) if path.ends_with("/chat/completions") => Provider::OpenAi,
        (_, path) if path.contains("/messages") => Provider::Anthropic,
        (_, path) if path.contains("/responses") => Provider::OpenAiResponses,
        (_, path) if path.contains("enerateContent") => Provider::Gemini,
        (_, path) => panic!("nobody answers at {path}"),
    };
    // Gemini's model is in the address.
    let model = path
        .split("/models/")
        .nth(1)
        .and_then(|rest| rest.split(':').next());
    let options = match model {
        Some(model) => Options::new().model(model),
        None => Options::new(),
    };
    let options = options.host(match row["provider"].as_str() {
        Some("openai" | "anthropic" | "mistral") => Host::Original,
        Some("gemini") if provider == Provider::Gemini => Host::Original,
        Some("deepseek") => Host::DeepSeek,
        _ => Host::Compatible,
    });
    // Counting tokens takes requests without an end.
    let counts = path.ends_with("count_tokens") || path.ends_with("input_tokens");
    Row {
        provider,
        options,
        what: if counts { What::Match } else { What::Request },
        status: row["status"].as_u64().expect("a status"),
        response: match row["response"].take() {
            Value::String(text) => text,
            other => other.to_string(),
        },
        name: format!("{path} {source}"),
        request: row["request"].take(),
    }
}
