//! Values are encoded for where they stand: OpenAPI's styles, and what no value can do.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};
use steadyhand::Category;
use steadyhand_runtime::source::openapi::Prepared;

use super::documents::with_paths;
use super::only_tool;

/// A tool with one parameter `p` of this place and style.
fn tool(place: &str, style: Value) -> Prepared {
    let path = if place == "path" { "/a/{p}/b" } else { "/a" };
    let mut parameter = json!({ "name": "p", "in": place, "required": true, "schema": {} });
    for (key, value) in style.as_object().unwrap() {
        parameter[key] = value.clone();
    }
    only_tool(with_paths(
        json!({ path: { "get": { "parameters": [parameter] } } }),
    ))
}

#[test]
fn every_style_writes_values_lists_and_objects_as_the_specification_shows() {
    let values = [
        json!("blue"),
        json!(["blue", "black"]),
        json!({ "R": 100, "G": 200 }),
    ];
    let pairs = [
        ("path", json!({}), ["blue", "blue,black", "R,100,G,200"]),
        (
            "path",
            json!({ "explode": true }),
            ["blue", "blue,black", "R=100,G=200"],
        ),
        (
            "path",
            json!({ "style": "label" }),
            [".blue", ".blue,black", ".R,100,G,200"],
        ),
        (
            "path",
            json!({ "style": "label", "explode": true }),
            [".blue", ".blue.black", ".R=100.G=200"],
        ),
        (
            "path",
            json!({ "style": "matrix" }),
            [";p=blue", ";p=blue,black", ";p=R,100,G,200"],
        ),
        (
            "path",
            json!({ "style": "matrix", "explode": true }),
            [";p=blue", ";p=blue;p=black", ";R=100;G=200"],
        ),
        (
            "query",
            json!({}),
            ["p=blue", "p=blue&p=black", "R=100&G=200"],
        ),
        (
            "query",
            json!({ "explode": false }),
            ["p=blue", "p=blue,black", "p=R,100,G,200"],
        ),
        (
            "query",
            json!({ "style": "spaceDelimited", "explode": false }),
            ["p=blue", "p=blue%20black", "p=R%20100%20G%20200"],
        ),
        (
            "query",
            json!({ "style": "pipeDelimited", "explode": false }),
            ["p=blue", "p=blue|black", "p=R|100|G|200"],
        ),
        (
            "query",
            json!({ "style": "deepObject", "explode": true }),
            ["p=blue", "p[0]=blue&p[1]=black", "p[R]=100&p[G]=200"],
        ),
        ("header", json!({}), ["blue", "blue,black", "R,100,G,200"]),
        (
            "header",
            json!({ "explode": true }),
            ["blue", "blue,black", "R=100,G=200"],
        ),
        (
            "cookie",
            json!({}),
            ["p=blue", "p=blue; p=black", "R=100; G=200"],
        ),
    ];
    for (place, style, expected) in pairs {
        let tool = tool(place, style.clone());
        for (value, expected) in values.iter().zip(expected) {
            let request = tool.operation.request(&json!({ "p": value })).unwrap();
            let written = match place {
                "path" => request
                    .url
                    .path()
                    .strip_prefix("/v1/a/")
                    .and_then(|it| it.strip_suffix("/b")),
                "query" => request.url.query(),
                "header" => request.headers["p"].to_str().ok(),
                _ => request.headers["cookie"].to_str().ok(),
            };
            assert_eq!(written, Some(expected), "{place} {style} {value}");
        }
    }
}

#[test]
fn objects_inside_objects_and_values_as_json_are_spelled_out() {
    let query = |style: Value, value: Value| {
        let request = tool("query", style)
            .operation
            .request(&json!({ "p": value }))
            .unwrap();
        request.url.query().unwrap_or_default().to_owned()
    };
    let deep = json!({ "style": "deepObject" });
    assert_eq!(
        query(
            deep,
            json!({ "a": { "b]&c": [1, { "d": true }] }, "n": null })
        ),
        "p[a][b%5D%26c][0]=1&p[a][b%5D%26c][1][d]=true"
    );
    let content = json!({ "schema": null, "content": { "application/json": { "schema": { "type": "object" } } } });
    assert_eq!(
        query(content, json!({ "a": [1] })),
        "p=%7B%22a%22%3A%5B1%5D%7D"
    );
    assert_eq!(
        query(json!({}), json!([{ "a": 1 }, null, 2])),
        "p=%7B%22a%22%3A1%7D&p=2"
    );
    assert_eq!(
        query(json!({ "allowReserved": true }), json!("a/b?c&d=e#f")),
        "p=a/b?c%26d%3De%23f"
    );
}

#[test]
fn a_path_value_that_is_empty_or_climbs_is_refused() {
    let tool = tool("path", json!({}));
    for value in [
        json!(""),
        json!(null),
        json!([]),
        json!({}),
        json!("."),
        json!(".."),
    ] {
        let error = tool.operation.request(&json!({ "p": value })).unwrap_err();
        assert_eq!(error.category(), Category::Validation, "{value}");
        assert!(
            error.message().starts_with("Invalid parameters: "),
            "{error}"
        );
    }
    let fine = tool.operation.request(&json!({ "p": "..." })).unwrap();
    assert_eq!(fine.url.path(), "/v1/a/.../b");
}

