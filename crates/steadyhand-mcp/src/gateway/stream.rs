//! What is sent on one stream of a session, kept for a while: whoever was cut off goes on where it was.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use steadyhand::{ByteBudget, ReservedBytes};
use tokio::sync::Notify;

use super::client::Client;
use super::errors;
use super::events::{Frame, frame};
use super::loss;
use super::message::Message;

/// So much is kept of one stream, but for a larger answer; who is further behind misses what came before.
const KEPT_MAX: usize = 256;
const KEPT_BYTES_MAX: usize = 1024 * 1024;
/// What all sessions together keep of their streams. Without room, an answer is sent once, and not kept for whoever
/// was cut off.
pub(super) const KEPT_BYTES_OF_ALL_MAX: usize = 64 * 1024 * 1024;
/// What a stream takes without anything in it, and with the word that its answer is lost.
const STREAM_BYTES: usize = 1024;
const LOST: &str = "the answer was not kept: there is no memory for more answers of this caller that nobody has fetched. \
    The request has ended, and what it asked for may have been done; look before you repeat it";

/// The stream of one request's answer.
pub(super) struct Stream {
    pub(super) number: u64,
    request: Box<RawValue>,
    client: Arc<Client>,
    kept: Mutex<Kept>,
    changed: Notify,
}

struct Kept {
    /// The number of the first that is kept, from 1.
    first: u64,
    frames: VecDeque<Frame>,
    bytes: usize,
    held: ReservedBytes,
    /// There is no memory for the last of them, which is the only one then.
    is_unheld: bool,
    /// The last of them is the answer.
    has_answer: bool,
    is_over: bool,
    /// Counts readers: only the last one is served.
    readers: u64,
    /// That one is there.
    is_read: bool,
}

/// Reads a stream at its own pace.
pub(super) struct Reader {
    stream: Arc<Stream>,
    number: u64,
    /// The last that was read.
    reached: u64,
}

impl Kept {
    /// Whether there is memory for what is kept now.
    fn has_memory(&mut self) -> bool {
        let wanted = STREAM_BYTES + self.bytes;
        self.held.shrink_to(wanted);
        let missing = wanted - self.held.bytes();
        let is_small = self.bytes <= KEPT_BYTES_MAX || self.frames.len() == 1;
        is_small && self.held.grow(missing).is_ok()
    }

    fn forget_first(&mut self) {
        if let Some(gone) = self.frames.pop_front() {
            self.bytes -= gone.len();
            self.first += 1;
        }
    }
}

impl Stream {
    /// For the answer to a request. `memory` is its caller's.
    pub(super) fn new(
        number: u64,
        request: &RawValue,
        client: Arc<Client>,
        memory: &ByteBudget,
    ) -> Arc<Stream> {
        let held = memory.reserve(STREAM_BYTES);
        Arc::new(Stream {
            number,
            request: request.to_owned(),
            client,
            kept: Mutex::new(Kept {
                first: 1,
                frames: VecDeque::new(),
                bytes: 0,
                held: held.unwrap_or_else(|_| memory.nothing()),
                is_unheld: false,
                has_answer: false,
                is_over: false,
                readers: 0,
                is_read: false,
            }),
            changed: Notify::new(),
        })
    }

    /// Whether there is memory to keep it for whoever is cut off.
    pub(super) fn can_be_kept(&self) -> bool {
        self.kept().held.bytes() > 0
    }

    /// Something that comes before the answer.
    pub(super) fn push(&self, message: &Message) {
        self.add(message, false);
    }

    /// The answer. There will be nothing more.
    pub(super) fn answer(&self, message: &Message) {
        self.add(message, true);
    }

    fn add(&self, message: &Message, is_answer: bool) {
        {
            let mut kept = self.kept();
            let place = kept.first + kept.frames.len() as u64;
            let frame = frame(Some(&self.id(place)), message);
            kept.bytes += frame.len();
            kept.frames.push_back(frame);
            kept.has_answer |= is_answer;
            loop {
                kept.is_unheld = !kept.has_memory();
                if kept.frames.len() <= 1 || !(kept.is_unheld || kept.frames.len() > KEPT_MAX) {
                    break;
                }
                kept.forget_first();
            }
            if kept.is_unheld && !kept.is_read {
                self.forget_unheld(&mut kept);
            }
        }
        self.changed.notify_waiters();
    }

    /// Nobody is there to take what there is no memory for. Who comes back for an answer is told that it is lost.
    fn forget_unheld(&self, kept: &mut Kept) {
        if !std::mem::take(&mut kept.is_unheld) {
            return;
        }
        let place = kept.first;
        kept.forget_first();
        if kept.has_answer {
            kept.first = place;
            let lost = Message::error(&self.request, &errors::busy(LOST));
            // Its bytes are among those of a stream with nothing in it.
            kept.frames.push_back(frame(Some(&self.id(place)), &lost));
        }
        kept.held.shrink_to(STREAM_BYTES);
    }

    fn id(&self, place: u64) -> String {
        format!("{}-{place}", self.number)
    }

    /// There will be nothing more.
    pub(super) fn end(&self) {
        self.kept().is_over = true;
        self.changed.notify_waiters();
    }

    pub(super) fn is_over(&self) -> bool {
        self.kept().is_over
    }

