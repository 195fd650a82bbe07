//! Reading a page: values of charts, columns that sort, times, totals per caller, texts that are copied.

use serde_json::{Value, json};

use super::{Browser, SET, seeded};
use crate::serve::{Served, until};

#[tokio::test]
async fn a_chart_tells_its_values_under_the_pointer_and_by_keys_and_leads_to_the_calls() {
    let served = seeded().await;
    let mut browser = Browser::start(&served).await;
    let seen = browser
        .run(
            "const page = await open('/trends'); const plot = page.locator('#chart-calls-plot');
             const box = await plot.boundingBox();
             await page.mouse.move(box.x + box.width - 2, box.y + 40);
             const hovered = await plot.locator('.readout').innerText();
             await page.mouse.move(5, 5); const left = await plot.locator('.readout').textContent();
             await plot.focus(); const focused = await plot.locator('.readout').innerText();
             await page.keyboard.press('ArrowLeft'); const before = await plot.locator('.readout').innerText();
             const found = await axe(page);
             await plot.focus(); await page.keyboard.press('End'); await Promise.all([page.waitForURL(/calls[?]since/), page.keyboard.press('Enter')]);
             return { hovered, left, focused, before, found, at: new URL(page.url()).search, rows: await page.locator('#calls tbody tr').count() };",
        )
        .await;
    browser.no_complaints().await;
    browser.close().await;
    let text = |name: &str| seen[name].as_str().unwrap_or_default().to_owned();
    assert!(
        text("hovered").contains("calls ") && text("hovered").contains(", failed "),
        "{seen}"
    );
    assert_eq!(text("left"), "", "{seen}");
    assert_eq!(text("focused"), text("hovered"), "{seen}");
    assert_ne!(text("before"), text("focused"), "{seen}");
    assert_eq!(seen["found"], json!([]));
    assert!(
        text("at").contains("since=") && text("at").contains("until="),
        "{seen}"
    );
}

#[tokio::test]
async fn columns_sort_without_javascript_and_keep_the_filter() {
    let served = seeded().await;
    let mut browser = Browser::start(&served).await;
    let seen = browser
        .run(
            "const page = await open('/calls?state=failed', { javaScriptEnabled: false });
             const column = async (at) => page.locator(`#calls tbody tr > *:nth-child(${at})`).allInnerTexts();
             await page.click('#calls th >> text=Tool'); const tools = await column(2); const first = page.url();
             await page.click('#calls th >> text=Tool'); const back = await column(2); const sorted = await page.getAttribute('#calls th[aria-sort]', 'aria-sort');
             await page.click('#calls th >> text=Took'); const slow = page.url(); const note = await page.innerText('.foot');
             await page.goto(url + '/tools?q=home'); await page.click('#tools th >> text=Calls');
             const calls = (await page.locator('#tools tbody tr').evaluateAll((all) => all.map((row) => Number(row.children[3].textContent)))); const second = page.url();
             await page.goto(url + '/servers'); await page.click('#servers th >> text=State'); const servers = page.url();
             return { tools, back, sorted, slow, note, calls, first, second, servers };",
        )
        .await;
    browser.close().await;
    let texts = |name: &str| -> Vec<String> {
        let list = seen[name].as_array().expect("a list").iter();
        list.map(|one| one.as_str().unwrap_or_default().to_owned())
            .collect()
    };
    let (tools, mut back) = (texts("tools"), texts("back"));
    assert!(tools.len() > 3 && tools.is_sorted(), "{tools:?}");
    back.reverse();
    assert!(back.is_sorted() && seen["sorted"] == "descending", "{seen}");
    for (name, words) in [
        ("first", "state=failed"),
        ("slow", "sort=-took"),
        ("note", "sorted among"),
        ("second", "q=home"),
        ("servers", "sort=status"),
    ] {
        assert!(
            seen[name].as_str().is_some_and(|text| text.contains(words)),
            "{words} in {seen}"
        );
    }
    let mut calls: Vec<u64> = seen["calls"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_u64)
        .collect();
    calls.reverse();
    assert!(calls.len() > 1 && calls.is_sorted(), "{seen}");
    let listed = served.get("/v1/calls?sort=-took&limit=3").await.json();
    let took: Vec<f64> = listed["calls"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|call| call["took_ms"].as_f64())
        .collect();
    assert!(
        took.len() == 3 && took[0] >= took[1] && took[1] >= took[2],
        "{listed}"
    );
    let (status, _, message) = served.get("/v1/calls?sort=age").await.refusal();
    assert!(
        status == 400 && message.contains("tries or caller"),
        "{message}"
    );
}

