//! `kind = "mock"`: canned answers (SPEC F09) that may depend on the arguments, take a while, or fail on
//! purpose — for tests of agents, and for demonstrations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use steadyhand::{Category, Effect, Handler, Invocation, Output, Tool, ToolError, redact};

use super::{Context, Fault, Settings, Source};
use steadyhand_config::units::Span;

/// Canned answers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MockSettings {
    /// What models are told about it
    description: Option<String>,
    /// The JSON Schema of its arguments
    #[serde(default)]
    #[schemars(schema_with = "super::input_schema")]
    input: Option<Value>,
    /// One answer for every call, as Flex Chat writes it
    #[serde(default, deserialize_with = "super::present")]
    mock_response: Option<Value>,
    /// Answers, tried in this order: the first that fits is given
    #[serde(default)]
    answers: Vec<Answer>,
}

/// One answer, or a failure on purpose.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Answer {
    /// Fits only when these arguments have these values
    #[serde(default)]
    when: Map<String, Value>,
    /// Fits only every so many calls that come this far: 10 means every tenth
    #[schemars(range(min = 1))]
    every: Option<u32>,
    /// What is answered
    #[serde(default, deserialize_with = "super::present")]
    result: Option<Value>,
    /// Fail instead
    fail: Option<Fail>,
    /// The words of the failure
    message: Option<String>,
    /// How long it takes
    delay: Option<Span>,
    #[serde(skip)]
    seen: AtomicU32,
}

/// A way to fail on purpose.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Fail {
    /// As if it had been too slow.
    Timeout,
    /// As if it could not be reached.
    Network,
    /// As if it had been called too often.
    RateLimit,
    /// As if the credentials were wrong.
    Authentication,
    /// As the tool's own "no".
    Refusal,
    /// As an error nobody knows.
    Unknown,
    /// Never answer: the time limit has to end it.
    Hang,
}

impl Settings for MockSettings {
    const KIND: &'static str = "mock";

    fn check(&self) -> Vec<Fault> {
        let fault = |at: String, message: &str, help: &str| Fault {
            at,
            message: message.to_owned(),
            help: Some(help.to_owned()),
        };
        let mut faults = Vec::new();
        if self.answers.is_empty() && self.mock_response.is_none() {
            faults.push(fault(
                "/answers".to_owned(),
                "it has no answer",
                "Add answers = [{ result = … }] or mock_response = …",
            ));
        }
        if !self.answers.is_empty() && self.mock_response.is_some() {
            faults.push(fault(
                "/mock_response".to_owned(),
                "it stands beside answers",
                "Make it the last of the answers: { result = … }",
            ));
        }
        for (index, answer) in self.answers.iter().enumerate() {
            if answer.result.is_some() == answer.fail.is_some() {
                faults.push(fault(
                    format!("/answers/{index}"),
                    "an answer needs one of result and fail",
                    "Write { result = … } or { fail = \"timeout\" }",
                ));
            }
        }
        faults
    }

    fn build(mut self, name: &str, _: &Context) -> Result<Arc<dyn Source>, Fault> {
        if let Some(response) = self.mock_response.take() {
            self.answers.push(Answer::always(response));
        }
        let description = self
            .description
            .unwrap_or_else(|| format!("Canned answers of {name}"));
        let schema = self.input.unwrap_or_else(|| json!({"type": "object"}));
        let handler = Arc::new(Mock {
            answers: self.answers,
        });
        let tool = Tool::new(name, description, schema, handler).of_kind("mock");
        Ok(Arc::new(super::Fixed::new(name, vec![tool])))
    }
}

impl Answer {
    fn always(result: Value) -> Answer {
        Answer {
            when: Map::new(),
            every: None,
            result: Some(result),
            fail: None,
            message: None,
            delay: None,
            seen: AtomicU32::new(0),
        }
    }

    fn fits(&self, args: &Value) -> bool {
        let same = self
            .when
            .iter()
            .all(|(name, value)| args.get(name) == Some(value));
        if !same {
            return false;
        }
        let Some(every) = self.every else {
            return true;
        };
        let seen = self.seen.fetch_add(1, Ordering::Relaxed) + 1;
        seen.is_multiple_of(every.max(1))
    }

    async fn give(&self, tool: &str) -> Result<Output, ToolError> {
        if let Some(delay) = self.delay {
            tokio::time::sleep(delay.0).await;
        }
        let Some(fail) = self.fail else {
            return Ok(Output::json(self.result.clone().unwrap_or(Value::Null)));
        };
        let words = |usual: &str| {
            self.message
                .clone()
                .unwrap_or_else(|| format!("{tool} {usual}, on purpose"))
        };
        Err(match fail {
            Fail::Timeout => ToolError::of(Category::Timeout, words("timed out")),
            Fail::Network => {
                ToolError::of(Category::Network, words("could not be reached")).effect(Effect::None)
            }
            Fail::RateLimit => ToolError::of(Category::RateLimit, words("was called too often")),
            Fail::Authentication => ToolError::of(
                Category::Authentication,
                words("did not accept the credentials"),
            ),
            Fail::Refusal => ToolError::answer(words("says no")),
            Fail::Unknown => ToolError::new(words("failed")),
            Fail::Hang => std::future::pending().await,
        })
    }
}

struct Mock {
    answers: Vec<Answer>,
}

impl Handler for Mock {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        tracing::debug!(
            tool = invocation.tool_name,
            args = %redact::value(invocation.args),
            "mock called"
        );
        Box::pin(async move {
            let answer = self
                .answers
                .iter()
                .find(|answer| answer.fits(invocation.args));
            match answer {
                Some(answer) => answer.give(invocation.tool_name).await,
                None => Err(ToolError::answer(format!(
                    "none of the answers of {} fits these arguments; end its list with one that has no `when`",
                    invocation.tool_name
                ))
                .never_started()),
            }
        })
    }
}
