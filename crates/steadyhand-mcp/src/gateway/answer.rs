//! Results as clients get them: a server's own, word for word, with our call's id in `_meta`; or made from an outcome.

use std::sync::LazyLock;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use steadyhand::{Content, FailureCode, Outcome, Policy, ToolManager};

use super::client::Client;
use super::era::Era;
use super::errors;
use super::inquiry::Answer;
use super::message::on_one_line;
use super::splice::{Hints, passed};
use super::url_elicitation::relayed;
use crate::client::relay::Passage;

pub(super) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
pub(super) const CALL_ID: &str = "io.steadyhand/callId";
/// The arguments that did not reach the tool (SPEC D20).
pub(super) const DROPPED_ARGUMENTS: &str = "io.steadyhand/droppedArguments";
const FAILURE: &str = "io.steadyhand/error";
/// For whoever answers from what is kept: it is never older than this.
pub(super) const FRESH: &str = "\"ttlMs\":0,\"cacheScope\":\"private\"";

/// Who we are, as a member of `_meta`.
pub(super) fn server_info() -> Value {
    json!({"name": "steadyhand", "version": env!("CARGO_PKG_VERSION")})
}

/// A `_meta` that says who we are.
pub(super) fn server_meta() -> &'static RawValue {
    static META: LazyLock<Box<RawValue>> = LazyLock::new(|| {
        let meta = to_raw_value(&json!({SERVER_INFO: server_info()}));
        meta.unwrap_or_else(|_| RawValue::NULL.to_owned())
    });
    &META
}

/// How the object of a list begins.
pub(super) fn list_start(era: Era) -> &'static str {
    static MODERN: LazyLock<String> = LazyLock::new(|| {
        let meta = server_meta();
        format!("{{\"resultType\":\"complete\",{FRESH},\"_meta\":{meta},")
    });
    match era {
        Era::Legacy(_) => "{",
        Era::Modern => &MODERN,
    }
}

/// A page of a list as a whole result.
pub(super) fn of_list(era: Era, page: &[u8]) -> Bytes {
    let parts: [&[u8]; 3] = [list_start(era).as_bytes(), page, b"}"];
    parts.concat().into()
}

/// A result of our own making.
pub(super) fn of(result: &impl Serialize) -> Answer {
    let mut text = serde_json::to_vec(result)
        .map_err(|error| errors::unanswered(format!("the answer cannot be written: {error}")))?;
    on_one_line(&mut text);
    Ok(text.into())
}

/// A result that says nothing but that it was done.
pub(super) fn done(era: Era) -> Answer {
    match era {
        Era::Legacy(_) => Ok(Bytes::from_static(b"{}")),
        Era::Modern => of(&json!({"resultType": "complete", "_meta": server_meta()})),
    }
}

/// What a tool call is answered with.
pub(super) fn of_call(
    outcome: &Outcome,
    passage: Option<&Passage>,
    client: &Client,
    tools: &ToolManager,
) -> Answer {
    let era = client.era;
    match passage.and_then(Passage::take_answer) {
        Some(Ok(result)) if is_its_own(outcome, &result) && !is_cut(outcome, tools) => {
            return Ok(passed(&result, era, Some(outcome), Hints::None));
        }
        // It is about the protocol between this client and the server, not for a model to read.
        Some(Err(error)) if era.is_modern() && error.code == errors::MISSING_CAPABILITY => {
            return Err(error);
        }
        Some(Err(error)) => {
            if let Some(relayed) = relayed(&error, client, Some(&outcome.call_id)) {
                return Err(relayed);
            }
        }
        Some(Ok(_)) | None => {}
    }
    if let Some(failure) = outcome.failure()
        && failure.code == FailureCode::ToolNotFound
    {
        let text = format!("Unknown tool: {}", outcome.tool_name);
        return Err(errors::invalid(text));
    }
    of(&of_outcome(outcome, era))
}

/// Whether an outcome is what the server said: a success, or its own "no".
fn is_its_own(outcome: &Outcome, result: &RawValue) -> bool {
    match outcome.failure() {
        None => !outcome.replayed,
        Some(failure) => {
            #[derive(Deserialize)]
            struct No {
                #[serde(rename = "isError", default)]
                is_error: bool,
            }
            let is_no =
                || steadyhand::typed_json::from_str::<No>(result.get()).is_ok_and(|no| no.is_error);
            failure.code == FailureCode::ToolExecutionError && outcome.fallback.is_none() && is_no()
        }
    }
}

/// Whether the tool's own settings want its results shorter than this one was. The limit that holds where nobody has
/// set one is for models, not for clients.
fn is_cut(outcome: &Outcome, tools: &ToolManager) -> bool {
    let is_cut = outcome
        .output()
        .is_some_and(|output| output.cut().is_some());
    is_cut && {
        let policy = tools.policy(&outcome.tool_name);
        policy.is_some_and(|it| it.output_bytes_max != Policy::default().output_bytes_max)
    }
}

/// An outcome as the result of a call. A failure is a result, too: the model is to read it.
pub(super) fn of_outcome(outcome: &Outcome, era: Era) -> Value {
    let text = match outcome.message().content {
        Content::Text(text) => text,
        _ => String::new(),
    };
    let mut result = json!({});
    let mut meta = json!({CALL_ID: outcome.call_id});
    if era.is_modern() {
        result["resultType"] = json!("complete");
        meta[SERVER_INFO] = server_info();
    }
    result["content"] = json!([{"type": "text", "text": text}]);
    if let Some(value @ Value::Object(_)) = outcome.output().map(|output| output.value())
        && outcome.is_success()
    {
        result["structuredContent"] = value.clone();
    }
    if let Some(failure) = outcome.failure() {
        result["isError"] = json!(true);
        meta[FAILURE] = json!(failure);
    }
    if !outcome.dropped_arguments.is_empty() {
        meta[DROPPED_ARGUMENTS] = json!(outcome.dropped_arguments);
    }
    result["_meta"] = meta;
    result
}
