//! Names of parameters: by the schema of the server, by what is configured, never by force (SPEC D5, V13).

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use steadyhand_mcp::parameters::{CamelCase, Changes, ParameterNames, Renamed, shipped_mapping};

fn mapping(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(from, to): &(&str, &str)| ((*from).to_owned(), (*to).to_owned());
    pairs.iter().map(owned).collect()
}

fn names(schema: Value, pairs: &[(&str, &str)], mode: CamelCase) -> ParameterNames {
    ParameterNames::new(&schema, &mapping(pairs), mode)
}

/// The arguments as the check sees them, and as the server gets them.
fn both(names: &ParameterNames, mut args: Value) -> (Value, Value) {
    names.before_check(&mut args);
    let checked = args.clone();
    names.after_check(&mut args);
    (checked, args)
}

/// What the heuristic makes of arguments for this schema.
fn auto(schema: Value, args: Value) -> Value {
    both(&names(schema, &[], CamelCase::Auto), args).1
}

fn declaring(declared: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> = declared
        .iter()
        .map(|name| ((*name).to_owned(), json!({"type": "string"})))
        .collect();
    json!({"type": "object", "properties": properties})
}

fn order(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

/// The filesystem server's `edit_file`.
fn edit_file() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "edits": {"type": "array", "items": {
                "type": "object",
                "properties": {"oldText": {"type": "string"}, "newText": {"type": "string"}},
                "required": ["oldText", "newText"],
                "additionalProperties": false
            }},
            "dryRun": {"type": "boolean", "default": false}
        },
        "required": ["path", "edits"],
        "$schema": "http://json-schema.org/draft-07/schema#"
    })
}

// V13: the static mapping

#[test]
fn v13_the_zwave_mapping_ships_and_reaches_the_server() {
    let shipped = shipped_mapping("control_zwave_device").unwrap();
    let args = json!({"device_name": "Switch One", "command": "on"});
    let wanted = json!({"deviceName": "Switch One", "action": "on"});
    for declared in [
        &["deviceName", "action"][..],
        &["device_name", "command"],
        &[],
    ] {
        for mode in [CamelCase::Auto, CamelCase::Always, CamelCase::Off] {
            let names = ParameterNames::new(&declaring(declared), &shipped, mode);
            let (_, sent) = both(&names, args.clone());
            assert_eq!(sent, wanted, "{declared:?} {mode:?}");
        }
    }
    assert_eq!(shipped_mapping("list_zwave_devices"), None);
}

#[test]
fn v13_a_mapping_from_a_declared_name_waits_for_the_check_any_other_comes_before_it() {
    let names = names(
        declaring(&["device_name", "action"]),
        &[("device_name", "deviceName"), ("command", "action")],
        CamelCase::Auto,
    );
    let (checked, sent) = both(&names, json!({"device_name": "Lamp", "command": "on"}));
    assert_eq!(checked, json!({"device_name": "Lamp", "action": "on"}));
    assert_eq!(sent, json!({"deviceName": "Lamp", "action": "on"}));
}

#[test]
fn v13_a_mapping_may_lead_to_a_name_the_heuristic_would_change() {
    let names = names(json!({}), &[("device", "dev_name")], CamelCase::Always);
    assert_eq!(both(&names, json!({"device": 1})).1, json!({"dev_name": 1}));
    // Who writes it as the server wants it is right, too.
    assert_eq!(
        both(&names, json!({"dev_name": 1})).1,
        json!({"dev_name": 1})
    );
}

#[test]
fn v13_a_change_is_logged_as_it_was_and_as_it_is() {
    let names = names(declaring(&["deviceName", "level"]), &[], CamelCase::Auto);
    let mut args = json!({"device_name": "Switch One", "level": 3});
    let renamed = names.before_check(&mut args);
    assert_eq!(
        Changes(&renamed).to_string(),
        r#"{device_name: "Switch One"} → {deviceName: "Switch One"}"#
    );
    let [
        Renamed {
            from, to, at, left, ..
        },
    ] = &renamed[..]
    else {
        panic!("{renamed:?}");
    };
    assert_eq!(
        (from.as_str(), to.as_str(), at.as_str(), *left),
        ("device_name", "deviceName", "", false)
    );
}

