//! Who is let in: this machine, by its own names, from no foreign page, and with the token where there is one.

use super::{Served, program};
use crate::support::Workplace;

#[tokio::test]
async fn a_request_for_another_host_or_from_a_foreign_page_is_refused() {
    let served = Served::start().await;
    let port = served.address.port();
    let own = format!("127.0.0.1:{port}");
    let local = format!("localhost:{port}");
    let same = format!("http://{own}");
    let other_port = "http://127.0.0.1:1".to_owned();
    for (host, origin, status) in [
        (own.as_str(), None, 200),
        (&local, None, 200),
        ("[::1]:80", None, 200),
        ("localhost", None, 200),
        ("evil.example", None, 403),
        ("127.0.0.1.evil.example", None, 403),
        ("evil.example:7400", None, 403),
        ("user@127.0.0.1", None, 403),
        ("10.0.0.1", None, 403),
        ("", None, 403),
        (&own, Some(same.as_str()), 200),
        (&local, Some(&same), 403),
        (&own, Some("http://evil.example"), 403),
        (&own, Some(&other_port), 403),
        (&own, Some("null"), 403),
        (&own, Some(""), 403),
    ] {
        let mut headers = vec![("host", host)];
        headers.extend(origin.map(|origin| ("origin", origin)));
        let reply = served.send("GET", "/v1/tools", &headers, "").await;
        assert_eq!(reply.status, status, "{host} {origin:?} {}", reply.text);
        if status == 403 {
            assert_eq!(reply.refusal().1, "foreign_request");
        }
    }
    // Where the request line names a host, it is the one that counts.
    let reply = served
        .send("GET", "http://evil.example/v1/tools", &[], "")
        .await;
    assert_eq!(reply.status, 403);
    let headers = [("host", "evil.example")];
    assert_eq!(
        served
            .send("GET", "/health/live", &headers, "")
            .await
            .status,
        403
    );
}

#[tokio::test]
async fn hosts_that_are_allowed_by_name_are_let_in() {
    let served = Served::with_config("[server]\nallowed_hosts = [\"tools.home.arpa\"]\n").await;
    for (host, origin, status) in [
        ("tools.home.arpa", None, 200),
        ("Tools.Home.Arpa:8080", None, 200),
        ("other.home.arpa", None, 403),
        ("127.0.0.1", Some("https://tools.home.arpa"), 200),
        ("127.0.0.1", Some("https://other.home.arpa"), 403),
    ] {
        let mut headers = vec![("host", host)];
        headers.extend(origin.map(|origin| ("origin", origin)));
        let reply = served.send("GET", "/v1/tools", &headers, "").await;
        assert_eq!(reply.status, status, "{host} {origin:?}");
    }
}

#[tokio::test]
async fn a_token_is_asked_for_everywhere_but_whether_the_server_lives() {
    let mut workplace = Workplace::with_config("[server]\ntoken = \"${env:STEADYHAND_TOKEN:-}\"\n");
    workplace.set("STEADYHAND_TOKEN", "a-token-for-this-test");
    let served = Served::in_place(workplace).await;
    for path in ["/v1/tools", "/openapi.json", "/metrics", "/nothing"] {
        let reply = served.get(path).await;
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"), "{path}");
        assert_eq!(
            (reply.status, reply.refusal().1.as_str()),
            (401, "token_missing")
        );
    }
    for (value, status) in [
        ("Bearer a-token-for-this-test", 200),
        ("bearer a-token-for-this-test", 200),
        ("Bearer a-token-for-this-tes", 401),
        ("Bearer a-token-for-this-test2", 401),
        ("Basic a-token-for-this-test", 401),
        ("Bearer", 401),
        ("", 401),
    ] {
        let reply = served
            .send("GET", "/v1/tools", &[("authorization", value)], "")
            .await;
        assert_eq!(reply.status, status, "{value}");
        assert!(!reply.text.contains("a-token-for"), "{}", reply.text);
    }
    assert_eq!(served.get("/health/live").await.status, 200);
    assert_eq!(served.get("/health/ready").await.status, 200);
}

#[tokio::test]
async fn an_address_that_others_reach_is_refused_without_a_token() {
    let workplace = Workplace::with_config("");
    let refused = program(&workplace, &["serve", "--listen", "0.0.0.0:0"])
        .output()
        .await;
    let refused = refused.expect("it ends");
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("no token is set"), "{stderr}");
    assert!(stderr.contains("help: Set token"), "{stderr}");

    let workplace = Workplace::with_config("[server]\nlisten = \"0.0.0.0:0\"\n");
    let refused = program(&workplace, &["serve"])
        .output()
        .await
        .expect("it ends");
    assert_eq!(refused.status.code(), Some(8));

    let workplace = Workplace::with_config("[server]\ntoken = \"t\"\n");
    let served = Served::listening(workplace, "0.0.0.0:0").await;
    assert!(served.address.ip().is_unspecified());
}

#[tokio::test]
async fn a_token_that_stands_for_nothing_keeps_the_server_from_starting() {
    let workplace = Workplace::with_config("[server]\ntoken = \"${env:NO_SUCH_TOKEN}\"\n");
    let refused = program(&workplace, &["serve"])
        .output()
        .await
        .expect("it ends");
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{stderr}");
    assert!(
        stderr.contains("${env:NO_SUCH_TOKEN} in server.token"),
        "{stderr}"
    );
}

#[tokio::test]
async fn an_address_that_is_taken_is_said_with_what_to_do() {
    let served = Served::start().await;
    let address = served.address.to_string();
    let workplace = Workplace::with_config("");
    let refused = program(&workplace, &["serve", "--listen", &address])
        .output()
        .await;
    let refused = refused.expect("it ends");
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(4), "{stderr}");
    assert!(
        stderr.contains(&format!("cannot listen on {address}")),
        "{stderr}"
    );
    assert!(stderr.contains("--listen 127.0.0.1:0"), "{stderr}");
}
