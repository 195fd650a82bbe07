//! The body of an answer on its way to the client: every piece is passed on as it comes, and no wait is without an end.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use steadyhand::CooperativeBudget;
use steadyhand_conversation::Provider;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::report::Report;
use super::tap::{Framing, Tap};
use super::trouble::{self, Trouble};
use super::upstream::Patience;

/// What is looked at of it before others on this thread may have their turn.
const PIECE_BYTES_MAX: usize = 16 * 1024;

/// An answer that passes. Dropping it ends the exchange with the provider.
pub(super) struct Passing {
    upstream: Incoming,
    /// What came before it was decided to pass it on.
    before: VecDeque<Bytes>,
    tap: Option<Tap>,
    /// How a stream ends that breaks off, where its client would understand it.
    ending: Option<(Provider, Framing)>,
    /// A stream that ends without its end mark is ended by an error.
    tells_unfinished: bool,
    /// Of a stream in Amazon's messages that has ended: whether it ended with a whole one.
    is_between_messages: bool,
    /// The last bytes that were passed on.
    tail: Tail,
    idle: std::time::Duration,
    whole: std::time::Duration,
    last: Instant,
    until: Instant,
    timer: Pin<Box<Sleep>>,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    state: State,
    /// A provider that never pauses keeps nobody else on this thread waiting, and ends in time.
    turn: CooperativeBudget,
    /// The last piece, as long as it is not counted.
    unspent: usize,
    report: Report,
}

enum State {
    Flowing,
    /// The last of it was given; once that is on its way, the connection is cut.
    Broken,
    Cut,
    Done,
}

/// What is told to a body that passes.
pub(super) struct Course {
    pub(super) patience: Patience,
    /// When the whole exchange must be over.
    pub(super) until: Instant,
    pub(super) closing: WaitForCancellationFutureOwned,
    /// Whether the answer may be changed.
    pub(super) repair: bool,
    pub(super) report: Report,
}

impl Passing {
    pub(super) fn new(upstream: Incoming, course: Course) -> Passing {
        let now = Instant::now();
        let Course {
            patience,
            until,
            closing,
            repair,
            report,
        } = course;
        Passing {
            upstream,
            before: VecDeque::new(),
            tap: None,
            ending: None,
            tells_unfinished: repair,
            is_between_messages: false,
            tail: Tail::default(),
            idle: patience.idle,
            whole: patience.whole,
            last: now,
            until,
            timer: Box::pin(sleep_until(until.min(now + patience.idle))),
            closing: Box::pin(closing),
            state: State::Flowing,
            turn: CooperativeBudget::default(),
            unspent: 0,
            report,
        }
    }

    /// After these pieces.
    pub(super) fn after(mut self, before: impl Into<VecDeque<Bytes>>) -> Passing {
        self.before = before.into();
        self
    }

    /// Looked at while it passes.
    pub(super) fn tapped(mut self, tap: Tap) -> Passing {
        self.tap = Some(tap);
        self
    }

    /// With last words, where it breaks off between two events.
    pub(super) fn ending(mut self, shape: Provider, framing: Framing) -> Passing {
        self.ending = (framing != Framing::Array).then_some((shape, framing));
        self
    }

