//! Batches: many calls at once, as many outcomes, in the same order (SPEC R10).

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::calls::{CallBody, ViewAsked};
use super::limits::{Sent, Wanted};
use super::status::{self, Refused};
use super::who::CallerHeaders;
use super::{App, Asked, Caller, shapes};

/// Calls of one request.
pub(super) const CALLS_MAX: usize = 10_000;

/// Many calls
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = BatchRequest, example = json!({"calls": [{"name": "echo", "args": {"text": "hello"}}, {"name": "nothing"}]}))]
pub(crate) struct Batch {
    /// One that is no call fails alone, with the outcome `VALIDATION_ERROR` in its place
    #[schema(max_items = 10_000, value_type = Vec<CallBody>)]
    #[serde(deserialize_with = "at_most")]
    calls: Vec<Box<RawValue>>,
}

impl Wanted for Batch {
    const SHAPE: &'static str = "an object: {calls}";
    const EXAMPLE: &'static str = r#"{"calls": [{"name": "echo", "args": {"text": "hello"}}]}"#;
    const IS_ONE_THING: bool = false;
}

/// Stops at the first call too many, before all of them take up memory.
fn at_most<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Box<RawValue>>, D::Error> {
    struct Calls;

    impl<'de> Visitor<'de> for Calls {
        type Value = Vec<Box<RawValue>>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list of calls")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
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
/// Exactly as many outcomes as calls, in their order, whatever happens to each of them. One that is no call, because it
/// names no tool for example, fails alone: its outcome is `VALIDATION_ERROR`, effect `none`.
#[utoipa::path(
    post,
    operation_id = "create_batch",
    path = "/v1/batches",
    tag = "calls",
    params(ViewAsked, CallerHeaders),
    request_body = Batch,
    responses(
        (status = 200, description = "How each call ended", body = shapes::BatchOutcomes),
        shapes::BodyErrors,
    )
)]
pub(crate) async fn run(
    State(app): State<Arc<App>>,
    Asked(asked): Asked<ViewAsked>,
    caller: Caller,
    sent: Sent<Batch>,
) -> Result<Response, Refused> {
    let sent = sent.value.calls.into_iter();
    let calls = sent.map(|text| caller.of(CallBody::read(text.get())));
    let written = |outcome| caller.answer(outcome, asked.view).1;
    let outcomes = app.execute_each(calls.collect(), &caller, written).await?;
    let mut pieces = vec![Bytes::from_static(b"{\"outcomes\":[")];
    for (place, outcome) in outcomes.into_iter().enumerate() {
        if place > 0 {
            pieces.push(Bytes::from_static(b","));
        }
        pieces.push(outcome);
    }
    pieces.push(Bytes::from_static(b"]}"));
    Ok(status::answer_in_pieces(pieces))
}
