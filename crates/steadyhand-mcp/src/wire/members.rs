//! An object's members, each as it was written: for changing one of them and passing on the others untouched.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// An object with more members is none that we take apart.
const MEMBERS_MAX: usize = 100_000;

/// The members of an object, in their order.
#[derive(Debug, Default)]
pub struct Members<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Members<'a> {
    /// Of the text of an object; none if it is something else.
    pub fn of(raw: &'a RawValue) -> Option<Members<'a>> {
        serde_json::from_str(raw.get()).ok()
    }

    /// One member; the last, where there are several of the name.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        let mut from_the_end = self.0.iter().rev();
        let found = from_the_end.find(|(own, _)| own == name);
        found.map(|(_, value)| *value)
    }

    /// One member as a text.
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        let name: Name<'a> = serde_json::from_str(self.get(name)?.get()).ok()?;
        Some(name.0)
    }

    /// All but those of this name.
    pub fn without(mut self, name: &str) -> Members<'a> {
        self.0.retain(|(own, _)| own != name);
        self
    }

    /// The same with another value for a member, in its place or at the end.
    pub fn with(mut self, name: &'a str, value: &'a RawValue) -> Members<'a> {
        match self.0.iter_mut().find(|(own, _)| own == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((Cow::Borrowed(name), value)),
        }
        self
    }

    /// As JSON.
    pub fn to_raw(&self) -> Box<RawValue> {
        // Texts and what was JSON before always serialise.
        serde_json::value::to_raw_value(self).unwrap_or_else(|_| RawValue::NULL.to_owned())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'a>, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                    if members.len() >= MEMBERS_MAX {
                        return Err(A::Error::invalid_length(MEMBERS_MAX + 1, &self));
                    }
                    members.push((name.0, value));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
