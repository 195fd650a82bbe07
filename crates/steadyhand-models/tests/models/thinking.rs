//! Thinking that a model writes into its answer is no part of the answer, whoever serves the model.

use std::sync::Arc;

use serde_json::{Value, json};
use steadyhand::{Content, Message};
use steadyhand_conversation::convert_tools;
use steadyhand_models::testing::Line;
use steadyhand_models::wire::{Assembler, decode, encode};
use steadyhand_models::{Agent, AgentEvent, Delivery, Dialect, End};
use steadyhand_models::{ModelRequest, ModelSettings, Scripted, Told, ToolChoice};

use super::support::{BOTH, executor, model, run, settings, weather, words};

/// An answer, and what is to be heard of it.
const ANSWERS: [(&str, &str); 14] = [
    ("It is warm.", "It is warm."),
    ("<think>Let me see.</think>It is warm.", "It is warm."),
    (
        "<think>\nLet me see.\n</think>\n\nIt is warm.",
        "It is warm.",
    ),
    ("\n <think></think>\n\nIt is warm.", "It is warm."),
    ("<THINK>a < b</Think> It is warm.", "It is warm."),
    (
        "It <think>hm</think>is <think>hm</think>warm.",
        "It is warm.",
    ),
    ("<thinking>hm</thinking>It is warm.", "It is warm."),
    ("<thought>hm</thought>It is warm.", "It is warm."),
    ("[THINK]hm[/THINK]It is warm.", "It is warm."),
    ("◁think▷hm◁/think▷It is warm.", "It is warm."),
    // Thinking that has no end: there is no answer.
    ("<think>I could go on for ev", ""),
    ("It is warm. <think>Or is i", "It is warm. "),
    // What is no tag is said, and so is one that the model talks about.
    ("a <b> <thi [T </p> <", "a <b> <thi [T </p> <"),
    (
        "Write `<think>` like this:\n```\n<think>x</think>\n```\n",
        "Write `<think>` like this:\n```\n<think>x</think>\n```\n",
    ),
];

