//! One turn: the question is answered, shown and written down; Ctrl-C or Esc stops it, a second Ctrl-C leaves.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadyhand::Message;
use steadyhand_models::NoticeCode;
use steadyhand_models::{Agent, AgentEvent, AgentSettings, AtLimit, CancellationToken, ModelError};
use tokio::time::Instant;

use super::asking::{Asking, Denier};
use super::keys::Keys;
use super::record::{Ended, Record};
use super::refused;
use super::show::Show;
use super::talk::AGAIN;
use crate::error::Failed;
use crate::{Interrupts, Session};
use steadyhand_config::Configuration;
use steadyhand_config::document::plain;
use steadyhand_runtime::access::budget_permit;
use steadyhand_runtime::approvals::Desk;
use steadyhand_runtime::models::Chosen;
use steadyhand_runtime::runtime::Runtime;
use steadyhand_server::conversations::Stored;

/// Between two looks at what runs.
const LOOK: Duration = Duration::from_millis(100);

/// A conversation with a model.
pub(super) struct Chat<'a> {
    pub(super) session: &'a Session<'a>,
    pub(super) runtime: &'a Runtime,
    pub(super) configuration: Arc<Configuration>,
    settings: AgentSettings,
    chosen: Chosen,
    agent: Agent,
    conversation: Vec<Message>,
    /// Where it is kept; none before anything was said, or where it cannot be.
    stored: Option<Stored>,
    keeps: Keeps,
    show: Arc<Mutex<Show>>,
    /// None where nobody can be asked for a yes.
    asking: Option<Asking>,
}

/// Whether a conversation is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeps {
    Yes,
    /// It was asked not to be, or it failed, which was said.
    No,
}

/// Whether the model may use tools.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    WithTools,
    AnswerNow,
}

/// What became of a turn.
pub(super) enum Turned {
    Ended(Box<Ended>),
    Left(Left),
}

/// Somebody would not wait for the end.
pub(super) struct Left {
    pub(super) code: u8,
}

