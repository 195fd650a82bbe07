//! SPEC V13, D5: parameter names as the server wants them, from the command line to the server and back.

use serde_json::{Value, json};

use super::{Bench, hostile, npm};
use crate::support::parts;

/// What reached the server.
fn reached(bench: &Bench, words: &[&str]) -> (Value, String) {
    let (code, stdout, stderr) = parts(&bench.run_words(words));
    assert_eq!(code, 0, "{stderr}");
    (serde_json::from_str(&stdout).expect("arguments"), stderr)
}

const CALL: [&str; 4] = [
    "call",
    "zwave__control_zwave_device",
    "device_name=Switch One",
    "command=on",
];

#[test]
fn v13_the_mapping_for_control_zwave_device_ships_and_is_logged() {
    let bench = Bench::with(&hostile("zwave", "camel"));
    let words = [&CALL[..], &["-v"]].concat();
    let (got, stderr) = reached(&bench, &words);
    assert_eq!(got, json!({"deviceName": "Switch One", "action": "on"}));
    assert!(
        stderr
            .lines()
            .any(|line| line.contains("{device_name: ") && line.contains("} → {deviceName: ")),
        "{stderr}"
    );
}

#[test]
fn v13_a_configured_mapping_is_applied() {
    let config = hostile("zwave", "camel")
        + "[mcp.zwave.params.control_zwave_device]\ndevice_name = \"deviceName\"\ncommand = \"action\"\n";
    let bench = Bench::with(&config);
    let (got, _) = reached(&bench, &CALL);
    assert_eq!(got, json!({"deviceName": "Switch One", "action": "on"}));
    let config = hostile("zwave", "camel")
        + "[mcp.zwave.params.control_zwave_device]\nwhich = \"deviceName\"\nverb = \"action\"\n";
    let bench = Bench::with(&config);
    let words = [
        "call",
        "zwave__control_zwave_device",
        "which=Switch One",
        "verb=on",
    ];
    let (got, _) = reached(&bench, &words);
    assert_eq!(got, json!({"deviceName": "Switch One", "action": "on"}));
}

#[test]
fn v13_other_names_become_camel_case_and_names_without_underscore_stay() {
    let bench = Bench::with(&hostile("zwave", "camel"));
    let words = [
        "call",
        "zwave__control_zwave_device",
        "deviceName=Dimmer",
        "action=set",
        "level:=50",
        "new_parameter_name:=1",
    ];
    let (got, _) = reached(&bench, &words);
    let wanted =
        json!({"deviceName": "Dimmer", "action": "set", "level": 50, "newParameterName": 1});
    assert_eq!(got, wanted);
}

#[test]
fn v13_a_real_camel_case_server_refuses_what_is_not_normalised() {
    let bench = Bench::empty();
    bench.write("folder/note.txt", "hello world\n");
    let folder = bench.file("folder").display().to_string();
    let server = |name: &str| {
        format!(
            "[mcp.{name}]\ncommand = {:?}\nargs = [{folder:?}]\n",
            npm("filesystem")
        )
    };
    let config = server("plain") + "camel_case = \"off\"\n" + &server("mended");
    bench.write("steadyhand.toml", &config);
    let path = format!("path={folder}/note.txt");
    let edits = r#"edits:=[{"old_text":"hello","new_text":"good bye"}]"#;
    let call = |tool: &str| parts(&bench.run_words(&["call", tool, &path, edits]));
    let (code, _, stderr) = call("plain__edit_file");
    assert_ne!(code, 0, "without normalisation it is refused: {stderr}");
    assert_eq!(bench.text("folder/note.txt"), "hello world\n");
    let (code, _, stderr) = call("mended__edit_file");
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(bench.text("folder/note.txt"), "good bye world\n");
}

#[test]
fn d05_a_name_the_schema_declares_is_left_alone() {
    let config = hostile("one", "well") + "camel_case = \"auto\"\n";
    let bench = Bench::with(&config);
    // `echo` declares `delay_ms`.
    let words = ["call", "one__echo", "message=hi", "delay_ms=1"];
    let (code, stdout, stderr) = parts(&bench.run_words(&words));
    assert_eq!((code, stdout.as_str()), (0, "hi\n"), "{stderr}");
}

#[test]
fn v13_the_servers_own_error_comes_back_unchanged() {
    let own_words = |config: &str, device: &str| {
        let bench = Bench::with(&(hostile("zwave", "camel") + config));
        let device = format!("device_name={device}");
        let words = ["call", CALL[1], &device, "command=on", "--json"];
        let (code, stdout, stderr) = parts(&bench.run_words(&words));
        assert_eq!(code, 5, "{stderr}");
        let outcome: Value = serde_json::from_str(&stdout).expect("an outcome");
        assert_eq!(outcome["error"]["effect"], "done");
        outcome["error"]["message"]
            .as_str()
            .expect("words")
            .to_owned()
    };
    assert_eq!(
        own_words("", "Broken One"),
        "Device 'Broken One' does not answer"
    );
    let off = "camel_case = \"off\"\nparams.control_zwave_device = {}\n";
    assert_eq!(
        own_words(off, "Switch One"),
        "Error: Missing required parameter: deviceName (got: device_name, command)"
    );
}
