//! What a tool gives back, and how a model reads it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The result of a tool: a JSON value, and where it differs, the text a model reads instead.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Output {
    value: Value,
    // Rare, so kept out of line: an output is moved around a lot.
    more: Option<Box<More>>,
}

#[derive(Debug, Clone, PartialEq, Default)]
struct More {
    text: Option<String>,
    artifact: Option<Value>,
    cut: Option<Cut>,
}

/// Says that an output was larger than its limit and has been cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cut {
    /// How large the whole output was, in bytes of JSON.
    pub full_bytes: usize,
    /// The limit it was cut to.
    pub limit_bytes: usize,
}

impl Output {
    /// A JSON value. A model reads a string as it is and anything else as JSON (SPEC L03).
    pub fn json(value: impl Into<Value>) -> Output {
        Output {
            value: value.into(),
            more: None,
        }
    }

    /// A value with a text of its own for the model: an MCP result and its text parts, say.
    pub fn json_with_text(value: impl Into<Value>, text: impl Into<String>) -> Output {
        let mut output = Output::json(value);
        output.more().text = Some(text.into());
        output
    }

    /// LangChain's `[text, artifacts]`: the model reads the text, the application gets both.
    pub fn text_with_artifact(text: impl Into<String>, artifact: impl Into<Value>) -> Output {
        Output::json(Value::String(text.into())).with_artifact(artifact)
    }

    /// The same output with something beside it for the application: never for the model.
    #[must_use]
    pub fn with_artifact(mut self, artifact: impl Into<Value>) -> Output {
        self.more().artifact = Some(artifact.into());
        self
    }

    /// The same output, which was cut before it came here.
    #[must_use]
    pub fn with_cut(mut self, cut: Cut) -> Output {
        self.more().cut = Some(cut);
        self
    }

    /// The value itself.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The value itself, by move.
    pub fn into_value(self) -> Value {
        self.value
    }

    /// What goes beside the text to the application, never to the model.
    pub fn artifact(&self) -> Option<&Value> {
        self.more.as_ref()?.artifact.as_ref()
    }

    /// Set when the output was larger than its limit.
    pub fn cut(&self) -> Option<Cut> {
        self.more.as_ref()?.cut
    }

    /// The text a model reads.
    pub fn text(&self) -> String {
        if let Some(text) = self.own_text() {
            return text.to_owned();
        }
        match &self.value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// The same output with `change` made to each of its parts: the value, the text, the artifact.
    #[must_use]
    pub fn map_parts(mut self, mut change: impl FnMut(&mut Value)) -> Output {
        change(&mut self.value);
        if let Some(more) = &mut self.more {
            if let Some(text) = more.text.take() {
                let mut text = Value::String(text);
                change(&mut text);
                more.text = text.as_str().map(str::to_owned);
            }
            if let Some(artifact) = &mut more.artifact {
                change(artifact);
            }
        }
        self
    }

    /// Nothing but a value.
    pub(crate) fn is_plain(&self) -> bool {
        self.more.is_none()
    }

    /// The text a model reads in place of the value, where it has one.
    pub fn own_text(&self) -> Option<&str> {
        self.more.as_ref()?.text.as_deref()
    }

    pub(crate) fn of_parts(
        value: Value,
        text: Option<String>,
        artifact: Option<Value>,
        cut: Option<Cut>,
    ) -> Output {
        let more = More {
            text,
            artifact,
            cut,
        };
        let more = (more != More::default()).then(|| Box::new(more));
        Output { value, more }
    }

    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }
}

impl From<Value> for Output {
    fn from(value: Value) -> Output {
        Output::json(value)
    }
}
