//! The ten questions of people who run it (UX.md 1.1), each asked of the page `/` and answered within two clicks.

use serde_json::json;

use super::decide::waiting;
use super::{Browser, SET, UNLOCK, calendar_is_down, seed, seeded, slow_call};
use crate::serve::Served;

#[tokio::test]
async fn r13_question_1_is_anything_broken_right_now() {
    let served = seeded().await;
    calendar_is_down(&served).await;
    let mut browser = Browser::start(&served).await;
    let problems = browser
        .run("const page = await open('/'); return await page.locator('[data-testid=problem]').allInnerTexts()")
        .await;
    let problems: Vec<&str> = problems
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it.as_str())
        .collect();
    let says = |words: &[&str]| {
        problems
            .iter()
            .any(|problem| words.iter().all(|word| problem.contains(word)))
    };
    assert!(says(&["Broken", "calendar", "not running"]), "{problems:?}");
    assert!(
        says(&["Broken", "home_lights", "breaker open", "next trial"]),
        "{problems:?}"
    );
    browser.no_complaints().await;
    browser.close().await;

    let healthy = Served::with_config("[tools.echo]\nkind = \"builtin\"\nuse = \"echo\"\n").await;
    let mut browser = Browser::start(&healthy).await;
    let said = browser
        .run("const page = await open('/'); return await page.innerText('[data-testid=problems]')")
        .await;
    assert_eq!(said, "All tools answer");
    browser.close().await;
}

#[tokio::test]
async fn r13_question_2_which_tool_fails_and_what_does_it_say() {
    let served = seeded().await;
    let mut browser = Browser::start(&served).await;
    let rows = browser
        .run("const page = await open('/'); return await page.locator('[data-testid=tool-row]').allInnerTexts()")
        .await;
    let first = rows[0].as_str().expect("a row");
    assert!(
        first.contains("home_lights") && first.contains("Open"),
        "{first}"
    );
    assert!(first.contains("100 %"), "{first}");
    // Its last call was refused by the breaker; what the tool itself said is one click away.
    let said = browser
        .run("const page = await open('/'); await page.click('#tools >> text=home_lights'); return await page.innerText('main')")
        .await;
    assert!(
        said.as_str().expect("a text").contains("no route to host"),
        "{said}"
    );
    browser.no_complaints().await;
    browser.close().await;
}

#[tokio::test]
async fn r13_question_3_which_tool_is_slow_and_slower_than_before() {
    let served = seeded().await;
    let mut browser = Browser::start(&served).await;
    let seen = browser
        .run(
            "const page = await open('/');
             const row = await page.innerText('[data-tool=home_scene]');
             await page.click('#tools >> text=home_scene');
             return { row, figures: await page.innerText('.figures'), steps: await page.locator('.histogram li').count() };",
        )
        .await;
    // Three attempts of 300 ms each.
    assert!(
        seen["row"].as_str().expect("a row").contains(" ms")
            || seen["row"].as_str().expect("a row").contains(" s"),
        "{seen}"
    );
    let figures = seen["figures"].as_str().expect("figures");
    assert!(
        figures.contains("p95") && figures.contains("before:"),
        "{figures}"
    );
    assert!(seen["steps"].as_u64() >= Some(1), "{seen}");
    browser.no_complaints().await;
    browser.close().await;
}

#[tokio::test]
async fn r13_question_4_what_runs_right_now_and_cancel_it() {
    let served = Served::with_config(SET).await;
    let mut browser = Browser::start(&served).await;
    let id = slow_call(&served).await;
    let seen = browser
        .run(
            "const page = state.page = await open('/');
             const lane = await page.innerText('#lane-slow_report');
             await page.click('text=Running 1');
             const row = await page.innerText('[data-testid=call][data-status=running]');
             await page.click('[data-status=running] >> text=Cancel');
             return { lane, row, after: await page.innerText('[data-testid=sentence]') };",
        )
        .await;
    let lane = seen["lane"].as_str().expect("a lane");
    assert!(lane.contains("of 58 s"), "{lane}");
    assert!(
        seen["row"].as_str().expect("a row").contains("of 58 s"),
        "{seen}"
    );
    assert!(
        seen["after"]
            .as_str()
            .expect("a sentence")
            .starts_with("Cancelled"),
        "{seen}"
    );
    let record = served.get(&format!("/v1/calls/{id}")).await.json();
    assert_eq!(record["state"], "cancelled");
    browser.no_complaints().await;
    browser.close().await;
}

