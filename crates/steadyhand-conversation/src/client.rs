//! What a model is asked, what it answers, and what it tells while it answers: the same for every provider.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use steadyhand::{AiMessage, Message};

/// What a request says of its model.
#[derive(Debug, Clone, Copy)]
pub struct RequestSettings<'a> {
    /// The name the provider knows the model by.
    pub model: &'a str,
    /// It is asked at its makers' address.
    pub is_at_makers: bool,
    /// The longest answer in tokens.
    pub max_tokens: Option<u32>,
    /// The randomness of its answers.
    pub temperature: Option<f64>,
    /// How much of a conversation it can see, in tokens.
    pub num_ctx: u32,
    /// How long it stays loaded.
    pub keep_alive: Option<&'a Value>,
    /// Whether and how much it thinks.
    pub thinking: Option<&'a Value>,
}

/// Puts a stream together, event by event.
pub trait StreamReader: std::fmt::Debug + Send + Sync {
    /// Takes an event in, which is an object.
    fn take(&mut self, event: Value, tell: &mut dyn FnMut(Told));

    /// `[DONE]` has come.
    fn done(&mut self) {}

    /// Whether all has come that belongs to the answer.
    fn is_complete(&self) -> bool;

    /// The response, as it would have come at once.
    fn into_response(self: Box<Self>) -> Value;
}

/// What a model is asked.
#[derive(Debug, Clone, Copy)]
pub struct ModelRequest<'a> {
    /// The whole conversation. It need not be valid for the provider: it is repaired on the way.
    pub messages: &'a [Message],
    /// The tools as LangChain-shaped definitions: what a [`Tool`](steadyhand::Tool) serialises to.
    pub tools: &'a [Value],
    /// Whether it may use them.
    pub choice: ToolChoice,
    /// Whether its words are told as they come.
    pub delivery: Delivery,
}

/// Whether a model may use tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// It must use one. Ollama takes no notice of this.
    Required,
    /// It must answer without.
    None,
}

/// How an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delivery {
    /// Piece by piece.
    #[default]
    Streaming,
    /// All at once.
    Whole,
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Its message, ready to be put into the conversation. Calls whose arguments cannot be trusted are in
    /// `invalid_tool_calls`, with the reason.
    pub message: AiMessage,
    /// Why it stopped.
    pub stop: Stop,
    /// What it took.
    pub usage: Usage,
    /// The provider's whole response as it came; for a stream, the response it amounts to.
    pub raw: Value,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It was done.
    EndTurn,
    /// It wants tools.
    ToolUse,
    /// It ran out of tokens in the middle.
    Length,
    /// It, or its provider, would not answer.
    Refusal,
    /// Something else, in the provider's word.
    #[serde(untagged)]
    Other(String),
}

impl Stop {
    /// The word for it: `end_turn`, `tool_use`, `max_tokens`, `refusal`, or the provider's own.
    pub fn as_str(&self) -> &str {
        match self {
            Stop::EndTurn => "end_turn",
            Stop::ToolUse => "tool_use",
            Stop::Length => "max_tokens",
            Stop::Refusal => "refusal",
            Stop::Other(word) => word,
        }
    }
}

/// Tokens, as the provider counted them; 0 where it did not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Usage {
    /// What was read, cached or not.
    pub input_tokens: u64,
    /// What was written, thinking included.
    pub output_tokens: u64,
}

impl Usage {
    /// Both together.
    pub fn total(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, more: Usage) {
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
    }
}

/// What a model tells while it answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// The next piece of its answer.
    Text(String),
    /// The next piece of its thinking.
    Thinking(String),
    /// It begins to write a call of this tool; its arguments follow.
    Call(String),
    /// It could not be asked and will be again.
    Retry(Retry),
    /// Something people should know.
    Notice(Notice),
}

/// A failed request that will be sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// The attempt that comes now; the first is 1.
    pub attempt: u32,
    /// How many there will be at most.
    pub attempts_max: u32,
    /// How long it waits first.
    pub wait: Duration,
    /// What went wrong.
    pub reason: String,
}

/// Something people should know, and no failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Notice {
    /// What it is about, for programs.
    pub code: NoticeCode,
    /// In words.
    pub message: String,
}

/// What a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeCode {
    /// A tool was left out: the provider would not take it.
    ToolLeftOut,
    /// The conversation was changed so that the provider takes it.
    ConversationRepaired,
    /// The model did not get to see all of the conversation.
    ContextCut,
    /// Calls without a result were answered before the conversation went on.
    OpenCallsAnswered,
    /// The model was told that it repeats itself.
    LoopTold,
    /// A call was refused, because the model was told and did it again.
    LoopRefused,
    /// The model has used tools as often as it may for one question.
    LimitReached,
    /// The answer broke off.
    AnswerCut,
    /// A call was found in the model's words.
    CallRecovered,
}
