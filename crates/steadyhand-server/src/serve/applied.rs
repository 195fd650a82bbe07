//! What of the settings is taken over at the start, and again with every new configuration.

use std::sync::Arc;

use super::settings::{CannotServe, Fault, Settings};
use crate::http::App;
use steadyhand_runtime::access::{Budget, Jwt};
use steadyhand_runtime::runtime::Runtime;

/// Sends traces and metrics where the settings say, from here on.
pub(super) fn export(app: &App, settings: &Settings) {
    let applied = match &settings.telemetry {
        Ok(telemetry) => app.otlp.apply(telemetry),
        Err(problem) => Err(problem.clone()),
    };
    if let Err(problem) = applied {
        tracing::error!("traces and metrics are not sent as the configuration says: {problem}");
    }
}

/// What checks the tokens of an issuer; the one before, where nothing has changed: it knows the issuer's keys.
pub(super) fn jwt_of(
    settings: &Settings,
    before: Option<Arc<Jwt>>,
    runtime: &Runtime,
) -> Result<Option<Arc<Jwt>>, CannotServe> {
    let Some(of) = &settings.jwt else {
        return Ok(None);
    };
    if let Some(before) = before.filter(|before| before.is_of(of)) {
        return Ok(Some(before));
    }
    let made = Jwt::new(of, runtime.http().clone());
    made.map(|jwt| Some(Arc::new(jwt)))
        .map_err(|reason| CannotServe {
            fault: Fault::Settings,
            message: format!("server.jwt: {reason}"),
            help: "steadyhand config check says where".to_owned(),
        })
}

/// Who is told of what, and how long a yes is waited for, from here on.
pub(super) fn watch_over(app: &App, settings: &Settings) {
    app.desk.set_wait(settings.approval_wait);
    app.desk.set_by_caller(settings.approval_by_caller);
    let before = app.admission.budget.load();
    if before.as_ref().map(|budget| &budget.settings) != settings.budget.as_ref() {
        let budget = settings.budget.clone().map(Budget::new);
        app.admission.budget.store(budget.map(Arc::new));
    }
    match &settings.alerts {
        Ok(alerts) => app.alerts.apply(alerts),
        Err(problem) => {
            tracing::error!("alerts are not told as the configuration says: {problem}");
        }
    }
}
