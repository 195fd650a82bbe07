//! The hostile server over HTTP: for each of its faults what the caller gets, and that the next call works.

use std::time::Duration;

use serde_json::json;
use steadyhand::FailureCode::{
    AuthenticationError, NetworkError, RateLimitError, Timeout, ToolExecutionError,
};
use steadyhand::{Call, Effect, FailureCode, Outcome};
use steadyhand_mcp::Phase;
use tokio::time::Instant;

use super::faults::Fault;
use super::host::{Host, Speaks};
use crate::support::{Folder, Stage, failure, text};

async fn stage(host: &Host) -> Stage {
    let stage = Stage::with(Folder::new(), host.settings()).await;
    let state = stage.server.state();
    let why = state.failure.map(|failure| failure.detail());
    assert_eq!(state.phase, Phase::Running, "{}", why.unwrap_or_default());
    stage
}

/// Calls `trouble`, and sees that the next call works and that nothing was sent twice.
async fn fails(speaks: Speaks, fault: Fault, code: FailureCode, effect: Effect, words: &[&str]) {
    let host = Host::of(speaks, fault).await;
    let stage = stage(&host).await;
    let call = Call::new("trouble", json!({})).timeout(Duration::from_secs(3));
    let outcome = shown(&stage, speaks, fault, call).await;
    let (is, did, said) = failure(&outcome);
    assert_eq!((is, did), (code, effect), "{fault:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{fault:?}: {word:?} in {said:?}");
    }
    let is_sure = effect == Effect::None;
    let sent = host.heard_of("tools/call").len() - 1;
    assert!(sent == 1 || is_sure, "{fault:?}: sent {sent} times");
    stage.over().await;
}

async fn gives(speaks: Speaks, fault: Fault, answer: &str) {
    let host = Host::of(speaks, fault).await;
    let stage = stage(&host).await;
    let call = Call::new("trouble", json!({}));
    let outcome = shown(&stage, speaks, fault, call).await;
    assert_eq!(text(&outcome), answer, "{fault:?}");
    stage.over().await;
}

/// What becomes of a call, once the next one has worked: a row of the table that `scripts/gateway-tables` prints.
#[allow(clippy::print_stdout)]
async fn shown(stage: &Stage, speaks: Speaks, fault: Fault, call: Call) -> Outcome {
    let began = Instant::now();
    let outcome = stage.run(call).await;
    let took = began.elapsed().as_secs_f64();
    let began = Instant::now();
    stage.assert_next_call_works().await;
    let next = began.elapsed().as_secs_f64();
    let (what, words) = match &outcome.result {
        Ok(output) => ("success".to_owned(), output.text()),
        Err(failure) => {
            let effect = format!("{:?}", failure.effect).to_lowercase();
            let what = format!("{}, effect {effect}", failure.code);
            (what, failure.message.clone())
        }
    };
    // Whatever the server says is kept short, on one line, in its cell.
    let words = words.replace('|', "/").replace(char::is_control, " ");
    let words: String = words.chars().take(140).collect();
    println!("\nhttp-row|{fault}|{speaks:?}|{what}|{words}|{took:.2} s|{next:.2} s");
    outcome
}

macro_rules! failing {
    ($($name:ident: $speaks:ident, $fault:ident => $code:ident, $effect:ident, $words:expr;)*) => {
        $(#[tokio::test]
        async fn $name() {
            fails(Speaks::$speaks, Fault::$fault, $code, Effect::$effect, &$words).await;
        })*
    };
}

macro_rules! giving {
    ($($name:ident: $speaks:ident, $fault:ident => $answer:expr;)*) => {
        $(#[tokio::test]
        async fn $name() {
            gives(Speaks::$speaks, Fault::$fault, $answer).await;
        })*
    };
}

