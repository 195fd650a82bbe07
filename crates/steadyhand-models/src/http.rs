//! The one HTTP layer under all models: one request, one response, every wait with an end, no key in any text.

mod setup;

use std::error::Error;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Response, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use steadyhand::{CooperativeBudget, with_exact_integers};
use tokio::time::timeout;

use crate::error::{ModelError, ModelErrorKind};
use crate::model::{Delivery, Told};
use crate::settings::{Dialect, ModelSettings, Patience};
use crate::wire::{self, Assembler};

/// How long a stream may stay open once all of the answer is there.
const FAREWELL: Duration = Duration::from_secs(2);
/// What of a stream is read at once. An event may have eight bytes, and takes longer to read than they say: so many
/// bytes of events count as many more.
const PART_BYTES: usize = 4 * 1024;
const EVENTS_COST: usize = 16;
/// The largest body of an error that is read.
const ERROR_BYTES_MAX: usize = 64 * 1024;

/// Speaks to one provider.
pub(crate) struct Http {
    dialect: Dialect,
    model: String,
    url: Url,
    headers: HeaderMap,
    patience: Patience,
    bytes_max: usize,
    /// What no text may show.
    secrets: Vec<SecretString>,
    has_key: bool,
    /// Made when first used: loading the system's certificates takes a moment.
    client: OnceLock<Result<reqwest::Client, String>>,
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Http({} at {})", self.dialect, self.site())
    }
}

impl Http {
    pub(crate) fn new(settings: &ModelSettings) -> Result<Http, ModelError> {
        let dialect = settings.dialect;
        if let (None, None, Some(variable)) = (&settings.key, &settings.url, dialect.key_variable())
        {
            let message = format!("no key for {dialect}");
            return Err(ModelError::new(ModelErrorKind::Unauthorized, message)
                .help(format!("set {variable}, or the key of this model")));
        }
        let url = setup::address(settings)?;
        let mut secrets: Vec<SecretString> = settings.key.clone().into_iter().collect();
        if let Some(password) = url.password() {
            secrets.push(SecretString::from(password.to_owned()));
        }
        Ok(Http {
            dialect,
            model: settings.model.clone(),
            url,
            headers: setup::headers(settings)?,
            patience: settings.patience,
            bytes_max: settings.response_bytes_max,
            secrets,
            has_key: settings.key.is_some(),
            client: OnceLock::new(),
        })
    }

    /// Sends the request once, and reads the response, which a stream is put together to.
    pub(crate) async fn exchange(
        &self,
        body: &[u8],
        delivery: Delivery,
        tell: &mut (dyn FnMut(Told) + Send),
    ) -> Result<Value, ModelError> {
        let result = self.exchange_as_told(body, delivery, tell).await;
        result.map_err(|error| self.tidy(error))
    }

    async fn exchange_as_told(
        &self,
        body: &[u8],
        delivery: Delivery,
        tell: &mut (dyn FnMut(Told) + Send),
    ) -> Result<Value, ModelError> {
        let client = self
            .client
            .get_or_init(|| setup::build(self.patience.connect));
        let client = client.as_ref().map_err(|why| {
            let message = format!("outgoing HTTP cannot be set up: {why}");
            ModelError::new(ModelErrorKind::Settings, message)
        })?;
        let sending = client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .body(body.to_vec())
            .send();
        let response = match timeout(self.patience.first, sending).await {
            Err(_) => return Err(self.too_slow(self.patience.first)),
            Ok(sent) => sent.map_err(|error| self.not_sent(&error))?,
        };
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        if delivery == Delivery::Streaming && !comes_at_once(self.dialect, &response) {
            return self.stream(response, tell).await;
        }
        let body = self.body(response, self.bytes_max).await?;
        // An integer of a tool's arguments that 64 bits cannot hold must not be rounded on its way.
        let text = String::from_utf8_lossy(&body);
        let answer = serde_json::from_str(&with_exact_integers(&text))
            .map_err(|error| self.unreadable(&error, &body))?;
        wire::refuse_repeated_name(self.dialect, &text)?;
        Ok(answer)
    }

