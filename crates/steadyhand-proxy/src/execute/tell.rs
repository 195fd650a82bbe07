//! A streamed answer whose tools are run here: words as they come, round after round, then one end.

use std::io;

use axum::body::{Body, Bytes};
use axum::http::response::Parts;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use steadyhand::CooperativeBudget;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::read::Reader;
use super::speak::Speaker;
use super::{Executing, Inside, Next};
use crate::ask::Collected;
use crate::cut::Cut;
use crate::headers;
use crate::report::Report;
use crate::tap::{self, Framing};
use crate::trouble::{self, Trouble};

/// Pieces that wait for a slow client.
const PIECES_MAX: usize = 16;
/// What of a stream is read at once, and what a byte of it counts: an event may have eight bytes, and takes longer to read
/// than they say.
const PART_BYTES: usize = 4 * 1024;
const EVENTS_COST: usize = 16;
/// What is told of a refusal in the middle.
const SAID_BYTES_MAX: usize = 500;

/// An answer that has begun.
pub(crate) struct Telling {
    pub(super) executing: Executing,
    pub(super) inside: Inside,
    pub(super) head: Parts,
    pub(super) body: Incoming,
    pub(super) framing: Framing,
    pub(super) turn: CooperativeBudget,
}

type Pieces = mpsc::Sender<Result<Bytes, io::Error>>;

impl Telling {
    /// The answer. Everything that is under way for it ends when its client leaves.
    pub(crate) fn respond(mut self, report: Report) -> Response {
        let model = self.inside.request.get("model").cloned();
        let provider = self.executing.chat.provider;
        let speaker = Speaker::new(provider, self.framing, model.unwrap_or_default());
        let own = std::mem::take(&mut self.head.headers);
        let mut headers = headers::of_answer(own, report.all_fixes());
        headers.remove(header::CONTENT_LENGTH);
        let kind = HeaderValue::from_static(speaker.content_type());
        headers.insert(header::CONTENT_TYPE, kind);
        let (pieces, stream) = mpsc::channel(PIECES_MAX);
        tokio::spawn(async move {
            let client = pieces.clone();
            tokio::select! {
                () = client.closed() => {}
                () = self.tell_all(speaker, pieces, report) => {}
            }
        });
        let mut response = Response::new(Body::from_stream(Cut::new(ReceiverStream::new(stream))));
        *response.headers_mut() = headers;
        response
    }

    async fn tell_all(mut self, speaker: Speaker, pieces: Pieces, mut report: Report) {
        let Err(trouble) = self.tell(speaker, &pieces, &mut report).await else {
            return report.answered();
        };
        let words = report.failed(&trouble);
        let shape = self.executing.chat.provider;
        let _ = pieces
            .send(Ok(trouble::event(shape, self.framing, &trouble, &words)))
            .await;
        let _ = pieces.send(Err(io::Error::other(words))).await;
    }

    async fn tell(
        &mut self,
        mut speaker: Speaker,
        pieces: &Pieces,
        report: &mut Report,
    ) -> Result<(), Trouble> {
        let provider = self.executing.chat.provider;
        loop {
            let mut reader = Reader::new(provider, self.framing);
            let mut is_silent = true;
            while let Some(data) = self.piece().await? {
                for part in data.chunks(PART_BYTES) {
                    for words in reader.push(part)? {
                        is_silent = false;
                        // A client that is gone ends all of this elsewhere.
                        let _ = pieces.send(Ok(speaker.text(&words))).await;
                    }
                    self.turn.spend(EVENTS_COST * part.len()).await;
                }
            }
            let (answer, mut rest) = reader.finish(provider)?;
            if is_silent && rest.is_empty() {
                // Some say nothing on the way, and all of it at the end.
                let words = provider.format().words(&answer);
                rest.extend((!words.is_empty()).then_some(words));
            }
            for words in rest {
                let _ = pieces.send(Ok(speaker.text(&words))).await;
            }
            report.saw(tap::checked(provider, answer.clone()));
            match self.executing.next(&mut self.inside, answer).await? {
                Next::Final(answer, _) => {
                    let _ = pieces.send(Ok(speaker.end(&answer))).await;
                    return Ok(());
                }
                Next::Again => self.ask_again().await?,
            }
        }
    }

    /// What comes next of the body.
    async fn piece(&mut self) -> Result<Option<Bytes>, Trouble> {
        let idle = self.executing.upstream.patience.idle;
        let asking = self.executing.asking();
        loop {
            let frame = asking.within(idle, self.body.frame()).await?;
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| Trouble::of_exchange(&error))?;
            let data = frame.into_data();
            self.turn.spend(0).await;
            if let Ok(data) = data {
                return Ok(Some(data));
            }
        }
    }

    async fn ask_again(&mut self) -> Result<(), Trouble> {
        let (head, mut body) = self.executing.send(&self.inside.request).await?;
        let framing = self.executing.framing(&self.inside.request, &head);
        let is_streamed = head.status.is_success();
        if let Some(framing) = framing.filter(|_| is_streamed) {
            (self.body, self.framing) = (body, framing);
            return Ok(());
        }
        let said = match self.executing.asking().collect(&mut body).await? {
            Collected::Whole(said) => said,
            Collected::More(_) => Bytes::new(),
        };
        let said = String::from_utf8_lossy(&said).into_owned();
        let said = steadyhand::cut::text(&steadyhand::redact::text(&said), SAID_BYTES_MAX);
        let status = head.status.as_u16();
        Err(Trouble::Garbage(format!(
            "after a tool was run it answered with status {status}: {said}"
        )))
    }
}
