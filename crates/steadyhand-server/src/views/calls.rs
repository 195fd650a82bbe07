//! Past calls: running one again.

use steadyhand::Call;

use crate::history::{CallRecord, CallState};
use crate::runtime::Runtime;

/// Why a call cannot be run again.
pub(crate) enum NotAgain {
    /// Its tool is not there any more.
    NoSuchTool(String),
    /// It could do something twice, or something else.
    NotSafe { message: String, help: String },
}

/// The call of a record, made anew and linked to it. A tool that is not known to be safe to repeat is run again only
/// by force.
pub(crate) fn again(runtime: &Runtime, record: CallRecord, force: bool) -> Result<Call, NotAgain> {
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
