//! OAuth towards servers over HTTP: what discovery, registration and tokens need is done by rmcp; here is when it is
//! done, by one at a time, and where the result is kept.

mod account;
mod challenge;
mod kept;

pub use account::{Account, ClientAuth, ClientCredentials, Grant, OAuthSettings};
pub use challenge::challenge_of;
pub use kept::{LoggedIn, TokenStore};

use futures_util::future::BoxFuture;

/// Where a person says yes.
pub trait Browser: Send + Sync {
    /// Where the person is sent back to.
    fn redirect_uri(&self) -> String;

    /// Has a person look at an address; the address they were sent back to. Bounds the time by itself.
    fn visit<'a>(&'a self, address: &'a str) -> BoxFuture<'a, Result<String, String>>;
}
