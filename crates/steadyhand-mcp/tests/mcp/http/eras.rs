//! Which era a server speaks: found out, remembered, found out anew; and what that costs.

use std::time::Duration;

use serde_json::json;
use steadyhand_mcp::{Phase, Protocol};

use super::faults::Fault;
use super::host::{Host, Speaks};
use crate::support::{Folder, Stage, peer, set};

fn protocol_of(stage: &Stage) -> String {
    let greeting = stage.server.greeting().expect("a greeting");
    greeting.protocol_version
}

fn assert_up(stage: &Stage) {
    let state = stage.server.state();
    let why = state.failure.map(|failure| failure.detail());
    assert_eq!(state.phase, Phase::Running, "{}", why.unwrap_or_default());
}

#[tokio::test]
async fn v14_http_the_era_is_found_out_once_and_remembered() {
    for (speaks, version) in [
        (Speaks::Legacy, "2025-11-25"),
        (Speaks::Modern, "2026-07-28"),
        (Speaks::Sse, "2024-11-05"),
    ] {
        let host = Host::of(speaks, Fault::None).await;
        let first = Stage::with(Folder::new(), host.settings()).await;
        assert_up(&first);
        assert_eq!(first.server.state().attempt, 1, "it costs no attempt");
        assert_eq!(protocol_of(&first), version);
        first.assert_next_call_works().await;
        first.server.stop().await;
        let asked = host.heard_of("server/discover").len();

        let second = Stage::begin(first.folder, host.settings());
        assert!(second.server.settled(crate::support::PATIENCE).await);
        second.assert_next_call_works().await;
        let asked_again = host.heard_of("server/discover").len() - asked;
        assert_eq!(
            asked_again,
            usize::from(speaks == Speaks::Modern),
            "{speaks:?}"
        );
        second.over().await;
    }
}

#[tokio::test]
async fn v14_http_an_era_that_is_remembered_wrongly_is_found_out_anew() {
    for (before, after) in [
        (Speaks::Legacy, Speaks::Modern),
        (Speaks::Modern, Speaks::Legacy),
    ] {
        let host = Host::of(before, Fault::None).await;
        let first = Stage::with(Folder::new(), host.settings()).await;
        first.server.stop().await;
        host.speaks_now(after);
        let second = Stage::begin(first.folder, host.settings());
        assert!(second.server.settled(crate::support::PATIENCE).await);
        assert_up(&second);
        assert_eq!(second.server.state().attempt, 1);
        second.assert_next_call_works().await;
        second.over().await;
    }
}

#[tokio::test]
async fn v14_http_an_era_that_is_configured_is_not_departed_from() {
    let host = Host::of(Speaks::Legacy, Fault::None).await;
    let mut settings = host.settings();
    settings.protocol = Protocol::Modern;
    let stage = Stage::with(Folder::new(), settings).await;
    assert_eq!(stage.server.state().phase, Phase::Down);
    assert!(host.heard_of("initialize").is_empty());
    stage.over().await;

    let host = Host::of(Speaks::Modern, Fault::None).await;
    let mut settings = host.settings();
    settings.protocol = Protocol::Legacy;
    let stage = Stage::with(Folder::new(), settings).await;
    assert_eq!(stage.server.state().phase, Phase::Down);
    assert!(host.heard_of("server/discover").is_empty());
    stage.over().await;
}

/// A server on stdio that does this when it is asked for its era.
async fn on_stdio(mode: &str) -> Stage {
    let stage = Stage::of(&[mode]).await;
    assert_up(&stage);
    assert_eq!(
        stage.server.state().attempt,
        1,
        "{mode}: it costs no attempt"
    );
    stage.assert_next_call_works().await;
    stage
}

#[tokio::test]
async fn v14_stdio_a_server_that_ends_when_asked_for_its_era_is_asked_in_the_old_way() {
    let stage = on_stdio("exits_on_discover").await;
    assert_eq!(protocol_of(&stage), "2025-11-25");
    stage.server.stop().await;
    // Remembered: the next start is one start.
    let stage = Stage::begin(stage.folder, stage.server.settings().as_ref().clone());
    assert!(stage.server.settled(crate::support::PATIENCE).await);
    let heard = stage.json("heard", json!({})).await;
    assert!(!heard.to_string().contains("server/discover"), "{heard}");
    stage.over().await;
}

#[tokio::test]
async fn v14_stdio_a_server_that_is_silent_when_asked_for_its_era_is_asked_in_the_old_way() {
    let stage = on_stdio("silent_on_discover").await;
    assert_eq!(protocol_of(&stage), "2025-11-25");
    stage.over().await;
}

#[tokio::test]
async fn v14_stdio_a_server_of_the_newer_era_is_spoken_to_in_it_however_slowly_it_starts() {
    let stage = on_stdio("modern").await;
    assert_eq!(protocol_of(&stage), "2026-07-28");
    let heard = stage.json("heard", json!({})).await;
    assert!(!heard.to_string().contains("initialize"), "{heard}");
    stage.over().await;

    let folder = Folder::new();
    let mut settings = folder.hostile(&["modern", "4"]);
    settings.start.limit = Duration::from_secs(30);
    let stage = Stage::with(folder, settings).await;
    assert_up(&stage);
    assert_eq!(protocol_of(&stage), "2026-07-28");
    stage.assert_next_call_works().await;
    stage.over().await;
}

#[tokio::test]
async fn v14_stdio_a_program_that_dies_of_something_else_is_not_started_twice() {
    let folder = Folder::new();
    let mut settings = folder.hostile(&["exit1_before_init"]);
    set(&mut settings, "HOSTILE_TIMES", "1000");
    settings.start.retry_first = Duration::from_secs(3600);
    let stage = Stage::with(folder, settings).await;
    assert_eq!(stage.server.state().phase, Phase::Down);
    let starts = stage.folder.text("shown").len();
    assert_eq!(starts, 3, "one for each attempt");
    stage.over().await;
}

#[tokio::test]
async fn v14_stdio_real_servers_of_the_newer_era_are_spoken_to_in_it() {
    // The second one starts so late that it has been asked in both ways.
    for late in ["0", "3"] {
        let folder = Folder::new();
        let program = peer("mcp-py/bin/mcp-server-time");
        let script = format!(
            "sleep {late}; exec {} --local-timezone UTC",
            program.display()
        );
        let words = ["-c".to_owned(), script];
        let mut settings = folder.program("time", std::path::Path::new("/bin/sh"), words);
        settings.start.limit = Duration::from_secs(60);
        let stage = Stage::with(folder, settings).await;
        assert_up(&stage);
        assert_eq!(protocol_of(&stage), "2026-07-28");
        let args = json!({"timezone": "UTC"});
        let text = stage.text_shown("get_current_time", &args).await;
        assert!(text.contains("UTC"), "{text}");
        stage.over().await;
    }
}
