//! The loop: a model is asked, its calls are run by the executor, it is asked again, until it answers.

mod calls;
mod event;
mod guard;
mod history;
mod settings;

pub use event::AgentEvent;
pub use settings::{AgentSettings, AtLimit, LoopGuard};

use std::sync::Arc;

use serde_json::Value;
use steadyhand::{AiMessage, Arguments, Message, ToolCall, ToolExecutor};
use steadyhand_conversation::{ThinkingFilter, recover_calls, without_thinking};
use tokio_util::sync::CancellationToken;

use crate::error::ModelError;
use crate::model::{Model, ModelRequest, Notice, NoticeCode, Reply, Stop, Told};
use crate::model::{ToolChoice, Usage};
use guard::Guard;

/// Who is told what happens. It is called from within the loop: what takes long belongs elsewhere.
pub type Tell<'a> = &'a mut (dyn FnMut(AgentEvent) + Send);

/// A model with tools. Every call goes through the executor, and through nothing else (SPEC V10).
///
/// ```
/// use std::sync::Arc;
/// use serde_json::json;
/// use steadyhand::{Message, Tool, ToolError, ToolExecutor, ToolManager};
/// use steadyhand_models::{Agent, CancellationToken, Demo};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let tools = ToolManager::new();
/// let schema = json!({"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]});
/// tools.add(Tool::with_schema("math_eval", "Evaluates an expression", schema, |_: serde_json::Value| async {
///     Ok::<_, ToolError>(json!(408))
/// })).unwrap();
///
/// let agent = Agent::new(Arc::new(Demo::new()), ToolExecutor::new(tools));
/// let mut conversation = vec![Message::human("What is 12 * 34?")];
/// let end = agent.run(&mut conversation, &CancellationToken::new(), &mut |event| println!("{event:?}")).await;
/// assert!(end.text.contains("408"));
/// // The question, the call, its result, the answer.
/// assert_eq!(conversation.len(), 4);
/// # });
/// ```
#[derive(Debug, Clone)]
pub struct Agent {
    model: Arc<dyn Model>,
    executor: ToolExecutor,
    settings: AgentSettings,
}

/// How a turn ended. There is always an end, and the conversation is one that can go on.
#[derive(Debug, Clone)]
pub struct TurnEnd {
    /// Why it ended.
    pub end: End,
    /// What the model said last: its answer, or as much of it as there is.
    pub text: String,
    /// How often tools were run.
    pub rounds: u32,
    /// How many calls were made, refused ones included.
    pub calls: u32,
    /// What all of it took.
    pub usage: Usage,
}

/// Why a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// The model answered.
    Answered,
    /// Its answer broke off at its length limit.
    CutOff,
    /// It, or its provider, would not answer.
    Refused,
    /// Tools were used as often as they may be. Run again to go on, or have it
    /// [answer now](Agent::answer_now).
    LimitReached,
    /// The user withdrew the question. Every call has its result.
    Cancelled,
    /// The model could not be asked. The conversation is as if it had not been, but for words that were told
    /// before it failed; running it again goes on from there.
    Failed(ModelError),
}

impl End {
    /// The word for it in JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            End::Answered => "end_turn",
            End::CutOff => "max_tokens",
            End::Refused => "refusal",
            End::LimitReached => "max_iterations",
            End::Cancelled => "cancelled",
            End::Failed(_) => "error",
        }
    }
}

impl Agent {
    /// This model, with the tools of this executor.
    pub fn new(model: Arc<dyn Model>, executor: ToolExecutor) -> Agent {
        Agent {
            model,
            executor,
            settings: AgentSettings::default(),
        }
    }

    /// The same with other settings.
    #[must_use]
    pub fn with(mut self, settings: AgentSettings) -> Agent {
        self.settings = settings;
        self
    }

