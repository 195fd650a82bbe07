//! Which clients want to hear of which resources. A server is asked once, for all of them.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};

use super::news::{Letter, Mailbox};
use super::shares::{CallerShares, SharedLimit, WATCHED_RESOURCES_MAX};

/// Who watches what.
#[derive(Default)]
pub(super) struct Subscriptions {
    watched: Mutex<Watched>,
}

#[derive(Default)]
struct Watched {
    by_uri: HashMap<Arc<str>, Vec<Weak<Mailbox>>>,
    /// Of all resources together. Those whose clients are gone count until they are looked for.
    watchers: usize,
}

/// What follows from a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// The server has to be told.
    TellServer,
    /// It was told before, or is still to know.
    Nothing,
}

/// Why a resource cannot be watched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoRoom {
    #[error(
        "{0}; end a subscription or a session that you do not need, then try again. The resource is not watched"
    )]
    OfCaller(String),
    #[error(
        "{WATCHED_RESOURCES_MAX} resources are watched, which is as many as all clients together may; try again later. The resource is not watched"
    )]
    OfAll,
}

impl Subscriptions {
    /// Lets a mailbox hear of a resource; it takes a part of its caller's share for as long as it does.
    pub(super) fn add(
        &self,
        uri: &str,
        mailbox: &Arc<Mailbox>,
        shares: Option<&dyn CallerShares>,
    ) -> Result<Then, NoRoom> {
        let mut watched = self.watched();
        let known = watched.by_uri.get(uri);
        if known.is_some_and(|own| own.iter().any(|other| is_same(other, mailbox))) {
            return Ok(Then::Nothing);
        }
        if watched.watchers >= WATCHED_RESOURCES_MAX {
            return Err(NoRoom::OfAll);
        }
        let taken = shares.map(|shares| shares.take(SharedLimit::WatchedResources));
        let taken = taken.transpose().map_err(NoRoom::OfCaller)?;
        let known = watched.by_uri.get_key_value(uri);
        let known = known.map(|(uri, _)| Arc::clone(uri));
        let then = match known {
            Some(_) => Then::Nothing,
            None => Then::TellServer,
        };
        let uri: Arc<str> = known.unwrap_or_else(|| uri.into());
        mailbox.watches(&uri, taken);
        watched.watchers += 1;
        let own = watched.by_uri.entry(uri).or_default();
        own.push(Arc::downgrade(mailbox));
        Ok(then)
    }

    pub(super) fn remove(&self, uri: &str, mailbox: &Arc<Mailbox>) -> Then {
        let mut watched = self.watched();
        let Some(own) = watched.by_uri.get_mut(uri) else {
            return Then::Nothing;
        };
        let before = own.len();
        own.retain(|other| other.strong_count() > 0 && !is_same(other, mailbox));
        let (gone, is_left) = (before - own.len(), own.is_empty());
        watched.watchers -= gone;
        mailbox.watches_no_more(uri);
        if !is_left {
            return Then::Nothing;
        }
        watched.by_uri.remove(uri);
        Then::TellServer
    }

    /// Everything that is watched, without what nobody watches any more, which is given back apart.
    pub(super) fn all(&self) -> (Vec<Arc<str>>, Vec<Arc<str>>) {
        let mut watched = self.watched();
        let (mut left, mut watchers) = (Vec::new(), 0);
        watched.by_uri.retain(|uri, own| {
            own.retain(|other| other.strong_count() > 0);
            if own.is_empty() {
                left.push(Arc::clone(uri));
            }
            watchers += own.len();
            !own.is_empty()
        });
        watched.watchers = watchers;
        (watched.by_uri.keys().cloned().collect(), left)
    }

    /// A resource has changed; it may be a part of one that is watched.
    pub(super) fn tell(&self, uri: &str, letter: &Letter) {
        let watched = self.watched();
        let concerned = watched
            .by_uri
            .iter()
            .filter(|(watched, _)| uri.starts_with(&***watched));
        for mailbox in concerned.flat_map(|(_, own)| own) {
            if let Some(mailbox) = mailbox.upgrade() {
                mailbox.put(letter.clone());
            }
        }
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock()
    }
}

fn is_same(one: &Weak<Mailbox>, other: &Arc<Mailbox>) -> bool {
    std::ptr::eq(one.as_ptr(), Arc::as_ptr(other))
}

#[cfg(test)]
mod tests {
    use steadyhand::ByteBudget;

    use super::super::shares::testing::FewOfEach;
    use super::*;

    fn mailbox() -> Arc<Mailbox> {
        Arc::new(Mailbox::new(ByteBudget::new("a test", 1)))
    }

    fn watch(all: &Subscriptions, mailbox: &Arc<Mailbox>, shares: &FewOfEach, uris: usize) {
        for number in 0..uris {
            let added = all.add(&format!("file:///{number}"), mailbox, Some(shares));
            assert!(added.is_ok(), "{number}: {added:?}");
        }
    }

    #[test]
    fn s02_resources_that_one_caller_watches_leave_room_for_others() {
        let all = Subscriptions::default();
        let (greedy, other) = (FewOfEach::of("greedy", 300), FewOfEach::of("other", 300));
        // On two connections: what counts is the caller.
        let mailboxes = [mailbox(), mailbox()];
        watch(&all, &mailboxes[0], &greedy, 200);
        watch(&all, &mailboxes[1], &greedy, 100);
        let refused = all.add("file:///more", &mailboxes[1], Some(&greedy));
        let text = refused.expect_err("its share is taken").to_string();
        assert!(text.starts_with("greedy has 300"), "{text}");
        assert!(text.ends_with("The resource is not watched"), "{text}");
        let again = all.add("file:///7", &mailboxes[1], Some(&greedy));
        assert_eq!(again, Ok(Then::Nothing), "what it watches goes on");
        let own = mailbox();
        watch(&all, &own, &other, 200);

        // What is watched no more is given back: a resource, and a connection with all of its resources.
        all.remove("file:///7", &mailboxes[0]);
        assert_eq!(greedy.taken(), 299);
        let [first, second] = mailboxes;
        drop(first);
        assert_eq!(greedy.taken(), 100);
        drop(second);
        assert_eq!((greedy.taken(), other.taken()), (0, 200));
        assert_eq!(all.all().0.len(), 200, "those of the other");
        assert_eq!(all.watched().watchers, 200);
    }

    #[test]
    fn s02_resources_of_clients_that_are_gone_make_room() {
        let all = Subscriptions::default();
        for number in 0..WATCHED_RESOURCES_MAX {
            let mailbox = mailbox();
            let added = all.add(&number.to_string(), &mailbox, None);
            assert_eq!(added, Ok(Then::TellServer));
        }
        let mailbox = mailbox();
        let added = all.add("one more", &mailbox, None);
        assert_eq!(added, Err(NoRoom::OfAll));
        let (_, left) = all.all();
        assert_eq!(left.len(), WATCHED_RESOURCES_MAX);
        assert_eq!(all.add("one more", &mailbox, None), Ok(Then::TellServer));
        assert_eq!(all.remove("one more", &mailbox), Then::TellServer);
    }
}