    async fn stream(
        &self,
        mut response: Response,
        tell: &mut (dyn FnMut(Told) + Send),
    ) -> Result<Value, ModelError> {
        let mut assembler = Assembler::new(self.dialect, self.bytes_max);
        let mut patience = self.patience.first;
        let mut turn = CooperativeBudget::default();
        loop {
            let is_complete = assembler.is_complete();
            if is_complete {
                patience = FAREWELL.min(self.patience.next);
            }
            let piece = match timeout(patience, response.chunk()).await {
                // What follows the answer is no part of it.
                Err(_) | Ok(Err(_)) if is_complete => break,
                Err(_) => return Err(self.too_slow(patience)),
                Ok(Err(error)) => return Err(self.broke_off(&error)),
                Ok(Ok(piece)) => piece,
            };
            let Some(piece) = piece else { break };
            patience = self.patience.next;
            for part in piece.chunks(PART_BYTES) {
                assembler.push(part, tell)?;
                turn.spend(EVENTS_COST * part.len()).await;
            }
        }
        assembler.finish(tell)
    }

    async fn body(&self, mut response: Response, bytes_max: usize) -> Result<Vec<u8>, ModelError> {
        let mut body = Vec::new();
        let mut turn = CooperativeBudget::default();
        loop {
            let piece = match timeout(self.patience.first, response.chunk()).await {
                Err(_) => return Err(self.too_slow(self.patience.first)),
                Ok(piece) => piece.map_err(|error| self.broke_off(&error))?,
            };
            let Some(piece) = piece else { return Ok(body) };
            if body.len() + piece.len() > bytes_max {
                let message = format!(
                    "the answer of {} is larger than {bytes_max} bytes",
                    self.dialect
                );
                return Err(ModelError::new(ModelErrorKind::TooLarge, message));
            }
            body.extend_from_slice(&piece);
            turn.spend(piece.len()).await;
        }
    }

    /// What the provider says in place of an answer.
    async fn refused(&self, response: Response) -> ModelError {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let body = self.body(response, ERROR_BYTES_MAX).await;
        let said = match &body {
            Ok(body) => wire::refusal(body),
            Err(_) => "(its words could not be read)".to_owned(),
        };
        let is_out_of_money =
            said.contains("insufficient_quota") || said.contains("exceeded your current quota");
        let kind = match status {
            300..=399 => ModelErrorKind::Settings,
            401 | 403 => ModelErrorKind::Unauthorized,
            404 | 405 => ModelErrorKind::NotFound,
            429 if is_out_of_money => ModelErrorKind::Refused,
            408 | 425 | 429 | 503 | 529 => ModelErrorKind::Overloaded,
            500.. => ModelErrorKind::Provider,
            _ => ModelErrorKind::Refused,
        };
        let dialect = self.dialect;
        let message = match kind {
            ModelErrorKind::Settings => {
                let to = headers.get(LOCATION).and_then(|to| to.to_str().ok());
                format!(
                    "{dialect} at {} sends us on ({status}) to {}",
                    self.site(),
                    to.unwrap_or("somewhere")
                )
            }
            ModelErrorKind::Unauthorized if !self.has_key => {
                format!("{dialect} wants a key ({status}): {said}")
            }
            ModelErrorKind::Unauthorized => {
                format!("{dialect} does not take the key ({status}): {said}")
            }
            ModelErrorKind::Overloaded => format!("{dialect} is overloaded ({status}): {said}"),
            ModelErrorKind::Provider => format!("{dialect} failed ({status}): {said}"),
            _ => format!("{dialect} refused the request ({status}): {said}"),
        };
        let mut error = ModelError::new(kind, message);
        error.status = Some(status);
        error.help = self.help_for(kind);
        error.retry_after = retry_after(&headers);
        error
    }

