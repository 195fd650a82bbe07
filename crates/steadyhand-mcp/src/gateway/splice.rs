//! A server's result for a client that may be of another era: what both eras have stays as the server wrote it.

use bytes::Bytes;
use memchr::memmem;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use steadyhand::Outcome;

use super::answer::{CALL_ID, DROPPED_ARGUMENTS, FRESH, SERVER_INFO, server_meta};
use super::era::Era;
use super::message::on_one_line;
use crate::wire::Members;

/// What a result has to say about how long it may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hints {
    None,
    /// It must say so; we do, if its server does not.
    Caching,
}

/// The members that the eras treat differently.
#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(borrow, default, rename = "_meta", deserialize_with = "there")]
    meta: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "resultType")]
    result_type: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "ttlMs")]
    ttl_ms: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "cacheScope")]
    cache_scope: Option<&'a RawValue>,
}

/// Our members of `_meta` about a call.
fn about_call(outcome: &Outcome) -> String {
    let id = serde_json::to_string(&outcome.call_id).unwrap_or_default();
    let mut members = member(CALL_ID, &id);
    if !outcome.dropped_arguments.is_empty()
        && let Ok(names) = serde_json::to_string(&outcome.dropped_arguments)
    {
        members.push(',');
        members.push_str(&member(DROPPED_ARGUMENTS, &names));
    }
    members
}

/// The result as the client gets it.
pub(super) fn passed(
    result: &RawValue,
    era: Era,
    outcome: Option<&Outcome>,
    hints: Hints,
) -> Bytes {
    let text = result.get();
    let outline = match inside(text) {
        Some(_) => serde_json::from_str::<Outline<'_>>(text).ok(),
        None => None,
    };
    let mut text = match outline {
        Some(outline) => with_ours(text, &outline, era, outcome, hints),
        // Whatever it is, it is not ours to change.
        None => text.as_bytes().to_vec(),
    };
    on_one_line(&mut text);
    text.into()
}

fn with_ours(
    text: &str,
    outline: &Outline<'_>,
    era: Era,
    outcome: Option<&Outcome>,
    hints: Hints,
) -> Vec<u8> {
    let mut first = "";
    let mut fresh = "";
    if era.is_modern() {
        if outline.result_type.is_none() {
            first = "\"resultType\":\"complete\"";
        }
        if hints == Hints::Caching && outline.ttl_ms.is_none() && outline.cache_scope.is_none() {
            fresh = FRESH;
        }
    }
    let about_us = match era {
        Era::Modern => inside(server_meta().get()).unwrap_or_default(),
        Era::Legacy(_) => "",
    };
    let about_call = outcome.map_or(String::new(), about_call);
    let rest = inside(text).unwrap_or_default();
    if outline.has_foreign(era) {
        let members: Members<'_> = serde_json::from_str(text).unwrap_or_default();
        let theirs = members
            .get("_meta")
            .and_then(Members::of)
            .unwrap_or_default();
        let theirs = theirs.without(SERVER_INFO).to_raw();
        let meta = object(&[
            about_us,
            &about_call,
            inside(theirs.get()).unwrap_or_default(),
        ]);
        let members = match era {
            Era::Modern => members.without("_meta"),
            Era::Legacy(_) => members.without("_meta").without("resultType"),
        };
        let rest = members.to_raw();
        let meta = member("_meta", &meta);
        return object(&[first, fresh, &meta, inside(rest.get()).unwrap_or_default()]).into();
    }
    match outline.meta {
        None if about_us.is_empty() && about_call.is_empty() => {
            object(&[first, fresh, rest]).into()
        }
        None => {
            let meta = member("_meta", &object(&[about_us, &about_call]));
            object(&[first, fresh, &meta, rest]).into()
        }
        Some(meta) => {
            // It borrows from the text, so that its place is known.
            let at = meta.get().as_ptr() as usize - rest.as_ptr() as usize;
            let (before, after) = (&rest[..at], &rest[at + meta.get().len()..]);
            let merged = object(&[
                about_us,
                &about_call,
                inside(meta.get()).unwrap_or_default(),
            ]);
            object(&[first, fresh, &[before, &merged, after].concat()]).into()
        }
    }
}

impl Outline<'_> {
    /// Whether something has to be taken out.
    fn has_foreign(&self, era: Era) -> bool {
        let is_odd = |meta: &RawValue| {
            let names_server = memmem::find(meta.get().as_bytes(), SERVER_INFO.as_bytes());
            names_server.is_some() || inside(meta.get()).is_none()
        };
        self.meta.is_some_and(is_odd) || (!era.is_modern() && self.result_type.is_some())
    }
}

/// A member that is there, be it null.
fn there<'de, D: Deserializer<'de>>(value: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(value).map(Some)
}

/// A member of this name, which needs no escapes.
fn member(name: &str, json: &str) -> String {
    ["\"", name, "\":", json].concat()
}

/// An object of these members.
fn object(members: &[&str]) -> String {
    let length: usize = members.iter().map(|part| part.len() + 1).sum();
    let mut text = String::with_capacity(length + 2);
    text.push('{');
    for part in members.iter().filter(|part| !part.is_empty()) {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(part);
    }
    text.push('}');
    text
}

/// The members of an object, without its braces.
fn inside(object: &str) -> Option<&str> {
    let inner = object.strip_prefix('{')?.strip_suffix('}')?;
    Some(inner.trim())
}
