//! The names of tools in calls: what each provider takes.

use std::borrow::Cow;

use crate::providers::Provider;
use crate::providers::ids::digest;

/// What every provider takes.
const NAME_MAX: usize = 64;

/// Whether the provider takes this name for a tool.
pub(crate) fn is_legal_name(provider: Provider, name: &str) -> bool {
    provider.rules().takes_name(name)
}

/// Whether a name has letters, digits and these only, and is short enough for everybody.
pub(super) fn is_plain(name: &str, extra: &[u8]) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || extra.contains(&byte);
    !name.is_empty() && name.len() <= NAME_MAX && name.bytes().all(legal)
}

/// The name itself, or a short one the provider takes. It depends on nothing but the name, so that calls
/// in a history and definitions in a request agree, whatever else is there.
pub(crate) fn legal_name(provider: Provider, name: &str) -> Cow<'_, str> {
    if is_legal_name(provider, name) {
        return Cow::Borrowed(name);
    }
    let clean = |letter: char| {
        if letter.is_ascii_alphanumeric() || letter == '_' || letter == '-' {
            letter
        } else {
            '_'
        }
    };
    let mut made: String = name.chars().map(clean).take(NAME_MAX - 9).collect();
    if !made.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        made.insert(0, '_');
        made.truncate(NAME_MAX - 9);
    }
    made.push('_');
    made.push_str(&digest(name, 8));
    Cow::Owned(made)
}

/// What is wrong with a name, in a few words.
pub(crate) fn name_fault(name: &str) -> String {
    if name.is_empty() {
        return "has no name".to_owned();
    }
    format!("has the name {name:?}, which the provider refuses")
}
