//! Where exports go, and what they say about who sends them.

use std::time::Duration;

use opentelemetry_proto::tonic::resource::v1::Resource;

use super::message::text;
use steadyhand_config::SecretText;
use steadyhand_config::document::escaped;
use steadyhand_config::extensions::Fault;
use steadyhand_config::settings::TelemetrySettings;
use steadyhand_runtime::net::header::{HeaderMap, HeaderName, HeaderValue};
use steadyhand_runtime::net::request::site;
use steadyhand_runtime::net::{Reach, Url};

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

/// Everything that is wrong with these settings, as far as it can be seen before references are replaced.
pub fn check(settings: &TelemetrySettings) -> Vec<Fault> {
    let mut faults = Vec::new();
    let is_reference = |text: &SecretText| text.expose().contains("${");
    if let Some(otlp) = &settings.otlp
        && !is_reference(otlp)
        && base(otlp).is_none()
    {
        faults.push(Fault {
            at: "/otlp".to_owned(),
            message: NO_URL.to_owned(),
            help: None,
        });
    }
    for (name, value) in &settings.headers {
        if let Err(message) = header(name, value)
            && !is_reference(value)
        {
            faults.push(Fault {
                at: format!("/headers/{}", escaped(name)),
                message,
                help: None,
            });
        }
    }
    faults
}

const NO_URL: &str = "this is no http or https URL; write one such as \"http://127.0.0.1:4318\"";

fn base(otlp: &SecretText) -> Option<Url> {
    let url = Url::parse(otlp.expose().trim()).ok();
    url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

impl Target {
    /// The settings, read; `None` when they ask for nothing.
    pub(super) fn read(settings: &TelemetrySettings) -> Result<Option<Target>, String> {
        let Some(otlp) = &settings.otlp else {
            return Ok(None);
        };
        // Its text is not repeated: it may hold a key.
        let base = base(otlp).ok_or_else(|| format!("telemetry.otlp: {NO_URL}"))?;
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
        let (name, value) =
            header(name, value).map_err(|why| format!("telemetry.headers: {why}"))?;
        headers.insert(name, value);
    }
    headers.insert(
        "content-type",
        HeaderValue::from_static("application/x-protobuf"),
    );
    Ok(headers)
}

fn header(name: &str, value: &SecretText) -> Result<(HeaderName, HeaderValue), String> {
    let wrong = |what: &str| format!("{what} of \"{name}\" cannot stand in a header");
    let header: HeaderName = name.parse().map_err(|_| wrong("the name"))?;
    let mut value = HeaderValue::from_str(value.expose()).map_err(|_| wrong("the value"))?;
    value.set_sensitive(true);
    Ok((header, value))
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
