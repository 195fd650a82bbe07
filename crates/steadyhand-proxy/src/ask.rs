//! One exchange with a provider: sent once, and an answer within the time there is.

use std::borrow::Cow;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::response::Parts;
use axum::http::{HeaderMap, header, request};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;
use steadyhand::CooperativeBudget;
use steadyhand_conversation::Provider;
use tokio::time::{Instant, timeout_at};

use super::Proxy;
use super::client::Content;
use super::coding::{Decoder, Unreadable};
use super::execute::Telling;
use super::report::Report;
use super::sanitize::sanitize;
use super::sigv4;
use super::site::Chat;
use super::tap::{self, Framing, Tap};
use super::trouble::Trouble;
use super::upstream::Upstream;

/// Answers that come at once are held until they are whole, up to this size: whoever waits for one can be told
/// honestly when it is not.
const HELD_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The same once it is decoded.
const DECODED_BYTES_MAX: usize = 4 * HELD_BYTES_MAX;

/// An answer.
pub(super) enum Came {
    /// All of it.
    Whole(Parts, Bytes),
    /// On its way.
    Flows(Box<Flow>),
    /// On its way, while tools are run for it here.
    Told(Box<Telling>),
}

/// An answer that is on its way.
pub(super) struct Flow {
    pub(super) head: Parts,
    pub(super) body: Incoming,
    /// What has come of it.
    pub(super) before: Vec<Bytes>,
    pub(super) tap: Option<Tap>,
    /// How a stream is cut into events, and whose shape an error in it has; none where words of ours would be noise.
    pub(super) ending: Option<(Provider, Framing)>,
}

/// Who is asked, and how long.
pub(super) struct Asking<'a> {
    pub(super) proxy: &'a Proxy,
    pub(super) upstream: &'a Upstream,
    pub(super) until: Instant,
}

impl Asking<'_> {
    /// Sends a request, and waits for the head of its answer.
    pub(super) async fn send(
        &self,
        mut head: request::Parts,
        content: Content,
    ) -> Result<(Parts, Incoming), Trouble> {
        if let (Some(aws), Content::Whole(bytes)) = (&self.upstream.aws, &content)
            && sigv4::is_signed(&head.headers)
        {
            sigv4::sign(&mut head, bytes, aws, jiff::Timestamp::now());
        }
        let patience = self.upstream.patience;
        let sending = self.proxy.client.send(head, content);
        let sent = self.within(patience.first, sending).await??;
        Ok(sent.into_parts())
    }

    /// The answer to a request that brought no conversation: it passes. A stream of a model's words must have its end.
    pub(super) fn pass(head: Parts, body: Incoming, generation: Option<Provider>) -> Came {
        let framing = of_type(&head.headers).filter(|_| head.status.is_success());
        let stream = generation.zip(framing).map(|(provider, framing)| {
            let decoder = Decoder::of(&head.headers);
            let is_plain = decoder.as_ref().is_some_and(Decoder::is_plain);
            let tap = Tap::new(provider, framing, decoder, false).for_its_end();
            (tap, is_plain.then_some((provider, framing)))
        });
        let (tap, ending) = stream.map_or((None, None), |(tap, ending)| (Some(tap), ending));
        Came::Flows(Box::new(Flow {
            head,
            body,
            before: Vec::new(),
            tap,
            ending,
        }))
    }

    /// The answer to a conversation: a stream passes, and is looked at; the others are held until they are whole.
    pub(super) async fn answer(
        &self,
        chat: &Chat,
        streams: bool,
        (head, body): (Parts, Incoming),
        report: &mut Report,
    ) -> Result<Came, Trouble> {
        let framing = framing(chat, streams, &head.headers);
        report.status(head.status.as_u16(), framing.is_some());
        if let Some(framing) = framing.filter(|_| head.status.is_success()) {
            let decoder = Decoder::of(&head.headers);
            // Words of ours would be noise in a compressed stream.
            let is_plain = decoder.as_ref().is_some_and(Decoder::is_plain);
            let tap = Tap::new(chat.provider, framing, decoder, report.keeps());
            return Ok(Came::Flows(Box::new(Flow {
                head,
                body,
                before: Vec::new(),
                tap: Some(tap),
                ending: is_plain.then_some((chat.error_shape(), framing)),
            })));
        }
        let mut body = body;
        let bytes = match self.collect(&mut body).await? {
            Collected::Whole(bytes) => bytes,
            Collected::More(before) => {
                return Ok(Came::Flows(Box::new(Flow {
                    head,
                    body,
                    before,
                    tap: None,
                    ending: None,
                })));
            }
        };
        if !head.status.is_success() {
            return Ok(Came::Whole(head, bytes));
        }
        let text = decoded(&head.headers, &bytes)?;
        let Some(answer) = text.as_deref().map(read).transpose()?.flatten() else {
            return Ok(Came::Whole(head, bytes));
        };
        if !self.upstream.repair {
            report.saw(tap::checked(chat.provider, answer));
            return Ok(Came::Whole(head, bytes));
        }
        let text = text.unwrap_or_default();
        match sanitize(chat.provider, &text, answer, report)? {
            None => Ok(Came::Whole(head, bytes)),
            Some(mended) => {
                let mut head = head;
                // It is written anew, and not compressed again.
                head.headers.remove(header::CONTENT_LENGTH);
                head.headers.remove(header::CONTENT_ENCODING);
                Ok(Came::Whole(head, mended))
            }
        }
    }

    /// A body, up to a size.
    pub(super) async fn collect(&self, body: &mut Incoming) -> Result<Collected, Trouble> {
        let mut pieces: Vec<Bytes> = Vec::new();
        let mut length = 0;
        let mut turn = CooperativeBudget::default();
        loop {
            let frame = self
                .within(self.upstream.patience.idle, body.frame())
                .await?;
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|error| Trouble::of_exchange(&error))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            turn.spend(data.len()).await;
            length += data.len();
            pieces.push(data);
            if length > HELD_BYTES_MAX {
                return Ok(Collected::More(pieces));
            }
        }
        Ok(Collected::Whole(match pieces.len() {
            1 => pieces.swap_remove(0),
            _ => pieces.concat().into(),
        }))
    }

    /// Waits for something of the provider's, within a span and the whole time there is, unless we end.
    pub(super) async fn within<T>(
        &self,
        span: Duration,
        work: impl Future<Output = T>,
    ) -> Result<T, Trouble> {
        let now = Instant::now();
        let until = self.until.min(now + span);
        tokio::select! {
            biased;
            done = timeout_at(until, work) => done.map_err(|_| match until == self.until {
                true => Trouble::TooLong(self.upstream.patience.whole),
                false => Trouble::Silent(span),
            }),
            () = self.proxy.ending.cancelled() => Err(Trouble::Closing),
        }
    }
}

