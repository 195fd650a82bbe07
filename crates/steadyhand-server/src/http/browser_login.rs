//! Logins: what a browser keeps stands for the credentials that it showed once. Those are looked at again with every
//! request, so that a key that is revoked ends its logins, too.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::App;
use super::status::Refused;
use steadyhand_runtime::access::Identity;

/// What a browser keeps.
pub const SESSION_COOKIE: &str = "steadyhand_session";
/// How long a login lasts.
pub const LASTS: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Logins at the same time. Whoever has most makes room, with the one that would end first.
const SESSIONS_MAX: usize = 1000;
/// Logins with the same credentials at the same time; the one that would end first makes room.
const SESSIONS_PER_CREDENTIAL_MAX: usize = 250;

/// Who is logged in. Only digests of what browsers keep are here.
#[derive(Default)]
pub struct Sessions {
    open: Mutex<HashMap<[u8; 32], Session>>,
}

struct Session {
    credential: SecretString,
    /// Of the credentials: whose login it is.
    owner: [u8; 32],
    until: Instant,
}

impl Sessions {
    /// What the browser is to keep for these credentials.
    pub fn begin(&self, credential: &str) -> String {
        let random = || uuid::Uuid::new_v4().simple().to_string();
        let kept = random() + &random();
        let now = Instant::now();
        let mut open = self.open();
        open.retain(|_, session| session.until > now);
        let owner = digest(credential);
        let mut counts: HashMap<[u8; 32], usize> = HashMap::new();
        for session in open.values() {
            *counts.entry(session.owner).or_default() += 1;
        }
        if counts.get(&owner).copied() >= Some(SESSIONS_PER_CREDENTIAL_MAX) {
            end_first(&mut open, &owner);
        } else if open.len() >= SESSIONS_MAX {
            let most = counts.iter().max_by_key(|(_, count)| **count);
            if let Some((owner, _)) = most {
                end_first(&mut open, owner);
            }
        }
        let session = Session {
            credential: credential.into(),
            owner,
            until: now + LASTS,
        };
        open.insert(digest(&kept), session);
        kept
    }

    /// The credentials that it stands for.
    pub fn credential(&self, kept: &str) -> Option<SecretString> {
        let open = self.open();
        let session = open.get(&digest(kept))?;
        let is_open = session.until > Instant::now();
        is_open.then(|| session.credential.expose_secret().into())
    }

    pub fn end(&self, kept: &str) {
        self.open().remove(&digest(kept));
    }

    fn open(&self) -> MutexGuard<'_, HashMap<[u8; 32], Session>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the login of this owner that would end first.
fn end_first(open: &mut HashMap<[u8; 32], Session>, owner: &[u8; 32]) {
    let own = open.iter().filter(|(_, session)| session.owner == *owner);
    let first = own.min_by_key(|(_, session)| session.until);
    if let Some(first) = first.map(|(kept, _)| *kept) {
        open.remove(&first);
    }
}

fn digest(kept: &str) -> [u8; 32] {
    Sha256::digest(kept.as_bytes()).into()
}

/// Who asks: by the header that programs send, or by the login of a browser.
pub async fn identify(
    app: &App,
    headers: &HeaderMap,
    from: IpAddr,
) -> Result<Arc<Identity>, Refused> {
    let access = app.access.load_full();
    let session = cookie(headers, SESSION_COOKIE).filter(|kept| !kept.is_empty());
    let credential = session.and_then(|kept| app.sessions.credential(kept));
    match credential {
        Some(credential) if !headers.contains_key(header::AUTHORIZATION) => {
            let shown = Some(credential.expose_secret());
            access.identify_by(shown, from).await
        }
        _ => access.identify(headers, from).await,
    }
}

/// The value of a cookie.
pub fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).iter();
    all.filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn s02_logins_of_one_caller_end_none_of_others() {
        let sessions = Sessions::default();
        let others = ["ann", "bob"].map(|credential| sessions.begin(credential));
        let mut own = Vec::new();
        for _ in 0..SESSIONS_MAX + 10 {
            tokio::time::advance(Duration::from_millis(1)).await;
            own.push(sessions.begin("greedy"));
        }
        let is_open = |kept: &String| sessions.credential(kept).is_some();
        assert!(others.iter().all(is_open));
        let open = own.iter().filter(|kept| is_open(kept)).count();
        assert_eq!(open, SESSIONS_PER_CREDENTIAL_MAX);
        assert!(is_open(&own[own.len() - 1]), "the oldest made room");
        // When there are too many in all, whoever has most makes room.
        for number in 0..SESSIONS_MAX - 10 {
            sessions.begin(&format!("caller {number}"));
        }
        assert!(others.iter().all(is_open));
        assert_eq!(sessions.open().len(), SESSIONS_MAX);
        assert!(own.iter().filter(|kept| is_open(kept)).count() < 10);
    }
}
