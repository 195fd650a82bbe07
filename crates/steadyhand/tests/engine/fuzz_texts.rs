//! Texts from servers, callers and models, changed at random: schemas are compiled, checked, explained and converted,
//! conversations are validated and repaired, and nothing panics or takes more than its budget.

use proptest::prelude::*;
use serde_json::{Value, json};
use steadyhand::conversation::{
    Provider, What, convert_tools, recover_calls, repair, repair_response, validate,
};
use steadyhand::{
    Arguments, Call, Tool, ToolError, ToolExecutor, ToolManager, check_schema, example_arguments,
};

use crate::fuzzing::{changed, fuzz};

const SCHEMAS: &[&str] = &[
    r##"{"type":"object","properties":{"a":{"type":"string","pattern":"^(?=.*\\d)[a-z\\d]{2,8}$"},"b":{"$ref":"#/$defs/b"}},"required":["a"],"$defs":{"b":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}}"##,
    r##"{"type":"object","allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"$defs":{"a":{"oneOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},"b":{"required":["a"]}},"unevaluatedProperties":false}"##,
    r##"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":["array","null"],"items":[{"type":"integer"},{"enum":["x","y"]}],"uniqueItems":true}},"dependencies":{"a":["b"]}}"##,
    r##"{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"type":"object","properties":{"child":{"$recursiveRef":"#"}},"patternProperties":{"^x-(\\w)\\1":{"format":"uri"}},"additionalProperties":{"not":{"const":{"a":[1.0]}}}}"##,
    r##"{"$id":"http://x/a/","$dynamicAnchor":"n","type":"object","properties":{"a":{"$dynamicRef":"#n"},"l":{"prefixItems":[{"format":"regex"}],"contains":{"minimum":5},"minContains":2,"unevaluatedItems":false}},"if":{"required":["a"]},"then":{"minProperties":2},"else":{"propertyNames":{"maxLength":4}}}"##,
];

const SCHEMA_WORDS: &[&str] = &[
    "{}",
    "[]",
    "true",
    "false",
    "null",
    "\"#\"",
    "\"$ref\":\"#\",",
    "\"$defs\":{\"a\":{}},",
    "\"not\":{},",
    "\"type\":\"array\",",
    "\"pattern\":\"(a+)+$\",",
    "\"pattern\":\"(?!a)\\\\1{9}\",",
    "\"default\":1,",
    "1e400",
    "-0.0",
    "18446744073709551616",
    "\"~1\"",
    "\\ud800",
    "\"enum\":[],",
    "\"const\":{},",
    "\"format\":\"idn-hostname\",",
    "\"multipleOf\":0.1,",
    "\"items\":false,",
    "/",
    "%25",
    "\u{202e}",
];

const ARGUMENTS: &[&str] = &[
    r#"{"a":"a1","b":{"a":"b2"}}"#,
    r#"{"a":[1,"x",[[]],[[],[]],{"b":1e0}],"b":null,"x-aa":"http://x"}"#,
    r#"{"child":{"child":{"child":{}}},"l":["(a","[",5,6,7],"password":"secret","x/y~z":"[1,2]"}"#,
];

/// The schema is taken or refused with words; whatever is made of it fits it.
fn schema_holds(schema: &str, arguments: &str) -> Result<(), TestCaseError> {
    let Ok(schema) = serde_json::from_str::<Value>(schema) else {
        return Ok(());
    };
    let verdict = check_schema(&schema);
    let manager = ToolManager::new();
    let answer = |_: Value| async { Ok::<_, ToolError>("ran") };
    let added = manager.add(Tool::with_schema("t", "d", schema.clone(), answer).coerce());
    prop_assert_eq!(verdict.is_ok(), added.is_ok());
    let definition = json!({"name": "t", "description": "d", "schema": schema});
    for provider in Provider::ALL {
        let converted = convert_tools(provider, [&definition]);
        prop_assert_eq!(converted.tools.len() + converted.left_out.len(), 1);
    }
    let example = example_arguments(&schema);
    if let Err(refused) = added {
        prop_assert!(refused.fault.len() < 16 * 1024 && !refused.fault.is_empty());
        return Ok(());
    }
    if let Some(example) = example {
        let checked = manager.check("t", Arguments::Json(example));
        prop_assert!(matches!(checked, Some(Ok(()))), "the example does not fit");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let executor = ToolExecutor::new(manager);
    let call = Call::new("t", Arguments::Text(arguments.to_owned()));
    let outcome = runtime.expect("a runtime").block_on(executor.execute(call));
    let whole = serde_json::to_string(&outcome.structured()).expect("JSON");
    prop_assert!(whole.len() < 64 * 1024, "{} bytes", whole.len());
    Ok(())
}

#[test]
fn s01_changed_schemas_and_arguments_end_in_a_refusal_or_an_outcome() {
    let inputs = (
        changed(SCHEMAS, SCHEMA_WORDS),
        changed(ARGUMENTS, SCHEMA_WORDS),
    );
    fuzz(150, &inputs, |(schema, arguments)| {
        schema_holds(&schema, &arguments)
    });
}

/// What was found, and made small.
#[test]
fn s01_what_was_found_by_changing_schemas_stays_mended() {
    // The example was a text: nothing said that arguments are an object.
    schema_holds(r#"{"unevaluatedProperties":false}"#, "{}").expect("an example or none");
}

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
