//! Redirects: followed within bounds, checked step by step, and never with someone else's keys.

use serde_json::{Value, json};
use steadyhand_runtime::net::redirect;
use steadyhand_runtime::net::{Client, Method, Request, StatusCode, Url, header};

use super::server::{Act, Server, answer, json_answer, redirect as redirect_to};
use super::way_out::{Double, PUBLIC};
use super::{failure, output, probe, run, tool, tool_on, verdict};

#[tokio::test]
async fn a_redirect_on_the_same_site_is_followed_with_its_headers() {
    for status in [301, 302, 303, 307, 308] {
        let server =
            Server::start(vec![redirect_to(status, "/there?x=1"), json_answer("[1]")]).await;
        let settings =
            json!({ "url": server.url("/here"), "headers": { "Authorization": "Bearer k" } });
        let outcome = run(tool(settings).await, json!({})).await;
        assert_eq!(output(&outcome), &json!([1]), "{status}");
        let seen = server.seen();
        assert_eq!(seen[1].line(), "GET /there?x=1 HTTP/1.1");
        assert_eq!(seen[1].header("authorization"), Some("Bearer k"));
    }
}

#[tokio::test]
async fn the_user_of_the_url_stays_on_its_site_and_a_redirect_cannot_name_another() {
    for there in ["/there", "http://other:user@{}/there", "http://{}/there"] {
        let server = Server::start_with(|address| {
            let location = there.replace("{}", &address.to_string());
            vec![redirect_to(302, &location), json_answer("[1]")]
        })
        .await;
        let url = format!("http://me:p%40ss@{}/here", server.address);
        let outcome = run(probe("GET", &url).await, json!({})).await;
        assert_eq!(output(&outcome), &json!([1]), "{there}");
        let seen = server.seen();
        assert!(seen[0].header("authorization").is_some());
        assert_eq!(
            seen[0].header("authorization"),
            seen[1].header("authorization"),
            "{there}"
        );
    }
}

