//! Whose address a request goes to, and whether it is one that brings a conversation.

use percent_encoding::percent_decode_str;
use steadyhand_conversation::{Host, Options, Provider};

use steadyhand_server::http::proxied::PREFIX;

/// A provider that is proxied, by the name in our addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Site {
    Anthropic,
    OpenAi,
    Ollama,
    Gemini,
    Mistral,
    Bedrock,
    Vertex,
}

impl Site {
    pub(crate) const ALL: [Site; 7] = [
        Site::Anthropic,
        Site::OpenAi,
        Site::Ollama,
        Site::Gemini,
        Site::Mistral,
        Site::Bedrock,
        Site::Vertex,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Site::Bedrock => "bedrock",
            Site::Vertex => "vertex",
            _ => self.provider().as_str(),
        }
    }

    /// Whose shape errors have where the path says nothing else.
    pub(crate) fn provider(self) -> Provider {
        match self {
            Site::Anthropic => Provider::Anthropic,
            Site::OpenAi => Provider::OpenAi,
            Site::Ollama => Provider::Ollama,
            Site::Gemini | Site::Vertex => Provider::Gemini,
            Site::Mistral => Provider::Mistral,
            Site::Bedrock => Provider::BedrockConverse,
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
            Site::Bedrock => "https://bedrock-runtime.us-east-1.amazonaws.com",
            Site::Vertex => "https://aiplatform.googleapis.com",
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
    /// Who serves it, where the path shows that.
    pub(super) host: Option<Host>,
    /// The model, where the path names it.
    pub(super) model: Option<String>,
    /// Whether the path says that the answer is a stream.
    pub(super) streams: bool,
}

impl Chat {
    /// What is asked for at a provider's path, if it is a conversation. A question for a number of tokens is none.
    pub(super) fn at(site: Site, path: &str) -> Option<Chat> {
        if let Some(cloud) = bedrock(path).or_else(|| vertex(path)) {
            return cloud;
        }
        let chat = |provider| {
            Some(Chat {
                provider,
                host: None,
                model: None,
                streams: false,
            })
        };
        let has_messages = matches!(site, Site::Anthropic | Site::Ollama);
        let ends = |end: &str| path.ends_with(end);
        match site {
            Site::Mistral if ends("/chat/completions") => chat(Provider::Mistral),
            _ if ends("/chat/completions") => match deployment(path) {
                Some(deployment) => Some(Chat {
                    provider: Provider::OpenAi,
                    host: Some(Host::Azure),
                    model: Some(deployment),
                    streams: false,
                }),
                None => chat(Provider::OpenAi),
            },
            _ if has_messages && ends("/messages") => chat(Provider::Anthropic),
            Site::Ollama if ends("/api/chat") => chat(Provider::Ollama),
            Site::OpenAi | Site::Ollama if ends("/responses") => chat(Provider::OpenAiResponses),
            Site::Gemini | Site::Vertex => gemini(path),
            _ => None,
        }
    }

    /// What the rules are told beside the conversation. `host` is who serves it, where the path does not show that.
    pub(super) fn options(&self, host: Host) -> Options {
        let host = self.host.unwrap_or(host);
        let options = Options::new().host(host);
        match &self.model {
            // Anybody may name a deployment as they like: that says nothing of its model.
            Some(model) if host != Host::Azure => options.model(model),
            _ => options,
        }
    }

    /// Whose shape errors have.
    pub(super) fn error_shape(&self) -> Provider {
        match self.host {
            Some(Host::Bedrock) => Provider::BedrockConverse,
            _ => self.provider,
        }
    }
}

/// Whose stream comes from a path that brings a prompt instead of a conversation.
pub(super) fn generation(site: Site, path: &str) -> Option<Provider> {
    match site {
        Site::Ollama if path.ends_with("/api/generate") => Some(Provider::Ollama),
        _ if path.ends_with("/completions") => Some(Provider::OpenAi),
        _ => None,
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
        host: None,
        model: Some(model.to_owned()),
        streams,
    })
}

/// Azure's path names a deployment: `/openai/deployments/NAME/chat/completions`.
fn deployment(path: &str) -> Option<String> {
    let (_, rest) = path.split_once("/openai/deployments/")?;
    rest.strip_suffix("/chat/completions").map(decoded)
}

/// Bedrock's path names the model, which has a slash in it only where that is encoded: `/model/ID/converse`. Some(None)
/// where it is one of Bedrock's, and no conversation of a shape that we know.
fn bedrock(path: &str) -> Option<Option<Chat>> {
    let (rest, verb) = path.rsplit_once('/')?;
    let (before, model) = rest.rsplit_once('/')?;
    if !before.ends_with("/model") {
        return None;
    }
    let (is_converse, streams) = match verb {
        "converse" => (true, false),
        "converse-stream" => (true, true),
        "invoke" => (false, false),
        "invoke-with-response-stream" => (false, true),
        _ => return None,
    };
    let model = decoded(model);
    let chat = |provider, host| Chat {
        provider,
        host,
        model: Some(model.clone()),
        streams,
    };
    // Each family of models has a body of its own for Invoke.
    let is_claude = model.contains("anthropic") || model.contains("claude");
    Some(match is_converse {
        true => Some(chat(Provider::BedrockConverse, Some(Host::Bedrock))),
        false => is_claude.then(|| chat(Provider::Anthropic, Some(Host::Bedrock))),
    })
}

/// Anthropic's models at Google: `…/publishers/anthropic/models/MODEL:rawPredict`.
fn vertex(path: &str) -> Option<Option<Chat>> {
    let (_, rest) = path.split_once("/publishers/anthropic/models/")?;
    let (model, verb) = rest.rsplit_once(':')?;
    let streams = match verb {
        "rawPredict" => false,
        "streamRawPredict" => true,
        _ => return None,
    };
    // This model counts tokens.
    let is_chat = model != "count-tokens";
    Some(is_chat.then(|| Chat {
        provider: Provider::Anthropic,
        host: Some(Host::Vertex),
        model: Some(decoded(model)),
        streams,
    }))
}

fn decoded(part: &str) -> String {
    percent_decode_str(part).decode_utf8_lossy().into_owned()
}
