//! People decide: yes or no to a call, known or quiet to an alert; each as far as their key lets them.

use serde_json::{Value, json};

use super::{Browser, SET, UNLOCK, seeded};
use crate::serve::{Served, until};
use crate::support::parts;

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// What waits, once something does.
pub(super) async fn waiting(served: &Served) -> Value {
    until("a call waits", async || {
        let view = served.get("/v1/approvals").await.json();
        let first = view["approvals"][0].clone();
        (first["state"] == "waiting").then_some(first)
    })
    .await
}

#[tokio::test]
async fn a_no_with_its_reason_reaches_the_caller_and_works_without_javascript() {
    let served = Served::with_config(UNLOCK).await;
    let mut browser = Browser::start(&served).await;
    browser.log_in(&served).await;
    let calling = served.call(
        "home_unlock",
        json!({"door": "<b>front</b>", "password": "hunter22222"}),
    );
    let looking = async {
        waiting(&served).await;
        let seen = browser
            .run(
                "const page = await open('/approvals', { javaScriptEnabled: false });
                 const asked = await page.innerText('[data-testid=approval]');
                 const found = await page.locator('[data-testid=approval] b').count();
                 await page.fill('[data-testid=approval] input[name=reason]', 'not at night');
                 await page.click('[data-testid=approval] button[value=deny]');
                 return { asked, found, after: await page.innerText('[data-testid=decided]'), left: await page.locator('[data-testid=approval]').count() };",
            )
            .await;
        browser.no_complaints().await;
        seen
    };
    let (outcome, seen) = tokio::join!(calling, looking);
    browser.close().await;
    assert_eq!(outcome["error"]["code"], "APPROVAL_DENIED", "{outcome}");
    assert!(outcome.to_string().contains("not at night"), "{outcome}");
    let asked = seen["asked"].as_str().expect("a text");
    assert!(
        asked.contains("<b>front</b>") && !asked.contains("hunter"),
        "{asked}"
    );
    assert_eq!((&seen["found"], &seen["left"]), (&json!(0), &json!(0)));
    let after = seen["after"].as_str().expect("a text");
    assert!(
        after.contains("Denied") && after.contains("dashboard") && after.contains("not at night"),
        "{after}"
    );
}

#[tokio::test]
async fn a_yes_to_other_arguments_than_those_that_were_seen_is_none() {
    let served = Served::with_config(UNLOCK).await;
    let calling = served.call("home_unlock", json!({"door": "front"}));
    let saying = async {
        let approval = waiting(&served).await;
        let path = format!("/approvals/{}", approval["id"].as_str().expect("an id"));
        let own = format!("http://{}", served.address);
        let headers = [FORM, ("origin", own.as_str())];
        // Nobody decides without a credential, whatever the server lets them see.
        let refused = served
            .send("POST", &path, &headers, "decision=approve")
            .await;
        assert_eq!(refused.status, 401, "{}", refused.text);
        let shown = format!("Bearer {}", served.local_token());
        let headers = [
            FORM,
            ("origin", own.as_str()),
            ("authorization", shown.as_str()),
        ];
        let say = async |body: &str| served.send("POST", &path, &headers, body).await.status;
        assert_eq!(
            say("decision=approve&arguments_hash=sha256:other").await,
            409
        );
        assert_eq!(say("arguments_hash=sha256:other").await, 400);
        assert_eq!(waiting(&served).await["id"], approval["id"]);
        let hash = approval["arguments_hash"].as_str().expect("a hash");
        let hash = hash.replace(':', "%3A");
        let body = format!("decision=approve&arguments_hash={hash}");
        assert_eq!(say(&body).await, 303);
        // Once.
        assert_eq!(say(&body).await, 409);
    };
    let (outcome, ()) = tokio::join!(calling, saying);
    assert_eq!(outcome["status"], "success", "{outcome}");
}

