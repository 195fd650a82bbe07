//! Codes that log a browser in once. Whoever may read the state folder makes them; the server that checks them keeps
//! only which were used.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;
use steadyhand::clock;

use super::chance;

const NUMBER_BYTES: usize = 16;
const UNTIL_BYTES: usize = 8;
/// So that a code is never taken for anything else that is signed with the same secret.
const PURPOSE: &[u8] = b"steadyhand login code";
/// Codes that were used and are not over; nobody makes so many.
const USED_MAX: usize = 10_000;

/// A code for whoever has the secret of commands on this machine.
pub fn make(secret: &SecretString, lasts: Duration) -> String {
    let until_ms = clock::wall_ms().saturating_add(lasts.as_millis() as u64);
    let number = chance::<NUMBER_BYTES>();
    let signed = [&number[..], &until_ms.to_be_bytes()[..]].concat();
    let signature = signature(secret, &signed).finalize().into_bytes();
    BASE64_URL_SAFE_NO_PAD.encode([&signed[..], signature.as_slice()].concat())
}

/// The codes that were used, each with the moment when it would be over.
#[derive(Default)]
pub struct LoginCodes {
    used: Mutex<HashMap<[u8; NUMBER_BYTES], u64>>,
}

impl LoginCodes {
    /// Whether this is a code of this secret that is not over and was not used before. From now on it was.
    pub fn take(&self, secret: &SecretString, code: &str) -> bool {
        let Ok(bytes) = BASE64_URL_SAFE_NO_PAD.decode(code) else {
            return false;
        };
        let Some((signed, said)) = bytes.split_at_checked(NUMBER_BYTES + UNTIL_BYTES) else {
            return false;
        };
        if signature(secret, signed).verify_slice(said).is_err() {
            return false;
        }
        let (number, until) = signed.split_at(NUMBER_BYTES);
        let (Ok(number), Ok(until)) = (number.try_into(), until.try_into()) else {
            return false;
        };
        let (until, now) = (u64::from_be_bytes(until), clock::wall_ms());
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|_, until| *until > now);
        until > now && used.len() < USED_MAX && used.insert(number, until).is_none()
    }
}

fn signature(secret: &SecretString, signed: &[u8]) -> Hmac<Sha256> {
    let secret = secret.expose_secret().as_bytes();
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("any length will do");
    mac.update(PURPOSE);
    mac.update(signed);
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s03_a_login_code_works_once_for_its_own_server_and_not_for_ever() {
        let (secret, other) = (
            SecretString::from("a secret"),
            SecretString::from("another"),
        );
        let codes = LoginCodes::default();
        let code = make(&secret, Duration::from_secs(60));
        assert!(!codes.take(&other, &code));
        assert!(codes.take(&secret, &code));
        assert!(!codes.take(&secret, &code), "it was used");
        assert!(
            !codes.take(&secret, &make(&secret, Duration::ZERO)),
            "it is over"
        );
        let mut forged = BASE64_URL_SAFE_NO_PAD.decode(&code).expect("a code");
        forged[0] ^= 1;
        assert!(!codes.take(&secret, &BASE64_URL_SAFE_NO_PAD.encode(forged)));
        for nothing in ["", "AAAA", "§"] {
            assert!(!codes.take(&secret, nothing));
        }
    }
}
