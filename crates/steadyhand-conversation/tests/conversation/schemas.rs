//! Schemas at random, in every provider's dialect: taken by the strict provider, or left out with a reason.

use std::ops::{Deref, DerefMut};

use fastrand::Rng;
use serde_json::{Map, Value, json};
use steadyhand_conversation::strict;
use steadyhand_conversation::{Provider, What, convert_tools, validate};

use super::render::{message, request, user};

#[test]
fn v19_any_schema_is_rewritten_or_its_tool_is_left_out_with_a_reason() {
    let mut taken = 0;
    for seed in 0..600 {
        let definition =
            json!({"name": "tool", "description": "Does something", "schema": root(seed)});
        let fine = json!({"name": "fine", "description": "d", "schema": {"type": "object"}});
        for provider in Provider::ALL {
            let converted = convert_tools(provider, [&definition, &fine]);
            assert!(
                !converted.tools.is_empty(),
                "{provider}: the other tool is there"
            );
            for left_out in &converted.left_out {
                assert!(left_out.name == "tool" && !left_out.reason.is_empty());
            }
            taken += usize::from(converted.left_out.is_empty());
            let said = message(provider, &user("u"), &[]);
            let mut asked = request(provider, Value::Array(said));
            asked["tools"] = Value::Array(converted.tools);
            let about = || format!("{provider} {seed} {definition:#} {:#}", asked["tools"]);
            assert_eq!(strict::check(provider, &asked), Ok(()), "{}", about());
            assert_eq!(validate(provider, What::Request, &asked), [], "{}", about());
        }
    }
    assert!(taken > 1_000, "only {taken} were taken");
}

#[test]
fn v18_a_choice_at_the_root_stays_for_ollama_and_its_properties_are_shown() {
    let choice = json!([
        {"properties": {"id": {"type": "integer"}}, "required": ["id"]},
        {"properties": {"name": {"type": "string"}}, "required": ["name"]},
    ]);
    let definition = json!({"name": "n", "description": "Finds it.", "schema": {
        "type": "object",
        "description": "By its id or its name.",
        "oneOf": choice,
        "minProperties": 1,
        "title": "Find",
    }});
    let converted = convert_tools(Provider::Ollama, [&definition]);
    assert_eq!(
        converted.tools[0]["function"],
        json!({
            "name": "n",
            "description": "Finds it.",
            "parameters": {
                "type": "object",
                "description": "By its id or its name.",
                "minProperties": 1,
                "title": "Find",
                "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
                "oneOf": choice,
            },
        })
    );
}

#[test]
fn v19_a_map_of_anything_stays_one_for_google() {
    let schema = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let definition = json!({"name": "n", "description": "d", "schema": schema});
    let converted = convert_tools(Provider::Gemini, [&definition]);
    let declared = &converted.tools[0]["functionDeclarations"][0];
    assert_eq!(declared["parametersJsonSchema"], schema);
}

/// Dice that fall on schemas nobody may write, or do not.
struct Dice {
    dice: Rng,
    is_wild: bool,
}

impl Deref for Dice {
    type Target = Rng;

    fn deref(&self) -> &Rng {
        &self.dice
    }
}

impl DerefMut for Dice {
    fn deref_mut(&mut self) -> &mut Rng {
        &mut self.dice
    }
}

/// The schema of a tool, mostly an object, with definitions that may refer to each other.
fn root(seed: u64) -> Value {
    let mut dice = Dice {
        dice: Rng::with_seed(seed),
        is_wild: seed.is_multiple_of(2),
    };
    let mut root = match schema(&mut dice, 3) {
        Value::Object(root) => root,
        other => return other,
    };
    if dice.u8(..10) > 0 {
        root.insert("type".to_owned(), json!("object"));
    }
    let names = ["A", "B"];
    let stores = ["$defs", "definitions"];
    for store in stores {
        let definitions: Map<String, Value> = names
            .iter()
            .map(|name| ((*name).to_owned(), schema(&mut dice, 2)))
            .collect();
        root.insert(store.to_owned(), Value::Object(definitions));
    }
    Value::Object(root)
}

fn schema(dice: &mut Dice, depth: usize) -> Value {
    let types = [
        "string", "integer", "number", "boolean", "null", "array", "object",
    ];
    let mut fields = Map::new();
    let mut set = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    if dice.u8(..8) > 0 {
        let one = types[dice.usize(..types.len())];
        let other = types[dice.usize(..types.len())];
        let both = dice.u8(..6) == 0 && one != other;
        set(
            "type",
            if both {
                json!([one, other])
            } else {
                json!(one)
            },
        );
    }
    // The last of the names to refer to is nowhere.
    let known = if dice.is_wild { 3 } else { 2 };
    for _ in 0..dice.usize(..4) {
        let inner = |dice: &mut Dice| match depth {
            0 => json!({"type": "string"}),
            _ => schema(dice, depth - 1),
        };
        let list = |dice: &mut Dice| {
            let count = dice.usize(1..4);
            Value::Array((0..count).map(|_| inner(dice)).collect())
        };
        match dice.u8(..20) {
            0..6 => {
                let properties: Map<String, Value> = ["a", "b.c", "with space"][..dice.usize(1..4)]
                    .iter()
                    .map(|name| ((*name).to_owned(), inner(dice)))
                    .collect();
                set("properties", Value::Object(properties));
            }
            6 => drop(set("items", inner(dice))),
            // What no schema may say: the tool is left out.
            7 if dice.is_wild => drop(set("items", list(dice))),
            8 => drop(set("anyOf", list(dice))),
            9 => drop(set("oneOf", list(dice))),
            10 => drop(set("allOf", list(dice))),
            11 => drop(set(
                "$ref",
                json!(["#/$defs/A", "#/definitions/B", "#/$defs/missing"][dice.usize(..known)]),
            )),
            12 => drop(set("enum", json!(["x", 1, null]))),
            13 => drop(set("const", json!({"deep": [1]}))),
            14 => drop(set("additionalProperties", inner(dice))),
            15 => drop(set("patternProperties", json!({"^(.*)$": {}}))),
            16 => drop(set("required", json!(["a"]))),
            17 => drop(set("format", json!("date"))),
            18 if dice.is_wild => drop(set("exclusiveMinimum", json!(dice.bool()))),
            _ => drop(set("default", json!([{"any": "thing"}]))),
        }
    }
    Value::Object(fields)
}
