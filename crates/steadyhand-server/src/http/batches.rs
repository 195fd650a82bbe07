//! Batches: many calls at once, as many outcomes, in the same order (SPEC R10).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use steadyhand::Call;
use utoipa::ToSchema;

use super::calls::{CallBody, ViewAsked, Viewed};
use super::limits::{Sent, Wanted};
use super::status::{self, Refused, Why};
use super::{App, Asked, Caller, shapes};

const CALLS_MAX: usize = 10_000;

/// Many calls
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"calls": [{"name": "echo", "args": {"text": "hello"}}, {"name": "nothing"}]}))]
pub(crate) struct Batch {
    #[schema(max_items = 10_000)]
    calls: Vec<CallBody>,
}

impl Wanted for Batch {
    const EXAMPLE: &'static str = r#"{"calls": [{"name": "echo", "args": {"text": "hello"}}]}"#;
}

/// Run many tools at once
///
/// Exactly as many outcomes as calls, in their order, whatever happens to each of them.
#[utoipa::path(
    post,
    path = "/v1/batches",
    tag = "calls",
    params(ViewAsked),
    request_body = Batch,
    responses(
        (status = 200, description = "How each call ended", body = shapes::Outcomes),
        shapes::BodyRefusals,
    )
)]
pub(crate) async fn run(
    State(app): State<Arc<App>>,
    Asked(asked): Asked<ViewAsked>,
    caller: Caller,
    sent: Sent<Batch>,
) -> Result<Response, Refused> {
    let count = sent.value.calls.len();
    if count > CALLS_MAX {
        return Err(Refused::new(
            Why::BadRequest,
            format!("the batch has {count} calls, and may have {CALLS_MAX}"),
            "Send it in parts",
        ));
    }
    let calls: Result<Vec<Call>, Refused> = sent
        .value
        .calls
        .into_iter()
        .map(|call| call.into_call(&caller))
        .collect();
    let outcomes = app.execute_all(calls?, &caller).await?;
    let outcomes: Vec<Viewed<'_>> = outcomes
        .iter()
        .map(|outcome| asked.view.of(outcome))
        .collect();
    Ok(status::answer(&Answers { outcomes }))
}

#[derive(Serialize)]
struct Answers<'a> {
    outcomes: Vec<Viewed<'a>>,
}
