//! The two eras of the protocol, and which one a server speaks.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::catalogue::{self, Greeting};
use crate::wire::meta::{META_SERVER, MODERN_VERSION};
use crate::wire::{Members, RpcError};

/// Which era a server is spoken to in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// The one it speaks: found out once, and remembered.
    #[default]
    Auto,
    /// Up to 2025-11-25: `initialize`, and a session.
    Legacy,
    /// From 2026-07-28 on: every request stands for itself.
    Modern,
}

/// What a server was found to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Era {
    Legacy,
    Modern,
    /// Legacy, on the two endpoints of 2024.
    Sse,
}

/// What an answer to `server/discover` tells.
pub(crate) enum Discovered {
    Modern(Box<Greeting>),
    /// It speaks our version after all; this one was not understood.
    TryAgain,
    /// Anything else, as the older ones answer.
    Legacy,
}

/// Reads the result of `server/discover`.
pub(crate) fn discovered(result: &RawValue) -> Discovered {
    #[derive(Deserialize)]
    struct Result<'a> {
        #[serde(rename = "supportedVersions", borrow)]
        versions: Vec<Cow<'a, str>>,
        #[serde(borrow, default)]
        capabilities: Option<&'a RawValue>,
    }
    let Ok(read) = steadyhand::typed_json::from_str::<Result<'_>>(result.get()) else {
        return Discovered::Legacy;
    };
    let Ok(capabilities) = catalogue::capabilities(read.capabilities) else {
        return Discovered::Legacy;
    };
    if !read
        .versions
        .iter()
        .any(|version| version == MODERN_VERSION)
    {
        return Discovered::Legacy;
    }
    // Where it names itself has been moved once.
    let members = Members::of(result).unwrap_or_default();
    let meta = members.get("_meta").and_then(Members::of);
    let own = meta.and_then(|meta| meta.get(META_SERVER));
    let server = own.or_else(|| members.get("serverInfo"));
    Discovered::Modern(Box::new(Greeting {
        protocol_version: MODERN_VERSION.to_owned(),
        capabilities,
        server_info: catalogue::server_info(server),
        instructions: catalogue::instructions(&members),
    }))
}

/// Reads an error that answers `server/discover`: some only a server of the newer era gives.
pub(crate) fn not_discovered(error: &RpcError) -> Discovered {
    match error.code {
        -32022 => {
            let supported = error.data.as_ref().and_then(|data| data.get("supported"));
            let supported = supported.and_then(Value::as_array).into_iter().flatten();
            let ours = Value::from(MODERN_VERSION);
            match supported.into_iter().any(|version| *version == ours) {
                true => Discovered::TryAgain,
                false => Discovered::Legacy,
            }
        }
        -32021 | -32020 => Discovered::TryAgain,
        _ => Discovered::Legacy,
    }
}
