//! Schemas and arguments made to use up time, memory or the stack. Every one of them ends in a refusal of the tool or
//! in an outcome of the call, and calls of other tools are answered meanwhile.

use std::time::Duration;

use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use steadyhand::{
    Call, Effect, FailureCode, Tool, ToolError, ToolExecutor, ToolManager, example_arguments,
};
use steadyhand_conversation::{Provider, convert_tools};
use tokio::time::{Instant, sleep_until};

/// One schema, and arguments for it.
struct Hostile {
    name: &'static str,
    schema: Value,
    args: Value,
}

fn hostile(name: &'static str, schema: Value, args: Value) -> Hostile {
    Hostile { name, schema, args }
}

/// `link(0)` … `link(count)` under `$defs`, the first of them as the schema.
fn chain(count: usize, link: impl Fn(usize) -> Value, last: Value) -> Value {
    let mut links = Map::new();
    for at in 0..count {
        links.insert(format!("a{at}"), link(at + 1));
    }
    links.insert(format!("a{count}"), last);
    json!({"type": "object", "allOf": [{"$ref": "#/$defs/a0"}], "$defs": links})
}

fn to(at: usize) -> Value {
    json!({"$ref": format!("#/$defs/a{at}")})
}

fn repeated(value: &Value, count: usize) -> Value {
    Value::Array(vec![value.clone(); count])
}

/// `value` inside `depth` objects or lists.
fn nested(depth: usize, value: Value, wrap: impl Fn(Value) -> Value) -> Value {
    (0..depth).fold(value, |inner, _| wrap(inner))
}

/// Fields `f0` … that all have the same schema.
fn fields(count: usize, schema: &Value) -> Value {
    let fields = (0..count).map(|at| (format!("f{at}"), schema.clone()));
    Value::Object(fields.collect())
}

fn names(count: usize) -> Value {
    (0..count).map(|at| json!(format!("f{at}"))).collect()
}

fn list_of(items: Value) -> Value {
    json!({"type": "object", "properties": {"list": {"type": "array", "items": items}}})
}

/// Alternatives that refer to each other: each level doubles the work.
fn doubling() -> Vec<Hostile> {
    let mut all = Vec::new();
    let fails = json!({"required": ["missing"]});
    for (name, keyword) in [
        ("allOf doubled 40 times", "allOf"),
        ("anyOf doubled 40 times", "anyOf"),
        ("oneOf doubled 40 times", "oneOf"),
    ] {
        let schema = chain(40, |next| json!({keyword: [to(next), to(next)]}), json!({}));
        all.push(hostile(name, schema, json!({})));
    }
    for (name, keyword) in [
        ("allOf doubled 40 times, the last one fails", "allOf"),
        ("anyOf doubled 40 times, the last one fails", "anyOf"),
        ("oneOf doubled 40 times, the last one fails", "oneOf"),
    ] {
        let schema = chain(
            40,
            |next| json!({keyword: [to(next), to(next)]}),
            fails.clone(),
        );
        all.push(hostile(name, schema, json!({})));
    }
    let schema = chain(
        40,
        |next| json!({"not": {"anyOf": [to(next), to(next)]}}),
        json!({}),
    );
    all.push(hostile("not anyOf doubled 40 times", schema, json!({})));
    let schema = chain(
        40,
        |next| json!({"if": to(next), "then": to(next), "else": to(next)}),
        json!({}),
    );
    all.push(hostile("if, then, else 40 times", schema, json!({})));
    let schema = chain(
        40,
        |next| json!({"anyOf": [to(next), to(next)], "unevaluatedProperties": false}),
        json!({}),
    );
    all.push(hostile(
        "unevaluatedProperties over doubled anyOf",
        schema,
        json!({"x": 1}),
    ));
    let schema = chain(
        60,
        |next| json!({"allOf": [to(next)], "unevaluatedProperties": false}),
        json!({"properties": {"x": true}}),
    );
    all.push(hostile(
        "unevaluatedProperties nested 60 times",
        schema,
        json!({"x": 1, "y": 2}),
    ));
    let schema = chain(
        40,
        |next| json!({"dependentSchemas": {"x": {"allOf": [to(next), to(next)]}}}),
        json!({}),
    );
    all.push(hostile(
        "dependentSchemas doubled 40 times",
        schema,
        json!({"x": 1}),
    ));
    let schema = chain(
        12,
        |next| json!({"allOf": repeated(&to(next), 20)}),
        json!({"required": ["x"]}),
    );
    all.push(hostile(
        "allOf of twenty, twelve deep",
        schema,
        json!({"x": 1}),
    ));
    let schema = chain(
        12,
        |next| json!({"oneOf": repeated(&to(next), 20)}),
        json!({"required": ["x"]}),
    );
    all.push(hostile(
        "oneOf of twenty, twelve deep",
        schema,
        json!({"x": 1}),
    ));
    all
}

