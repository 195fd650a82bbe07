//! BackgroundTranscriber: what people say goes in, what is answered comes out, one conversation per speaker.
//!
//! It has no tools and no model logic of its own (SPEC V10): an [`Agent`] answers, whose calls go through its
//! executor.

#![allow(
    missing_docs,
    reason = "a part of the program, not a library for others: names say what things are"
)]

pub mod mqtt;
mod speech;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde::{Deserialize, Serialize};
use steadyhand::Message;
use steadyhand_models::{Agent, AgentEvent, CancellationToken, End, TurnEnd};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;

pub use speech::spoken;
use steadyhand_config::transcriber::TranscriberSettings;

/// The longest text that counts as said.
pub const UTTERANCE_BYTES_MAX: usize = 64 * 1024;
/// The longest name of a speaker.
const SPEAKER_CHARS_MAX: usize = 100;
/// What a model sees of a conversation: whole turns, the last ones.
const MESSAGES_MAX: usize = 60;

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Utterance {
    /// Who said it; each speaker has a conversation of their own.
    #[serde(default = "somebody")]
    pub speaker: String,
    /// What was said.
    pub text: String,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// To whom.
    pub speaker: String,
    /// What is to be spoken, without Markdown. Empty where somebody spoke over it.
    pub text: String,
    /// Why the answer ended: `end_turn`, `cancelled`, `error`, `busy`, ….
    pub stop_reason: &'static str,
    /// How many tools were called.
    pub calls: u32,
    /// Why there is none, for programs and logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The service. Clones are the same one.
#[derive(Clone)]
pub struct BackgroundTranscriber {
    shared: Arc<Shared>,
}

struct Shared {
    agent: Agent,
    /// What the first answers wait for.
    ready: futures_util::future::Shared<BoxFuture<'static, ()>>,
    system: Option<String>,
    rules: Rules,
    turns: Semaphore,
    state: Mutex<State>,
}

/// What is allowed, whatever happens.
#[derive(Debug, Clone, Copy)]
struct Rules {
    barge_in: bool,
    queue: usize,
    speakers: usize,
    remember: Duration,
}

#[derive(Default)]
struct State {
    speakers: HashMap<String, Speaker>,
    /// Utterances that wait or are answered.
    open: usize,
}

struct Speaker {
    conversation: Arc<tokio::sync::Mutex<Vec<Message>>>,
    /// Ends the turn that runs or waits.
    turn: CancellationToken,
    /// Over when the last utterance is.
    tail: Option<oneshot::Receiver<Infallible>>,
    open: usize,
    last: Instant,
}

fn somebody() -> String {
    "somebody".to_owned()
}

impl Utterance {
    /// Something said by somebody.
    pub fn new(speaker: impl Into<String>, text: impl Into<String>) -> Utterance {
        Utterance {
            speaker: speaker.into(),
            text: text.into(),
        }
    }

    /// A text as it is, or `{"speaker": …, "text": …}`; nothing where nothing is said.
    pub fn read(bytes: &[u8], speaker: &str) -> Option<Utterance> {
        let bytes = &bytes[..bytes.len().min(UTTERANCE_BYTES_MAX)];
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim();
        let mut utterance = match text.starts_with('{') {
            true => serde_json::from_str(text).unwrap_or_else(|_| Utterance::new(speaker, text)),
            false => Utterance::new(speaker, text),
        };
        if utterance.speaker == somebody() {
            speaker.clone_into(&mut utterance.speaker);
        }
        (!utterance.text.trim().is_empty()).then_some(utterance)
    }
}

impl BackgroundTranscriber {
    /// A service whose utterances this agent answers.
    pub fn new(agent: Agent, system: Option<String>, settings: &TranscriberSettings) -> Self {
        BackgroundTranscriber::after(ready(()).boxed(), agent, system, settings)
    }

    /// The same, whose first answers wait for something that has an end: tools that are on their way, say. What is said
    /// meanwhile is heard.
    pub fn after(
        is_ready: BoxFuture<'static, ()>,
        agent: Agent,
        system: Option<String>,
        settings: &TranscriberSettings,
    ) -> Self {
        let count = |said: Option<u32>, default: usize| said.map_or(default, |it| it as usize);
        let rules = Rules {
            barge_in: settings.barge_in.unwrap_or(true),
            queue: count(settings.queue, 16),
            speakers: count(settings.speakers, 64),
            remember: settings
                .remember
                .map_or(Duration::from_secs(600), |span| span.0),
        };
        let shared = Shared {
            agent,
            ready: is_ready.shared(),
            system: settings.system.clone().or(system),
            rules,
            turns: Semaphore::new(count(settings.turns, 2)),
            state: Mutex::default(),
        };
        BackgroundTranscriber {
            shared: Arc::new(shared),
        }
    }

    /// Answers. What the same speaker says next ends it, where that is allowed; so does dropping the future.
    pub async fn hear(&self, utterance: Utterance) -> Answer {
        self.admit(utterance).answer().await
    }

    /// Takes an utterance in: what is taken in first is answered first, whoever runs first afterwards.
    pub fn admit(&self, utterance: Utterance) -> Admitted {
        let Utterance { speaker, text } = utterance;
        let speaker: String = speaker.chars().take(SPEAKER_CHARS_MAX).collect();
        Admitted {
            place: self.place_for(&speaker),
            text,
        }
    }

    /// How many utterances wait or are answered.
    pub fn open(&self) -> usize {
        self.state().open
    }

    /// A place for an utterance of this speaker, or why there is none.
    fn place_for(&self, name: &str) -> Result<Place, Answer> {
        let rules = self.shared.rules;
        let mut state = self.state();
        let now = Instant::now();
        state.speakers.retain(|_, speaker| {
            speaker.open > 0 || now.duration_since(speaker.last) < rules.remember
        });
        let busy = |why: String| Answer {
            speaker: name.to_owned(),
            text: "Sorry, I am busy. Please say that again in a moment.".to_owned(),
            stop_reason: "busy",
            calls: 0,
            error: Some(why),
        };
        if state.open >= rules.queue {
            return Err(busy(format!(
                "{} utterances wait or are answered, which is as many as may; raise transcriber.queue",
                state.open
            )));
        }
        if !state.speakers.contains_key(name) && state.speakers.len() >= rules.speakers {
            let idle = state
                .speakers
                .iter()
                .filter(|(_, speaker)| speaker.open == 0)
                .min_by_key(|(_, speaker)| speaker.last)
                .map(|(name, _)| name.clone());
            match idle {
                Some(idle) => drop(state.speakers.remove(&idle)),
                None => return Err(busy(format!("{} speakers speak at once", rules.speakers))),
            }
        }
        state.open += 1;
        let speaker = state
            .speakers
            .entry(name.to_owned())
            .or_insert_with(|| Speaker {
                conversation: Arc::default(),
                turn: CancellationToken::new(),
                tail: None,
                open: 0,
                last: now,
            });
        if rules.barge_in {
            speaker.turn.cancel();
            speaker.turn = CancellationToken::new();
        }
        speaker.open += 1;
        speaker.last = now;
        let (done, tail) = oneshot::channel();
        let before = speaker.tail.replace(tail);
        Ok(Place {
            transcriber: self.clone(),
            name: name.to_owned(),
            conversation: Arc::clone(&speaker.conversation),
            turn: speaker.turn.clone(),
            before,
            _done: done,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }
}

/// An utterance that was taken in. Dropping it withdraws it.
pub struct Admitted {
    place: Result<Place, Answer>,
    text: String,
}

impl Admitted {
    /// Answers it, when its turn has come.
    pub async fn answer(self) -> Answer {
        let mut place = match self.place {
            Ok(place) => place,
            Err(busy) => return busy,
        };
        // What the speaker said before comes before this in their conversation.
        if let Some(before) = place.before.take() {
            let _ = before.await;
        }
        let conversation = Arc::clone(&place.conversation);
        let mut conversation = conversation.lock().await;
        let shared = Arc::clone(&place.transcriber.shared);
        let _turn = tokio::select! {
            turn = shared.turns.acquire() => turn.ok(),
            () = place.turn.cancelled() => None,
        };
        place.answer(self.text, &mut conversation).await
    }
}

/// A place among those who are answered. It is free again when this goes.
struct Place {
    transcriber: BackgroundTranscriber,
    name: String,
    conversation: Arc<tokio::sync::Mutex<Vec<Message>>>,
    turn: CancellationToken,
    /// Over when the utterance before this one is; its other end goes with the place.
    before: Option<oneshot::Receiver<Infallible>>,
    _done: oneshot::Sender<Infallible>,
}

impl Place {
    async fn answer(&self, text: String, conversation: &mut Vec<Message>) -> Answer {
        let (shared, cancel) = (&self.transcriber.shared, &self.turn);
        let answer = Answer {
            speaker: self.name.clone(),
            text: String::new(),
            stop_reason: End::Cancelled.as_str(),
            calls: 0,
            error: None,
        };
        // It was said, even if nobody waits for the answer any more.
        if conversation.is_empty()
            && let Some(system) = &shared.system
        {
            conversation.push(Message::system(system.as_str()));
        }
        conversation.push(Message::human(text));
        keep_the_last(conversation, MESSAGES_MAX);
        if cancel.is_cancelled() {
            return answer;
        }
        tokio::select! {
            () = shared.ready.clone() => {}
            () = cancel.cancelled() => return answer,
        }
        let mut tell = |_: AgentEvent| {};
        let ended = shared.agent.run(conversation, cancel, &mut tell).await;
        let TurnEnd {
            end, text, calls, ..
        } = ended;
        let stop_reason = end.as_str();
        let (text, error) = match end {
            End::Answered | End::CutOff | End::Refused | End::LimitReached => (spoken(&text), None),
            End::Cancelled => (String::new(), None),
            End::Failed(error) => {
                tracing::warn!(speaker = self.name, %error, "an utterance was not answered");
                let text = "Sorry, I cannot answer right now.".to_owned();
                (text, Some(error.to_string()))
            }
        };
        Answer {
            text,
            stop_reason,
            calls,
            error,
            ..answer
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.transcriber.state();
        state.open = state.open.saturating_sub(1);
        if let Some(speaker) = state.speakers.get_mut(&self.name) {
            speaker.open = speaker.open.saturating_sub(1);
            speaker.last = Instant::now();
        }
    }
}

/// Whole turns from the end, so that no result stands without its call; what the model is told to be stays.
fn keep_the_last(conversation: &mut Vec<Message>, messages_max: usize) {
    if conversation.len() <= messages_max {
        return;
    }
    let system = usize::from(matches!(conversation.first(), Some(Message::System(_))));
    let from = conversation.len() - messages_max;
    let cut = conversation
        .iter()
        .enumerate()
        .skip(from.max(system))
        .find(|(_, message)| matches!(message, Message::Human(_)))
        .map_or(conversation.len(), |(at, _)| at);
    conversation.drain(system..cut);
}
