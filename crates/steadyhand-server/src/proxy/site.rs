//! Whose address a request goes to, and whether it is one that brings a conversation.

use steadyhand::conversation::Provider;

use super::PREFIX;

/// A provider that is proxied, by the name in our addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Site {
    Anthropic,
    OpenAi,
    Ollama,
    Gemini,
    Mistral,
}

impl Site {
    pub(crate) const ALL: [Site; 5] = [
        Site::Anthropic,
        Site::OpenAi,
        Site::Ollama,
        Site::Gemini,
        Site::Mistral,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        self.provider().as_str()
    }

    /// Whose shape errors have where the path says nothing else.
    pub(crate) fn provider(self) -> Provider {
        match self {
            Site::Anthropic => Provider::Anthropic,
            Site::OpenAi => Provider::OpenAi,
            Site::Ollama => Provider::Ollama,
            Site::Gemini => Provider::Gemini,
            Site::Mistral => Provider::Mistral,
        }
    }

    /// Where its makers serve it; the version is part of the path.
    pub(crate) fn public_url(self) -> &'static str {
        match self {
            Site::Anthropic => "https://api.anthropic.com",
            Site::OpenAi => "https://api.openai.com",
            Site::Ollama => "http://127.0.0.1:11434",
            Site::Gemini => "https://generativelanguage.googleapis.com",
            Site::Mistral => "https://api.mistral.ai",
        }
    }
}

/// The provider in an address of ours, and the rest of it, which is the provider's own.
pub(super) fn split(path: &str) -> Option<(Site, &str)> {
    let rest = path.strip_prefix(PREFIX)?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    let site = Site::ALL.into_iter().find(|site| site.as_str() == name)?;
    Some((site, rest))
}

/// A request that brings a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chat {
    /// Whose rules it follows.
    pub(super) provider: Provider,
    pub(super) scope: Scope,
    /// The model, where the path names it.
    pub(super) model: Option<String>,
    /// Whether the path says that the answer is a stream.
    pub(super) streams: bool,
}

/// How much of a request is ours to mend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// All of it.
    Request,
    /// Only its messages: those who count tokens take requests that no model would answer.
    Messages,
}

impl Chat {
    /// What is asked for at a provider's path, if it is a conversation.
    pub(super) fn at(site: Site, path: &str) -> Option<Chat> {
        let chat = |provider, scope| {
            Some(Chat {
                provider,
                scope,
                model: None,
                streams: false,
            })
        };
        let has_messages = matches!(site, Site::Anthropic | Site::Ollama);
        let ends = |end: &str| path.ends_with(end);
        match site {
            Site::Mistral if ends("/chat/completions") => chat(Provider::Mistral, Scope::Request),
            _ if ends("/chat/completions") => chat(Provider::OpenAi, Scope::Request),
            _ if has_messages && ends("/messages") => chat(Provider::Anthropic, Scope::Request),
            _ if has_messages && ends("/messages/count_tokens") => {
                chat(Provider::Anthropic, Scope::Messages)
            }
            Site::Ollama if ends("/api/chat") => chat(Provider::Ollama, Scope::Request),
            Site::OpenAi | Site::Ollama if ends("/responses") => {
                chat(Provider::OpenAiResponses, Scope::Request)
            }
            Site::OpenAi if ends("/responses/input_tokens") => {
                chat(Provider::OpenAiResponses, Scope::Messages)
            }
            Site::Gemini => gemini(path),
            _ => None,
        }
    }
}

/// Google's path names the model and what to do with it: `/v1beta/models/gemini-2.5-pro:generateContent`.
fn gemini(path: &str) -> Option<Chat> {
    let (place, verb) = path.rsplit_once(':')?;
    let streams = match verb {
        "generateContent" => false,
        "streamGenerateContent" => true,
        _ => return None,
    };
    let (_, model) = place.rsplit_once('/')?;
    Some(Chat {
        provider: Provider::Gemini,
        scope: Scope::Request,
        model: Some(model.to_owned()),
        streams,
    })
}
