//! Texts from servers and callers, changed at random: schemas are compiled, checked, explained and converted, and
//! nothing panics or takes more than its budget.

use proptest::prelude::*;
use serde_json::{Value, json};
use steadyhand::{
    Arguments, Call, Tool, ToolError, ToolExecutor, ToolManager, check_schema, example_arguments,
};
use steadyhand_conversation::{Provider, convert_tools};

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
