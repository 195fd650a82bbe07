//! LangChain's names for the types of messages.

/// The types this library tells apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    System,
    Human,
    Ai,
    Tool,
    Other(String),
}

/// What an error lists when a type is none of these.
pub(super) const KNOWN_TYPES: &str =
    "\"system\", \"human\", \"ai\", \"tool\" or another LangChain message type";

/// What an error lists when a class is none of these.
pub(super) const KNOWN_CLASSES: &str =
    "a list that ends with a LangChain message class, like \"AIMessage\"";

impl Kind {
    /// The kind of a `type`. A streamed chunk is the message it is a piece of.
    pub(super) fn of_type(name: &str) -> Option<Self> {
        match name {
            "system" | "SystemMessageChunk" => Some(Self::System),
            "human" | "HumanMessageChunk" => Some(Self::Human),
            "ai" | "AIMessageChunk" => Some(Self::Ai),
            "tool" | "ToolMessageChunk" => Some(Self::Tool),
            "function"
            | "chat"
            | "generic"
            | "remove"
            | "developer"
            | "FunctionMessageChunk"
            | "ChatMessageChunk" => Some(Self::Other(name.to_owned())),
            _ => None,
        }
    }

    /// The kind of a class, the last part of a constructor's `id`.
    pub(super) fn of_class(name: &str) -> Option<Self> {
        let type_name = match name.strip_suffix("Chunk").unwrap_or(name) {
            "SystemMessage" => "system",
            "HumanMessage" => "human",
            "AIMessage" => "ai",
            "ToolMessage" => "tool",
            "FunctionMessage" => "function",
            // Python says "chat" inside the constructor's arguments; JavaScript says nothing and means this.
            "ChatMessage" => "generic",
            "RemoveMessage" => "remove",
            _ => return None,
        };
        Self::of_type(type_name)
    }
}
