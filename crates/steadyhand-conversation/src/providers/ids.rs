//! The ids of calls: what each provider takes, and how another one is made, always the same from the same.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::providers::Provider;

/// How long a made id is at most: every provider takes that.
const SHORTENED_MAX: usize = 40;

/// Whether a provider takes calls without ids: it matches results by name and order then.
pub(crate) fn are_optional(provider: Provider) -> bool {
    provider.rules().ids_are_optional()
}

/// Whether the provider takes this id.
pub(crate) fn is_legal(provider: Provider, id: &str) -> bool {
    provider.rules().takes_id(id)
}

/// An id the provider takes, made of one it does not take. The same id always gives the same one, so that
/// a result that says the old id is still known to be meant.
pub(crate) fn legal(provider: Provider, id: &str) -> String {
    match is_legal(provider, id) {
        true => id.to_owned(),
        false => provider.rules().legal_id(id),
    }
}

/// Whether all letters of an id are plain ones, or among these.
pub(super) fn is_of_letters(id: &str, extra: &[u8]) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || extra.contains(&byte);
    id.bytes().all(legal)
}

/// An id with plain letters only, and a digest that keeps ids apart that are cut or cleaned to the same.
pub(super) fn shortened(id: &str) -> String {
    let clean = |letter: char| {
        if letter.is_ascii_alphanumeric() || letter == '_' || letter == '-' {
            letter
        } else {
            '_'
        }
    };
    let mut made: String = id.chars().map(clean).take(SHORTENED_MAX - 9).collect();
    made.push('_');
    made.push_str(&digest(id, 8));
    made
}

/// An id for a call that has none: by its place, so that a growing conversation keeps it.
pub(crate) fn of_place(provider: Provider, message: usize, call: usize) -> String {
    legal(provider, &format!("call_{message}_{call}"))
}

/// An id for the second, third … call of a turn that has the same one.
pub(crate) fn again(provider: Provider, id: &str, count: usize) -> String {
    let next = format!("{id}_{count}");
    legal(provider, &next)
}

/// The first letters of a hash, in hexadecimal digits.
pub(crate) fn digest(text: &str, length: usize) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex.truncate(length);
    hex
}
