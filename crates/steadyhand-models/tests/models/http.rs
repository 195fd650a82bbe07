//! The way to a provider: retries, waits, keys that nobody sees, and every failure with its next step.

use std::time::Duration;

use serde_json::json;
use steadyhand::Message;
use steadyhand_models::testing::{Line, Said, StrictProvider};
use steadyhand_models::{
    Client, Delivery, Dialect, Model, ModelError, ModelErrorKind, ModelRequest, ModelSettings,
    NoticeCode, Patience, Reply, Told, ToolChoice,
};

use super::support::{BOTH, within};

async fn ask(client: &Client, delivery: Delivery) -> (Result<Reply, ModelError>, Vec<Told>) {
    let messages = [Message::human("Hello")];
    let request = ModelRequest {
        messages: &messages,
        tools: &[],
        choice: ToolChoice::Auto,
        delivery,
    };
    let mut told = Vec::new();
    let reply = within(client.answer(request, &mut |one| told.push(one))).await;
    (reply, told)
}

fn again(status: u16) -> Line {
    Line::Refuses {
        status,
        retry_after: Some("0".to_owned()),
        message: "Overloaded".to_owned(),
    }
}

fn retries(told: &[Told]) -> usize {
    told.iter()
        .filter(|one| matches!(one, Told::Retry(_)))
        .count()
}

#[tokio::test]
async fn a_busy_or_broken_provider_is_asked_again_when_it_says() {
    for dialect in Dialect::ALL {
        for delivery in BOTH {
            for status in [429, 500, 502, 503, 529] {
                let provider = StrictProvider::start(
                    dialect,
                    [again(status), again(status), Line::says("Hi")],
                )
                .await;
                let client = Client::new(provider.settings()).expect("good settings");
                let (reply, told) = ask(&client, delivery).await;
                assert_eq!(reply.expect("an answer").message.content.text(), "Hi");
                assert_eq!(retries(&told), 2, "{dialect} {status}");
                let Told::Retry(first) = &told[0] else {
                    panic!("{told:?}")
                };
                assert_eq!(
                    (first.attempt, first.attempts_max, first.wait),
                    (2, 3, Duration::ZERO)
                );
                assert!(first.reason.contains("Overloaded"), "{}", first.reason);
            }
        }
    }
}

#[tokio::test]
async fn a_provider_may_say_when_in_seconds_and_as_a_date() {
    // A date that has passed is now; without one, there is a pause of half a second at most.
    for (after, wait) in [
        ("0.01", Duration::from_millis(10)),
        ("Wed, 21 Oct 2015 07:28:00 GMT", Duration::ZERO),
    ] {
        let refuses = Line::Refuses {
            status: 429,
            retry_after: Some(after.to_owned()),
            message: "Slow down".to_owned(),
        };
        let provider = StrictProvider::start(Dialect::OpenAi, [refuses, Line::says("Hi")]).await;
        let client = Client::new(provider.settings()).expect("good settings");
        let (reply, told) = ask(&client, Delivery::Whole).await;
        assert_eq!(reply.expect("an answer").message.content.text(), "Hi");
        let Told::Retry(first) = &told[0] else {
            panic!("{told:?}")
        };
        assert_eq!(first.wait, wait, "{after}");
    }
    // What makes no sense is as good as nothing.
    let provider = StrictProvider::start(
        Dialect::OpenAi,
        [
            Line::Refuses {
                status: 529,
                retry_after: Some("soon".to_owned()),
                message: "Overloaded".to_owned(),
            },
            Line::says("Hi"),
        ],
    )
    .await;
    let client = Client::new(provider.settings()).expect("good settings");
    let (reply, told) = ask(&client, Delivery::Whole).await;
    assert!(reply.is_ok());
    let Told::Retry(first) = &told[0] else {
        panic!("{told:?}")
    };
    assert!(
        first.wait > Duration::ZERO && first.wait <= Duration::from_millis(500),
        "{:?}",
        first.wait
    );
}

#[tokio::test]
async fn what_was_refused_comes_with_the_error_and_shows_in_no_debug() {
    for dialect in Dialect::ALL {
        let lines = [
            Line::refuses(400, "no such thing"),
            Line::refuses(404, "no such model"),
        ];
        let provider = StrictProvider::start(dialect, lines).await;
        let client = Client::new(provider.settings()).expect("good settings");
        let (reply, _) = ask(&client, Delivery::Streaming).await;
        let error = reply.expect_err("a failure");
        assert!(!format!("{error:?}").contains("Hello"), "{error:?}");
        let sent = error.sent.expect("what was sent");
        assert!(sent.body().to_string().contains("Hello"), "{dialect}");
        // One that is about something else needs no copy.
        let (reply, _) = ask(&client, Delivery::Streaming).await;
        assert_eq!(reply.expect_err("a failure").sent, None, "{dialect}");
    }
}

