//! What a real Ollama and a real llama.cpp answered: read without loss, wherever the stream is cut.

use std::path::Path;

use serde_json::{Value, json};
use steadyhand_conversation::{Converted, convert_tools};
use steadyhand_models::wire::{Assembler, decode};
use steadyhand_models::{Dialect, ModelError, ModelErrorKind, Reply, Stop, Told};

struct Recording {
    name: String,
    dialect: Dialect,
    tools: Converted,
    status: u64,
    streams: bool,
    body: String,
}

fn recordings() -> Vec<Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let mut found = Vec::new();
    for server in ["ollama", "llamacpp"] {
        for entry in std::fs::read_dir(folder.join(server)).expect("the recordings") {
            let path = entry.expect("an entry").path();
            let text = std::fs::read_to_string(&path).expect("a recording");
            let recording: Value = serde_json::from_str(&text).expect("JSON");
            let dialect = match recording["request"]["path"].as_str() {
                Some("/api/chat") => Dialect::Ollama,
                Some("/v1/messages") => Dialect::Anthropic,
                Some("/v1/chat/completions") => Dialect::OpenAi,
                Some("/v1/responses") => Dialect::OpenAiResponses,
                other => panic!("{other:?}"),
            };
            let response = &recording["response"];
            let kind = response["content_type"].as_str().unwrap_or_default();
            found.push(Recording {
                name: format!(
                    "{server}/{}",
                    path.file_stem().expect("a name").to_string_lossy()
                ),
                dialect,
                tools: convert_tools(dialect.provider(), []),
                status: response["status"].as_u64().expect("a status"),
                streams: kind.contains("event-stream") || kind.contains("ndjson"),
                body: match &response["body"] {
                    Value::String(body) => body.clone(),
                    other => other.to_string(),
                },
            });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(found.len(), 46);
    found
}

/// The response, and what was told on the way, when the stream comes in these pieces.
fn assemble(dialect: Dialect, pieces: &[&[u8]]) -> Result<(Value, Vec<Told>), ModelError> {
    let mut told = Vec::new();
    let mut assembler = Assembler::new(dialect, 1 << 20);
    for piece in pieces {
        assembler.push(piece, &mut |one| told.push(one))?;
    }
    let response = assembler.finish(&mut |one| told.push(one))?;
    Ok((response, told))
}

fn reply(recording: &Recording) -> Reply {
    let response = match recording.streams {
        true => {
            assemble(recording.dialect, &[recording.body.as_bytes()])
                .expect("a whole stream")
                .0
        }
        false => serde_json::from_str(&recording.body).expect("JSON"),
    };
    decode(recording.dialect, response, &recording.tools).expect("an answer")
}

fn find(name: &str) -> Recording {
    let mut all = recordings();
    let at = all.iter().position(|one| one.name == name).expect(name);
    all.swap_remove(at)
}

#[test]
fn every_recorded_answer_is_read_and_nothing_of_it_is_lost() {
    let (mut read, mut arguments) = (0, 0);
    for recording in recordings() {
        // What was only rendered has no answer in it.
        if recording.status != 200 || recording.name.contains("render") {
            continue;
        }
        let reply = reply(&recording);
        read += 1;
        for call in &reply.message.tool_calls {
            assert!(
                !call.id.is_empty() && !call.name.is_empty(),
                "{}",
                recording.name
            );
        }
        if !recording.streams {
            let body: Value = serde_json::from_str(&recording.body).expect("JSON");
            assert_eq!(reply.raw, body, "{}", recording.name);
        }
        // Every text and every argument that the model wrote is in the message.
        let message = serde_json::to_string(&reply.message).expect("JSON");
        for said in strings_said(recording.dialect, &reply.raw) {
            let written = Value::String(said.clone()).to_string();
            assert!(
                message.contains(written.trim_matches('"')),
                "{}: {said} is lost: {message}",
                recording.name
            );
        }
        for (name, args) in arguments_written(recording.dialect, &reply.raw) {
            let found = reply
                .message
                .tool_calls
                .iter()
                .any(|call| call.name == name && Value::Object(call.args.clone()) == args);
            // What broke off is kept as the text it is.
            let is_text = reply.message.invalid_tool_calls.iter().any(|call| {
                call.name.as_deref() == Some(&name) && call.args.as_deref() == args.as_str()
            });
            assert!(
                found || is_text,
                "{}: {name} {args} is lost: {message}",
                recording.name
            );
            arguments += 1;
        }
        // Chat completions count only when asked to.
        let counts = recording.dialect != Dialect::OpenAi || !reply.raw["usage"].is_null();
        assert_eq!(reply.usage.output_tokens > 0, counts, "{}", recording.name);
    }
    assert!(read >= 30, "only {read}");
    assert!(arguments >= 15, "only {arguments}");
}

/// The calls as they stand in a response: the name, and the arguments as they were written.
fn arguments_written(dialect: Dialect, response: &Value) -> Vec<(String, Value)> {
    let (calls, name, args) = match dialect {
        Dialect::Ollama => (
            &response["message"]["tool_calls"],
            "/function/name",
            "/function/arguments",
        ),
        Dialect::OpenAi => (
            &response["choices"][0]["message"]["tool_calls"],
            "/function/name",
            "/function/arguments",
        ),
        Dialect::Anthropic => (&response["content"], "/name", "/input"),
        Dialect::OpenAiResponses => (&response["output"], "/name", "/arguments"),
    };
    let written = |call: &Value| {
        let name = call.pointer(name)?.as_str()?.to_owned();
        let args = call.pointer(args)?;
        let read = args
            .as_str()
            .and_then(|text| serde_json::from_str(text).ok());
        Some((name, read.unwrap_or_else(|| args.clone())))
    };
    let calls = calls.as_array().into_iter().flatten();
    calls.filter_map(written).collect()
}

fn strings_said(dialect: Dialect, response: &Value) -> Vec<String> {
    let mut said = Vec::new();
    let mut take = |value: &Value| {
        if let Some(text) = value.as_str() {
            said.push(text.to_owned());
        }
    };
    match dialect {
        Dialect::Ollama => {
            take(&response["message"]["content"]);
            for call in response["message"]["tool_calls"]
                .as_array()
                .into_iter()
                .flatten()
            {
                take(&call["id"]);
                take(&call["function"]["name"]);
                for value in call["function"]["arguments"]
                    .as_object()
                    .into_iter()
                    .flatten()
                {
                    take(value.1);
                }
            }
        }
        Dialect::OpenAi => {
            take(&response["choices"][0]["message"]["content"]);
            for call in response["choices"][0]["message"]["tool_calls"]
                .as_array()
                .into_iter()
                .flatten()
            {
                take(&call["id"]);
                take(&call["function"]["name"]);
            }
        }
        Dialect::Anthropic => {
            for block in response["content"].as_array().into_iter().flatten() {
                take(&block["text"]);
                take(&block["id"]);
                take(&block["name"]);
            }
        }
        Dialect::OpenAiResponses => {
            for item in response["output"].as_array().into_iter().flatten() {
                take(&item["call_id"]);
                take(&item["name"]);
                take(&item["content"][0]["text"]);
            }
        }
    }
    said
}

#[test]
fn a_recorded_stream_is_the_same_wherever_it_is_cut() {
    let mut streams = 0;
    for recording in recordings().into_iter().filter(|one| one.streams) {
        streams += 1;
        let bytes = recording.body.as_bytes();
        let whole = assemble(recording.dialect, &[bytes]).expect("a whole stream");
        for at in 0..=bytes.len() {
            let cut = assemble(recording.dialect, &[&bytes[..at], &bytes[at..]]);
            assert_eq!(cut.as_ref(), Ok(&whole), "{} cut at {at}", recording.name);
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(
            assemble(recording.dialect, &single),
            Ok(whole),
            "{}",
            recording.name
        );
    }
    assert_eq!(streams, 10);
}

#[test]
fn a_recorded_stream_that_ends_early_is_an_error_or_the_whole_answer_and_never_half_of_one() {
    for recording in recordings().into_iter().filter(|one| one.streams) {
        let bytes = recording.body.as_bytes();
        let (whole, _) = assemble(recording.dialect, &[bytes]).expect("a whole stream");
        let whole = decode(recording.dialect, whole, &recording.tools).expect("an answer");
        let mut broken = 0;
        for at in 0..bytes.len() {
            match assemble(recording.dialect, &[&bytes[..at]]) {
                Err(error) => {
                    assert_eq!(
                        error.kind,
                        ModelErrorKind::BrokeOff,
                        "{} at {at}: {error}",
                        recording.name
                    );
                    broken += 1;
                }
                Ok((response, _)) => {
                    let reply =
                        decode(recording.dialect, response, &recording.tools).expect("an answer");
                    assert_eq!(
                        reply.message.content, whole.message.content,
                        "{} at {at}",
                        recording.name
                    );
                    assert_eq!(reply.message.tool_calls, whole.message.tool_calls);
                    assert_eq!(
                        reply.message.invalid_tool_calls,
                        whole.message.invalid_tool_calls
                    );
                }
            }
        }
        assert!(broken > bytes.len() / 2, "{}", recording.name);
    }
}

#[test]
fn v20_a_recorded_call_of_qwens_is_read_with_its_arguments_as_they_are() {
    for name in [
        "ollama/fence_auto_stream",
        "ollama/anthropic_stream",
        "ollama/openai_stream",
        "ollama/openai_nostream",
        "ollama/responses_nostream",
        "llamacpp/anthropic_stream",
        "llamacpp/openai_stream",
        "llamacpp/responses_stream",
    ] {
        let reply = reply(&find(name));
        assert_eq!(reply.stop, Stop::ToolUse, "{name}");
        let [call] = reply.message.tool_calls.as_slice() else {
            panic!("{name}: {:?}", reply.message)
        };
        assert_eq!(call.name, "get_weather");
        assert_eq!(
            Value::Object(call.args.clone()),
            json!({"city": "Paris", "unit": "celsius"}),
            "{name}"
        );
        assert!(reply.message.invalid_tool_calls.is_empty());
    }
}

#[test]
fn a_recorded_call_that_was_cut_off_is_no_call() {
    for name in [
        "llamacpp/openai_truncated_call",
        "llamacpp/openai_truncated_call_stream",
    ] {
        let reply = reply(&find(name));
        assert_eq!(reply.stop, Stop::Length, "{name}");
        assert!(reply.message.tool_calls.is_empty(), "{name}");
        let [broken] = reply.message.invalid_tool_calls.as_slice() else {
            panic!("{name}: {:?}", reply.message)
        };
        assert_eq!(broken.args.as_deref(), Some("{"));
        let error = broken.error.as_deref().expect("a reason");
        assert!(
            error.starts_with("unfinished JSON at line 1, column 1"),
            "{error}"
        );
    }
}

#[test]
fn recorded_errors_are_told_in_the_providers_words() {
    let unknown = find("ollama/unknown_model");
    let body: Value = serde_json::from_str(&unknown.body).expect("JSON");
    let error = decode(Dialect::Ollama, body, &unknown.tools).expect_err("an error");
    assert!(error.message.contains("model 'nope' not found"), "{error}");
}