#[tokio::test]
async fn calls_are_shown_for_a_range_of_time() {
    let served = seeded().await;
    let mut browser = Browser::start(&served).await;
    let seen = browser
        .run(
            "const page = await open('/calls?state=failed', { javaScriptEnabled: false });
             const count = () => page.locator('#calls tbody tr').count();
             const all = await count(); await page.click('nav >> text=15 min'); const recent = { rows: await count(), at: page.url(), here: await page.innerText('nav[aria-label=\"Calls by time\"] [aria-current]') };
             await page.click('summary >> text=From'); await page.fill('#until', '2020-01-01T00:00'); await page.click('.range button'); const old = { at: page.url(), text: await page.innerText('main') };
             const live = await open('/calls'); await live.click('summary >> text=From'); await live.fill('#since', '2020-01-01T00:00'); await live.fill('#until', '2099-01-01T00:00');
             await Promise.all([live.waitForURL(/since=/), live.click('.range button')]);
             const wide = { at: live.url(), rows: await live.locator('#calls tbody tr').count(), kept: await live.inputValue('#since'), found: await axe(live) };
             return { all, recent, old, wide };",
        )
        .await;
    browser.no_complaints().await;
    browser.close().await;
    assert_eq!(seen["recent"]["rows"], seen["all"], "{seen}");
    assert_eq!(seen["recent"]["here"], "15 min", "{seen}");
    let has = |pointer: &str, words: &str| {
        let text = seen
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default();
        assert!(text.contains(words), "{words} in {seen}");
    };
    has("/recent/at", "state=failed");
    has("/old/at", "state=failed");
    has("/old/text", "No call fits");
    has("/wide/at", "000Z");
    has("/wide/kept", "2020-01-01T00:00");
    assert!(seen["wide"]["rows"].as_u64() > Some(5), "{seen}");
    assert_eq!(seen["wide"]["found"], json!([]));
}

#[tokio::test]
async fn totals_per_caller_are_counted_and_lead_to_the_calls() {
    let served = Served::with_config(SET).await;
    for (caller, city) in [("voice", "Oslo"), ("voice", "Bergen"), ("chat", "Oslo")] {
        let body = json!({"name": "weather", "args": {"city": city}}).to_string();
        served
            .send("POST", "/v1/calls", &[("steadyhand-caller", caller)], &body)
            .await;
    }
    let ill = json!({"name": "weather", "args": {"town": "Oslo"}}).to_string();
    served
        .send("POST", "/v1/calls", &[("steadyhand-caller", "chat")], &ill)
        .await;
    let totals = until("all are written", async || {
        let view = served.get("/v1/callers?window=1h").await.json();
        let callers = view["callers"].as_array()?.clone();
        (callers
            .iter()
            .filter_map(|one| one["calls"].as_u64())
            .sum::<u64>()
            == 4)
            .then_some(callers)
    })
    .await;
    let of = |name: &str| {
        let found = totals.iter().find(|one| {
            one["caller"]
                .as_str()
                .is_some_and(|caller| caller.contains(name))
        });
        found
            .unwrap_or_else(|| panic!("{name} in {totals:?}"))
            .clone()
    };
    assert_eq!(
        (&of("voice")["calls"], &of("voice")["rejected"]),
        (&json!(2), &json!(0))
    );
    assert_eq!(
        (&of("chat")["calls"], &of("chat")["rejected"]),
        (&json!(2), &json!(1))
    );
    let mut browser = Browser::start(&served).await;
    let seen = browser
        .run(
            "const page = await open('/trends', { javaScriptEnabled: false });
             await page.click('#callers th >> text=Refused');
             const first = await page.locator('[data-testid=caller]').first().innerText();
             await page.click('[data-testid=caller] a'); return { first, at: page.url(), rows: await page.locator('#calls tbody tr').count() };",
        )
        .await;
    browser.close().await;
    assert!(
        seen["first"]
            .as_str()
            .is_some_and(|text| text.contains("chat")),
        "{seen}"
    );
    assert_eq!(seen["rows"], 2, "{seen}");
}

