//! Answers of providers, changed at random and cut anywhere: a reply or an error, and never a panic.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::Value;
use steadyhand_conversation::convert_tools;
use steadyhand_models::Dialect;
use steadyhand_models::wire::{Assembler, decode};

use crate::fuzzing::{changed, fuzz, pieces};

const STREAM_BYTES_MAX: usize = 64 * 1024;

const STREAMS: &[&str] = &[
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"hi\"},\"finish_reason\":null}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":1}\"}}\n\nevent: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":2}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"hi\",\"thinking\":\"t\"},\"done\":false}\n{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"a\":1}}}]},\"done\":true,\"done_reason\":\"stop\",\"eval_count\":3}\n",
    "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"output\":[]}}\n\nevent: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"id\":\"fc\",\"call_id\":\"c1\",\"name\":\"f\",\"arguments\":\"{}\"}}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"hi\"}]}]}}\n\n",
];

const WORDS: &[&str] = &[
    "\n",
    "\r\n",
    "data: ",
    "data: [DONE]\n\n",
    "event: error\n",
    "null",
    "[]",
    "{}",
    "\"\"",
    "\"index\":-1,",
    "\"index\":18446744073709551615,",
    "\"index\":99999999,",
    "\"type\":\"error\",",
    "\"delta\":5,",
    "\"error\":{\"message\":\"x\"},",
    "1e999",
    "\\ud83d",
    "\u{0}",
    "}\n",
    "\"id\":null,",
];

#[test]
fn s01_changed_streams_of_providers_are_replies_or_errors() {
    let inputs = (
        select(&Dialect::ALL[..]),
        changed(STREAMS, WORDS),
        vec(any::<Index>(), 0..6),
    );
    fuzz(400, &inputs, |(dialect, text, cuts)| {
        let mut assembler = Assembler::new(dialect, STREAM_BYTES_MAX);
        for piece in pieces(text.as_bytes(), &cuts) {
            if assembler.push(piece, &mut |_| {}).is_err() {
                return Ok(());
            }
        }
        let Ok(response) = assembler.finish(&mut |_| {}) else {
            return Ok(());
        };
        prop_assert!(response.to_string().len() < 16 * STREAM_BYTES_MAX);
        let _ = decode(dialect, response, &convert_tools(dialect.provider(), []));
        Ok(())
    });
}

/// Found by changing streams: a line that is JSON and no object.
#[test]
fn s01_a_line_of_a_stream_that_is_no_object_is_no_crash() {
    for dialect in Dialect::ALL {
        for line in [
            "\":{\"",
            "\"text\"\n",
            "5\n",
            "[]\n",
            "data: \"text\"\n\n",
            "data: [1]\n\n",
        ] {
            let mut assembler = Assembler::new(dialect, STREAM_BYTES_MAX);
            let pushed = assembler.push(line.as_bytes(), &mut |_| {});
            let finished = assembler.finish(&mut |_| {});
            assert!(pushed.is_err() || finished.is_err(), "{dialect:?}: {line}");
        }
    }
}

const ANSWERS: &[&str] = &[
    r#"{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"hi","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
    r#"{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"t","name":"f","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}"#,
    r#"{"model":"m","message":{"role":"assistant","content":"hi","tool_calls":[{"function":{"name":"f","arguments":{}}}]},"done":true,"eval_count":3}"#,
    r#"{"id":"r","status":"completed","output":[{"type":"reasoning","id":"rs","summary":[]},{"type":"function_call","id":"fc","call_id":"c1","name":"f","arguments":"{}"}],"usage":{"input_tokens":1}}"#,
];

#[test]
fn s01_changed_answers_of_providers_are_replies_or_errors() {
    let inputs = (select(&Dialect::ALL[..]), changed(ANSWERS, WORDS));
    fuzz(400, &inputs, |(dialect, text)| {
        if let Ok(response) = serde_json::from_str::<Value>(&text) {
            let _ = decode(dialect, response, &convert_tools(dialect.provider(), []));
        }
        Ok(())
    });
}
