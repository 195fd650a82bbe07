//! A stream of our own that may end with a cut: what was given before it is sent first.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Bytes;
use futures_util::Stream;

/// Passes pieces on. An error drops what waits to be written, so one pause lies before it: that is when it is written.
pub(super) struct Cut<S> {
    pieces: S,
    error: Option<io::Error>,
}

impl<S> Cut<S> {
    pub(super) fn new(pieces: S) -> Cut<S> {
        Cut {
            pieces,
            error: None,
        }
    }
}

impl<S: Stream<Item = io::Result<Bytes>> + Unpin> Stream for Cut<S> {
    type Item = io::Result<Bytes>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Bytes>>> {
        if let Some(error) = self.error.take() {
            return Poll::Ready(Some(Err(error)));
        }
        match ready!(Pin::new(&mut self.pieces).poll_next(context)) {
            Some(Err(error)) => {
                self.error = Some(error);
                context.waker().wake_by_ref();
                Poll::Pending
            }
            piece => Poll::Ready(piece),
        }
    }
}
