//! The requests of a login: discovery, registration, tokens. Their addresses are named by servers, so whoever starts us
//! decides which of them may be reached.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hyper::{Request, Response};
use parking_lot::Mutex;
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest,
};

/// Sends the requests of logins.
pub trait OAuthHttp: Send + Sync {
    /// One request, to its whole answer; what sends it on is the answer unless it follows. Bounds time and size by
    /// itself. The error says why there is no answer.
    fn send(
        &self,
        request: Request<Vec<u8>>,
        follows: bool,
    ) -> BoxFuture<'_, Result<Response<Vec<u8>>, String>>;
}

/// The same for rmcp, which says only that a request failed: why it did is kept here.
#[derive(Clone)]
pub(super) struct Sender {
    http: Arc<dyn OAuthHttp>,
    trouble: Arc<Mutex<Option<String>>>,
}

impl Sender {
    pub(super) fn new(http: Arc<dyn OAuthHttp>) -> Sender {
        Sender {
            http,
            trouble: Arc::default(),
        }
    }

    /// Why the last request that failed did.
    pub(super) fn take_trouble(&self) -> Option<String> {
        let mut trouble = self.trouble.lock();
        trouble.take()
    }
}

impl OAuthHttpClient for Sender {
    fn execute(&self, asked: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        let follows = asked.redirect_policy == OAuthHttpRedirectPolicy::Follow;
        let sent = self.http.send(asked.request, follows);
        Box::pin(async move {
            sent.await.map_err(|why| {
                let mut trouble = self.trouble.lock();
                *trouble = Some(why.clone());
                why.into()
            })
        })
    }
}
