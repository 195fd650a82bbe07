//! What a server says about logging in to somebody who shows nothing: its `WWW-Authenticate`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, pending, ready};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::client::credentials::{Credentials, Login, Refusal};
use crate::client::server::Server;
use crate::client::settings::{ServerSettings, When};

/// How long a server may take to refuse us.
const PATIENCE: Duration = Duration::from_secs(20);

/// Begins a conversation with a server over HTTP as it is configured, without a login, and gives back the challenge it
/// is refused with. None if the server lets everybody in, cannot be reached, or refuses without a word about it.
pub async fn challenge_of(mut settings: ServerSettings) -> Option<String> {
    let (told, mut heard) = watch::channel(None);
    let listener = Arc::new(Listener { told });
    settings.as_http().login = Some(Login::new("nobody", listener));
    settings.start.waits = vec![Duration::ZERO];
    settings.start.when = When::Boot;
    let server = Server::new(settings, None);
    server.start();
    tokio::select! {
        _ = timeout(PATIENCE, heard.wait_for(Option::is_some)) => {}
        _ = server.settled(PATIENCE) => {}
    }
    server.stop().await;
    heard.borrow().clone()
}

/// Shows nothing, and keeps what it hears.
struct Listener {
    told: watch::Sender<Option<String>>,
}

impl Credentials for Listener {
    fn current(&self) -> BoxFuture<'_, Option<Arc<str>>> {
        Box::pin(ready(None))
    }

    /// Nothing is tried again: the conversation is over as soon as the challenge is known.
    fn refused<'a>(&'a self, refusal: Refusal<'a>) -> BoxFuture<'a, Result<(), String>> {
        self.told.send_replace(refusal.challenge.map(str::to_owned));
        match refusal.challenge {
            Some(_) => Box::pin(pending()),
            None => Box::pin(ready(Err(
                "it wants a login, and does not say where".to_owned()
            ))),
        }
    }
}
