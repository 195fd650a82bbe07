//! Models that are no AI: what they say is written down beforehand. They take the same path as the others.

use std::collections::VecDeque;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use steadyhand::{AiMessage, ToolCall};
use steadyhand_conversation::Provider;

use crate::error::{ModelError, ModelErrorKind};
use crate::model::{Delivery, Model, ModelRequest, Reply, Stop, Told, Usage};

/// A model that says one line of its script per question: for tests of applications.
///
/// ```
/// use serde_json::json;
/// use steadyhand_models::Scripted;
///
/// let model = Scripted::new().calls("weather", json!({"city": "Oslo"})).says("Rain, 4 degrees.");
/// ```
#[derive(Debug, Default)]
pub struct Scripted {
    lines: Mutex<VecDeque<Result<AiMessage, ModelError>>>,
}

impl Scripted {
    /// With nothing to say yet.
    pub fn new() -> Scripted {
        Scripted::default()
    }

    /// Says this.
    #[must_use]
    pub fn says(self, text: impl Into<String>) -> Scripted {
        self.answers(AiMessage::saying(text.into()))
    }

    /// Calls one tool.
    #[must_use]
    pub fn calls(self, name: impl Into<String>, args: Value) -> Scripted {
        self.calls_all([(name.into(), args)])
    }

    /// Calls several tools at once.
    #[must_use]
    pub fn calls_all(self, calls: impl IntoIterator<Item = (String, Value)>) -> Scripted {
        let call = |(name, args): (String, Value)| {
            let args = match args {
                Value::Object(args) => args,
                _ => Map::new(),
            };
            ToolCall::new(name, args)
        };
        let calls = calls.into_iter().map(call).collect();
        self.answers(AiMessage::calling("", calls))
    }

    /// Answers with this message.
    #[must_use]
    pub fn answers(self, message: AiMessage) -> Scripted {
        self.then(Ok(message))
    }

    /// Fails.
    #[must_use]
    pub fn fails(self, error: ModelError) -> Scripted {
        self.then(Err(error))
    }

    fn then(self, line: Result<AiMessage, ModelError>) -> Scripted {
        self.lines().push_back(line);
        self
    }

    fn lines(&self) -> parking_lot::MutexGuard<'_, VecDeque<Result<AiMessage, ModelError>>> {
        self.lines.lock()
    }
}

impl Model for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn provider(&self) -> Provider {
        Provider::LangChain
    }

    fn note(&self) -> Option<&str> {
        Some("a fixed script, not an AI")
    }

    fn answer<'a>(
        &'a self,
        request: ModelRequest<'a>,
        tell: &'a mut (dyn FnMut(Told) + Send),
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        let line = self.lines().pop_front();
        Box::pin(async move {
            let line = line.unwrap_or_else(|| {
                let message = "the script has no more lines";
                Err(ModelError::new(ModelErrorKind::ScriptEnded, message))
            });
            Ok(deliver(line?, request.delivery, tell).await)
        })
    }
}

/// Says a message word by word, as a stream would.
pub(crate) async fn deliver(
    message: AiMessage,
    delivery: Delivery,
    tell: &mut (dyn FnMut(Told) + Send),
) -> Reply {
    if delivery == Delivery::Streaming {
        let said = message.content.text();
        for word in said.split_inclusive(' ') {
            tell(Told::Text(word.to_owned()));
            tokio::task::yield_now().await;
        }
    }
    for call in &message.tool_calls {
        tell(Told::Call(call.name.clone()));
    }
    let stop = match message.tool_calls.is_empty() && message.invalid_tool_calls.is_empty() {
        true => Stop::EndTurn,
        false => Stop::ToolUse,
    };
    let raw = serde_json::to_value(&message).unwrap_or_else(|_| json!({}));
    Reply {
        message,
        stop,
        usage: Usage::default(),
        raw,
    }
}
