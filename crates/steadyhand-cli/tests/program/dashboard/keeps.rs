//! What people do on a page stays while the page changes under them.

use serde_json::json;

use super::{Browser, SET, seed};
use crate::serve::Served;

#[tokio::test]
async fn an_update_keeps_focus_scroll_what_is_typed_and_what_is_open() {
    let served = Served::with_config(SET).await;
    for _ in 0..6 {
        seed(&served).await;
    }
    let mut browser = Browser::start(&served).await;
    browser
        .run(
            r#"const page = state.page = await open('/tools/weather', { viewport: { width: 900, height: 500 } });
             await until('live', () => page.locator('[data-state=live]').count());
             await page.fill('[id="arg:/city"]', 'Tromsø');
             await page.click('text=JSON Schema of its arguments');
             await page.click('text=Edit as JSON');
             await page.focus('#json'); await page.keyboard.type('{"cit');
             await page.evaluate(() => { document.querySelector('pre').scrollTop = 7; window.scrollTo(0, 333); });
             state.before = await page.innerText('.figures');"#,
        )
        .await;
    served.call("weather", json!({"city": "Oslo"})).await;
    let seen = browser
        .run(
            r#"const page = state.page;
             await until('it came', async () => (await page.innerText('.figures')) !== state.before);
             const y = await page.evaluate(() => window.scrollY);
             await page.keyboard.type('y"');
             return { city: await page.inputValue('[id="arg:/city"]'), json: await page.inputValue('#json'),
               focus: await page.evaluate(() => document.activeElement.id), open: await page.locator('details[open]').count(),
               y };"#,
        )
        .await;
    assert_eq!(seen["city"], "Tromsø");
    assert_eq!(
        (&seen["json"], &seen["focus"], &seen["open"]),
        (&json!("{\"city\""), &json!("json"), &json!(2)),
        "{seen}"
    );
    assert_eq!(seen["y"], 333);
    // In a list that grows at its top, the row that has the focus keeps it.
    browser
        .run(
            "const page = state.page; await page.goto(url + '/calls');
             await until('live', () => page.locator('[data-state=live]').count());
             for (let i = 0; i < 5; i++) await page.keyboard.press('j');
             state.row = await page.evaluate(() => document.activeElement.closest('tr').id);
             state.first = await page.getAttribute('#calls tbody tr', 'id');",
        )
        .await;
    served.call("weather", json!({"city": "Oslo"})).await;
    let row = browser
        .run(
            "const page = state.page;
             await until('it came', async () => (await page.getAttribute('#calls tbody tr', 'id')) !== state.first);
             return [state.row, await page.evaluate(() => document.activeElement.closest('tr')?.id)];",
        )
        .await;
    assert_eq!(row[0], row[1]);
    browser.no_complaints().await;
    browser.close().await;
}

#[tokio::test]
async fn keys_lead_through_the_pages() {
    let served = Served::with_config(SET).await;
    seed(&served).await;
    let mut browser = Browser::start(&served).await;
    let seen = browser
        .run(
            "const page = await open('/'); const at = [];
             for (const key of ['c', 't', 's', 'a', 'l', 'v', 'r', 'f', 'o']) {
               await Promise.all([page.waitForNavigation(), page.keyboard.press('g').then(() => page.keyboard.press(key))]);
               at.push(new URL(page.url()).pathname);
             }
             await page.keyboard.press('?'); at.push(await page.locator('dialog[open]').count()); await page.keyboard.press('Escape');
             await page.goto(url + '/calls'); await page.keyboard.press('/'); at.push(await page.evaluate(() => document.activeElement.id));
             await page.keyboard.type('g?'); at.push(await page.inputValue('#q'));
             await page.evaluate(() => document.activeElement.blur());
             await page.keyboard.press('j'); await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
             at.push(new URL(page.url()).pathname.split('/')[1]);
             return at;",
        )
        .await;
    assert_eq!(
        seen,
        json!([
            "/calls",
            "/tools",
            "/servers",
            "/approvals",
            "/alerts",
            "/conversations",
            "/trends",
            "/config",
            "/",
            1,
            "q",
            "g?",
            "calls"
        ])
    );
    browser.no_complaints().await;
    browser.close().await;
}
