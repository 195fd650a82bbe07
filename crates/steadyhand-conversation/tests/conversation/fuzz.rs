//! What providers and models say, changed at random: it is validated, repaired and read, and nothing panics.

use proptest::prelude::*;
use serde_json::{Value, json};
use steadyhand_conversation::{Provider, What, recover_calls, repair, repair_response, validate};

use crate::fuzzing::{changed, fuzz};

const BODIES: &[&str] = &[
    r#"{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"c1","content":"ok"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]}"#,
    r#"{"model":"m","max_tokens":9,"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"x"},{"type":"tool_use","id":"t1","name":"f","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"ok"}]}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}]}"#,
    r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"x"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"r":1}}}]}],"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}]}]}"#,
    r#"{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"reasoning","id":"rs_1","summary":[]},{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"ok"}]}"#,
    r#"{"id":"x","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":"<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}</tool_call>","tool_calls":[{"id":"","function":{"name":"f","arguments":"{\"a\":"}}]}}],"usage":{"total_tokens":1}}"#,
    r#"[{"type":"human","content":"hi"},{"type":"ai","content":"","tool_calls":[{"name":"f","args":{"a":1},"id":"c1"}]},{"type":"tool","content":"ok","tool_call_id":"c1"}]"#,
];

const BODY_WORDS: &[&str] = &[
    "null",
    "[]",
    "{}",
    "\"\"",
    "0",
    "\"role\":\"tool\",",
    "\"content\":null,",
    "\"id\":\"c1\",",
    "\"tool_calls\":[],",
    "\"type\":\"tool_use\",",
    "\\u0000",
    "\\ud83d",
    "1e999",
    "18446744073709551616",
    "<tool_call>",
    "```json",
    "\"arguments\":\"{\\\"a\\\":\",",
    "\"messages\":[",
    "]}",
    "\u{200b}",
    "\"input\":5,",
];

#[test]
fn s01_changed_bodies_of_providers_are_validated_and_repaired_once() {
    fuzz(150, &changed(BODIES, BODY_WORDS), |text| {
        let Ok(body) = serde_json::from_str::<Value>(&text) else {
            return Ok(());
        };
        for provider in Provider::ALL {
            let _ = validate(provider, What::Request, &body);
            let _ = validate(provider, What::Response, &body);
            let (mended, _) = repair(provider, body.clone());
            let (again, _) = repair(provider, mended.clone());
            prop_assert_eq!(&again, &mended, "{:?}", provider);
            let (mended, _) = repair_response(provider, body.clone());
            let (again, _) = repair_response(provider, mended.clone());
            prop_assert_eq!(&again, &mended, "{:?}: a response", provider);
        }
        Ok(())
    });
}

#[test]
fn s01_changed_words_of_a_model_are_read_without_a_panic() {
    fuzz(200, &changed(BODIES, BODY_WORDS), |text| {
        let tools = [
            json!({"name": "f", "schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}),
        ];
        let _ = recover_calls(&text, &tools);
        Ok(())
    });
}
