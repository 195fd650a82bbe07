//! Between a client of ours and a server behind us: what one asks, what the other asks back, what it says, raw.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::memory::HeldJson;
use crate::wire::RpcError;

/// A client on whose behalf a server is asked: what the server asks back goes there, whatever era either speaks.
pub trait Counterpart: Send + Sync + 'static {
    /// What it can be asked, as it declared it: `{"elicitation": {}, "sampling": {}, "roots": {}}`.
    fn capabilities(&self) -> &Value;

    /// Lets it answer; as many answers as questions, in their order. It may take a person's time: whoever asks
    /// bounds it, and dropping the future withdraws the questions.
    fn ask(
        self: Arc<Self>,
        questions: Vec<Question>,
    ) -> BoxFuture<'static, Vec<Result<Box<RawValue>, RpcError>>>;

    /// Something the server says about this request (`notifications/message`). Never waits.
    fn tell(&self, method: &str, params: Option<&RawValue>);

    /// Whose request it is: two requests of one client say the same.
    fn identity(&self) -> usize {
        std::ptr::from_ref(self).cast::<()>().addr()
    }

    /// Whom limits count it as: who has proved to be behind it, or the address it comes from. None where there is only one.
    fn account(&self) -> Option<Arc<str>> {
        None
    }

    /// The least severe level of messages it wants to hear for this request, if any.
    fn log_level(&self) -> Option<&str>;
}

/// Something a server asks a client.
#[derive(Debug, Clone)]
pub struct Question {
    /// The server's name for it: the key among its `inputRequests`, or the id of its request.
    pub key: String,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// As the server wrote them.
    pub params: Option<Box<RawValue>>,
}

/// Members of an object, to the letter.
pub type Written = Vec<(String, Box<RawValue>)>;

/// One request's way through us; a call of a tool carries it as its luggage.
pub struct Passage {
    client: Arc<dyn Counterpart>,
    meta: Written,
    members: Written,
    arguments: Option<Box<RawValue>>,
    may_decide: bool,
    /// The arguments go on as the value that was checked, whatever was written.
    sends_value: AtomicBool,
    result: Mutex<Option<Result<HeldJson, RpcError>>>,
}

impl Passage {
    /// Of a request of this client. `meta` is what of the request's `_meta` concerns the server: not the protocol's
    /// own members, and no progress token. `arguments` are those of a tool, as the client wrote them.
    pub fn new(
        client: Arc<dyn Counterpart>,
        meta: Written,
        arguments: Option<Box<RawValue>>,
    ) -> Passage {
        Passage {
            client,
            meta,
            members: Written::new(),
            arguments,
            may_decide: false,
            sends_value: AtomicBool::new(false),
            result: Mutex::default(),
        }
    }

    /// What else stands in the parameters of a call: nobody here knows what it means, so it goes on.
    pub fn with_members(mut self, members: Written) -> Passage {
        self.members = members;
        self
    }

    /// Whether whoever sits at the client may say yes to what it asks for.
    pub fn deciding(mut self, may_decide: bool) -> Passage {
        self.may_decide = may_decide;
        self
    }

    /// The client, if a person there may say yes to this and can be shown a form.
    pub fn decider(&self) -> Option<&Arc<dyn Counterpart>> {
        let elicitation = self.client.capabilities().get("elicitation")?.as_object()?;
        // Nothing in particular is a form.
        let has_forms = elicitation.is_empty() || elicitation.contains_key("form");
        (self.may_decide && has_forms).then_some(&self.client)
    }

    /// Whose request it is.
    pub fn client(&self) -> &Arc<dyn Counterpart> {
        &self.client
    }

    /// What of `_meta` goes on to the server. Beside what a person has approved, only the trace it is part of.
    pub fn meta(&self) -> impl Iterator<Item = &(String, Box<RawValue>)> {
        const TRACE: [&str; 3] = ["traceparent", "tracestate", "baggage"];
        let is_approved = self.sends_value();
        let goes_on = move |name: &str| !is_approved || TRACE.contains(&name);
        self.meta.iter().filter(move |(name, _)| goes_on(name))
    }

    /// What goes on to the server beside a tool's name and arguments. Nothing, where a person was shown those alone.
    pub fn members(&self) -> impl Iterator<Item = &(String, Box<RawValue>)> {
        let is_approved = self.sends_value();
        self.members.iter().filter(move |_| !is_approved)
    }

    /// A tool's arguments as the client wrote them: sent on as they are, if nothing was changed in them.
    pub fn arguments(&self) -> Option<&RawValue> {
        self.arguments.as_deref()
    }

    /// From now on the server gets the arguments as the value that was checked, and not as they were written, and nothing
    /// that stands beside them: a person is shown that value, and says yes to nothing else.
    pub fn send_value(&self) {
        self.sends_value.store(true, Ordering::Release);
    }

    pub(crate) fn sends_value(&self) -> bool {
        self.sends_value.load(Ordering::Acquire)
    }

    /// The server's own result, for whoever passes it on; the last attempt's counts.
    pub fn put_result(&self, result: Box<RawValue>) {
        *self.answer() = Some(Ok(HeldJson::from(result)));
    }

    /// The same with the memory that is reserved for it.
    pub(crate) fn hold_result(&self, result: HeldJson) {
        *self.answer() = Some(Ok(result));
    }

    /// The server's own error, for whoever passes it on; the last attempt's counts.
    pub fn put_error(&self, error: RpcError) {
        *self.answer() = Some(Err(error));
    }

    /// Takes the result out, if there is one.
    pub fn take_result(&self) -> Option<Box<RawValue>> {
        self.take_answer()?.ok()
    }

    /// Takes out what the server answered: its result or its error. None if it did not answer.
    pub fn take_answer(&self) -> Option<Result<Box<RawValue>, RpcError>> {
        let answer = self.answer().take()?;
        Some(answer.map(HeldJson::into_json))
    }

    /// Another attempt begins.
    pub(crate) fn forget_answer(&self) {
        *self.answer() = None;
    }

    fn answer(&self) -> MutexGuard<'_, Option<Result<HeldJson, RpcError>>> {
        self.result.lock()
    }
}
