//! Errors of REST in the shape of RFC 9457, for clients that ask for it.

use serde_json::{Value, json};

use super::{Reply, Served, request};

const PROBLEM: &str = "application/problem+json";

async fn refused(served: &Served, method: &str, path: &str, body: &str, accept: &str) -> Reply {
    let headers = [("accept", accept)];
    served.send(method, path, &headers, body).await
}

#[tokio::test]
async fn t05_every_error_is_a_problem_for_those_who_ask_for_one() {
    let served = Served::with_config("[server]\nlimits = { body = \"2KiB\" }\n").await;
    let large = format!("{{\"name\": \"{}\"}}", "x".repeat(4_000));
    for (method, path, body, status, code) in [
        ("GET", "/v1/nothing", "", 404, "no_such_route"),
        ("PUT", "/v1/calls", "", 405, "no_such_method"),
        ("GET", "/v1/tools/none", "", 404, "no_such_tool"),
        ("GET", "/v1/calls/none", "", 404, "no_such_call"),
        ("GET", "/v1/tools/%ff", "", 400, "bad_request"),
        ("GET", "/v1/tools?format=x", "", 400, "bad_request"),
        ("POST", "/v1/calls", "[\"echo\"]", 400, "bad_request"),
        ("POST", "/v1/calls", "{", 400, "bad_request"),
        ("POST", "/v1/calls", &large, 413, "too_large"),
    ] {
        let plain = refused(&served, method, path, body, "application/json").await;
        let problem = refused(&served, method, path, body, PROBLEM).await;
        assert_eq!((plain.status, problem.status), (status, status), "{path}");
        assert_eq!(plain.header("content-type"), Some("application/json"));
        assert_eq!(problem.header("content-type"), Some(PROBLEM));
        assert_eq!(problem.header("vary"), Some("accept"), "{path}");
        assert_eq!(problem.header("allow"), plain.header("allow"));
        let (plain, problem) = (plain.json(), problem.json());
        // The same members as ever, beside those of the standard.
        assert_eq!(problem["error"], plain["error"], "{path}");
        assert_eq!(problem["error"]["code"], code);
        assert_eq!(
            problem["type"],
            format!("urn:steadyhand:problem:{code}"),
            "{path}"
        );
        assert_eq!(problem["status"], status);
        assert_eq!(problem["instance"], path.split('?').next().unwrap_or(path));
        let detail = problem["detail"].as_str().unwrap_or_default();
        let message = plain["error"]["message"].as_str().unwrap_or_default();
        assert!(detail.starts_with(message), "{problem}");
        assert!(problem["title"].as_str().is_some_and(|it| !it.is_empty()));
    }
}

#[tokio::test]
async fn t05_who_may_not_enter_is_told_so_as_a_problem_too() {
    let served = Served::with_config("[server]\ntoken = \"0123456789abcdef-secret\"\n").await;
    let reply = refused(&served, "GET", "/v1/tools", "", PROBLEM).await;
    assert_eq!(reply.status, 401);
    assert_eq!(reply.header("content-type"), Some(PROBLEM));
    assert!(reply.header("www-authenticate").is_some());
    assert_eq!(reply.json()["type"], "urn:steadyhand:problem:token_missing");
}

