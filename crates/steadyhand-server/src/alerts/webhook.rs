//! Alerts for another program: one queue and one worker for each address, so that one that stalls holds up no other.
//! Signed as Standard Webhooks has it; tried again a few times; never sent on to where an answer points.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use steadyhand::clock;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::alert::Change;
use steadyhand_config::text::SecretText;
use steadyhand_runtime::net::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use steadyhand_runtime::net::request::site;
use steadyhand_runtime::net::{Client, Limits, Method, Reach, Request, Url};

/// Waiting for one address. More are dropped, and counted: an alert that is hours late is of no use.
const QUEUE_MAX: usize = 256;
const ATTEMPTS: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// For one attempt.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of an answer; what it says is not used.
const ANSWER_BYTES_MAX: usize = 4 * 1024;

/// An address that is told.
pub(super) struct Webhook {
    url: Url,
    secret: Option<SecretText>,
    queue: mpsc::Sender<Delivery>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
    last_error: Mutex<Option<String>>,
}

struct Delivery {
    id: String,
    body: Vec<u8>,
}

impl Webhook {
    /// Its worker ends with it. Must be made where tasks can be started.
    pub(super) fn new(url: Url, secret: Option<SecretText>, http: Client) -> Webhook {
        let (queue, inbox) = mpsc::channel(QUEUE_MAX);
        let counts: Arc<Counts> = Arc::default();
        let worker = Worker {
            reach: Reach::public_only().and(&url),
            url: url.clone(),
            secret: secret.clone(),
            http,
            counts: Arc::clone(&counts),
        };
        tokio::spawn(worker.work(inbox));
        Webhook {
            url,
            secret,
            queue,
            counts,
        }
    }

    pub(super) fn is(&self, url: &Url, secret: Option<&SecretText>) -> bool {
        self.url == *url
            && self.secret.as_ref().map(SecretText::expose) == secret.map(SecretText::expose)
    }

    /// Never waits.
    pub(super) fn send(&self, change: &Change) {
        let delivery = Delivery {
            id: format!("msg_{}", clock::new_id()),
            body: body(change).to_string().into_bytes(),
        };
        if self.queue.try_send(delivery).is_err() {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn view(&self) -> Value {
        let counts = &self.counts;
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let last = counts
            .last_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        json!({
            "to": site(&self.url),
            "signed": self.secret.is_some(),
            "queued": QUEUE_MAX - self.queue.capacity(),
            "sent": of(&counts.sent),
            "failed": of(&counts.failed),
            "dropped": of(&counts.dropped),
            "last_error": *last,
        })
    }
}

/// `text` is what chat programs show.
fn body(change: &Change) -> Value {
    let alert = &change.alert;
    let text = match &alert.cleared_because {
        None => format!("{}: {}", alert.watched, alert.message),
        Some(because) => format!("{} of {} is over: {because}", alert.watched, alert.subject),
    };
    json!({
        "type": change.kind.word(),
        "timestamp": jiff::Timestamp::now().to_string(),
        "text": text,
        "data": alert,
    })
}

struct Worker {
    url: Url,
    secret: Option<SecretText>,
    reach: Reach,
    http: Client,
    counts: Arc<Counts>,
}

impl Worker {
    async fn work(self, mut inbox: mpsc::Receiver<Delivery>) {
        while let Some(delivery) = inbox.recv().await {
            match self.deliver(&delivery).await {
                Ok(()) => {
                    self.remember(None);
                    self.counts.sent.fetch_add(1, Ordering::Release);
                }
                Err(why) => {
                    tracing::error!(to = site(&self.url), why, "an alert could not be delivered");
                    // Before it is counted: whoever sees the one sees the other.
                    self.remember(Some(why));
                    self.counts.failed.fetch_add(1, Ordering::Release);
                }
            }
        }
    }

    async fn deliver(&self, delivery: &Delivery) -> Result<(), String> {
        let mut wait = FIRST_WAIT;
        let mut attempt = 1;
        loop {
            let failed = match self.post(delivery).await {
                Ok(()) => return Ok(()),
                Err(failed) => failed,
            };
            if !failed.may_pass || attempt == ATTEMPTS {
                return Err(format!("{} (attempt {attempt} of {ATTEMPTS})", failed.why));
            }
            sleep(wait).await;
            wait *= 2;
            attempt += 1;
        }
    }

    async fn post(&self, delivery: &Delivery) -> Result<(), Failed> {
        let mut request = Request::new(Method::POST, self.url.clone());
        request.headers = self.headers(delivery);
        request.body = Some(delivery.body.clone());
        let limits = Limits {
            until: Instant::now() + PATIENCE,
            response_bytes_max: ANSWER_BYTES_MAX,
        };
        let sent = self.http.send_once(request, limits, &self.reach).await;
        let response = sent.map_err(|error| Failed {
            why: error.message().to_owned(),
            may_pass: true,
        })?;
        let status = response.status;
        if status.is_success() {
            return Ok(());
        }
        let note = match status.is_redirection() {
            true => ", and redirects are not followed",
            false => "",
        };
        Err(Failed {
            why: format!("{} answered {status}{note}", response.site),
            may_pass: status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429),
        })
    }

    /// Made for each attempt: the time of the signature is the time it is sent.
    fn headers(&self, delivery: &Delivery) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let seconds = (clock::wall_ms() / 1000).to_string();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let signature = self.secret.as_ref().and_then(|secret| {
            let signed = [
                delivery.id.as_bytes(),
                b".",
                seconds.as_bytes(),
                b".",
                &delivery.body,
            ];
            sign(secret, &signed.concat())
        });
        let named = [
            ("webhook-id", Some(delivery.id.clone())),
            ("webhook-timestamp", Some(seconds)),
            ("webhook-signature", signature),
        ];
        for (name, value) in named {
            let value = value.and_then(|value| HeaderValue::try_from(value).ok());
            if let Some(value) = value {
                headers.insert(name, value);
            }
        }
        headers
    }

    fn remember(&self, error: Option<String>) {
        let mut last = self
            .counts
            .last_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *last = error;
    }
}

struct Failed {
    why: String,
    may_pass: bool,
}

/// `v1,` and HMAC-SHA256 in base64. A secret with the usual prefix is base64 itself.
fn sign(secret: &SecretText, bytes: &[u8]) -> Option<String> {
    let secret = secret.expose();
    let key = match secret.strip_prefix("whsec_") {
        Some(encoded) => BASE64_STANDARD.decode(encoded).ok()?,
        None => secret.as_bytes().to_vec(),
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    mac.update(bytes);
    let code = mac.finalize().into_bytes();
    Some(format!("v1,{}", BASE64_STANDARD.encode(code)))
}
