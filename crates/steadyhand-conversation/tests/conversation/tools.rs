//! Tool definitions in each provider's own shape, from the one LangChain-shaped definition.

use serde_json::{Value, json};
use steadyhand_conversation::strict;
use steadyhand_conversation::{Provider, What, convert_tools, mcp_tools, short_name, validate};

use super::render::{key, message, request, user};

/// Definitions with everything some provider refuses.
pub(super) fn definitions() -> Vec<Value> {
    let schemas = [
        json!({"type": "object", "properties": {"city": {"type": "string", "format": "city", "default": "Rome"}}, "required": ["city"], "additionalProperties": false, "title": "Weather"}),
        json!({"type": "object", "properties": {}}),
        json!({"type": "object"}),
        json!({}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"n": {"type": "integer", "minimum": 1}, "list": {"type": "array"}, "two": {"type": ["string", "null"]}, "any": {"type": ["string", "integer"]}}}),
        json!({"type": "object", "properties": {"p": {"$ref": "#/$defs/Point"}, "q": {"type": "array", "items": {"$ref": "#/$defs/Point"}}}, "$defs": {"Point": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x"]}}}),
        json!({"type": "object", "properties": {"tree": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": {"type": "object", "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}}}),
        json!({"type": "object", "oneOf": [{"properties": {"id": {"type": "integer"}}, "required": ["id"]}, {"properties": {"name": {"type": "string"}}, "required": ["name"]}]}),
        json!({"type": "object", "allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"type": "string"}}, "required": ["b"]}]}),
        json!({"type": "object", "properties": {"free": {"type": "object"}, "map": {"type": "object", "additionalProperties": {"type": "string"}}, "one": {"const": "x"}, "level": {"enum": [1, 2, 3]}, "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}),
        json!({"type": "object", "patternProperties": {"^(.*)$": {}}}),
    ];
    let define = |(index, schema): (usize, &Value)| json!({"name": format!("tool_{index}"), "description": "Does something", "schema": schema});
    schemas.iter().enumerate().map(define).collect()
}

fn with_tools(provider: Provider, tools: Vec<Value>) -> Value {
    let said = message(provider, &user("u"), &[]);
    let mut request = request(provider, Value::Array(said));
    request["tools"] = Value::Array(tools);
    request
}

#[test]
fn v19_every_provider_takes_what_it_is_given() {
    for provider in Provider::ALL {
        let before = definitions();
        let converted = convert_tools(provider, &before);
        assert_eq!(converted.left_out, [], "{provider}");
        assert_eq!(before, definitions(), "the originals are untouched");
        let request = with_tools(provider, converted.tools);
        assert_eq!(
            strict::check(provider, &request),
            Ok(()),
            "{provider} {request:#}"
        );
        assert_eq!(
            validate(provider, What::Request, &request),
            [],
            "{provider}"
        );
        assert!(request[key(provider)].is_array());
    }
}

#[test]
fn v18_ollama_gets_exactly_type_and_function() {
    let definition = json!({"name": "own", "lc_name": "alias", "description": "d", "schema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, "invoke": "gone", "lc_kwargs": {"x": 1}});
    let converted = convert_tools(Provider::Ollama, [&definition]);
    assert_eq!(
        converted.tools,
        [
            json!({"type": "function", "function": {"name": "alias", "description": "d", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}}})
        ]
    );
    assert_eq!(converted.original("alias"), "alias");
    assert!(convert_tools(Provider::Ollama, []).tools.is_empty());
}

#[test]
fn v18_ollama_gets_the_schema_as_the_tool_has_it() {
    let schema = json!({"type": "object", "title": "Weather", "description": "Where and when.", "properties": {
        "days": {"type": "integer", "description": "How many.", "minimum": 1, "maximum": 9, "default": 3},
        "code": {"type": "string", "pattern": "^[A-Z]{3}$", "minLength": 3},
        "at": {"type": "string", "format": "date-time"},
        "kind": {"oneOf": [{"type": "string"}, {"type": "integer", "minimum": 0}]},
        "one": {"const": "x"},
        "all": {"allOf": [{"type": "object"}, {"required": ["a"]}]},
        "map": {"type": "object", "additionalProperties": {"type": "string", "pattern": "^a"}},
        "list": {"type": "array", "items": {"type": "string", "enum": ["a"]}, "minItems": 1, "uniqueItems": true},
    }, "required": ["days"], "additionalProperties": false});
    let definition = json!({"name": "n", "description": "d", "schema": schema});
    let converted = convert_tools(Provider::Ollama, [&definition]);
    assert_eq!(
        converted.tools,
        [
            json!({"type": "function", "function": {"name": "n", "description": "d", "parameters": schema}})
        ]
    );
}

#[test]
fn v18_what_a_reference_says_is_there_for_ollama_in_full() {
    let definition = json!({"name": "n", "description": "d", "schema": {"type": "object", "properties": {
        "at": {"$ref": "#/$defs/Place"},
    }, "$defs": {"Place": {"type": "object", "properties": {"z": {"type": "integer", "maximum": 9}}}}, "additionalProperties": false}});
    let converted = convert_tools(Provider::Ollama, [&definition]);
    assert_eq!(
        converted.tools[0]["function"]["parameters"],
        json!({"type": "object", "properties": {
            "at": {"type": "object", "properties": {"z": {"type": "integer", "maximum": 9}}},
        }, "additionalProperties": false})
    );
}

#[test]
fn v19_each_provider_has_its_own_shape() {
    let definition = json!({"name": "n", "description": "d", "schema": {"type": "object", "properties": {"a": {"type": "string"}}}});
    let schema = definition["schema"].clone();
    let function = json!({"name": "n", "description": "d", "parameters": schema});
    let table = [
        (
            Provider::Anthropic,
            json!({"name": "n", "description": "d", "input_schema": schema}),
        ),
        (
            Provider::OpenAi,
            json!({"type": "function", "function": function}),
        ),
        (
            Provider::Mistral,
            json!({"type": "function", "function": function}),
        ),
        (
            Provider::Ollama,
            json!({"type": "function", "function": function}),
        ),
        (
            Provider::OpenAiResponses,
            json!({"type": "function", "name": "n", "description": "d", "parameters": schema, "strict": false}),
        ),
        (
            Provider::Gemini,
            json!({"functionDeclarations": [function]}),
        ),
        (Provider::LangChain, definition.clone()),
    ];
    for (provider, expected) in table {
        assert_eq!(
            convert_tools(provider, [&definition]).tools,
            [expected],
            "{provider}"
        );
    }
    assert_eq!(
        mcp_tools([&definition]),
        [json!({"name": "n", "description": "d", "inputSchema": schema})]
    );
}

#[test]
fn v19_short_names_lead_back_to_the_tool() {
    let long = "a_server_with_a_rather_long_name__a_tool_with_a_name_that_is_longer_still";
    let names = [
        long,
        "with space",
        "dots.and/slashes",
        "9lives",
        "grüße",
        "fine_name",
    ];
    let define =
        |name: &&str| json!({"name": name, "description": "d", "schema": {"type": "object"}});
    let definitions: Vec<Value> = names.iter().map(define).collect();
    for provider in Provider::ALL {
        let converted = convert_tools(provider, &definitions);
        assert_eq!(converted.left_out, [], "{provider}");
        let shorts: Vec<String> = names
            .iter()
            .map(|name| short_name(provider, name).into_owned())
            .collect();
        for (short, name) in shorts.iter().zip(names) {
            assert_eq!(converted.original(short), name, "{provider}");
        }
        let request = with_tools(provider, converted.tools);
        assert_eq!(strict::check(provider, &request), Ok(()), "{provider}");
        // Whatever else is there, a name has the same short one.
        let backwards: Vec<&Value> = definitions.iter().rev().collect();
        assert_eq!(
            convert_tools(provider, backwards).original(&shorts[0]),
            long
        );
    }
}

#[test]
fn v19_a_tool_nobody_can_take_is_left_out_and_the_others_are_not() {
    let fine = json!({"name": "fine", "description": "d", "schema": {"type": "object"}});
    let table = [
        (
            Provider::Anthropic,
            json!({"name": "odd", "description": "d", "schema": {"type": "object", "properties": {"ä b": {"type": "string"}}}}),
            "has a name the provider refuses",
        ),
        (
            Provider::OpenAi,
            json!({"name": "odd", "description": "d", "schema": {"type": "object", "oneOf": [{"type": "string"}]}}),
            "not all are objects",
        ),
        (
            Provider::Gemini,
            json!({"name": "odd", "description": "d", "schema": {"type": "array"}}),
            "must have \"type\": \"object\"",
        ),
        (
            Provider::Mistral,
            json!({"name": "", "description": "d", "schema": {}}),
            "it has no name",
        ),
        (
            Provider::Ollama,
            json!({"name": "fine", "description": "d", "schema": {}}),
            "another tool is called fine there",
        ),
    ];
    for (provider, odd, reason) in table {
        let converted = convert_tools(provider, [&fine, &odd]);
        assert_eq!(converted.tools.len(), 1, "{provider}");
        assert!(
            converted.left_out[0].reason.contains(reason),
            "{provider}: {:?}",
            converted.left_out
        );
    }
    let many: Vec<Value> = (0..130)
        .map(|n| json!({"name": format!("t{n}"), "description": "d", "schema": {}}))
        .collect();
    let converted = convert_tools(Provider::OpenAi, &many);
    assert_eq!((converted.tools.len(), converted.left_out.len()), (128, 2));
}

#[test]
fn v19_a_schema_that_explodes_is_left_out() {
    let mut defs = json!({"L0": {"type": "object", "properties": {"s": {"type": "string"}}}});
    for level in 1..8 {
        let inner = json!({"$ref": format!("#/$defs/L{}", level - 1)});
        let properties: serde_json::Map<String, Value> =
            (0..9).map(|n| (format!("p{n}"), inner.clone())).collect();
        defs[format!("L{level}")] = json!({"type": "object", "properties": properties});
    }
    let definition = json!({"name": "bomb", "description": "d", "schema": {"type": "object", "properties": {"x": {"$ref": "#/$defs/L7"}}, "$defs": defs}});
    let converted = convert_tools(Provider::Ollama, [&definition]);
    assert!(converted.tools.is_empty());
    assert!(
        converted.left_out[0].reason.contains("too large"),
        "{:?}",
        converted.left_out
    );
}
