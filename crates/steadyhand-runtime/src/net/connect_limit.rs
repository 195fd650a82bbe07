//! Ends connecting before the request's own time is over, so that "never connected" is told apart from "no answer".

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::{Instant, timeout_at};
use tower::{BoxError, Layer, Service};

tokio::task_local! {
    /// When the request of this task ends.
    static REQUEST_ENDS: Instant;
}

/// Runs a request that ends at `ends`: connections opened for it are given nine tenths of the time that is left.
pub(super) async fn with_connect_limit<T>(ends: Instant, request: impl Future<Output = T>) -> T {
    REQUEST_ENDS.scope(ends, request).await
}

/// Wraps the connector of a client.
#[derive(Clone, Copy)]
pub(super) struct ConnectLimit;

impl<S> Layer<S> for ConnectLimit {
    type Service = LimitedConnector<S>;

    fn layer(&self, connector: S) -> LimitedConnector<S> {
        LimitedConnector(connector)
    }
}

/// A connector that gives up in time.
#[derive(Clone)]
pub(super) struct LimitedConnector<S>(S);

impl<S, R> Service<R> for LimitedConnector<S>
where
    S: Service<R, Error = BoxError>,
    S::Future: Send + 'static,
    S::Response: 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, target: R) -> Self::Future {
        let connecting = self.0.call(target);
        let Ok(ends) = REQUEST_ENDS.try_with(|ends| *ends) else {
            return Box::pin(connecting);
        };
        let now = Instant::now();
        let until = now + ends.saturating_duration_since(now) * 9 / 10;
        Box::pin(async move {
            match timeout_at(until, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            }
        })
    }
}
