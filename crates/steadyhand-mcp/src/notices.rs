//! What a server says that concerns nobody in particular, for whoever wants to hear it.

use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::sync::broadcast;

use crate::era::META_SUBSCRIPTION;
use crate::wire::Members;

/// So many may wait for one who hears them late; then the oldest are lost to them.
const QUEUED_MAX: usize = 256;

/// Something a server said, about no request in particular: `notifications/resources/updated`, a message of its log.
/// What it says about its lists is not among them: those are read anew, and [`Server::changes`](crate::Server::changes)
/// tells.
#[derive(Debug, Clone)]
pub struct Notice {
    /// Which server.
    pub server: Arc<str>,
    /// What happened.
    pub method: Arc<str>,
    /// In detail, as the server wrote it.
    pub params: Option<Arc<RawValue>>,
}

/// Where they go out.
pub(crate) struct Notices {
    server: Arc<str>,
    out: broadcast::Sender<Notice>,
}

impl Notices {
    pub(crate) fn of(server: &str) -> Notices {
        Notices {
            server: server.into(),
            out: broadcast::Sender::new(QUEUED_MAX),
        }
    }

    pub(crate) fn tell(&self, method: &str, params: Option<&RawValue>) {
        if self.out.receiver_count() == 0 {
            return;
        }
        let notice = Notice {
            server: Arc::clone(&self.server),
            method: method.into(),
            params: params.map(|params| without_our_mark(params).into()),
        };
        let _ = self.out.send(notice);
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Notice> {
        self.out.subscribe()
    }
}

/// Which of our requests it answers concerns nobody else.
fn without_our_mark(params: &RawValue) -> Box<RawValue> {
    let is_marked = params.get().contains(META_SUBSCRIPTION);
    let stripped = || {
        let members = Members::of(params)?;
        let meta = Members::of(members.get("_meta")?)?.without(META_SUBSCRIPTION);
        Some(match meta.0.is_empty() {
            true => members.without("_meta").to_raw(),
            false => {
                let meta = meta.to_raw();
                members.with("_meta", &meta).to_raw()
            }
        })
    };
    is_marked
        .then(stripped)
        .flatten()
        .unwrap_or_else(|| params.to_owned())
}
