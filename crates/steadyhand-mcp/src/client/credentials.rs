//! What is shown to a server that asks who we are, where that changes while we run.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

/// Somebody who has tokens for a server, and can get others.
pub trait Credentials: Send + Sync {
    /// What the next request shows; none where there is nothing to show.
    fn current(&self) -> BoxFuture<'_, Option<Arc<str>>>;

    /// The server refused a request for what it showed. `Ok`: there is something else to show, and it may be sent
    /// again. An error says what a person can do.
    fn refused<'a>(&'a self, refusal: Refusal<'a>) -> BoxFuture<'a, Result<(), String>>;

    /// A text without what is shown.
    fn hidden(&self, text: String) -> String {
        text
    }
}

/// A request that a server refused: nothing was done.
#[derive(Clone, Copy)]
pub struct Refusal<'a> {
    /// 401, or 403 where what was shown does not reach far enough.
    pub status: u16,
    /// `WWW-Authenticate`
    pub challenge: Option<&'a str>,
    /// What the request had shown.
    pub shown: Option<&'a str>,
}

/// Credentials of a server, told apart by whose they are: new ones of the same make no other server.
#[derive(Clone)]
pub struct Login {
    of: String,
    credentials: Arc<dyn Credentials>,
}

impl Login {
    /// `of` says whose they are.
    pub fn new(of: impl Into<String>, credentials: Arc<dyn Credentials>) -> Login {
        Login {
            of: of.into(),
            credentials,
        }
    }

    pub(crate) fn credentials(&self) -> &Arc<dyn Credentials> {
        &self.credentials
    }
}

impl PartialEq for Login {
    fn eq(&self, other: &Login) -> bool {
        self.of == other.of
    }
}

impl Eq for Login {}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("of", &self.of)
            .finish_non_exhaustive()
    }
}