    /// The model.
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.model
    }

    /// What runs the tools.
    pub fn executor(&self) -> &ToolExecutor {
        &self.executor
    }

    /// The settings.
    pub fn settings(&self) -> &AgentSettings {
        &self.settings
    }

    /// Goes on with a conversation until the model has answered what was said last (SPEC L02, L07).
    ///
    /// The conversation may come from a file, cut off anywhere: calls without a result get one that says so.
    /// It grows by each answer and its results. Cancelling ends calls that run; dropping the future does the same.
    pub async fn run(
        &self,
        conversation: &mut Vec<Message>,
        cancel: &CancellationToken,
        tell: Tell<'_>,
    ) -> TurnEnd {
        self.turn(conversation, cancel, tell, ToolChoice::Auto)
            .await
    }

    /// Has the model answer from what it knows, without more tools.
    pub async fn answer_now(
        &self,
        conversation: &mut Vec<Message>,
        cancel: &CancellationToken,
        tell: Tell<'_>,
    ) -> TurnEnd {
        self.turn(conversation, cancel, tell, ToolChoice::None)
            .await
    }

    async fn turn(
        &self,
        conversation: &mut Vec<Message>,
        cancel: &CancellationToken,
        tell: Tell<'_>,
        mut choice: ToolChoice,
    ) -> TurnEnd {
        let mut so_far = TurnEnd {
            end: End::Answered,
            text: String::new(),
            rounds: 0,
            calls: 0,
            usage: Usage::default(),
        };
        self.answer_open_calls(conversation, cancel, tell).await;
        if let Some(text) = history::answered(conversation) {
            so_far.text = text;
            return so_far;
        }
        let mut noticed: Vec<Notice> = Vec::new();
        let mut guard = Guard::of(self.settings.guard, history::this_turn(conversation));
        loop {
            if cancel.is_cancelled() {
                return so_far.ending(End::Cancelled);
            }
            if choice != ToolChoice::None && so_far.rounds >= self.settings.max_iterations {
                tell(notice(
                    NoticeCode::LimitReached,
                    format!("tools were used {} times for one question", so_far.rounds),
                ));
                match self.settings.at_limit {
                    AtLimit::Return => return so_far.ending(End::LimitReached),
                    AtLimit::Answer => choice = ToolChoice::None,
                }
            }
            tell(AgentEvent::Asked {
                round: so_far.rounds + 1,
            });
            let tools = self.definitions();
            // What is the same in every round is told once.
            let mut tell_once = |event: AgentEvent| {
                if let AgentEvent::Notice(notice) = &event {
                    if noticed.contains(notice) {
                        return;
                    }
                    noticed.push(notice.clone());
                }
                tell(event);
            };
            let asked = self
                .ask(conversation, &tools, choice, cancel, &mut tell_once)
                .await;
            let reply = match asked {
                Asked::Answered(reply) => reply,
                Asked::Withdrawn(said) => {
                    keep_words(conversation, said.clone(), history::CANCELLED, tell);
                    so_far.text = said;
                    return so_far.ending(End::Cancelled);
                }
                Asked::Failed(error, said) => {
                    keep_words(conversation, said.clone(), history::FAILED, tell);
                    so_far.text = said;
                    return so_far.ending(End::Failed(error));
                }
            };
            so_far.usage += reply.usage;
            let reply = self.recovered(*reply, &tools, choice, tell);
            so_far.text = reply.message.content.text().into_owned();
            let wanted = reply.message.tool_calls.len() + reply.message.invalid_tool_calls.len();
            if wanted == 0 {
                return so_far.ending(conclude(conversation, reply, tell));
            }
            so_far.calls = so_far.calls.saturating_add(wanted as u32);
            let may_run = match choice {
                ToolChoice::None => calls::MayRun::No(NOT_ANY_MORE),
                ToolChoice::Auto | ToolChoice::Required => calls::MayRun::Yes(&mut guard),
            };
            self.run_calls(conversation, reply, may_run, cancel, tell)
                .await;
            if cancel.is_cancelled() {
                return so_far.ending(End::Cancelled);
            }
            if choice == ToolChoice::None {
                return so_far.ending(End::LimitReached);
            }
            so_far.rounds += 1;
        }
    }

    /// What models are told about the tools there are now: they may change between two rounds.
    fn definitions(&self) -> Vec<Value> {
        let tools = self.executor.tools().list();
        let offered = tools
            .iter()
            .filter(|tool| match &self.settings.tools {
                None => true,
                Some(names) => names.iter().any(|name| name == tool.name()),
            })
            .filter_map(|tool| serde_json::to_value(tool.as_ref()).ok());
        offered.collect()
    }

    async fn ask(
        &self,
        conversation: &[Message],
        tools: &[Value],
        choice: ToolChoice,
        cancel: &CancellationToken,
        tell: Tell<'_>,
    ) -> Asked {
        let request = ModelRequest {
            messages: conversation,
            tools,
            choice,
            delivery: self.settings.delivery,
        };
        let mut said = String::new();
        let mut pass = |told: Told| {
            let event = match told {
                Told::Text(text) => {
                    said.push_str(&text);
                    AgentEvent::Text { text }
                }
                Told::Thinking(text) => AgentEvent::Thinking { text },
                Told::Call(_) => return,
                Told::Retry(retry) => AgentEvent::Retry {
                    attempt: retry.attempt,
                    attempts_max: retry.attempts_max,
                    wait_ms: retry.wait.as_millis() as u64,
                    reason: retry.reason,
                },
                Told::Notice(notice) => AgentEvent::Notice(notice),
            };
            tell(event);
        };
        // Whoever serves the model, what it thinks is no part of what it says.
        let mut thinking = ThinkingFilter::default();
        let answer = {
            let mut told = |told: Told| thinking.take(told, &mut pass);
            let answer = self.model.answer(request, &mut told);
            tokio::select! {
                biased;
                () = cancel.cancelled() => None,
                answer = answer => Some(answer),
            }
        };
        thinking.finish(&mut pass);
        match answer {
            None => Asked::Withdrawn(said),
            Some(Err(error)) => Asked::Failed(error, said),
            Some(Ok(mut reply)) => {
                let content = std::mem::take(&mut reply.message.content);
                (reply.message.content, _) = without_thinking(content);
                // What comes at once is told at once: whoever shows words need not ask how they came.
                let text = reply.message.content.text();
                if said.is_empty() && !text.is_empty() {
                    tell(AgentEvent::Text {
                        text: text.into_owned(),
                    });
                }
                Asked::Answered(Box::new(reply))
            }
        }
    }

    /// Small models write calls as text. Where that is allowed for, they become calls (SPEC D15).
    fn recovered(
        &self,
        mut reply: Reply,
        tools: &[Value],
        choice: ToolChoice,
        tell: Tell<'_>,
    ) -> Reply {
        let message = &mut reply.message;
        let has_calls = !message.tool_calls.is_empty() || !message.invalid_tool_calls.is_empty();
        if !self.settings.recover_calls || has_calls || choice == ToolChoice::None {
            return reply;
        }
        let (calls, rest) = recover_calls(&message.content.text(), tools);
        for call in calls {
            let Arguments::Json(Value::Object(args)) = call.args else {
                continue;
            };
            let message_text = format!("the model wrote a call of {} as text", call.name);
            tell(notice(NoticeCode::CallRecovered, message_text));
            // Its id is made of its words, which a model may repeat.
            message.tool_calls.push(ToolCall::new(call.name, args));
        }
        if !message.tool_calls.is_empty() {
            message.content = rest.into();
        }
        reply
    }
}

