//! The configuration in force, and reading it again.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use super::status::{self, Refused, Why};
use super::{App, shapes};
use crate::views;
use steadyhand_config::Problem;

/// The settings in force
///
/// Each with its value and where it comes from; secrets are not shown.
#[utoipa::path(
    get,
    operation_id = "get_config",
    path = "/v1/config",
    tag = "configuration",
    responses(
        (status = 200, description = "The settings", body = shapes::EffectiveConfig),
        shapes::Errors,
    )
)]
pub async fn show(State(app): State<Arc<App>>) -> Response {
    status::answer(&effective(&app))
}

/// The settings in force, and how the last change of them went.
pub fn effective(app: &App) -> Value {
    let generation = app.runtime.generation();
    let mut view = views::settings::effective(&generation.configuration);
    view["generation"] = json!(generation.number);
    view["last_reload"] = match app.runtime.last_reload() {
        None => Value::Null,
        Some(Ok(_)) => json!({"ok": true}),
        Some(Err(report)) => json!({"ok": false, "problems": in_json(&report.problems)}),
    };
    view
}

/// Read the configuration again
///
/// Checked first. With a problem everything stays as it is, and the answer says what is wrong.
#[utoipa::path(
    post,
    operation_id = "reload_config",
    path = "/v1/config/reload",
    tag = "configuration",
    responses(
        (status = 200, description = "The new configuration is in force", body = shapes::ReloadResult),
        shapes::ReloadErrors,
    )
)]
pub async fn reload(State(app): State<Arc<App>>) -> Result<Response, Refused> {
    match app.runtime.reload().await {
        Ok(generation) => {
            let warnings = in_json(&app.runtime.generation().configuration.warnings);
            Ok(status::answer(
                &json!({"generation": generation, "warnings": warnings}),
            ))
        }
        Err(report) => Err(Refused::new(
            Why::ConfigInvalid,
            report.to_string(),
            "Mend the file and reload it; until then the configuration in force stays",
        )
        .with("problems", json!(in_json(&report.problems)))),
    }
}

fn in_json(problems: &[Problem]) -> Vec<Value> {
    problems.iter().map(Problem::to_json).collect()
}
