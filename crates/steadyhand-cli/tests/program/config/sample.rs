//! The sample of everything (docs/sample), run as a user would: each kind listed, shown and called.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::http::server::{Act, Server, answer};
use crate::support::{Workplace, parts};

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sample")
}

fn copy(from: &Path, workplace: &Workplace, below: &str) {
    for entry in std::fs::read_dir(from).expect("the sample") {
        let path = entry.expect("a file of the sample").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        match path.is_dir() {
            true => copy(&path, workplace, &format!("{below}{name}/")),
            false => {
                let text = std::fs::read_to_string(&path).expect("a text");
                workplace.write(&format!("{below}{name}"), &text);
            }
        }
    }
}

/// The sample with the services it talks to: one server on loopback plays all of them.
async fn workplace(server: &Server) -> Workplace {
    let mut workplace = Workplace::new();
    copy(&sample(), &workplace, "");
    workplace.write("hass_token", "long-lived-access-token\n");
    workplace
        .set("HASS_URL", &server.url(""))
        .set("SEARXNG_URL", &server.url(""))
        .set("PETSTORE_URL", &server.url("/api"))
        .set("PETSTORE_KEY", "pet-key-123456");
    workplace
}

async fn everything() -> Server {
    let body = r#"{"results":[{"title":"Rain","url":"http://example.org/","content":"It rains"}],"pets":["Rex"]}"#;
    Server::start(vec![Act::Send(answer(
        200,
        &[("content-type", "application/json")],
        body,
    ))])
    .await
}

/// The program runs on a thread that may wait: the server answers meanwhile.
async fn run(
    workplace: &std::sync::Arc<Workplace>,
    command: &'static str,
) -> (i32, String, String) {
    let workplace = std::sync::Arc::clone(workplace);
    let ran = tokio::task::spawn_blocking(move || parts(&workplace.run(command)));
    ran.await.expect("the program ran")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_the_sample_is_listed_shown_and_called() {
    let server = everything().await;
    let workplace = std::sync::Arc::new(workplace(&server).await);
    let (code, stdout, stderr) = run(&workplace, "config check").await;
    assert_eq!(code, 0, "{stdout}{stderr}");

    let (_, stdout, stderr) = run(&workplace, "tools list --json").await;
    let listed: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stderr}"));
    let tools = listed["tools"].as_array().expect("tools");
    let names: Vec<(&str, &str)> = tools
        .iter()
        .map(|tool| {
            (
                tool["name"].as_str().expect("a name"),
                tool["kind"].as_str().expect("a kind"),
            )
        })
        .collect();
    let expected = [
        ("get_weather", "mock"),
        ("calculator", "builtin"),
        ("web_search", "builtin"),
        ("volume", "builtin"),
        ("lookup_order", "internal"),
        ("search_documents", "internal"),
        ("home_lights", "http"),
        ("home_scene", "http"),
        ("pet_listPets", "openapi"),
        ("pet_addPet", "openapi"),
        ("pet_showPet", "openapi"),
        ("list_files", "command"),
        ("flex_weather", "mock"),
        ("generate_uuid", "builtin"),
    ];
    assert_eq!(names, expected);
    assert!(
        tools.iter().all(|tool| tool["available"] == true),
        "{listed:#}"
    );

    for (command, code, part) in [
        ("call get_weather city=Oslo", 0, "rain"),
        ("call calculator expression=2*3", 0, "6"),
        ("call web_search query=rain", 0, "It rains"),
        ("call volume action=get", 0, "40"),
        ("call lookup_order id=7", 0, "unknown"),
        ("call search_documents query=parental", 0, "Six months"),
        (
            "call home_lights area=kitchen state=on brightness=60",
            0,
            "Rex",
        ),
        ("call home_scene name=evening", 0, "Rex"),
        ("call pet_listPets limit=3", 0, "Rex"),
        ("call pet_showPet petId=a/b", 0, "Rex"),
        ("call pet_addPet name=Tom", 7, ""),
        ("call pet_addPet name=Tom --approve pet_addPet", 0, "Rex"),
        ("call list_files folder=documents", 0, "coffee.md"),
        ("call flex_weather location=Oslo", 0, "22"),
        ("call generate_uuid", 0, "-"),
    ] {
        let (ended, stdout, stderr) = run(&workplace, command).await;
        assert_eq!(ended, code, "{command}: {stdout}{stderr}");
        assert!(stdout.contains(part), "{command}: {stdout}{stderr}");
        let tool = command.split(' ').nth(1).expect("a tool");
        let show: &'static str = Box::leak(format!("tools show {tool}").into_boxed_str());
        let (ended, stdout, _) = run(&workplace, show).await;
        assert_eq!((ended, stdout.contains(tool)), (0, true), "{tool}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_services_of_the_sample_receive_is_what_was_meant() {
    let server = everything().await;
    let workplace = std::sync::Arc::new(workplace(&server).await);
    run(
        &workplace,
        "call home_lights area=kitchen state=on brightness=60",
    )
    .await;
    run(&workplace, "call home_lights area=../etc state=off").await;
    run(&workplace, "call pet_showPet petId=a/b").await;
    let seen = server.seen();
    assert_eq!(seen[0].line(), "POST /api/services/light/turn_on HTTP/1.1");
    assert_eq!(
        seen[0].header("authorization"),
        Some("Bearer long-lived-access-token")
    );
    assert_eq!(seen[0].body, r#"{"area_id":"kitchen","brightness_pct":60}"#);
    assert_eq!(seen[1].body, r#"{"area_id":"../etc"}"#);
    assert_eq!(seen[2].line(), "GET /api/pets/a%2Fb HTTP/1.1");
    assert_eq!(seen[2].header("x-api-key"), Some("pet-key-123456"));
}

#[test]
fn without_its_variables_only_the_tools_that_need_them_are_disabled() {
    let workplace = Workplace::new();
    copy(&sample(), &workplace, "");
    let listed = workplace.json("tools list --json");
    let disabled: Vec<&str> = listed["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .filter(|tool| tool["available"] == false)
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(disabled, ["web_search", "home_lights", "home_scene"]);
    let problems = listed["problems"].as_array().expect("problems");
    assert!(
        problems.iter().any(|problem| {
            problem["name"] == "petstore" && problem["reason"].to_string().contains("PETSTORE_")
        }),
        "{problems:?}"
    );
    let (code, _, stderr) = parts(&workplace.run("call home_scene name=x"));
    assert_eq!(code, 3);
    assert!(stderr.contains("HASS_URL"), "{stderr}");
}
