//! What is said about failures: to people, to models, and without secrets.

use serde_json::json;
use steadyhand::testing::script;
use steadyhand::{Category, FailureCode, ToolError};

use crate::support::{ON_PURPOSE, content, executor, failure, flat, run, run_once, structured};

#[tokio::test(start_paused = true)]
async fn d13_flat_and_message_carry_the_tools_own_words_and_user_message_the_friendly_ones() {
    let own = "HTTP 502: <b>bad gateway</b>\nsecond line ❌";
    let error = ToolError::of(Category::Network, own);
    let outcome = run_once(script("t").fails(error).tool()).await;
    assert_eq!(flat(&outcome)["error"], own);
    let effect = "It may have run; check before trying again (this tool is safe to repeat).";
    assert_eq!(content(&outcome), format!("Error: {own}\n{effect}"));
    assert_eq!(structured(&outcome)["error"]["message"], own);
    assert_ne!(failure(&outcome).user_message, own);
    let friendly = ToolError::new("raw").user_message("Please try again.");
    let outcome = run_once(script("t").fails(friendly).tool()).await;
    assert_eq!(
        failure(&outcome).user_message,
        "Please try again. It ran, and failed."
    );
}

#[tokio::test(start_paused = true)]
async fn d13_secrets_are_hidden_in_what_a_tool_says() {
    let args = json!({
        "password": "hunter22",
        "pin": 987_654,
        "credentials": {"user": "ann", "value": "hunter33"},
        "api_keys": ["hunter44"],
        "headers": [{"authorization": "hunter55"}],
    });
    let secrets = [
        "hunter22",
        "987654",
        "hunter33",
        "hunter44",
        "hunter55",
        "sk-abcdef1234567890",
    ];
    let mut shown_secrets = Vec::new();
    for secret in secrets {
        let said = format!("login with {secret} was not possible");
        for tool in [
            script("t").fails(ToolError::new(said.clone())),
            script("t").fails(ToolError::new("x").user_message(said.clone())),
            script("t").panics(format!("{ON_PURPOSE}: {said}")),
        ] {
            let outcome = run(tool.tool().no_retry(), args.clone()).await;
            let shown = format!("{}{}", structured(&outcome), content(&outcome));
            if shown.contains(secret) {
                shown_secrets.push(secret);
            }
        }
    }
    assert!(shown_secrets.is_empty(), "{shown_secrets:?}");
}

#[tokio::test(start_paused = true)]
async fn d13_secrets_among_good_arguments_do_not_come_back_with_the_faults_of_bad_ones() {
    let schema = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "password": {"type": "string"},
            "login": {"type": "object"},
        },
        "required": ["n"],
    });
    let args = json!({
        "n": "x",
        "password": "hunter22",
        "login": {"user": "ann", "password": "hunter33"},
    });
    let outcome = run(script("t").schema(schema).tool(), args).await;
    let shown = format!("{}{}", structured(&outcome), content(&outcome));
    for secret in ["hunter22", "hunter33"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn d13_a_faulty_secret_is_not_shown() {
    let schema = json!({"type": "object", "properties": {
        "password": {"type": "string", "minLength": 20},
        "pin": {"type": "integer", "maximum": 10},
        "api_key": {"enum": ["a", "b"]},
    }});
    let args = json!({"password": "hunter22", "pin": 987_654, "api_key": "hunter33"});
    let outcome = run(script("t").schema(schema).tool(), args).await;
    let shown = format!("{}{}", structured(&outcome), content(&outcome));
    for secret in ["hunter22", "987654", "hunter33"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn d13_what_a_tool_says_has_a_bounded_size() {
    let outcome = run_once(
        script("t")
            .fails(ToolError::new("ø".repeat(1_000_000)))
            .tool(),
    )
    .await;
    assert!(content(&outcome).len() < 20_000);
    assert!(failure(&outcome).message.contains("2000000 bytes"));
}

#[tokio::test(start_paused = true)]
async fn v09_three_failures_have_three_friendly_texts() {
    let strict = json!({
        "type": "object",
        "properties": {"city": {}, "day": {}},
        "required": ["city", "day"],
    });
    let network = run_once(
        script("t")
            .fails(ToolError::of(Category::Network, "ECONNRESET"))
            .tool(),
    );
    let invalid = run_once(script("t").schema(strict).tool());
    let timeout = run_once(script("t").hangs().tool());
    let (network, invalid, timeout) = tokio::join!(network, invalid, timeout);
    for (outcome, code, words) in [
        (&network, FailureCode::NetworkError, vec!["unavailable"]),
        (
            &invalid,
            FailureCode::ValidationError,
            vec!["equired", "city", "day"],
        ),
        (&timeout, FailureCode::Timeout, vec!["timed out"]),
    ] {
        let failure = failure(outcome);
        assert_eq!(failure.code, code);
        for word in words {
            assert!(
                failure.user_message.contains(word),
                "{word}: {}",
                failure.user_message
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn v09_arguments_that_are_no_object_are_told_which_parameters_are_required_too() {
    let strict = json!({"type": "object", "properties": {"city": {}}, "required": ["city"]});
    for args in ["{\"city\": \"Os", "[]", "oslo"] {
        let tool = script("t").schema(strict.clone()).tool();
        let outcome = executor([tool])
            .execute(steadyhand::Call::new("t", args))
            .await;
        let text = &failure(&outcome).user_message;
        assert!(text.contains("city"), "{args}: {text}");
    }
}
