//! What tools, callers and servers say is shown, never obeyed.

use serde_json::json;

use super::{Browser, all_pages};
use crate::serve::Served;

/// Markup, scripts, our own attributes, ends of what they might stand in, and characters that hide or turn text around.
const ATTACK: &str = concat!(
    "<img src=x onerror=\"window.owned=1\"><script>window.owned=1</script></pre></td></section>",
    "<main id=main data-version=owned><a href=javascript:window.owned=1 data-key=replay data-keep>x</a>",
    "\n\ndata: owned\nevent: page\n\n' \" ` & \u{202e}gnp.exe\u{202c} \u{0}\u{1b}[31mred\u{7}\u{200b}\u{feff}\u{e0041}"
);

fn hostile_server() -> String {
    let said = ATTACK.replace('\u{0}', "");
    format!(
        "{}\n[mcp.evil]\ncommand = \"sh\"\nargs = [\"-c\", {}]\nstart = {{ timeout = \"5s\", restarts = 1 }}\n",
        hostile_tool(),
        json!(format!(
            "cat >&2 <<'END'\n{said}\nEND\nhead -c 1000000 /dev/zero | tr '\\0' 'x' >&2; echo >&2; exit 1"
        ))
    )
}

fn hostile_tool() -> String {
    let schema = json!({"type": "object", "properties": {
        "<b>bold</b>": {"type": "string", "description": ATTACK.replace('\u{0}', ""), "enum": ["</select><script>window.owned=1</script>", "ok"]},
        "text": {"type": "string"}}});
    format!(
        "[tools.evil]\nkind = \"command\"\ncommand = [\"cat\", \"answer.txt\"]\ndescription = {}\ninput = {}\nidempotent = true\n",
        toml_text(&ATTACK.replace('\u{0}', "")),
        toml_value(&schema)
    )
}

fn toml_text(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn toml_value(value: &serde_json::Value) -> String {
    toml::Value::try_from(value)
        .expect("it has no null")
        .to_string()
}

#[tokio::test]
async fn hostile_texts_of_tools_callers_and_servers_are_inert_on_every_page() {
    let place = super::place(&hostile_server());
    place.write("answer.txt", &format!("{ATTACK}{}", "y".repeat(1_000_000)));
    let served = Served::in_place(place).await;
    served.call("evil", json!({"text": ATTACK})).await;
    served
        .call("evil", json!({"text": "z".repeat(1_000_000)}))
        .await;
    served.call(&ATTACK[..200], json!({"text": ATTACK})).await;
    let evil_id = json!({"name": "evil", "args": {"<b>bold</b>": ATTACK}, "id": &ATTACK[..200]});
    let headers = [("steadyhand-caller", "<script>window.owned=1</script>")];
    served
        .send("POST", "/v1/calls", &headers, &evil_id.to_string())
        .await;
    std::fs::remove_file(served.workplace.file("answer.txt")).expect("it was there");
    served.call("evil", json!({"text": "fails"})).await;
    crate::serve::until("the server is down", async || {
        let servers = served.get("/v1/servers").await.json();
        (servers["servers"][0]["status"] == "not running").then_some(())
    })
    .await;
    let mut pages = all_pages(&served).await;
    pages.retain(|page| {
        !page.contains("weather")
            && !page.contains("home")
            && !page.contains("calendar")
            && !page.ends_with("/math")
    });
    pages.extend(
        [
            "/tools/evil",
            "/servers/evil",
            "/calls?q=%3Cscript%3E",
            "/tools?q=%3Cscript%3Ewindow.owned%3D1",
            "/trends?tool=%3Cscript%3E",
        ]
        .map(str::to_owned),
    );
    let mut browser = Browser::start(&served).await;
    for path in &pages {
        let seen = browser
            .run(&format!(
                "const page = state.page ??= await open();
                 const answer = await page.goto(url + {}, {{ waitUntil: 'load' }});
                 return {{ owned: await page.evaluate(() => window.owned ?? null), mains: await page.locator('main').count(),
                   scripts: await page.evaluate(() => [...document.scripts].map((one) => one.src)), images: await page.locator('img').count(),
                   bytes: (await answer.body()).length, hidden: await page.evaluate(() => /[\\u202a-\\u202e\\u2066-\\u2069\\u200b\\ufeff\\u0000-\\u0008\\u001b]/.test(document.body.innerText)),
                   odd: await page.evaluate(() => [...document.querySelectorAll('[data-key=replay]')].filter((one) => one.tagName !== 'BUTTON').length),
                   wide: await page.evaluate(() => document.documentElement.scrollWidth - innerWidth) }}",
                json!(path)
            ))
            .await;
        assert_eq!(seen["owned"], json!(null), "{path}");
        assert_eq!(
            (&seen["mains"], &seen["images"], &seen["odd"]),
            (&json!(1), &json!(0), &json!(0)),
            "{path}: {seen}"
        );
        let scripts = seen["scripts"].as_array().expect("a list");
        assert!(
            scripts.len() == 3
                && scripts
                    .iter()
                    .all(|src| src.as_str().unwrap_or_default().contains("/assets/")),
            "{path}: {seen}"
        );
        assert!(seen["bytes"].as_u64() < Some(60 * 1024), "{path}: {seen}");
        assert_eq!(seen["hidden"], false, "{path}");
        assert!(
            seen["wide"].as_i64() <= Some(0),
            "{path}: wider than the window: {seen}"
        );
    }
    // The same over a stream, which has its own way to end a message.
    let live = browser
        .run("await state.page.goto(url + '/'); await until('live', () => state.page.locator('[data-state=live]').count()); return null")
        .await;
    assert_eq!(live, json!(null));
    served.call("evil", json!({"text": ATTACK})).await;
    served.call(&ATTACK[..200], json!({})).await;
    let seen = browser
        .run("const page = state.page; await until('it came', async () => (await page.locator('#recent tr').count()) >= 7);
              return { owned: await page.evaluate(() => window.owned ?? null), text: await page.innerText('main') }")
        .await;
    assert_eq!(seen["owned"], json!(null));
    assert!(!seen["text"].as_str().expect("a text").starts_with("owned"));
    // Pages that are not there answer 404, which the console tells; nothing else may be in it.
    let complaints = browser
        .run("return complaints.filter((text) => !text.includes('404'))")
        .await;
    assert_eq!(complaints, json!([]));
    browser.close().await;
}
