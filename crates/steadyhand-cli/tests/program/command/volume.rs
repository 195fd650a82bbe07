//! The builtin `volume`, with programs that only claim to make sound.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use steadyhand::{Call, Effect, FailureCode, ToolExecutor};
use steadyhand_runtime::source::builtin::volume;

use super::{context, executor, message, value};

/// They keep the level and the mute in two files beside them, and write down how they were called.
const COMMON: &str = r#"#!/bin/sh
cd "$(dirname "$0")" || exit 9
echo "$*" >> calls
level=$(cat level) muted=$(cat muted)
"#;

const WPCTL: &str = r#"
case "$1" in
get-volume)
  printf 'Volume: %d.%02d' $((level / 100)) $((level % 100))
  [ "$muted" = 1 ] && printf ' [MUTED]'
  echo ;;
set-volume) echo "${3%\%}" > level ;;
set-mute) echo "$3" > muted ;;
esac
"#;

const PACTL: &str = r#"
case "$1" in
get-sink-volume)
  echo "Volume: front-left: 29491 /  $level% / -20.81 dB,   front-right: 29491 /  $level% / -20.81 dB"
  echo "        balance 0.00" ;;
get-sink-mute) [ "$muted" = 1 ] && echo "Mute: yes" || echo "Mute: no" ;;
set-sink-volume) echo "${3%\%}" > level ;;
set-sink-mute) echo "$3" > muted ;;
esac
"#;

const AMIXER: &str = r#"
[ "$1" = set ] && case "$3" in
mute) echo 1 > muted ;;
unmute) echo 0 > muted ;;
*) echo "${3%\%}" > level ;;
esac
state=on; [ "$(cat muted)" = 1 ] && state=off
echo "Simple mixer control 'Master',0"
echo "  Limits: Playback 0 - 65536"
echo "  Front Left: Playback 29491 [$(cat level)%] [$state]"
"#;

const CUSTOM: &str = r#"
case "$1" in
get) echo "level $level"; [ "$muted" = 1 ] && echo muted; true ;;
set) echo "$2" > level ;;
mute) echo 1 > muted ;;
unmute) echo 0 > muted ;;
esac
"#;

fn fake(folder: &Path, name: &str, text: &str) -> String {
    let file = folder.join(name);
    fs::write(&file, format!("{COMMON}{text}")).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("set");
    fs::write(folder.join("level"), "45").expect("written");
    fs::write(folder.join("muted"), "0").expect("written");
    file.to_str().expect("a path").to_owned()
}

fn volume(folder: &Path, settings: Value) -> ToolExecutor {
    let settings = serde_json::from_value(settings).expect("settings");
    executor(volume::tool(&settings, &context(folder)).expect("a tool"))
}

async fn all_actions(tool: &ToolExecutor) {
    for (args, level, muted) in [
        (json!({"action": "get"}), 45, false),
        (json!({"action": "set", "level": 30}), 30, false),
        (json!({"action": "up"}), 35, false),
        (json!({"action": "up", "step": 100}), 100, false),
        (json!({"action": "down", "step": 20}), 80, false),
        (json!({"action": "mute"}), 80, true),
        (json!({"action": "unmute"}), 80, false),
        (json!({"action": "toggle"}), 80, true),
        (json!({"action": "toggle"}), 80, false),
        (json!({"action": "down", "step": 100}), 0, false),
    ] {
        let outcome = tool.execute(Call::new("volume", args.clone())).await;
        assert_eq!(
            value(&outcome),
            &json!({"level": level, "muted": muted}),
            "{args}"
        );
    }
}

#[tokio::test]
async fn f10_volume_works_through_each_program() {
    for (name, text, sets) in [
        ("wpctl", WPCTL, "set-volume @DEFAULT_AUDIO_SINK@ 30%"),
        ("pactl", PACTL, "set-sink-volume @DEFAULT_SINK@ 30%"),
        ("amixer", AMIXER, "set Master 30%"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let program = fake(folder.path(), name, text);
        all_actions(&volume(
            folder.path(),
            json!({"backend": name, "program": program}),
        ))
        .await;
        let calls = fs::read_to_string(folder.path().join("calls")).expect("calls");
        assert!(calls.lines().any(|line| line == sets), "{calls}");
    }
}

#[tokio::test]
async fn f10_volume_works_through_commands_of_ones_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = fake(folder.path(), "mixer", CUSTOM);
    let settings = json!({"backend": "custom", "commands": {
        "get": [program, "get"], "set": [program, "set", "{level}"],
        "mute": [program, "mute"], "unmute": [program, "unmute"]
    }});
    all_actions(&volume(folder.path(), settings)).await;
}

#[tokio::test]
async fn up_does_not_turn_down_what_is_louder_than_full() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = fake(folder.path(), "wpctl", WPCTL);
    fs::write(folder.path().join("level"), "120").expect("written");
    let tool = volume(
        folder.path(),
        json!({"backend": "wpctl", "program": program, "device": "52"}),
    );
    let outcome = tool
        .execute(Call::new("volume", json!({"action": "up"})))
        .await;
    assert_eq!(value(&outcome), &json!({"level": 120, "muted": false}));
    let calls = fs::read_to_string(folder.path().join("calls")).expect("calls");
    assert!(calls.starts_with("get-volume 52\n"), "{calls}");
}

#[tokio::test]
async fn failures_of_the_volume_say_what_happened() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = fake(folder.path(), "wpctl", "echo no sound server >&2; exit 69");
    let broken = volume(
        folder.path(),
        json!({"backend": "wpctl", "program": program}),
    );
    let outcome = broken
        .execute(Call::new("volume", json!({"action": "get"})))
        .await;
    assert!(
        message(&outcome).ends_with("exited with code 69: no sound server"),
        "{outcome:?}"
    );
    assert_eq!(outcome.failure().expect("a failure").effect, Effect::None);

    let program = fake(folder.path(), "odd", "echo hello");
    let odd = volume(
        folder.path(),
        json!({"backend": "amixer", "program": program}),
    );
    let outcome = odd
        .execute(Call::new("volume", json!({"action": "mute"})))
        .await;
    assert_eq!(
        message(&outcome),
        "amixer did not say how loud it is; it printed \"hello\\n\\n\""
    );
    assert_eq!(outcome.failure().expect("a failure").effect, Effect::Done);

    let outcome = odd
        .execute(Call::new("volume", json!({"action": "set"})))
        .await;
    assert_eq!(message(&outcome), "Invalid parameters: missing 'level'");
    let outcome = odd
        .execute(Call::new("volume", json!({"action": "set", "level": 101})))
        .await;
    assert_eq!(
        outcome.failure().expect("a failure").code,
        FailureCode::ValidationError
    );
}

#[test]
fn settings_that_cannot_work_are_faults() {
    for (settings, at) in [
        (json!({"backend": "custom"}), "/commands"),
        (json!({"program": "/x"}), "/program"),
        (
            json!({"backend": "wpctl", "commands": {"get": ["a"], "set": ["a"], "mute": ["a"], "unmute": ["a"]}}),
            "/commands",
        ),
        (
            json!({"backend": "custom", "commands": {"get": [], "set": ["a"], "mute": ["a"], "unmute": ["a"]}}),
            "/commands/get",
        ),
        (
            json!({"backend": "custom", "commands": {"get": ["a"], "set": ["a", "{x}"], "mute": ["a"], "unmute": ["a"]}}),
            "/commands/set",
        ),
    ] {
        let settings = serde_json::from_value(settings).expect("settings");
        let fault = volume::tool(&settings, &context(Path::new("/"))).expect_err("a fault");
        assert_eq!(fault.at, at);
    }
}