#[tokio::test]
async fn t05_quality_values_decide_which_shape_an_error_has() {
    let served = Served::start().await;
    for (accept, is_problem) in [
        ("application/problem+json", true),
        ("Application/Problem+JSON; charset=utf-8", true),
        ("application/json, application/problem+json", true),
        (
            "application/problem+json;q=0.9, application/json;q=0.5",
            true,
        ),
        ("application/problem+json;q=0.5, */*", true),
        ("application/json, application/problem+json;q=0.9", false),
        ("application/problem+json;q=0", false),
        ("application/problem+json;q=0, */*", false),
        ("application/json", false),
        ("application/*", false),
        ("*/*", false),
        ("text/html", false),
    ] {
        let reply = refused(&served, "GET", "/v1/nothing", "", accept).await;
        let expected = if is_problem {
            PROBLEM
        } else {
            "application/json"
        };
        assert_eq!(reply.header("content-type"), Some(expected), "{accept}");
    }
    // What is no error is no problem.
    let reply = refused(&served, "GET", "/v1/tools", "", PROBLEM).await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    // A connection too many is refused; that answer has the shape, too.
    let served = Served::with_config(&format!(
        "{}[server]\nlimits = {{ connections = 1 }}\n",
        super::TOOLS
    ))
    .await;
    let mut first = served.connect().await;
    let slow = request(
        served.address,
        "POST",
        "/v1/calls",
        &[],
        r#"{"name": "slow"}"#,
    );
    tokio::io::AsyncWriteExt::write_all(&mut first, slow.as_bytes())
        .await
        .expect("a connection");
    super::until("it runs", async || {
        let ready = served.get("/health/ready").await.json();
        (ready["running"] == 1).then_some(())
    })
    .await;
    let mut second = served.connect().await;
    let asked = request(
        served.address,
        "GET",
        "/v1/tools",
        &[("accept", PROBLEM)],
        "",
    );
    tokio::io::AsyncWriteExt::write_all(&mut second, asked.as_bytes())
        .await
        .expect("a connection");
    let reply = super::reply(&mut second).await;
    assert_eq!(reply.status, 503);
    assert_eq!(reply.json()["status"], 503, "{}", reply.text);
}

#[tokio::test]
async fn t05_the_document_describes_both_shapes_of_every_error() {
    let served = Served::start().await;
    let document = served.get("/openapi.json").await.json();
    let responses = document["components"]["responses"].as_object();
    let responses = responses.expect("responses");
    assert!(responses.len() >= 11);
    for (name, response) in responses {
        let schema = |kind: &str| response["content"][kind]["schema"]["$ref"].clone();
        let expected = json!("#/components/schemas/ProblemDetails");
        assert_eq!(schema(PROBLEM), expected, "{name}");
        assert_eq!(schema("application/json"), "#/components/schemas/ApiError");
    }
    let problem = &document["components"]["schemas"]["ProblemDetails"];
    let required = problem["required"].as_array().cloned().unwrap_or_default();
    for member in ["type", "title", "status", "detail", "instance", "error"] {
        assert!(required.contains(&json!(member)), "{problem}");
    }
}

#[tokio::test]
async fn a_list_is_no_object_wherever_a_body_wants_one() {
    let served = Served::start().await;
    for (path, body) in [
        ("/v1/calls", json!(["echo", {"text": "hi"}])),
        (
            "/v1/calls",
            json!(["echo", {}, null, null, null, null, null, null]),
        ),
        ("/v1/batches", json!([[{"name": "echo"}]])),
        (
            "/v1/error-response?provider=openai",
            json!(["c1", "echo", null, "no"]),
        ),
        ("/v1/keys", json!(["ci", "caller"])),
    ] {
        let reply = served.post(path, body.clone()).await;
        let (status, code, message) = reply.refusal();
        assert_eq!(
            (status, code.as_str()),
            (400, "bad_request"),
            "{path} {body}"
        );
        assert!(
            message.contains("is a list, and must be an object"),
            "{path}: {message}"
        );
    }
    // In a batch, the one that is no call fails alone.
    let body = json!({"calls": [["echo", {"text": "hi"}], {"name": "echo", "args": {}}]});
    let outcomes = served.post("/v1/batches", body).await.json()["outcomes"].clone();
    assert_eq!(
        outcomes[0]["error"]["code"], "VALIDATION_ERROR",
        "{outcomes}"
    );
    assert_eq!(outcomes[1]["status"], "success", "{outcomes}");
    let metrics = served.get("/v1/metrics/echo").await.json();
    assert_eq!(metrics["totalExecutions"], 1);
}

