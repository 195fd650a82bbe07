//! The lines of a cassette, as they are written and read.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use steadyhand::redact::{self, Secrets};
use steadyhand::{Cut, Failure, Output};

/// One line. Fields that are not known are passed over, so that an older program can read what a newer one adds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// The first.
    Cassette(Head),
    /// A tool as it was listed; the last line of a name counts.
    Tool(Box<Definition>),
    /// A call and how it ended.
    Call(Box<Call>),
    /// Calls that are missing, and why.
    Missing(Missing),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) version: u32,
    pub(super) program: String,
    pub(super) at: String,
}

/// What is known of a tool without the tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Definition {
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lc_name: Option<String>,
    pub(super) description: String,
    pub(super) schema: Value,
    pub(super) kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<String>,
    #[serde(default)]
    pub(super) safe_to_repeat: bool,
    #[serde(default)]
    pub(super) coerce: bool,
    #[serde(default)]
    pub(super) strict: bool,
    /// As its MCP server wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mcp: Option<Value>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) arguments: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<Said>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<Failure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fallback: Option<Said>,
    #[serde(default)]
    pub(super) attempts: u32,
    #[serde(default)]
    pub(super) took_ms: f64,
    #[serde(default)]
    pub(super) at: String,
}

/// What a tool or a fallback gave.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Said {
    pub(super) value: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) artifact: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cut: Option<Cut>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Missing {
    pub(super) calls: u64,
    pub(super) reason: String,
}

impl Said {
    /// As it may be written down.
    pub(super) fn of(output: &Output, secrets: &Secrets) -> Said {
        let tidy = |text: &str| secrets.hide(redact::text(text).into_owned());
        Said {
            value: secrets.hide_in(output.value()),
            text: output.own_text().map(tidy),
            artifact: output.artifact().map(|value| secrets.hide_in(value)),
            cut: output.cut(),
        }
    }

    pub(super) fn output(&self) -> Output {
        let mut output = match &self.text {
            Some(text) => Output::json_with_text(self.value.clone(), text),
            None => Output::json(self.value.clone()),
        };
        if let Some(artifact) = &self.artifact {
            output = output.with_artifact(artifact.clone());
        }
        match self.cut {
            Some(cut) => output.with_cut(cut),
            None => output,
        }
    }
}
