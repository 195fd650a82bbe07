//! One request from its beginning to its end: its parameters out, its `_meta` put together, its answer back; and in the
//! newer era what the server wants to know first, as often as it wants.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::{Duration, Instant, timeout, timeout_at};

use crate::client::calls::input_required::{self, Further};
use crate::client::connection::slot::{Answer, Heard, Progress, Whose};
use crate::client::connection::{Connection, Topic, head_of};
use crate::client::http::headers::{ParamHeaders, naming_member};
use crate::client::http::{Kind, TransportError};
use crate::client::relay::Passage;
use crate::client::requests::Capabilities;
use crate::wire::Members;
use crate::wire::meta::{
    META_CAPABILITIES, META_CLIENT, META_LOG_LEVEL, META_VERSION, MODERN_VERSION,
};

/// While a person thinks, those who wait are told so at least this often.
pub(crate) const THINKING_TICK: Duration = Duration::from_millis(200);
/// A server may want to know something so often before it answers.
const ROUNDS_MAX: usize = 32;

/// What is asked of a server, and for whom.
pub(crate) struct ServerRequest<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: Params<'a>,
    pub(crate) passage: Option<&'a Passage>,
    pub(crate) traceparent: Option<&'a str>,
    /// Parameters of a tool that stand in headers, too.
    pub(crate) headers: Option<&'a ParamHeaders>,
    pub(crate) sender: Sender,
    /// By then it must be on its way, where somebody wants to know whether it was.
    pub(crate) connect_until: Option<Instant>,
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    /// We ourselves.
    We,
    /// We ourselves, and it stays open.
    WeForLong,
    /// Whoever calls.
    Caller,
}

/// The parameters of a request, without `_meta`.
pub(crate) enum Params<'a> {
    /// Of a tool.
    Call {
        name: &'a str,
        /// As they were checked.
        arguments: &'a Value,
        /// The same to the letter, where nothing was changed in them.
        written: Option<&'a RawValue>,
    },
    /// As someone else wrote them; a `_meta` among them is not used.
    Raw(Option<&'a RawValue>),
}

/// What an request is told on its way.
pub(crate) trait ProgressListener {
    /// The server says how far it is.
    fn progress(&self, progress: Progress);
    /// Someone thinks about a question of the server.
    fn thinking(&self);
    /// It is on its way, as the request of this id.
    fn sent(&self, _id: u64) {}
}

/// Nobody wants to be told.
pub(crate) struct NoListener;

impl ProgressListener for NoListener {
    fn progress(&self, _: Progress) {}
    fn thinking(&self) {}
}

impl<'a> ServerRequest<'a> {
    /// A request of ours.
    pub(crate) fn ours(method: &'a str, params: Option<&'a RawValue>) -> ServerRequest<'a> {
        ServerRequest {
            method,
            params: Params::Raw(params),
            passage: None,
            traceparent: None,
            headers: None,
            sender: Sender::We,
            connect_until: None,
        }
    }

    /// Sends it and waits for the end.
    pub(crate) async fn run(
        &self,
        connection: &Connection,
        listener: &impl ProgressListener,
    ) -> Answer {
        let mut further: Option<Further> = None;
        for _ in 0..ROUNDS_MAX {
            let answer = self.once(connection, listener, further.as_ref()).await;
            let Answer::Result(result) = &answer else {
                return answer;
            };
            let Some(wanted) = input_required::wanted(connection, result) else {
                return answer;
            };
            let policy = &connection.desk().policy;
            let client = self.passage.map(Passage::client);
            match wanted.give(policy, client, listener).await {
                Ok(given) => further = Some(given),
                Err(why) => return Answer::Unanswered(why),
            }
        }
        Answer::Unanswered(format!("it asked for more input {ROUNDS_MAX} times"))
    }

    /// Sends it once, as far as that goes.
    async fn once(
        &self,
        connection: &Connection,
        listener: &impl ProgressListener,
        further: Option<&Further>,
    ) -> Answer {
        let whose = match (self.sender, self.passage) {
            (Sender::We, _) => Whose::Ours,
            (Sender::WeForLong, _) => Whose::Standing,
            (Sender::Caller, Some(passage)) => Whose::Clients(passage.client().clone()),
            (Sender::Caller, None) => Whose::Nobodys,
        };
        let raw = match &self.params {
            Params::Raw(Some(raw)) => Members::of(raw).unwrap_or_default().without("_meta"),
            Params::Raw(None) | Params::Call { .. } => Members::default(),
        };
        let topic = self.topic(connection, &raw);
        let mut reply = connection.request(topic, whose, |id| Composed {
            request: self,
            raw: &raw,
            progress_token: id,
            further,
            modern: connection.is_modern().then(|| &connection.desk().policy),
        });
        listener.sent(reply.id());
        loop {
            let heard = match reply.is_asked() {
                false if reply.is_unsent() && self.connect_until.is_some() => {
                    let until = self.connect_until.unwrap_or_else(Instant::now);
                    match timeout_at(until, reply.heard()).await {
                        Ok(heard) => heard,
                        Err(_) if reply.is_unsent() => {
                            let why = "no connection was made before the call's time was up";
                            return Answer::TransportError(TransportError::new(
                                Kind::Unreachable,
                                why,
                            ));
                        }
                        Err(_) => reply.heard().await,
                    }
                }
                false => reply.heard().await,
                true => match timeout(THINKING_TICK, reply.heard()).await {
                    Ok(heard) => heard,
                    Err(_) => {
                        listener.thinking();
                        continue;
                    }
                },
            };
            match heard {
                Heard::Answer(answer) => return answer,
                Heard::Progress(progress) => listener.progress(progress),
                Heard::Asked => listener.thinking(),
            }
        }
    }

    fn topic(&self, connection: &Connection, raw: &Members<'_>) -> Topic<'a> {
        let mut topic = Topic::of(self.method);
        topic.target = match &self.params {
            Params::Call { name, .. } => Some(name),
            Params::Raw(_) => None,
        };
        if !connection.has_headers() {
            return topic;
        }
        match &self.params {
            Params::Call {
                name, arguments, ..
            } => {
                topic.head = head_of(self.method, Some(name));
                let headers = self.headers.into_iter();
                let filled = headers.flat_map(|headers| headers.fill(arguments));
                topic.head.extra.extend(filled);
            }
            Params::Raw(_) => {
                let name = naming_member(self.method).and_then(|member| raw.text(member));
                topic.head = head_of(self.method, name.as_deref());
            }
        }
        topic
    }
}

