//! Conversations that providers accept: checked, repaired, trimmed, in each provider's own JSON.
//!
//! All of it is pure: JSON goes in, JSON comes out, and every change is reported. Unknown fields survive,
//! and a conversation that is valid comes back as it was, to the last byte.
//!
//! ```
//! use serde_json::json;
//! use steadyhand_conversation::{Provider, What, repair, validate};
//!
//! let broken = json!([
//!     {"role": "user", "content": "What is the weather in Rome?"},
//!     {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "weather", "input": {}}]},
//!     {"role": "user", "content": "Hello?"},
//! ]);
//! let problems = validate(Provider::Anthropic, What::Match, &broken);
//! assert_eq!(problems[0].at, "/1/content/0");
//! assert_eq!(problems[0].code.as_str(), "missing_result");
//!
//! let (repaired, fixes) = repair(Provider::Anthropic, broken);
//! assert_eq!(fixes.len(), 1);
//! assert!(validate(Provider::Anthropic, What::Match, &repaired).is_empty());
//! ```

pub mod client;
mod converted;
mod counts;
mod engine;
mod envelope;
mod explain;
mod host;
mod matching;
mod options;
mod place;
mod problem;
mod providers;
mod recover;
mod request;
mod response;
mod results;
mod stream_state;
#[cfg(feature = "strict")]
pub mod strict;
mod texts;
mod tools;
mod trim;
mod turn;
mod what;

pub use converted::{Converted, LeftOut};
pub use counts::fixes_made;
pub use envelope::{is_one_text, key as messages_key, messages};
pub use explain::explain;
pub use host::Host;
pub use options::{Fate, Options};
pub use problem::{Code, Fix, Problem};
pub use providers::client::ClientFormat;
pub use providers::client::thinking::{ThinkingFilter, apart as without_thinking};
pub use providers::format::{ProviderFormat, SoundRequest};
pub use providers::{Provider, UnknownProvider};
pub use recover::{recover, recover_calls};
pub use response::error_response;
pub use results::{error_result, result_messages};
pub use stream_state::StreamState;
pub use tools::{convert_tools, mcp_tools, short_name};
pub use trim::{Trimmed, trim, trim_by};
pub use turn::Turn;
pub use what::What;

use serde_json::Value;

use problem::Log;

/// How many fixes of one repair get a line of the log.
const FIXES_LOGGED_MAX: usize = 100;

/// What is wrong with a request, a response or a history, each problem with its place (SPEC R01, R02).
///
/// A conversation is a list of messages, or a whole request that has one. Nothing found means that the
/// provider accepts it, as far as its rules are known.
pub fn validate(provider: Provider, what: What, value: &Value) -> Vec<Problem> {
    validate_with(provider, &Options::default(), what, value)
}

/// [`validate`], told more than the JSON says.
pub fn validate_with(
    provider: Provider,
    options: &Options,
    what: What,
    value: &Value,
) -> Vec<Problem> {
    let mut log = Log::default();
    match what {
        What::Response => response::check(provider, value, &mut log),
        What::Request => {
            request::check(provider, options, value, &mut log);
            engine::mend(provider, options, value.clone(), &mut log);
        }
        What::Match => {
            engine::mend_history(provider, options, value.clone(), &mut log);
        }
    }
    log.problems()
}

/// Makes a conversation one that its provider accepts, and reports every change (SPEC R03, L05).
///
/// Pure and total. The same conversation always gives the same result; a repaired one is not changed again;
/// what the user said is never dropped. When a conversation grows, what an earlier repair gave for its
/// beginning stays as it was sent, so that prompt caches keep hitting. Takes a list of messages or a whole
/// request and gives back the same; what no repair can know (a missing `model`) is left to [`validate`].
pub fn repair(provider: Provider, value: Value) -> (Value, Vec<Fix>) {
    repair_with(provider, &Options::default(), value)
}

/// [`repair`], told more than the JSON says: what became of the calls that have no result.
pub fn repair_with(provider: Provider, options: &Options, value: Value) -> (Value, Vec<Fix>) {
    let mut log = Log::default();
    let value = engine::mend(provider, options, value, &mut log);
    (value, told(provider, log))
}

/// Makes a model's response one that its readers can rely on, and reports every change (SPEC R03, R14).
///
/// Takes a whole response, or the model's message itself. Only what has one possible meaning is changed: a missing id is
/// made, arguments get the form they should have, a content that is not there becomes an empty one, and where there
/// is no answer at all, one that says so is put there. Arguments that cannot be read stay as they are, and
/// [`validate`] still names them: made into an object, they could be run. An error of the provider's stays an error.
pub fn repair_response(provider: Provider, response: Value) -> (Value, Vec<Fix>) {
    let mut log = Log::default();
    let response = response::mend(provider, response, &mut log);
    (response, told(provider, log))
}

/// The fixes, counted and logged.
fn told(provider: Provider, log: Log) -> Vec<Fix> {
    let fixes = log.fixes();
    counts::count(provider, &fixes);
    for fix in fixes.iter().take(FIXES_LOGGED_MAX) {
        tracing::info!(provider = provider.as_str(), at = %fix.at, code = fix.code.as_str(), "conversation repaired: {}", fix.message);
    }
    if fixes.len() > FIXES_LOGGED_MAX {
        let more = fixes.len() - FIXES_LOGGED_MAX;
        tracing::info!(
            provider = provider.as_str(),
            "conversation repaired: {more} more fixes"
        );
    }
    fixes
}
