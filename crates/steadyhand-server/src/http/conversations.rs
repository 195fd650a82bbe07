//! Conversations in each provider's JSON: checked, mended, answered (SPEC R01–R03, R14).

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use steadyhand::Outcome;
use steadyhand_conversation::{self as conversation, Host, Provider, Turn, What};
use tokio::time::timeout;
use utoipa::{IntoParams, ToSchema};

use super::batches::CALLS_MAX;
use super::kept_body::until_answered;
use super::limits::{Sent, Wanted};
use super::status::{self, Refused, Why};
use super::who::CallerHeaders;
use super::{Account, App, Asked, Caller, shapes};
use crate::views;
use steadyhand_runtime::admission::CallerAccount;

/// What is found wrong with a value takes more than a kilobyte.
const VALUES_MAX: usize = 300_000;
/// Smaller ones are looked at in less time than it takes to hand them over.
const BYTES_ON_THE_SPOT: usize = 64 * 1024;

/// A list of messages, a whole request or a whole response.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(as = ConversationBody, example = json!([{"role": "user", "content": "Hello"}]))]
pub(crate) struct Conversation(Value);

impl Wanted for Conversation {
    const SHAPE: &'static str = "a list of messages, or a whole request or response";
    const EXAMPLE: &'static str = r#"[{"role": "user", "content": "Hello"}]"#;
    const VALUES_MAX: usize = VALUES_MAX;
}

/// Whose rules, and what the body is.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RepairAsked {
    provider: ProviderName,
    /// Who serves it; original if not said
    #[serde(default)]
    #[param(required = false)]
    host: HostName,
    /// If not said: a request or a list of messages, whichever it looks like
    #[param(required = false, nullable = false)]
    what: Option<Part>,
}

/// Whose shape, and of what.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ErrorAsked {
    provider: ProviderName,
    /// result if not said
    #[serde(default)]
    #[param(required = false)]
    what: ErrorPart,
}

/// What an error is written as: the result of a call, or a model's whole response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ErrorResponsePart)]
pub(crate) enum ErrorPart {
    #[default]
    Result,
    Response,
}

/// Whose rules, and which part of an exchange.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WhatAsked {
    provider: ProviderName,
    /// Who serves it; original if not said
    #[serde(default)]
    #[param(required = false)]
    host: HostName,
    /// match if not said
    #[serde(default)]
    #[param(required = false)]
    what: Part,
}

/// Whose shape the message is in.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TurnAsked {
    format: ProviderName,
}

/// The providers, as the document names them.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderName {
    Anthropic,
    #[serde(rename = "openai")]
    OpenAi,
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    Gemini,
    Mistral,
    Ollama,
    BedrockConverse,
    #[serde(rename = "langchain")]
    LangChain,
}

impl From<ProviderName> for Provider {
    fn from(name: ProviderName) -> Provider {
        match name {
            ProviderName::Anthropic => Provider::Anthropic,
            ProviderName::OpenAi => Provider::OpenAi,
            ProviderName::OpenAiResponses => Provider::OpenAiResponses,
            ProviderName::Gemini => Provider::Gemini,
            ProviderName::Mistral => Provider::Mistral,
            ProviderName::Ollama => Provider::Ollama,
            ProviderName::BedrockConverse => Provider::BedrockConverse,
            ProviderName::LangChain => Provider::LangChain,
        }
    }
}

/// Who serves a provider's API: the provider itself, Azure, Bedrock or Vertex with Anthropic's body, DeepSeek, or any other
/// service that speaks its language.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum HostName {
    #[default]
    Original,
    Azure,
    Bedrock,
    Vertex,
    DeepSeek,
    Compatible,
}

impl From<HostName> for Host {
    fn from(name: HostName) -> Host {
        match name {
            HostName::Original => Host::Original,
            HostName::Azure => Host::Azure,
            HostName::Bedrock => Host::Bedrock,
            HostName::Vertex => Host::Vertex,
            HostName::DeepSeek => Host::DeepSeek,
            HostName::Compatible => Host::Compatible,
        }
    }
}

/// Which part of an exchange is checked.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ConversationPart)]
pub enum Part {
    Request,
    Response,
    /// The same as match
    Messages,
    #[default]
    Match,
}

impl From<Part> for What {
    fn from(part: Part) -> What {
        match part {
            Part::Request => What::Request,
            Part::Response => What::Response,
            Part::Messages | Part::Match => What::Match,
        }
    }
}

