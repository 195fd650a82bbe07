//! Who gets in: the login where a token is set, and no page of somebody else's.

use serde_json::json;

use super::{Browser, SET};
use crate::serve::Served;

fn guarded() -> String {
    format!("[server]\ntoken = \"hunter-22\"\n{SET}")
}

#[tokio::test]
async fn with_a_token_every_page_asks_for_it_and_shows_nothing() {
    let served = Served::with_config(&guarded()).await;
    for path in [
        "/",
        "/calls",
        "/tools/weather",
        "/servers/calendar",
        "/config",
        "/audit",
        "/trends",
    ] {
        let reply = served.get(path).await;
        assert_eq!(reply.status, 401, "{path}");
        assert!(
            reply.text.contains("Log in") && !reply.text.contains("Current weather"),
            "{path}: {}",
            reply.text
        );
    }
    let headers = [
        ("sec-fetch-site", "same-origin"),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    for path in [
        "/config/reload",
        "/tools/weather/run",
        "/tools/weather/reset",
        "/servers/calendar/restart",
    ] {
        let reply = served.send("POST", path, &headers, "").await;
        assert_eq!(reply.status, 401, "{path}");
    }
    let stream = served
        .send("GET", "/", &[("accept", "text/event-stream")], "")
        .await;
    assert_eq!(
        stream.status, 204,
        "a stream that is refused does not come back"
    );
    assert_eq!(served.get("/v1/tools").await.status, 401);
}

#[tokio::test]
async fn the_login_takes_the_token_leads_back_and_is_void_elsewhere() {
    let served = Served::with_config(&guarded()).await;
    let mut browser = Browser::start(&served).await;
    let seen = browser
        .run(
            "const page = state.page = await open('/tools?q=home');
             await page.fill('#token', 'wrong'); await page.click('button');
             const wrong = await page.innerText('[role=alert]');
             const dark = await open('/login', { colorScheme: 'dark' });
             const found = [...await axe(page), ...await axe(dark)];
             await page.fill('#token', 'hunter-22'); await page.click('button');
             await page.waitForSelector('#tools');
             const cookies = await page.context().cookies();
             return { wrong, found, at: page.url(), cookies, live: await until('live', () => page.locator('[data-state=live]').count()) };",
        )
        .await;
    assert_eq!(
        seen["wrong"],
        "That is neither the token of this server nor one of its keys."
    );
    assert_eq!(seen["found"], json!([]));
    assert!(
        seen["at"]
            .as_str()
            .expect("an address")
            .ends_with("/tools?q=home"),
        "{seen}"
    );
    let cookie = &seen["cookies"][0];
    assert_eq!(
        (&cookie["httpOnly"], &cookie["sameSite"]),
        (&json!(true), &json!("Strict"))
    );
    let value = cookie["value"].as_str().expect("a value");
    assert!(!value.contains("hunter"), "{value}");
    // It opens pages and what they link to, but runs nothing over REST.
    let cookie = format!("steadyhand_session={value}");
    let with = |method: &'static str, path: &'static str| {
        let (served, cookie) = (&served, cookie.clone());
        async move {
            served
                .send(method, path, &[("cookie", &cookie)], "{}")
                .await
                .status
        }
    };
    assert_eq!(with("GET", "/v1/calls.ndjson").await, 200);
    assert_eq!(with("POST", "/v1/calls").await, 401);
    // Another one, a part of it, or none.
    for forged in ["0".repeat(64), value[..63].to_owned(), String::new()] {
        let cookie = format!("steadyhand_session={forged}");
        let reply = served.send("GET", "/", &[("cookie", &cookie)], "").await;
        assert_eq!(reply.status, 401, "{forged}");
    }
    browser.run("await state.page.click('text=Log out'); await state.page.goto(url + '/'); await state.page.waitForSelector('#token')").await;
    assert_eq!(with("GET", "/v1/calls.ndjson").await, 401);
    browser.close().await;
}

#[tokio::test]
async fn a_login_over_tls_is_shown_nowhere_else() {
    let config = "[server]\ntoken = \"hunter-22\"\nallowed_hosts = [\"tools.home.arpa\"]\n";
    let served = Served::with_config(config).await;
    let own = format!("http://{}", served.address);
    let form = ("content-type", "application/x-www-form-urlencoded");
    let name = ("host", "tools.home.arpa");
    let over_tls = [form, name, ("origin", "https://tools.home.arpa")];
    let plain = [form, ("origin", own.as_str())];
    for (headers, is_secure) in [(&over_tls[..], true), (&plain[..], false)] {
        let reply = served
            .send("POST", "/login", headers, "token=hunter-22")
            .await;
        let cookie = reply.header("set-cookie").expect("a cookie");
        assert_eq!(cookie.ends_with("; Secure"), is_secure, "{cookie}");
    }
}

#[tokio::test]
async fn a_form_of_another_page_is_refused_and_changes_nothing() {
    let served = Served::with_config(SET).await;
    let body = "arg%3A%2Fcity=Oslo&do=run";
    let form = ("content-type", "application/x-www-form-urlencoded");
    let own = format!("http://{}", served.address);
    let foreign: [&[(&str, &str)]; 5] = [
        &[form],
        &[form, ("origin", "http://evil.example")],
        &[form, ("origin", "null")],
        &[
            form,
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
        ],
        &[form, ("sec-fetch-site", "same-site"), ("origin", &own)],
    ];
    for headers in foreign {
        for path in ["/tools/weather/run", "/config/reload", "/theme", "/login"] {
            let reply = served.send("POST", path, headers, body).await;
            assert_eq!(reply.status, 403, "{path} {headers:?}");
        }
    }
    assert_eq!(served.get("/v1/calls").await.json()["calls"], json!([]));
    let reply = served
        .send(
            "POST",
            "/tools/weather/run",
            &[form, ("origin", &own)],
            body,
        )
        .await;
    assert_eq!(reply.status, 303, "{}", reply.text);
    let reply = served
        .send("GET", "/", &[("host", "evil.example")], "")
        .await;
    assert_eq!(reply.status, 403);
}

#[tokio::test]
async fn every_answer_of_the_dashboard_carries_the_strict_policy() {
    let served = Served::with_config(SET).await;
    for path in [
        "/",
        "/calls",
        "/tools/weather",
        "/tools/nobody",
        "/login",
        "/assets/app.css",
        "/assets/live.js",
    ] {
        let reply = served.get(path).await;
        let policy = reply.header("content-security-policy").unwrap_or_default();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"),
            "{path}: {policy}"
        );
        assert!(
            !policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"),
            "{path}: {policy}"
        );
        assert_eq!(
            reply.header("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
        for word in ["style=\"", "onclick", "javascript:", "<script>"] {
            assert!(
                !path.ends_with('/') || !reply.text.contains(word),
                "{word} in {path}"
            );
        }
    }
    assert_eq!(served.get("/assets/../config").await.status, 404);
}

#[tokio::test]
async fn without_the_dashboard_there_are_no_pages_and_rest_is_as_ever() {
    let served = Served::with_config(&format!("[server]\ndashboard = false\n{SET}")).await;
    for path in ["/", "/tools", "/assets/app.css"] {
        assert_eq!(served.get(path).await.status, 404, "{path}");
    }
    assert_eq!(served.get("/v1/overview").await.status, 200);
}
