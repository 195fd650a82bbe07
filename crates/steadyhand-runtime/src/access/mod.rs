//! Who asks and what they may do: roles, API keys, the tools and the pace of a key, a record of what was refused.

mod audit;
mod budget;
mod identity;
mod jwt;
mod key_file;
mod keys;
pub mod login_code;
mod pace;
pub mod private_file;
pub mod throttle;
mod tools;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use secrecy::SecretString;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::time::Instant;

use crate::audit::AuditLog;
pub use audit::{Audit, Refusal};
pub use budget::{Budget, Unnamed, budget_permit};
pub use identity::{By, Identity};
pub use jwt::{Jwt, NotAToken};
pub use keys::{CannotKeep, Key, Keys, NewKey, NotLetIn};
use pace::Pace;
pub use pace::TooSoon;
use steadyhand_config::units::Rate;
pub use throttle::LoginThrottle;
pub use tools::Tools;

/// Folder in the state folder.
const FOLDER: &str = "access";

/// What a server knows of those who come, besides its settings: kept in the state folder, the same for every
/// process of a configuration.
pub struct Door {
    pub keys: Keys,
    pub audit: Audit,
    /// Who decided and changed what.
    pub log: AuditLog,
    /// For commands on this machine: whoever may read the state folder may do everything.
    pub local: SecretString,
    /// How many changes without credentials are still written into the audit log, where a server asks nobody for any.
    unidentified: Pace,
}

/// Changes by nobody in particular: so many at once, and one every ten minutes. Their records would take four hundred days
/// to fill the audit log, which is as long as it is kept.
const UNIDENTIFIED_CHANGES: Rate = Rate {
    count: 200,
    per: Duration::from_secs(200 * 600),
};

impl Door {
    /// The door of a configuration; `name` is its name in the state folder.
    pub fn of(state: &Path, name: &str, log: AuditLog) -> Arc<Door> {
        let folder = state.join(FOLDER);
        Arc::new(Door {
            keys: Keys::of(state, name),
            audit: Audit::open(folder.join(format!("{name}.refusals.ndjson"))),
            log,
            local: SecretString::from(random()),
            unidentified: Pace::new(UNIDENTIFIED_CHANGES),
        })
    }

    /// Whether somebody without credentials may change something that is written down: nobody must push other records out
    /// of the audit log by it.
    pub fn may_change_unidentified(&self) -> Result<(), TooSoon> {
        self.unidentified.take(1, Instant::now())
    }
}

/// A digest of a secret. Secrets have so much chance in them that one round is enough, and it is all that is kept.
#[derive(Clone, Copy)]
pub struct Digested([u8; 32]);

impl Digested {
    pub fn of(secret: &str) -> Digested {
        Digested(Sha256::digest(secret.as_bytes()).into())
    }

    /// Takes as long for any two.
    pub fn is(&self, other: &Digested) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn parse(hex: &str) -> Option<Digested> {
        let mut bytes = [0; 32];
        if hex.len() != 64 || !hex.is_ascii() {
            return None;
        }
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * place..2 * place + 2], 16).ok()?;
        }
        Some(Digested(bytes))
    }
}

/// 256 bits of chance, in letters that need no quoting anywhere.
pub fn random() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(chance::<32>())
}

fn chance<const BYTES: usize>() -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let provider = rustls::crypto::ring::default_provider();
    // Without it there is no secret that is one.
    let filled = provider.secure_random.fill(&mut bytes);
    assert!(filled.is_ok(), "the machine gives no random numbers");
    bytes
}
