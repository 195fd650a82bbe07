//! The ids of calls: what each provider takes, and how another one is made, always the same from the same.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::provider::Provider;

/// What OpenAI's chat takes; its Responses take 64.
const CHAT_ID_MAX: usize = 40;
const RESPONSES_ID_MAX: usize = 64;
const BEDROCK_ID_MAX: usize = 64;
const MISTRAL_ID_LEN: usize = 9;

/// Whether a provider takes calls without ids: it matches results by name and order then.
pub(super) fn are_optional(provider: Provider) -> bool {
    match provider {
        Provider::Gemini | Provider::Ollama => true,
        Provider::Anthropic
        | Provider::OpenAi
        | Provider::OpenAiResponses
        | Provider::Mistral
        | Provider::BedrockConverse
        | Provider::LangChain => false,
    }
}

/// Whether the provider takes this id.
pub(super) fn is_legal(provider: Provider, id: &str) -> bool {
    let of_letters = |extra: &[u8]| {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || extra.contains(&byte);
        id.bytes().all(legal)
    };
    match provider {
        Provider::Anthropic => !id.is_empty() && of_letters(b"_-"),
        Provider::OpenAi => !id.is_empty() && id.chars().count() <= CHAT_ID_MAX,
        Provider::OpenAiResponses => !id.is_empty() && id.chars().count() <= RESPONSES_ID_MAX,
        Provider::BedrockConverse => {
            !id.is_empty() && id.len() <= BEDROCK_ID_MAX && of_letters(b"_-.:")
        }
        Provider::Mistral => id.len() == MISTRAL_ID_LEN && of_letters(b""),
        Provider::LangChain => !id.is_empty(),
        Provider::Gemini | Provider::Ollama => true,
    }
}

/// An id the provider takes, made of one it does not take. The same id always gives the same one, so that
/// a result that says the old id is still known to be meant.
pub(super) fn legal(provider: Provider, id: &str) -> String {
    if is_legal(provider, id) {
        return id.to_owned();
    }
    if provider == Provider::Mistral {
        return digest(id, MISTRAL_ID_LEN);
    }
    let clean = |letter: char| {
        if letter.is_ascii_alphanumeric() || letter == '_' || letter == '-' {
            letter
        } else {
            '_'
        }
    };
    // The digest keeps ids apart that are cut or cleaned to the same.
    let mut made: String = id.chars().map(clean).take(CHAT_ID_MAX - 9).collect();
    made.push('_');
    made.push_str(&digest(id, 8));
    made
}

/// An id for a call that has none: by its place, so that a growing conversation keeps it.
pub(super) fn of_place(provider: Provider, message: usize, call: usize) -> String {
    legal(provider, &format!("call_{message}_{call}"))
}

/// An id for a call of an answer that has none, made of what the answer says.
pub(super) fn made(provider: Provider, of: &str) -> String {
    match provider {
        Provider::Anthropic => format!("toolu_{}", digest(of, 24)),
        Provider::Mistral => digest(of, MISTRAL_ID_LEN),
        Provider::BedrockConverse => format!("tooluse_{}", digest(of, 22)),
        _ => format!("call_{}", digest(of, 24)),
    }
}

/// An id for the second, third … call of a turn that has the same one.
pub(super) fn again(provider: Provider, id: &str, count: usize) -> String {
    let next = format!("{id}_{count}");
    legal(provider, &next)
}

/// The first letters of a hash, in hexadecimal digits.
pub(super) fn digest(text: &str, length: usize) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex.truncate(length);
    hex
}
