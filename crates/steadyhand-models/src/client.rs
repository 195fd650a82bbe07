//! A provider's model over HTTP: one thin client for all dialects.

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use steadyhand_conversation::Provider;
use tokio::time::{Instant, sleep, timeout_at};

use crate::error::ModelError;
use crate::http::Http;
use crate::model::{Delivery, Model, ModelRequest, Notice, NoticeCode, Reply, Retry, Told};
use crate::settings::ModelSettings;
use crate::wire::{self, Encoded};

/// A model behind HTTP. It has no tools of its own and runs none.
#[derive(Debug)]
pub struct Client {
    settings: ModelSettings,
    http: Http,
    /// The tools that were said to be left out: once is enough.
    left_out: Mutex<Vec<String>>,
}

impl Client {
    /// A client for this model. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// Where the settings cannot work: no key for a provider that wants one, a URL that is none.
    pub fn new(settings: ModelSettings) -> Result<Client, ModelError> {
        let http = Http::new(&settings)?;
        Ok(Client {
            settings,
            http,
            left_out: Mutex::default(),
        })
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &ModelSettings {
        &self.settings
    }

    async fn ask(
        &self,
        request: ModelRequest<'_>,
        tell: &mut (dyn FnMut(Told) + Send),
    ) -> Result<Reply, ModelError> {
        let encoded = wire::encode(&self.settings, &request);
        self.tell_changes(&encoded, tell);
        let body = encoded.body.to_string().into_bytes();
        let until = Instant::now() + self.settings.patience.whole;
        let attempts = self.attempts(&body, request.delivery, tell);
        let response = match timeout_at(until, attempts).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(error.about(encoded.body)),
            Err(_) => return Err(self.http.too_slow(self.settings.patience.whole)),
        };
        let client = self.settings.dialect.client();
        if let Some(message) = client.context_cut(&encoded.body, &response) {
            tell(notice(NoticeCode::ContextCut, message));
        }
        let decoded = wire::decode(self.settings.dialect, response, &encoded.tools);
        decoded.map_err(|error| self.http.tidy(error))
    }

    /// Sends the request until it is answered. Once something was told it is not sent again: it would be told twice.
    async fn attempts(
        &self,
        body: &[u8],
        delivery: Delivery,
        tell: &mut (dyn FnMut(Told) + Send),
    ) -> Result<Value, ModelError> {
        let mut attempt = 1;
        loop {
            let mut was_told = false;
            let mut note = |told: Told| {
                was_told = true;
                tell(told);
            };
            let mut error = match self.http.exchange(body, delivery, &mut note).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            error.attempts = attempt;
            if was_told || attempt >= self.settings.attempts || !error.kind.is_transient() {
                return Err(error);
            }
            let wait = error.retry_after.unwrap_or_else(|| backoff(attempt));
            if wait > self.settings.patience.retry_wait_max {
                let seconds = wait.as_secs();
                return Err(error.help(format!("it wants to be asked again in {seconds} s")));
            }
            attempt += 1;
            tell(Told::Retry(Retry {
                attempt,
                attempts_max: self.settings.attempts,
                wait,
                reason: error.message,
            }));
            sleep(wait).await;
        }
    }

    fn tell_changes(&self, encoded: &Encoded, tell: &mut (dyn FnMut(Told) + Send)) {
        let mut known = self.left_out.lock();
        for tool in &encoded.tools.left_out {
            if known.contains(&tool.name) {
                continue;
            }
            known.push(tool.name.clone());
            let message = format!("the model does not get {}: {}", tool.name, tool.reason);
            tell(notice(NoticeCode::ToolLeftOut, message));
        }
        drop(known);
        if let Some(first) = encoded.fixes.first() {
            let message = match encoded.fixes.len() {
                1 => format!("the conversation was repaired: {first}"),
                count => format!("the conversation was repaired in {count} places: {first}, …"),
            };
            tell(notice(NoticeCode::ConversationRepaired, message));
        }
    }
}

impl Model for Client {
    fn name(&self) -> &str {
        &self.settings.model
    }

    fn provider(&self) -> Provider {
        self.settings.dialect.provider()
    }

    fn answer<'a>(
        &'a self,
        request: ModelRequest<'a>,
        tell: &'a mut (dyn FnMut(Told) + Send),
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(self.ask(request, tell))
    }
}

fn notice(code: NoticeCode, message: String) -> Told {
    Told::Notice(Notice { code, message })
}

/// Half a second, then twice as long each time, never all clients at once.
fn backoff(attempt: u32) -> std::time::Duration {
    const FIRST_MS: u64 = 500;
    const LAST_MS: u64 = 8_000;
    let most = (FIRST_MS << attempt.saturating_sub(1).min(10)).min(LAST_MS);
    std::time::Duration::from_millis(most / 2 + fastrand::u64(0..=most / 2))
}