#[test]
fn v13_names_without_an_underscore_pass_unchanged_and_nothing_is_logged() {
    for schema in [json!({}), declaring(&["level"]), declaring(&["other"])] {
        let names = names(schema, &[], CamelCase::Auto);
        let mut args = json!({"level": 3, "deviceName": "x", "_meta": {"a_b": 1}, "__x": 1});
        let original = args.clone();
        assert!(names.before_check(&mut args).is_empty());
        assert!(names.after_check(&mut args).is_empty());
        assert_eq!(args, original);
    }
}

// D5: the heuristic

#[test]
fn d05_an_undeclared_name_becomes_camel_case_where_that_is_declared() {
    assert_eq!(
        auto(declaring(&["deviceName"]), json!({"device_name": 1})),
        json!({"deviceName": 1})
    );
}

#[test]
fn d05_an_undeclared_name_becomes_camel_case_where_neither_form_is_declared() {
    for schema in [json!({}), json!({"type": "object"}), declaring(&["level"])] {
        assert_eq!(
            auto(schema, json!({"new_parameter_name": 1, "level": 2})),
            json!({"newParameterName": 1, "level": 2})
        );
    }
}

#[test]
fn d05_a_declared_name_is_left_alone() {
    for schema in [
        declaring(&["repo_path", "max_count"]),
        declaring(&["repo_path", "max_count", "repoPath", "maxCount"]),
        json!({"required": ["repo_path", "max_count"]}),
        json!({"patternProperties": {"^(repo|max)_": {}}}),
        // Not a pattern we can read: it may mean any name.
        json!({"patternProperties": {"^(?!x)": {}}}),
    ] {
        let args = json!({"repo_path": "/x", "max_count": 3});
        assert_eq!(auto(schema.clone(), args.clone()), args, "{schema}");
    }
}

#[test]
fn d05_what_counts_as_snake_case() {
    for (name, becomes) in [
        ("new_parameter_name", "newParameterName"),
        ("foo_1", "foo1"),
        ("sha_256_sum", "sha256Sum"),
        ("user_ID", "userID"),
        ("größe_außen", "größeAußen"),
        ("class_", "class_"),
        ("foo_bar_", "fooBar_"),
        ("_meta", "_meta"),
        ("_private_name", "_private_name"),
        ("__x", "__x"),
        ("price__lt", "price__lt"),
        ("API_KEY", "API_KEY"),
        ("kebab-case_x", "kebab-caseX"),
        ("a_-b", "a_-b"),
        ("_", "_"),
        ("", ""),
    ] {
        let sent = auto(json!({}), json!({name: 1}));
        assert_eq!(order(&sent), [becomes], "{name}");
    }
}

#[test]
fn d05_real_nested_names_are_mended_in_arrays() {
    let args = json!({
        "path": "a.txt",
        "edits": [{"old_text": "a", "new_text": "b"}, {"oldText": "c", "new_text": "d"}],
        "dry_run": true
    });
    let names = names(edit_file(), &[], CamelCase::Auto);
    let mut sent = args;
    let renamed = names.before_check(&mut sent);
    assert_eq!(
        sent,
        json!({
            "path": "a.txt",
            "edits": [{"oldText": "a", "newText": "b"}, {"oldText": "c", "newText": "d"}],
            "dryRun": true
        })
    );
    assert_eq!(
        Changes(&renamed).to_string(),
        "{dry_run: true} → {dryRun: true}; \
         at /edits/0: {old_text: \"a\", new_text: \"b\"} → {oldText: \"a\", newText: \"b\"}; \
         at /edits/1: {new_text: \"d\"} → {newText: \"d\"}"
    );
}

#[test]
fn d05_a_nested_name_the_schema_knows_nothing_of_is_data() {
    let mut args = json!({"path": "x", "edits": [{"some_thing": 1}], "dryRun": true});
    let original = args.clone();
    assert!(
        names(edit_file(), &[], CamelCase::Auto)
            .before_check(&mut args)
            .is_empty()
    );
    assert_eq!(args, original);
}

#[test]
fn d05_maps_of_data_are_never_entered() {
    let schema = json!({"properties": {
        "headers": {"type": "object", "additionalProperties": {
            "type": "object", "properties": {"fooBar": {}}
        }},
        "labels": {"type": "object", "patternProperties": {"^(.*)$": {"properties": {"fooBar": {}}}}}
    }});
    let args =
        json!({"headers": {"foo_bar": {"foo_bar": 1}}, "labels": {"foo_bar": {"foo_bar": 1}}});
    assert_eq!(auto(schema, args.clone()), args);
}

