//! A connection whose readers give way: whoever parses what comes on it has a turn of so many bytes, and then others have
//! theirs. A parser that finds nothing for anybody in what it reads (`100 Continue` without an end) returns to no reader by
//! itself, so a budget of the reader's does not help.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::cooperative_budget::CooperativeBudget;

/// What is read at once.
const READ_BYTES_MAX: usize = 16 * 1024;
/// A byte that has to be parsed takes longer than one that is passed on: it counts as so many.
const PARSED_BYTE_COST: usize = 2;

/// A stream that is read in turns.
#[derive(Debug)]
pub struct CooperativeStream<T> {
    inner: T,
    turn: CooperativeBudget,
    /// Read and not counted yet: the turn ends before the next reading.
    unspent: usize,
}

impl<T> CooperativeStream<T> {
    /// The same stream, in turns.
    pub fn new(inner: T) -> CooperativeStream<T> {
        CooperativeStream {
            inner,
            turn: CooperativeBudget::default(),
            unspent: 0,
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for CooperativeStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        match std::mem::take(&mut this.unspent) {
            0 => {}
            bytes => ready!(this.turn.poll_spend(context, PARSED_BYTE_COST * bytes)),
        }
        let before = buffer.filled().len();
        if buffer.remaining() <= READ_BYTES_MAX {
            ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
        } else {
            let mut part = ReadBuf::new(buffer.initialize_unfilled_to(READ_BYTES_MAX));
            ready!(Pin::new(&mut this.inner).poll_read(context, &mut part))?;
            let bytes = part.filled().len();
            buffer.advance(bytes);
        }
        this.unspent = buffer.filled().len() - before;
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for CooperativeStream<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