#[test]
fn a_header_value_cannot_begin_another_header() {
    let tool = tool("header", json!({}));
    for value in ["a\r\nx: y", "a\n", "\0"] {
        let error = tool.operation.request(&json!({ "p": value })).unwrap_err();
        assert_eq!(
            error.message(),
            "Invalid parameters: 'p' is sent in a header and must not hold line breaks or control characters"
        );
    }
    assert_eq!(
        tool.operation
            .request(&json!({ "p": "grün" }))
            .unwrap()
            .headers["p"]
            .as_bytes(),
        "grün".as_bytes()
    );
}

#[test]
fn null_and_absent_arguments_are_not_sent_and_a_usual_value_is_where_one_is_required() {
    let version = json!({ "name": "version", "in": "header", "required": true, "schema": { "type": "string", "default": "2022-06-28" } });
    let tool = only_tool(with_paths(json!({ "/a": { "get": { "parameters": [version,
        { "name": "page", "in": "query", "schema": { "type": "integer", "default": 1 } }] } } })));
    assert_eq!(tool.schema["required"], Value::Null);
    let request = tool.operation.request(&json!({ "page": null })).unwrap();
    assert_eq!(
        request.url.query(),
        None,
        "the service knows its own default"
    );
    assert_eq!(request.headers["version"], "2022-06-28");
}

static EVERYWHERE: LazyLock<Prepared> = LazyLock::new(|| {
    let at = |name: &str, place: &str, style: &str, explode: bool| json!({ "name": name, "in": place, "required": true, "style": style, "explode": explode, "schema": {} });
    only_tool(with_paths(json!({ "/pets/{one}/{two}.json": { "post": {
        "parameters": [
            at("one", "path", "simple", false), at("two", "path", "simple", true),
            at("q", "query", "form", true), at("d", "query", "deepObject", true), at("s", "query", "pipeDelimited", false),
            at("c", "cookie", "form", false),
            { "name": "r", "in": "query", "allowReserved": true, "schema": {} },
        ],
        "requestBody": { "content": { "application/x-www-form-urlencoded": { "schema": {
            "type": "object", "properties": { "f": {}, "g": {} } } } } },
    } } })))
});

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        ".*",
        r"[./\\%?#&=+;:@ \[\]{}a-c0-9\r\n\t-]{0,12}",
        Just("%2e%2e".to_owned()),
        Just("..%2f".to_owned()),
        Just("../../admin?x=1#y".to_owned()),
    ]
}

proptest! {
    #[test]
    fn no_text_gets_out_of_its_place(one in text(), two in text(), q in text(), d in text(), s in text(), r in text(), c in text(), f in text()) {
        let args = json!({ "one": one, "two": two, "q": q, "d": { "k": d }, "s": [s, s], "r": r, "c": c, "f": f });
        let request = match EVERYWHERE.operation.request(&args) {
            Ok(request) => request,
            Err(error) => {
                // Only a path value can be impossible.
                prop_assert!(one.is_empty() || two.is_empty() || one == "." || one == "..", "{}", error);
                return Ok(());
            }
        };
        let url = &request.url;
        prop_assert_eq!(url.host_str(), Some("shop.example"));
        prop_assert_eq!(url.fragment(), None);
        // What the service reads in each place is what was given, and there is nothing else.
        let segments: Vec<String> = url.path_segments().unwrap().map(decoded).collect();
        prop_assert_eq!(segments, ["v1".to_owned(), "pets".to_owned(), one, format!("{two}.json")]);
        // `|` between the two is ours, one inside a value is encoded.
        let raw: Vec<(&str, &str)> = url.query().unwrap().split('&').map(|pair| pair.split_once('=').unwrap()).collect();
        let pairs: Vec<(String, String)> = raw.iter().map(|(key, value)| (decoded(key), decoded(value))).collect();
        prop_assert_eq!(raw[2].1.split('|').count(), 2);
        let expected = [("q", q), ("d[k]", d), ("s", format!("{s}|{s}")), ("r", r)];
        prop_assert_eq!(pairs, expected.map(|(key, value)| (key.to_owned(), value)));
        let cookie = request.headers["cookie"].to_str().unwrap();
        prop_assert_eq!(cookie.matches([';', ',', ' ']).count(), 0);
        prop_assert_eq!(decoded(cookie.strip_prefix("c=").unwrap()), c);
        let body = String::from_utf8(request.body.unwrap()).unwrap();
        prop_assert_eq!(body.matches('&').count(), 0);
        prop_assert_eq!(decoded(body.strip_prefix("f=").unwrap()), f);
    }

    #[test]
    fn no_key_of_an_object_gets_out_of_its_parameter(key in text(), value in text()) {
        let args = json!({ "one": "1", "two": { "a": value }, "d": { key.clone(): value }, "f": 1, "g": { key.clone(): value } });
        let Ok(request) = EVERYWHERE.operation.request(&args) else {
            return Ok(());
        };
        let query = request.url.query().unwrap();
        prop_assert_eq!(query.matches('&').count(), 0);
        prop_assert_eq!(query.matches(['[', ']']).count(), 2);
        let (name, written) = query.split_once('=').unwrap();
        prop_assert_eq!(decoded(name), format!("d[{key}]"));
        prop_assert_eq!(&decoded(written), &value);
        let body = String::from_utf8(request.body.unwrap()).unwrap();
        let written = body.strip_prefix("f=1&g=").unwrap();
        let read: Value = serde_json::from_str(&decoded(written)).unwrap();
        prop_assert_eq!(read, json!({ key: value }));
    }
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text)
        .decode_utf8()
        .expect("UTF-8")
        .into_owned()
}
