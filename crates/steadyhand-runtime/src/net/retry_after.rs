//! When a service wants to be asked again: `Retry-After` and its relatives.

use std::time::{Duration, SystemTime};

use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// Longer is nobody's patience; what is said beyond counts as this.
const WAIT_MAX: Duration = Duration::from_secs(365 * 24 * 3600);
/// Numbers above are moments (seconds since 1970), below they are spans: this is in 2001.
const EPOCH_FROM_SECS: f64 = 1e9;

/// The wait a service asks for. Zero, the past and garbage mean that it did not say.
pub fn wait(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let said = exact_ms(headers).or_else(|| retry_after(headers));
    // These headers come with every answer; only after "too many" do they mean "come back then".
    let implied = || match status {
        StatusCode::TOO_MANY_REQUESTS => window_reset(headers),
        _ => None,
    };
    said.or_else(implied)
        .filter(|wait| !wait.is_zero())
        .map(|wait| wait.min(WAIT_MAX))
}

/// `retry-after-ms` (OpenAI, Azure) is the most exact.
fn exact_ms(headers: &HeaderMap) -> Option<Duration> {
    ["retry-after-ms", "x-ms-retry-after-ms"]
        .into_iter()
        .find_map(|name| number(headers, name))
        .and_then(|ms| seconds(ms / 1000.0))
}

/// Seconds, or an HTTP date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(number) = text.parse::<f64>() {
        return seconds(number);
    }
    let moment = httpdate::parse_http_date(text).ok()?;
    moment.duration_since(now(headers)).ok()
}

/// The IETF's `RateLimit-Reset` (a span), GitHub's `X-RateLimit-Reset` (a moment), Discord's
/// `X-RateLimit-Reset-After` (a span with a fraction).
fn window_reset(headers: &HeaderMap) -> Option<Duration> {
    let number = [
        "x-ratelimit-reset-after",
        "ratelimit-reset",
        "x-ratelimit-reset",
    ]
    .into_iter()
    .find_map(|name| number(headers, name))?;
    if number < EPOCH_FROM_SECS {
        return seconds(number);
    }
    let moment = SystemTime::UNIX_EPOCH + seconds(number)?;
    moment.duration_since(now(headers)).ok()
}

/// The service's own clock where it tells it, so that a wrong clock here does not matter.
fn now(headers: &HeaderMap) -> SystemTime {
    headers
        .get(DATE)
        .and_then(|date| date.to_str().ok())
        .and_then(|date| httpdate::parse_http_date(date).ok())
        .unwrap_or_else(|| jiff::Timestamp::now().into())
}

fn number(headers: &HeaderMap, name: &str) -> Option<f64> {
    let text = headers.get(name)?.to_str().ok()?;
    text.trim().parse().ok()
}

fn seconds(number: f64) -> Option<Duration> {
    // Too large for a Duration, or not a number: the first is the longest wait, the second none.
    match number.is_finite() && number >= 0.0 {
        true => Some(
            Duration::try_from_secs_f64(number)
                .unwrap_or(WAIT_MAX)
                .min(WAIT_MAX * 100),
        ),
        false => None,
    }
}
