//! Nothing is lost in passing: odd but legal messages come out as they went in; and everything is found where it is.

use serde_json::{Value, json};

use super::{Modern, Session, fixture, gateway};
use crate::serve::{Served, until};
use crate::support::Workplace;

/// Arguments and results to the letter: JSON as text, since a parser of JSON might lose the same as we do.
#[tokio::test(flavor = "multi_thread")]
async fn v05_odd_but_legal_messages_pass_unchanged() {
    let served = gateway("").await;
    let arguments = r#"{"big":12345678901234567890123,"tiny":1e-9,"kept":1.50,"unicode":"\u00e9\ud83e\udd80","nested":{"x-vendor":[null,{"deep":-0.0}]}}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"test_odd_result","arguments":{arguments},"x-vendor":1}}}}"#
    );
    let session = Session::begin(&served).await;
    let reply = served.send("POST", "/mcp", &session.headers(), &body).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let text = &reply.text;
    let table = [
        (
            "a number nobody can hold, in the result",
            r#""structuredContent":{"big":12345678901234567890123,"small":0.1}"#,
        ),
        (
            "content of a kind nobody knows",
            r#"{"type":"hologram","beams":[1,2.5,3]}"#,
        ),
        (
            "a vendor's member of content",
            r#""x-vendor":{"big":12345678901234567890123}"#,
        ),
        (
            "a vendor's member of the result",
            r#""x-vendor":[null,true]"#,
        ),
        (
            "a vendor's member of _meta",
            r#""vendor/key":98765432109876543210"#,
        ),
    ];
    for (what, piece) in table {
        assert!(text.contains(piece), "{what}: {text}");
    }
    // What the server got, as it tells us.
    let got = reply.json()["result"]["content"][0]["text"]
        .as_str()
        .expect("a text")
        .to_owned();
    for piece in [
        "12345678901234567890123",
        "1e-09",
        "1.5",
        "x-vendor",
        "\\ud83e\\udd80",
    ] {
        assert!(got.contains(piece), "{piece} in {got}");
    }
    assert!(reply.json()["result"]["_meta"]["io.steadyhand/callId"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_definitions_are_listed_as_their_server_wrote_them() {
    let served = gateway("").await;
    let session = Session::begin(&served).await;
    let listed = session.ask(&served, "tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().expect("tools").clone();
    let find = |name: &str| tools.iter().find(|tool| tool["name"] == name).cloned();
    let schema = &find("json_schema_2020_12_tool").expect("listed")["inputSchema"];
    assert_eq!(schema["$defs"]["address"]["$anchor"], "addressDef");
    assert_eq!(schema["additionalProperties"], false);
    let again = Modern::new("tools/list", json!({})).result(&served).await;
    assert_eq!(
        again["tools"],
        Value::Array(tools),
        "the same, in the same order, for everyone"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_prompts_and_resources_of_several_servers_are_one() {
    let second = fixture("")
        .replace("[mcp.fixture]", "[mcp.other]")
        .replace("prefix = false", "");
    let third = fixture("").replace("[mcp.fixture]", "[mcp.third]");
    let config = format!("{}{second}{third}", fixture(""))
        .replace("[mcp.third]\n", "[mcp.third]\ntools = { allow = [] }\n");
    let served = super::up(Workplace::with_config(&config)).await;
    let session = Session::begin(&served).await;
    let names = until("all three are up", async || {
        let listed = session.ask(&served, "prompts/list", json!({})).await;
        let prompts = listed["result"]["prompts"].as_array()?.clone();
        let names: Vec<String> = prompts
            .iter()
            .filter_map(|it| Some(it["name"].as_str()?.to_owned()))
            .collect();
        (names.len() == 15).then_some(names)
    })
    .await;
    let mut sorted = names.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), 15, "{names:?}");
    for name in [
        "test_simple_prompt",
        "other__test_simple_prompt",
        "third__test_simple_prompt",
    ] {
        assert!(names.iter().any(|it| it == name), "{name} in {names:?}");
        let got = session
            .ask(&served, "prompts/get", json!({ "name": name }))
            .await;
        assert!(got["result"]["messages"].is_array(), "{got}");
    }
    let listed = session.ask(&served, "resources/list", json!({})).await;
    assert_eq!(
        listed["result"]["resources"].as_array().map(Vec::len),
        Some(3),
        "each once"
    );
    let complete = json!({"ref": {"type": "ref/prompt", "name": "other__test_prompt_with_arguments"},
        "argument": {"name": "arg1", "value": "par"}});
    let completed = session.ask(&served, "completion/complete", complete).await;
    assert_eq!(
        completed["result"]["completion"]["values"],
        json!(["paris", "park", "party"])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_resources_are_read_where_they_are() {
    let served = gateway("").await;
    let session = Session::begin(&served).await;
    let read = async |uri: &str| {
        session
            .ask(&served, "resources/read", json!({ "uri": uri }))
            .await
    };
    let listed = read("test://static-text").await;
    assert_eq!(
        listed["result"]["contents"][0]["text"],
        "This is the content of the static text resource."
    );
    let by_template = read("test://template/42/data").await;
    assert!(
        by_template["result"]["contents"][0]["text"]
            .to_string()
            .contains("42")
    );
    let none = read("test://nowhere").await;
    assert_eq!(none["error"]["data"]["uri"], "test://nowhere", "{none}");
    let params = json!({"uri": "test://nowhere"});
    assert_eq!(
        Modern::new("resources/read", params).refused(&served).await,
        (200, -32602)
    );
    let modern = Modern::new("resources/read", json!({"uri": "test://static-text"}))
        .result(&served)
        .await;
    assert!(
        modern["ttlMs"].is_u64() && modern["cacheScope"].is_string(),
        "{modern}"
    );
    let templates = session
        .ask(&served, "resources/templates/list", json!({}))
        .await;
    assert_eq!(
        templates["result"]["resourceTemplates"][0]["uriTemplate"],
        "test://template/{id}/data"
    );
    let unknown = session
        .ask(&served, "prompts/get", json!({"name": "nobody"}))
        .await;
    assert_eq!(unknown["error"]["code"], -32602);
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_lists_are_answered_while_servers_start_and_without_any() {
    let served = Served::start().await;
    let session = Session::begin(&served).await;
    for (method, member) in [
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let listed = session.ask(&served, method, json!({})).await;
        assert_eq!(listed["result"][member], json!([]));
    }
    let odd = session
        .ask(&served, "tools/list", json!({"cursor": "nonsense"}))
        .await;
    assert_eq!(odd["error"]["code"], -32602);
}

/// The secrets of a server's configuration are in none of its answers.
#[tokio::test(flavor = "multi_thread")]
async fn v05_secrets_of_a_server_do_not_pass() {
    let script = r#"
import json, os, sys
words = "the key is " + os.environ["LEAKY_KEY"]
content = {"type": "text", "text": words}
answers = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "prompts": {}},
                   "serverInfo": {"name": "leaky", "version": "1"}},
    "tools/list": {"tools": [{"name": "leak", "description": "Leaks", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [content]},
    "prompts/list": {"prompts": [{"name": "told", "description": "Leaks"}]},
    "prompts/get": {"messages": [{"role": "user", "content": content}]},
}
for line in sys.stdin:
    message = json.loads(line)
    result = answers.get(message["method"])
    answer = {"result": result} if result else {"error": {"code": -32601, "message": "no"}}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"#;
    let mut workplace = Workplace::with_config(
        "[mcp.leaky]\ncommand = \"python3\"\nargs = [\"-S\", \"-E\", \"leaky.py\"]\nprefix = false\n\
         env = { LEAKY_KEY = \"${env:THE_KEY}\" }\n",
    );
    workplace.write("leaky.py", script);
    workplace.set("THE_KEY", "sk-very-secret-0123456789");
    let served = Served::in_place(workplace).await;
    until("it is up", async || {
        let listed = served.get("/v1/tools").await.json();
        listed.to_string().contains("leak").then_some(())
    })
    .await;
    let session = Session::begin(&served).await;
    let called = session
        .ask(
            &served,
            "tools/call",
            json!({"name": "leak", "arguments": {}}),
        )
        .await;
    let told = session
        .ask(&served, "prompts/get", json!({"name": "told"}))
        .await;
    for answer in [called, told] {
        let text = answer.to_string();
        assert!(text.contains("the key is [redacted]"), "{text}");
        assert!(!text.contains("very-secret"), "{text}");
    }
}

/// A list is one page, unless it is longer than a client would take.
#[tokio::test(flavor = "multi_thread")]
async fn v05_lists_that_are_too_long_for_one_message_come_in_pages() {
    let mut config = String::new();
    let words = "x".repeat(29_000);
    for n in 0..250 {
        config.push_str(&format!(
            "[tools.t{n}]\nkind = \"mock\"\ndescription = \"{words}\"\nmock_response = 1\n"
        ));
    }
    // The same twice, under another name each.
    let server = "import json, sys\nfor line in sys.stdin:\n    message = json.loads(line)\n    if 'id' not in message: continue\n    method = message['method']\n    if method == 'initialize':\n        result = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 's', 'version': '1'}}\n    elif method == 'tools/list':\n        result = {'tools': [{'name': f'm{n}', 'description': 'y' * 29000, 'inputSchema': {'type': 'object'}} for n in range(250)]}\n    else:\n        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'error': {'code': -32601, 'message': 'no'}}), flush=True)\n        continue\n    print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result}), flush=True)\n";
    let workplace = Workplace::with_config(&format!(
        "{config}[mcp.many]\ncommand = \"python3\"\nargs = [\"many.py\"]\nprefix = false\n"
    ));
    workplace.write("many.py", server);
    let served = Served::in_place(workplace).await;
    let session = Session::begin(&served).await;
    until("all are there", async || {
        let listed = served.get("/v1/tools").await.json();
        (listed["count"] == 500).then_some(())
    })
    .await;
    let mut names: Vec<String> = Vec::new();
    let mut pages = 0;
    let mut params = json!({});
    loop {
        let listed = session.ask(&served, "tools/list", params).await["result"].clone();
        pages += 1;
        let tools = listed["tools"].as_array().expect("tools");
        names.extend(
            tools
                .iter()
                .filter_map(|tool| Some(tool["name"].as_str()?.to_owned())),
        );
        match listed["nextCursor"].as_str() {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    let expected: Vec<String> = (0..250)
        .map(|n| format!("t{n}"))
        .chain((0..250).map(|n| format!("m{n}")))
        .collect();
    assert_eq!((pages, names.len()), (2, 500));
    names.sort();
    let mut sorted = expected;
    sorted.sort();
    assert_eq!(names, sorted);
}

/// Tools of our own come and go with the configuration: whoever listens is told, and then it is so.
#[tokio::test(flavor = "multi_thread")]
async fn v05_clients_are_told_when_the_configuration_brings_and_takes_tools() {
    let tool = |name: &str| {
        format!(
            "[tools.{name}]\nkind = \"mock\"\ndescription = \"{name}\"\nmock_response = \"{name}\"\n"
        )
    };
    let served = Served::with_config(&tool("first")).await;
    let session = Session::begin(&served).await;
    let mut older = session.listen(&served, None).await;
    let wish = json!({"notifications": {"toolsListChanged": true}});
    let mut newer = Modern::new("subscriptions/listen", wish)
        .stream(&served)
        .await;
    let acknowledged = newer.next().await.expect("an event").message;
    let method = "notifications/subscriptions/acknowledged";
    assert_eq!(acknowledged["method"], method);
    let names = async || {
        let listed = session.ask(&served, "tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().expect("tools").clone();
        let names: Vec<String> = tools
            .iter()
            .filter_map(|tool| Some(tool["name"].as_str()?.to_owned()))
            .collect();
        names
    };
    assert_eq!(names().await, ["first"]);
    for (config, expected) in [
        (tool("first") + &tool("second"), vec!["first", "second"]),
        (tool("second"), vec!["second"]),
    ] {
        served.workplace.write("steadyhand.toml", &config);
        older.until_method("notifications/tools/list_changed").await;
        newer.until_method("notifications/tools/list_changed").await;
        until("it is so", async || {
            (names().await == expected).then_some(())
        })
        .await;
    }
}
