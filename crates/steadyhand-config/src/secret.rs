//! What counts as a secret: by its name, by its look.

use secrecy::SecretString;
use steadyhand::redact;

/// Shorter values occur in ordinary text by chance: hiding them would garble it.
const SECRET_CHARS_MIN: usize = 6;

/// Whether a text of the configuration holds a key in the clear; references and `{…}` are no keys.
pub fn looks_like_a_key(text: &str) -> bool {
    let mut literal = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((_, after)) = after.split_once('}') else {
            break;
        };
        literal.push_str(before);
        literal.push(' ');
        rest = after;
    }
    literal.push_str(rest);
    redact::holds_a_key(&literal)
}

/// Whether a value is to be hidden, by the names it goes by and by its look.
pub fn is_secret(names: &[&str], value: &str) -> bool {
    names.iter().any(|name| names_a_secret(name)) || redact::holds_a_key(value)
}

/// Whether a value of the environment is to be hidden: it is, unless it plainly is an address without
/// credentials, a path, a number or a switch, and no name says otherwise.
pub fn is_secret_of_environment(names: &[&str], value: &str) -> bool {
    is_secret(names, value) || !is_plain(value.trim())
}

fn is_plain(value: &str) -> bool {
    let is_address = match url::Url::parse(value) {
        Ok(url) => {
            url.username().is_empty()
                && url.password().is_none()
                && url.query().is_none()
                && url.has_host()
        }
        Err(_) => false,
    };
    is_address
        || ["/", "./", "../", "~/"]
            .iter()
            .any(|start| value.starts_with(start))
        || value.parse::<f64>().is_ok()
        || value.parse::<bool>().is_ok()
        || value.parse::<std::net::SocketAddr>().is_ok()
        || value.parse::<std::net::IpAddr>().is_ok()
}

/// Whether a variable, header or field of this name holds a secret.
pub fn names_a_secret(name: &str) -> bool {
    const WORDS: [&str; 12] = [
        "key",
        "keys",
        "auth",
        "pass",
        "pat",
        "pin",
        "cookie",
        "bearer",
        "jwt",
        "session",
        "signature",
        "webhook",
    ];
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    redact::is_secret_name(name)
        || words
            .flat_map(camel_words)
            .any(|word| WORDS.contains(&word.to_ascii_lowercase().as_str()))
}

/// `apiKey` → `api`, `Key`.
fn camel_words(name: &str) -> Vec<&str> {
    let bytes = name.as_bytes();
    let mut words = Vec::new();
    let mut start = 0;
    for end in 1..bytes.len() {
        if bytes[end - 1].is_ascii_lowercase() && bytes[end].is_ascii_uppercase() {
            words.push(&name[start..end]);
            start = end;
        }
    }
    words.push(&name[start..]);
    words
}

/// Keeps a value to be hidden, if hiding it does no harm.
pub fn keep_secret(secrets: &mut Vec<SecretString>, value: &str) {
    if value.trim().chars().count() >= SECRET_CHARS_MIN {
        secrets.push(SecretString::from(value.trim()));
    }
}
