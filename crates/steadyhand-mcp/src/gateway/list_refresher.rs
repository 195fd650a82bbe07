//! Keeps a gateway up to date, in the background: its lists, what servers say, sessions nobody uses any more.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::client::Client;
use super::dispatch::Inner;
use super::inquiry::level;
use super::news::{Letter, Mailbox};
use super::passing::{tell_level, uri_of};
use crate::client::notices::{NoNotice, Notice, NoticeReceiver};
use crate::client::server::Server;
use crate::client::state::ServerState;

/// Changes that come together are one: a server that starts brings its tools, prompts and resources one by one.
const TOGETHER: Duration = Duration::from_millis(25);
const TIDYING: Duration = Duration::from_secs(30);

/// What tells that something has changed.
pub(super) struct Signs {
    tools: watch::Receiver<u64>,
    servers: Option<watch::Receiver<u64>>,
}

impl Signs {
    pub(super) fn of(inner: &Inner) -> Signs {
        Signs {
            tools: inner.host.tools().changes(),
            servers: inner.host.servers_changed(),
        }
    }

    /// Waits for the next; false when there will be none.
    async fn next(&mut self) -> bool {
        let servers = async {
            match &mut self.servers {
                Some(servers) => servers.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = self.tools.changed() => changed.is_ok(),
            changed = servers => changed.is_ok(),
        }
    }
}

/// Goes on as long as the gateway lives.
pub(super) async fn keep(gateway: Weak<Inner>, mut signs: Signs) {
    let mut followed = Followed::default();
    let mut tidying = interval(TIDYING);
    tidying.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let Some(inner) = gateway.upgrade() else {
            return;
        };
        followed.keep_up(&inner);
        drop(inner);
        tokio::select! {
            goes_on = signs.next() => {
                if !goes_on {
                    return;
                }
                sleep(TOGETHER).await;
                let Some(inner) = gateway.upgrade() else {
                    return;
                };
                // Thousands of tools take their time.
                let _ = tokio::task::spawn_blocking(move || inner.renew()).await;
            }
            _ = tidying.tick() => {
                if let Some(inner) = gateway.upgrade() {
                    inner.tidy();
                }
            }
        }
    }
}

/// The servers whose words are heard.
#[derive(Default)]
struct Followed(HashMap<String, Following>);

struct Following {
    server: Server,
    task: AbortHandle,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Followed {
    fn keep_up(&mut self, inner: &Arc<Inner>) {
        let servers = inner.host.servers();
        self.0
            .retain(|_, following| servers.iter().any(|server| server.is(&following.server)));
        for server in servers {
            if self.0.contains_key(server.name()) {
                continue;
            }
            let task = follow(
                Arc::downgrade(inner),
                server.name().to_owned(),
                server.notices(),
                server.changes(),
            );
            let task = tokio::spawn(task).abort_handle();
            let name = server.name().to_owned();
            self.0.insert(name, Following { server, task });
        }
    }
}

/// Hears one server. It has no handle of it: a server that nobody else has must go.
async fn follow(
    gateway: Weak<Inner>,
    name: String,
    mut notices: NoticeReceiver,
    mut changes: watch::Receiver<ServerState>,
) {
    let mut starts = changes.borrow_and_update().starts;
    loop {
        tokio::select! {
            notice = notices.recv() => match (notice, gateway.upgrade()) {
                (Ok(notice), Some(inner)) => inner.take_notice(&notice),
                (Err(NoNotice::Missed(missed)), Some(_)) => {
                    tracing::debug!(server = name, missed, "it says more than can be passed on");
                }
                (Err(NoNotice::Closed), _) | (_, None) => return,
            },
            changed = changes.changed() => {
                let now = changes.borrow_and_update().starts;
                let (Ok(()), Some(inner)) = (changed, gateway.upgrade()) else {
                    return;
                };
                // One that was started anew knows nothing of what it was asked before.
                if std::mem::replace(&mut starts, now) != now && now > 1 {
                    inner.remind(&name);
                }
            }
        }
    }
}

impl Inner {
    fn take_notice(&self, notice: &Notice) {
        let Some(params) = &notice.params else {
            return;
        };
        match &*notice.method {
            "notifications/resources/updated" => {
                if let Some(uri) = uri_of(params) {
                    let letter = Letter::Updated {
                        uri: uri.as_str().into(),
                        params: Arc::clone(params),
                    };
                    self.subscriptions.tell(&uri, &letter);
                }
            }
            "notifications/message" => self.tell_log_readers(params),
            method => tracing::debug!(server = &*notice.server, method, "a notification"),
        }
    }

    fn tell_log_readers(&self, params: &Arc<RawValue>) {
        let level = level(Some(params));
        for (client, mailbox) in self.log_readers() {
            if client.hears(level.as_deref()) {
                mailbox.put(Letter::Logged(Arc::clone(params)));
            }
        }
    }

    pub(super) fn add_log_reader(&self, client: &Arc<Client>, mailbox: &Arc<Mailbox>) {
        let mut readers = self.log_readers.lock();
        let is_it = |other: &Weak<Client>| std::ptr::eq(other.as_ptr(), Arc::as_ptr(client));
        readers.retain(|(other, _)| other.strong_count() > 0 && !is_it(other));
        readers.push((Arc::downgrade(client), Arc::downgrade(mailbox)));
    }

    fn log_readers(&self) -> Vec<(Arc<Client>, Arc<Mailbox>)> {
        let readers = self.log_readers.lock();
        let living = readers.iter();
        living
            .filter_map(|(client, mailbox)| Some((client.upgrade()?, mailbox.upgrade()?)))
            .collect()
    }

    /// Tells a server again what clients want of it.
    fn remind(&self, name: &str) {
        let servers = self.host.servers();
        let Some(server) = servers.into_iter().find(|server| server.name() == name) else {
            return;
        };
        let (watched, _) = self.subscriptions.all();
        for uri in watched {
            let servers = self.listing().routes.resource(&uri);
            if servers.iter().any(|other| other.is(&server)) {
                self.ask_in_background("resources/subscribe", &uri);
            }
        }
        if let Some(level) = self.wanted_level().and_then(Client::level_at) {
            tell_level(server, level);
        }
    }

    /// The least severe level that anyone wants to hear.
    fn wanted_level(&self) -> Option<u8> {
        let readers = self.log_readers();
        let levels = readers
            .iter()
            .filter_map(|(client, _)| client.level_place());
        levels.min()
    }

    /// Lets all servers know, if it is another than before.
    pub(super) fn tell_wanted_level(&self) {
        let Some(place) = self.wanted_level() else {
            return;
        };
        let told = self.told_level.swap(place, Ordering::Relaxed);
        if let (true, Some(level)) = (told != place, Client::level_at(place)) {
            for server in self.host.servers() {
                tell_level(server, level);
            }
        }
    }

    fn tidy(&self) {
        self.tidy_subscriptions();
        self.sessions.tidy();
    }

    /// Forgets what nobody watches any more, and lets its servers know.
    pub(super) fn tidy_subscriptions(&self) {
        let (_, left) = self.subscriptions.all();
        for uri in left {
            self.ask_in_background("resources/unsubscribe", &uri);
        }
    }
}
