//! What buttons do, and what they ask before.

use serde_json::json;

use super::{Browser, SET, calendar_is_down, seed, seeded};
use crate::serve::Served;

#[tokio::test]
async fn a_replay_is_a_new_call_that_is_linked_to_the_old_one() {
    let served = Served::with_config(SET).await;
    served
        .post(
            "/v1/calls",
            json!({"name": "weather", "args": {"city": "Oslo"}, "id": "first"}),
        )
        .await;
    let mut browser = Browser::start(&served).await;
    let seen = browser
        .run(
            "const page = await open('/calls/first');
             await page.keyboard.press('r');
             await page.waitForSelector('text=Replay of');
             return await page.innerText('main');",
        )
        .await;
    let seen = seen.as_str().expect("a text");
    assert!(
        seen.contains("Answered") && seen.contains("dashboard") && seen.contains("first"),
        "{seen}"
    );
    browser.no_complaints().await;
    browser.close().await;
    assert_eq!(
        served.get("/v1/calls").await.json()["calls"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
}

#[tokio::test]
async fn what_is_not_safe_to_repeat_is_asked_for_and_runs_only_after_a_yes() {
    let served = Served::with_config(SET).await;
    served
        .post(
            "/v1/calls",
            json!({"name": "once", "args": {}, "id": "first"}),
        )
        .await;
    let count = async || {
        served.get("/v1/calls?tool=once").await.json()["calls"]
            .as_array()
            .map(Vec::len)
    };
    let mut browser = Browser::start(&served).await;
    browser.run("state.page = await open('/calls/first'); await state.page.click('text=Replay'); await state.page.waitForSelector('[data-testid=question]')").await;
    assert_eq!(count().await, Some(1));
    browser.run("await state.page.click('text=Back'); await state.page.click('text=Replay'); await state.page.click('button:has-text(\"Run it again\")'); await state.page.waitForSelector('text=Replay of')").await;
    assert_eq!(count().await, Some(2));
    // The same for a call that is edited first.
    browser.run("await state.page.goto(url + '/calls/first'); await state.page.click('text=Edit and replay'); await state.page.click('button:has-text(\"Run\")'); await state.page.waitForSelector('[data-testid=question]')").await;
    assert_eq!(count().await, Some(2));
    browser.no_complaints().await;
    browser.close().await;
}

#[tokio::test]
async fn the_form_of_a_tool_shows_each_mistake_at_its_field_and_runs_what_fits() {
    let served = Served::with_config(SET).await;
    let mut browser = Browser::start(&served).await;
    let seen = browser
        .run(
            r#"const page = state.page = await open('/tools/home_lights');
             await page.fill('[id="arg:/brightness"]', '400');
             await page.fill('[id="arg:/transition/seconds"]', 'soon');
             await page.selectOption('[id="arg:/state"]', { label: 'on' });
             await page.click('text=Validate only');
             await page.waitForSelector('[role=alert]');
             const about = async (name) => page.innerText(`[id="arg:/${name}-about"]`);
             return { brightness: await about('brightness'), area: await about('area'), seconds: await about('transition/seconds'),
               kept: await page.inputValue('[id="arg:/brightness"]'), state: await page.inputValue('[id="arg:/state"]') };"#,
        )
        .await;
    assert!(
        seen["brightness"].as_str().expect("words").contains("100"),
        "{seen}"
    );
    assert!(
        seen["area"].as_str().expect("words").contains("area"),
        "{seen}"
    );
    assert!(
        !seen["seconds"].as_str().expect("words").is_empty(),
        "{seen}"
    );
    assert_eq!(
        (&seen["kept"], &seen["state"]),
        (&json!("400"), &json!("\"on\""))
    );
    let after = browser
        .run(
            r#"const page = state.page;
             await page.goto(url + '/tools/weather');
             await page.fill('[id="arg:/city"]', 'Oslo');
             await page.click('text=Validate only');
             const fits = await page.innerText('[role=alert]');
             await page.click('button:has-text("Run")');
             await page.waitForSelector('[data-testid=received]');
             return { fits, text: await page.innerText('[data-testid=received] pre') };"#,
        )
        .await;
    assert_eq!(after["fits"], "These arguments fit. Nothing was run.");
    assert!(
        after["text"].as_str().expect("a text").contains("rain"),
        "{after}"
    );
    browser.no_complaints().await;
    browser.close().await;
    assert_eq!(
        served.get("/v1/calls?tool=home_lights").await.json()["calls"],
        json!([])
    );
}

#[tokio::test]
async fn a_trial_lets_one_call_through_an_open_breaker() {
    let served = seeded().await;
    let mut browser = Browser::start(&served).await;
    browser.run("const page = await open('/tools/home_lights'); await page.click('text=Try now'); await page.waitForSelector('text=next trial now')").await;
    browser.close().await;
    let tried = served
        .call("home_lights", json!({"area": "hall", "state": "on"}))
        .await;
    assert_eq!(tried["error"]["code"], "NETWORK_ERROR", "{tried}");
    let refused = served
        .call("home_lights", json!({"area": "hall", "state": "on"}))
        .await;
    assert_eq!(refused["error"]["code"], "CIRCUIT_OPEN", "{refused}");
}

#[tokio::test]
async fn a_reload_that_is_refused_says_where_the_mistake_is() {
    let served = Served::with_config(SET).await;
    served.workplace.write(
        "steadyhand.toml",
        &SET.replacen("timeout = \"1s\"", "timeuot = \"1s\"", 1),
    );
    let mut browser = Browser::start(&served).await;
    let seen = browser
        .run(
            "const page = await open('/config');
             await page.click('button:has-text(\"Reload\")');
             const refused = await page.innerText('[data-testid=refused]');
             await page.goto(url + '/');
             return { refused, problem: await page.innerText('[data-testid=problems]') };",
        )
        .await;
    let refused = seen["refused"].as_str().expect("a text");
    assert!(
        refused.contains("timeuot") && refused.contains("steadyhand.toml:"),
        "{refused}"
    );
    assert!(
        seen["problem"]
            .as_str()
            .expect("a text")
            .contains("Configuration"),
        "{seen}"
    );
    browser.no_complaints().await;
    browser.close().await;
}

#[tokio::test]
async fn every_action_works_without_javascript() {
    let served = Served::with_config(SET).await;
    seed(&served).await;
    calendar_is_down(&served).await;
    // First, since it may have to wait for its turn.
    let mut browser = Browser::start(&served).await;
    super::slow_call(&served).await;
    let seen = browser
        .run(
            r#"const page = await open('/', { javaScriptEnabled: false });
             const seen = {};
             seen.problems = await page.locator('[data-testid=problem]').count();
             await page.click('text=Running 1');
             await page.click('text=Cancel slow_report');
             seen.cancelled = await page.innerText('[data-testid=sentence]');
             await page.goto(url + '/tools/weather');
             await page.fill('[id="arg:/city"]', 'Oslo');
             await page.click('button:has-text("Run")');
             seen.ran = await page.innerText('[data-testid=sentence]');
             await page.click('text=Edit and replay');
             await page.fill('[id="arg:/city"]', 'Bergen');
             await page.click('button:has-text("Run")');
             seen.edited = await page.innerText('[data-testid=received] pre');
             await page.goto(url + '/tools/home_lights');
             await page.click('text=Close the breaker');
             seen.breaker = await page.innerText('#breaker-title');
             await page.goto(url + '/servers/calendar');
             await page.click('text=Start now');
             seen.server = await page.innerText('h1');
             await page.goto(url + '/config');
             await page.click('button:has-text("Reload")');
             seen.config = await page.innerText('main');
             await page.click('button:has-text("Theme")');
             seen.theme = await page.getAttribute('html', 'data-theme');
             await page.goto(url + '/calls');
             await page.fill('#q', 'tool:weather state:ok');
             await page.click('button:has-text("Search")');
             seen.found = await page.locator('[data-testid=call]').count();
             return seen;"#,
        )
        .await;
    assert!(seen["problems"].as_u64() >= Some(2), "{seen}");
    assert!(
        seen["cancelled"]
            .as_str()
            .expect("words")
            .starts_with("Cancelled"),
        "{seen}"
    );
    assert!(
        seen["ran"]
            .as_str()
            .expect("words")
            .starts_with("Answered in"),
        "{seen}"
    );
    assert!(
        seen["edited"].as_str().expect("words").contains("clear"),
        "{seen}"
    );
    assert_eq!(seen["breaker"], "Breaker Closed");
    assert!(
        seen["config"].as_str().expect("words").contains("Reloaded"),
        "{seen}"
    );
    assert_eq!(seen["theme"], "dark");
    // Three of the seed, one by the form, one edited, one as a fallback.
    assert_eq!(seen["found"], 6);
    browser.close().await;
}
