//! What a server may ask of us, and what it is told: nothing it asks is left without an answer.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::wire::RpcError;

const METHOD_NOT_FOUND: i64 = -32601;

/// How requests of a server are answered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestPolicy {
    /// Folders a server may work in (`file://…`), if it asks. None: we do not say that it could ask.
    pub roots: Option<Vec<String>>,
    /// What is said when it wants to ask a person something.
    pub elicitation: Elicitation,
}

/// What a server hears that wants to ask a person something.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Elicitation {
    /// That we cannot do that.
    #[default]
    Refuse,
    /// That the person said no.
    Decline,
    /// That the person went away.
    Cancel,
    /// These values, as if the person had given them.
    Accept(Value),
}

impl RequestPolicy {
    /// The capabilities that go with it.
    pub(crate) fn capabilities(&self) -> Value {
        let mut capabilities = json!({});
        if self.roots.is_some() {
            capabilities["roots"] = json!({});
        }
        if self.elicitation != Elicitation::Refuse {
            capabilities["elicitation"] = json!({});
        }
        capabilities
    }

    pub(crate) fn answer(&self, method: &str, _: Option<&RawValue>) -> Result<Value, RpcError> {
        match (method, &self.elicitation, &self.roots) {
            ("ping", _, _) => Ok(json!({})),
            ("roots/list", _, Some(roots)) => {
                let roots: Vec<Value> = roots.iter().map(|uri| json!({ "uri": uri })).collect();
                Ok(json!({ "roots": roots }))
            }
            ("elicitation/create", Elicitation::Decline, _) => Ok(json!({"action": "decline"})),
            ("elicitation/create", Elicitation::Cancel, _) => Ok(json!({"action": "cancel"})),
            ("elicitation/create", Elicitation::Accept(values), _) => {
                Ok(json!({"action": "accept", "content": values}))
            }
            _ => {
                tracing::debug!(method, "a request we do not serve");
                Err(RpcError::new(
                    METHOD_NOT_FOUND,
                    format!("this client does not answer {method}"),
                ))
            }
        }
    }
}
