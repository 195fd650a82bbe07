//! Logins: what a browser keeps stands for the credentials that it showed once. Those are looked at again with every
//! request, so that a key that is revoked ends its logins, too.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

/// How long a login lasts.
pub(super) const LASTS: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Logins at the same time; the one that would end first makes room.
const SESSIONS_MAX: usize = 1000;

/// Who is logged in. Only digests of what browsers keep are here.
#[derive(Default)]
pub(crate) struct Sessions {
    open: Mutex<HashMap<[u8; 32], Session>>,
}

struct Session {
    credential: SecretString,
    until: Instant,
}

impl Sessions {
    /// What the browser is to keep for these credentials.
    pub(super) fn begin(&self, credential: &str) -> String {
        let random = || uuid::Uuid::new_v4().simple().to_string();
        let kept = random() + &random();
        let now = Instant::now();
        let mut open = self.open();
        open.retain(|_, session| session.until > now);
        if open.len() >= SESSIONS_MAX {
            let first = open.iter().min_by_key(|(_, session)| session.until);
            if let Some(first) = first.map(|(digest, _)| *digest) {
                open.remove(&first);
            }
        }
        let session = Session {
            credential: credential.into(),
            until: now + LASTS,
        };
        open.insert(digest(&kept), session);
        kept
    }

    /// The credentials that it stands for.
    pub(super) fn credential(&self, kept: &str) -> Option<SecretString> {
        let open = self.open();
        let session = open.get(&digest(kept))?;
        let is_open = session.until > Instant::now();
        is_open.then(|| session.credential.expose_secret().into())
    }

    pub(super) fn end(&self, kept: &str) {
        self.open().remove(&digest(kept));
    }

    fn open(&self) -> MutexGuard<'_, HashMap<[u8; 32], Session>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn digest(kept: &str) -> [u8; 32] {
    Sha256::digest(kept.as_bytes()).into()
}