#[test]
fn d05_a_tool_that_is_itself_a_map_keeps_its_keys() {
    let schema = json!({"type": "object", "properties": {"dryRun": {}}, "additionalProperties": {"type": "string"}});
    assert_eq!(
        auto(schema, json!({"my_label": "x", "dry_run": true})),
        json!({"my_label": "x", "dryRun": true})
    );
}

#[test]
fn d05_references_and_alternatives_are_followed() {
    let schema = json!({
        "$ref": "#/$defs/root",
        "$defs": {
            "root": {"allOf": [
                {"properties": {"firstName": {}}},
                {"properties": {"home": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/address"}]}}}
            ]},
            "address": {"oneOf": [
                {"properties": {"streetName": {}}},
                {"properties": {"street_number": {}, "postBox": {}}}
            ]}
        }
    });
    assert_eq!(
        auto(
            schema,
            json!({"first_name": 1, "home": {"street_name": 2, "street_number": 3, "post_box": 4, "other_thing": 5}})
        ),
        json!({"firstName": 1, "home": {"streetName": 2, "street_number": 3, "postBox": 4, "other_thing": 5}})
    );
}

#[test]
fn d05_conditional_parts_and_tuples_declare_names_too() {
    let schema = json!({
        "if": {"properties": {"kind": {"const": "a"}}},
        "then": {"properties": {"then_name": {}}},
        "else": {"properties": {"elseName": {}}},
        "dependentSchemas": {"kind": {"properties": {"dep_name": {}}}},
        "properties": {"pair": {"type": "array", "prefixItems": [{"properties": {"leftSide": {}}}]}}
    });
    assert_eq!(
        auto(
            schema,
            json!({"then_name": 1, "else_name": 2, "dep_name": 3, "pair": [{"left_side": 4}]})
        ),
        json!({"then_name": 1, "elseName": 2, "dep_name": 3, "pair": [{"leftSide": 4}]})
    );
}

#[test]
fn d05_a_schema_that_refers_to_itself_is_followed_as_deep_as_the_arguments_go() {
    let schema = json!({
        "properties": {"tree": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"properties": {
            "nodeName": {}, "children": {"items": {"$ref": "#/$defs/node"}}
        }}}
    });
    let names = names(schema, &[], CamelCase::Auto);
    let mut args = json!({"tree": {"node_name": 1, "children": [{"node_name": 2, "children": [{"node_name": 3}]}]}});
    let renamed = names.before_check(&mut args);
    let places: Vec<&str> = renamed.iter().map(|one| one.at.as_str()).collect();
    assert_eq!(
        places,
        ["/tree", "/tree/children/0", "/tree/children/0/children/0"]
    );

    // Deeper than any call may be: left alone from there on, and nothing overflows.
    let mut deep = json!({"node_name": 0});
    for _ in 0..100_000 {
        let children = Value::Array(vec![deep]);
        deep = Value::Object(
            [
                ("node_name".to_owned(), json!(0)),
                ("children".to_owned(), children),
            ]
            .into_iter()
            .collect(),
        );
    }
    let mut args = Value::Object([("tree".to_owned(), deep)].into_iter().collect());
    assert!(!names.before_check(&mut args).is_empty());
    // Only dropping it would.
    std::mem::forget(args);
}

#[test]
fn d05_references_in_a_circle_and_to_nowhere_come_to_an_end() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#/allOf/0"}]}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"$ref": "https://example.invalid/schema.json"}),
        json!({"$ref": "#/nowhere"}),
        json!({"properties": 3, "allOf": {}, "items": "x", "required": 1}),
        json!(true),
        json!("no schema"),
    ] {
        assert_eq!(auto(schema, json!({"a_b": 1})), json!({"aB": 1}));
    }
}

#[test]
fn d05_alternatives_of_alternatives_are_read_within_a_bound() {
    // Each level refers to the next in two ways, so sets of schemas multiply.
    let mut defs = serde_json::Map::new();
    for level in 0..400 {
        let next = |way: &str| json!({"$ref": format!("#/$defs/{way}{}", level + 1)});
        for way in ["a", "b"] {
            let either = json!({"properties": {
                "x": {"anyOf": [next("a"), next("b")]}, "y": next(way), "someName": {}
            }});
            defs.insert(format!("{way}{level}"), either);
        }
    }
    let schema = json!({"$ref": "#/$defs/a0", "$defs": defs});
    assert_eq!(
        auto(schema, json!({"x": {"x": {"some_name": 1}}})),
        json!({"x": {"x": {"someName": 1}}})
    );
}

