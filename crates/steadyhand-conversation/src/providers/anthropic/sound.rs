//! Requests to Anthropic that are sound at a glance.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::providers::format::SoundRequest;
use crate::providers::sound::{Object, Words, is_id, is_name, says_something};

/// What is to be known of a request, if it is sound.
pub(super) fn request(bytes: &[u8]) -> Option<SoundRequest> {
    let request: Anthropic<'_> = serde_json::from_slice(bytes).ok()?;
    request.sound()
}

#[derive(Deserialize)]
struct Anthropic<'a> {
    #[serde(borrow)]
    model: Cow<'a, str>,
    #[serde(borrow)]
    messages: Vec<Turn<'a>>,
    #[serde(default)]
    tools: Option<Count>,
    #[serde(default)]
    thinking: Option<IgnoredAny>,
    #[serde(default)]
    stream: Option<bool>,
    /// Marks are counted over the whole request.
    #[serde(default, borrow)]
    system: Option<&'a RawValue>,
    #[serde(default)]
    cache_control: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Turn<'a> {
    role: Speaker,
    #[serde(borrow)]
    content: Content<'a>,
}

#[derive(Deserialize, PartialEq, Eq, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Speaker {
    User,
    Assistant,
}

enum Content<'a> {
    Words,
    Blocks(Vec<Block<'a>>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Block<'a> {
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(default)]
    text: Option<Words>,
    #[serde(default, borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(default)]
    input: Option<Object>,
    #[serde(default, borrow)]
    tool_use_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    content: Option<Content<'a>>,
    #[serde(default)]
    is_error: Option<bool>,
}

#[derive(Deserialize, PartialEq, Eq, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Text,
    ToolUse,
    ToolResult,
}

impl Anthropic<'_> {
    fn sound(self) -> Option<SoundRequest> {
        let is_marked = self
            .system
            .is_some_and(|system| !system.get().starts_with('"'));
        if self.thinking.is_some() || is_marked || self.cache_control.is_some() {
            return None;
        }
        let has_tools = self.tools.is_some_and(|Count(count)| count > 0);
        let mut open: Vec<&str> = Vec::new();
        let mut seen = HashSet::new();
        let mut next = Speaker::User;
        for turn in &self.messages {
            if turn.role != next {
                return None;
            }
            next = match turn.role {
                Speaker::User => Speaker::Assistant,
                Speaker::Assistant => Speaker::User,
            };
            let blocks = match &turn.content {
                Content::Words if open.is_empty() => continue,
                Content::Words => return None,
                Content::Blocks(blocks) => blocks,
            };
            if blocks.is_empty() {
                return None;
            }
            let mut answered = open.drain(..);
            let mut calls = Vec::new();
            for (index, block) in blocks.iter().enumerate() {
                match (block.kind, turn.role) {
                    (Kind::Text, _) if block.is_text() => {}
                    (Kind::ToolUse, Speaker::Assistant) => {
                        let id = block.call()?;
                        if !has_tools || !seen.insert(id) {
                            return None;
                        }
                        calls.push(id);
                    }
                    // Results come first, in the order of their calls.
                    (Kind::ToolResult, Speaker::User)
                        if index == 0 || blocks[index - 1].kind == Kind::ToolResult =>
                    {
                        if answered.next() != Some(block.result()?) {
                            return None;
                        }
                    }
                    _ => return None,
                }
            }
            if answered.next().is_some() {
                return None;
            }
            drop(answered);
            open = calls;
        }
        // It ends with the user, and nothing is left open.
        (next == Speaker::Assistant && open.is_empty() && !self.messages.is_empty()).then(|| {
            SoundRequest {
                model: Some(self.model.into_owned()),
                streams: self.stream.unwrap_or(false),
            }
        })
    }
}

impl Block<'_> {
    fn is_text(&self) -> bool {
        self.text.is_some()
            && self.id.is_none()
            && self.name.is_none()
            && self.input.is_none()
            && self.tool_use_id.is_none()
            && self.content.is_none()
            && self.is_error.is_none()
    }

    fn call(&self) -> Option<&str> {
        let is_alone = self.text.is_none()
            && self.tool_use_id.is_none()
            && self.content.is_none()
            && self.is_error.is_none();
        let is_named = self.name.as_deref().is_some_and(is_name);
        let id = self.id.as_deref().filter(|id| is_id(id))?;
        (is_alone && is_named && self.input.is_some()).then_some(id)
    }

    fn result(&self) -> Option<&str> {
        let is_alone =
            self.text.is_none() && self.id.is_none() && self.name.is_none() && self.input.is_none();
        let is_sound = match self.content.as_ref()? {
            Content::Words => true,
            Content::Blocks(blocks) => {
                !blocks.is_empty()
                    && blocks
                        .iter()
                        .all(|block| block.kind == Kind::Text && block.is_text())
            }
        };
        let id = self.tool_use_id.as_deref().filter(|id| is_id(id))?;
        (is_alone && is_sound).then_some(id)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Content<'a>, D::Error> {
        /// One pass over all of it: contents are most of a conversation.
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Content<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or blocks")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Content<'de>, E> {
                match says_something(text) {
                    true => Ok(Content::Words),
                    false => Err(E::custom("in doubt")),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content<'de>, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = list.next_element()? {
                    blocks.push(block);
                }
                Ok(Content::Blocks(blocks))
            }
        }

        from.deserialize_any(Either)
    }
}

/// How long a list is; marks of a cache in it are counted elsewhere.
struct Count(usize);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Count, D::Error> {
        struct List;

        impl<'de> Visitor<'de> for List {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Count, A::Error> {
                let mut count = 0;
                while let Some(tool) = list.next_element::<&'de RawValue>()? {
                    if memchr::memmem::find(tool.get().as_bytes(), b"cache_control").is_some() {
                        return Err(A::Error::custom("in doubt"));
                    }
                    count += 1;
                }
                Ok(Count(count))
            }
        }

        from.deserialize_seq(List)
    }
}
