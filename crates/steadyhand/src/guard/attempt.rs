//! Runs one piece of work: bounded in time, cancellable, its panics contained.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::patience::Patience;

/// How a bounded piece of work ended.
#[derive(Debug)]
pub(crate) enum Ended<T> {
    /// By itself.
    Finished(T),
    /// With a panic; what it said.
    Panicked(String),
    /// At its time limit, dropped.
    TimedOut,
    /// By the caller's cancellation, dropped.
    Cancelled,
}

/// A future of foreign code: it cannot take longer than `until`, nor harm anyone by panicking.
///
/// The timer is made only when the work does not finish at once, which most small tools do.
pub(crate) struct Bounded<'a, T> {
    work: Option<Pin<Box<dyn Future<Output = T> + Send + 'a>>>,
    until: Instant,
    patience: Option<&'a Patience>,
    timer: Option<Pin<Box<Sleep>>>,
    token: Option<&'a CancellationToken>,
    cancelled: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl<'a, T> Bounded<'a, T> {
    pub(crate) fn new(
        work: Pin<Box<dyn Future<Output = T> + Send + 'a>>,
        until: Instant,
        token: Option<&'a CancellationToken>,
    ) -> Bounded<'a, T> {
        Bounded {
            work: Some(work),
            until,
            patience: None,
            timer: None,
            token,
            cancelled: None,
        }
    }

    /// The same, with a limit that signs of life move.
    pub(crate) fn moved_by(mut self, patience: &'a Patience) -> Bounded<'a, T> {
        self.patience = Some(patience);
        self
    }
}

impl<T> Future for Bounded<'_, T> {
    type Output = Ended<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended<T>> {
        let this = &mut *self;
        if let Some(work) = &mut this.work {
            match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
                Ok(Poll::Ready(value)) => return Poll::Ready(Ended::Finished(value)),
                Err(payload) => return Poll::Ready(Ended::Panicked(panic_text(payload))),
                Ok(Poll::Pending) => {}
            }
        }
        if let Some(token) = this.token {
            let cancelled = this
                .cancelled
                .get_or_insert_with(|| Box::pin(token.clone().cancelled_owned()));
            if cancelled.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ended::Cancelled);
            }
        }
        let until = this.until;
        let timer = this
            .timer
            .get_or_insert_with(|| Box::pin(sleep_until(until)));
        while timer.as_mut().poll(cx).is_ready() {
            let moved = this.patience.map(Patience::until);
            match moved.filter(|moved| *moved > timer.deadline()) {
                Some(later) => timer.as_mut().reset(later),
                None => return Poll::Ready(Ended::TimedOut),
            }
        }
        Poll::Pending
    }
}

/// Foreign code runs when its future is dropped, too.
impl<T> Drop for Bounded<'_, T> {
    fn drop(&mut self) {
        let work = self.work.take();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(work))) {
            tracing::warn!(
                panic = panic_text(payload),
                "a tool panicked while it was being dropped"
            );
        }
    }
}

/// Calls foreign code that is not async.
pub(crate) fn contained<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(panic_text)
}

/// What a panic said. The payload is foreign too: dropping it may panic again.
pub(crate) fn panic_text(payload: Box<dyn Any + Send>) -> String {
    let text = match payload.downcast_ref::<&'static str>() {
        Some(text) => (*text).to_owned(),
        None => match payload.downcast_ref::<String>() {
            Some(text) => text.clone(),
            None => "a panic without a text".to_owned(),
        },
    };
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
    text
}
