//! The habits of those who speak a provider's language, and what may not be run.

use serde_json::{Value, json};
use steadyhand::{AiMessage, Content, InvalidToolCall, Message, ToolCall, ToolMessage};
use steadyhand_conversation::strict;
use steadyhand_conversation::{Converted, convert_tools};
use steadyhand_models::wire::Lines;
use steadyhand_models::wire::{Assembler, decode, encode};
use steadyhand_models::{
    Delivery, Dialect, ModelErrorKind, ModelRequest, ModelSettings, Reply, Stop, ToolChoice,
};

fn none(dialect: Dialect) -> Converted {
    convert_tools(dialect.provider(), [])
}

fn chat(chunks: &[Value]) -> Reply {
    let mut assembler = Assembler::new(Dialect::OpenAi, 1 << 20);
    for chunk in chunks {
        let line = format!("data: {chunk}\n\n");
        assembler
            .push(line.as_bytes(), &mut |_| {})
            .expect("a chunk");
    }
    assembler
        .push(b"data: [DONE]\n\n", &mut |_| {})
        .expect("the end");
    let response = assembler.finish(&mut |_| {}).expect("a whole stream");
    decode(Dialect::OpenAi, response, &none(Dialect::OpenAi)).expect("an answer")
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn called(reply: &Reply) -> Vec<(String, String, Value)> {
    let calls = reply.message.tool_calls.iter();
    calls
        .map(|call| {
            (
                call.id.clone(),
                call.name.clone(),
                Value::Object(call.args.clone()),
            )
        })
        .collect()
}

#[test]
fn calls_are_merged_whatever_a_compatible_server_leaves_out() {
    let piece = |fields: Value| delta(json!({"tool_calls": [fields]}));
    let expected = vec![("a".to_owned(), "f".to_owned(), json!({"x": 1}))];
    // OpenAI.
    let openai = chat(&[
        piece(
            json!({"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}),
        ),
        piece(json!({"index": 0, "function": {"arguments": "{\"x\":"}})),
        piece(json!({"index": 0, "function": {"arguments": " 1}"}})),
    ]);
    assert_eq!(called(&openai), expected);
    // Mistral: a whole call, no index, no type.
    let mistral = chat(&[piece(
        json!({"id": "a", "function": {"name": "f", "arguments": "{\"x\": 1}"}}),
    )]);
    assert_eq!(called(&mistral), expected);
    // GLM: the name again and again, empty. Anthropic's surface: counted from 1.
    let glm = chat(&[
        piece(json!({"index": 1, "id": "a", "function": {"name": "f", "arguments": "{\"x\":"}})),
        piece(json!({"index": 1, "id": "", "function": {"name": "", "arguments": " 1}"}})),
    ]);
    assert_eq!(called(&glm), expected);
    // An object where a text should be.
    let object = chat(&[piece(
        json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": {"x": 1}}}),
    )]);
    assert_eq!(called(&object), expected);
    // All calls counted as the first: two ids are two calls.
    let two = chat(&[
        piece(json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\": 1}"}})),
        piece(json!({"index": 0, "id": "b", "function": {"name": "g", "arguments": "{}"}})),
    ]);
    assert_eq!(called(&two).len(), 2);
    // Neither index nor id: a name after a whole call begins another.
    let nameless = chat(&[
        piece(json!({"function": {"name": "f", "arguments": "{\"x\": 1}"}})),
        piece(json!({"function": {"name": "f", "arguments": "{\"x\""}})),
        piece(json!({"function": {"arguments": ": 2}"}})),
    ]);
    let args: Vec<Value> = called(&nameless)
        .into_iter()
        .map(|(_, _, args)| args)
        .collect();
    assert_eq!(args, [json!({"x": 1}), json!({"x": 2})]);
    // Interleaved.
    let parallel = chat(&[
        delta(json!({"tool_calls": [
            {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}},
            {"index": 1, "id": "b", "function": {"name": "g", "arguments": "{\"y\""}},
        ]})),
        piece(json!({"index": 0, "function": {"arguments": "}"}})),
        piece(json!({"index": 1, "function": {"arguments": ":2}"}})),
    ]);
    assert_eq!(
        called(&parallel)[1],
        ("b".to_owned(), "g".to_owned(), json!({"y": 2}))
    );
}

#[test]
fn what_deepseek_and_others_add_is_kept_and_goes_back() {
    let reply = chat(&[
        delta(json!({"role": "assistant", "reasoning_content": "Hm, "})),
        delta(json!({"reasoning_content": "well.", "content": null})),
        delta(
            json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}, "extra_content": {"google": {"thought_signature": "s"}}}]}),
        ),
    ]);
    let messages = [Message::human("?"), reply.message.into()];
    let settings = ModelSettings::new(Dialect::OpenAi, "deepseek").url("http://127.0.0.1:1/v1");
    let request = ModelRequest {
        messages: &messages,
        tools: &[],
        choice: ToolChoice::Auto,
        delivery: Delivery::Whole,
    };
    let body = encode(&settings, &request).body;
    assert_eq!(body["messages"][1]["reasoning_content"], "Hm, well.");
    assert_eq!(
        body["messages"][1]["tool_calls"][0]["extra_content"]["google"]["thought_signature"],
        "s"
    );
    // OpenAI itself gets none of it.
    let settings = ModelSettings::new(Dialect::OpenAi, "gpt").key("k");
    let body = encode(&settings, &request).body;
    assert!(body["messages"][1].get("reasoning_content").is_none());
}

