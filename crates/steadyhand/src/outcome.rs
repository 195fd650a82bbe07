//! How a call ended: exactly one outcome per call, and the three views of it (SPEC D1).

use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::failure::{Effect, Failure, FailureCode};
use crate::message::{Content, ToolMessage};
use crate::output::{Cut, Output};
use crate::schema::Coercion;

/// How one call ended. There is always one: unknown tool, bad arguments, panic, hang and
/// cancellation included.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The id of the call this answers.
    pub call_id: String,
    /// The tool that was asked for, by the name that was used.
    pub tool_name: String,
    /// What the tool gave, or why it gave nothing.
    pub result: Result<Output, Box<Failure>>,
    /// What a fallback gave after the failure in `result`.
    pub fallback: Option<Box<Output>>,
    /// Everything the caller waited for: the tool to be there, validation, an approval, a place, all attempts.
    pub execution_time: Duration,
    /// How much of that was the wait for an approval: it says nothing about the tool.
    pub approval_time: Duration,
    /// How often the tool was started.
    pub attempts: u32,
    /// Slips in the arguments that were mended, where the tool allows it.
    pub coerced: Vec<Coercion>,
    /// Arguments that the tool did not get, since its schema forbids them (SPEC D6, D20); the first hundred.
    pub dropped_arguments: Vec<String>,
    /// The outcome of an earlier call with the same idempotency key.
    pub replayed: bool,
}

/// The three ways a call can end, as programs read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The tool answered.
    Success,
    /// It did not.
    Error,
    /// It did not in time.
    Timeout,
}

impl Status {
    /// The status as it appears in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Success => "success",
            Status::Error => "error",
            Status::Timeout => "timeout",
        }
    }
}

impl Outcome {
    /// Success, error or time-out.
    pub fn status(&self) -> Status {
        match &self.result {
            Ok(_) => Status::Success,
            Err(failure) if failure.code == FailureCode::Timeout => Status::Timeout,
            Err(_) => Status::Error,
        }
    }

    /// Whether the tool itself answered. A fallback's answer is no success of the tool.
    pub fn is_success(&self) -> bool {
        self.result.is_ok()
    }

    /// The time without the wait for an approval: what metrics, warnings and alerts count.
    pub fn running_time(&self) -> Duration {
        self.execution_time.saturating_sub(self.approval_time)
    }

    /// The same without its result, where there is no room for that. The call has run to its end: that stays, as
    /// `OVERLOADED` with the effect `done`. A failure stays what it is, without what its fallback gave.
    pub fn without_result(mut self, why: &str) -> Outcome {
        self.fallback = None;
        if self.result.is_ok() {
            let message = format!("the result cannot be handed on: {why}");
            let mut failure = Failure::new(FailureCode::Overloaded, Effect::Done, message)
                .for_people(format!(
                    "The result of {} is too large to be handed on now.",
                    self.tool_name
                ));
            failure.result_lost = true;
            failure.complete(false);
            self.result = Err(Box::new(failure));
        }
        self
    }

    /// Why the tool did not answer.
    pub fn failure(&self) -> Option<&Failure> {
        self.result.as_ref().err().map(|failure| &**failure)
    }

    /// The output there is: the tool's, or else its fallback's.
    pub fn output(&self) -> Option<&Output> {
        self.result.as_ref().ok().or(self.fallback.as_deref())
    }

    /// The structured view (SPEC R09).
    pub fn structured(&self) -> StructuredView<'_> {
        StructuredView {
            tool_name: &self.tool_name,
            call_id: &self.call_id,
            status: self.status(),
            output: self.output().map(Output::value),
            error: self.failure(),
            execution_time: millis(self.execution_time),
            approval_time: millis(self.approval_time),
            attempts: self.attempts,
            fallback_used: self.fallback.is_some(),
            truncated: self.output().and_then(Output::cut),
            coerced: &self.coerced,
            dropped_arguments: &self.dropped_arguments,
            replayed: self.replayed,
        }
    }

    /// The flat view (SPEC F01, F15).
    pub fn flat(&self) -> FlatView<'_> {
        FlatView {
            success: self.is_success(),
            result: self.output().map(Output::value),
            error: self.failure().map(|failure| failure.message.as_str()),
            effect: self.failure().map(|failure| failure.effect),
            tool_name: &self.tool_name,
            execution_time_ms: millis(self.execution_time),
            suggestions: self.failure().map_or(&[], |failure| &failure.suggestions),
            fallback_used: self.fallback.is_some(),
            dropped_arguments: &self.dropped_arguments,
        }
    }

    /// The message view: the LangChain ToolMessage that answers the call (SPEC D13, L03).
    pub fn message(&self) -> ToolMessage {
        let mut message = ToolMessage::new(&self.call_id, Content::Text(self.text()));
        message.name = Some(self.tool_name.clone());
        message.artifact = self.output().and_then(Output::artifact).cloned();
        message.is_error = !self.is_success();
        message
    }

    /// What the model reads.
    fn text(&self) -> String {
        let failure = match &self.result {
            Ok(output) => return output.text(),
            Err(failure) => failure,
        };
        if let Some(fallback) = &self.fallback {
            return format!(
                "{}\n[Answered by a fallback: {} failed: {}]",
                fallback.text(),
                self.tool_name,
                failure.message_with_effect()
            );
        }
        let effect = failure.effect_sentence();
        if failure.code == FailureCode::ToolNotFound {
            return format!("Error: Unknown tool \"{}\"\n{effect}", self.tool_name);
        }
        let mut text = format!("Error: {}", failure.message);
        for problem in &failure.problems {
            let Some(expected) = &problem.expected else {
                continue;
            };
            let place = if problem.at.is_empty() {
                "the arguments"
            } else {
                &problem.at
            };
            text.push_str(&format!("\n  {place}: expected {expected}"));
            if let Some(got) = &problem.got {
                text.push_str(&format!(", got {got}"));
            }
        }
        if let Some(example) = &failure.example {
            text.push_str(&format!("\nArguments that would do: {example}"));
        }
        text.push('\n');
        text.push_str(effect);
        text
    }
}

/// An outcome in JSON is its structured view.
impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.structured().serialize(serializer)
    }
}

/// `{toolName, callId, status, output?, error?, executionTime, attempts, fallbackUsed?}`
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StructuredView<'a> {
    tool_name: &'a str,
    call_id: &'a str,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
    execution_time: f64,
    #[serde(skip_serializing_if = "is_zero")]
    approval_time: f64,
    attempts: u32,
    #[serde(skip_serializing_if = "is_false")]
    fallback_used: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<Cut>,
    #[serde(skip_serializing_if = "<[Coercion]>::is_empty")]
    coerced: &'a [Coercion],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    dropped_arguments: &'a [String],
    #[serde(skip_serializing_if = "is_false")]
    replayed: bool,
}

/// `{success, result?, error?, effect?, tool_name, execution_time_ms}`
#[derive(Debug, Serialize)]
pub struct FlatView<'a> {
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<Effect>,
    tool_name: &'a str,
    execution_time_ms: f64,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    suggestions: &'a [String],
    #[serde(skip_serializing_if = "is_false")]
    fallback_used: bool,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    dropped_arguments: &'a [String],
}

/// Milliseconds with what lies behind the point (SPEC F14).
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_nanos() as u64 as f64 / 1e6
}

fn is_zero(ms: &f64) -> bool {
    *ms == 0.0
}

fn is_false(flag: &bool) -> bool {
    !flag
}
