//! What of the settings is taken over at the start, and again with every new configuration.

use std::sync::Arc;

use super::settings::Settings;
use crate::access::Budget;
use crate::http::App;

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

/// Who is told of what, and how long a yes is waited for, from here on.
pub(super) fn watch_over(app: &App, settings: &Settings) {
    app.desk.set_wait(settings.approval_wait);
    let before = app.budget.load();
    if before.as_ref().map(|budget| &budget.settings) != settings.budget.as_ref() {
        let budget = settings.budget.clone().map(Budget::new);
        app.budget.store(budget.map(Arc::new));
    }
    match &settings.alerts {
        Ok(alerts) => app.alerts.apply(alerts),
        Err(problem) => {
            tracing::error!("alerts are not told as the configuration says: {problem}");
        }
    }
}
