//! OAuth towards servers over HTTP: what discovery, registration and tokens need is done by rmcp; here is when it is
//! done, by one at a time, and where the result is kept.

mod account;
mod callback;
mod challenge;
mod http;
mod kept;

pub use account::{Account, ClientAuth, ClientCredentials, Grant, OAuthSettings};
pub use challenge::challenge_of;
pub use http::OAuthHttp;
pub use kept::{LoggedIn, TokenStore};

use futures_util::future::BoxFuture;

/// Where a person says yes.
pub trait Browser: Send + Sync {
    /// Where the person is sent back to.
    fn redirect_uri(&self) -> String;

    /// Has a person look at an address; the address they were sent back to. Anybody on this machine can send something
    /// there: what `is_answer` does not take is turned away, and the waiting goes on. Bounds the time by itself.
    fn visit<'a>(
        &'a self,
        address: &'a str,
        is_answer: IsAnswer<'a>,
    ) -> BoxFuture<'a, Result<String, String>>;
}

/// Whether an address that somebody was sent back to is the answer to this login.
pub type IsAnswer<'a> = &'a (dyn Fn(&str) -> bool + Send + Sync);
