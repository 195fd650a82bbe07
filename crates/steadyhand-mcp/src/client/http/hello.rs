//! The handshake of the older era over HTTP, at the beginning and whenever the server has forgotten us.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hyper::header::HeaderValue;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::{Head, Kind, Link, SessionId, TransportError, exchange};
use crate::client::catalogue::Greeting;
use crate::client::catalogue::lists::Changed;
use crate::client::connection::operation::{Operation, error_of};
use crate::client::connection::slot::{Answer, Whose};
use crate::client::connection::unreadable;
use crate::wire::Outgoing;

impl Link {
    /// `initialize`, whatever the answer. In a box: an exchange may need a new session itself, though not this one.
    pub(crate) fn hello(self: &Arc<Self>) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let (id, slot, _) = self.mux.open(Whose::Ours);
            let _given_up = self.mux.guard(id);
            let Ok(params) = serde_json::from_str::<&RawValue>(&self.hello) else {
                let error = TransportError::new(Kind::NotMcp, "the handshake cannot be written");
                return Answer::TransportError(error);
            };
            let body = Outgoing::request(id, "initialize", params).json().into();
            let head = Head {
                is_hello: true,
                ..Head::default()
            };
            let began = Instant::now();
            let answer = match exchange::run(self, id, &slot, &head, body).await {
                Ok(()) => slot.taken().await,
                Err(error) => Answer::TransportError(error),
            };
            let mut way = self.described();
            let server = self.mux.desk.server.to_string();
            way.insert(0, ("steadyhand.tool.source", server));
            let error = error_of("initialize", &answer);
            Operation::new("initialize", None).count(way, error, began.elapsed());
            answer
        })
    }

    /// The handshake is over: this is the version, and the server is told.
    pub(crate) async fn greeted(self: &Arc<Self>, greeting: &Greeting) {
        let version = HeaderValue::from_str(&greeting.protocol_version).ok();
        self.version.store(version.map(Arc::new));
        let told = Outgoing::<RawValue>::notification("notifications/initialized", None).line();
        // In its order: what comes next may be refused before this.
        let told = exchange::say(self, told.into()).await;
        if let Err(error) = told {
            tracing::debug!("notifications/initialized was not taken: {}", error.text);
        }
    }

    /// The server has forgotten the session: begins another one, once for all who found out.
    pub(super) async fn renew(self: &Arc<Self>, lost: &SessionId) -> Result<(), TransportError> {
        let _turn = self.renewing.lock().await;
        let current = self.session.load_full();
        if current.is_some_and(|current| current.number != lost.number) {
            return Ok(());
        }
        // Whatever it is, what was to be sent was not taken.
        let failed = |why: &str| {
            let why = format!("its session was lost, and no other could be begun: {why}");
            TransportError::new(Kind::Unreachable, why)
        };
        let result = match self.hello().await {
            Answer::Result(result) => result,
            Answer::Error(error) => return Err(failed(&error.message)),
            Answer::TransportError(error) => return Err(failed(&error.text)),
            Answer::Unreadable(why) => return Err(failed(&unreadable(&why))),
            Answer::TooLarge(_) | Answer::NoMemory(_) | Answer::Lost(_) | Answer::Unanswered(_) => {
                return Err(failed("no answer"));
            }
        };
        let greeting = Greeting::read(&result).map_err(|_| failed("no valid answer"))?;
        self.greeted(&greeting).await;
        self.mux.tell_changed(Changed::ALL);
        self.renewed.notify_one();
        tracing::info!("the server had forgotten the session; another one was begun");
        Ok(())
    }
}
