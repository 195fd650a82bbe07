//! The messages of a conversation, with LangChain's names and meaning.
//!
//! These are plain data. `langchain` reads and writes their JSON; `pairing` keeps calls and results together.

mod content;
mod extra;
mod langchain;
mod pairing;
mod tool_call;

pub use content::Content;
pub use extra::Extra;
pub use langchain::FormatError;
pub use pairing::Placeholder;
pub use pairing::answer_open_calls;
pub use pairing::turn;
pub use tool_call::InvalidToolCall;
pub use tool_call::ToolCall;

use std::fmt::Display;

use serde_json::Value;

/// One entry of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// What the model is told to be.
    System(PlainMessage),
    /// What a person said.
    Human(PlainMessage),
    /// What the model said, and the tools it asked for.
    Ai(AiMessage),
    /// What a tool answered.
    Tool(ToolMessage),
    /// A LangChain message of another type (`function`, `chat`, `remove`, …), kept as it came.
    Other(OtherMessage),
}

/// A message that has nothing but content.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlainMessage {
    /// What is said.
    pub content: Content,
    /// The fields this library gives no meaning to.
    pub extra: Extra,
}

/// What the model said, and the tools it asked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AiMessage {
    /// What is said; often empty next to tool calls.
    pub content: Content,
    /// The tools asked for, in the model's order.
    pub tool_calls: Vec<ToolCall>,
    /// The calls whose arguments could not be read.
    pub invalid_tool_calls: Vec<InvalidToolCall>,
    /// The fields this library gives no meaning to: `usage_metadata`, `id`, ….
    pub extra: Extra,
}

/// What a tool answered to one call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolMessage {
    /// What the model gets to read.
    pub content: Content,
    /// The call this answers: [`ToolCall::id`].
    pub tool_call_id: String,
    /// The tool's name.
    pub name: Option<String>,
    /// What the tool produced beyond what the model reads.
    pub artifact: Option<Value>,
    /// Whether the call failed; LangChain's `status` `"error"` as opposed to `"success"`.
    pub is_error: bool,
    /// The fields this library gives no meaning to.
    pub extra: Extra,
}

/// A message of a LangChain type this library only carries along.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherMessage {
    /// LangChain's `type`, for example `"chat"` from Python or `"generic"` from JavaScript.
    pub kind: String,
    /// Everything but the type.
    pub fields: Extra,
}

impl Message {
    /// What a person said.
    pub fn human(content: impl Into<Content>) -> Self {
        Self::Human(PlainMessage::new(content))
    }

    /// What the model is told to be.
    pub fn system(content: impl Into<Content>) -> Self {
        Self::System(PlainMessage::new(content))
    }
}

impl From<AiMessage> for Message {
    fn from(message: AiMessage) -> Self {
        Self::Ai(message)
    }
}

impl From<ToolMessage> for Message {
    fn from(message: ToolMessage) -> Self {
        Self::Tool(message)
    }
}

impl PlainMessage {
    /// A message that says `content`.
    pub fn new(content: impl Into<Content>) -> Self {
        Self {
            content: content.into(),
            extra: Extra::default(),
        }
    }
}

impl AiMessage {
    /// An answer that asks for no tools.
    pub fn saying(content: impl Into<Content>) -> Self {
        Self::calling(content, Vec::new())
    }

    /// An answer that asks for tools.
    pub fn calling(content: impl Into<Content>, tool_calls: Vec<ToolCall>) -> Self {
        Self {
            content: content.into(),
            tool_calls,
            ..Self::default()
        }
    }
}

impl ToolMessage {
    /// The result of a call that worked.
    pub fn new(tool_call_id: impl Into<String>, content: Content) -> Self {
        Self {
            content,
            tool_call_id: tool_call_id.into(),
            ..Self::default()
        }
    }

    /// The result of a call that failed: `Error: <reason>`.
    pub fn error(tool_call_id: impl Into<String>, reason: impl Display) -> Self {
        let content = Content::Text(format!("Error: {reason}"));
        Self {
            is_error: true,
            ..Self::new(tool_call_id, content)
        }
    }
}
