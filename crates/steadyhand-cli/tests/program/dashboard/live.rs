//! One stream per page: it tells what changes, comes back after a restart, and leaves room for other tabs.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Browser, SET, seeded};
use crate::serve::{Served, request};

#[tokio::test]
async fn r13_a_page_shows_a_call_as_it_begins_and_ends() {
    let served = Served::with_config(SET).await;
    let mut browser = Browser::start(&served).await;
    browser.run("state.page = await open('/'); await until('live', () => state.page.locator('[data-state=live]').count())").await;
    let id = super::slow_call(&served).await;
    browser
        .run("const page = state.page;
              await until('it runs', async () => (await page.innerText('[data-testid=in-flight]')) === '1');
              const text = async () => (await page.innerText('#lane-slow_report .now'));
              const first = await text(); await until('its clock runs', async () => (await text()) !== first)")
        .await;
    assert_eq!(served.delete(&format!("/v1/calls/{id}")).await.status, 200);
    browser.run("const page = state.page; await until('it is over', async () => (await page.locator('#recent [data-status=cancelled]').count()) === 1)").await;
    browser.no_complaints().await;
    browser.close().await;
}

#[tokio::test]
async fn after_a_restart_the_page_comes_back_by_itself() {
    let served = seeded().await;
    let address = served.address.to_string();
    let mut browser = Browser::start(&served).await;
    browser.run("state.page = await open('/'); await until('live', () => state.page.locator('[data-state=live]').count())").await;
    let workplace = served.killed().await;
    browser
        .run("await until('lost', () => state.page.locator('[data-state=lost]').count())")
        .await;
    let served = Served::listening(workplace, &address).await;
    served.call("math", json!({"expression": "41 + 1"})).await;
    browser
        .run("const page = state.page;
              await until('live again', () => page.locator('[data-state=live]').count());
              await until('what happened since', async () => (await page.innerText('#recent tbody tr')).includes('math'));
              await until('the restart is marked', async () => (await page.innerText('[data-testid=marks]')).includes('started'))")
        .await;
    browser.close().await;
}

#[tokio::test]
async fn nine_tabs_at_once_are_all_kept_fresh() {
    let served = Served::with_config(SET).await;
    let mut browser = Browser::start(&served).await;
    browser
        .run(
            "const first = await open('/'); state.pages = [first];
             for (let i = 1; i < 9; i++) { const page = await first.context().newPage(); watch(page); await page.goto(url + '/'); state.pages.push(page); }
             for (const page of state.pages) await until('live', () => page.locator('[data-state=live]').count());",
        )
        .await;
    served.call("weather", json!({"city": "Oslo"})).await;
    browser
        .run("for (const page of state.pages) await until('it came', async () => (await page.locator('#recent [data-status=ok]').count()) === 1)")
        .await;
    // A tenth page still loads, and a hidden one gives its stream back.
    browser
        .run("const page = await state.pages[0].context().newPage(); await page.goto(url + '/tools'); await page.waitForSelector('#tools');
              const one = state.pages[1];
              await one.evaluate(() => { Object.defineProperty(document, 'hidden', { value: true, configurable: true }); document.dispatchEvent(new Event('visibilitychange')); });
              await until('paused', () => one.locator('[data-state=paused]').count());
              await one.evaluate(() => { Object.defineProperty(document, 'hidden', { value: false, configurable: true }); document.dispatchEvent(new Event('visibilitychange')); });
              await until('live', () => one.locator('[data-state=live]').count());")
        .await;
    browser.no_complaints().await;
    browser.close().await;
}

/// What comes over a stream of a page until `is_enough`, as it is without compression.
async fn read_stream(served: &Served, path: &str, is_enough: impl Fn(&str) -> bool) -> String {
    let mut stream = served.connect().await;
    let head = request(
        served.address,
        "GET",
        path,
        &[("accept", "text/event-stream")],
        "",
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut bytes = Vec::new();
    crate::serve::until("enough of the stream", async || {
        let mut piece = vec![0; 64 * 1024];
        let read = tokio::time::timeout(
            std::time::Duration::from_millis(200),
            stream.read(&mut piece),
        )
        .await;
        if let Ok(Ok(count)) = read {
            bytes.extend_from_slice(&piece[..count]);
        }
        is_enough(&String::from_utf8_lossy(&bytes)).then_some(())
    })
    .await;
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn a_stream_sends_nothing_that_the_page_has_and_everything_after_a_gap() {
    let served = Served::with_config("[tools.echo]\nkind = \"builtin\"\nuse = \"echo\"\n").await;
    served.call("echo", json!({"text": "one"})).await;
    // The history writes the call a moment later, which is a change of the page, too.
    let page = crate::serve::until("the call is in the history", async || {
        let page = served.get("/tools/echo").await.text;
        page.contains("<dt>Calls, 1 h</dt><dd>1<").then_some(page)
    })
    .await;
    let version = page
        .split("data-version=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let version = version.expect("the page says what it has");
    // The page is what it was: a greeting, and no page.
    let same = read_stream(&served, &format!("/tools/echo?_known={version}"), |text| {
        text.contains("event: hello")
    })
    .await;
    assert!(!same.contains("event: page"), "{same}");
    // Something happened since: it comes at once, whatever the id it comes back with.
    served.call("echo", json!({"text": "two"})).await;
    for known in [version, "gone", ""] {
        let fresh = read_stream(&served, &format!("/tools/echo?_known={known}"), |text| {
            text.contains("event: page")
        })
        .await;
        assert!(fresh.contains("\ndata: "), "{fresh}");
    }
}
