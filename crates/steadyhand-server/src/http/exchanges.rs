//! Exchanges with providers that went through the proxy and in which something was mended, refused or broken.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::status::{self, Refused, Why};
use super::{App, Asked, shapes};
use steadyhand_store::history::Exchange;

const LIMIT: usize = 50;

/// Which of them.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ExchangesAsked {
    /// The key of a record: those before it
    before: Option<String>,
    /// 1 to 1000; 50 if not said
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// A page of them
#[derive(Serialize, ToSchema)]
#[schema(as = ExchangePage)]
pub struct Exchanges {
    pub exchanges: Vec<Exchange>,
    /// Where the next page begins: its `before`
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    next: Option<String>,
}

/// Exchanges with providers
///
/// Those through the proxy in which something was mended, refused or broken, the newest first. What was said in them is not kept.
#[utoipa::path(
    get,
    operation_id = "list_exchanges",
    path = "/v1/exchanges",
    tag = "conversations",
    params(ExchangesAsked),
    responses(
        (status = 200, description = "A page of them", body = Exchanges),
        shapes::Errors,
    )
)]
pub async fn list(
    State(app): State<Arc<App>>,
    Asked(asked): Asked<ExchangesAsked>,
) -> Result<Response, Refused> {
    let limit = asked.limit.map_or(LIMIT, |limit| limit as usize);
    if !(1..=1000).contains(&limit) {
        return Err(Refused::new(
            Why::BadRequest,
            format!("limit is {limit}"),
            "Give 1 to 1000",
        ));
    }
    Ok(status::answer(&page(&app, asked.before, limit).await?))
}

/// So many of them, the newest first.
pub async fn page(app: &App, before: Option<String>, limit: usize) -> Result<Exchanges, Refused> {
    let history = app.history.clone();
    let read = move || history.exchanges(before.as_deref(), limit);
    let page = tokio::task::spawn_blocking(read).await;
    let exchanges = match page {
        Ok(Ok(page)) => page,
        Ok(Err(error)) => {
            let help = "GET /health/ready says how the history fares";
            return Err(Refused::new(Why::NoHistory, error.to_string(), help));
        }
        Err(error) => {
            return Err(Refused::new(
                Why::Unexpected,
                format!("the history could not be read: {error}"),
                "This should not happen: please report it",
            ));
        }
    };
    let next = match exchanges.len() == limit {
        true => exchanges.last().map(|last| last.key.clone()),
        false => None,
    };
    Ok(Exchanges { exchanges, next })
}
