//! A request of a client, read as far as we need it; the rest stays as it was written.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::wire::Members;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// A name longer than this is cut: it goes into histories.
const CLIENT_NAME_CHARS_MAX: usize = 64;

/// A client's request.
pub(super) struct Request<'a> {
    pub(super) id: &'a RawValue,
    pub(super) method: &'a str,
    pub(super) params: Option<&'a RawValue>,
}

/// The members of `params` that we look at.
#[derive(Deserialize, Default)]
pub(super) struct Params<'a> {
    #[serde(borrow, default, rename = "_meta")]
    pub(super) meta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) uri: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) cursor: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "inputResponses")]
    pub(super) input_responses: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "requestState")]
    pub(super) request_state: Option<&'a RawValue>,
}

impl<'a> Params<'a> {
    /// None if they are no object.
    pub(super) fn read(params: Option<&'a RawValue>) -> Option<Params<'a>> {
        match params {
            None => Some(Params::default()),
            Some(raw) if !raw.get().starts_with('{') => None,
            Some(raw) => serde_json::from_str(raw.get()).ok(),
        }
    }

    pub(super) fn name(&self) -> Option<Cow<'a, str>> {
        text(self.name?)
    }

    pub(super) fn uri(&self) -> Option<Cow<'a, str>> {
        text(self.uri?)
    }
}

/// A request's `_meta`, taken apart.
#[derive(Default)]
pub(super) struct Meta<'a> {
    pub(super) version: Option<Cow<'a, str>>,
    pub(super) capabilities: Option<&'a RawValue>,
    pub(super) client_info: Option<&'a RawValue>,
    pub(super) log_level: Option<Cow<'a, str>>,
    pub(super) progress_token: Option<&'a RawValue>,
    pub(super) traceparent: Option<Cow<'a, str>>,
    /// What concerns whoever answers in the end.
    rest: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Meta<'a> {
    /// Something that is no object counts as nothing.
    pub(super) fn read(raw: Option<&'a RawValue>) -> Meta<'a> {
        let mut meta = Meta::default();
        let members = raw.and_then(Members::of).unwrap_or_default();
        for (name, value) in members.0 {
            match &*name {
                VERSION => meta.version = text(value),
                CAPABILITIES => meta.capabilities = Some(value),
                CLIENT_INFO => meta.client_info = Some(value),
                LOG_LEVEL => meta.log_level = text(value),
                "progressToken" => meta.progress_token = Some(value),
                other => {
                    if other == "traceparent" {
                        meta.traceparent = text(value);
                    }
                    meta.rest.push((name, value));
                }
            }
        }
        meta
    }

    /// What goes on to a server.
    pub(super) fn passed_on(&self) -> Map<String, Value> {
        let read = |(name, value): &(Cow<'a, str>, &'a RawValue)| {
            let value = serde_json::from_str(value.get()).ok()?;
            Some((name.to_string(), value))
        };
        self.rest.iter().filter_map(read).collect()
    }
}

/// A text; borrowed where nothing in it is escaped.
pub(super) fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    match memchr::memchr(b'\\', inner.as_bytes()) {
        None => Some(Cow::Borrowed(inner)),
        Some(_) => serde_json::from_str(raw.get()).ok().map(Cow::Owned),
    }
}

/// What a client says it is called, within bounds.
pub(super) fn client_name(info: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct Info {
        name: String,
    }
    let info: Info = serde_json::from_str(info?.get()).ok()?;
    let plain = info.name.chars().filter(|c| !c.is_control());
    let name: String = plain.take(CLIENT_NAME_CHARS_MAX).collect();
    (!name.is_empty()).then_some(name)
}
