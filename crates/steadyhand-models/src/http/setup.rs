//! What is needed before anything is sent: the address, the headers, the connections.

use std::time::Duration;

use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use secrecy::ExposeSecret;

use crate::error::{ModelError, ModelErrorKind};
use crate::settings::ModelSettings;

const USER_AGENT: &str = concat!("steadyhand/", env!("CARGO_PKG_VERSION"));
/// Shorter than servers commonly keep a silent connection, so that we seldom write into a closing one.
const IDLE_CONNECTION_KEPT: Duration = Duration::from_secs(30);

pub(super) fn address(settings: &ModelSettings) -> Result<Url, ModelError> {
    let dialect = settings.dialect;
    let wrong = |why: String| {
        let message = format!("the url of {dialect} cannot be used: {why}");
        ModelError::new(ModelErrorKind::Settings, message)
            .help(format!("it should look like {}", dialect.public_url()))
    };
    let base = match &settings.url {
        Some(url) => url.expose_secret(),
        None => dialect.public_url(),
    };
    let base = base.trim().trim_end_matches('/');
    let base = dialect.client().base(base);
    let url = Url::parse(&format!("{base}/{}", dialect.path()))
        .map_err(|error| wrong(steadyhand::plain_words::address(&error).to_owned()))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(wrong(format!("it begins with {other}:"))),
    }
}

pub(super) fn headers(settings: &ModelSettings) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let client = settings.dialect.client();
    for (name, value) in client.headers() {
        let name = HeaderName::from_static(name);
        headers.insert(name, HeaderValue::from_static(value));
    }
    let Some(key) = &settings.key else {
        return Ok(headers);
    };
    let (name, value) = client.key_header(key.expose_secret());
    let mut value = HeaderValue::from_str(&value).map_err(|_| {
        let message = format!(
            "the key for {} has characters that no key has",
            settings.dialect
        );
        ModelError::new(ModelErrorKind::Settings, message)
            .help("look for a line break or a quote at its end")
    })?;
    value.set_sensitive(true);
    headers.insert(HeaderName::from_static(name), value);
    Ok(headers)
}

pub(super) fn build(connect: Duration) -> Result<reqwest::Client, String> {
    // Someone may have chosen a provider before us; then theirs stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = || {
        reqwest::Client::builder()
            .user_agent(USER_AGENT)
            // A key goes where it was configured to go, and no further.
            .redirect(Policy::none())
            // No proxy from the environment: a variable someone left behind would see every key.
            .no_proxy()
            .referer(false)
            .connect_timeout(connect)
            .pool_idle_timeout(IDLE_CONNECTION_KEPT)
    };
    builder().build().or_else(|error| {
        // A machine without certificates (a bare container) can still speak plain HTTP to a local model.
        tracing::warn!(%error, "no certificates on this system: https will fail; install ca-certificates or set SSL_CERT_FILE");
        let bare = builder().tls_certs_only([]).build();
        bare.map_err(|error| error.to_string())
    })
}
