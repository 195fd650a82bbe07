//! Calls: run one, list and look at them, run one again, end one that runs.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steadyhand::{
    Arguments, Call, FlatView, Outcome, RepeatedName, StructuredView, ToolMessage, clock, cut,
    typed_json,
};
use utoipa::{IntoParams, ToSchema};

use super::limits::{Sent, Wanted};
use super::status::{self, Refused, Why};
use super::who::CallerHeaders;
use super::{App, Asked, Asking, Caller, Named, RunningCall, body_faults, history, shapes};

/// Ids and keys are names, not documents.
const NAME_CHARS_MAX: usize = 256;
const DEADLINE_MS_MAX: u64 = 3_600_000;

/// One request to run one tool.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CallRequest, example = json!({"name": "echo", "args": {"text": "hello"}}))]
pub struct CallBody {
    /// The tool, by name or alias
    #[schema(min_length = 1, max_length = 256)]
    name: String,
    /// What the tool is to work with: an object, or the JSON text a model wrote
    #[serde(default)]
    #[schema(required = false)]
    args: Value,
    /// Names the call in histories and conversations; made up if not given
    #[schema(min_length = 1, max_length = 256)]
    id: Option<String>,
    /// The limit for the whole call, waits and retries included
    #[schema(maximum = 3_600_000)]
    deadline_ms: Option<u64>,
    /// The limit for one attempt
    #[schema(maximum = 3_600_000)]
    timeout_ms: Option<u64>,
    /// Calls with the same key and arguments happen once
    #[schema(min_length = 1, max_length = 256)]
    idempotency_key: Option<String>,
    /// false: one attempt only
    retry: Option<bool>,
    /// Ignored: LangChain's tool calls have it
    #[serde(rename = "type")]
    #[allow(
        dead_code,
        reason = "so that a LangChain tool call can be sent as it is"
    )]
    kind: Option<String>,
}

impl Wanted for CallBody {
    const SHAPE: &'static str = "an object: {name, args}";
    const EXAMPLE: &'static str = r#"{"name": "echo", "args": {"text": "hello"}}"#;
}

impl CallBody {
    /// The call in a JSON text. What is none stands for itself as a malformed call, which has an outcome of its own.
    pub fn read(text: &str) -> Call {
        let repeated = RepeatedName::first_in(text);
        let body: Result<CallBody, _> = typed_json::from_str(text);
        let fault = match body.map(CallBody::into_call) {
            _ if repeated.is_some() => repeated.map(|repeated| repeated.message()),
            Ok(Ok(call)) => return call,
            Ok(Err(refused)) => Some(refused.in_words()),
            Err(_) => None,
        };
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let fault = fault.unwrap_or_else(|| CallBody::fault_of(&value));
        let said = |field: &str| value[field].as_str().filter(|said| !said.is_empty());
        let id = said("id").map_or_else(clock::new_id, |id| cut::text(id, NAME_CHARS_MAX));
        let name = cut::text(said("name").unwrap_or_default(), NAME_CHARS_MAX);
        Call::malformed(id, name, fault)
    }

    /// What is wrong with something that was sent as a call, and what one is.
    pub fn fault_of(value: &Value) -> String {
        let fault = body_faults::of::<CallBody>(value);
        let fault = fault.map(|fault| fault.replace("the body", "it"));
        let fault = fault.unwrap_or_else(|| "it cannot be read".to_owned());
        format!("{fault}. Send {}", CallBody::SHAPE)
    }

    /// The call, if its names and times are within reason.
    pub fn into_call(self) -> Result<Call, Refused> {
        check_name("name", &self.name, 1)?;
        let args = match self.args {
            Value::String(text) => Arguments::Text(text),
            value => Arguments::Json(value),
        };
        let mut call = match self.id {
            Some(id) => {
                check_name("id", &id, 1)?;
                Call::with_id(id, self.name, args)
            }
            None => Call::new(self.name, args),
        };
        if let Some(key) = self.idempotency_key {
            check_name("idempotency_key", &key, 1)?;
            call = call.idempotency_key(key);
        }
        call.deadline = time("deadline_ms", self.deadline_ms)?;
        call.timeout = time("timeout_ms", self.timeout_ms)?;
        call.retry = self.retry.unwrap_or(true);
        Ok(call)
    }
}

