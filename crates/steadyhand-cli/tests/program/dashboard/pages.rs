//! Every page: small, complete, usable by everyone, in both colours and on a phone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Browser, all_pages, calendar_is_down, seeded, slow_call};
use crate::serve::until;

/// What axe found, as a table in `target/axe-report.md`.
#[derive(Default)]
struct Report {
    version: String,
    rows: BTreeMap<String, Row>,
}

#[derive(Default)]
struct Row {
    /// Violations by colour.
    violations: BTreeMap<String, usize>,
    kept: BTreeSet<u64>,
    /// Rules that only a person can judge here.
    unclear: BTreeSet<String>,
}

impl Report {
    fn add(&mut self, path: &str, scheme: &str, found: &Value) {
        self.version = found["version"].as_str().unwrap_or_default().to_owned();
        // Calls and conversations have names that are others each time.
        let path = match path.rsplit_once('/') {
            Some(("/calls", id)) if id != "nobody" => "/calls/{id}",
            Some(("/conversations", _)) => "/conversations/{id}",
            _ => path,
        };
        let row = self.rows.entry(path.to_owned()).or_default();
        let violations = found["violations"].as_array().map_or(0, Vec::len);
        *row.violations.entry(scheme.to_owned()).or_default() += violations;
        row.kept.extend(found["kept"].as_u64());
        let unclear = found["unclear"].as_array().into_iter().flatten();
        row.unclear
            .extend(unclear.filter_map(Value::as_str).map(str::to_owned));
    }

    fn write(&self) {
        let mut table = format!(
            "axe-core {}, its rules for WCAG 2.2 A and AA and its best practices:\n\n| page | violations, light | violations, dark | rules kept | for a person to judge |\n|---|---|---|---|---|\n",
            self.version
        );
        for (path, row) in &self.rows {
            let of = |scheme: &str| row.violations.get(scheme).copied().unwrap_or_default();
            let (fewest, most) = (row.kept.first(), row.kept.last());
            let (fewest, most) = (fewest.unwrap_or(&0), most.unwrap_or(&0));
            let kept = match fewest == most {
                true => most.to_string(),
                false => format!("{fewest} to {most}"),
            };
            let unclear: Vec<&str> = row.unclear.iter().map(String::as_str).collect();
            table.push_str(&format!(
                "| `{path}` | {} | {} | {kept} | {} |\n",
                of("light"),
                of("dark"),
                unclear.join(", ")
            ));
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/axe-report.md");
        std::fs::write(path, table).expect("target is there");
    }
}

#[tokio::test]
async fn r13_axe_finds_nothing_on_any_page_in_either_colour_and_the_console_is_silent() {
    let served = seeded().await;
    calendar_is_down(&served).await;
    let running = slow_call(&served).await;
    let mut pages = all_pages(&served).await;
    pages.push(format!("/calls/{running}"));
    let mut browser = Browser::start(&served).await;
    let mut violations = Vec::new();
    let mut report = Report::default();
    for scheme in ["light", "dark"] {
        for path in &pages {
            let found = browser
                .run(&format!(
                    "const page = state.{scheme} ??= await open(null, {{ colorScheme: '{scheme}' }});
                     await page.goto(url + {}, {{ waitUntil: 'load' }}); return await axeCounted(page);",
                    json!(path)
                ))
                .await;
            if found["violations"] != json!([]) {
                violations.push(format!("{path} in {scheme}: {}", found["violations"]));
            }
            report.add(path, scheme, &found);
        }
    }
    // What is shown in answer to a button: a question, and a form with mistakes.
    for scheme in ["light", "dark"] {
        let found = browser
            .run(&format!(
                r#"const page = state.{scheme};
                 await page.goto(url + '/calls?q=tool%3Aonce'); await page.click('text=Replay'); await page.waitForSelector('[data-testid=question]');
                 const question = await axe(page);
                 await page.goto(url + '/tools/home_lights'); await page.fill('[id="arg:/brightness"]', '400'); await page.click('text=Validate only');
                 await page.waitForSelector('[role=alert]');
                 return [...question, ...await axe(page)];"#
            ))
            .await;
        if found != json!([]) {
            violations.push(format!("what buttons answer in {scheme}: {found}"));
        }
    }
    report.write();
    assert_eq!(violations, Vec::<String>::new());
    let complaints = browser
        .run("return complaints.filter((text) => !text.includes('404') && !text.includes('400') && !text.includes('422'))")
        .await;
    assert_eq!(complaints, json!([]));
    browser.close().await;
}

#[tokio::test]
async fn no_page_is_over_60_kb_and_the_first_one_with_its_files_is_not_either() {
    let served = seeded().await;
    for path in all_pages(&served).await {
        let reply = served.get(&path).await;
        assert!(
            reply.text.len() < 60 * 1024,
            "{path}: {} bytes",
            reply.text.len()
        );
    }
    let mut browser = Browser::start(&served).await;
    let sum = browser
        .run(
            "const page = await open(); let sum = 0;
             page.on('response', async (answer) => { const size = await answer.request().sizes().catch(() => null); sum += size?.responseBodySize ?? 0; });
             await page.goto(url + '/', { waitUntil: 'load' }); await page.waitForTimeout(500); return sum;",
        )
        .await;
    assert!(
        sum.as_u64() > Some(5_000) && sum.as_u64() < Some(60 * 1024),
        "{sum}"
    );
    browser.close().await;
}

#[test]
fn scripts_are_few_short_typed_and_ours() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../steadyhand-dashboard/src/assets"
    );
    let files = std::fs::read_dir(folder).expect("a folder").flatten();
    let scripts: Vec<_> = files
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "js"))
        .collect();
    assert!((1..=6).contains(&scripts.len()), "{scripts:?}");
    for path in scripts {
        let text = std::fs::read_to_string(&path).expect("a text");
        let lines = text.lines().count();
        assert!(lines <= 200, "{}: {lines} lines", path.display());
        // ./test runs tsc over them.
        assert!(text.contains("// @ts-check"), "{}", path.display());
        for foreign in ["eval(", "innerHTML", "http://", "https://"] {
            assert!(!text.contains(foreign), "{foreign} in {}", path.display());
        }
    }
}

