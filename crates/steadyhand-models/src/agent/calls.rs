//! One round of calls: planned, run as one batch by the executor, answered in the order asked.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use steadyhand::{AiMessage, Arguments, Call, Content, FailureCode, InvalidToolCall, Message};
use steadyhand::{Outcome, ToolMessage};
use tokio_util::sync::CancellationToken;

use super::guard::{Guard, Sign};
use super::{Agent, AgentEvent, Tell, grow, notice};
use crate::model::{NoticeCode, Reply, Stop};

/// Whether the calls of a round are run at all.
pub(super) enum MayRun<'a> {
    /// Those that the guard lets through.
    Yes(&'a mut Guard),
    /// None, for this reason.
    No(&'static str),
}

/// One call of a round.
struct Planned {
    id: String,
    name: String,
    sign: Sign,
    step: Step,
}

enum Step {
    Run(Box<Call>),
    /// It gets this answer and is not run.
    Answer(String),
}

impl Agent {
    /// Puts an answer with calls into the conversation, and behind it a result for each, whatever happens.
    pub(super) async fn run_calls(
        &self,
        conversation: &mut Vec<Message>,
        reply: Reply,
        may_run: MayRun<'_>,
        cancel: &CancellationToken,
        tell: Tell<'_>,
    ) {
        let at = conversation.len();
        let planned = self.plan(&reply.message, &reply.stop, &may_run, at, cancel);
        let stop = reply.stop;
        grow(conversation, reply.message, tell);
        let mut open = Open::new(conversation, &planned);

        let mut batch = Vec::new();
        let mut places = Vec::new();
        let mut results: Vec<Option<ToolMessage>> = Vec::new();
        for (place, one) in planned.iter().enumerate() {
            results.push(match &one.step {
                Step::Run(call) => {
                    tell(started(call));
                    batch.push((**call).clone());
                    places.push(place);
                    None
                }
                Step::Answer(why) => Some(refused(one, why, tell)),
            });
        }

        let told = Mutex::new(tell);
        let guard = match &may_run {
            MayRun::Yes(guard) => Some(&**guard),
            MayRun::No(_) => None,
        };
        let finish = |one: &Planned, outcome: &Outcome| {
            let mut result = result(outcome, &stop, cancel);
            if let Some(note) = guard.and_then(|guard| guard.note(one.sign, &result)) {
                result.content = Content::Text(format!("{}{note}", result.content.text()));
            }
            result
        };
        let outcomes = self
            .executor
            .execute_batch_telling(batch, |index, outcome| {
                let one = &planned[places[index]];
                let event = finished(outcome, finish(one, outcome));
                told.lock()(event);
            })
            .await;
        for (place, outcome) in places.iter().zip(&outcomes) {
            results[*place] = Some(finish(&planned[*place], outcome));
        }
        let tell = told.into_inner();

        let results: Vec<ToolMessage> = results.into_iter().flatten().collect();
        if let MayRun::Yes(guard) = may_run {
            let round: Vec<_> = planned.iter().map(|one| one.sign).zip(&results).collect();
            tell_about_loops(guard, &planned, &round, tell);
            guard.record(&round);
        }
        open.answer(results, tell);
    }

    fn plan(
        &self,
        ai: &AiMessage,
        stop: &Stop,
        may_run: &MayRun<'_>,
        at: usize,
        cancel: &CancellationToken,
    ) -> Vec<Planned> {
        let decide = |sign: Sign, call: Call| match may_run {
            MayRun::No(why) => Step::Answer((*why).to_owned()),
            MayRun::Yes(_) if !self.is_offered(&call.name) => {
                Step::Answer(format!("Unknown tool \"{}\"", call.name))
            }
            MayRun::Yes(guard) => match guard.refuses(sign) {
                Some(why) => Step::Answer(why),
                None => Step::Run(Box::new(call)),
            },
        };
        let whole = ai.tool_calls.iter().map(|call| {
            let sign = Sign::of(&call.name, &call.args);
            let args = Arguments::Json(Value::Object(call.args.clone()));
            let made = self.call(call.id.clone(), &call.name, args, at, cancel);
            Planned {
                id: call.id.clone(),
                name: call.name.clone(),
                sign,
                step: decide(sign, made),
            }
        });
        let broken = ai.invalid_tool_calls.iter().map(|call| {
            let (id, name) = (
                call.id.clone().unwrap_or_default(),
                call.name.clone().unwrap_or_default(),
            );
            let text = call.args.clone().unwrap_or_default();
            let sign = Sign::of_text(&name, &text);
            let step = match broken_for_sure(&text) {
                // The executor answers what is no JSON, and counts it; it never runs it.
                true => {
                    let made =
                        self.call(id.clone(), &name, Arguments::Text(text.clone()), at, cancel);
                    decide(sign, made)
                }
                false => Step::Answer(why_not_run(call, stop)),
            };
            Planned {
                id,
                name,
                sign,
                step,
            }
        });
        whole.chain(broken).collect()
    }

    /// A model's call as the executor gets it. `at` is the place of the message it is in.
    pub(super) fn call(
        &self,
        id: String,
        name: &str,
        args: Arguments,
        at: usize,
        cancel: &CancellationToken,
    ) -> Call {
        let key = self
            .settings
            .key_prefix
            .as_ref()
            .map(|prefix| format!("{prefix}:{at}:{id}"));
        let mut call = Call::with_id(id, name, args).cancellation(cancel.clone());
        call.idempotency_key = key;
        call.caller.clone_from(&self.settings.caller);
        call.conversation.clone_from(&self.settings.conversation);
        call.permit.clone_from(&self.settings.permit);
        call.deadline = self.settings.call_deadline;
        call
    }

    /// Whether the model was told about this tool. One that nobody has is left to the executor, who says so.
    fn is_offered(&self, name: &str) -> bool {
        let Some(offered) = &self.settings.tools else {
            return true;
        };
        let found = self.executor.tools().find(name);
        found.is_none_or(|tool| offered.iter().any(|one| one == tool.name()))
    }
}

pub(super) fn started(call: &Call) -> AgentEvent {
    AgentEvent::CallStarted {
        call_id: call.id.clone(),
        name: call.name.clone(),
        args: call.args.clone().into(),
    }
}

pub(super) fn finished(outcome: &Outcome, result: ToolMessage) -> AgentEvent {
    AgentEvent::CallFinished {
        call_id: outcome.call_id.clone(),
        name: outcome.tool_name.clone(),
        elapsed_ms: outcome.execution_time.as_secs_f64() * 1000.0,
        result,
        outcome: Some(Arc::new(outcome.clone())),
    }
}

/// A call that is answered and not run.
fn refused(one: &Planned, why: &str, tell: Tell<'_>) -> ToolMessage {
    let mut result = ToolMessage::error(&one.id, why);
    result.name = Some(one.name.clone());
    tell(AgentEvent::CallFinished {
        call_id: one.id.clone(),
        name: one.name.clone(),
        elapsed_ms: 0.0,
        result: result.clone(),
        outcome: None,
    });
    result
}

/// What the model gets to read of an outcome.
fn result(outcome: &Outcome, stop: &Stop, cancel: &CancellationToken) -> ToolMessage {
    let mut message = outcome.message();
    let Some(failure) = outcome.failure() else {
        return message;
    };
    let text = message.content.text().into_owned();
    let is_json_fault = failure
        .problems
        .iter()
        .any(|problem| problem.code == "json");
    if failure.code == FailureCode::Cancelled && cancel.is_cancelled() {
        let text = text.replacen("Error: cancelled", "Error: cancelled by the user", 1);
        message.content = Content::Text(text);
    } else if is_json_fault {
        message.content = Content::Text(format!("{text}\n{}", not_run(stop)));
    }
    message
}

fn not_run(stop: &Stop) -> String {
    match stop {
        Stop::Length => "The call was not run: your answer broke off there, because it reached its length limit (stop reason max_tokens). Make the call again, with shorter arguments.".to_owned(),
        other => format!(
            "The call was not run (stop reason {}). Make it again with complete JSON.",
            other.as_str()
        ),
    }
}

fn why_not_run(call: &InvalidToolCall, stop: &Stop) -> String {
    let why = call.error.as_deref().unwrap_or("it could not be read");
    format!("Invalid parameters: {why}\n{}", not_run(stop))
}

/// Whether no reading of this text makes arguments of it.
fn broken_for_sure(text: &str) -> bool {
    !text.trim().is_empty() && serde_json::from_str::<Value>(text).is_err()
}

fn tell_about_loops(
    guard: &Guard,
    planned: &[Planned],
    round: &[(Sign, &ToolMessage)],
    tell: Tell<'_>,
) {
    for (one, (sign, result)) in planned.iter().zip(round) {
        let (code, text) = match &one.step {
            Step::Answer(_) if guard.refuses(*sign).is_some() => (
                NoticeCode::LoopRefused,
                format!("{} was not run: the model repeats itself", one.name),
            ),
            Step::Run(_) if guard.note(*sign, result).is_some() => (
                NoticeCode::LoopTold,
                format!("{}: the model was told that it repeats itself", one.name),
            ),
            Step::Run(_) | Step::Answer(_) => continue,
        };
        tell(notice(code, text));
    }
}

/// A turn whose calls have no results yet. However it ends, they will have: a future that is dropped says so.
struct Open<'a> {
    conversation: &'a mut Vec<Message>,
    calls: Vec<(String, String)>,
}

const DROPPED: &str =
    "this call was cancelled before its result came; what it had done by then is not known";

impl<'a> Open<'a> {
    fn new(conversation: &'a mut Vec<Message>, planned: &[Planned]) -> Open<'a> {
        let calls = planned
            .iter()
            .map(|one| (one.id.clone(), one.name.clone()))
            .collect();
        Open {
            conversation,
            calls,
        }
    }

    fn answer(&mut self, results: Vec<ToolMessage>, tell: Tell<'_>) {
        self.calls.clear();
        for result in results {
            grow(self.conversation, result, &mut *tell);
        }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        for (id, name) in self.calls.drain(..) {
            let mut result = ToolMessage::error(id, DROPPED);
            result.name = Some(name);
            self.conversation.push(result.into());
        }
    }
}