/// What a provider would refuse
///
/// Every problem with its place, in the words of the provider where it has any; none if it is valid.
#[utoipa::path(
    post,
    operation_id = "validate_conversation",
    path = "/v1/validate",
    tag = "conversations",
    params(WhatAsked),
    request_body = Conversation,
    responses(
        (status = 200, description = "What is wrong with it", body = shapes::ValidationReport),
        shapes::BodyErrors,
    )
)]
pub(crate) async fn validate(
    State(app): State<Arc<App>>,
    Asked(asked): Asked<WhatAsked>,
    Account(account): Account,
    sent: Sent<Conversation>,
) -> Result<Response, Refused> {
    let (provider, what): (Provider, What) = (asked.provider.into(), asked.what.into());
    let host: Host = asked.host.into();
    let view = aside(&app, &account, sent, move |value| {
        views::conversations::validated(provider, host, what, &value).0
    })
    .await?;
    if what == What::Response && view["valid"] == false {
        app.alerts.response_invalid(provider.as_str());
    }
    Ok(status::answer(&view))
}

/// Mend a conversation, or a model's response
///
/// A list of messages comes back as `messages`, a whole request as `request`, so that its provider accepts it. A model's response
/// (what=response) comes back as `response`, so that its readers can rely on it. Every change is listed.
#[utoipa::path(
    post,
    operation_id = "repair_conversation",
    path = "/v1/repair",
    tag = "conversations",
    params(RepairAsked),
    request_body = Conversation,
    responses(
        (status = 200, description = "What was sent, mended, and what was changed", body = shapes::RepairReport),
        shapes::BodyErrors,
    )
)]
pub(crate) async fn repair(
    State(app): State<Arc<App>>,
    Asked(asked): Asked<RepairAsked>,
    Account(account): Account,
    sent: Sent<Conversation>,
) -> Result<Response, Refused> {
    let provider: Provider = asked.provider.into();
    let what: Option<What> = asked.what.map(What::from);
    let host: Host = asked.host.into();
    let Conversation(value) = &sent.value;
    if !views::conversations::is_what_is_said(provider, what, value) {
        return Err(Refused::new(
            Why::BadRequest,
            "there is no list of messages in the body",
            format!("Send {}", views::conversations::wanted(provider, what)),
        ));
    }
    let is_response = what == Some(What::Response);
    let view = aside(&app, &account, sent, move |value| match is_response {
        true => views::conversations::repaired_response(provider, value),
        false => views::conversations::repaired(provider, host, value),
    })
    .await?;
    if view["fixes"].get(0).is_some() {
        match is_response {
            true => app.alerts.response_invalid(provider.as_str()),
            false => app.alerts.conversation_mended(provider.as_str()),
        }
    }
    Ok(status::answer(&view))
}

/// Large ones are looked at on a thread of their own, a few at a time, each caller's in turn: calls do not wait for them.
async fn aside<T: Send + 'static>(
    app: &App,
    account: &CallerAccount,
    sent: Sent<Conversation>,
    look: impl FnOnce(Value) -> T + Send + 'static,
) -> Result<T, Refused> {
    let Conversation(value) = sent.value;
    if sent.space.bytes() <= BYTES_ON_THE_SPOT {
        return Ok(look(value));
    }
    let turn = app.admission.large_conversations.take(account.id());
    let turn = timeout(app.limits.patience, turn).await.map_err(|_| {
        Refused::new(
            Why::Busy,
            "other large conversations are looked at, each caller's in turn, and this one's turn did not come in time; it was not looked at",
            "Wait for the answers to the others that you have sent, or send less at once",
        )
    })?;
    let held = (sent.space, turn);
    let looking = tokio::task::spawn_blocking(move || {
        let _held = held;
        look(value)
    });
    looking.await.map_err(|error| {
        Refused::new(
            Why::Unexpected,
            format!("the conversation could not be looked at: {error}"),
            "This should not happen: please report it",
        )
    })
}

