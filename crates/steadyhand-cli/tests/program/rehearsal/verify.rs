//! `steadyhand verify`: which tools are safe, and that finding out does no harm.

use serde_json::{Value, json};

use super::Shop;
use crate::support::{Workplace, parts};

const GOOD: &str = r#"
[tools.weather]
kind = "mock"
description = "Current weather for a city"
input = { type = "object", required = ["city"], properties = { city = { type = "string", examples = ["Trondheim"] }, days = { type = "integer", minimum = 1, maximum = 14 } } }
mock_response = { sky = "rain" }
examples = [{ city = "Oslo" }, { city = "Bergen", days = 3 }]
"#;

const BAD: &str = r#"
[tools.broken]
kind = "mock"
description = "Cannot be reached"
input = { type = "object", required = ["city"], properties = { city = { type = "string" } } }
answers = [{ fail = "network" }]
retry = { attempts = 1 }
examples = [{ city = "Oslo" }]
"#;

fn report(workplace: &Workplace, arguments: &str) -> (i32, Value) {
    let (code, stdout, stderr) = parts(&workplace.run(arguments));
    let report = serde_json::from_str(&stdout);
    (
        code,
        report.unwrap_or_else(|error| panic!("no report ({error}): {stderr}")),
    )
}

fn of<'a>(report: &'a Value, tool: &str) -> &'a Value {
    let tools = report["tools"].as_array().expect("tools");
    let found = tools.iter().find(|it| it["name"] == tool);
    found.unwrap_or_else(|| panic!("no {tool} in {report}"))
}

#[test]
fn one_bad_tool_is_named_with_what_to_do_and_the_others_are_safe() {
    let workplace = Workplace::with_config(&format!("{GOOD}{BAD}"));
    let (code, report) = report(&workplace, "verify --json");
    assert_eq!(code, 5, "{report}");
    assert_eq!(report["safe"], false);
    let weather = of(&report, "weather");
    assert_eq!(weather["safe"], true, "{weather}");
    let probes = weather["probes"].as_array().expect("probes");
    let numbers: Vec<u64> = probes
        .iter()
        .filter_map(|it| it["number"].as_u64())
        .collect();
    assert_eq!(numbers, (1..=12).collect::<Vec<_>>());
    assert!(
        probes.iter().all(|it| it["verdict"] == "passed"),
        "{weather}"
    );
    // Those of the configuration, and the one that its schema makes.
    let went = weather["examples"].as_array().expect("examples").iter();
    assert_eq!(
        went.filter(|it| it["verdict"] == "passed").count(),
        3,
        "{weather}"
    );
    let broken = of(&report, "broken");
    assert_eq!(broken["safe"], false);
    let finding = &broken["findings"][0];
    assert_eq!(
        (&finding["level"], &finding["about"]),
        (&json!("fail"), &json!("example 1"))
    );
    let said = finding["message"].as_str().expect("words");
    assert!(
        said.contains("NETWORK_ERROR") && said.contains("Oslo"),
        "{said}"
    );

    let (code, stdout, stderr) = parts(&workplace.run("verify"));
    assert_eq!(code, 5, "{stderr}");
    assert!(
        stdout.contains("weather\tsafe\t12 of 12\t3 of 3\treads\t30s of 1m"),
        "{stdout}"
    );
    assert!(
        stdout.contains("broken\tnot safe\t12 of 12\t0 of 1"),
        "{stdout}"
    );
    assert!(stdout.contains("✗ broken, example 1: "), "{stdout}");
    assert!(
        stdout.contains("-> steadyhand call broken --args '{\"city\":\"Oslo\"}'"),
        "{stdout}"
    );
    assert!(stdout.contains("1 of 2 tools safe."), "{stdout}");
    assert!(stderr.contains("broken is not safe yet"), "{stderr}");
    let (code, stdout, stderr) = parts(&workplace.run("verify weather"));
    assert_eq!(code, 0, "{stdout}{stderr}");
}

