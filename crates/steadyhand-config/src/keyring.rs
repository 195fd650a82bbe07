//! Secrets from the system's key store, asked for with a bound: a locked store must not hang a start.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

/// A store of passwords by service and user.
pub trait Keyring: Send + Sync {
    /// The password, or why there is none. Must answer within a few seconds.
    fn password(&self, service: &str, user: &str) -> Result<SecretString, KeyringFault>;
}

/// Why a key store gave no password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyringFault {
    /// This system has no store, or none that can be reached.
    NoStore(String),
    /// The store holds no such entry.
    NoEntry,
    /// The store may not be read: it is locked, or access was refused.
    NoAccess(String),
    /// The store did not answer in time.
    Silent(Duration),
    /// The entry cannot be used.
    Unusable(String),
}

/// The store of this system: Secret Service, Keychain or Credential Manager.
pub struct SystemKeyring {
    patience: Duration,
    /// Questions unanswered past their time: while there is one, the next would wait as long for nothing.
    abandoned: Arc<AtomicUsize>,
}

const PATIENCE: Duration = Duration::from_secs(5);

impl Default for SystemKeyring {
    fn default() -> SystemKeyring {
        SystemKeyring {
            patience: PATIENCE,
            abandoned: Arc::default(),
        }
    }
}

impl Keyring for SystemKeyring {
    fn password(&self, service: &str, user: &str) -> Result<SecretString, KeyringFault> {
        let (service, user) = (service.to_owned(), user.to_owned());
        self.within_patience(move || ask(&service, &user))
    }
}

impl SystemKeyring {
    /// Keeps a password; one that was there under the same name is replaced.
    pub fn keep(
        &self,
        service: &str,
        user: &str,
        password: SecretString,
    ) -> Result<(), KeyringFault> {
        let (service, user) = (service.to_owned(), user.to_owned());
        self.within_patience(move || keep(&service, &user, &password))
    }

    fn within_patience<T: Send + 'static>(
        &self,
        question: impl FnOnce() -> Result<T, KeyringFault> + Send + 'static,
    ) -> Result<T, KeyringFault> {
        if self.abandoned.load(Ordering::SeqCst) > 0 {
            return Err(KeyringFault::Silent(self.patience));
        }
        let (answer, answered) = mpsc::sync_channel(1);
        // Whoever comes second, the answer or the end of patience, knows of the other.
        let settled = Arc::new(AtomicBool::new(false));
        let (settled_there, abandoned) = (Arc::clone(&settled), Arc::clone(&self.abandoned));
        thread::Builder::new()
            .name("keyring".to_owned())
            .spawn(move || {
                let _ = answer.send(question());
                if settled_there.swap(true, Ordering::SeqCst) {
                    abandoned.fetch_sub(1, Ordering::SeqCst);
                }
            })
            .map_err(|error| KeyringFault::NoStore(error.to_string()))?;
        match answered.recv_timeout(self.patience) {
            Ok(answer) => answer,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                self.abandoned.fetch_add(1, Ordering::SeqCst);
                if settled.swap(true, Ordering::SeqCst) {
                    self.abandoned.fetch_sub(1, Ordering::SeqCst);
                }
                Err(KeyringFault::Silent(self.patience))
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                Err(KeyringFault::Unusable("the key store broke off".to_owned()))
            }
        }
    }
}

fn ask(service: &str, user: &str) -> Result<SecretString, KeyringFault> {
    if let Err(error) = keyring::Entry::store_status() {
        return Err(KeyringFault::NoStore(error.to_string()));
    }
    keyring::Entry::new(service, user)
        .and_then(|entry| entry.get_password())
        .map(SecretString::from)
        .map_err(fault)
}

fn keep(service: &str, user: &str, password: &SecretString) -> Result<(), KeyringFault> {
    if let Err(error) = keyring::Entry::store_status() {
        return Err(KeyringFault::NoStore(error.to_string()));
    }
    keyring::Entry::new(service, user)
        .and_then(|entry| entry.set_password(password.expose_secret()))
        .map_err(fault)
}

fn fault(error: keyring::Error) -> KeyringFault {
    match error {
        keyring::Error::NoEntry => KeyringFault::NoEntry,
        keyring::Error::NoDefaultStore => KeyringFault::NoStore(error.to_string()),
        // A store that vanished after it was found, or refuses: both are about reaching it.
        keyring::Error::NoStorageAccess(_) => KeyringFault::NoAccess(error.to_string()),
        keyring::Error::PlatformFailure(_) => KeyringFault::NoAccess(error.to_string()),
        // The texts of these hold the data itself.
        keyring::Error::BadEncoding(_) | keyring::Error::BadDataFormat(..) => {
            KeyringFault::Unusable("the entry is no text".to_owned())
        }
        keyring::Error::Ambiguous(_) => {
            KeyringFault::Unusable("several entries have that name".to_owned())
        }
        other => KeyringFault::Unusable(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_does_not_answer_is_asked_once_and_heard_again_when_it_wakes() {
        let keyring = SystemKeyring {
            patience: Duration::from_millis(20),
            abandoned: Arc::default(),
        };
        let (unlock, locked) = mpsc::channel::<()>();
        let fault = KeyringFault::Silent(keyring.patience);
        let hangs = move || {
            let _ = locked.recv();
            Err::<SecretString, _>(KeyringFault::NoEntry)
        };
        assert_eq!(keyring.within_patience(hangs).err(), Some(fault.clone()));
        let second =
            keyring.within_patience::<SecretString>(|| panic!("the store is known to be silent"));
        assert_eq!(second.err(), Some(fault));
        unlock.send(()).expect("the first question still waits");
        while keyring.abandoned.load(Ordering::SeqCst) > 0 {
            thread::yield_now();
        }
        let missing = keyring.within_patience::<SecretString>(|| Err(KeyringFault::NoEntry));
        assert_eq!(missing.err(), Some(KeyringFault::NoEntry));
    }
}