#[tokio::test]
async fn on_a_phone_nothing_is_wider_than_the_screen() {
    let served = seeded().await;
    calendar_is_down(&served).await;
    let mut browser = Browser::start(&served).await;
    for path in all_pages(&served).await {
        let seen = browser
            .run(&format!(
                "const page = state.page ??= await open(null, {{ viewport: {{ width: 390, height: 844 }}, hasTouch: true }});
                 await page.goto(url + {}, {{ waitUntil: 'load' }});
                 return await page.evaluate(() => document.documentElement.scrollWidth);",
                json!(path)
            ))
            .await;
        assert!(seen.as_u64() <= Some(390), "{path}: {seen}");
    }
    browser.close().await;
}

#[tokio::test]
async fn r13_trends_show_an_hour_a_day_and_a_week() {
    let served = seeded().await;
    let mut browser = Browser::start(&served).await;
    let seen = browser
        .run(
            "const page = await open('/trends'); const seen = {};
             for (const name of ['Hour', 'Day', 'Week']) {
               await page.click(`nav >> text=${name}`);
               seen[name] = { figures: await page.innerText('.figures'), charts: await page.locator('.chart svg').evaluateAll((all) => all.map((one) => one.getAttribute('aria-label'))),
                 columns: await page.locator('#chart-calls path.col').evaluateAll((all) => all.map((one) => one.getAttribute('d').length)) };
             }
             return seen;",
        )
        .await;
    for name in ["Hour", "Day", "Week"] {
        let labels: Vec<&str> = seen[name]["charts"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        for words in [
            "Calls: 13 calls, 4 of the 10 that ran failed (40 %), 3 refused",
            "Error rate:",
            "Time: p50",
            "Retries and breaker trips: 5 retries, 1 trip",
        ] {
            assert!(
                labels.iter().any(|label| label.starts_with(words)),
                "{words} in {labels:?}"
            );
        }
        assert!(seen[name]["columns"][0].as_u64() > Some(10), "{seen}");
    }
    browser.no_complaints().await;
    browser.close().await;
}

#[tokio::test]
async fn what_a_page_shows_is_what_rest_answers() {
    let served = seeded().await;
    let mut browser = Browser::start(&served).await;
    // What is sorted by trouble may be in another order a moment later.
    until("the page has the tools that REST has", async || {
        let overview = served.get("/v1/overview").await.json();
        let tools = overview["tools"].as_array().expect("a list").iter();
        let rest: Vec<&str> = tools.filter_map(|tool| tool["name"].as_str()).collect();
        let shown = browser
            .run("const page = await open('/tools'); return await page.locator('[data-testid=tool-row]').evaluateAll((all) => all.map((one) => one.dataset.tool))")
            .await;
        (!rest.is_empty() && shown == json!(rest)).then_some(())
    })
    .await;
    let calls = served.get("/v1/calls?state=failed").await.json();
    let keys: Vec<String> = calls["calls"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|call| format!("call-{}", call["key"].as_str().expect("a key")))
        .collect();
    let shown = browser
        .run("const page = await open('/calls?state=failed'); return await page.locator('#calls tbody tr').evaluateAll((all) => all.map((one) => one.id))")
        .await;
    assert_eq!(shown, json!(keys));
    browser.close().await;
}