/// One call in the shape of each provider, with arguments as text or as the object it is, stopped for lack of tokens.
fn cut(dialect: Dialect, arguments: &str) -> Value {
    let object = || serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments));
    match dialect {
        Dialect::Anthropic => {
            json!({"content": [{"type": "tool_use", "id": "a", "name": "f", "input": object()}], "stop_reason": "max_tokens"})
        }
        Dialect::Ollama => {
            json!({"message": {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": object()}}]}, "done": true, "done_reason": "length"})
        }
        Dialect::OpenAi => {
            json!({"choices": [{"message": {"content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}}]}, "finish_reason": "length"}]})
        }
        Dialect::OpenAiResponses => {
            json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [{"type": "function_call", "call_id": "a", "name": "f", "arguments": arguments}]})
        }
    }
}

#[test]
fn arguments_that_break_off_are_never_a_call_wherever_they_break_off() {
    let whole = r#"{"to": "anna@example.org", "amount": 1200, "note": "for \"rent\" ✓"}"#;
    for dialect in Dialect::ALL {
        for at in (0..whole.len()).filter(|at| whole.is_char_boundary(*at)) {
            let reply =
                decode(dialect, cut(dialect, &whole[..at]), &none(dialect)).expect("an answer");
            assert_eq!(reply.stop, Stop::Length);
            assert!(reply.message.tool_calls.is_empty(), "{dialect} at {at}");
            let [broken] = reply.message.invalid_tool_calls.as_slice() else {
                panic!("{dialect} at {at}")
            };
            assert!(broken.error.is_some());
        }
    }
    // Text that is whole shows that it is; an object does not.
    for (dialect, runs) in [
        (Dialect::OpenAi, true),
        (Dialect::OpenAiResponses, true),
        (Dialect::Anthropic, false),
        (Dialect::Ollama, false),
    ] {
        let reply = decode(dialect, cut(dialect, whole), &none(dialect)).expect("an answer");
        assert_eq!(reply.message.tool_calls.len() == 1, runs, "{dialect}");
        assert_eq!(
            reply.message.invalid_tool_calls.len() == 1,
            !runs,
            "{dialect}"
        );
    }
}

#[test]
fn arguments_that_are_no_object_are_never_a_call() {
    for arguments in [
        "[1]",
        "12",
        "\"text\"",
        "true",
        "{\"a\": 1,}",
        "{'a': 1}",
        "{\"a\": 1} {\"b\": 2}",
    ] {
        let mut body = cut(Dialect::OpenAi, arguments);
        body["choices"][0]["finish_reason"] = json!("tool_calls");
        let reply = decode(Dialect::OpenAi, body, &none(Dialect::OpenAi)).expect("an answer");
        assert!(reply.message.tool_calls.is_empty(), "{arguments}");
        assert_eq!(reply.message.invalid_tool_calls.len(), 1);
    }
    // None at all, and an object that was written twice, are arguments.
    for (arguments, args) in [
        ("", json!({})),
        ("null", json!({})),
        (r#""{\"a\": 1}""#, json!({"a": 1})),
    ] {
        let mut body = cut(Dialect::OpenAi, arguments);
        body["choices"][0]["finish_reason"] = json!("tool_calls");
        let reply = decode(Dialect::OpenAi, body, &none(Dialect::OpenAi)).expect("an answer");
        assert_eq!(
            Value::Object(reply.message.tool_calls[0].args.clone()),
            args
        );
    }
}

#[test]
fn an_error_in_the_middle_of_a_stream_is_a_failure() {
    let events = [
        (
            Dialect::Anthropic,
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
        ),
        (
            Dialect::OpenAi,
            "data: {\"error\":{\"message\":\"Overloaded\",\"code\":\"tool_use_failed\"}}\n\n",
        ),
        (
            Dialect::OpenAiResponses,
            "data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"message\":\"Overloaded\"}}}\n\n",
        ),
        (
            Dialect::OpenAiResponses,
            "data: {\"type\":\"error\",\"message\":\"Overloaded\"}\n\n",
        ),
        (Dialect::Ollama, "{\"error\":\"Overloaded\"}\n"),
    ];
    for (dialect, event) in events {
        let mut assembler = Assembler::new(dialect, 1 << 20);
        let error = assembler
            .push(event.as_bytes(), &mut |_| {})
            .expect_err("a failure");
        assert_eq!(error.kind, ModelErrorKind::Provider, "{dialect}");
        assert!(error.message.contains("Overloaded"), "{error}");
    }
}

#[test]
fn what_is_too_large_or_no_protocol_is_refused() {
    for dialect in Dialect::ALL {
        let mut assembler = Assembler::new(dialect, 100);
        let error = assembler
            .push(&[b'x'; 101], &mut |_| {})
            .expect_err("too much");
        assert_eq!(error.kind, ModelErrorKind::TooLarge);
        let mut assembler = Assembler::new(dialect, 1000);
        let error = assembler
            .push(b"data: <html>\n\n", &mut |_| {})
            .expect_err("no protocol");
        assert_eq!(error.kind, ModelErrorKind::Unreadable);
        let error =
            decode(dialect, json!({"hello": "world"}), &none(dialect)).expect_err("no answer");
        assert_eq!(error.kind, ModelErrorKind::Unreadable);
    }
}

#[test]
fn every_conversation_is_encoded_as_one_that_the_provider_takes() {
    let call = |id: &str| ToolCall::with_id(id, "odd name!", serde_json::Map::new());
    let broken = AiMessage {
        content: Content::Blocks(vec![
            json!({"type": "text", "text": ""}),
            json!({"type": "thinking", "thinking": "?"}),
        ]),
        invalid_tool_calls: vec![InvalidToolCall {
            id: Some("bad id, and long: ".repeat(5)),
            name: Some("f".into()),
            args: Some("{\"a\":".into()),
            ..Default::default()
        }],
        ..Default::default()
    };
    let picture = json!({"type": "image", "base64": "aGk=", "mime_type": "image/png"});
    let conversations: Vec<Vec<Message>> = vec![
        vec![Message::human("")],
        vec![Message::human(vec![
            json!({"type": "text", "text": "look"}),
            picture.clone(),
            json!({"type": "video", "x": 1}),
        ])],
        vec![
            Message::human("a"),
            AiMessage::calling("", vec![call("1"), call("1")]).into(),
            Message::human("b"),
        ],
        vec![
            Message::human("a"),
            ToolMessage::new("orphan", "r".into()).into(),
            Message::system("late"),
        ],
        vec![Message::human("a"), broken.into(), Message::human("b")],
        vec![AiMessage::calling("first", vec![call("x")]).into()],
        vec![
            Message::human("a"),
            AiMessage::calling("", vec![call("p")]).into(),
            ToolMessage::new("p", Content::Blocks(vec![picture])).into(),
        ],
    ];
    let tool = json!({"name": "f", "description": "d", "schema": {"type": "object"}});
    for messages in &conversations {
        for dialect in Dialect::ALL {
            for choice in [ToolChoice::Auto, ToolChoice::Required, ToolChoice::None] {
                let settings = ModelSettings::new(dialect, "m")
                    .max_tokens(100)
                    .temperature(0.5);
                let request = ModelRequest {
                    messages,
                    tools: std::slice::from_ref(&tool),
                    choice,
                    delivery: Delivery::Streaming,
                };
                let body = encode(&settings, &request).body;
                assert_eq!(
                    strict::check(dialect.provider(), &body),
                    Ok(()),
                    "{dialect}: {body:#}"
                );
            }
        }
    }
}

#[test]
fn a_last_line_without_an_end_is_read() {
    let chunk = delta(json!({"content": "Hi"}));
    let mut assembler = Assembler::new(Dialect::OpenAi, 1 << 20);
    let stream = format!("data: {chunk}\r\n\r\ndata: [DONE]");
    assembler
        .push(stream.as_bytes(), &mut |_| {})
        .expect("a chunk");
    assert!(!assembler.is_complete());
    let response = assembler.finish(&mut |_| {}).expect("a whole stream");
    let reply = decode(Dialect::OpenAi, response, &none(Dialect::OpenAi)).expect("an answer");
    assert_eq!(reply.message.content.text(), "Hi");
}

#[test]
fn a_refusal_is_what_the_model_says() {
    let reply = chat(&[
        delta(json!({"role": "assistant", "content": null, "refusal": "I cannot "})),
        delta(json!({"refusal": "help with that."})),
    ]);
    assert_eq!(reply.stop, Stop::Refusal);
    assert_eq!(reply.message.content.text(), "I cannot help with that.");
}

#[test]
fn lines_end_as_their_sender_likes_wherever_they_are_cut() {
    let told = ["data: a", "", "data: b", ""];
    for end in ["\n", "\r\n", "\r"] {
        let text = told.map(|line| format!("{line}{end}")).concat();
        for size in 1..=text.len() {
            let mut lines = Lines::new(100);
            let mut read = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                lines.feed(piece).expect("it is short");
                while let Some(line) = lines.next_line() {
                    read.push(String::from_utf8_lossy(line).into_owned());
                }
            }
            // A return at the very end may have its line feed on the way.
            let is_open = end == "\r";
            assert_eq!(
                read,
                told[..told.len() - usize::from(is_open)],
                "{end:?} {size}"
            );
            assert_eq!(lines.rest(), b"", "{end:?} {size}");
        }
    }
}