const NOT_ANY_MORE: &str = "this call was not run: tools have been used as often as they may be for one question; answer from what you know";

enum Asked {
    Answered(Box<Reply>),
    /// With what had been said.
    Withdrawn(String),
    Failed(ModelError, String),
}

impl TurnEnd {
    fn ending(mut self, end: End) -> TurnEnd {
        self.end = end;
        self
    }
}

/// The model is done: its words become part of the conversation.
fn conclude(conversation: &mut Vec<Message>, reply: Reply, tell: Tell<'_>) -> End {
    let end = match &reply.stop {
        Stop::Length => {
            tell(notice(
                NoticeCode::AnswerCut,
                "the answer broke off: the model ran out of tokens (max_tokens)".to_owned(),
            ));
            End::CutOff
        }
        Stop::Refusal => End::Refused,
        Stop::EndTurn | Stop::ToolUse | Stop::Other(_) => End::Answered,
    };
    grow(conversation, reply.message, tell);
    end
}

/// What was said before it broke off is kept: the user has read it.
fn keep_words(conversation: &mut Vec<Message>, said: String, why: &str, tell: Tell<'_>) {
    if said.trim().is_empty() {
        return;
    }
    let mut message = AiMessage::saying(said);
    let why = serde_json::json!({ "stop_reason": why });
    message.extra.insert("response_metadata".to_owned(), why);
    grow(conversation, message, tell);
}

fn grow(conversation: &mut Vec<Message>, message: impl Into<Message>, tell: Tell<'_>) {
    let message = message.into();
    conversation.push(message.clone());
    tell(AgentEvent::Message { message });
}

fn notice(code: NoticeCode, message: String) -> AgentEvent {
    AgentEvent::Notice(Notice { code, message })
}