// D5: `always` and `off`

#[test]
fn d05_always_turns_declared_names_too_after_the_check() {
    let schema = json!({"properties": {
        "device_name": {}, "the_list": {"items": {"properties": {"inner_name": {}, "innerDone": {}}}}
    }});
    let names = names(schema, &[], CamelCase::Always);
    let args = json!({"device_name": 1, "the_list": [{"inner_name": 2, "inner_done": 3, "my_data": 4}], "un_known": 5});
    let (checked, sent) = both(&names, args);
    assert_eq!(
        checked,
        json!({"device_name": 1, "the_list": [{"inner_name": 2, "innerDone": 3, "my_data": 4}], "unKnown": 5})
    );
    assert_eq!(
        sent,
        json!({"deviceName": 1, "theList": [{"innerName": 2, "innerDone": 3, "my_data": 4}], "unKnown": 5})
    );
}

#[test]
fn d05_off_leaves_everything_but_the_mapping() {
    let names = names(edit_file(), &[("file", "path")], CamelCase::Off);
    let args = json!({"file": "x", "edits": [{"old_text": "a"}], "dry_run": true});
    assert_eq!(
        both(&names, args).1,
        json!({"path": "x", "edits": [{"old_text": "a"}], "dry_run": true})
    );
}

// What is there is never overwritten, and stays where it is

#[test]
fn d05_an_argument_under_the_new_name_is_never_overwritten() {
    let names = names(declaring(&["deviceName"]), &[], CamelCase::Auto);
    let mut args = json!({"device_name": "one", "deviceName": "two"});
    let original = args.clone();
    let renamed = names.before_check(&mut args);
    assert_eq!(args, original);
    assert!(renamed[0].left);
    assert_eq!(
        Changes(&renamed).to_string(),
        "device_name left as it came: deviceName is given too"
    );
}

#[test]
fn d05_of_two_that_want_one_name_the_first_gets_it() {
    let names = names(
        json!({}),
        &[("lamp", "device"), ("light", "device")],
        CamelCase::Auto,
    );
    let mut args = json!({"light": 1, "lamp": 2});
    let renamed = names.before_check(&mut args);
    assert_eq!(args, json!({"device": 1, "lamp": 2}));
    assert_eq!(
        Changes(&renamed).to_string(),
        "{light: 1} → {device: 1}; lamp left as it came: device is given too"
    );
}

#[test]
fn d05_a_mapping_may_swap_two_names() {
    let names = names(
        declaring(&["a", "b"]),
        &[("a", "b"), ("b", "a")],
        CamelCase::Auto,
    );
    let (checked, sent) = both(&names, json!({"a": 1, "b": 2}));
    assert_eq!(checked, json!({"a": 1, "b": 2}));
    assert_eq!(sent, json!({"a": 2, "b": 1}));
    assert_eq!(order(&sent), ["b", "a"]);
}

#[test]
fn d05_one_that_must_stay_is_in_the_way_of_the_next() {
    let names = names(
        json!({}),
        &[("a", "b"), ("b", "c"), ("c", "d")],
        CamelCase::Auto,
    );
    let mut args = json!({"a": 1, "b": 2, "c": 3, "d": 4});
    let original = args.clone();
    let renamed = names.before_check(&mut args);
    assert_eq!(args, original);
    assert!(renamed.iter().all(|one| one.left), "{renamed:?}");
}

#[test]
fn d05_a_renamed_argument_keeps_its_place() {
    let sent = auto(
        declaring(&["z", "midName", "a"]),
        json!({"z": 1, "mid_name": 2, "a": 3}),
    );
    assert_eq!(order(&sent), ["z", "midName", "a"]);
}

// The log line