failing! {
    d7_http_reset_may_have_run: Legacy, Reset => NetworkError, Unknown, ["broke during the call"];
    d7_http_reset_may_have_run_modern: Modern, Reset => NetworkError, Unknown, ["broke during the call"];
    d7_http_reset_in_the_answer_may_have_run: Legacy, ResetInTheAnswer => NetworkError, Unknown, ["broke"];
    v07_http_stall_is_a_timeout: Legacy, Stall => Timeout, Unknown, [""];
    v07_http_stall_is_a_timeout_modern: Modern, Stall => Timeout, Unknown, [""];
    v07_http_stall_in_the_answer_is_a_timeout: Legacy, StallInTheAnswer => Timeout, Unknown, [""];
    v07_http_drip_is_a_timeout: Legacy, Drip => Timeout, Unknown, [""];
    v12_http_a_web_page_is_no_answer: Legacy, Html => ToolExecutionError, Unknown, ["text/html", "\"Sign in\""];
    v12_http_another_content_type_is_no_answer: Legacy, WrongType => ToolExecutionError, Unknown, ["text/plain", "pong"];
    v12_http_a_web_page_is_no_answer_modern: Modern, Html => ToolExecutionError, Unknown, ["text/html", "\"Sign in\""];
    v12_http_bad_json_is_no_answer_legacy: Legacy, BadJson => ToolExecutionError, Unknown, ["no message", "jsonrpc"];
    v12_http_bad_json_is_no_answer: Modern, BadJson => ToolExecutionError, Unknown, ["no message", "jsonrpc"];
    v12_http_accepted_without_an_answer: Legacy, NoAnswer => ToolExecutionError, Unknown, ["gave no answer"];
    v12_http_an_answer_to_something_else: Legacy, AnotherAnswer => ToolExecutionError, Unknown, ["no answer to the request"];
    d7_http_a_cut_stream_without_an_id_may_have_run: Legacy, CutWithoutId => NetworkError, Unknown, ["stream ended before the answer"];
    d7_http_a_cut_stream_of_the_newer_era_may_have_run: Modern, CutWithoutId => NetworkError, Unknown, ["stream ended before the answer"];
    d7_http_a_stream_that_cannot_be_taken_up_again_may_have_run: Legacy, NotResumed => NetworkError, Unknown, ["cannot be taken up again", "HTTP 400"];
    r07_http_401_is_an_authentication_error: Legacy, Unauthorized => AuthenticationError, None, ["HTTP 401 Unauthorized", "who are you?"];
    r07_http_401_is_an_authentication_error_modern: Modern, Unauthorized => AuthenticationError, None, ["HTTP 401 Unauthorized", "who are you?"];
    r07_http_403_is_an_authentication_error: Modern, Forbidden => AuthenticationError, None, ["403", "not for you"];
    r07_http_500_is_an_unknown_error: Legacy, Broken500 => ToolExecutionError, Unknown, ["HTTP 500", "the database is gone"];
    r07_http_500_is_an_unknown_error_modern: Modern, Broken500 => ToolExecutionError, Unknown, ["the database is gone"];
    r07_http_502_is_a_network_error: Legacy, BadGateway => NetworkError, Unknown, ["502", "a web page titled"];
    r07_http_503_is_a_network_error: Modern, Unavailable => NetworkError, Unknown, ["HTTP 503 Service Unavailable"];
    v07_http_an_endless_stream_is_a_timeout: Legacy, Endless => Timeout, Unknown, [""];
    v07_http_an_endless_stream_is_a_timeout_modern: Modern, Endless => Timeout, Unknown, [""];
    d8_http_a_header_mismatch_is_an_answer: Modern, HeaderMismatch => ToolExecutionError, None, ["Mcp-Name does not match"];
    d8_http_a_redirect_elsewhere_is_not_followed: Legacy, RedirectElsewhere => ToolExecutionError, None, ["redirects to https://elsewhere.example/mcp"];
    v12_http_an_answer_that_is_too_large: Legacy, LargeJson => ToolExecutionError, Done, ["too large"];
    v12_http_an_event_that_is_too_large: Legacy, LargeEvent => ToolExecutionError, Done, ["too large"];
}

giving! {
    v12_http_bad_events_are_passed_over: Legacy, BadSse => "after the noise";
    v12_http_bad_events_are_passed_over_modern: Modern, BadSse => "after the noise";
    v12_http_a_cut_stream_with_an_id_is_taken_up_again: Legacy, CutWithId => "taken up again";
    v12_http_a_stream_closed_to_be_polled_is_taken_up_again: Legacy, ClosedToPoll => "taken up again";
    v12_http_a_stream_that_broke_is_taken_up_again: Legacy, BrokenWithId => "taken up again";
    v12_http_a_flood_of_events_is_read: Legacy, Flood => "after the flood";
    v12_http_events_in_one_piece_are_told_apart: Modern, GluedEvents => "glued";
    d17_http_a_lost_session_is_begun_anew_and_the_call_repeated: Legacy, SessionLost => "no trouble";
    d17_http_a_session_lost_in_the_words_of_the_sdks_is_begun_anew: Legacy, SessionLost400 => "no trouble";
    d8_http_a_redirect_within_the_server_is_followed: Legacy, Redirect => "no trouble";
}

#[tokio::test]
async fn r07_http_429_is_never_started_and_says_when_to_come_back() {
    let host = Host::of(Speaks::Legacy, Fault::TooMany).await;
    let stage = stage(&host).await;
    let call = Call::new("trouble", json!({})).deadline(Duration::from_secs(3));
    let outcome = shown(&stage, Speaks::Legacy, Fault::TooMany, call).await;
    let (code, effect, words) = failure(&outcome);
    assert_eq!((code, effect), (RateLimitError, Effect::None), "{words}");
    assert!(
        words.contains("HTTP 429 Too Many Requests: slow down"),
        "{words}"
    );
    assert_eq!(
        host.heard_of("tools/call").len(),
        2,
        "7 s are more than it has; the other one is the next call"
    );
    stage.over().await;
}

#[tokio::test]
async fn v17_http_what_a_server_echoes_of_our_secrets_is_not_shown() {
    let host = Host::of(Speaks::Legacy, Fault::WrongType).await;
    let mut settings = host.settings();
    let secret = (
        "Authorization".to_owned(),
        "Bearer secret-of-mine".to_owned(),
    );
    settings.as_http().headers.push(secret);
    let stage = Stage::with(Folder::new(), settings).await;
    let outcome = stage.call("trouble", json!({})).await;
    let words = failure(&outcome).2;
    assert!(words.contains("pong"), "{words}");
    assert!(!words.contains("secret-of-mine"), "{words}");
    let heard = host.heard_of("tools/call");
    assert_eq!(
        heard[0].header("authorization"),
        Some("Bearer secret-of-mine")
    );
    stage.over().await;
}

#[tokio::test]
async fn v07_http_a_call_that_is_given_up_is_cancelled_at_the_server() {
    let host = Host::of(Speaks::Legacy, Fault::Stall).await;
    let stage = stage(&host).await;
    let call = Call::new("trouble", json!({})).timeout(Duration::from_millis(300));
    assert_eq!(failure(&stage.run(call).await).0, Timeout);
    crate::support::until("it is told", || {
        !host.heard_of("notifications/cancelled").is_empty()
    })
    .await;
    let id = host.heard_of("tools/call")[0].body["id"].clone();
    let told = host.heard_of("notifications/cancelled");
    assert_eq!(told[0].body["params"]["requestId"], id);
    stage.assert_next_call_works().await;
    stage.over().await;
}
