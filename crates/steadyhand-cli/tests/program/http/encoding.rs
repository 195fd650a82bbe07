//! Arguments in URL, header and body: exactly the value comes through, and nothing else changes.

use proptest::prelude::*;
use serde_json::{Value, json};
use steadyhand_config::template::JsonTemplate;
use steadyhand_config::template::{Template, Values};
use steadyhand_runtime::net::Url;
use steadyhand_runtime::net::fill::{self, UrlTemplate};

/// Texts with more than their share of the characters that mean something somewhere.
fn texts() -> impl Strategy<Value = String> {
    let pointed = proptest::sample::select(vec![
        "/", "\\", "..", ".", "%2f", "%2e%2e", "%", "?", "#", "&", "=", "+", " ", ";", ":", "@",
        "\r\n", "\n", "\0", "\t", "\"", "'", "{", "}", "{x}", "${y}", "<", ">", "é", "漢", "🔧",
        "\u{202e}", "a", "0",
    ]);
    let pieces = prop_oneof![pointed.prop_map(str::to_owned), any::<String>()];
    proptest::collection::vec(pieces, 0..6).prop_map(|pieces| pieces.concat())
}

fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        texts().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map(texts(), inner, 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn filled(template: &str, args: &Value) -> Result<Url, String> {
    let template = UrlTemplate::parse(template).expect("a good template");
    let url = template.fill(&Values::new(args, &Value::Null));
    url.map_err(|error| error.message().to_owned())
}

fn decoded(part: &str) -> String {
    percent_encoding::percent_decode_str(part)
        .decode_utf8()
        .expect("UTF-8")
        .into_owned()
}

proptest! {
    #[test]
    fn a_value_in_the_path_is_one_segment_and_nothing_more(value in texts()) {
        let url = filled("https://me@h.test:8443/a/pre{x}/b?q=1", &json!({ "x": value }));
        let steps = value.split(['/', '\\']).any(|part| part == "." || part == "..");
        match url {
            Err(_) => prop_assert!(steps),
            Ok(url) => {
                prop_assert!(!steps);
                let segments: Vec<&str> = url.path_segments().expect("a path").collect();
                prop_assert_eq!(segments.len(), 3);
                prop_assert_eq!((segments[0], segments[2]), ("a", "b"));
                prop_assert_eq!(decoded(segments[1]), format!("pre{value}"));
                let around = (url.scheme(), url.username(), url.host_str(), url.port(), url.query(), url.fragment());
                prop_assert_eq!(around, ("https", "me", Some("h.test"), Some(8443), Some("q=1"), None));
                // What goes over the wire is read the same way again.
                prop_assert_eq!(Url::parse(url.as_str()).expect("a URL"), url);
            }
        }
    }

    #[test]
    fn two_values_cannot_make_a_step_together(a in texts(), b in texts()) {
        let url = filled("https://h.test/x/{a}{b}/y", &json!({ "a": a, "b": b }));
        if let Ok(url) = url {
            let segments: Vec<&str> = url.path_segments().expect("a path").collect();
            prop_assert_eq!(segments.len(), 3);
            prop_assert_eq!(decoded(segments[1]), format!("{a}{b}"));
        }
    }

    #[test]
    fn a_value_in_the_query_is_one_pair_and_nothing_more(value in texts()) {
        let url = filled("https://h.test/a?x=1&v=pre{x}&y=2", &json!({ "x": value })).expect("any value fits");
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let expected = [("x", "1".to_owned()), ("v", format!("pre{value}")), ("y", "2".to_owned())];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        prop_assert_eq!(pairs, expected);
        prop_assert_eq!((url.path(), url.fragment()), ("/a", None));
    }

    #[test]
    fn a_value_in_a_header_comes_through_or_is_refused(value in texts()) {
        let template = Template::parse("v={x};").expect("a template");
        let args = json!({ "x": value });
        let header = fill::header(&template, &Values::new(&args, &Value::Null));
        let fits = value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte));
        match header {
            Ok(header) => {
                prop_assert!(fits);
                let header = header.expect("the argument is there");
                prop_assert_eq!(header.to_str().expect("ASCII"), format!("v={value};"));
            }
            Err(error) => {
                prop_assert!(!fits);
                prop_assert!(error.message().contains("'x'"));
                prop_assert!(!error.message().contains('\n'));
            }
        }
    }

    #[test]
    fn a_value_in_json_keeps_its_type_or_is_text_within_text(value in json_values()) {
        let body = json!({ "whole": "{x}", "part": "a{x}b", "list": ["{x}", 1], "other": { "fixed": "}}{{" } });
        let template = JsonTemplate::parse(&body).expect("a template");
        let args = json!({ "x": value });
        let sent = template.fill(&Values::new(&args, &Value::Null)).expect("a body").to_string();
        let received: Value = serde_json::from_str(&sent).expect("JSON");
        let text = match &value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let expected = json!({ "whole": value, "part": format!("a{text}b"), "list": [value, 1], "other": { "fixed": "}{" } });
        prop_assert_eq!(received, expected);
    }

    #[test]
    fn a_value_in_a_form_is_one_pair(value in texts()) {
        let sent = fill::form(&json!({ "a": "1", "v": value, "b": [1, "2"] }));
        let received: Vec<(String, String)> = url::form_urlencoded::parse(sent.as_bytes()).into_owned().collect();
        let expected = [("a", "1"), ("v", &value), ("b", "1"), ("b", "2")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        prop_assert_eq!(received, expected);
    }
}