    /// Reads what came after a place. Whoever read before is cut off: a client has one connection for a stream.
    pub(super) fn read_after(self: &Arc<Self>, place: u64) -> Reader {
        let number = {
            let mut kept = self.kept();
            kept.readers += 1;
            kept.is_read = true;
            kept.readers
        };
        self.changed.notify_waiters();
        Reader {
            stream: Arc::clone(self),
            number,
            reached: place,
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock()
    }
}

impl Reader {
    /// The next piece; none when there is no more, or another reader has come.
    pub(super) async fn next(&mut self) -> Option<Frame> {
        loop {
            let changed = self.stream.changed.notified();
            tokio::pin!(changed);
            // From here on nothing is missed.
            changed.as_mut().enable();
            {
                let mut kept = self.stream.kept();
                if kept.readers != self.number {
                    return None;
                }
                // Who is too far behind has missed something, and goes on with what there is: the answer comes last.
                let missed = (kept.first - 1).saturating_sub(self.reached);
                self.reached += missed;
                if let Some(level) = self.stream.client.loss_level()
                    && missed > 0
                {
                    return Some(frame(None, &loss::message(level, missed)));
                }
                let place = (self.reached + 1 - kept.first) as usize;
                if let Some(frame) = kept.frames.get(place).cloned() {
                    self.reached += 1;
                    // It is on its way, and was the only one that there was no memory for.
                    self.stream.forget_unheld(&mut kept);
                    return Some(frame);
                }
                if kept.is_over {
                    return None;
                }
            }
            changed.await;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut kept = self.stream.kept();
        if kept.readers == self.number {
            kept.is_read = false;
            self.stream.forget_unheld(&mut kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::gateway::era::Era;

    fn request() -> Box<RawValue> {
        RawValue::from_string("7".to_owned()).expect("JSON")
    }

    fn client() -> Arc<Client> {
        Arc::new(Client::new(Era::settled(None), None, json!({})))
    }

    fn answer(bytes: usize) -> Message {
        Message::result(&request(), format!("\"{}\"", "x".repeat(bytes)).into())
    }

    async fn read(reader: &mut Reader) -> String {
        let frame = reader.next().await.expect("a frame");
        let bytes = frame.into_pieces().concat();
        String::from_utf8(bytes).expect("text")
    }

    fn held(stream: &Stream) -> usize {
        let kept = stream.kept();
        kept.frames.iter().map(Frame::len).sum()
    }

    #[tokio::test]
    async fn s02_an_answer_there_is_no_memory_for_is_sent_once_and_its_loss_is_told() {
        let memory = ByteBudget::new("a caller", 10_000);
        // Somebody reads: it gets all of it, and nothing stays.
        let stream = Stream::new(1, &request(), client(), &memory);
        let mut reader = stream.read_after(0);
        stream.answer(&answer(100_000));
        stream.end();
        assert!(read(&mut reader).await.len() > 100_000);
        assert!(reader.next().await.is_none());
        assert!(held(&stream) < STREAM_BYTES, "{}", held(&stream));
        // Who was cut off within it hears that it is lost.
        let told = read(&mut stream.read_after(0)).await;
        assert!(told.contains("the answer was not kept"), "{told}");
        assert!(told.contains("\"id\":7"), "{told}");

        // Nobody reads: the same.
        let unread = Stream::new(2, &request(), client(), &memory);
        unread.answer(&answer(100_000));
        unread.end();
        assert!(held(&unread) < STREAM_BYTES);
        let told = read(&mut unread.read_after(0)).await;
        assert!(told.contains("look before you repeat it"), "{told}");

        // One that fits is kept.
        let small = Stream::new(3, &request(), client(), &memory);
        drop(small.read_after(0));
        small.answer(&answer(1_000));
        small.end();
        assert!(read(&mut small.read_after(0)).await.len() > 1_000);
        assert!(read(&mut small.read_after(0)).await.len() > 1_000);
        assert!(memory.peak() <= 10_000);
        drop((stream, unread, small, reader));
        assert_eq!(memory.used(), 0);
    }

    #[tokio::test]
    async fn s02_streams_beyond_the_memory_of_their_caller_are_not_kept() {
        let memory = ByteBudget::new("a caller", 10 * STREAM_BYTES);
        let streams: Vec<_> = (0..20)
            .map(|number| Stream::new(number, &request(), client(), &memory))
            .collect();
        let kept = streams.iter().filter(|stream| stream.can_be_kept());
        assert_eq!(kept.count(), 10);
        let mut reader = streams[19].read_after(0);
        streams[19].answer(&answer(10));
        assert!(
            read(&mut reader).await.contains("xxx"),
            "it works all the same"
        );
    }

    #[tokio::test]
    async fn s01_a_reader_that_comes_late_hears_what_it_missed_and_then_what_is_kept() {
        let memory = ByteBudget::new("a caller", 1024 * 1024);
        let stream = Stream::new(1, &request(), client(), &memory);
        let mut reader = stream.read_after(0);
        let note = |number: usize| Message::notification(&format!("note/{number}"), None);
        stream.push(&note(0));
        assert!(read(&mut reader).await.contains("note/0"));
        for number in 1..=1_000 {
            stream.push(&note(number));
        }
        stream.end();
        let loss = read(&mut reader).await;
        assert!(loss.contains("744 messages were dropped"), "{loss}");
        for number in 745..=1_000 {
            assert!(
                read(&mut reader)
                    .await
                    .contains(&format!("note/{number}\""))
            );
        }
        assert!(reader.next().await.is_none());
    }
}