impl<'a> Chat<'a> {
    pub(super) fn new(
        session: &'a Session<'a>,
        runtime: &'a Runtime,
        chosen: Chosen,
        settings: AgentSettings,
        show: Show,
    ) -> Chat<'a> {
        let configuration = Arc::clone(&runtime.generation().configuration);
        let agent = Agent::new(Arc::clone(&chosen.model), runtime.executor().clone());
        let mut settings = settings;
        settings.permit = budget_permit(&configuration, "this chat");
        let mut chat = Chat {
            session,
            runtime,
            configuration,
            settings,
            agent,
            chosen: chosen.clone(),
            conversation: Vec::new(),
            stored: None,
            keeps: Keeps::Yes,
            show: Arc::new(Mutex::new(show)),
            asking: None,
        };
        chat.change(chosen);
        chat
    }

    /// Goes on with a conversation that is kept.
    pub(super) fn go_on(&mut self, stored: Stored, messages: Vec<Message>) {
        self.stored = Some(stored);
        self.conversation = messages;
        self.prepare();
    }

    /// Calls that wait at this desk are shown to the person.
    pub(super) fn ask_at(&mut self, desk: Option<Desk>) {
        self.asking = desk.map(|desk| Asking::new(desk, "this chat"));
    }

    pub(super) fn keeps(&mut self, keeps: Keeps) {
        self.keeps = keeps;
    }

    /// What the engine tells about calls is shown, for as long as the watch lives.
    pub(super) fn watch(&self) -> Option<steadyhand::Watch> {
        let show = Arc::clone(&self.show);
        let tell = move |event: &steadyhand::Event| lock(&show).engine(event);
        self.runtime.executor().observe(tell).ok()
    }

    /// Another model answers from here on.
    pub(super) fn change(&mut self, chosen: Chosen) {
        lock(&self.show).set_model(chosen.model.name());
        self.chosen = chosen;
        self.prepare();
    }

    fn prepare(&mut self) {
        let mut settings = self.settings.clone();
        settings.recover_calls = self.chosen.recover_calls;
        if let Some(rounds) = self.chosen.max_iterations {
            settings.max_iterations = rounds;
        }
        // A call that a crash left open is found again by this, and not run twice.
        settings.key_prefix = self.stored.as_ref().map(|stored| stored.id().to_owned());
        let conversation = settings.key_prefix.clone();
        settings.conversation = Some(conversation.unwrap_or_else(|| "this chat".to_owned()));
        let executor = self.runtime.executor().clone();
        self.agent = Agent::new(Arc::clone(&self.chosen.model), executor).with(settings);
    }

    /// The model, and what people should know about it.
    pub(super) fn who(&self) -> String {
        let model = &self.chosen.model;
        match model.note() {
            Some(note) => format!("{} ({note})", model.name()),
            None => model.name().to_owned(),
        }
    }

    pub(super) fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    pub(super) fn conversation(&self) -> &[Message] {
        &self.conversation
    }

    /// The conversation's name.
    pub(super) fn id(&self) -> Option<&str> {
        self.stored.as_ref().map(Stored::id)
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.stored.as_ref().map(Stored::path)
    }

    pub(super) fn last_result(&self) -> Option<String> {
        let show = lock(&self.show);
        show.last().map(|last| last.content.text().into_owned())
    }

    /// Why there is no answer, as it is told.
    pub(super) fn failed(&self, error: &ModelError) -> Failed {
        let state = self.session.state();
        let keeps = (self.keeps == Keeps::Yes).then_some(state.as_path());
        refused::told(error, self.chosen.model.provider(), keeps)
    }

    pub(super) fn note(&self, text: &str) {
        self.session.screen.note(text);
    }

    /// The person said something.
    pub(super) fn say(&mut self, text: &str) {
        if self.keeps == Keeps::Yes && self.stored.is_none() {
            match Stored::begin(&self.session.state()) {
                Ok(stored) => self.stored = Some(stored),
                Err(error) => self.cannot_keep(&error),
            }
            self.prepare();
        }
        if self.conversation.is_empty()
            && let Some(system) = self.chosen.system.clone()
        {
            self.grow(Message::system(system));
        }
        self.grow(Message::human(text));
    }

    fn grow(&mut self, message: Message) {
        if let Some(stored) = &mut self.stored
            && let Err(error) = stored.append(&message)
        {
            self.cannot_keep(&error);
        }
        self.conversation.push(message);
    }

    fn cannot_keep(&mut self, error: &std::io::Error) {
        self.stored = None;
        self.keeps = Keeps::No;
        self.note(&format!(
            "This conversation is not kept: {}; /save FILE writes it elsewhere",
            plain(error)
        ));
    }

    /// Forgets what was answered to what was asked last. Whether anything was asked.
    pub(super) fn take_back(&mut self) -> bool {
        let asked = self
            .conversation
            .iter()
            .rposition(|message| matches!(message, Message::Human(_)));
        let Some(asked) = asked else {
            return false;
        };
        self.conversation.truncate(asked + 1);
        self.write_anew();
        true
    }

    fn write_anew(&mut self) {
        let replaced = match &mut self.stored {
            Some(stored) => stored.replace(&self.conversation),
            None => Ok(()),
        };
        if let Err(error) = replaced {
            self.cannot_keep(&error);
        }
    }

    /// Whether something was asked and not answered: a crash, or a signal, came between.
    pub(super) fn is_unanswered(&self) -> bool {
        match self.conversation.last() {
            None | Some(Message::System(_) | Message::Other(_)) => false,
            Some(Message::Human(_) | Message::Tool(_)) => true,
            Some(Message::Ai(ai)) => !ai.tool_calls.is_empty() || !ai.invalid_tool_calls.is_empty(),
        }
    }

    /// Has the model answer what was said last.
    pub(super) async fn turn(
        &mut self,
        way: Way,
        interrupts: &mut Interrupts,
        mut keys: Option<&mut Keys>,
    ) -> Turned {
        let cancel = CancellationToken::new();
        let mut record = Record::default();
        let (stored, show) = (&mut self.stored, &self.show);
        let mut unkept = None;
        let mut is_mended = false;
        let mut tell = |event: AgentEvent| {
            lock(show).event(&event);
            if let AgentEvent::Message { message } = &event
                && let Some(open) = stored
                && let Err(error) = open.append(message)
            {
                *stored = None;
                unkept = Some(error);
            }
            // Results were put where they belong, which is not at the end.
            is_mended |= matches!(&event, AgentEvent::Notice(notice) if notice.code == NoticeCode::OpenCallsAnswered);
            record.note(event);
        };
        let (agent, conversation) = (&self.agent, &mut self.conversation);
        let (session, asking) = (self.session, &mut self.asking);
        let denier = asking.as_ref().map(Asking::denier);
        let ended = {
            let attending = async {
                match asking {
                    Some(asking) => {
                        asking
                            .attend(session, |is_paused| pause(show, is_paused))
                            .await
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::pin!(attending);
            let mut denied: Option<Instant> = None;
            let running = async {
                match way {
                    Way::WithTools => agent.run(conversation, &cancel, &mut tell).await,
                    Way::AnswerNow => agent.answer_now(conversation, &cancel, &mut tell).await,
                }
            };
            tokio::pin!(running);
            let mut looks = tokio::time::interval(LOOK);
            let mut stopped: Option<(Instant, u8)> = None;
            let limit = self.session.time_left();
            let too_long = async {
                match limit {
                    Some(limit) => tokio::time::sleep(limit).await,
                    None => std::future::pending().await,
                }
            };
            tokio::pin!(too_long);
            let mut is_too_long = false;
            loop {
                tokio::select! {
                    biased;
                    turn = &mut running => break Ok((turn, stopped.map(|(_, code)| code))),
                    code = interrupts.next() => {
                        let last = stopped.map(|(at, _)| at).max(denied);
                        let is_second = last.is_some_and(|at| at.elapsed() < AGAIN);
                        if is_second || code != 130 {
                            break Err(Left { code });
                        }
                        // A question is denied once; what else runs goes on.
                        if denier.as_ref().is_some_and(Denier::deny) {
                            denied = Some(Instant::now());
                            continue;
                        }
                        stopped = Some((Instant::now(), code));
                        cancel.cancel();
                    }
                    () = &mut too_long, if !is_too_long => {
                        is_too_long = true;
                        cancel.cancel();
                    }
                    never = &mut attending => match never {},
                    _ = looks.tick() => {
                        // Whoever is asked something types an answer.
                        let is_asked = denier.as_ref().is_some_and(Denier::is_needed);
                        if !is_asked && keys.as_mut().is_some_and(|keys| keys.is_esc_pressed()) {
                            cancel.cancel();
                        }
                        lock(show).tick();
                    }
                }
            }
        };
        lock(show).end();
        if let Some(error) = unkept {
            self.cannot_keep(&error);
        }
        if is_mended {
            self.write_anew();
        }
        match ended {
            Ok((turn, signal)) => Turned::Ended(Box::new(Ended {
                turn,
                calls: record.calls(),
                signal,
            })),
            Err(left) => Turned::Left(left),
        }
    }
}

/// The settings that every chat has.
pub(super) fn settings(at_limit: AtLimit, max_iterations: Option<u32>) -> AgentSettings {
    let mut settings = AgentSettings::default();
    settings.at_limit = at_limit;
    settings.caller = Some("chat".to_owned());
    settings.max_iterations = max_iterations.unwrap_or(settings.max_iterations);
    settings
}

fn lock(show: &Mutex<Show>) -> MutexGuard<'_, Show> {
    show.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nothing is drawn while the person is asked something.
fn pause(show: &Mutex<Show>, is_paused: bool) {
    let mut show = show.lock().unwrap_or_else(PoisonError::into_inner);
    match is_paused {
        true => show.pause(),
        false => show.resume(),
    }
}
