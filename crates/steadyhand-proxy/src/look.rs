//! A conversation on its way in: looked at, mended where its provider would refuse it, else forwarded byte for byte.

use axum::body::Bytes;
use serde_json::Value;
use steadyhand::FairQueue;
use steadyhand_conversation::{Fix, Host, repair_with};

use super::site::Chat;
use super::splice::spliced;

/// Values of a request that are read; one that has more is forwarded as it is.
pub(super) const VALUES_MAX: usize = 300_000;
/// Smaller ones are looked at in less time than it takes to hand them over.
const BYTES_ON_THE_SPOT: usize = 256 * 1024;

/// A request as it is forwarded.
#[derive(Debug, Clone, Default)]
pub(super) struct Looked {
    pub(super) bytes: Bytes,
    pub(super) fixes: Vec<Fix>,
    pub(super) model: Option<String>,
    /// The client asks for a stream.
    pub(super) streams: bool,
}

/// A conversation that is sound at a glance; none where a closer look is needed.
pub(super) fn glanced(chat: &Chat, host: Host, bytes: &Bytes) -> Option<Looked> {
    // Some hosts refuse what the provider itself takes, or want other things in a request.
    let has_own_rules = match host {
        Host::Original | Host::Azure | Host::Compatible => chat.host.is_some(),
        Host::Bedrock | Host::Vertex | Host::DeepSeek => true,
    };
    if has_own_rules || bytes.len() > BYTES_ON_THE_SPOT {
        return None;
    }
    let sound = chat.provider.format().sound_request(bytes)?;
    Some(Looked {
        model: sound.model,
        streams: sound.streams,
        ..Looked::untouched(bytes)
    })
}

/// Large ones are looked at on a thread of their own, a few at a time, each caller's in turn: others do not wait for them.
pub(super) async fn look(
    chat: &Chat,
    host: Host,
    bytes: &Bytes,
    (large, caller): (&FairQueue, &str),
) -> Looked {
    if bytes.len() <= BYTES_ON_THE_SPOT {
        return looked(chat, host, bytes);
    }
    let turn = large.take(caller).await;
    let (chat, held) = (chat.clone(), bytes.clone());
    let looking = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        looked(&chat, host, &held)
    });
    // A bug of ours must not cost anybody an answer.
    looking.await.unwrap_or_else(|_| Looked::untouched(bytes))
}

impl Looked {
    /// What cannot be read is forwarded: its provider will know what to say.
    pub(super) fn untouched(bytes: &Bytes) -> Looked {
        Looked {
            bytes: bytes.clone(),
            ..Looked::default()
        }
    }
}

fn looked(chat: &Chat, host: Host, bytes: &Bytes) -> Looked {
    let Ok(request) = serde_json::from_slice::<Value>(bytes) else {
        return Looked::untouched(bytes);
    };
    let named = request.get("model").and_then(Value::as_str);
    let model = named.map(str::to_owned).or_else(|| chat.model.clone());
    let streams = request["stream"] == true;
    let (mended, fixes) = repair_with(chat.provider, &chat.options(host), request);
    let bytes = match fixes.is_empty() {
        true => bytes.clone(),
        false => spliced(bytes, &mended).into(),
    };
    Looked {
        bytes,
        fixes,
        model,
        streams,
    }
}