#[tokio::test]
async fn there_is_an_end_to_asking_again() {
    let lines = [again(529), again(529), again(529), Line::says("too late")];
    let provider = StrictProvider::start(Dialect::Anthropic, lines).await;
    let client = Client::new(provider.settings()).expect("good settings");
    let (reply, _) = ask(&client, Delivery::Streaming).await;
    let error = reply.expect_err("a failure");
    assert_eq!(
        (error.kind, error.attempts, error.status),
        (ModelErrorKind::Overloaded, 3, Some(529))
    );
    assert!(error.to_string().contains("(asked 3 times)"), "{error}");
    assert_eq!(provider.lines_left(), 1);
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_told_and_not_waited() {
    let line = Line::Refuses {
        status: 429,
        retry_after: Some("3600".to_owned()),
        message: "Slow down".to_owned(),
    };
    let provider = StrictProvider::start(Dialect::OpenAi, [line]).await;
    let client = Client::new(provider.settings()).expect("good settings");
    let (reply, _) = ask(&client, Delivery::Whole).await;
    let error = reply.expect_err("a failure");
    assert_eq!(error.retry_after, Some(Duration::from_secs(3600)));
    assert!(
        error.to_string().contains("asked again in 3600 s"),
        "{error}"
    );
}

#[tokio::test]
async fn what_the_provider_does_not_take_is_not_asked_again() {
    for (status, kind) in [
        (400, ModelErrorKind::Refused),
        (404, ModelErrorKind::NotFound),
        (413, ModelErrorKind::Refused),
        (403, ModelErrorKind::Unauthorized),
    ] {
        for dialect in Dialect::ALL {
            let provider = StrictProvider::start(
                dialect,
                [Line::refuses(status, "no such thing"), Line::says("never")],
            )
            .await;
            let client = Client::new(provider.settings()).expect("good settings");
            let (reply, told) = ask(&client, Delivery::Streaming).await;
            let error = reply.expect_err("a failure");
            assert_eq!(error.kind, kind, "{error}");
            assert!(
                error.message.contains("no such thing") && error.message.contains(dialect.as_str()),
                "{error}"
            );
            assert_eq!((retries(&told), provider.lines_left()), (0, 1));
        }
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_asked_for_again_only_while_nothing_was_told() {
    for dialect in Dialect::ALL {
        let said = || Said::text("One two three four");
        // Before the first word.
        let provider =
            StrictProvider::start(dialect, [Line::BreaksOff(said(), 20), Line::says("Hi")]).await;
        let client = Client::new(provider.settings()).expect("good settings");
        let (reply, told) = ask(&client, Delivery::Streaming).await;
        assert_eq!(
            reply.expect("an answer").message.content.text(),
            "Hi",
            "{dialect}"
        );
        assert_eq!(retries(&told), 1);
        // After it: it would be told twice.
        let provider = StrictProvider::start(
            dialect,
            [
                Line::FailsMidway(Said::text("word ".repeat(50)), "Overloaded".into()),
                Line::says("never"),
            ],
        )
        .await;
        let client = Client::new(provider.settings()).expect("good settings");
        let (reply, told) = ask(&client, Delivery::Streaming).await;
        let error = reply.expect_err("a failure");
        assert_eq!(error.kind, ModelErrorKind::Provider, "{dialect}: {error}");
        assert!(error.message.contains("Overloaded"), "{error}");
        assert!(
            told.contains(&Told::Text("word ".into())),
            "{dialect}: {told:?}"
        );
        assert_eq!((retries(&told), provider.lines_left()), (0, 1));
    }
}

#[tokio::test]
async fn a_provider_that_falls_silent_is_given_up() {
    let patience = Patience {
        first: Duration::from_millis(300),
        next: Duration::from_millis(300),
        ..Patience::default()
    };
    for dialect in Dialect::ALL {
        for (delivery, bytes) in [
            (Delivery::Streaming, 0),
            (Delivery::Streaming, 30),
            (Delivery::Whole, 10),
        ] {
            let provider =
                StrictProvider::start(dialect, [Line::Hangs(Said::text("One two"), bytes)]).await;
            let client =
                Client::new(provider.settings().patience(patience)).expect("good settings");
            let (reply, _) = ask(&client, delivery).await;
            let error = reply.expect_err("a failure");
            assert_eq!(
                error.kind,
                ModelErrorKind::Timeout,
                "{dialect} {delivery:?}: {error}"
            );
            assert!(error.message.contains("said nothing for 300ms"), "{error}");
        }
    }
}

#[tokio::test]
async fn the_whole_answer_has_an_end_too() {
    let patience = Patience {
        whole: Duration::from_millis(300),
        ..Patience::default()
    };
    let provider =
        StrictProvider::start(Dialect::Ollama, [Line::Hangs(Said::text("One two"), 30)]).await;
    let client = Client::new(provider.settings().patience(patience)).expect("good settings");
    let (reply, _) = ask(&client, Delivery::Streaming).await;
    assert_eq!(reply.expect_err("a failure").kind, ModelErrorKind::Timeout);
}

#[tokio::test]
async fn an_answer_that_is_there_does_not_wait_for_the_connection_to_close() {
    for dialect in Dialect::ALL {
        let provider =
            StrictProvider::start(dialect, [Line::Hangs(Said::text("All of it"), usize::MAX)])
                .await;
        let client = Client::new(provider.settings()).expect("good settings");
        let (reply, _) = ask(&client, Delivery::Streaming).await;
        assert_eq!(
            reply.expect("an answer").message.content.text(),
            "All of it",
            "{dialect}"
        );
    }
}

#[tokio::test]
async fn keys_go_where_they_belong_and_are_seen_nowhere() {
    const KEY: &str = "sk-very-secret-0123456789";
    for dialect in Dialect::ALL {
        let provider = StrictProvider::start(dialect, [Line::says("Hi")]).await;
        provider.wants_key(KEY);
        let settings = provider.settings().key(KEY);
        assert!(!format!("{settings:?}").contains(KEY));
        let client = Client::new(settings).expect("good settings");
        assert!(!format!("{client:?}").contains(KEY));
        let (reply, _) = ask(&client, Delivery::Streaming).await;
        assert_eq!(reply.expect("an answer").message.content.text(), "Hi");
        // A wrong key is quoted by the provider, and not by us.
        let wrong = "sk-wrong-but-secret-9876543210";
        let client = Client::new(provider.settings().key(wrong)).expect("good settings");
        let (reply, told) = ask(&client, Delivery::Streaming).await;
        let error = reply.expect_err("a failure");
        assert_eq!(error.kind, ModelErrorKind::Unauthorized);
        assert!(
            error.message.contains("Incorrect API key provided: ***"),
            "{error}"
        );
        assert!(!format!("{error:?} {error} {told:?}").contains(wrong));
    }
}

#[test]
fn a_password_in_the_url_is_seen_nowhere() {
    let settings = ModelSettings::new(Dialect::Ollama, "m").url("http://me:hush-hush@127.0.0.1:1");
    assert!(!format!("{settings:?}").contains("hush"));
    let client = Client::new(settings).expect("good settings");
    assert!(!format!("{client:?}").contains("hush"));
}

#[tokio::test]
async fn nobody_at_the_address_is_told_with_the_next_step() {
    // A port that was free a moment ago.
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = socket.local_addr().expect("an address");
    drop(socket);
    let settings = ModelSettings::new(Dialect::Ollama, "qwen3:8b")
        .url(format!("http://{address}"))
        .attempts(1);
    let client = Client::new(settings).expect("good settings");
    let (reply, _) = ask(&client, Delivery::Streaming).await;
    let error = reply.expect_err("nobody is there");
    assert_eq!(error.kind, ModelErrorKind::Unreachable);
    assert!(
        error
            .message
            .starts_with(&format!("ollama does not answer at {address} (")),
        "{error}"
    );
    assert_eq!(
        error.help.as_deref(),
        Some("start it with: ollama serve, then: ollama pull qwen3:8b")
    );
}

#[test]
fn settings_that_cannot_work_are_told_before_anything_is_sent() {
    let error = Client::new(ModelSettings::new(Dialect::Anthropic, "claude")).expect_err("no key");
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ModelErrorKind::Unauthorized, "no key for anthropic")
    );
    assert!(
        error
            .help
            .as_deref()
            .is_some_and(|help| help.contains("ANTHROPIC_API_KEY"))
    );
    for url in ["nonsense", "ftp://127.0.0.1/", ""] {
        let error = Client::new(ModelSettings::new(Dialect::OpenAi, "m").url(url)).expect_err(url);
        assert_eq!(error.kind, ModelErrorKind::Settings, "{url}");
    }
    let error = Client::new(ModelSettings::new(Dialect::OpenAi, "m").key("two\nlines"))
        .expect_err("no key");
    assert_eq!(error.kind, ModelErrorKind::Settings);
    assert!(!error.to_string().contains("lines"));
}

#[tokio::test]
async fn what_is_no_answer_of_the_protocol_is_told_as_such() {
    for dialect in Dialect::ALL {
        for delivery in BOTH {
            let page = Line::Exactly {
                content_type: "text/html".into(),
                body: b"<html>Welcome</html>\n\n".to_vec(),
            };
            let provider = StrictProvider::start(dialect, [page]).await;
            let client = Client::new(provider.settings().attempts(1)).expect("good settings");
            let (reply, _) = ask(&client, delivery).await;
            let error = reply.expect_err("no answer");
            let fits = matches!(
                error.kind,
                ModelErrorKind::Unreadable | ModelErrorKind::BrokeOff
            );
            assert!(fits, "{dialect} {delivery:?}: {error}");
        }
    }
}

#[tokio::test]
async fn an_answer_larger_than_may_be_is_not_read_to_its_end() {
    for dialect in Dialect::ALL {
        for delivery in BOTH {
            let provider = StrictProvider::start(dialect, [Line::says("long ".repeat(4000))]).await;
            let mut settings = provider.settings();
            settings.response_bytes_max = 10_000;
            let client = Client::new(settings).expect("good settings");
            let (reply, _) = ask(&client, delivery).await;
            assert_eq!(
                reply.expect_err("too large").kind,
                ModelErrorKind::TooLarge,
                "{dialect} {delivery:?}"
            );
        }
    }
}

#[tokio::test]
async fn ollama_that_saw_only_a_part_of_the_conversation_is_found_out() {
    // As recorded: num_ctx 64, 34 of 157 tokens read, the tools lost, the answer invented.
    let body = json!({"model": "m", "message": {"role": "assistant", "content": "It is sunny."}, "done": true,
        "done_reason": "stop", "prompt_eval_count": 34, "eval_count": 8});
    let line = Line::Exactly {
        content_type: "application/json".into(),
        body: body.to_string().into_bytes(),
    };
    let provider = StrictProvider::start(Dialect::Ollama, [line, Line::says("Fine")]).await;
    let mut settings = provider.settings();
    settings.num_ctx = 64;
    settings.keep_alive = Some(json!("10m"));
    let client = Client::new(settings).expect("good settings");
    let tool = serde_json::to_value(super::support::weather()).expect("JSON");
    let messages = [Message::human("What is the weather in Paris? ".repeat(10))];
    let request = ModelRequest {
        messages: &messages,
        tools: &[tool],
        choice: ToolChoice::Auto,
        delivery: Delivery::Whole,
    };
    let mut told = Vec::new();
    within(client.answer(request, &mut |one| told.push(one)))
        .await
        .expect("an answer");
    let [Told::Notice(notice)] = told.as_slice() else {
        panic!("{told:?}")
    };
    assert_eq!(notice.code, NoticeCode::ContextCut);
    assert!(
        notice.message.contains("34 reached the model") && notice.message.contains("num_ctx is 64"),
        "{}",
        notice.message
    );
    let sent = &provider.requests()[0];
    assert_eq!(
        (&sent["options"]["num_ctx"], &sent["keep_alive"]),
        (&json!(64), &json!("10m"))
    );
    // One that saw everything is left alone.
    let (_, told) = ask(&client, Delivery::Whole).await;
    assert!(
        told.iter()
            .all(|one| !matches!(one, Told::Notice(notice) if notice.message.contains("reached")))
    );
}

#[tokio::test]
async fn dropping_the_answer_ends_the_exchange() {
    let provider = StrictProvider::start(
        Dialect::Anthropic,
        [Line::Hangs(Said::text("One two"), 200), Line::says("Next")],
    )
    .await;
    let client = Client::new(provider.settings()).expect("good settings");
    let messages = [Message::human("Hello")];
    let request = ModelRequest {
        messages: &messages,
        tools: &[],
        choice: ToolChoice::Auto,
        delivery: Delivery::Streaming,
    };
    {
        let mut ignore = |_| {};
        let answer = client.answer(request, &mut ignore);
        let asked = async {
            while provider.requests().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within(async {
            tokio::select! {
                _ = answer => panic!("it hangs"),
                () = asked => {}
            }
        })
        .await;
    }
    let (reply, _) = ask(&client, Delivery::Streaming).await;
    assert_eq!(reply.expect("an answer").message.content.text(), "Next");
}
