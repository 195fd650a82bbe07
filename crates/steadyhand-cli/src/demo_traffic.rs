//! Quiet traffic for the dashboard of the demo set: six calls a minute that say what they are, and a few at the start.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::{Value, json};
use steadyhand::Call;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use steadyhand_server::http::App;

/// Who calls, wherever calls are listed.
const CALLER: &str = "demo traffic";
const PAUSE: Duration = Duration::from_secs(10);
/// Somebody is asked for a yes so often, in calls: every five minutes, which is when the one before has expired.
const ASK_EVERY: usize = 30;
/// Calls that may be under way at once; a turn is left out rather than piled up.
const RUNNING_MAX: usize = 8;

/// Makes calls for as long as it is awaited. What still runs then is cancelled.
pub(crate) async fn traffic(app: &App) -> Infallible {
    let caller: Arc<str> = CALLER.into();
    let call = |(tool, arguments): (&str, Value)| {
        let call = Call::new(tool, arguments);
        let caller = Arc::clone(&caller);
        // Whatever becomes of it is seen in the dashboard; where there is no room, the turn is left out.
        async move { drop(app.execute_own(call, &caller).await) }
    };
    let mut running: FuturesUnordered<_> = opening().into_iter().map(call).collect();
    let mut pace = interval_at(Instant::now() + PAUSE, PAUSE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut turn = 0;
    loop {
        tokio::select! {
            _ = pace.tick() => {
                if running.len() < RUNNING_MAX {
                    running.push(call(usual(turn)));
                }
                turn += 1;
                if turn % ASK_EVERY == 0 {
                    running.push(call(question()));
                }
            }
            Some(()) = running.next(), if !running.is_empty() => {}
        }
    }
}

/// At once, so that there is something to see: the breaker of `flaky` opens, a report is being built, a door waits.
fn opening() -> Vec<(&'static str, Value)> {
    vec![
        ("weather", json!({"city": "Oslo"})),
        ("weather", json!({"city": "Rome"})),
        ("calculator", json!({"expression": "(18.5 * 4) / 3"})),
        ("flaky", json!({"stop": "Harbour"})),
        ("flaky", json!({"stop": "Station"})),
        ("slow_report", json!({"month": "March"})),
        question(),
    ]
}

/// One after the other. The first trial of `flaky` comes after half a minute: until then its breaker is seen open.
fn usual(turn: usize) -> (&'static str, Value) {
    match turn % 6 {
        0 => ("weather", json!({"city": "Oslo"})),
        1 => ("calculator", json!({"expression": "sqrt(3^2 + 4^2)"})),
        2 => ("flaky", json!({"stop": "Harbour"})),
        3 => ("slow_report", json!({"month": "April"})),
        4 => ("weather", json!({"city": "Bergen"})),
        _ => ("flaky", json!({"stop": "Station"})),
    }
}

fn question() -> (&'static str, Value) {
    ("door_unlock", json!({"door": "front"}))
}
