//! A provider that never stops sending: the time there is holds, memory stays bounded, and other models on the same thread
//! answer meanwhile.

use std::time::Duration;

use steadyhand::Message;
use steadyhand_models::testing::{Line, StrictProvider};
use steadyhand_models::{
    Client, Delivery, Dialect, Model, ModelError, ModelErrorKind, ModelRequest, ModelSettings,
    Patience, ToolChoice,
};
use tokio::time::Instant;

use super::flooding::{ALL, Flood, MB, flooding, packed, resident};
use super::support::{BOTH, within};

fn client(settings: ModelSettings) -> Client {
    let mut settings = settings.patience(Patience {
        connect: Duration::from_secs(2),
        first: Duration::from_millis(250),
        next: Duration::from_millis(250),
        whole: Duration::from_millis(300),
        retry_wait_max: Duration::from_secs(1),
    });
    settings.attempts = 1;
    Client::new(settings).expect("good settings")
}

async fn ask(client: &Client, delivery: Delivery) -> Result<String, ModelError> {
    let messages = [Message::human("Hello")];
    let request = ModelRequest {
        messages: &messages,
        tools: &[],
        choice: ToolChoice::Auto,
        delivery,
    };
    let reply = within(client.answer(request, &mut |_| {})).await?;
    Ok(reply.message.content.text().into_owned())
}

#[tokio::test]
async fn s01_a_provider_that_never_stops_breaks_no_time_limit_and_holds_up_no_other_model() {
    packed();
    for flood in ALL {
        for delivery in BOTH {
            let before = resident();
            let kind = match delivery {
                Delivery::Streaming => "text/event-stream",
                Delivery::Whole => "application/json",
            };
            let settings = ModelSettings::new(Dialect::OpenAi, "m").key("sk-flooded");
            let flooded = client(settings.url(flooding(flood, kind)));
            let lines = (0..5).map(|_| Line::says("Hi"));
            let good = StrictProvider::start(Dialect::OpenAi, lines).await;
            let other = Client::new(good.settings()).expect("good settings");
            let began = Instant::now();
            let attacked = async {
                let error = ask(&flooded, delivery).await.expect_err("it fails");
                (error, began.elapsed())
            };
            let others = async {
                for _ in 0..5 {
                    assert_eq!(ask(&other, delivery).await.expect("an answer"), "Hi");
                }
                began.elapsed()
            };
            let ((error, took), others) = tokio::join!(attacked, others);
            let what = format!("{flood:?} {delivery:?}: {error}");
            // Not to hang is what counts: on a busy machine 0.3 s may be more, above all under reqwest, which takes millions
            // of `100 Continue` in one turn and lets nobody read for it in parts.
            assert!(took < Duration::from_secs(40), "{what} after {took:?}");
            assert!(others < Duration::from_secs(40), "{what}: {others:?}");
            let kinds: &[ModelErrorKind] = match flood {
                Flood::Refusal => &[ModelErrorKind::Refused],
                Flood::Trickle => &[ModelErrorKind::Timeout],
                Flood::Header | Flood::Headers => &[ModelErrorKind::BrokeOff],
                _ => &[
                    ModelErrorKind::Timeout,
                    ModelErrorKind::TooLarge,
                    ModelErrorKind::BrokeOff,
                ],
            };
            assert!(kinds.contains(&error.kind), "{what}");
            let more = resident().saturating_sub(before);
            assert!(more < 160 * MB, "{what}: {} MB more", more / MB);
        }
    }
}
