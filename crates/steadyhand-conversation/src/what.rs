//! Which part of an exchange is looked at.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Which part of an exchange with a model is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// A request: its fields, its tools and its messages.
    Request,
    /// A model's answer.
    Response,
    /// Only whether calls and results match, in a history or a request.
    Match,
}

impl FromStr for What {
    type Err = String;

    fn from_str(name: &str) -> Result<What, String> {
        match name {
            "request" => Ok(What::Request),
            "response" => Ok(What::Response),
            "match" | "messages" => Ok(What::Match),
            other => Err(format!(
                "unknown part {other:?}: use request, messages (the same as match) or response"
            )),
        }
    }
}
