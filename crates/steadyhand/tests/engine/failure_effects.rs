//! T: texts about failures tell the truth. Every way to fail, in every view.

use std::io;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use steadyhand::testing::{on_paused_clock, script};
use steadyhand::{Call, Category, Effect, Failure, Outcome, Tool, ToolError, ToolExecutor};
use tokio_util::sync::CancellationToken;
use tracing::Level;

use crate::logs;
use crate::support::{ON_PURPOSE, content, executor, flat, ms, secs, structured};

/// What the tool does in its first attempt.
#[derive(Debug, Clone)]
enum Ends {
    Fails {
        error: Said,
        effect: Option<Effect>,
        is_final: bool,
    },
    ResultLost,
    Hangs,
    Panics,
}

/// How its error was made.
#[derive(Debug, Clone)]
enum Said {
    Category(Category),
    Http(u16),
    JsonRpc(i64),
    Io(io::ErrorKind),
    Words(&'static str),
    Answer,
}

/// What stands in the way of a call that never gets as far as the tool.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Obstacle {
    None,
    UnknownTool,
    BadArguments,
    OpenBreaker,
    NoRoom,
    CancelledBefore,
    CancelledLater,
    KeyOfAnotherCall,
}

#[derive(Debug, Clone)]
struct Case {
    ends: Ends,
    obstacle: Obstacle,
    safe_to_repeat: bool,
    has_fallback: bool,
    attempts: u32,
}

impl Said {
    fn error(&self) -> ToolError {
        match self {
            Said::Category(category) => ToolError::of(*category, "it did not work"),
            Said::Http(status) => ToolError::from_http_status(*status, format!("HTTP {status}")),
            Said::JsonRpc(code) => ToolError::from_json_rpc(*code, format!("error {code}")),
            Said::Io(kind) => io::Error::from(*kind).into(),
            Said::Words(words) => ToolError::new(*words),
            Said::Answer => ToolError::answer("there is no such room!"),
        }
    }
}

fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        prop::sample::select(vec![
            Category::Network,
            Category::Timeout,
            Category::RateLimit,
            Category::Authentication,
            Category::Validation,
            Category::Overloaded,
            Category::Denied,
            Category::Expired,
            Category::Unknown,
        ])
        .prop_map(Said::Category),
        (300_u16..600).prop_map(Said::Http),
        prop_oneof![-32_803_i64..-31_999, 400_i64..600].prop_map(Said::JsonRpc),
        prop::sample::select(vec![
            io::ErrorKind::ConnectionRefused,
            io::ErrorKind::ConnectionReset,
            io::ErrorKind::TimedOut,
            io::ErrorKind::NotFound,
            io::ErrorKind::Other,
        ])
        .prop_map(Said::Io),
        prop::sample::select(vec![
            "Timeout",
            "Network error",
            "Invalid input",
            "it broke.",
            ""
        ])
        .prop_map(Said::Words),
        Just(Said::Answer),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let effect = prop::option::of(prop::sample::select(vec![
        Effect::None,
        Effect::Done,
        Effect::Unknown,
    ]));
    let fails = (said(), effect, any::<bool>()).prop_map(|(error, effect, is_final)| Ends::Fails {
        error,
        effect,
        is_final,
    });
    let ends = prop_oneof![
        6 => fails,
        1 => Just(Ends::ResultLost),
        1 => Just(Ends::Hangs),
        1 => Just(Ends::Panics),
    ];
    let obstacle = prop_oneof![
        6 => Just(Obstacle::None),
        4 => prop::sample::select(vec![
            Obstacle::UnknownTool,
            Obstacle::BadArguments,
            Obstacle::OpenBreaker,
            Obstacle::NoRoom,
            Obstacle::CancelledBefore,
            Obstacle::CancelledLater,
            Obstacle::KeyOfAnotherCall,
        ]),
    ];
    (ends, obstacle, any::<bool>(), any::<bool>(), 1_u32..4).prop_map(
        |(ends, obstacle, safe_to_repeat, has_fallback, attempts)| Case {
            ends,
            obstacle,
            safe_to_repeat,
            has_fallback,
            attempts,
        },
    )
}

/// The tool of a case, and what is done before its call.
fn tool(case: &Case) -> Tool {
    let script = script("pay").schema(json!({
        "type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"],
    }));
    let script = match &case.ends {
        Ends::Fails {
            error,
            effect,
            is_final,
        } => {
            let (said, effect, is_final) = (error.clone(), *effect, *is_final);
            script.fails_with(move || {
                let error = said.error();
                let error = match effect {
                    Some(effect) => error.effect(effect),
                    None => error,
                };
                match is_final {
                    true => error.declared_final(),
                    false => error,
                }
            })
        }
        Ends::ResultLost => {
            script.fails_with(|| ToolError::new("the receipt is no JSON").result_lost())
        }
        Ends::Hangs => script.hangs(),
        Ends::Panics => script.panics(ON_PURPOSE),
    };
    let mut tool = script
        .tool()
        .timeout(secs(5))
        .retry(steadyhand::RetryPolicy {
            attempts: case.attempts,
            ..steadyhand::RetryPolicy::default()
        });
    tool = match case.obstacle {
        Obstacle::OpenBreaker => tool.breaker(1, secs(600)),
        Obstacle::NoRoom => tool.limit(1, 0),
        _ => tool,
    };
    if !case.safe_to_repeat {
        tool = tool.not_safe_to_repeat();
    }
    match case.has_fallback {
        true => tool.fallback_value(json!("ask again tomorrow")),
        false => tool,
    }
}

