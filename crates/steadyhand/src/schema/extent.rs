//! Refuses schemas whose names and addresses are small on paper and large in memory: each part of a compiled schema has
//! a copy of the way to it.

use serde_json::Value;

/// The ways to all parts of a schema together, in bytes.
pub const SCHEMA_PATH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The `$id`s on the way to one part of a schema together, in bytes: addresses are made of all of them.
pub const SCHEMA_ID_BYTES_MAX: usize = 2 * 1024;
/// One reference, in bytes.
pub const REFERENCE_BYTES_MAX: usize = 4 * 1024;

/// Says what is too long.
pub(super) fn check(schema: &Value) -> Result<(), String> {
    let mut extent = Extent::default();
    extent.walk(schema, 0, 0)
}

#[derive(Default)]
struct Extent {
    path_bytes: usize,
}

impl Extent {
    fn walk(&mut self, part: &Value, path: usize, ids: usize) -> Result<(), String> {
        match part {
            Value::Array(items) => {
                for item in items {
                    self.count(path + 4)?;
                    self.walk(item, path + 4, ids)?;
                }
            }
            Value::Object(members) => {
                let text = |name: &str| members.get(name).and_then(Value::as_str);
                let own = text("$id").or_else(|| text("id")).map_or(0, str::len);
                let ids = ids + own;
                if ids > SCHEMA_ID_BYTES_MAX {
                    return Err(format!(
                        "its schema has $ids of more than {SCHEMA_ID_BYTES_MAX} bytes"
                    ));
                }
                for reference in ["$ref", "$dynamicRef", "$recursiveRef"] {
                    if text(reference).is_some_and(|target| target.len() > REFERENCE_BYTES_MAX) {
                        return Err(format!(
                            "its schema has a {reference} of more than {REFERENCE_BYTES_MAX} bytes"
                        ));
                    }
                }
                for (name, member) in members {
                    let path = path + 1 + name.len();
                    self.count(path + ids)?;
                    self.walk(member, path, ids)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn count(&mut self, bytes: usize) -> Result<(), String> {
        self.path_bytes += bytes;
        match self.path_bytes <= SCHEMA_PATH_BYTES_MAX {
            true => Ok(()),
            false => Err(
                "its schema has long names in deep places, more than there is memory for"
                    .to_owned(),
            ),
        }
    }
}
