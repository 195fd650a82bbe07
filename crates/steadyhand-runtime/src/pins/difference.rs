//! What is another in a definition than before, place by place.

use serde::Serialize;
use serde_json::Value;
use steadyhand::cut;
use utoipa::ToSchema;

const DIFFERENCES_MAX: usize = 50;
const SHOWN_BYTES_MAX: usize = 2 * 1024;

/// One place that is another than before
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = ToolDifference)]
pub struct Difference {
    /// Where: a JSON Pointer into the schema of the arguments, or a member and what is in it (`description`,
    /// `annotations/idempotentHint`, `outputSchema/properties/id`)
    pub at: String,
    /// Null where nothing was
    pub before: Value,
    /// Null where nothing is any more
    pub after: Value,
}

/// Everything that is another, the outermost place first.
pub(super) fn between(at: &str, before: &Value, after: &Value, found: &mut Vec<Difference>) {
    if before == after || found.len() >= DIFFERENCES_MAX {
        return;
    }
    match (before, after) {
        (Value::Object(one), Value::Object(other)) => {
            let gone = one.iter().filter(|(name, _)| !other.contains_key(*name));
            for (name, value) in gone {
                between(&format!("{at}/{name}"), value, &Value::Null, found);
            }
            for (name, value) in other {
                let was = one.get(name).unwrap_or(&Value::Null);
                between(&format!("{at}/{name}"), was, value, found);
            }
        }
        (before, after) => {
            let shown = |value: &Value| cut::value(value, SHOWN_BYTES_MAX).into_owned();
            found.push(Difference {
                at: at.to_owned(),
                before: shown(before),
                after: shown(after),
            });
        }
    }
}