#[tokio::test]
async fn r13_question_5_why_did_this_call_fail_or_take_so_long() {
    let served = seeded().await;
    let mut browser = Browser::start(&served).await;
    let seen = browser
        .run(
            "const page = await open('/');
             await page.click('#recent >> text=home_scene');
             return { sentence: await page.innerText('[data-testid=sentence]'), steps: await page.locator('.waterfall tbody th').allInnerTexts() };",
        )
        .await;
    let sentence = seen["sentence"].as_str().expect("a sentence");
    assert!(
        sentence.starts_with("Degraded. Answered by its fallback weather after 3 attempts"),
        "{sentence}"
    );
    let steps = &seen["steps"];
    for step in [
        "Attempt 1",
        "Attempt 2",
        "Attempt 3",
        "Wait before the next attempt",
        "Fallback weather",
    ] {
        assert!(
            steps.as_array().expect("a list").contains(&json!(step)),
            "{step} in {steps}"
        );
    }
    browser.no_complaints().await;
    browser.close().await;
}

#[tokio::test]
async fn r13_question_6_is_that_server_up_and_what_did_it_print() {
    let served = Served::with_config(SET).await;
    calendar_is_down(&served).await;
    let mut browser = Browser::start(&served).await;
    let seen = browser
        .run(
            "const page = await open('/');
             await page.click('text=See its stderr');
             return { sentence: await page.innerText('[data-testid=sentence]'), steps: await page.innerText('[data-testid=steps]'),
               log: await page.innerText('[data-testid=log]'), cause: await page.innerText('[data-testid=cause]') };",
        )
        .await;
    assert!(
        seen["sentence"]
            .as_str()
            .expect("a text")
            .contains("exited with code 1"),
        "{seen}"
    );
    assert!(
        seen["log"]
            .as_str()
            .expect("a text")
            .contains("No module named 'mcp'"),
        "{seen}"
    );
    let steps = seen["steps"].as_str().expect("a text");
    assert!(
        steps.contains("find command") && steps.contains("Failed") && steps.contains("Not reached"),
        "{steps}"
    );
    assert!(
        seen["cause"].as_str().expect("a text").contains("mcp"),
        "{seen}"
    );
    browser.no_complaints().await;
    browser.close().await;
}

#[tokio::test]
async fn r13_question_7_which_breaker_is_open_why_and_until_when() {
    let served = seeded().await;
    let mut browser = Browser::start(&served).await;
    let seen = browser
        .run(
            "const page = await open('/');
             const line = page.locator('[data-testid=problem]', { hasText: 'home_lights' });
             const problem = await line.innerText();
             await line.locator('text=See why').click();
             const breaker = await page.innerText('[data-testid=breaker]');
             const squares = await page.locator('.squares li').count();
             await page.click('[data-testid=breaker] >> text=Close the breaker');
             return { problem, breaker, squares, after: await page.innerText('#breaker-title') };",
        )
        .await;
    assert!(
        seen["problem"]
            .as_str()
            .expect("a text")
            .contains("3 failures in a row"),
        "{seen}"
    );
    let breaker = seen["breaker"].as_str().expect("a text");
    for words in [
        "Open",
        "3 in a row failed, limit 3",
        "next trial in",
        "Half-open",
        "Try now",
    ] {
        assert!(breaker.contains(words), "{words} in {breaker}");
    }
    assert_eq!(seen["squares"], 4);
    assert_eq!(seen["after"], "Breaker Closed");
    browser.no_complaints().await;
    browser.close().await;
}

