//! Conversations that are sound at a glance: the usual shapes, every call answered right behind it, nothing unusual anywhere.
//! They are most of all traffic, and are forwarded without being taken apart. Whatever is in doubt is not sound, and is
//! looked at closely; a test holds this against the repair itself.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};

/// OpenAI's limits, which are the narrowest.
const ID_BYTES_MAX: usize = 40;
const NAME_BYTES_MAX: usize = 64;

pub(super) fn is_id(id: &str) -> bool {
    (1..=ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(is_plain)
}

pub(super) fn is_name(name: &str) -> bool {
    let first = name.bytes().next();
    first.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && name.len() <= NAME_BYTES_MAX
        && name.bytes().all(is_plain)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// A text that says something.
pub(super) struct Words;

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Words, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Words;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Words, E> {
                match says_something(text) {
                    true => Ok(Words),
                    false => Err(E::custom("in doubt")),
                }
            }
        }

        from.deserialize_str(Text)
    }
}

/// Whether a text has something in it besides spaces. False where that takes a closer look.
pub(super) fn says_something(text: &str) -> bool {
    let first = text
        .trim_start_matches([' ', '\n', '\t', '\r'])
        .bytes()
        .next();
    first.is_some_and(|byte| byte.is_ascii_graphic())
}

/// An object, whatever is in it.
pub(super) struct Object;

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Object, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Object)
            }
        }

        from.deserialize_map(Any)
    }
}