/// Schemas that contain themselves.
fn circles() -> Vec<Hostile> {
    let root = json!({"$ref": "#"});
    let child = |keyword: &str, count| json!({"type": "object", "properties": {"child": {keyword: repeated(&root, count)}}});
    let deep = |depth| nested(depth, json!({}), |inner| json!({"child": inner}));
    let list = |depth| json!({"child": nested(depth, json!([]), |inner| json!([inner, inner]))});
    vec![
        hostile(
            "allOf of itself, a hundred times",
            json!({"type": "object", "allOf": repeated(&root, 100)}),
            json!({}),
        ),
        hostile(
            "anyOf of itself, a hundred times",
            json!({"type": "object", "anyOf": repeated(&root, 100)}),
            json!({}),
        ),
        hostile(
            "oneOf of itself, a hundred times",
            json!({"type": "object", "oneOf": repeated(&root, 100)}),
            json!({}),
        ),
        hostile(
            "not itself",
            json!({"type": "object", "not": root}),
            json!({}),
        ),
        hostile(
            "its own $ref",
            json!({"type": "object", "$ref": "#"}),
            json!({}),
        ),
        hostile(
            "two that refer to each other",
            json!({"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
            json!({}),
        ),
        hostile(
            "a tree that is checked twice on each level",
            child("allOf", 2),
            deep(100),
        ),
        hostile(
            "a tree that is checked ten times on each level",
            child("allOf", 10),
            deep(100),
        ),
        hostile(
            "a tree with alternatives on each level",
            child("anyOf", 2),
            deep(100),
        ),
        hostile(
            "a tree with one of itself on each level",
            child("oneOf", 2),
            deep(100),
        ),
        hostile(
            "a tree whose names are checked too",
            json!({"type": "object", "propertyNames": {"maxLength": 5}, "additionalProperties": {"allOf": [root, root]}}),
            deep(100),
        ),
        hostile(
            "a list of lists of itself",
            json!({"type": "object", "properties": {"child": {"$ref": "#/$defs/list"}}, "$defs": {"list": {"type": "array", "items": {"allOf": [{"$ref": "#/$defs/list"}, {"$ref": "#/$defs/list"}]}, "contains": {"$ref": "#/$defs/list"}, "minContains": 0}}}),
            list(12),
        ),
        hostile(
            "$dynamicRef to itself",
            json!({"$dynamicAnchor": "node", "type": "object", "properties": {"child": {"allOf": [{"$dynamicRef": "#node"}, {"$dynamicRef": "#node"}]}}, "unevaluatedProperties": false}),
            deep(100),
        ),
        hostile(
            "$recursiveRef to itself",
            json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveAnchor": true, "type": "object", "properties": {"child": {"allOf": [{"$recursiveRef": "#"}, {"$recursiveRef": "#"}]}}, "unevaluatedProperties": false}),
            deep(100),
        ),
        hostile(
            "unevaluatedItems in a list of itself",
            json!({"type": "object", "properties": {"child": {"$ref": "#/$defs/list"}}, "$defs": {"list": {"type": "array", "prefixItems": [{"$ref": "#/$defs/list"}], "unevaluatedItems": {"$ref": "#/$defs/list"}}}}),
            list(12),
        ),
        hostile(
            "patternProperties of itself",
            json!({"type": "object", "patternProperties": {"^c": root, "d$": root, "h": root, "il": root}}),
            deep(100),
        ),
    ]
}

/// Schemas whose examples, or whose parts, are large.
fn growth() -> Vec<Hostile> {
    let wide = |levels: usize, count: usize| {
        chain(
            levels,
            |next| json!({"type": "object", "required": names(count), "properties": fields(count, &to(next))}),
            json!({"type": "string"}),
        )
    };
    let required = |count| json!({"type": "object", "required": names(count), "properties": fields(count, &json!({"type": "string"}))});
    let items = chain(
        20,
        |next| json!({"type": "array", "minItems": 4, "items": to(next)}),
        json!({"type": "string"}),
    );
    vec![
        hostile(
            "seven levels of forty required fields",
            wide(7, 40),
            json!({}),
        ),
        hostile(
            "thirty levels of two required fields",
            wide(30, 2),
            json!({}),
        ),
        hostile(
            "twenty levels of lists of four",
            json!({"type": "object", "required": ["list"], "properties": {"list": {"$ref": "#/$defs/a0"}}, "$defs": items["$defs"]}),
            json!({}),
        ),
        hostile("five thousand required fields", required(5_000), json!({})),
        hostile(
            "five thousand required fields, of each item",
            list_of(required(4_000)),
            json!({"list": repeated(&json!({}), 2_000)}),
        ),
        hostile(
            "a thousand alternatives of a hundred required fields",
            json!({"type": "object", "anyOf": repeated(&json!({"required": names(20)}), 1_000)}),
            json!({}),
        ),
        hostile(
            "a default of two hundred kilobytes",
            json!({"type": "object", "required": names(50), "properties": fields(50, &json!({"default": "x".repeat(4_000)}))}),
            json!({}),
        ),
        hostile(
            "twenty thousand values to choose from",
            list_of(json!({"enum": (0..20_000).collect::<Vec<u32>>()})),
            json!({"list": repeated(&json!("no"), 50_000)}),
        ),
        hostile(
            "twenty thousand texts to choose from",
            list_of(json!({"enum": (0..15_000).map(|at| format!("t{at}")).collect::<Vec<_>>()})),
            json!({"list": repeated(&json!("no"), 50_000)}),
        ),
        hostile(
            "objects to choose from",
            list_of(
                json!({"enum": (0..2_000).map(|at| json!({"a": {"b": [at]}})).collect::<Vec<_>>()}),
            ),
            json!({"list": repeated(&json!({"a": {"b": [-1]}}), 20_000)}),
        ),
        hostile(
            "twenty thousand parts for one value",
            json!({"type": "object", "allOf": repeated(&json!({"required": ["x"]}), 10_000)}),
            json!({}),
        ),
        hostile(
            "a thousand parts for each item",
            list_of(json!({"allOf": repeated(&json!({"type": "string"}), 5_000)})),
            json!({"list": repeated(&json!("x"), 50_000)}),
        ),
        hostile(
            "a thousand parts that fail for each item",
            list_of(json!({"allOf": repeated(&json!(false), 20_000)})),
            json!({"list": repeated(&json!("x"), 50_000)}),
        ),
        hostile(
            "five thousand properties of empty objects",
            list_of(json!({"properties": fields(5_000, &json!({"type": "string"}))})),
            json!({"list": repeated(&json!({}), 50_000)}),
        ),
        hostile(
            "names that depend on names",
            list_of(
                json!({"dependentRequired": (0..2_000).map(|at| (format!("f{at}"), names(5))).collect::<Map<_, _>>()}),
            ),
            json!({"list": repeated(&json!({"f0": 1, "f1": 1}), 20_000)}),
        ),
    ]
}

/// References in chains, and nesting: the stack.
fn depth() -> Vec<Hostile> {
    let draft7 = |mut schema: Value| {
        schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
        schema
    };
    vec![
        hostile(
            "a chain of 6,000 references",
            chain(6_000, to, json!({})),
            json!({}),
        ),
        hostile(
            "a chain of 6,000 references, draft 7",
            draft7(chain(6_000, to, json!({}))),
            json!({}),
        ),
        hostile(
            "a chain of 90 references",
            chain(90, to, json!({"required": ["x"]})),
            json!({}),
        ),
        hostile(
            "a chain of 5,000 allOf",
            chain(
                5_000,
                |next| json!({"allOf": [to(next)]}),
                json!({"required": ["x"]}),
            ),
            json!({}),
        ),
        hostile(
            "a chain of 5,000 not",
            chain(
                5_000,
                |next| json!({"not": to(next)}),
                json!({"required": ["x"]}),
            ),
            json!({}),
        ),
        hostile(
            "a chain of 5,000 anyOf, draft 7",
            draft7(chain(
                5_000,
                |next| json!({"anyOf": [to(next)]}),
                json!({"required": ["x"]}),
            )),
            json!({}),
        ),
        hostile(
            "a chain of 5,000 unevaluatedProperties",
            chain(
                4_000,
                |next| json!({"allOf": [to(next)], "unevaluatedProperties": false}),
                json!({"required": ["x"]}),
            ),
            json!({"x": 1}),
        ),
        hostile(
            "a chain of 60 allOf on each level of 100",
            json!({"type": "object", "properties": {"child": {"$ref": "#/$defs/a0"}}, "$defs": {
            "a0": nested(60, json!({"$ref": "#"}), |inner| json!({"allOf": [inner]}))}}),
            nested(100, json!({}), |inner| json!({"child": inner})),
        ),
        hostile(
            "nested 120 levels",
            nested(
                120,
                json!({"type": "object"}),
                |inner| json!({"type": "object", "properties": {"a": inner}}),
            ),
            nested(110, json!(1), |inner| json!({"a": inner})),
        ),
        hostile(
            "nested 120 allOf",
            nested(
                60,
                json!({"type": "object"}),
                |inner| json!({"type": "object", "allOf": [inner]}),
            ),
            json!({}),
        ),
    ]
}

/// Patterns, formats and long texts.
fn texts() -> Vec<Hostile> {
    let text = |length: usize| "a".repeat(length) + "!";
    let texts =
        |count: usize, length: usize| json!({"list": repeated(&json!(text(length)), count)});
    let pattern = |pattern: &str| list_of(json!({"type": "string", "pattern": pattern}));
    let many = |count: usize, make: &dyn Fn(usize) -> String| {
        let branches: Vec<Value> = (0..count).map(|at| json!({"pattern": make(at)})).collect();
        json!({"type": "object", "properties": {"list": {"items": {"anyOf": branches}}}})
    };
    let by_name = |count: usize, make: &dyn Fn(usize) -> String| {
        let patterns = (0..count).map(|at| (make(at), json!({"type": "string"})));
        json!({"type": "object", "patternProperties": patterns.collect::<Map<_, _>>()})
    };
    let long_names = |count: usize, length: usize| {
        let fields = (0..count).map(|at| (format!("{}{at}!", "a".repeat(length)), json!(1)));
        Value::Object(fields.collect())
    };
    vec![
        hostile(
            "nested repetition with look-ahead, 50,000 texts",
            pattern("^(?=(a+)+$)x"),
            texts(50_000, 12),
        ),
        hostile(
            "nested repetition with look-ahead, long text",
            pattern("^(?=(a+)+$)x"),
            texts(4, 100_000),
        ),
        hostile(
            "nested repetition with back-reference",
            pattern("^(a+)+\\1$"),
            texts(20_000, 30),
        ),
        hostile(
            "nested repetition without",
            pattern("^(a+)+$"),
            texts(20_000, 30),
        ),
        hostile("look-behind", pattern("(?<=a+)b(?!c)"), texts(2_000, 400)),
        hostile(
            "different unfinished patterns",
            many(60, &|at| format!("^(?=(a+)+$)x{at}")),
            texts(10, 40),
        ),
        hostile(
            "five hundred patterns on each text",
            many(499, &|at| format!("^b+{at}$")),
            texts(2_000, 400),
        ),
        hostile(
            "forty patterns of a megabyte",
            many(40, &|at| format!("^\\p{{L}}{{1,{}}}$", 20 + at)),
            texts(10, 10),
        ),
        hostile(
            "a hundred patterns of a megabyte",
            many(100, &|at| format!("^\\p{{L}}{{1,{}}}$", 20 + at)),
            texts(10, 10),
        ),
        hostile(
            "two thousand patterns",
            many(2_000, &|at| format!("^b{at}$")),
            texts(10, 10),
        ),
        hostile(
            "a pattern that counts to a million",
            pattern("^(a{1000}){1000}$"),
            texts(1, 10),
        ),
        hostile(
            "a pattern nested deep",
            pattern(&format!("{}a{}", "(".repeat(2_000), ")".repeat(2_000))),
            texts(1, 10),
        ),
        hostile(
            "names against patterns with look-ahead",
            by_name(40, &|at| format!("^(?=(a+)+$)x{at}")),
            long_names(500, 30),
        ),
        hostile(
            "names against four hundred patterns",
            by_name(400, &|at| format!("^b+{at}")),
            long_names(2_000, 100),
        ),
        hostile(
            "names checked by a pattern",
            json!({"type": "object", "propertyNames": {"pattern": "^(?=(a+)+$)x"}}),
            long_names(5_000, 30),
        ),
        hostile(
            "a text that is a pattern",
            list_of(json!({"format": "regex"})),
            json!({"list": repeated(&json!("(a{100}){100}"), 2_000)}),
        ),
        hostile(
            "addresses",
            list_of(json!({"format": "email"})),
            json!({"list": repeated(&json!(format!("{}@b", "a.".repeat(400))), 500)}),
        ),
        hostile(
            "host names",
            list_of(json!({"format": "idn-hostname"})),
            json!({"list": repeated(&json!("\u{e4}".repeat(400)), 500)}),
        ),
        hostile(
            "links",
            list_of(json!({"format": "uri-template"})),
            json!({"list": repeated(&json!("{".repeat(400)), 500)}),
        ),
    ]
}

/// Lists that are compared with themselves, and numbers.
fn lists() -> Vec<Hostile> {
    let unique = json!({"type": "object", "properties": {"list": {"uniqueItems": true}}});
    let objects: Vec<Value> = (0..40_000).map(|at| json!({"same": {"key": at}})).collect();
    let zeros: Vec<Value> = (0..20_000).map(|at| json!({"a": [[], {}, at]})).collect();
    vec![
        hostile(
            "forty thousand objects that differ in one number",
            unique.clone(),
            json!({"list": objects}),
        ),
        hostile(
            "twenty thousand lists that differ in one number",
            unique,
            json!({"list": zeros}),
        ),
        hostile(
            "unique on each of 100 levels",
            json!({"type": "object", "properties": {"list": {"$ref": "#/$defs/list"}}, "$defs": {"list": {"uniqueItems": true, "items": {"$ref": "#/$defs/list"}}}}),
            json!({"list": nested(100, json!((0..3_000).collect::<Vec<u32>>()), |inner| json!([inner, 1, 2]))}),
        ),
        hostile(
            "contains, 50,000 items, 500 ways",
            json!({"type": "object", "properties": {"list": {"allOf": (0..500).map(|at| json!({"contains": {"const": format!("c{at}")}})).collect::<Vec<_>>()}}}),
            json!({"list": repeated(&json!("x"), 50_000)}),
        ),
        hostile(
            "a number of 5,000 digits",
            json!({"type": "object", "properties": {"n": {"multipleOf": 0.000001}}}),
            serde_json::from_str(&format!("{{\"n\": {}e300}}", "9".repeat(5))).expect("JSON"),
        ),
        hostile(
            "multiples of something tiny",
            list_of(json!({"multipleOf": 1e-300})),
            json!({"list": repeated(&json!(1e300), 20_000)}),
        ),
        hostile(
            "many items, many reasons",
            list_of(json!({"anyOf": (0..50).map(|at| json!({"const": at})).collect::<Vec<_>>()})),
            json!({"list": repeated(&json!("x"), 20_000)}),
        ),
        hostile(
            "fifty thousand wrong items",
            list_of(json!({"type": "integer", "minimum": 5, "multipleOf": 2})),
            json!({"list": repeated(&json!("x"), 50_000)}),
        ),
        hostile(
            "a hundred thousand names that are not allowed",
            json!({"type": "object", "additionalProperties": false}),
            fields(60_000, &json!(1)),
        ),
    ]
}

/// Patterns that take long to read, or long for each character of a text.
fn patterns() -> Vec<Hostile> {
    let pattern = |pattern: &str| list_of(json!({"type": "string", "pattern": pattern}));
    let one = |text: String| json!({"list": [text]});
    // Neither pattern nor text repeats itself, so no table of an engine is large enough.
    let mut bits = 1_u32;
    let mut bit = || {
        bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if bits >> 31 == 0 { '0' } else { '1' }
    };
    let noise: String = (0..900_000).map(|_| bit()).collect();
    let mut all = Vec::new();
    for (name, text) in [
        (
            "two thousand places for each character",
            "[01]*1[01]{2000}$",
        ),
        (
            "ten thousand places for each character",
            "[01]*1[01]{10000}$",
        ),
        ("sixty places for each character", "[01]*1[01]{60}$"),
        ("twelve places for each character", "[01]*1[01]{11}$"),
        (
            "look-ahead before two thousand places",
            "(?!2)[01]*1[01]{2000}$",
        ),
        (
            "look-ahead before each character of a long text",
            "(?!2)[01]*2",
        ),
        (
            "look-behind before each character of a long text",
            "(?<=[01])[01]*2",
        ),
        ("back-reference in a long text", "(0|1)[01]*\\1{3}2"),
        ("lazy, greedy and counted", "(?=(([01]*?)*[01]{1,50})*2)"),
    ] {
        all.push(hostile(name, pattern(text), one(noise.clone())));
    }
    let letters = |count: usize| "\\p{L}".repeat(count);
    for (name, text) in [
        ("a pattern of 50,000 classes of letters", letters(50_000)),
        ("a pattern of 1,500 classes of letters", letters(1_500)),
        ("a pattern of 100,000 digits", "\\d".repeat(100_000)),
        ("a pattern of 4,000 digits", "\\d".repeat(4_000)),
        (
            "a pattern of 80,000 control characters",
            "\\cA".repeat(80_000),
        ),
        (
            "a pattern of 2,500 control characters",
            "\\cA".repeat(2_500),
        ),
        ("a pattern of 60 spaces", "\\s".repeat(60)),
        (
            "look-ahead in look-ahead",
            format!("{}a{}", "(?=".repeat(1_900), ")".repeat(1_900)),
        ),
        (
            "look-ahead a million times",
            "(?:(?=a){1000}){1000}".to_owned(),
        ),
        (
            "a number of repetitions that is no number",
            "a{99999999999999999999}".to_owned(),
        ),
        (
            "repetitions in repetitions",
            "((((((a{9}){9}){9}){9}){9}){9}){9}".to_owned(),
        ),
    ] {
        all.push(hostile(name, pattern(&text), one("a".repeat(20))));
    }
    let regex = list_of(json!({"format": "regex"}));
    for (name, text) in [
        ("half a million brackets as a pattern", "(".repeat(500_000)),
        ("letters as a pattern", letters(150_000)),
        ("groups as a pattern", "(?<a>b)".repeat(100_000)),
    ] {
        all.push(hostile(name, regex.clone(), one(text)));
    }
    let names = json!({"type": "object", "patternProperties": {"(?!2)[01]*2": {"type": "string"}, "[01]*1[01]{500}$": {"type": "string"}}, "additionalProperties": false});
    all.push(hostile(
        "a name of half a megabyte against patterns",
        names,
        json!({(noise[..500_000].to_owned()): 1}),
    ));
    all
}

/// Errors that copy what they are about, and explanations that compare everything with everything.
fn reports() -> Vec<Hostile> {
    let long = "x".repeat(900_000);
    let value = |schema: Value| json!({"type": "object", "properties": {"value": schema}});
    let digits = json!({"list": "[".to_owned() + &"0,".repeat(400_000) + "0]"});
    let enumeration = (0..20_000).collect::<Vec<u32>>();
    let named = |count: usize, name: &str, value: &Value| {
        let fields = (0..count).map(|at| (format!("{name}{at}"), value.clone()));
        Value::Object(fields.collect())
    };
    let leaves = nested(
        58,
        json!({"type": "object", "properties": fields(1_500, &json!({"type": "string"}))}),
        |inner| json!({"type": "object", "properties": {("n".repeat(1_500)): inner}}),
    );
    let long_address = format!("http://example.com/{}", "a".repeat(100_000));
    vec![
        hostile(
            "a long text, ten thousand alternatives",
            value(json!({"anyOf": repeated(&json!({"type": "integer"}), 8_000)})),
            json!({"value": long}),
        ),
        hostile(
            "a long text, ten thousand choices",
            value(json!({"oneOf": (0..8_000).map(|at| json!({"const": at})).collect::<Vec<_>>()})),
            json!({"value": long}),
        ),
        hostile(
            "a list that fits none of many alternatives",
            value(json!({"anyOf": repeated(&json!({"items": {"type": "string"}}), 500)})),
            json!({"value": (0..100_000).collect::<Vec<u32>>()}),
        ),
        hostile(
            "many choices of many values",
            json!({"type": "object", "properties": {"value": {"anyOf": repeated(&json!({"$ref": "#/$defs/e"}), 3_000)}}, "$defs": {"e": {"enum": enumeration}}}),
            json!({"value": "no"}),
        ),
        hostile(
            "a constant of 200 kilobytes, two thousand times",
            json!({"type": "object", "properties": {"list": {"items": {"$ref": "#/$defs/c"}}}, "$defs": {"c": {"const": "y".repeat(200_000)}}}),
            json!({"list": repeated(&json!("no"), 50_000)}),
        ),
        hostile(
            "a long name before many wrong items",
            json!({"type": "object", "additionalProperties": {"items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}),
            json!({("n".repeat(500_000)): (0..50_000).collect::<Vec<u32>>()}),
        ),
        hostile(
            "sixty thousand unknown names like five thousand known ones",
            json!({"type": "object", "required": ["missing"], "properties": named(5_000, "a_long_name_of_a_parameter_", &json!({"type": "string"}))}),
            named(30_000, "a_long_name_of_a_parmeter_", &json!(1)),
        ),
        hostile(
            "one wrong name of half a megabyte",
            json!({"type": "object", "required": ["missing"], "properties": {("n".repeat(200_000)): {"type": "string"}}}),
            json!({("m".repeat(500_000)): 1}),
        ),
        hostile(
            "two hundred parts that would read a text as JSON",
            json!({"type": "object", "properties": {"list": {"allOf": repeated(&json!({"type": ["array", "object"]}), 200)}}}),
            digits,
        ),
        hostile("long names in deep places", leaves, json!({})),
        hostile(
            "a long address and many references",
            json!({"type": "object", "$id": long_address, "properties": (0..4_000).map(|at| (format!("p{at}"), json!({"$ref": format!("#/$defs/d{}", at % 50)}))).collect::<Map<_, _>>(),
                "$defs": (0..50).map(|at| (format!("d{at}"), json!({"type": "string"}))).collect::<Map<_, _>>()}),
            json!({}),
        ),
        hostile(
            "addresses within addresses",
            nested(
                100,
                json!({"type": "object"}),
                |inner| json!({"$id": format!("{}/", "a".repeat(400)), "type": "object", "properties": {"a": inner}}),
            ),
            json!({}),
        ),
        hostile(
            "a reference of 200 kilobytes",
            json!({"type": "object", "properties": {"a": {"$ref": format!("#/{}", "a/".repeat(100_000))}}}),
            json!({}),
        ),
        hostile(
            "lists of lists of a kilobyte",
            json!({"type": "object", "required": ["list"], "properties": {"list": nested(7, json!({"const": "k".repeat(900)}), |inner| json!({"type": "array", "minItems": 4, "items": inner}))}}),
            json!({}),
        ),
        hostile(
            "a type of many types",
            value(
                json!({"type": ["string", "number"], "enum": (0..9_000).map(|at| json!([at])).collect::<Vec<_>>()}),
            ),
            json!({"value": [[1]]}),
        ),
    ]
}

/// What converts a schema for a provider of models reads all of it, too.
fn conversions() -> Vec<Hostile> {
    let objects = |count: usize| json!({"type": "object", "required": names(count), "properties": fields(count, &json!({"type": "string"}))});
    let with_defs = |schema: Value, part: Value| {
        let mut schema = schema;
        schema["$defs"] = json!({"p": part});
        schema
    };
    let part = json!({"$ref": "#/$defs/p"});
    vec![
        hostile(
            "not within not",
            json!({"type": "object", "properties": {"a": nested(110, json!({"type": "string"}), |inner| json!({"type": "string", "not": inner}))}}),
            json!({}),
        ),
        hostile(
            "contains within contains",
            json!({"type": "object", "properties": {"a": nested(110, json!({"type": "string"}), |inner| json!({"type": "array", "items": {"type": "string"}, "contains": inner}))}}),
            json!({}),
        ),
        hostile(
            "a choice of one large part, a thousand times",
            with_defs(
                json!({"type": "object", "anyOf": repeated(&part, 1_000)}),
                objects(1_500),
            ),
            json!({}),
        ),
        hostile(
            "all of one large part, a thousand times",
            with_defs(
                json!({"type": "object", "allOf": repeated(&part, 1_000)}),
                objects(1_500),
            ),
            json!({}),
        ),
        hostile(
            "a description of 100 kilobytes, a thousand times",
            with_defs(
                json!({"type": "object", "properties": fields(1_000, &part)}),
                json!({"type": "string", "description": "d".repeat(100_000)}),
            ),
            json!({}),
        ),
        hostile(
            "a group of groups of groups",
            json!({"type": "object", "properties": fields(60, &json!({"$ref": "#/$defs/a0"})), "$defs": {
                "a0": {"type": "object", "properties": fields(60, &json!({"$ref": "#/$defs/a1"}))},
                "a1": {"type": "object", "properties": fields(60, &json!({"$ref": "#/$defs/a2"}))},
                "a2": {"type": "object", "properties": fields(60, &json!({"type": "string"}))}}}),
            json!({}),
        ),
        hostile(
            "thousands of names for one part of thousands",
            json!({"type": "object", "properties": fields(3_000, &json!({"$ref": "#/$defs/all"})), "$defs": {
                "all": {"allOf": repeated(&json!({"properties": {"x": {"type": "string"}}}), 2_000)}}}),
            json!({}),
        ),
    ]
}

/// Lists of different values that a simple hash takes for the same.
fn collisions() -> Vec<Hostile> {
    let unique = json!({"type": "object", "properties": {"list": {"uniqueItems": true}}});
    let brackets = |mut shape: u32| {
        // Each bit opens a list or closes one.
        let mut open = vec![Vec::new()];
        for _ in 0..20 {
            match (shape & 1, open.len()) {
                (0, _) => open.push(Vec::new()),
                (_, 2..) => {
                    let inner = open.pop().unwrap_or_default();
                    open[0].push(Value::Array(inner));
                }
                _ => open[0].push(json!([])),
            }
            shape >>= 1;
        }
        Value::Array(open.into_iter().map(Value::Array).collect())
    };
    vec![
        hostile(
            "lists that differ in their brackets only",
            unique.clone(),
            json!({"list": (0..12_000).map(brackets).collect::<Vec<_>>()}),
        ),
        hostile(
            "integers that are one float",
            unique.clone(),
            json!({"list": (0..40_000_u64).map(|at| u64::MAX - at).collect::<Vec<_>>()}),
        ),
        hostile(
            "objects that differ in an empty list",
            unique,
            json!({"list": (0..10_000).map(|at| nested(at % 60, json!({"a": nested(at / 60 % 60, json!([]), |inner| json!([inner]))}), |inner| json!([inner]))).collect::<Vec<_>>()}),
        ),
    ]
}

fn all() -> Vec<Hostile> {
    let first = [doubling(), circles(), growth(), depth(), texts(), lists()];
    let second = [patterns(), reports(), conversions(), collisions()];
    first.into_iter().chain(second).flatten().collect()
}

/// What became of one of them.
struct Row {
    verdict: String,
    compiled: Duration,
    ended: Duration,
    /// The longest that a call of another tool waited on the same thread, asked every ten milliseconds.
    probe: Duration,
    /// How long it took to convert the definition for all providers.
    converted: Duration,
    /// How much memory it took, where the system tells.
    megabytes: u64,
}

/// How often another tool is called meanwhile.
const PROBE_EVERY: Duration = Duration::from_millis(10);
/// Longer texts about a schema or arguments are nothing anybody reads.
const REPORT_BYTES_MAX: usize = 32 * 1024;
/// A definition as a provider gets it.
const CONVERTED_BYTES_MAX: usize = 1024 * 1024;

fn is_bounded(text: &str, name: &str) {
    assert!(
        text.len() < REPORT_BYTES_MAX,
        "{name}: {} bytes",
        text.len()
    );
}

/// What asks for tools in a provider's words goes through every schema.
fn convert(hostile: &Hostile) {
    let definition = json!({"name": "t", "description": "d", "schema": hostile.schema});
    for provider in Provider::ALL {
        let converted = convert_tools(provider, [&definition]);
        for tool in &converted.tools {
            let bytes = tool.to_string().len();
            assert!(
                bytes < CONVERTED_BYTES_MAX,
                "{}: {bytes} bytes",
                hostile.name
            );
        }
        for left_out in &converted.left_out {
            is_bounded(&left_out.reason, hostile.name);
        }
    }
}

async fn attempt(hostile: &Hostile) -> Row {
    let resident = forget_peak();
    let mut row = checked(hostile).await;
    let started = Instant::now();
    // What is refused here is refused there, by the same verdict.
    if !row.verdict.starts_with("refused") {
        convert(hostile);
    }
    row.converted = started.elapsed();
    row.megabytes = memory("VmHWM:").saturating_sub(resident);
    row
}

async fn checked(hostile: &Hostile) -> Row {
    let manager = ToolManager::new();
    // What a function does with its own arguments is not looked at here.
    let answer = |_: IgnoredAny| async { Ok::<_, ToolError>("ran") };
    let accepted = manager.add(Tool::with_schema(
        "probe",
        "d",
        json!({"type": "object"}),
        answer,
    ));
    accepted.expect("a good tool");

    let started = Instant::now();
    let added = manager.add(Tool::with_schema("t", "d", hostile.schema.clone(), answer).coerce());
    if let Some(example) = example_arguments(&hostile.schema) {
        is_bounded(&example.to_string(), hostile.name);
    }
    let compiled = started.elapsed();
    let mut row = Row {
        verdict: String::new(),
        compiled,
        ended: Duration::ZERO,
        probe: Duration::ZERO,
        converted: Duration::ZERO,
        megabytes: 0,
    };
    if let Err(refused) = added {
        assert_eq!(refused.name, "t");
        is_bounded(&refused.fault, hostile.name);
        row.verdict = format!("refused: {}", refused.fault);
        return row;
    }

    let executor = ToolExecutor::new(manager);
    let started = Instant::now();
    let mut call = std::pin::pin!(executor.execute(Call::new("t", hostile.args.clone())));
    let mut due = started;
    let outcome = loop {
        tokio::select! {
            biased;
            outcome = &mut call => break outcome,
            () = sleep_until(due) => {}
        }
        due = probe(&executor, due, &mut row).await;
    };
    // What the end of the call held up counts, too.
    if due <= Instant::now() {
        probe(&executor, due, &mut row).await;
    }
    row.ended = started.elapsed();
    row.verdict = match outcome.failure() {
        None => "ran".to_owned(),
        Some(failure) => {
            assert_eq!(
                failure.code,
                FailureCode::ValidationError,
                "{}",
                hostile.name
            );
            assert_eq!(failure.effect, Effect::None, "{}", hostile.name);
            let whole = serde_json::to_string(&outcome.structured()).expect("JSON");
            is_bounded(&whole, hostile.name);
            failure.message.chars().take(100).collect()
        }
    };
    row
}

/// Calls the other tool. How long that took counts from when it was due: whoever could not even ask waited as well. Gives
/// back when the next one is due.
async fn probe(executor: &ToolExecutor, due: Instant, row: &mut Row) -> Instant {
    let answered = executor.execute(Call::new("probe", json!({}))).await;
    assert!(answered.is_success());
    let now = Instant::now();
    row.probe = row.probe.max(now.duration_since(due));
    // Those that could not be asked in between would have waited for less.
    (due + PROBE_EVERY).max(now)
}

/// What the system says of this process's memory, in megabytes.
fn memory(of: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(of));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() / 1024
}

/// From here on the peak is that of what comes. Gives back what is in use now.
fn forget_peak() -> u64 {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    memory("VmRSS:")
}

/// Prints its rows with `--nocapture`: `scripts/hostile-schemas` reads them.
#[allow(clippy::print_stdout, reason = "what was measured")]
#[test]
fn s01_every_hostile_schema_ends_in_a_refusal_or_an_outcome_while_other_calls_are_answered() {
    let all = all();
    assert!(all.len() >= 120, "{}", all.len());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
    for hostile in &all {
        let row = runtime.block_on(attempt(hostile));
        println!(
            "hostile-schema-row|{}|{:.1}|{:.1}|{:.1}|{:.1}|{}|{}",
            hostile.name,
            ms(row.compiled),
            ms(row.ended),
            ms(row.probe),
            ms(row.converted),
            row.megabytes,
            row.verdict.replace('\n', " "),
        );
    }
}

/// What a stack is too small for ends the process. Schemas are taken apart wherever their tools are forgotten.
#[test]
fn s01_a_schema_whose_parts_stand_in_each_other_by_the_thousand_is_forgotten_on_a_small_stack() {
    let forgotten = std::thread::Builder::new()
        .stack_size(1024 * 1024)
        .spawn(|| {
            for keyword in ["anyOf", "allOf", "oneOf"] {
                for draft in [
                    "http://json-schema.org/draft-07/schema#",
                    "https://json-schema.org/draft/2020-12/schema",
                ] {
                    let link = |next| json!({keyword: [to(next)]});
                    let mut schema = chain(4_000, link, json!({}));
                    schema["$schema"] = json!(draft);
                    // Nobody meets the chain until the field is given.
                    let members = schema.as_object_mut().expect("an object");
                    members.remove("allOf");
                    members.insert("properties".to_owned(), json!({"field": to(0)}));
                    let manager = ToolManager::new();
                    let answer = |_: Value| async { Ok::<_, ToolError>("ran") };
                    let added = manager.add(Tool::with_schema("t", "d", schema, answer));
                    if let Err(refused) = added {
                        is_bounded(&refused.fault, keyword);
                    }
                }
            }
        });
    let forgotten = forgotten.expect("a thread").join();
    forgotten.expect("no panic");
}

/// Schemas and texts as people have them.
#[tokio::test]
async fn s01_ordinary_patterns_are_tried_on_long_texts() {
    let text = "A line of an ordinary text, 012. ".repeat(20_000);
    let base64 = "QUJD".repeat(200_000);
    for (pattern, fits, fits_not) in [
        (r"^(?!\s*$)[\s\S]+", &text, &" ".repeat(600)),
        (r"^[A-Za-z0-9+/]*={0,2}$", &base64, &text),
        (
            r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
            &base64,
            &text,
        ),
        (
            r"^(?=.*[A-Z])(?=.*\d)[A-Za-z\d]{8,64}$",
            &"Passw0rd".to_owned(),
            &"password".to_owned(),
        ),
        (
            r"^[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63}){0,8}$",
            &"a.name.example".to_owned(),
            &"a name".to_owned(),
        ),
        (r"^(a|b)\1$", &"aa".to_owned(), &"ab".to_owned()),
    ] {
        let manager = ToolManager::new();
        let schema = json!({"type": "object", "properties": {"value": {"type": "string", "pattern": pattern}}});
        let answer = |_: Value| async { Ok::<_, ToolError>("ran") };
        let added = manager.add(Tool::with_schema("t", "d", schema, answer));
        added.expect("an ordinary schema");
        let executor = ToolExecutor::new(manager);
        let call = |value: &String| executor.execute(Call::new("t", json!({"value": value})));
        let outcome = call(fits).await;
        assert!(outcome.is_success(), "{pattern}: {:?}", outcome.failure());
        let refused = call(fits_not).await;
        let failure = refused.failure().expect("it does not fit");
        assert_eq!(failure.problems[0].code, "pattern", "{pattern}");
        assert!(
            failure.message.contains("must be text that matches"),
            "{pattern}: {}",
            failure.message
        );
    }
}
