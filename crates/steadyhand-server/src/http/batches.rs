//! Batches: many calls at once, as many outcomes, in the same order (SPEC R10).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use steadyhand::Call;
use utoipa::ToSchema;

use super::calls::{CallBody, ViewAsked, Viewed};
use super::limits::{Sent, Wanted};
use super::status::{self, Refused};
use super::{App, Asked, Caller, shapes};

/// Calls of one request.
pub(super) const CALLS_MAX: usize = 10_000;

/// Many calls
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"calls": [{"name": "echo", "args": {"text": "hello"}}, {"name": "nothing"}]}))]
pub(crate) struct Batch {
    #[schema(max_items = 10_000)]
    #[serde(deserialize_with = "at_most")]
    calls: Vec<CallBody>,
}

impl Wanted for Batch {
    const EXAMPLE: &'static str = r#"{"calls": [{"name": "echo", "args": {"text": "hello"}}]}"#;
}

/// Stops at the first call too many, before all of them take up memory.
fn at_most<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<CallBody>, D::Error> {
    struct Calls;

    impl<'de> Visitor<'de> for Calls {
        type Value = Vec<CallBody>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list of calls")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<CallBody>, A::Error> {
            let mut calls = Vec::new();
            while let Some(call) = list.next_element()? {
                if calls.len() == CALLS_MAX {
                    let words = format!("more than {CALLS_MAX} calls; send them in parts");
                    return Err(A::Error::custom(words));
                }
                calls.push(call);
            }
            Ok(calls)
        }
    }

    from.deserialize_seq(Calls)
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