#[test]
fn v13_the_log_line_shows_no_secrets_and_stays_short() {
    let long = "x".repeat(100_000);
    let mut args = json!({
        "api_key": "sk-not-for-logs", "access_token": 12345, "my_url": "https://me:hunter22@host/",
        "long_text": long, "a_list": [1], "an_object": {"a_b": 1}, "no_list": [], "is_on": true
    });
    let renamed = names(json!({}), &[], CamelCase::Auto).before_check(&mut args);
    assert_eq!(
        Changes(&renamed).to_string(),
        format!(
            "{{{0}}} → {{{1}}}",
            [
                "api_key: [redacted]",
                "access_token: [redacted]",
                "my_url: \"https://[redacted]@host/\"",
                &format!("long_text: \"{}…\"", "x".repeat(40)),
                "a_list: […]",
                "an_object: {…}",
                "no_list: []",
                "is_on: true"
            ]
            .join(", "),
            [
                "apiKey: [redacted]",
                "accessToken: [redacted]",
                "myUrl: \"https://[redacted]@host/\"",
                &format!("longText: \"{}…\"", "x".repeat(40)),
                "aList: […]",
                "anObject: {…}",
                "noList: []",
                "isOn: true"
            ]
            .join(", ")
        )
    );
}

#[test]
fn v13_the_log_line_of_a_thousand_changes_is_bounded() {
    let edit = json!({"old_text": "a".repeat(500), "new_text": "\u{1b}[31m\n"});
    let mut args = json!({"path": "x", "edits": vec![edit; 1000]});
    for index in 0..1000 {
        args[format!("some_name_{index}\n{}", "n".repeat(200))] = json!(index);
    }
    let renamed = names(edit_file(), &[], CamelCase::Auto).before_check(&mut args);
    assert_eq!(renamed.len(), 3000);
    let line = Changes(&renamed).to_string();
    assert!(line.len() < 4_000, "{} bytes", line.len());
    assert!(line.ends_with("and in 997 more objects"), "{line}");
    assert!(!line.contains('\n') && !line.contains('\u{1b}'), "{line}");
}

#[test]
fn v13_arguments_that_are_no_object_are_left_to_the_check() {
    for mut args in [json!(null), json!("text"), json!([{"a_b": 1}]), json!(3)] {
        let original = args.clone();
        let names = names(declaring(&["aB"]), &[], CamelCase::Always);
        assert!(names.before_check(&mut args).is_empty());
        assert!(names.after_check(&mut args).is_empty());
        assert_eq!(args, original);
    }
}

fn object() -> impl Strategy<Value = Value> {
    let name = "[a-c]_?[a-cA-C]?_?";
    let leaf = prop_oneof![Just(json!(1)), Just(json!("x")), Just(json!(null))];
    let tree = leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    });
    let fields = prop::collection::vec((name, tree), 0..5);
    fields.prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

fn schema() -> impl Strategy<Value = Value> {
    let name = "[a-c]_?[a-cA-C]?";
    Just(json!({})).prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            inner.clone().prop_map(|schema| json!({"items": schema})),
            prop::collection::vec((name, inner), 0..4).prop_map(|fields| {
                json!({"properties": Value::Object(fields.into_iter().collect())})
            }),
        ]
    })
}

/// All values in their order, without the names.
fn values(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Object(fields) => fields.values().for_each(|field| values(field, found)),
        Value::Array(items) => items.iter().for_each(|item| values(item, found)),
        leaf => found.push(leaf.clone()),
    }
}

proptest! {
    #[test]
    fn d05_only_names_change_and_no_value_is_lost(
        schema in schema(), args in object(), always: bool, map in "[a-c]_?[a-c]?"
    ) {
        let mode = if always { CamelCase::Always } else { CamelCase::Auto };
        let names = names(schema.clone(), &[(&map, "a_b"), ("c", "b_c")], mode);
        let mut sent = args.clone();
        let before = names.before_check(&mut sent);
        let checked = sent.clone();
        let after = names.after_check(&mut sent);
        let (mut was, mut is) = (Vec::new(), Vec::new());
        values(&args, &mut was);
        values(&sent, &mut is);
        prop_assert_eq!(was, is);
        // What says that nothing was changed has changed nothing.
        prop_assert_eq!(before.iter().all(|one| one.left), checked == args);
        prop_assert_eq!(after.iter().all(|one| one.left), sent == checked);
        let guesses = ParameterNames::new(&schema, &BTreeMap::new(), mode);
        let mut once = args;
        guesses.before_check(&mut once);
        let again = guesses.before_check(&mut once);
        prop_assert!(again.iter().all(|one| one.left), "{:?}", again);
    }
}
