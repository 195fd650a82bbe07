//! One definition as it is kept: its digest over every member, the definition itself, and the hints that decide how we
//! treat a tool.

use std::fmt::Write;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize as Derive, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use steadyhand::Tool;

use super::difference::{Difference, between};

/// A larger definition is known by its digest alone.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// A definition.
#[derive(Debug, Clone, PartialEq, Serialize, Derive)]
pub(super) struct Pinned {
    sha256: String,
    /// Null if it is too large to be kept.
    definition: Value,
    #[serde(default, skip_serializing_if = "Hints::are_none")]
    hints: Hints,
    /// As 0.1.0 kept it: nothing but the description and the schema of a tool.
    #[serde(default, skip_serializing_if = "is_false")]
    is_partial: bool,
}

/// What a tool says of what it does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Derive)]
#[serde(default)]
pub(super) struct Hints {
    #[serde(skip_serializing_if = "is_false")]
    read_only: bool,
    #[serde(skip_serializing_if = "is_false")]
    idempotent: bool,
    /// It says that it destroys nothing.
    #[serde(skip_serializing_if = "is_false")]
    harmless: bool,
    /// It says that it stays within its own world.
    #[serde(skip_serializing_if = "is_false")]
    closed: bool,
}

impl Hints {
    fn of(definition: &Value) -> Hints {
        let hint = |name: &str| definition.get("annotations")?.get(name)?.as_bool();
        Hints {
            read_only: hint("readOnlyHint") == Some(true),
            idempotent: hint("idempotentHint") == Some(true),
            harmless: hint("destructiveHint") == Some(false),
            closed: hint("openWorldHint") == Some(false),
        }
    }

    fn are_none(&self) -> bool {
        *self == Hints::default()
    }

    /// Whether these promise more than the others.
    pub(super) fn loosen(self, accepted: Hints) -> bool {
        (self.read_only && !accepted.read_only)
            || (self.idempotent && !accepted.idempotent)
            || (self.harmless && !accepted.harmless)
            || (self.closed && !accepted.closed)
    }

    /// A definition that promises no more than these.
    pub(super) fn lay_over(self, definition: &RawValue) -> Option<Box<RawValue>> {
        let mut definition: Map<String, Value> = serde_json::from_str(definition.get()).ok()?;
        let annotations = definition.get_mut("annotations")?.as_object_mut()?;
        for (name, promise, may_be_made) in [
            ("readOnlyHint", true, self.read_only),
            ("idempotentHint", true, self.idempotent),
            ("destructiveHint", false, self.harmless),
            ("openWorldHint", false, self.closed),
        ] {
            if annotations.get(name) == Some(&Value::Bool(promise)) && !may_be_made {
                annotations.shift_remove(name);
            }
        }
        serde_json::value::to_raw_value(&definition).ok()
    }
}

impl Pinned {
    /// Of a definition as its server wrote it.
    pub(super) fn of(raw: &RawValue) -> Pinned {
        let canonical = canonical(raw.get());
        let definition: Value = serde_json::from_str(raw.get()).unwrap_or_default();
        Pinned {
            sha256: digest(&canonical),
            hints: Hints::of(&definition),
            definition: match canonical.len() > KEPT_BYTES_MAX {
                true => Value::Null,
                false => definition,
            },
            is_partial: false,
        }
    }

    /// The same as 0.1.0 wrote it down.
    pub(super) fn partial(tool: &Tool) -> Pinned {
        let definition = json!({"description": tool.description(), "schema": tool.schema()});
        let text = definition.to_string();
        Pinned {
            sha256: digest(&text),
            hints: Hints::default(),
            definition: match text.len() > KEPT_BYTES_MAX {
                true => Value::Null,
                false => definition,
            },
            is_partial: true,
        }
    }

    pub(super) fn as_of_0_1_0(sha256: String, definition: Value) -> Pinned {
        Pinned {
            sha256,
            definition,
            hints: Hints::default(),
            is_partial: true,
        }
    }

    pub(super) fn is_partial(&self) -> bool {
        self.is_partial
    }

    pub(super) fn is(&self, other: &Pinned) -> bool {
        self.is_partial == other.is_partial && self.sha256 == other.sha256
    }

    /// Whether two definitions are the same once secrets are taken out of the one that was kept.
    pub(super) fn is_but_for(&self, other: &Pinned, hide: impl Fn(&mut Value)) -> bool {
        if self.is(other) {
            return true;
        }
        let mut definition = self.definition.clone();
        hide(&mut definition);
        self.is_partial == other.is_partial
            && !definition.is_null()
            && definition == other.definition
    }

    pub(super) fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The digest as it is told to others, and as they name it.
    pub(super) fn hash(&self) -> String {
        format!("sha256:{}", self.sha256)
    }