#[tokio::test]
async fn a_tool_that_may_act_is_run_only_when_it_is_named() {
    let shop = Shop::open().await;
    let config = shop
        .config()
        .replace("url =", "method = \"POST\"\nexamples = [{ id = 3 }]\nurl =");
    let asks = "[tools.door]\nkind = \"mock\"\ndescription = \"Unlocks the door\"\nmock_response = \"open\"\napproval = \"always\"\nexamples = [{}]\n";
    let mut workplace = Workplace::with_config(&format!("{config}{asks}"));
    workplace.set("SHOP_KEY", super::KEY);
    let run = |arguments: &'static str| {
        let workplace = workplace.shared();
        tokio::task::spawn_blocking(move || report(&workplace, arguments))
    };
    let (code, report) = run("verify --json").await.expect("it ran");
    assert_eq!((code, shop.asked()), (0, 0), "{report}");
    let skipped = |tool: &str| {
        let example = &of(&report, tool)["examples"][0];
        assert_eq!(example["verdict"], "skipped", "{example}");
        example["why"].as_str().expect("words").to_owned()
    };
    assert!(skipped("order").contains("--run-unsafe order runs it"));
    assert!(skipped("door").contains("a person must say yes"));

    let (code, report) = run("verify --json --run-unsafe order")
        .await
        .expect("it ran");
    assert_eq!(
        (code, shop.asked()),
        (5, 1),
        "the shop's first answer is a 500: {report}"
    );
    let (code, report) = run("verify --json --run-unsafe order")
        .await
        .expect("it ran");
    assert_eq!((code, shop.asked()), (0, 2), "{report}");
    shop.close().await;
}

#[test]
fn an_example_that_does_not_fit_and_a_missing_key_are_failures() {
    let wrong = GOOD.replace(
        "examples = [{ city = \"Oslo\" }, ",
        "idempotent = false\nexamples = [{ town = \"Oslo\" }, ",
    );
    let config = format!(
        "{wrong}\n[tools.keyed]\nkind = \"http\"\ndescription = \"Needs a key\"\nurl = \"http://127.0.0.1:9/\"\nheaders = {{ Authorization = \"${{env:NO_SUCH_KEY}}\" }}\n"
    );
    let workplace = Workplace::with_config(&config);
    let (code, report) = report(&workplace, "verify --json");
    assert_eq!(code, 5);
    let about = |tool: &str| of(&report, tool)["findings"][0]["about"].clone();
    assert_eq!(about("weather"), "example 1", "{report}");
    assert_eq!(about("keyed"), "availability", "{report}");
}

#[test]
fn a_loose_schema_skips_what_it_cannot_say_and_is_noted() {
    let workplace = Workplace::with_config(
        "[tools.loose]\nkind = \"mock\"\ndescription = \"Takes anything\"\nmock_response = 1\nlimits = { concurrency = 1 }\nbreaker = { enabled = false }\n",
    );
    let (code, report) = report(&workplace, "verify --json");
    assert_eq!(code, 0, "{report}");
    let loose = of(&report, "loose");
    let skipped: Vec<u64> = loose["probes"]
        .as_array()
        .expect("probes")
        .iter()
        .filter(|it| it["verdict"] == "skipped")
        .filter_map(|it| it["number"].as_u64())
        .collect();
    assert_eq!(skipped, [2, 3, 9], "{loose}");
    let notes: Vec<&str> = loose["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .filter_map(|it| it["about"].as_str())
        .collect();
    assert_eq!(notes, ["schema", "breaker"], "{loose}");
}

#[test]
fn a_name_that_no_tool_has_is_said() {
    let (code, _, stderr) = parts(&Workplace::with_config(GOOD).run("verify wether"));
    assert_eq!(code, 5, "{stderr}");
    assert!(stderr.contains("Did you mean weather?"), "{stderr}");
}
