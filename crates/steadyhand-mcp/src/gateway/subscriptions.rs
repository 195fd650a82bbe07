//! Which clients want to hear of which resources. A server is asked once, for all of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::news::{Letter, Mailbox};

/// So many resources may be watched at the same time, all clients together.
const WATCHED_MAX: usize = 10_000;

/// Who watches what.
#[derive(Default)]
pub(super) struct Subscriptions {
    watchers: Mutex<HashMap<Arc<str>, Vec<Weak<Mailbox>>>>,
}

/// What follows from a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// The server has to be told.
    TellServer,
    /// It was told before, or is still to know.
    Nothing,
    /// There is no room.
    Refuse,
}

impl Subscriptions {
    pub(super) fn add(&self, uri: &str, mailbox: &Arc<Mailbox>) -> Then {
        let mut watchers = self.watchers();
        if let Some(own) = watchers.get_mut(uri) {
            own.retain(|other| other.strong_count() > 0);
            let is_there = own.iter().any(|other| is_same(other, mailbox));
            if !is_there {
                own.push(Arc::downgrade(mailbox));
            }
            return Then::Nothing;
        }
        if watchers.len() >= WATCHED_MAX {
            return Then::Refuse;
        }
        watchers.insert(uri.into(), vec![Arc::downgrade(mailbox)]);
        Then::TellServer
    }

    pub(super) fn remove(&self, uri: &str, mailbox: &Arc<Mailbox>) -> Then {
        let mut watchers = self.watchers();
        let Some(own) = watchers.get_mut(uri) else {
            return Then::Nothing;
        };
        own.retain(|other| other.strong_count() > 0 && !is_same(other, mailbox));
        if !own.is_empty() {
            return Then::Nothing;
        }
        watchers.remove(uri);
        Then::TellServer
    }

    /// Everything that is watched, without what nobody watches any more, which is given back apart.
    pub(super) fn all(&self) -> (Vec<Arc<str>>, Vec<Arc<str>>) {
        let mut watchers = self.watchers();
        let mut left = Vec::new();
        watchers.retain(|uri, own| {
            own.retain(|other| other.strong_count() > 0);
            if own.is_empty() {
                left.push(Arc::clone(uri));
            }
            !own.is_empty()
        });
        (watchers.keys().cloned().collect(), left)
    }

    /// A resource has changed; it may be a part of one that is watched.
    pub(super) fn tell(&self, uri: &str, letter: &Letter) {
        let watchers = self.watchers();
        let concerned = watchers
            .iter()
            .filter(|(watched, _)| uri.starts_with(&***watched));
        for mailbox in concerned.flat_map(|(_, own)| own) {
            if let Some(mailbox) = mailbox.upgrade() {
                mailbox.put(letter.clone());
            }
        }
    }

    fn watchers(&self) -> MutexGuard<'_, HashMap<Arc<str>, Vec<Weak<Mailbox>>>> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_same(one: &Weak<Mailbox>, other: &Arc<Mailbox>) -> bool {
    std::ptr::eq(one.as_ptr(), Arc::as_ptr(other))
}
