//! Schemas and arguments made to use up time, memory or the stack. Every one of them ends in a refusal of the tool or
//! in an outcome of the call, and calls of other tools are answered meanwhile.

use std::time::Duration;

use serde_json::{Map, Value, json};
use steadyhand::{
    Call, Effect, FailureCode, Tool, ToolError, ToolExecutor, ToolManager, example_arguments,
};
use tokio::time::Instant;

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

fn all() -> Vec<Hostile> {
    [doubling(), circles(), growth(), depth(), texts(), lists()]
        .into_iter()
        .flatten()
        .collect()
}

/// What became of one of them.
struct Row {
    verdict: String,
    compiled: Duration,
    ended: Duration,
    /// The longest that a call of another tool waited on the same thread.
    probe: Duration,
}

async fn attempt(hostile: &Hostile) -> Row {
    let manager = ToolManager::new();
    let answer = |_: Value| async { Ok::<_, ToolError>("ran") };
    let accepted = manager.add(Tool::with_schema(
        "probe",
        "d",
        json!({"type": "object"}),
        answer,
    ));
    accepted.expect("a good tool");

    let started = Instant::now();
    let added = manager.add(Tool::with_schema("t", "d", hostile.schema.clone(), answer));
    let _ = example_arguments(&hostile.schema);
    let compiled = started.elapsed();
    let mut row = Row {
        verdict: String::new(),
        compiled,
        ended: Duration::ZERO,
        probe: Duration::ZERO,
    };
    if let Err(refused) = added {
        assert_eq!(refused.name, "t");
        row.verdict = format!("refused: {}", refused.fault);
        return row;
    }

    let executor = ToolExecutor::new(manager);
    let started = Instant::now();
    let mut call = std::pin::pin!(executor.execute(Call::new("t", hostile.args.clone())));
    let outcome = loop {
        let asked = Instant::now();
        let probe = async {
            tokio::task::yield_now().await;
            executor.execute(Call::new("probe", json!({}))).await
        };
        tokio::select! {
            biased;
            outcome = &mut call => break outcome,
            answered = probe => assert!(answered.is_success(), "{}", hostile.name),
        }
        row.probe = row.probe.max(asked.elapsed());
    };
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
            assert!(failure.message.len() < 16 * 1024, "{}", hostile.name);
            failure.message.chars().take(100).collect()
        }
    };
    row
}

/// The most memory that this process has had so far, where the system tells.
fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|peak| peak.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() / 1024
}

/// Prints its rows with `--nocapture`: `scripts/hostile-schemas` reads them.
#[allow(clippy::print_stdout, reason = "what was measured")]
#[test]
fn s01_every_hostile_schema_ends_in_a_refusal_or_an_outcome_while_other_calls_are_answered() {
    let all = all();
    assert!(all.len() >= 60, "{}", all.len());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    for hostile in &all {
        let row = runtime.block_on(attempt(hostile));
        println!(
            "hostile-schema-row|{}|{:.1}|{:.1}|{:.1}|{}|{}",
            hostile.name,
            row.compiled.as_secs_f64() * 1e3,
            row.ended.as_secs_f64() * 1e3,
            row.probe.as_secs_f64() * 1e3,
            peak_megabytes(),
            row.verdict.replace('\n', " "),
        );
    }
}