/// A whole response in which the model says this.
fn response(dialect: Dialect, said: &str) -> Value {
    match dialect {
        Dialect::Anthropic => {
            json!({"role": "assistant", "content": [{"type": "text", "text": said}], "stop_reason": "end_turn"})
        }
        Dialect::OpenAi => {
            json!({"choices": [{"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}]})
        }
        Dialect::OpenAiResponses => {
            json!({"status": "completed", "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}]}]})
        }
        Dialect::Ollama => {
            json!({"message": {"role": "assistant", "content": said}, "done": true, "done_reason": "stop"})
        }
    }
}

/// The stream in which the model says these pieces.
fn stream(dialect: Dialect, pieces: &[String]) -> String {
    let event = |value: Value| format!("data: {value}\n\n");
    let mut out = String::new();
    match dialect {
        Dialect::Anthropic => {
            out += &event(
                json!({"type": "message_start", "message": {"role": "assistant", "content": []}}),
            );
            out += &event(
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            );
            for piece in pieces {
                out += &event(
                    json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}),
                );
            }
            out += &event(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}));
        }
        Dialect::OpenAi => {
            for piece in pieces {
                out += &event(json!({"choices": [{"index": 0, "delta": {"content": piece}}]}));
            }
            out += &event(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
        }
        Dialect::OpenAiResponses => {
            out += &event(
                json!({"type": "response.output_item.added", "output_index": 0, "item": {"id": "m", "type": "message", "role": "assistant", "content": []}}),
            );
            for piece in pieces {
                out += &event(
                    json!({"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": piece}),
                );
            }
            out +=
                &event(json!({"type": "response.completed", "response": {"status": "completed"}}));
        }
        Dialect::Ollama => {
            for piece in pieces {
                out += &format!(
                    "{}\n",
                    json!({"message": {"role": "assistant", "content": piece}, "done": false})
                );
            }
            out += &format!(
                "{}\n",
                json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop"})
            );
        }
    }
    out
}

#[test]
fn thinking_in_tags_is_no_part_of_an_answer_however_it_comes() {
    for dialect in Dialect::ALL {
        let tools = convert_tools(dialect.provider(), []);
        for (said, heard) in ANSWERS {
            let reply = decode(dialect, response(dialect, said), &tools).expect("an answer");
            assert_eq!(reply.message.content.text(), heard, "{dialect} {said:?}");
            let letters: Vec<String> = said.chars().map(String::from).collect();
            let twos = said.chars().collect::<Vec<char>>();
            let twos: Vec<String> = twos.chunks(2).map(|two| two.iter().collect()).collect();
            for pieces in [vec![said.to_owned()], twos, letters] {
                let mut assembler = Assembler::new(dialect, 1 << 20);
                let mut told = String::new();
                let mut tell = |piece: Told| {
                    if let Told::Text(text) = piece {
                        told.push_str(&text);
                    }
                };
                let stream = stream(dialect, &pieces);
                assembler
                    .push(stream.as_bytes(), &mut tell)
                    .expect("a stream");
                let whole = assembler.finish(&mut tell).expect("it is whole");
                let reply = decode(dialect, whole, &tools).expect("an answer");
                assert_eq!(reply.message.content.text(), heard, "{dialect} {said:?}");
                assert_eq!(told, heard, "{dialect} {said:?} in {} pieces", pieces.len());
            }
        }
    }
}

#[test]
fn thinking_whose_beginning_the_template_took_is_no_part_of_an_answer() {
    for dialect in Dialect::ALL {
        let tools = convert_tools(dialect.provider(), []);
        let table = [
            ("The user asks.\n</think>\n\nIt is warm.", "It is warm."),
            ("The user asks.</think>\nIt is warm.", "It is warm."),
            (
                "One ends it with </think> in the text.",
                "One ends it with </think> in the text.",
            ),
        ];
        for (said, heard) in table {
            let reply = decode(dialect, response(dialect, said), &tools).expect("an answer");
            assert_eq!(reply.message.content.text(), heard, "{dialect} {said:?}");
        }
    }
}

#[test]
fn thinking_in_parts_of_their_own_is_no_part_of_an_answer() {
    let tools = convert_tools(Dialect::OpenAi.provider(), []);
    let event = |delta: Value| {
        format!(
            "data: {}\n\n",
            json!({"choices": [{"index": 0, "delta": delta}]})
        )
    };
    let thought =
        |words: &str| json!([{"type": "thinking", "thinking": [{"type": "text", "text": words}]}]);
    // Mistral's way.
    let stream = [
        event(json!({"role": "assistant", "content": thought("The user ")})),
        event(json!({"content": thought("asks.")})),
        event(json!({"content": "It is "})),
        event(json!({"content": "warm."})),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat();
    let mut assembler = Assembler::new(Dialect::OpenAi, 1 << 20);
    let (mut told, mut thoughts) = (String::new(), String::new());
    let mut tell = |piece: Told| match piece {
        Told::Text(text) => told.push_str(&text),
        Told::Thinking(text) => thoughts.push_str(&text),
        _ => {}
    };
    assembler
        .push(stream.as_bytes(), &mut tell)
        .expect("a stream");
    let whole = assembler.finish(&mut tell).expect("it is whole");
    let reply = decode(Dialect::OpenAi, whole, &tools).expect("an answer");
    assert_eq!(
        (told.as_str(), thoughts.as_str()),
        ("It is warm.", "The user asks.")
    );
    assert_eq!(reply.message.content.text(), "It is warm.");

    let responses = json!({"status": "completed", "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "The user asks."}], "content": [{"type": "reasoning_text", "text": "Hm."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "reasoning_text", "text": "Hm."}, {"type": "output_text", "text": "It is warm."}]},
    ]});
    let reply = decode(Dialect::OpenAiResponses, responses, &tools).expect("an answer");
    assert_eq!(reply.message.content.text(), "It is warm.");

    for field in ["reasoning", "reasoning_content", "thinking"] {
        let mut response = response(Dialect::OpenAi, "It is warm.");
        response["choices"][0]["message"][field] = json!("The user asks.");
        let reply = decode(Dialect::OpenAi, response, &tools).expect("an answer");
        assert_eq!(
            reply.message.content,
            Content::from("It is warm."),
            "{field}"
        );
    }
}

#[tokio::test]
async fn thinking_in_tags_is_not_told_and_not_kept_as_an_answer_by_the_loop() {
    for dialect in Dialect::ALL {
        for delivery in BOTH {
            let (_provider, model) = model(
                dialect,
                [Line::says(
                    "<think>The user asks me.</think>\n\nIt is warm.",
                )],
            )
            .await;
            let agent = Agent::new(model, executor([weather()])).with(settings(delivery));
            let mut conversation = vec![Message::human("Weather?")];
            let (end, events) = run(&agent, &mut conversation).await;
            assert_eq!(
                (end.end, end.text.as_str()),
                (End::Answered, "It is warm."),
                "{dialect} {delivery:?}"
            );
            assert_eq!(words(&events), "It is warm.", "{dialect} {delivery:?}");
            let Some(Message::Ai(ai)) = conversation.last() else {
                panic!("{conversation:?}");
            };
            assert_eq!(ai.content.text(), "It is warm.");
            let thinks = events
                .iter()
                .any(|event| matches!(event, AgentEvent::Thinking { .. }));
            assert_eq!(thinks, delivery == Delivery::Streaming, "{dialect}");
        }
    }
}

#[tokio::test]
async fn thinking_of_a_model_of_ones_own_is_no_part_of_an_answer_either() {
    let model = Scripted::new().says("<think>The user asks me.</think>\n\nIt is warm.");
    let agent = Agent::new(Arc::new(model), executor([weather()]));
    let (end, events) = run(&agent, &mut vec![Message::human("Weather?")]).await;
    assert_eq!(end.text, "It is warm.");
    assert_eq!(words(&events), "It is warm.");
}

#[test]
fn thinking_in_tags_goes_back_to_the_server_that_wrote_it_so() {
    let tools = convert_tools(Dialect::OpenAi.provider(), []);
    let said = response(
        Dialect::OpenAi,
        "<think>The user asks.</think>\n\nIt is warm.",
    );
    let reply = decode(Dialect::OpenAi, said, &tools).expect("an answer");
    let messages = [
        Message::human("?"),
        reply.message.into(),
        Message::human("Sure?"),
    ];
    let request = ModelRequest {
        messages: &messages,
        tools: &[],
        choice: ToolChoice::Auto,
        delivery: Delivery::Whole,
    };
    let settings = ModelSettings::new(Dialect::OpenAi, "qwen").url("http://127.0.0.1:1/v1");
    let body = encode(&settings, &request).body;
    assert_eq!(
        body["messages"][1],
        json!({"role": "assistant", "content": "<think>The user asks.</think>\n\nIt is warm."})
    );
    // Nobody else gets it.
    for settings in [
        ModelSettings::new(Dialect::OpenAi, "gpt").key("k"),
        ModelSettings::new(Dialect::Ollama, "qwen"),
        ModelSettings::new(Dialect::Anthropic, "claude").key("k"),
    ] {
        let body = encode(&settings, &request).body.to_string();
        assert!(!body.contains("The user asks."), "{body}");
    }
}

#[test]
fn a_call_that_a_model_begins_in_the_middle_of_its_thinking_is_found() {
    let tools = convert_tools(Dialect::Ollama.provider(), []);
    let said = "<think>I need the weather.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_call>";
    let reply =
        decode(Dialect::Ollama, response(Dialect::Ollama, said), &tools).expect("an answer");
    let heard = reply.message.content.text().into_owned();
    assert!(
        heard.starts_with("<tool_call>") && heard.ends_with("</tool_call>"),
        "{heard}"
    );
}