    /// The next piece. A long one is passed in parts: looking at it may take a while.
    fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if self.before.is_empty() {
            let frame = ready!(Pin::new(&mut self.upstream).poll_frame(context));
            self.last = Instant::now();
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.before.push_back(data),
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let mut data = self.before.pop_front().unwrap_or_default();
        if self.tap.is_some() && data.len() > PIECE_BYTES_MAX {
            self.before.push_front(data.split_off(PIECE_BYTES_MAX));
        }
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn passed(&mut self, data: &Bytes) {
        if let Some(tap) = &mut self.tap {
            tap.push(data);
        }
        self.tail.push(data);
    }

    /// Nothing more comes. What is wrong with that, where the client must be told.
    fn finished(&mut self) -> Result<(), Trouble> {
        self.state = State::Done;
        let seen = self.tap.take().map(|tap| {
            self.is_between_messages = tap.is_between_messages();
            (tap.provider(), tap.finish())
        });
        let unfinished = match &seen {
            Some((provider, seen)) if seen.is_unfinished => Some(Trouble::Unfinished(*provider)),
            _ => None,
        };
        if let Some((_, seen)) = seen {
            self.report.saw(seen);
        }
        match unfinished {
            None => self.report.answered(),
            Some(trouble) if self.tells_unfinished => return Err(trouble),
            Some(trouble) => {
                self.report.failed(&trouble);
            }
        }
        Ok(())
    }

    /// It breaks off here: the client is told, in words if it can be.
    fn broken(
        &mut self,
        trouble: &Trouble,
        context: &Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let words = self.report.failed(trouble);
        let is_between = match (&self.tap, self.ending) {
            (_, None) => false,
            (Some(tap), Some((_, Framing::AwsEvents))) => tap.is_between_messages(),
            (None, Some((_, Framing::AwsEvents))) => self.is_between_messages,
            (_, Some((_, framing))) => self.tail.is_end(framing),
        };
        self.tap = None;
        self.state = State::Broken;
        match self.ending.filter(|_| is_between) {
            Some((shape, framing)) => {
                let event = trouble::event(shape, framing, trouble, &words);
                Poll::Ready(Some(Ok(Frame::data(event))))
            }
            None => self.cut_soon(context),
        }
    }

    /// An error drops what waits to be written: a client that reads gets all that was given before the connection is cut.
    fn cut_soon(&mut self, context: &Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.state = State::Cut;
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Whether it is over by the clock, or because we end.
    fn is_over(&mut self, context: &mut Context<'_>) -> Option<Trouble> {
        if self.closing.as_mut().poll(context).is_ready() {
            return Some(Trouble::Closing);
        }
        loop {
            if self.timer.as_mut().poll(context).is_pending() {
                return None;
            }
            // The timer is not moved with every piece: it may ring early.
            let now = Instant::now();
            if now >= self.until {
                return Some(Trouble::TooLong(self.whole));
            }
            if now >= self.last + self.idle {
                return Some(Trouble::Silent(self.idle));
            }
            let next = self.until.min(self.last + self.idle);
            self.timer.as_mut().reset(next);
        }
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        let is_flowing = matches!(self.state, State::Flowing);
        // An empty body is never asked for.
        if is_flowing
            && self.before.is_empty()
            && self.upstream.is_end_stream()
            && let Err(trouble) = self.finished()
        {
            self.report.failed(&trouble);
        }
    }
}

impl Body for Passing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = &mut *self;
        match this.state {
            State::Flowing => {}
            State::Broken => return this.cut_soon(context),
            State::Cut => {
                this.state = State::Done;
                let why = "the answer broke off at its provider";
                return Poll::Ready(Some(Err(io::Error::other(why))));
            }
            State::Done => return Poll::Ready(None),
        }
        let frame = match std::mem::take(&mut this.unspent) {
            bytes if bytes > 0 && this.turn.poll_spend(context, bytes).is_pending() => {
                Poll::Pending
            }
            _ => this.poll_piece(context),
        };
        match frame {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    this.unspent = data.len();
                    this.passed(&data.clone());
                }
                // Where the length is known nobody asks whether there is more: what is wrong must be told before the
                // last piece is.
                if this.before.is_empty()
                    && this.upstream.is_end_stream()
                    && let Err(trouble) = this.finished()
                {
                    this.ending = None;
                    return this.broken(&trouble, context);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => this.broken(&Trouble::of_exchange(&error), context),
            Poll::Ready(None) => match this.finished() {
                Ok(()) => Poll::Ready(None),
                Err(trouble) => this.broken(&trouble, context),
            },
            Poll::Pending => match this.is_over(context) {
                Some(trouble) => this.broken(&trouble, context),
                None => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match self.state {
            State::Flowing => self.before.is_empty() && self.upstream.is_end_stream(),
            State::Done => true,
            State::Broken | State::Cut => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        let before: u64 = self.before.iter().map(|data| data.len() as u64).sum();
        match (before, self.upstream.size_hint().exact()) {
            (0, Some(exact)) => SizeHint::with_exact(exact),
            _ => SizeHint::default(),
        }
    }
}

/// The last bytes of a body.
#[derive(Default)]
struct Tail {
    bytes: [u8; 4],
    has_any: bool,
}

impl Tail {
    fn push(&mut self, data: &[u8]) {
        self.has_any |= !data.is_empty();
        for byte in &data[data.len().saturating_sub(4)..] {
            self.bytes.rotate_left(1);
            self.bytes[3] = *byte;
        }
    }

    /// Whether an event has ended here.
    fn is_end(&self, framing: Framing) -> bool {
        let ends = |end: &[u8]| self.bytes.ends_with(end);
        !self.has_any
            || match framing {
                Framing::Events => ends(b"\n\n") || ends(b"\r\n\r\n") || ends(b"\r\r"),
                Framing::Lines => ends(b"\n"),
                Framing::Array | Framing::AwsEvents => false,
            }
    }
}