#[tokio::test]
async fn r13_question_8_what_exactly_did_the_model_receive() {
    let served = Served::with_config(SET).await;
    let body = json!({"name": "weather", "args": {"city": "Oslo"}, "id": "toolu_01F"});
    let message = served.post("/v1/calls?view=message", body).await.json();
    let wrong = served
        .post(
            "/v1/calls?view=message",
            json!({"name": "weather", "args": {}, "id": "toolu_02F"}),
        )
        .await
        .json();
    let mut browser = Browser::start(&served).await;
    let seen = browser
        .run(
            "const page = await open('/');
             const look = async (id) => ({ facts: await page.innerText('[data-testid=received] dl'), text: await page.textContent('[data-testid=received] pre') });
             await page.click('#recent [data-status=ok] a');
             const ok = await look();
             await page.goto(url + '/');
             await page.click('#recent [data-status=rejected] a');
             return { ok, wrong: await look() };",
        )
        .await;
    // To the letter what the same call's message view gave.
    assert_eq!(seen["ok"]["text"], message["content"]);
    assert_eq!(seen["wrong"]["text"], wrong["content"]);
    let facts = seen["ok"]["facts"].as_str().expect("a text");
    assert!(
        facts.contains("toolu_01F") && facts.contains("false") && facts.contains("Truncated\nno"),
        "{facts}"
    );
    assert!(
        seen["wrong"]["facts"]
            .as_str()
            .expect("a text")
            .contains("true"),
        "{seen}"
    );
    browser.no_complaints().await;
    browser.close().await;
}

#[tokio::test]
async fn r13_question_9_who_waits_for_my_yes_or_no() {
    let served = Served::with_config(&format!("{SET}\n{UNLOCK}")).await;
    let mut browser = Browser::start(&served).await;
    browser.log_in(&served).await;
    let calling = served.call("home_unlock", json!({"door": "front"}));
    let looking = async {
        waiting(&served).await;
        let seen = browser
            .run(
                "const page = await open('/');
                 const badge = await page.innerText('#waiting');
                 const lane = await page.innerText('#lane-home_unlock');
                 const problem = await page.locator('[data-testid=problem]', { hasText: 'home_unlock' }).innerText();
                 await page.click('nav >> text=Approvals');
                 const asked = await page.innerText('[data-testid=approval]');
                 const found = await axe(page);
                 await page.click('[data-testid=approval] button[value=approve]');
                 const after = await page.innerText('[data-testid=decided]');
                 await until('nobody waits', () => page.locator('#waiting').isHidden());
                 return { badge, lane, problem, asked, found, after };",
            )
            .await;
        browser.no_complaints().await;
        seen
    };
    let (outcome, seen) = tokio::join!(calling, looking);
    browser.close().await;
    assert_eq!(outcome["output"], "unlocked", "{outcome}");
    let has = |part: &str, words: &str| {
        let text = seen[part].as_str().expect("a text");
        assert!(text.contains(words), "{words} in {text}");
    };
    has("badge", "1");
    has("lane", "waits for a yes");
    has("problem", "waits for a yes or a no");
    has("problem", "it expires in");
    has("asked", "\"door\": \"front\"");
    has("asked", "asked by 127.0.0.1");
    has("asked", "expires in");
    has("after", "Approved");
    assert_eq!(seen["found"], json!([]));
}

#[tokio::test]
async fn r13_question_10_what_changed_just_before() {
    let served = Served::with_config(SET).await;
    seed(&served).await;
    calendar_is_down(&served).await;
    served.workplace.write(
        "steadyhand.toml",
        &format!("{SET}\n[defaults]\ntimeout = \"9s\"\n"),
    );
    served.post("/v1/config/reload", json!({})).await;
    let mut browser = Browser::start(&served).await;
    let seen = browser
        .run(
            "const page = await open('/');
             await until('the change is told', async () => (await page.innerText('[data-testid=marks]')).includes('Configuration reloaded'));
             const lines = await page.locator('#chart-hour path.mark').count();
             await page.click('nav >> text=Trends');
             return { lines, marks: await page.innerText('[data-testid=marks]') };",
        )
        .await;
    assert!(seen["lines"].as_u64() >= Some(2), "{seen}");
    let marks = seen["marks"].as_str().expect("a text");
    for words in [
        "Configuration reloaded, generation",
        "started",
        "calendar: not running",
    ] {
        assert!(marks.contains(words), "{words} in {marks}");
    }
    browser.no_complaints().await;
    browser.close().await;
}
