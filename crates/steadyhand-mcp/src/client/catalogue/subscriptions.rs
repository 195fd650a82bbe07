//! What a server is to tell us by itself: wished once, and told to it again whenever it begins anew.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::client::calls::server_request::{NoListener, ProgressListener, Sender, ServerRequest};
use crate::client::catalogue::lists::Changed;
use crate::client::connection::Connection;
use crate::client::connection::slot::{Answer, Progress};
use crate::client::server::Inner;
use crate::wire::RpcError;

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
/// Resources of one server that may be wished to be heard of.
const WISHES_MAX: usize = 10_000;
/// How long telling one wish again may take.
const WISH_LIMIT: Duration = Duration::from_secs(10);
/// The wait before listening again; it doubles while it does not last.
const WAIT: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(60);
const LASTED: Duration = Duration::from_secs(10);
/// How long a server may take to say that it tells us from now on what we wish.
const TOLD_LIMIT: Duration = Duration::from_secs(2);

/// What clients wish to hear of a server.
#[derive(Default)]
pub(crate) struct Wishes {
    resources: Mutex<BTreeSet<String>>,
    /// The parameters of the last `logging/setLevel`.
    level: Mutex<Option<Box<RawValue>>>,
    changed: Notify,
    /// How often the wishes have changed, and of which of these changes the server has said that it knows.
    count: AtomicU64,
    known: watch::Sender<u64>,
}

impl Wishes {
    /// What of a request is ours to answer, since the server knows no such request; none if it is to be sent on.
    pub(crate) fn answer(
        &self,
        method: &str,
        params: Option<&RawValue>,
        capabilities: &Value,
    ) -> Option<Result<Box<RawValue>, RpcError>> {
        let can = capabilities.pointer("/resources/subscribe") == Some(&Value::Bool(true));
        match method {
            "resources/subscribe" | "resources/unsubscribe" if !can => {
                let text = format!("the server does not tell of changed resources: no {method}");
                return Some(Err(RpcError::new(METHOD_NOT_FOUND, text)));
            }
            "resources/subscribe" | "resources/unsubscribe" => {
                if uri(params).is_none() {
                    let text = format!("{method} needs the uri of a resource");
                    return Some(Err(RpcError::new(INVALID_PARAMS, text)));
                }
                self.note(method, params);
            }
            // It goes with each request of whoever wants to hear messages.
            "logging/setLevel" => {}
            "ping" => {}
            _ => return None,
        }
        Some(Ok(to_raw_value(&json!({})).unwrap_or_default()))
    }

    /// The server has been told.
    pub(crate) fn note(&self, method: &str, params: Option<&RawValue>) {
        let mut resources = self.resources.lock();
        match (method, uri(params)) {
            ("resources/subscribe", Some(uri)) if resources.len() < WISHES_MAX => {
                resources.insert(uri);
            }
            ("resources/unsubscribe", Some(uri)) => {
                resources.remove(&uri);
            }
            ("logging/setLevel", _) => *self.level.lock() = params.map(RawValue::to_owned),
            _ => return,
        }
        self.count.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_one();
    }

    /// Waits until a server of the newer era tells us all we wish now: it says so. One that does not is not waited
    /// for, for long.
    pub(crate) async fn listened_to(&self, until: Instant) {
        let wished = self.count.load(Ordering::Acquire);
        let mut known = self.known.subscribe();
        let until = until.min(Instant::now() + TOLD_LIMIT);
        let _ = timeout_at(until, known.wait_for(|known| *known >= wished)).await;
    }

    fn is_known(&self, count: u64) {
        self.known.send_if_modified(|known| {
            let is_news = *known < count;
            *known = count.max(*known);
            is_news
        });
    }

    /// What is to be listened to, of a server of the newer era; none if there is nothing.
    fn filter(&self, capabilities: &Value) -> Option<Value> {
        let mut filter = Map::new();
        for (kind, member) in [
            ("tools", "toolsListChanged"),
            ("prompts", "promptsListChanged"),
            ("resources", "resourcesListChanged"),
        ] {
            if capabilities[kind]["listChanged"] == true {
                filter.insert(member.to_owned(), json!(true));
            }
        }
        let resources = self.resources.lock();
        if !resources.is_empty() {
            filter.insert("resourceSubscriptions".to_owned(), json!(*resources));
        }
        (!filter.is_empty()).then_some(Value::Object(filter))
    }
}

