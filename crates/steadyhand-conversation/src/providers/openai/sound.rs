//! Requests to OpenAI's Chat Completions that are sound at a glance.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize;

use crate::providers::format::SoundRequest;
use crate::providers::sound::{Object, Words, is_id, is_name};

/// What is to be known of a request, if it is sound.
pub(super) fn request(bytes: &[u8]) -> Option<SoundRequest> {
    let request: Chat<'_> = serde_json::from_slice(bytes).ok()?;
    request.sound()
}

#[derive(Deserialize)]
struct Chat<'a> {
    #[serde(default, borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    messages: Vec<Message<'a>>,
    #[serde(default)]
    stream: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message<'a> {
    role: Role,
    #[serde(default)]
    content: Option<Words>,
    #[serde(default, borrow)]
    tool_calls: Option<Vec<Call<'a>>>,
    #[serde(default, borrow)]
    tool_call_id: Option<Cow<'a, str>>,
}

#[derive(Deserialize, PartialEq, Eq, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    function: Function<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Function<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Cow<'a, str>,
}

impl Chat<'_> {
    fn sound(self) -> Option<SoundRequest> {
        let mut open: std::collections::VecDeque<&str> = Default::default();
        let mut seen = HashSet::new();
        for message in &self.messages {
            let calls = message.tool_calls.as_deref();
            if message.role == Role::Tool {
                let id = message.tool_call_id.as_deref();
                if message.content.is_none() || calls.is_some() || id != open.pop_front() {
                    return None;
                }
                continue;
            }
            if !open.is_empty() || message.tool_call_id.is_some() {
                return None;
            }
            match (message.role, calls) {
                (Role::Assistant, Some(calls)) if !calls.is_empty() => {
                    for call in calls {
                        if !call.is_sound() || !seen.insert(&*call.id) {
                            return None;
                        }
                        open.push_back(&call.id);
                    }
                }
                (_, Some(_)) => return None,
                (_, None) if message.content.is_none() => return None,
                (_, None) => {}
            }
        }
        let last = self.messages.last()?.role;
        let is_over = open.is_empty() && matches!(last, Role::User | Role::Tool);
        is_over.then(|| SoundRequest {
            model: self.model.map(Cow::into_owned),
            streams: self.stream.unwrap_or(false),
        })
    }
}

impl Call<'_> {
    fn is_sound(&self) -> bool {
        let arguments: Result<Object, _> = serde_json::from_str(&self.function.arguments);
        self.kind == "function"
            && is_id(&self.id)
            && is_name(&self.function.name)
            && arguments.is_ok()
    }
}
