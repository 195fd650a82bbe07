//! The settings of kind `http`: what is read, what is made of it, and how mistakes are told.

use serde_json::{Value, json};

use super::server::{Server, json_answer};
use super::{failure, faults, output, run, tool};

#[tokio::test]
async fn arguments_go_into_path_query_headers_and_body() {
    let server = Server::start(vec![json_answer(r#"{"ok":true}"#)]).await;
    let settings = json!({
        "description": "Turns lights on or off",
        "method": "post",
        "url": server.url("/api/light/turn_{state}?lang={lang}"),
        "headers": { "Authorization": "Bearer k3y", "X-Trace": "{trace}" },
        "query": { "zone": "{area}/1" },
        "body": { "area_id": "{area}", "brightness_pct": "{brightness}", "tags": ["{area}", "x-{state}"], "on": true },
        "input": {
            "type": "object",
            "required": ["area", "state"],
            "properties": {
                "area": { "type": "string" },
                "state": { "type": "string" },
                "brightness": { "type": "integer" },
                "lang": { "type": "string", "default": "en" },
                "trace": { "type": "string" },
            },
        },
    });
    let tool = tool(settings).await;
    assert_eq!(
        (tool.kind(), tool.description()),
        ("http", "Turns lights on or off")
    );
    let args = json!({ "area": "a/b \"c\"", "state": "on", "brightness": 40 });
    let outcome = run(tool, args).await;
    assert_eq!(output(&outcome), &json!({ "ok": true }));
    let seen = &server.seen()[0];
    assert_eq!(
        seen.line(),
        "POST /api/light/turn_on?lang=en&zone=a%2Fb%20%22c%22/1 HTTP/1.1"
    );
    assert_eq!(seen.header("authorization"), Some("Bearer k3y"));
    assert_eq!(seen.header("x-trace"), None);
    assert_eq!(seen.header("content-type"), Some("application/json"));
    let body: Value = serde_json::from_str(&seen.body).expect("JSON");
    let expected = json!({
        "area_id": "a/b \"c\"", "brightness_pct": 40, "tags": ["a/b \"c\"", "x-on"], "on": true
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_form_is_sent_where_the_content_type_says_so() {
    let server = Server::start(vec![json_answer("1")]).await;
    let settings = json!({
        "method": "POST",
        "url": server.url("/"),
        "headers": { "content-type": "application/x-www-form-urlencoded" },
        "body": { "to": "{to}", "text": "Hi {to}&x=1", "cc": "{cc}" },
    });
    run(tool(settings).await, json!({ "to": "a+b" })).await;
    let seen = &server.seen()[0];
    assert_eq!(
        seen.header("content-type"),
        Some("application/x-www-form-urlencoded")
    );
    assert_eq!(seen.body, "to=a%2Bb&text=Hi+a%2Bb%26x%3D1");
}

#[tokio::test]
async fn without_input_the_places_are_the_arguments() {
    let settings = json!({
        "method": "POST",
        "url": "http://h.test/{room}/{room}?q={q}",
        "headers": { "X-A": "{a}" },
        "body": { "b": "{b} {q}" },
    });
    let tool = tool(settings).await;
    let expected = json!({
        "type": "object",
        "properties": {
            "room": { "type": "string" },
            "q": { "type": "string" },
            "a": { "type": "string" },
            "b": { "type": "string" },
        },
        "required": ["room"],
    });
    assert_eq!(tool.schema(), &expected);
    assert_eq!(tool.description(), "Sends POST to h.test");
}

#[tokio::test]
async fn a_value_that_does_not_fit_its_place_is_the_callers_mistake() {
    let server = Server::start(vec![json_answer("1")]).await;
    let settings = json!({ "url": server.url("/{room}"), "headers": { "X-Who": "{who}" } });
    let cases = [
        (json!({ "room": "..", "who": "me" }), "/room", "path"),
        (json!({ "room": "", "who": "me" }), "/room", "path"),
        (
            json!({ "room": "a", "who": "me\r\nX-Admin: 1" }),
            "/who",
            "header",
        ),
        (json!({ "room": "a", "who": "mé" }), "/who", "header"),
    ];
    for (args, at, code) in cases {
        let outcome = run(tool(settings.clone()).await, args).await;
        assert_eq!(super::verdict(&outcome), "VALIDATION_ERROR none final 1");
        let problem = &failure(&outcome).problems[0];
        assert_eq!((problem.at.as_str(), problem.code.as_str()), (at, code));
    }
    assert!(server.seen().is_empty());
}

/// Every fault of the settings, one line each: place, message, help.
fn told(settings: Value) -> Vec<String> {
    let line = |fault: steadyhand_config::extensions::Fault| {
        let help = fault.help.unwrap_or_default();
        format!("{}: {} | {help}", fault.at, fault.message)
    };
    faults(settings).into_iter().map(line).collect()
}

#[test]
fn mistakes_are_told_all_at_once_with_their_place_and_what_to_do() {
    let settings = json!({
        "method": "PSOT",
        "url": "ftp://h.test/{a}",
        "headers": { "Bad Name": "x", "Host": "evil", "X-A": "{a", "X-B": "two\nlines" },
        "query": { "q": "}" },
        "body": { "list": ["{a b}"] },
        "select": "data.items",
    });
    let methods = "GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS";
    let expected = [
        format!("/method: \"PSOT\" is no method | Did you mean \"POST\"? There are {methods}"),
        "/url: it must start with http:// or https:// | Write one such as \"https://api.example.com/rooms/{room}?lang={lang}\"".to_owned(),
        "/headers/Bad Name: this is no name for a header | Use letters, digits and hyphens, as in \"X-Api-Key\"".to_owned(),
        "/headers/Host: this header cannot be chosen | Leave it out: it is set for every request".to_owned(),
        "/headers/X-A: a { without its }; write {{ for the brace itself | ".to_owned(),
        "/headers/X-B: this value cannot stand in a header | Use printable ASCII characters only; a secret from a file may end in a line break".to_owned(),
        "/body/list/0: {a b} is no place for an argument; write {name}, or {{ for the brace itself | ".to_owned(),
        "/select: a JSON Pointer starts with / | Write \"/data/items\"".to_owned(),
    ];
    let found = told(settings);
    assert_eq!(found, expected);
}

#[test]
fn a_place_that_is_no_argument_is_told_where_it_stands() {
    let settings = json!({
        "method": "POST",
        "url": "http://h.test/{rom}?l={lang}",
        "headers": { "X-A": "{nothing}" },
        "query": { "q": "{Room}" },
        "body": { "a": [{ "b": "{room} {lnag}" }] },
        "input": { "type": "object", "properties": { "room": {}, "lang": {} } },
    });
    let expected = [
        "/url: {rom} is no argument: input has no property of that name | Did you mean {room}?",
        "/query/q: {Room} is no argument: input has no property of that name | Did you mean {room}?",
        "/headers/X-A: {nothing} is no argument: input has no property of that name | Add it to input.properties, or write {{nothing}} for the text itself",
        "/body/a/0/b: {lnag} is no argument: input has no property of that name | Did you mean {lang}?",
    ];
    assert_eq!(told(settings), expected);
}

#[test]
fn no_argument_can_choose_where_a_request_goes() {
    let urls = [
        "{scheme}://h.test/",
        "http://{host}/",
        "http://{sub}.h.test/",
        "http://h.test:{port}/",
        "http://{user}@h.test/",
        "http://h.test{path}",
        "http://h.test\\{path}",
        "http://h.test/a\\.{path}",
        "http://h.test/.\t{path}",
        "http://{host}?x",
        "http://h.test/#{fragment}",
        "http://h.test/?{name}=1",
        "//h.test/{a}",
        "http://",
        "{url}",
    ];
    for url in urls {
        let found = told(json!({ "url": url }));
        assert_eq!(found.len(), 1, "{url}: {found:?}");
        assert!(found[0].starts_with("/url: "), "{url}: {found:?}");
    }
}

#[test]
fn bodies_are_for_methods_and_types_that_have_them() {
    let get = told(json!({ "url": "http://h.test/", "body": {} }));
    assert_eq!(
        get,
        [
            "/body: a GET or HEAD request has no body | Set method = \"POST\", or put the values in query"
        ]
    );
    let xml = told(json!({
        "method": "POST", "url": "http://h.test/", "body": "<a/>", "headers": { "Content-Type": "text/xml" }
    }));
    assert_eq!(xml.len(), 1);
    assert!(
        xml[0].starts_with("/headers/Content-Type: a body is sent as JSON or as a form"),
        "{xml:?}"
    );
}
