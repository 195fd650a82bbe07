//! Answers that keep something until they are sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

/// Keeps something until the whole answer was handed over, or given up.
pub(crate) fn until_answered(response: Response, kept: impl Send + Unpin + 'static) -> Response {
    response.map(|body| Body::new(KeptBody { body, _kept: kept }))
}

struct KeptBody<K> {
    body: Body,
    _kept: K,
}

impl<K: Unpin> hyper::body::Body for KeptBody<K> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
