//! A request of a client, read as far as we need it; the rest stays as it was written.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use steadyhand::RepeatedName;

use super::errors;
use crate::client::relay::Written;
use crate::wire::meta::{INSTANCE, META_INSTANCE};
use crate::wire::{Members, RpcError, is_like_ours};

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

impl Request<'_> {
    /// Refuses parameters that can be read in two ways. The arguments of a tool are looked at when it is called: what is
    /// wrong with them is for the model to read.
    pub(super) fn check_names(&self) -> Result<(), RpcError> {
        let Some(params) = self.params else {
            return Ok(());
        };
        let Some(repeated) = RepeatedName::first_in(params.get()) else {
            return Ok(());
        };
        let is_in_arguments =
            self.method == "tools/call" && repeated.pointer().starts_with("/arguments/");
        if is_in_arguments && has_names_once(params) {
            return Ok(());
        }
        Err(errors::invalid(format!("params: {}", repeated.message())))
    }
}

/// Whether the members themselves have a name each, whatever their values look like.
fn has_names_once(params: &RawValue) -> bool {
    let members = Members::of(params).unwrap_or_default();
    let mut names = HashSet::new();
    members.0.iter().all(|(name, _)| names.insert(&**name))
}

/// The members of `params`: those we look at, and the rest.
#[derive(Default)]
pub(super) struct Params<'a> {
    pub(super) meta: Option<&'a RawValue>,
    pub(super) name: Option<&'a RawValue>,
    pub(super) uri: Option<&'a RawValue>,
    pub(super) arguments: Option<&'a RawValue>,
    pub(super) cursor: Option<&'a RawValue>,
    pub(super) input_responses: Option<&'a RawValue>,
    pub(super) request_state: Option<&'a RawValue>,
    rest: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Params<'a> {
    /// None if they are no object.
    pub(super) fn read(raw: Option<&'a RawValue>) -> Option<Params<'a>> {
        let mut params = Params::default();
        let Some(raw) = raw else {
            return Some(params);
        };
        for (name, value) in Members::of(raw)?.0 {
            let place = match &*name {
                "_meta" => &mut params.meta,
                "name" => &mut params.name,
                "uri" => &mut params.uri,
                "arguments" => &mut params.arguments,
                "cursor" => &mut params.cursor,
                "inputResponses" => &mut params.input_responses,
                "requestState" => &mut params.request_state,
                // Whoever does not offer tasks answers as if it were not there.
                "task" => continue,
                _ => {
                    params.rest.push((name, value));
                    continue;
                }
            };
            *place = Some(value).filter(|value| value.get() != "null");
        }
        Some(params)
    }

    /// What goes on to a server though we do not know it.
    pub(super) fn passed_on(&self) -> Written {
        owned(&self.rest)
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

    /// Whether this process greets itself.
    pub(super) fn is_of_ourselves(&self) -> bool {
        let instance = self.rest.iter().find(|(name, _)| name == META_INSTANCE);
        instance.is_some_and(|(_, value)| text(value).is_some_and(|text| text == **INSTANCE))
    }

    /// What goes on to a server. Marks like our own do not: nobody but us makes them.
    pub(super) fn passed_on(&self) -> Written {
        let rest = self.rest.iter();
        let foreign: Vec<_> = rest
            .filter(|(name, _)| !is_like_ours(name.as_bytes()))
            .cloned()
            .collect();
        owned(&foreign)
    }
}

fn owned(members: &[(Cow<'_, str>, &RawValue)]) -> Written {
    let owned = |(name, value): &(Cow<'_, str>, &RawValue)| (name.to_string(), (*value).to_owned());
    members.iter().map(owned).collect()
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
    let info: Info = steadyhand::typed_json::from_str(info?.get()).ok()?;
    let plain = info.name.chars().filter(|c| !c.is_control());
    let name: String = plain.take(CLIENT_NAME_CHARS_MAX).collect();
    (!name.is_empty()).then_some(name)
}