#[tokio::test]
async fn r12_an_alert_is_seen_acknowledged_silenced_and_says_what_ended_it() {
    let served = seeded().await;
    let raised = async || {
        let list = served.get("/v1/alerts").await.json();
        let alerts = list["alerts"].as_array()?.clone();
        let is_it = |alert: &Value| alert["watched"] == "breaker_open";
        alerts.into_iter().find(is_it)
    };
    until("the alert is raised", raised).await;
    let mut browser = Browser::start(&served).await;
    browser.log_in(&served).await;
    let seen = browser
        .run(
            "const page = state.page = await open('/', { javaScriptEnabled: false });
             await page.click('#figures >> text=/^[1-9]$/ >> nth=-1');
             const row = () => page.locator('[data-testid=alert]', { hasText: 'breaker_open' });
             const seen = { at: new URL(page.url()).pathname, first: await row().innerText() };
             await row().locator('button:has-text(\"Acknowledge\")').click();
             seen.known = await row().innerText();
             await row().locator('button:has-text(\"Silence\")').click();
             seen.quiet = await row().innerText();
             await page.goto(url + '/tools/home_lights');
             await page.click('text=Close the breaker');
             return seen;",
        )
        .await;
    let has = |part: &str, words: &str| {
        let text = seen[part].as_str().expect("a text");
        assert!(text.contains(words), "{words} in {text}");
    };
    has("at", "/alerts");
    has("first", "home_lights");
    has("first", "Raised");
    has("known", "Acknowledged");
    has("known", "dashboard");
    has("quiet", "Silenced");
    until("it is over", async || {
        let alert = raised().await?;
        (alert["state"] == "cleared").then_some(())
    })
    .await;
    let over = browser
        .run("const page = state.page; await page.goto(url + '/alerts'); return await page.locator('[data-testid=alert][data-state=cleared]', { hasText: 'home_lights' }).innerText()")
        .await;
    assert!(
        over.as_str()
            .expect("a text")
            .contains("its breaker is closed again"),
        "{over}"
    );
    browser.no_complaints().await;
    browser.close().await;
}

fn key(served: &Served, name: &str, role: &str) -> String {
    let words = ["keys", "create", name, "--role", role, "--json"];
    let (code, said, stderr) = parts(&served.workplace.run_words(&words));
    assert_eq!(code, 0, "{stderr}");
    let made: Value = serde_json::from_str(&said).expect("JSON");
    made["key"].as_str().expect("a key").to_owned()
}

/// The cookie of a login with this key.
async fn logged_in(served: &Served, key: &str) -> String {
    let own = format!("http://{}", served.address);
    let headers = [FORM, ("origin", own.as_str())];
    let reply = served
        .send(
            "POST",
            "/login",
            &headers,
            &format!("token={key}&back=%2Ftools"),
        )
        .await;
    assert_eq!(
        (reply.status, reply.header("location")),
        (303, Some("/tools")),
        "{}",
        reply.text
    );
    let cookie = reply.header("set-cookie").expect("a cookie");
    cookie.split(';').next().expect("a pair").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_role_sees_and_presses_what_it_may_and_a_revoked_key_ends_its_logins() {
    let served = Served::with_config(SET).await;
    let own = format!("http://{}", served.address);
    let mut cookies = Vec::new();
    for role in ["viewer", "caller", "operator", "admin"] {
        let key = key(&served, role, role);
        let cookie = logged_in(&served, &key).await;
        assert!(!cookie.contains(&key), "{cookie}");
        cookies.push(cookie);
    }
    let status = async |cookie: &str, method: &str, path: &str| {
        let headers = [FORM, ("origin", own.as_str()), ("cookie", cookie)];
        served.send(method, path, &headers, "").await.status
    };
    // Each with what viewer, caller, operator and admin get.
    let table = [
        ("GET", "/", [200, 403, 200, 200]),
        ("GET", "/calls", [200, 403, 200, 200]),
        ("GET", "/approvals", [200, 403, 200, 200]),
        ("GET", "/v1/overview", [200, 403, 200, 200]),
        ("POST", "/tools/math/run", [403, 422, 422, 422]),
        ("POST", "/tools/math/reset", [403, 403, 303, 303]),
        ("POST", "/approvals/ap1", [403, 403, 400, 400]),
        ("POST", "/alerts/a1/ack", [403, 403, 404, 404]),
        ("POST", "/config/reload", [403, 403, 403, 303]),
        // A login runs nothing over REST: a page of somebody else's could send it along.
        ("POST", "/v1/config/reload", [401, 401, 401, 401]),
    ];
    for (method, path, wanted) in table {
        for (cookie, wanted) in cookies.iter().zip(wanted) {
            assert_eq!(
                status(cookie, method, path).await,
                wanted,
                "{method} {path} with the key of {wanted}"
            );
        }
    }
    let viewer = &cookies[0];
    let (code, _, stderr) = parts(&served.workplace.run("keys revoke viewer"));
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(status(viewer, "GET", "/").await, 401);
    // Logging out ends it here, not only in the browser.
    assert_eq!(status(&cookies[3], "POST", "/logout").await, 303);
    assert_eq!(status(&cookies[3], "GET", "/").await, 401);
}