/// Run the calls of a model's message
///
/// An assistant message, or the whole response it is in; the complete, correctly shaped tool results come back.
#[utoipa::path(
    post,
    operation_id = "create_turn",
    path = "/v1/turns",
    tag = "conversations",
    params(TurnAsked, CallerHeaders),
    request_body = Conversation,
    responses(
        (status = 200, description = "The messages that answer it", body = shapes::TurnResults),
        shapes::BodyErrors,
    )
)]
pub(crate) async fn turn(
    State(app): State<Arc<App>>,
    Asked(asked): Asked<TurnAsked>,
    caller: Caller,
    sent: Sent<Conversation>,
) -> Result<Response, Refused> {
    let Conversation(said) = &sent.value;
    let provider = asked.format.into();
    if !matches!(said, Value::Object(_) | Value::Array(_)) {
        return Err(Refused::new(
            Why::BadRequest,
            "there is no message of a model in the body",
            "Send an assistant message, or the whole response of the model, in the shape of its provider",
        ));
    }
    let names = ShortNames::of(&app, provider);
    let turn = Turn::read_named(provider, said, |name| names.original(name));
    let count = turn.calls().len();
    if count > CALLS_MAX {
        return Err(Refused::new(
            Why::BadRequest,
            format!("the message has {count} calls, and may have {CALLS_MAX}"),
            "Send it in parts",
        ));
    }
    let calls = turn.calls().iter().map(|call| caller.of(call.clone()));
    // As outcomes, as messages, and as the text of the answer.
    let held = app.execute_all(calls.collect(), &caller, 3).await?;
    let messages = turn.results(&held.outcomes);
    let outcomes = &held.outcomes;
    let response = status::answer(&Answered { messages, outcomes });
    Ok(until_answered(response, held))
}

#[derive(Serialize)]
struct Answered<'a> {
    messages: Vec<Value>,
    outcomes: &'a [Outcome],
}

/// The names that were made for a provider, and the tools they stand for.
struct ShortNames<'a> {
    app: &'a App,
    provider: Provider,
    /// Made when the first name comes that is no tool's own.
    known: OnceCell<HashMap<String, String>>,
}

impl ShortNames<'_> {
    fn of(app: &App, provider: Provider) -> ShortNames<'_> {
        ShortNames {
            app,
            provider,
            known: OnceCell::new(),
        }
    }

    fn original(&self, name: &str) -> String {
        if self.app.runtime.manager().find(name).is_some() {
            return name.to_owned();
        }
        let known = self.known.get_or_init(|| self.all());
        known.get(name).map_or(name, String::as_str).to_owned()
    }

    fn all(&self) -> HashMap<String, String> {
        let tools = self.app.runtime.manager().list();
        // The first of two with the same short name counts.
        let names = tools.iter().rev().map(|tool| tool.name());
        names
            .map(|name| {
                let short = conversation::short_name(self.provider, name);
                (short.into_owned(), name.to_owned())
            })
            .collect()
    }
}

/// A call that failed, or a model that did not answer
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ErrorResponseRequest, example = json!({"id": "toolu_1", "name": "weather", "message": "it did not answer"}))]
pub(crate) struct ErrorWanted {
    /// The call that is answered; needed for a result
    id: Option<String>,
    /// The tool that was asked for; needed for a result
    name: Option<String>,
    /// The model that was asked; only for a response
    model: Option<String>,
    /// What went wrong
    message: String,
}

impl Wanted for ErrorWanted {
    const SHAPE: &'static str = "an object: {id, name, message}";
    const EXAMPLE: &'static str =
        r#"{"id": "toolu_1", "name": "weather", "message": "it did not answer"}"#;
}

/// A well-formed error, as the result of a call or as a model's response
///
/// what=result: a whole message in the provider's shape, to be put behind the one with the call. what=response: a whole response
/// in the provider's shape whose answer says what went wrong.
#[utoipa::path(
    post,
    operation_id = "create_error_response",
    path = "/v1/error-response",
    tag = "conversations",
    params(ErrorAsked),
    request_body = ErrorWanted,
    responses(
        (status = 200, description = "The message, or the response", body = Value),
        shapes::BodyErrors,
    )
)]
pub(crate) async fn error_response(
    Asked(asked): Asked<ErrorAsked>,
    sent: Sent<ErrorWanted>,
) -> Result<Response, Refused> {
    let provider = asked.provider.into();
    let ErrorWanted {
        id,
        name,
        model,
        message,
    } = &sent.value;
    let made = match (asked.what, id, name) {
        (ErrorPart::Response, _, _) => {
            conversation::error_response(provider, model.as_deref().unwrap_or_default(), message)
        }
        (ErrorPart::Result, Some(id), Some(name)) => {
            conversation::error_result(provider, id, name, message)
        }
        (ErrorPart::Result, _, _) => {
            return Err(Refused::new(
                Why::BadRequest,
                "the result of a call needs the call's id and the tool's name",
                format!(
                    "Send {}, or ask for a model's response with what=response",
                    ErrorWanted::EXAMPLE
                ),
            ));
        }
    };
    Ok(status::answer(&made))
}