#[tokio::test]
async fn a_whole_number_may_be_written_with_a_point() {
    let served = Served::start().await;
    for number in ["1919", "1919.0", "1.919e3", "1919.00"] {
        let body = format!(
            "{{\"name\": \"echo\", \"args\": {{\"n\": 2.0}}, \"deadline_ms\": {number}, \"timeout_ms\": {number}}}"
        );
        let reply = served.send("POST", "/v1/calls", &[], &body).await;
        let outcome = reply.json();
        assert_eq!(outcome["status"], "success", "{number}: {outcome}");
        // Arguments stay as they were written.
        assert!(reply.text.contains("2.0"), "{}", reply.text);
        let body = json!({"calls": [serde_json::from_str::<Value>(&body).expect("JSON")]});
        let outcomes = served.post("/v1/batches", body).await.json();
        assert_eq!(outcomes["outcomes"][0]["status"], "success", "{outcomes}");
    }
    for number in ["1919.5", "-1.0", "1e30", "\"1919\""] {
        let body = format!("{{\"name\": \"echo\", \"deadline_ms\": {number}}}");
        let reply = served.send("POST", "/v1/calls", &[], &body).await;
        let (status, _, message) = reply.refusal();
        assert_eq!(status, 400, "{number}");
        assert!(message.contains("deadline_ms"), "{number}: {message}");
    }
    let served = Served::with_config("[server]\ntoken = \"0123456789abcdef-secret\"\n").await;
    let body = json!({"name": "ci", "role": "caller", "expires_in_ms": 60000.0}).to_string();
    let headers = [("authorization", "Bearer 0123456789abcdef-secret")];
    let reply = served.send("POST", "/v1/keys", &headers, &body).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
}

/// Words that only those know who read the source of a library.
const LIBRARY_WORDS: [&str; 17] = [
    "struct ",
    "invalid type",
    "invalid value",
    "unknown variant",
    "unknown field",
    "missing field",
    "expected value",
    "expected one of",
    "EOF while",
    "trailing characters",
    "key must be a string",
    "deserialize",
    "invalid digit",
    "u64",
    "u32",
    "relative URL",
    "recursion limit",
];

#[tokio::test]
async fn t04_no_error_of_rest_speaks_in_the_words_of_a_library() {
    let served = Served::start().await;
    let deep = "[".repeat(200);
    for (method, path, body) in [
        ("POST", "/v1/calls?vue=flat", "{}"),
        ("POST", "/v1/calls?view=round", "{}"),
        ("POST", "/v1/calls?view=flat&view=flat", "{}"),
        ("POST", "/v1/repair", "[]"),
        ("POST", "/v1/repair?provider=nobody", "[]"),
        ("GET", "/v1/tools?format=x&format=y", ""),
        ("GET", "/v1/exchanges?limit=x", ""),
        ("GET", "/v1/exchanges?limit=-1", ""),
        ("GET", "/v1/trends?window=3y", ""),
        ("GET", "/v1/servers/none/logs?after=x", ""),
        ("GET", "/v1/calls?limit=x", ""),
        ("POST", "/v1/calls", ""),
        ("POST", "/v1/calls", "{\"name\""),
        ("POST", "/v1/calls", "{\"name\": \"echo\"} x"),
        ("POST", "/v1/calls", "{name: 1}"),
        ("POST", "/v1/calls", "nul"),
        (
            "POST",
            "/v1/calls",
            "{\"name\": \"echo\", \"name\": \"echo\"}",
        ),
        (
            "POST",
            "/v1/calls",
            "{\"name\": {}, \"deadline_ms\": \"x\", \"retry\": 1}",
        ),
        ("POST", "/v1/calls", "99999999999999999999999"),
        ("POST", "/v1/calls", &deep),
        ("POST", "/v1/batches", "{\"calls\": {}}"),
        ("POST", "/v1/keys", "{\"name\": \"a\", \"role\": \"king\"}"),
        (
            "POST",
            "/v1/approvals/x",
            "{\"decision\": \"maybe\", \"arguments_hash\": 1}",
        ),
    ] {
        let reply = served.send(method, path, &[], body).await;
        assert!((400..500).contains(&reply.status), "{path}: {}", reply.text);
        for word in LIBRARY_WORDS {
            assert!(
                !reply.text.contains(word),
                "{method} {path} {body:.80}: {}",
                reply.text
            );
        }
        let (_, _, message) = reply.refusal();
        assert!(!message.starts_with(':'), "{message}");
    }
    // A call whose arguments are no JSON has an outcome, in the same words.
    for arguments in ["{", "{\"a\":}", "{\"a\" 1}", "[1,]", "nul"] {
        let body = json!({"name": "echo", "args": arguments});
        let reply = served.post("/v1/calls", body).await;
        for word in LIBRARY_WORDS {
            assert!(!reply.text.contains(word), "{arguments}: {}", reply.text);
        }
    }
}