/// The parameters as they are sent.
struct Composed<'a> {
    request: &'a ServerRequest<'a>,
    raw: &'a Members<'a>,
    progress_token: u64,
    further: Option<&'a Further>,
    /// In the newer era every request says who we are and what we can be asked.
    modern: Option<&'a crate::client::requests::RequestPolicy>,
}

impl Serialize for Composed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.request.params {
            Params::Call {
                name,
                arguments,
                written,
            } => {
                map.serialize_entry("name", name)?;
                match written {
                    Some(raw) => map.serialize_entry("arguments", raw)?,
                    None => map.serialize_entry("arguments", arguments)?,
                }
                let others = self.request.passage.map(Passage::members);
                for (name, value) in others.into_iter().flatten() {
                    map.serialize_entry(name, value)?;
                }
            }
            Params::Raw(_) => {
                for (name, value) in &self.raw.0 {
                    map.serialize_entry(name, value)?;
                }
            }
        }
        if let Some(further) = self.further {
            further.write(&mut map)?;
        }
        if self.modern.is_some() || self.request.sender == Sender::Caller {
            map.serialize_entry("_meta", &Meta(self))?;
        }
        map.end()
    }
}

struct Meta<'a>(&'a Composed<'a>);

impl Serialize for Meta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let request = self.0.request;
        let client = request.passage.map(|passage| &**passage.client());
        let mut map = serializer.serialize_map(None)?;
        if let Some(policy) = self.0.modern {
            write_modern(&mut map, Capabilities { policy, client })?;
            if let Some(level) = client.and_then(|client| client.log_level()) {
                map.serialize_entry(META_LOG_LEVEL, level)?;
            }
        }
        if request.sender == Sender::Caller {
            map.serialize_entry("progressToken", &self.0.progress_token)?;
        }
        if let Some(traceparent) = request.traceparent {
            map.serialize_entry("traceparent", traceparent)?;
        }
        let given = request.passage.map(Passage::meta);
        for (name, value) in given.into_iter().flatten() {
            let is_ours = match name.as_str() {
                "progressToken" => true,
                "traceparent" => request.traceparent.is_some(),
                META_VERSION | META_CAPABILITIES | META_CLIENT | META_LOG_LEVEL => true,
                _ => false,
            };
            if !is_ours {
                map.serialize_entry(name, value)?;
            }
        }
        map.end()
    }
}

/// What every request of the newer era says about us.
pub(crate) fn write_modern<M: SerializeMap>(
    map: &mut M,
    capabilities: Capabilities<'_>,
) -> Result<(), M::Error> {
    map.serialize_entry(META_VERSION, MODERN_VERSION)?;
    map.serialize_entry(META_CAPABILITIES, &capabilities)?;
    map.serialize_entry(META_CLIENT, &OURSELVES)
}

/// Who we are.
#[derive(Serialize)]
pub(crate) struct Ourselves {
    name: &'static str,
    version: &'static str,
}

pub(crate) const OURSELVES: Ourselves = Ourselves {
    name: "steadyhand",
    version: env!("CARGO_PKG_VERSION"),
};
