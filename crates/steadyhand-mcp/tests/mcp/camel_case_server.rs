//! SPEC V13, D5, D16: parameter names as a camelCase server wants them, seen at the server itself; and who says that one is missing.

use serde_json::{Value, json};
use steadyhand::Effect;
use steadyhand::FailureCode::{ToolExecutionError, ValidationError};
use steadyhand_mcp::{CamelCase, ServerSettings};

use crate::logs::Logs;
use crate::support::{Folder, Stage, failure, text};

const TOOL: &str = "control_zwave_device";

async fn zwave(change: impl FnOnce(&mut ServerSettings)) -> Stage {
    let folder = Folder::new();
    let mut settings = folder.hostile(&["camel"]);
    change(&mut settings);
    Stage::with(folder, settings).await
}

/// What reaches the server when this is called for.
async fn reaches(stage: &Stage, args: Value) -> Value {
    let outcome = stage.call(TOOL, args).await;
    serde_json::from_str(&text(&outcome)).expect("the arguments it got")
}

#[tokio::test]
async fn v13_the_mapping_for_control_zwave_device_ships_and_is_logged() {
    let logs = Logs::capture();
    let stage = zwave(|_| {}).await;
    let got = reaches(
        &stage,
        json!({"device_name": "Switch One", "command": "on"}),
    )
    .await;
    assert_eq!(got, json!({"deviceName": "Switch One", "action": "on"}));
    logs.assert_has(&["{device_name: ", "} → {deviceName: "]);
    stage.over().await;
}

#[tokio::test]
async fn v13_a_configured_mapping_is_applied() {
    let stage = zwave(|settings| {
        let pairs = [("apparatus", "deviceName"), ("verb", "action")];
        let pairs = pairs.map(|(from, to)| (from.to_owned(), to.to_owned()));
        settings.params.insert(TOOL.to_owned(), pairs.into());
    })
    .await;
    let got = reaches(&stage, json!({"apparatus": "Switch One", "verb": "on"})).await;
    assert_eq!(got, json!({"deviceName": "Switch One", "action": "on"}));
    stage.over().await;
}

#[tokio::test]
async fn v13_other_names_become_camel_case_and_names_without_underscore_stay() {
    let stage = zwave(|_| {}).await;
    let args =
        json!({"deviceName": "Dimmer", "action": "set", "level": 50, "new_parameter_name": 1});
    let got = reaches(&stage, args).await;
    let wanted =
        json!({"deviceName": "Dimmer", "action": "set", "level": 50, "newParameterName": 1});
    assert_eq!(got, wanted);
    stage.over().await;
}

#[tokio::test]
async fn v13_the_servers_own_error_comes_back_unchanged() {
    let stage = zwave(|_| {}).await;
    let outcome = stage
        .call(TOOL, json!({"device_name": "Broken One", "command": "on"}))
        .await;
    let words = "Device 'Broken One' does not answer";
    assert_eq!(failure(&outcome), (ToolExecutionError, Effect::Done, words));
    stage.over().await;
}

#[tokio::test]
async fn d16_a_field_that_the_schema_requires_is_missed_before_the_server_hears_of_the_call() {
    let stage = Stage::of(&["well"]).await;
    let outcome = stage.call("echo", json!({})).await;
    let (code, effect, message) = failure(&outcome);
    assert_eq!((code, effect), (ValidationError, Effect::None));
    assert!(message.contains("message"), "{message}");
    stage.assert_next_call_works().await;
    stage.over().await;
}

#[tokio::test]
async fn v13_d16_what_the_server_itself_misses_is_told_in_its_own_words() {
    let stage = zwave(|settings| {
        settings.camel_case = CamelCase::Off;
        settings.params.insert(TOOL.to_owned(), Default::default());
    })
    .await;
    let outcome = stage
        .call(TOOL, json!({"device_name": "Switch One", "command": "on"}))
        .await;
    let words = "Error: Missing required parameter: deviceName (got: device_name, command)";
    assert_eq!(failure(&outcome), (ToolExecutionError, Effect::Done, words));
    stage.over().await;
}
