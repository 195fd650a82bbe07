//! What a server is to tell us by itself: wished once, and told to it again whenever it begins anew.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use crate::connection::Connection;
use crate::errand::{Alone, Errand, Sender};
use crate::lists::Changed;
use crate::server::Inner;
use crate::slot::Answer;
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

/// What clients wish to hear of a server.
#[derive(Default)]
pub(crate) struct Wishes {
    resources: Mutex<BTreeSet<String>>,
    /// The parameters of the last `logging/setLevel`.
    level: Mutex<Option<Box<RawValue>>>,
    changed: Notify,
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
        let mut resources = lock(&self.resources);
        match (method, uri(params)) {
            ("resources/subscribe", Some(uri)) if resources.len() < WISHES_MAX => {
                resources.insert(uri);
            }
            ("resources/unsubscribe", Some(uri)) => {
                resources.remove(&uri);
            }
            ("logging/setLevel", _) => *lock(&self.level) = params.map(RawValue::to_owned),
            _ => return,
        }
        self.changed.notify_one();
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
        let resources = lock(&self.resources);
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
        lock(&server.wishes.level)
            .clone()
            .map(|level| ("logging/setLevel", level)),
    );
    for uri in lock(&server.wishes.resources).iter() {
        wishes.extend(to_raw_value(&json!({ "uri": uri })).map(|uri| ("resources/subscribe", uri)));
    }
    for (method, params) in wishes {
        let errand = Errand::ours(method, Some(&params));
        let answer = timeout(WISH_LIMIT, errand.run(connection, &Alone)).await;
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

/// The newer era's way: one request that stays open, and is made anew when the wishes change.
async fn listen(server: &Inner, connection: &Connection) -> std::convert::Infallible {
    let mut wait = WAIT;
    let mut is_again = false;
    loop {
        let greeting = server.state.borrow().greeting.clone().unwrap_or_default();
        let Some(filter) = server.wishes.filter(&greeting.capabilities) else {
            server.wishes.changed.notified().await;
            continue;
        };
        if std::mem::replace(&mut is_again, true) {
            // What happened meanwhile was not heard.
            connection.tell_changed(Changed::ALL);
        }
        let began = Instant::now();
        let params = to_raw_value(&json!({ "notifications": filter })).ok();
        let mut errand = Errand::ours("subscriptions/listen", params.as_deref());
        errand.sender = Sender::WeForLong;
        let ended = tokio::select! {
            answer = errand.run(connection, &Alone) => answer,
            () = server.wishes.changed.notified() => {
                is_again = false;
                continue;
            }
        };
        if let Answer::Error(error) = &ended
            && error.code == METHOD_NOT_FOUND
        {
            server.wishes.changed.notified().await;
            continue;
        }
        if began.elapsed() > LASTED {
            wait = WAIT;
        }
        sleep(wait).await;
        wait = (wait * 2).min(WAIT_MAX);
    }
}

fn uri(params: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct About {
        uri: String,
    }
    let about: About = serde_json::from_str(params?.get()).ok()?;
    Some(about.uri)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