#[test]
fn steps_and_emptiness_are_refused_in_a_path() {
    let refused = [
        ("/{x}", "..", "must not hold the path steps"),
        ("/{x}", "../../etc/passwd", "must not hold the path steps"),
        ("/{x}", "a\\..\\b", "must not hold the path steps"),
        ("/.{x}", "%2e", ""),
        ("/%2e{x}", "", "must not make the path step"),
        ("/{x}/b", "", "must not be empty"),
    ];
    for (path, value, expected) in refused {
        let url = filled(&format!("http://h.test{path}"), &json!({ "x": value }));
        match expected {
            "" => assert_eq!(url.expect("harmless").path(), "/.%252e"),
            expected => {
                let message = url.expect_err(value);
                assert!(message.starts_with("Invalid parameters: 'x' "), "{message}");
                assert!(message.contains(expected), "{message}");
            }
        }
    }
}

#[test]
fn what_is_absent_is_left_out_except_in_the_path() {
    let nothing = json!({ "gone": null });
    let message = filled("http://h.test/{gone}", &nothing).expect_err("no path");
    assert_eq!(message, "Invalid parameters: 'gone' is needed for the URL");
    let url = filled("http://h.test/a?x={gone}&y=1&z={gone}b&flag", &nothing).expect("a URL");
    assert_eq!(url.as_str(), "http://h.test/a?y=1&flag");
    let url = filled("http://h.test/a?x={gone}", &nothing).expect("a URL");
    assert_eq!(url.as_str(), "http://h.test/a");
    let values = Values::new(&nothing, &Value::Null);
    let template = Template::parse("Bearer {gone}").expect("a template");
    assert_eq!(fill::header(&template, &values).expect("no error"), None);
    let body = json!({ "a": "{gone}", "b": { "c": "x{gone}" }, "d": ["{gone}", 2] });
    let template = JsonTemplate::parse(&body).expect("a template");
    assert_eq!(template.fill(&values), Some(json!({ "b": {}, "d": [2] })));
    // The schema's default stands in for what is absent.
    let schema = json!({ "properties": { "gone": { "default": 5 } } });
    let args = json!({});
    let values = Values::new(&args, &schema);
    assert_eq!(
        template.fill(&values),
        Some(json!({ "a": 5, "b": { "c": "x5" }, "d": [5, 2] }))
    );
}

#[test]
fn a_list_in_the_query_is_one_pair_for_each_item() {
    let url = filled(
        "http://h.test/a?id={ids}",
        &json!({ "ids": [1, "a b", true] }),
    )
    .expect("a URL");
    assert_eq!(url.as_str(), "http://h.test/a?id=1&id=a%20b&id=true");
    let url = filled("http://h.test/a?id={ids}", &json!({ "ids": [] })).expect("a URL");
    assert_eq!(url.as_str(), "http://h.test/a");
}