    fn help_for(&self, kind: ModelErrorKind) -> Option<String> {
        let client = self.dialect.client();
        match kind {
            ModelErrorKind::Unauthorized => self
                .dialect
                .key_variable()
                .map(|variable| format!("check {variable}, or the key of this model")),
            ModelErrorKind::NotFound => Some(match client.how_to_get(&self.model) {
                Some(command) => format!("get it with: {command}"),
                None => "check the model and its url".to_owned(),
            }),
            ModelErrorKind::Settings => {
                Some("set the url of this model to that address".to_owned())
            }
            ModelErrorKind::Unreachable => Some(match client.how_to_start() {
                Some(command) => {
                    let get = client.how_to_get(&self.model).unwrap_or_default();
                    format!("start it with: {command}, then: {get}")
                }
                None => "check the url of this model and the network".to_owned(),
            }),
            _ => None,
        }
    }

    fn not_sent(&self, error: &reqwest::Error) -> ModelError {
        if error.is_timeout() && !error.is_connect() {
            return self.too_slow(self.patience.first);
        }
        if !error.is_connect() {
            return self.broke_off(error);
        }
        let message = format!(
            "{} does not answer at {} ({})",
            self.dialect,
            self.site(),
            cause(error)
        );
        let mut unreachable = ModelError::new(ModelErrorKind::Unreachable, message);
        unreachable.help = self.help_for(ModelErrorKind::Unreachable);
        unreachable
    }

    fn broke_off(&self, error: &reqwest::Error) -> ModelError {
        let message = format!(
            "the answer of {} broke off ({})",
            self.dialect,
            cause(error)
        );
        ModelError::new(ModelErrorKind::BrokeOff, message)
    }

    pub(crate) fn too_slow(&self, after: Duration) -> ModelError {
        let message = format!(
            "{} at {} said nothing for {after:?}",
            self.dialect,
            self.site()
        );
        ModelError::new(ModelErrorKind::Timeout, message)
    }

    fn unreadable(&self, error: &serde_json::Error, body: &[u8]) -> ModelError {
        let shown = steadyhand::cut::text(&String::from_utf8_lossy(body), 200);
        let fault = steadyhand::plain_words::json(error);
        let message = format!(
            "what {} at {} answers is no JSON ({fault}): {shown}",
            self.dialect,
            self.site()
        );
        ModelError::new(ModelErrorKind::Unreadable, message)
            .help("check the url and the provider of this model")
    }

    /// The error without our secrets: providers quote keys they do not take.
    pub(crate) fn tidy(&self, mut error: ModelError) -> ModelError {
        for secret in &self.secrets {
            let secret = secret.expose_secret();
            if secret.is_empty() {
                continue;
            }
            error.message = error.message.replace(secret, "***");
            error.help = error.help.map(|help| help.replace(secret, "***"));
        }
        error
    }

    /// Where it is, as people write it.
    fn site(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        match self.url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }
}

/// Some answer a request for a stream all at once.
fn comes_at_once(dialect: Dialect, response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    // A stream of one line says so, too; it is read either way.
    !dialect.client().streams_lines() && kind.starts_with("application/json")
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(ms) = header("retry-after-ms").and_then(|ms| ms.parse::<u64>().ok()) {
        return Some(Duration::from_millis(ms));
    }
    let after = header("retry-after")?;
    if let Ok(seconds) = after.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = httpdate::parse_http_date(after).ok()?;
    let at = at.duration_since(std::time::UNIX_EPOCH).ok()?;
    let now = Duration::from_millis(steadyhand::clock::wall_ms());
    Some(at.saturating_sub(now))
}

/// The innermost reason, without the address it was for.
fn cause(error: &reqwest::Error) -> String {
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    match innermost.downcast_ref::<reqwest::Error>() {
        Some(_) if error.is_timeout() => "no connection in time".to_owned(),
        Some(_) => "no reason given".to_owned(),
        None => steadyhand::plain_words::connection(&innermost.to_string()),
    }
}
