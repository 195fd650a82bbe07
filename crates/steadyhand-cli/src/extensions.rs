//! Puts together what the configuration is read with: all kinds of tools, and all checks.

use std::sync::LazyLock;

use steadyhand_config::extensions::{Extensions, SectionChecks};
use steadyhand_runtime::access::Jwt;
use steadyhand_runtime::source::{self, builtin};
use steadyhand_server::alerts::Rule;
use steadyhand_server::telemetry::otlp;
use steadyhand_voice::mqtt;

/// What this program reads configurations with.
pub static EXTENSIONS: LazyLock<Extensions> = LazyLock::new(|| {
    let kinds = source::KINDS.iter().map(|kind| &kind.settings);
    let checks = SectionChecks {
        jwt: Jwt::check,
        alert: Rule::check,
        telemetry: otlp::check,
        mqtt: mqtt::check,
    };
    Extensions::new(
        kinds.collect(),
        &source::mcp::SERVER.settings,
        builtin::names(),
        checks,
    )
});