#[tokio::test]
async fn a_redirected_post_becomes_a_get_where_browsers_make_it_one() {
    let cases = [
        (301, "GET"),
        (302, "GET"),
        (303, "GET"),
        (307, "POST"),
        (308, "POST"),
    ];
    for (status, method) in cases {
        let server = Server::start(vec![redirect_to(status, "/there"), json_answer("[1]")]).await;
        let settings = json!({ "method": "POST", "url": server.url("/here"), "body": { "a": 1 } });
        let outcome = run(tool(settings).await, json!({})).await;
        assert_eq!(output(&outcome), &json!([1]));
        let seen = server.seen();
        assert_eq!(
            seen[1].line(),
            format!("{method} /there HTTP/1.1"),
            "{status}"
        );
        let (body, content_type) = match method {
            "POST" => (r#"{"a":1}"#, Some("application/json")),
            _ => ("", None),
        };
        assert_eq!(seen[1].body, body, "{status}");
        assert_eq!(seen[1].header("content-type"), content_type, "{status}");
    }
}

#[tokio::test]
async fn a_circle_of_redirects_is_left_after_five() {
    let server = Server::start(vec![redirect_to(302, "/again")]).await;
    let outcome = run(probe("GET", &server.url("/")).await, json!({})).await;
    assert_eq!(verdict(&outcome), "TOOL_EXECUTION_ERROR unknown final 1");
    let expected = format!(
        "{} redirects again after 5 redirects; given up",
        server.address
    );
    assert_eq!(failure(&outcome).message, expected);
    assert_eq!(server.seen().len(), 6);
}

#[tokio::test]
async fn keys_do_not_go_to_another_site() {
    let second = Server::start(vec![json_answer("[2]")]).await;
    let to = format!("http://you:too@two.test:{}/", second.address.port());
    let first = Server::start(vec![redirect_to(307, &to)]).await;
    let double = Double::new(&[("one.test", &["127.0.0.1"]), ("two.test", &[PUBLIC])]);
    let settings = json!({
        "method": "POST",
        "url": format!("http://me:pass@one.test:{}/", first.address.port()),
        "headers": { "Cookie": "c=1", "X-Api-Key": "k", "Accept": "application/json" },
        "body": { "a": 1 },
    });
    let outcome = run(tool_on(double.client(), settings).await, json!({})).await;
    assert_eq!(output(&outcome), &json!([2]));
    let (at_first, at_second) = (&first.seen()[0], &second.seen()[0]);
    assert!(at_first.header("authorization").is_some());
    for kept_back in [
        "authorization",
        "cookie",
        "x-api-key",
        "idempotency-key",
        "referer",
    ] {
        assert_eq!(at_second.header(kept_back), None, "{kept_back}");
    }
    assert_eq!(at_second.header("accept"), Some("application/json"));
    assert_eq!(at_second.body, r#"{"a":1}"#);
}

#[tokio::test]
async fn a_private_or_metadata_address_behind_a_redirect_is_not_connected_to() {
    let literals = [
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00:ec2::254]/latest/meta-data/",
        "http://100.100.100.200/",
        "http://168.63.129.16/",
        "http://metadata.google.internal/computeMetadata/v1/",
        "http://METADATA.google.internal./computeMetadata/v1/",
        "http://localhost/",
        "http://anything.localhost./",
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://0/",
        "http://10.0.0.1/",
        "http://172.16.0.1/",
        "http://192.168.0.1/",
        "http://100.64.0.1/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://[::10.0.0.1]/",
        "http://[64:ff9b::a00:1]/",
        "http://[2002:a00:1::]/",
        "http://[fe80::1]/",
        "//169.254.169.254/",
        "https://192.168.0.1:8443/",
    ];
    for location in literals {
        let server = Server::start(vec![redirect_to(302, location)]).await;
        let double = Double::new(&[]);
        let tool = tool_on(double.client(), json!({ "url": server.url("/") })).await;
        let outcome = run(tool, json!({})).await;
        assert_eq!(
            verdict(&outcome),
            "TOOL_EXECUTION_ERROR unknown final 1",
            "{location}"
        );
        let message = &failure(&outcome).message;
        assert!(
            message.starts_with(&format!("{} redirects to ", server.address)),
            "{message}"
        );
        assert!(
            message
                .ends_with("not followed, because that host does not stand in the configuration")
        );
        // The one connection that was allowed is the one to our own server.
        assert_eq!(double.hosts_connected(), ["127.0.0.1"], "{location}");
        assert!(double.lookups().is_empty(), "{location}");
    }
}

#[tokio::test]
async fn a_name_that_resolves_to_a_private_address_is_not_connected_to() {
    let cases: [&[&str]; 6] = [
        &["169.254.169.254"],
        &["10.0.0.1"],
        &["::1"],
        &["::ffff:192.168.0.1"],
        &["127.0.0.1"],
        // One inner address among outer ones is enough.
        &[PUBLIC, "10.0.0.1"],
    ];
    for addresses in cases {
        let server = Server::start(vec![redirect_to(302, "http://inner.test/")]).await;
        let double = Double::new(&[("inner.test", addresses)]);
        let tool = tool_on(double.client(), json!({ "url": server.url("/") })).await;
        let outcome = run(tool, json!({})).await;
        assert_eq!(
            verdict(&outcome),
            "TOOL_EXECUTION_ERROR unknown final 1",
            "{addresses:?}"
        );
        let message = &failure(&outcome).message;
        assert!(message.contains("redirects to inner.test ("), "{message}");
        assert_eq!(double.lookups(), ["inner.test"]);
        assert_eq!(double.hosts_connected(), ["127.0.0.1"], "{addresses:?}");
    }
}

#[tokio::test]
async fn a_real_listener_on_loopback_is_not_reached_unless_the_configuration_names_it() {
    let inner = Server::start(vec![json_answer(r#"{"secret":1}"#)]).await;
    let outer = Server::start(vec![redirect_to(302, &inner.url("/"))]).await;
    let outcome = run(probe("GET", &outer.url("/")).await, json!({})).await;
    assert_eq!(verdict(&outcome), "TOOL_EXECUTION_ERROR unknown final 1");
    assert_eq!(inner.connections(), 0);

    let outcome = run(probe("GET", &inner.url("/")).await, json!({})).await;
    assert_eq!(output(&outcome), &json!({ "secret": 1 }));
    assert_eq!(inner.connections(), 1);
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_checked_each_time_it_is_resolved() {
    let target = Server::start(vec![Act::Close(answer(
        200,
        &[("content-type", "text/plain")],
        "hi",
    ))])
    .await;
    let to = format!("http://fickle.test:{}/", target.address.port());
    let outer = Server::start(vec![redirect_to(302, &to)]).await;
    let double = Double::new(&[("fickle.test", &[PUBLIC])]);
    double.answer_next("fickle.test", &["127.0.0.1"]);
    let client = double.client();
    let settings = json!({ "url": outer.url("/") });
    let first = run(tool_on(client.clone(), settings.clone()).await, json!({})).await;
    assert_eq!(output(&first), &json!("hi"));
    let second = run(tool_on(client, settings).await, json!({})).await;
    assert_eq!(verdict(&second), "TOOL_EXECUTION_ERROR unknown final 1");
    // What was checked is what was connected to: one lookup, one connection.
    assert_eq!(target.connections(), 1);
}

#[tokio::test]
async fn one_tools_kept_connection_to_a_private_host_is_not_open_to_another_tool() {
    let inner = Server::start(vec![json_answer(r#"{"secret":1}"#)]).await;
    let inner_url = format!("http://inner.test:{}/", inner.address.port());
    let outer = Server::start(vec![redirect_to(302, &inner_url)]).await;
    let double = Double::new(&[("inner.test", &["127.0.0.1"])]);
    let client: Client = double.client();
    let allowed = tool_on(client.clone(), json!({ "url": inner_url })).await;
    let tricked = tool_on(client, json!({ "url": outer.url("/") })).await;

    let outcome = run(allowed.clone(), json!({})).await;
    assert_eq!(output(&outcome), &json!({ "secret": 1 }));
    let outcome = run(tricked, json!({})).await;
    assert_eq!(verdict(&outcome), "TOOL_EXECUTION_ERROR unknown final 1");
    // The kept connection was there all the time: its owner uses it again.
    run(allowed, json!({})).await;
    assert_eq!(inner.connections(), 1);
    assert_eq!(inner.seen().len(), 2);
}

#[tokio::test]
async fn what_fails_after_a_redirect_may_have_acted_before_it() {
    let server = Server::start(vec![
        redirect_to(303, "/result"),
        Act::Send(answer(429, &[("retry-after-ms", "1")], "")),
    ])
    .await;
    let outcome = run(probe("POST", &server.url("/")).await, json!({})).await;
    assert_eq!(verdict(&outcome), "RATE_LIMIT_ERROR unknown final 1");
    let posts = server
        .seen()
        .iter()
        .filter(|seen| seen.line().starts_with("POST"))
        .count();
    assert_eq!(posts, 1);
}

#[test]
fn redirects_that_are_never_followed_say_why() {
    let cases = [
        (
            "http://a.test/",
            "a.test redirects from https to http (a.test), which is not followed: everyone could read along",
        ),
        (
            "file:///etc/passwd",
            "a.test redirects to a file: address, which is not followed",
        ),
        (
            "gopher://a.test/",
            "a.test redirects to a gopher: address, which is not followed",
        ),
        ("http://[", "a.test redirects to something that is no URL"),
    ];
    for (location, expected) in cases {
        let request = Request::new(Method::GET, Url::parse("https://a.test/x").expect("a URL"));
        let mut headers = header::HeaderMap::new();
        headers.insert(header::LOCATION, location.parse().expect("a header"));
        let next = redirect::next(&request, StatusCode::FOUND, &headers);
        assert_eq!(next.expect_err("not followed"), expected);
    }
}

#[test]
fn only_the_same_site_keeps_the_keys() {
    let cases = [
        ("http://a.test/x", "http://a.test/y", true),
        ("http://a.test/x", "https://a.test/y", true),
        ("http://a.test:80/x", "http://a.test/y", true),
        ("http://a.test/x", "http://a.test:81/y", false),
        ("http://a.test:81/x", "https://a.test/y", false),
        ("http://a.test/x", "http://b.a.test/y", false),
        ("https://a.test/x", "https://a.test.evil.test/y", false),
    ];
    for (from, to, kept) in cases {
        let mut request = Request::new(Method::GET, Url::parse(from).expect("a URL"));
        request
            .headers
            .insert("x-api-key", "k".parse().expect("a header"));
        let mut headers = header::HeaderMap::new();
        headers.insert(header::LOCATION, to.parse().expect("a header"));
        let next = redirect::next(&request, StatusCode::FOUND, &headers);
        let next = next.expect("followed").expect("a redirect");
        assert_eq!(
            next.headers.contains_key("x-api-key"),
            kept,
            "{from} → {to}"
        );
    }
}

#[tokio::test]
async fn arguments_cannot_choose_the_host() {
    let server = Server::start(vec![json_answer("[1]")]).await;
    let settings = json!({ "url": format!("{}{{a}}?b={{b}}", server.url("/")) });
    let tricks: [Value; 5] = [
        json!({ "a": "@10.0.0.1/", "b": "#@10.0.0.1" }),
        json!({ "a": "//10.0.0.1", "b": "x&c=d" }),
        json!({ "a": "\\\\10.0.0.1", "b": "\r\nHost: evil" }),
        json!({ "a": "x?y=z#w", "b": "%26c=d" }),
        json!({ "a": "x HTTP/1.1\r\nX: y", "b": "\0" }),
    ];
    for trick in tricks {
        let before = server.seen().len();
        let outcome = run(tool(settings.clone()).await, trick.clone()).await;
        assert_eq!(output(&outcome), &json!([1]), "{trick}");
        let seen = &server.seen()[before];
        let path = seen.line().split(' ').nth(1).expect("a path").to_owned();
        let url = Url::parse(&format!("http://h{path}")).expect("a URL");
        assert_eq!(url.path_segments().expect("a path").count(), 1, "{path}");
        let pairs: Vec<_> = url.query_pairs().collect();
        assert_eq!(pairs.len(), 1, "{path}");
        assert_eq!(pairs[0].1, trick["b"].as_str().expect("a text"));
        assert_eq!(seen.header("x"), None);
        assert_eq!(
            seen.header("host"),
            Some(server.address.to_string().as_str())
        );
    }
}