/// Keeps the server telling, as long as it is up.
pub(crate) async fn keep(server: &Inner, connection: &Connection) -> std::convert::Infallible {
    if connection.is_modern() {
        return listen(server, connection).await;
    }
    loop {
        tell_again(server, connection).await;
        connection.renewed().await;
    }
}

/// Tells a server of the older era what it has been told before.
async fn tell_again(server: &Inner, connection: &Connection) {
    let mut wishes: Vec<(&str, Box<RawValue>)> = Vec::new();
    wishes.extend(
        server
            .wishes
            .level
            .lock()
            .clone()
            .map(|level| ("logging/setLevel", level)),
    );
    for uri in server.wishes.resources.lock().iter() {
        wishes.extend(to_raw_value(&json!({ "uri": uri })).map(|uri| ("resources/subscribe", uri)));
    }
    for (method, params) in wishes {
        let errand = ServerRequest::ours(method, Some(&params));
        let answer = timeout(WISH_LIMIT, errand.run(connection, &NoListener)).await;
        if !matches!(answer, Ok(Answer::Result(_))) {
            let name = &server.settings.name;
            tracing::warn!(
                server = name,
                method,
                "what clients wish to hear could not be told again"
            );
        }
    }
}

/// The newer era's way: one request that stays open, and is made anew when the wishes change. The old one is let go
/// when the server has said that it knows the new one: in between nothing is missed.
async fn listen(server: &Inner, connection: &Connection) -> std::convert::Infallible {
    let wishes = &server.wishes;
    let mut wait = WAIT;
    let mut is_again = false;
    let mut before: Option<BoxFuture<'_, Answer>> = None;
    loop {
        let greeting = server.state.borrow().greeting.clone().unwrap_or_default();
        // Read before the wishes are: they may be newer than this, but not older.
        let count = wishes.count.load(Ordering::Acquire);
        let Some(filter) = wishes.filter(&greeting.capabilities) else {
            before = None;
            wishes.is_known(count);
            wishes.changed.notified().await;
            continue;
        };
        if std::mem::replace(&mut is_again, true) {
            // What happened meanwhile was not heard.
            connection.tell_changed(Changed::ALL);
        }
        let began = Instant::now();
        let mut open = listening(wishes, connection, filter, count);
        let mut known = wishes.known.subscribe();
        let ended = loop {
            let is_known = timeout(TOLD_LIMIT, known.wait_for(|known| *known >= count));
            tokio::select! {
                answer = &mut open => break Some(answer),
                () = wishes.changed.notified() => break None,
                _ = going_on(&mut before) => before = None,
                _ = is_known, if before.is_some() => before = None,
            }
        };
        let Some(ended) = ended else {
            is_again = false;
            before = Some(open);
            continue;
        };
        before = None;
        if let Answer::Error(error) = &ended
            && error.code == METHOD_NOT_FOUND
        {
            wishes.is_known(count);
            wishes.changed.notified().await;
            continue;
        }
        if began.elapsed() > LASTED {
            wait = WAIT;
        }
        sleep(wait).await;
        wait = (wait * 2).min(WAIT_MAX);
    }
}

/// The request that stays open.
fn listening<'a>(
    wishes: &'a Wishes,
    connection: &'a Connection,
    filter: Value,
    count: u64,
) -> BoxFuture<'a, Answer> {
    let open = async move {
        let params = to_raw_value(&json!({ "notifications": filter })).ok();
        let mut errand = ServerRequest::ours("subscriptions/listen", params.as_deref());
        errand.sender = Sender::WeForLong;
        errand
            .run(connection, &Acknowledged { wishes, count })
            .await
    };
    open.boxed()
}

async fn going_on(open: &mut Option<BoxFuture<'_, Answer>>) -> Answer {
    match open {
        Some(open) => open.await,
        None => pending().await,
    }
}

/// The first that is heard of the request: that the server knows it.
struct Acknowledged<'a> {
    wishes: &'a Wishes,
    count: u64,
}

impl ProgressListener for Acknowledged<'_> {
    fn progress(&self, _: Progress) {
        self.wishes.is_known(self.count);
    }

    fn thinking(&self) {}
}

fn uri(params: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct About {
        uri: String,
    }
    let about: About = steadyhand::typed_json::from_str(params?.get()).ok()?;
    Some(about.uri)
}