/// A body that was collected.
pub(super) enum Collected {
    Whole(Bytes),
    /// There is more than is held.
    More(Vec<Bytes>),
}

/// A body in plain text; none where it is encoded in a way we cannot read.
fn decoded<'a>(headers: &HeaderMap, bytes: &'a Bytes) -> Result<Option<Cow<'a, [u8]>>, Trouble> {
    let Some(decoder) = Decoder::of(headers) else {
        return Ok(None);
    };
    if decoder.is_plain() {
        return Ok(Some(Cow::Borrowed(bytes)));
    }
    let plain = decoder.whole(bytes, DECODED_BYTES_MAX);
    let plain = plain.map_err(|Unreadable| Trouble::Garbage("it cannot be decoded".to_owned()))?;
    Ok(Some(Cow::Owned(plain)))
}

/// The answer in a body; none where it is not for us to judge.
fn read(text: &[u8]) -> Result<Option<Value>, Trouble> {
    match serde_json::from_slice(text) {
        Ok(answer) => Ok(Some(answer)),
        Err(_) if text.is_empty() => Err(Trouble::Garbage("nothing came".to_owned())),
        // Deeper than we read, or a stream under another name: an answer for all that.
        Err(error) if error.to_string().starts_with("recursion limit") => Ok(None),
        Err(_) if text.starts_with(b"data:") || text.starts_with(b"event:") => Ok(None),
        Err(error) => Err(Trouble::Garbage(format!(
            "it is no JSON: {}",
            steadyhand::plain_words::json(&error)
        ))),
    }
}

/// How an answer is cut into events; none where it comes at once.
pub(super) fn framing(chat: &Chat, streams: bool, headers: &HeaderMap) -> Option<Framing> {
    if let Some(framing) = of_type(headers) {
        return Some(framing);
    }
    match content_type(headers).as_str() {
        _ if chat.streams && chat.provider.format().streams_array() => Some(Framing::Array),
        "application/json" => None,
        // Some forget to say what they send.
        _ if streams => Some(Framing::Events),
        _ => None,
    }
}

/// How an answer is cut into events, where its type says so.
fn of_type(headers: &HeaderMap) -> Option<Framing> {
    match content_type(headers).as_str() {
        "text/event-stream" => Some(Framing::Events),
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Some(Framing::Lines),
        "application/vnd.amazon.eventstream" => Some(Framing::AwsEvents),
        _ => None,
    }
}

fn content_type(headers: &HeaderMap) -> String {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}
