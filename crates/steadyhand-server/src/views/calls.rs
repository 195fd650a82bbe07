//! Past calls: asking for them, and running one again.

use std::sync::Arc;
use std::time::Duration;

use steadyhand::Call;
use tokio::time::{Instant, sleep};

use steadyhand_runtime::runtime::Runtime;
use steadyhand_store::history::{CallRecord, CallState, HealthState, History, HistoryError};

/// How long a history that is being opened is waited for.
const OPENING_MAX: Duration = Duration::from_secs(2);
const OPENING_LOOK: Duration = Duration::from_millis(20);

/// Asks the database where waiting is no harm. One that is still being opened is waited for.
pub async fn ask<T: Send + 'static>(
    history: &History,
    question: impl Fn(&History) -> Result<T, HistoryError> + Send + Sync + 'static,
) -> Result<T, HistoryError> {
    let question = Arc::new(question);
    let until = Instant::now() + OPENING_MAX;
    loop {
        let (asked, of) = (Arc::clone(&question), history.clone());
        let answer = tokio::task::spawn_blocking(move || asked(&of)).await;
        match answer {
            Ok(Err(HistoryError::Unavailable(_)))
                if history.health().state == HealthState::Ok && Instant::now() < until =>
            {
                sleep(OPENING_LOOK).await;
            }
            Ok(answer) => return answer,
            Err(error) => return Err(HistoryError::Unavailable(error.to_string())),
        }
    }
}

/// Why a call cannot be run again.
pub enum NotAgain {
    /// Its tool is not there any more.
    NoSuchTool(String),
    /// It could do something twice, or something else.
    NotSafe { message: String, help: String },
}

/// The call of a record, made anew and linked to it. A tool that is not known to be safe to repeat is run again only
/// by force.
pub fn again(runtime: &Runtime, record: CallRecord, force: bool) -> Result<Call, NotAgain> {
    let CallRecord { call, details } = record;
    let not_safe = |message: String, help: &str| NotAgain::NotSafe {
        message,
        help: help.to_owned(),
    };
    let Some(policy) = runtime.manager().policy(&call.tool) else {
        return Err(NotAgain::NoSuchTool(call.tool));
    };
    if call.state == CallState::Running {
        return Err(not_safe(
            format!("{} still runs", call.id),
            "Wait for its end, or cancel it",
        ));
    }
    let arguments = match details.arguments {
        Some(arguments) if !details.arguments_incomplete => arguments,
        _ => {
            return Err(not_safe(
                format!(
                    "the arguments of {} are not kept whole: they hold secrets, are too large, or were never read",
                    call.id
                ),
                "Call the tool again with its arguments",
            ));
        }
    };
    if !policy.safe_to_repeat && !force {
        return Err(not_safe(
            format!(
                "{} is not known to be safe to repeat: running it again may do it twice",
                call.tool
            ),
            "Say so with --force (force=true), or set idempotent = true for the tool",
        ));
    }
    Ok(Call::new(call.tool, arguments).replay_of(call.id))
}