#[tokio::test]
async fn copy_buttons_copy_also_where_a_page_has_no_clipboard() {
    let served = seeded().await;
    let id = "toolu_".to_owned() + &"0123456789".repeat(20);
    let body = json!({"name": "weather", "id": id, "args": {"city": "Oslo"}});
    served.post("/v1/calls", body).await;
    let mut browser = Browser::start(&served).await;
    let seen = browser
        .run(
            "const calls = await (await fetch(url + '/v1/calls?tool=weather&state=ok')).json(); const call = calls.calls[0];
             const seen = {};
             for (const kind of ['clipboard', 'plain']) {
               const page = await open(null);
               if (kind === 'clipboard') await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url });
               else await page.addInitScript(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
               await page.goto(url + `/calls/${call.key}`);
               const paste = async () => { await page.evaluate(() => { const field = document.createElement('textarea'); field.id = 'pasted'; field.ariaLabel = 'pasted'; document.body.append(field); field.focus(); }); await page.keyboard.press('Control+V'); const text = await page.inputValue('#pasted'); await page.evaluate(() => document.getElementById('pasted').remove()); return text; };
               await page.click('[data-testid=received] dl .copy'); await until('copied', async () => (await page.locator('[data-testid=received] dl .copy').innerText()) === 'Copied');
               const id = await paste();
               await page.click('section[aria-labelledby=arguments-title] .copy'); await until('copied, too', async () => (await page.locator('section[aria-labelledby=arguments-title] .copy').innerText()) === 'Copied'); const args = await paste();
               seen[kind] = { id, args, found: await axe(page) };
             }
             const bare = await open(`/calls/${call.key}`, { javaScriptEnabled: false });
             return { ...seen, id: call.id, bare: await bare.locator('.copy:visible').count() };",
        )
        .await;
    browser.no_complaints().await;
    browser.close().await;
    for kind in ["clipboard", "plain"] {
        assert_eq!(seen[kind]["id"], seen["id"], "{seen}");
        assert!(
            seen[kind]["args"]
                .as_str()
                .is_some_and(|text| text.contains("\"city\": \"Oslo\"")),
            "{seen}"
        );
        assert_eq!(seen[kind]["found"], json!([]), "{seen}");
    }
    assert_eq!(
        seen["bare"], 0,
        "without scripts there is no button that does nothing"
    );
}

#[tokio::test]
async fn a_replayed_call_with_a_key_leads_to_the_first_one() {
    let served = Served::with_config(SET).await;
    let call = |id: &str| json!({"name": "once", "id": id, "idempotency_key": "pay 7", "args": {}});
    served.post("/v1/calls", call("first-1")).await;
    let again = served.post("/v1/calls", call("second-2")).await.json();
    assert_eq!(again["replayed"], true, "{again}");
    let record = served.get("/v1/calls/second-2").await.json();
    assert_eq!(record["replay_of"], "first-1", "{record}");
    let served = Served::in_place(served.killed().await).await;
    served.post("/v1/calls", call("third-3")).await;
    let mut browser = Browser::start(&served).await;
    let seen = browser
        .run(
            "const titles = {};
             for (const id of ['second-2', 'third-3']) {
               const page = await open(`/calls/${id}`, { javaScriptEnabled: false });
               await page.click('[data-testid=first-call]'); titles[id] = { at: page.url(), text: await page.innerText('main') };
             }
             return titles;",
        )
        .await;
    browser.close().await;
    for id in ["second-2", "third-3"] {
        let text = |name: &str| seen[id][name].as_str().unwrap_or_default().to_owned();
        assert!(text("at").ends_with("/calls/first-1"), "{seen}");
        assert!(text("text").contains("Answered"), "{seen}");
    }
}

#[tokio::test]
async fn the_list_of_calls_follows_new_ones_and_keeps_its_filter() {
    let served = Served::with_config(SET).await;
    let mut browser = Browser::start(&served).await;
    browser.run("state.page = await open('/calls?tool=weather'); await until('live', () => state.page.locator('[data-state=live]').count())").await;
    served.call("weather", json!({"city": "Oslo"})).await;
    served.call("math", json!({"expression": "1 + 1"})).await;
    served.call("weather", json!({"city": "Bergen"})).await;
    browser.run("await until('two rows', async () => (await state.page.locator('#calls tbody tr').count()) === 2)").await;
    browser.no_complaints().await;
    browser.close().await;
}

#[tokio::test]
async fn changes_of_another_server_do_not_mark_the_chart_of_a_tool() {
    let served = seeded().await;
    super::calendar_is_down(&served).await;
    let kinds = async |path: &str| -> Vec<String> {
        let trends = served.get(path).await.json();
        let marks = trends["marks"].as_array().expect("a list").iter();
        marks
            .map(|mark| mark["text"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    until("the server's end is marked", async || {
        let all = kinds("/v1/trends").await;
        all.iter()
            .any(|text| text.starts_with("calendar"))
            .then_some(())
    })
    .await;
    let own = kinds("/v1/trends?tool=weather").await;
    assert!(own.iter().any(|text| text.contains("started")), "{own:?}");
    assert!(!own.iter().any(|text| text.contains("calendar")), "{own:?}");
}
