//! Where exports go, and what they say about who sends them.

use std::time::Duration;

use opentelemetry_proto::tonic::resource::v1::Resource;

use super::message::text;
use crate::config::settings::TelemetrySettings;
use crate::net::header::{HeaderMap, HeaderName, HeaderValue};
use crate::net::request::site;
use crate::net::{Reach, Url};

const METRICS_EVERY: Duration = Duration::from_secs(60);
/// More often would be load, not news.
const METRICS_EVERY_MIN: Duration = Duration::from_secs(1);

pub(super) struct Target {
    pub(super) traces: Url,
    pub(super) metrics: Url,
    pub(super) headers: HeaderMap,
    pub(super) reach: Reach,
    /// As messages may show it.
    pub(super) site: String,
    pub(super) metrics_every: Duration,
    pub(super) resource: Resource,
}

/// What is wrong with these settings, as far as it can be seen before references are replaced.
pub fn check(settings: &TelemetrySettings) -> Result<(), String> {
    let otlp = settings.otlp.as_ref();
    let is_reference = |text: &&crate::config::SecretText| text.expose().contains("${");
    match otlp.filter(is_reference) {
        Some(_) => Ok(()),
        None => Target::read(settings).map(|_| ()),
    }
}

impl Target {
    /// The settings, read; `None` when they ask for nothing.
    pub(super) fn read(settings: &TelemetrySettings) -> Result<Option<Target>, String> {
        let Some(otlp) = &settings.otlp else {
            return Ok(None);
        };
        // Its text is not repeated: it may hold a key.
        let base = Url::parse(otlp.expose().trim())
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or("telemetry.otlp is no http or https URL; write one such as \"http://127.0.0.1:4318\"")?;
        Ok(Some(Target {
            traces: below(&base, "v1/traces"),
            metrics: below(&base, "v1/metrics"),
            headers: headers(settings)?,
            reach: Reach::public_only().and(&base),
            site: site(&base),
            metrics_every: settings
                .metrics_every
                .map_or(METRICS_EVERY, |every| every.0.max(METRICS_EVERY_MIN)),
            resource: resource(settings),
        }))
    }
}

fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}

fn headers(settings: &TelemetrySettings) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &settings.headers {
        let wrong = |what: &str| {
            format!("telemetry.headers: {what} of \"{name}\" cannot stand in a header")
        };
        let header: HeaderName = name.parse().map_err(|_| wrong("the name"))?;
        let mut value = HeaderValue::from_str(value.expose()).map_err(|_| wrong("the value"))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    headers.insert(
        "content-type",
        HeaderValue::from_static("application/x-protobuf"),
    );
    Ok(headers)
}

fn resource(settings: &TelemetrySettings) -> Resource {
    let service = settings.service.as_deref().unwrap_or("steadyhand");
    Resource {
        attributes: vec![
            text("service.name", service),
            text("service.version", env!("CARGO_PKG_VERSION")),
            text("service.instance.id", &uuid::Uuid::new_v4().to_string()),
        ],
        ..Resource::default()
    }
}