    pub(super) fn hints(&self) -> Hints {
        self.hints
    }

    pub(super) fn definition(&self) -> &Value {
        &self.definition
    }

    /// So much of the room for definitions it takes.
    pub(super) fn bytes(&self) -> usize {
        match &self.definition {
            Value::Null => 0,
            definition => definition.to_string().len(),
        }
    }

    /// The digest alone, where there is no more room.
    pub(super) fn without_definition(mut self) -> Pinned {
        self.definition = Value::Null;
        self
    }

    /// Member by member; the description first, then the arguments of a tool, then everything else.
    pub(super) fn differences(&self, now: &Pinned) -> Vec<Difference> {
        let mut found = Vec::new();
        let member = |of: &Pinned, name: &str| of.definition.get(name).cloned().unwrap_or_default();
        if self.is_partial {
            for (name, at) in [("description", "description"), ("schema", "")] {
                between(at, &member(self, name), &member(now, name), &mut found);
            }
        } else {
            let members = |of: &Pinned| of.definition.as_object().cloned().unwrap_or_default();
            let (before, after) = (members(self), members(now));
            let first = ["description", "inputSchema"].map(str::to_owned);
            let all = first.into_iter().chain(before.keys().cloned());
            let mut told: Vec<String> = Vec::new();
            for name in all.chain(after.keys().cloned()) {
                if told.contains(&name) {
                    continue;
                }
                let at = if name == "inputSchema" { "" } else { &name };
                between(at, &member(self, &name), &member(now, &name), &mut found);
                told.push(name);
            }
        }
        if found.is_empty() {
            // Too large to be compared, or a member that is there twice.
            found.push(Difference {
                at: "definition".to_owned(),
                before: json!(self.sha256),
                after: json!(now.sha256),
            });
        }
        found
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// One text for all ways to write a value: members in the order of their names, spaces left out. A member that is there
/// twice stays there twice: readers do not agree about which one counts.
fn canonical(json: &str) -> String {
    match serde_json::from_str::<Canonical>(json) {
        Ok(Canonical(text)) => text,
        Err(_) => json.to_owned(),
    }
}

struct Canonical(String);

impl<'de> Deserialize<'de> for Canonical {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Canonical, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Canonical;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Canonical, E> {
        Ok(Canonical("null".to_owned()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Canonical, E> {
        Ok(Canonical(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Canonical, E> {
        Ok(Canonical(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Canonical, E> {
        Ok(Canonical(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Canonical, E> {
        Ok(Canonical(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Canonical, E> {
        Ok(Canonical(Value::from(value).to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Canonical, A::Error> {
        let mut text = "[".to_owned();
        while let Some(Canonical(item)) = items.next_element()? {
            text.push_str(&item);
            text.push(',');
        }
        text.push(']');
        Ok(Canonical(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Canonical, A::Error> {
        let mut all: Vec<(String, String)> = Vec::new();
        while let Some((name, Canonical(member))) = members.next_entry::<String, Canonical>()? {
            all.push((name, member));
        }
        all.sort_by(|one, other| one.0.cmp(&other.0));
        let mut text = "{".to_owned();
        for (name, member) in all {
            let _ = write!(text, "{}:{member},", Value::from(name));
        }
        text.push('}');
        Ok(Canonical(text))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::Pinned;

    fn pinned(json: &str) -> Pinned {
        let raw = RawValue::from_string(json.to_owned()).expect("JSON");
        Pinned::of(&raw)
    }

    #[test]
    fn s04_a_definition_is_the_same_in_any_order_and_another_one_with_any_member_or_a_repeated_one()
    {
        let first =
            pinned(r#"{"name":"a","inputSchema":{"type":"object","x":[1,2]},"_meta":{"k":null}}"#);
        let reordered = pinned(
            r#"{ "_meta":{"k":null}, "inputSchema":{"x":[1,2],"type":"object"}, "name":"a"}"#,
        );
        assert!(first.is(&reordered));
        for other in [
            r#"{"name":"a","inputSchema":{"type":"object","x":[2,1]},"_meta":{"k":null}}"#,
            r#"{"name":"a","inputSchema":{"type":"object","x":[1,2]},"_meta":{}}"#,
            r#"{"name":"a","title":"A","inputSchema":{"type":"object","x":[1,2]},"_meta":{"k":null}}"#,
            r#"{"name":"a","name":"a","inputSchema":{"type":"object","x":[1,2]},"_meta":{"k":null}}"#,
            r#"{"name":"a","inputSchema":{"type":"object","x":[1,2]},"_meta":{"k":null},"future":1}"#,
        ] {
            assert!(!first.is(&pinned(other)), "{other}");
            assert!(!first.differences(&pinned(other)).is_empty(), "{other}");
        }
    }
}