async fn outcome(case: &Case, executor: &ToolExecutor) -> Outcome {
    let pay = || Call::new("pay", json!({"amount": 5})).id("c-1");
    let token = CancellationToken::new();
    match case.obstacle {
        Obstacle::None => executor.execute(pay()).await,
        Obstacle::UnknownTool => executor.execute(Call::new("pya", json!({}))).await,
        Obstacle::BadArguments => {
            executor
                .execute(Call::new("pay", json!({"amount": "5"})))
                .await
        }
        Obstacle::OpenBreaker => {
            executor.execute(pay()).await;
            executor.execute(pay()).await
        }
        Obstacle::NoRoom => {
            let (_, second) =
                tokio::join!(executor.execute(pay().id("first")), executor.execute(pay()));
            second
        }
        Obstacle::CancelledBefore => {
            token.cancel();
            executor.execute(pay().cancellation(token)).await
        }
        Obstacle::CancelledLater => {
            let stop = async {
                tokio::time::sleep(ms(1)).await;
                token.cancel();
            };
            let call = executor.execute(pay().cancellation(token.clone()));
            tokio::join!(call, stop).0
        }
        Obstacle::KeyOfAnotherCall => {
            executor.execute(pay().idempotency_key("k")).await;
            let other = Call::new("pay", json!({"amount": 6})).idempotency_key("k");
            executor.execute(other).await
        }
    }
}

/// The words each effect must be told in, and those of the others, which must not stand there.
fn check_words(text: &str, failure: &Failure, case: &Case) {
    let (own, others): (&str, [&str; 2]) = match failure.effect {
        Effect::None => ("It was not run.", ["may have run", "It ran"]),
        Effect::Done => ("It ran", ["may have run", "was not run"]),
        Effect::Unknown => (
            "It may have run; check before trying again",
            ["was not run", "It ran"],
        ),
    };
    assert!(text.contains(own), "{text:?} of {failure:?} in {case:?}");
    assert_eq!(text.matches(own).count(), 1, "said once: {text:?}");
    for other in others {
        assert!(!text.contains(other), "{text:?} of {failure:?} in {case:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn t01_every_view_of_every_failure_states_the_effect_and_nothing_contradicts_it(case in case()) {
        on_paused_clock(async {
            let logs = logs::capture();
            let executor = executor([tool(&case)]);
            let outcome = outcome(&case, &executor).await;
            let Some(failure) = outcome.failure() else {
                return;
            };
            check_words(&content(&outcome), failure, &case);
            check_words(&failure.user_message, failure, &case);
            check_words(&failure.to_string(), failure, &case);
            let logged = logs.of(Level::WARN, "call failed");
            let line = logged.iter().rfind(|line| line.field("call_id") == outcome.call_id);
            check_words(line.unwrap_or_else(|| panic!("not logged: {outcome:?} {:#?}", logs.all())).field("effect"), failure, &case);
            let (flat, structured) = (flat(&outcome), structured(&outcome));
            let effect = serde_json::to_value(failure.effect).unwrap();
            assert_eq!(flat["effect"], effect);
            assert_eq!(flat["error"], json!(failure.message), "the tool's own words, unchanged");
            assert_eq!(structured["error"]["effect"], effect);
            // Retryable: the category, restricted by the effect and the tool (SPEC D19).
            let may_repeat = failure.effect == Effect::None || case.safe_to_repeat;
            assert!(!failure.retryable || may_repeat, "{failure:?} in {case:?}");
            assert!(!failure.retryable || failure.code.is_retryable(), "{failure:?}");
            if !may_repeat {
                assert!(!failure.user_message.contains("Please try again"), "{failure:?}");
            }
            // A failure that is read back, as commands read it from a server, says the same.
            let back: Failure = serde_json::from_value(structured["error"].clone()).unwrap();
            assert_eq!(back.effect_sentence(), failure.effect_sentence());
        });
    }
}

#[tokio::test(start_paused = true)]
async fn d19_a_timeout_of_a_tool_that_is_not_safe_to_repeat_is_not_retryable() {
    let pay = |safe: bool| {
        let tool = script("pay").hangs().tool().timeout(secs(1)).no_retry();
        match safe {
            true => tool,
            false => tool.not_safe_to_repeat(),
        }
    };
    for safe in [true, false] {
        let outcome = executor([pay(safe)])
            .execute(Call::new("pay", json!({})))
            .await;
        let error = &structured(&outcome)["error"];
        let read: [&Value; 3] = [&error["code"], &error["effect"], &error["retryable"]];
        assert_eq!(read, [&json!("TIMEOUT"), &json!("unknown"), &json!(safe)]);
    }
    assert_eq!(
        content(
            &executor([pay(false)])
                .execute(Call::new("pay", json!({})))
                .await
        ),
        "Error: 'pay' was stopped after 1s by its time limit\nIt may have run; check before trying again."
    );
}

#[tokio::test(start_paused = true)]
async fn d19_a_result_that_cannot_be_used_does_not_hide_that_the_tool_ran() {
    let lost = || ToolError::new("the receipt is 3 MB, more than 1 MB").result_lost();
    let tool = script("pay").fails_with(lost).tool().not_safe_to_repeat();
    let outcome = executor([tool]).execute(Call::new("pay", json!({}))).await;
    assert_eq!(
        content(&outcome),
        "Error: the receipt is 3 MB, more than 1 MB\nIt ran to its end; only its result was lost. Check before trying again."
    );
    assert_eq!(outcome.execution_time, Duration::ZERO);
    assert_eq!(structured(&outcome)["error"]["effect"], "done");
}