fn check_name(field: &str, name: &str, chars_min: usize) -> Result<(), Refused> {
    let chars = name.chars().count();
    if (chars_min..=NAME_CHARS_MAX).contains(&chars) {
        return Ok(());
    }
    Err(Refused::new(
        Why::BadRequest,
        format!("{field} has {chars} characters"),
        format!("Give it {chars_min} to {NAME_CHARS_MAX}"),
    ))
}

fn time(field: &str, ms: Option<u64>) -> Result<Option<Duration>, Refused> {
    match ms {
        Some(ms) if ms > DEADLINE_MS_MAX => Err(Refused::new(
            Why::BadRequest,
            format!("{field} is {ms}, and no call may take longer than an hour"),
            format!("Give at most {DEADLINE_MS_MAX}"),
        )),
        ms => Ok(ms.map(Duration::from_millis)),
    }
}

/// The shape of an outcome (SPEC D1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = OutcomeView)]
pub enum View {
    /// `{toolName, callId, status, output?, error?, executionTime, …}`
    #[default]
    Structured,
    /// `{success, result?, error?, tool_name, execution_time_ms}`
    Flat,
    /// A LangChain ToolMessage
    Message,
}

/// An outcome in a view.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Viewed<'a> {
    Structured(StructuredView<'a>),
    Flat(FlatView<'a>),
    Message(Box<ToolMessage>),
}

impl View {
    pub fn of(self, outcome: &Outcome) -> Viewed<'_> {
        match self {
            View::Structured => Viewed::Structured(outcome.structured()),
            View::Flat => Viewed::Flat(outcome.flat()),
            View::Message => Viewed::Message(Box::new(outcome.message())),
        }
    }
}

/// How the outcome is wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ViewAsked {
    /// structured if not said
    #[serde(default)]
    #[param(required = false)]
    pub view: View,
}

/// Run one tool
///
/// Every outcome, failures included, is status 200: the outcome is the answer.
#[utoipa::path(
    post,
    operation_id = "create_call",
    path = "/v1/calls",
    tag = "calls",
    params(ViewAsked, CallerHeaders),
    request_body = CallBody,
    responses(
        (status = 200, description = "How the call ended", body = shapes::AnyOutcome,
         headers(
             ("steadyhand-outcome" = shapes::OutcomeStatus, description = "How the call ended"),
             ("steadyhand-code" = shapes::FailureCode, description = "Why it failed; absent if it did not"),
             ("steadyhand-fallback" = String, description = "`used` where a fallback answered; absent otherwise"),
             ("steadyhand-call-id" = String, description = "The call; absent where its id is not ASCII"),
         )),
        shapes::BodyErrors,
    )
)]
pub async fn run(
    State(app): State<Arc<App>>,
    Asked(asked): Asked<ViewAsked>,
    caller: Caller,
    sent: Sent<CallBody>,
) -> Result<Response, Refused> {
    let call = caller.of(sent.value.into_call()?);
    let outcome = app.execute(call, &caller).await?;
    let (outcome, text) = caller.answer(outcome, asked.view);
    Ok(status::outcome(&outcome, text))
}

/// End a call that runs
///
/// Its caller gets the outcome CANCELLED, with what is known of its effect.
#[utoipa::path(
    delete,
    operation_id = "cancel_call",
    path = "/v1/calls/{id}",
    tag = "calls",
    params(("id" = String, Path, description = "The call's id, the beginning of one, or last")),
    responses(
        (status = 200, description = "It is being ended", body = shapes::CallCancelled),
        shapes::RunErrors,
    )
)]
pub async fn cancel(
    State(app): State<Arc<App>>,
    Named(id): Named,
    Asking(identity): Asking,
) -> Result<Response, Refused> {
    let is_meant = |call: &RunningCall| identity.may_end(&call.caller);
    let cancelled = app.admission.running.cancel(&id, is_meant);
    if cancelled > 0 {
        return Ok(status::answer(&json!({"id": id, "cancelled": cancelled})));
    }
    let record = history::find(&app, &identity, &id).await?;
    // By the beginning of its id, or as the last.
    let id = &record.call.id;
    let cancelled = app.admission.running.cancel(id, is_meant);
    if cancelled > 0 {
        return Ok(status::answer(&json!({"id": id, "cancelled": cancelled})));
    }
    Err(Refused::new(
        Why::CallHasEnded,
        format!(
            "the call {id:?} does not run any more: {}",
            record.call.state.as_str()
        ),
        format!("GET /v1/calls/{} says how it ended", record.call.key),
    ))
}
