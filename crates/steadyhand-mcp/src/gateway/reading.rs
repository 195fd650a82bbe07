//! A body of HTTP, read: which era it is of, whose session it is in, and what is to be done about it.

use std::sync::Arc;

use serde_json::value::RawValue;
use steadyhand::RepeatedName;
use tokio::time::Instant;

use super::client::{self, Client};
use super::dispatch::{Handled, Inner, Origin};
use super::era::{Era, LEGACY_VERSIONS, MODERN_VERSIONS};
use super::errors::{self, Standing};
use super::events::message;
use super::exchange::{Accepted, Post, Refusal, Reply, Who, answered};
use super::headers::{Headers, must_say};
use super::listen::Wish;
use super::operation;
use super::request::{Meta, Params, Request, client_name};
use super::session::{Running, Session};
use super::work::Work;
use crate::wire::{Incoming, Members, RpcError};

const SESSION_ID: &str = "mcp-session-id";
const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// Messages of one batch.
const BATCH_MAX: usize = 1_000;

/// A request that takes its time.
pub(super) struct Pending {
    pub(super) id: Box<RawValue>,
    pub(super) accepted: Accepted,
    pub(super) work: Work,
    /// Of the older protocols.
    pub(super) session: Option<(Arc<Session>, Running)>,
}

/// What a body turned out to be.
pub(super) enum Stage {
    Reply(Reply),
    Pending(Pending),
    Listen {
        id: Box<RawValue>,
        wish: Result<Wish, RpcError>,
        who: Option<Who>,
    },
    Batch(Vec<Stage>),
}

impl Inner {
    pub(super) fn read(self: &Arc<Self>, post: &Post<'_>) -> Stage {
        let body = post.body.trim_ascii();
        if body.first() == Some(&b'[') {
            return self.read_batch(post, body);
        }
        let Some(message) = Incoming::read(body) else {
            let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok();
            let error = match is_json {
                true => errors::no_message(),
                false => errors::not_json(),
            };
            return Stage::Reply(Reply::error(Standing::Malformed, RawValue::NULL, &error));
        };
        let accepted = Accepted::read(post.headers);
        let Incoming::Request { id, method, params } = message else {
            return self.read_word(post, message);
        };
        let request = Request { id, method, params };
        if let Err(error) = request.check_names() {
            return Stage::Reply(Reply::error(Standing::Malformed, id, &error));
        }
        let Some(params) = Params::read(params) else {
            let error = errors::invalid("params is no object");
            return Stage::Reply(Reply::error(Standing::Malformed, id, &error));
        };
        let meta = Meta::read(params.meta);
        if meta.is_of_ourselves() {
            let error = errors::invalid(
                "this is Steadyhand itself, which cannot be a server of its own: take the entry with this address out",
            );
            return Stage::Reply(Reply::error(Standing::Malformed, id, &error));
        }
        if meta.version.is_some() || is_modern(post.headers) {
            return self.read_modern(post, &request, &params, &meta, accepted);
        }
        if method == "initialize" {
            return Stage::Reply(self.begin_session(&request, post.who.as_ref()));
        }
        match self.session_of(post.headers, post.who.as_ref()) {
            Ok(session) => self.read_legacy(post, &session, &request, &params, &meta, accepted),
            Err(refusal) => Stage::Reply(refusal.reply(id)),
        }
    }

    /// A request that says everything by itself.
    fn read_modern(
        self: &Arc<Self>,
        post: &Post<'_>,
        request: &Request<'_>,
        params: &Params<'_>,
        meta: &Meta<'_>,
        accepted: Accepted,
    ) -> Stage {
        let id = request.id;
        let refuse =
            |standing: Standing, error: &RpcError| Stage::Reply(Reply::error(standing, id, error));
        let client = match modern_client(meta) {
            Ok(client) => client,
            Err(error) => return refuse(Standing::Malformed, &error),
        };
        let version = meta.version.as_deref().unwrap_or_default();
        if let Err(error) = must_say(post.headers, PROTOCOL_VERSION, version) {
            return refuse(Standing::Malformed, &error);
        }
        if !MODERN_VERSIONS.contains(&version) {
            return refuse(Standing::Malformed, &errors::unsupported_version(version));
        }
        if !Inner::is_modern_method(request.method) {
            let error = errors::no_such_method(request.method);
            return refuse(Standing::NoSuchMethod, &error);
        }
        if let Err(error) = check_headers(post.headers, request, params) {
            return refuse(Standing::Malformed, &error);
        }
        if request.method == "subscriptions/listen" {
            return Stage::Listen {
                id: id.to_owned(),
                wish: Wish::read(request),
                who: post.who.clone(),
            };
        }
        let origin = Origin {
            client: Arc::new(client),
            sink: accepted.sink(),
            caller: post.caller.clone(),
            who: post.who.clone(),
            conversation: None,
            traceparent: post.traceparent,
            mailbox: None,
            headers: Some(post.headers),
            operation: None,
        };
        match self.handle(request, params, meta, origin) {
            Handled::Work(work) => Stage::Pending(Pending {
                id: id.to_owned(),
                accepted,
                work: *work,
                session: None,
            }),
            now => Stage::Reply(answered(id, now, Era::Modern, accepted)),
        }
    }

    /// A request in a session.
    fn read_legacy(
        self: &Arc<Self>,
        post: &Post<'_>,
        session: &Arc<Session>,
        request: &Request<'_>,
        params: &Params<'_>,
        meta: &Meta<'_>,
        accepted: Accepted,
    ) -> Stage {
        let origin = Origin {
            client: Arc::clone(&session.client),
            sink: accepted.sink(),
            caller: post.caller.clone(),
            who: post.who.clone(),
            conversation: Some(Arc::clone(&session.id)),
            traceparent: post.traceparent,
            mailbox: Some(&session.mailbox),
            headers: None,
            operation: None,
        };
        let id = request.id;
        match self.handle(request, params, meta, origin) {
            Handled::Work(work) => Stage::Pending(Pending {
                session: Some((Arc::clone(session), session.begin(id, &work.inquiry))),
                id: id.to_owned(),
                accepted,
                work: *work,
            }),
            now => Stage::Reply(answered(id, now, session.client.era, accepted)),
        }
    }

    /// A notification, or the answer to a question of ours.
    fn read_word(self: &Arc<Self>, post: &Post<'_>, message: Incoming<'_>) -> Stage {
        let accepted = Stage::Reply(Reply::nothing(Standing::Accepted));
        if is_modern(post.headers) {
            // Over HTTP it has nothing to tell us: whoever no longer wants an answer hangs up.
            return accepted;
        }
        let session = match self.session_of(post.headers, post.who.as_ref()) {
            Ok(session) => session,
            Err(refusal) => return Stage::Reply(refusal.reply(RawValue::NULL)),
        };
        take_word(&session, message);
        accepted
    }

    /// Several messages at once, which the protocol up to 2025-03-26 has.
    fn read_batch(self: &Arc<Self>, post: &Post<'_>, body: &[u8]) -> Stage {
        let refuse = |error: RpcError| {
            Stage::Reply(Reply::error(Standing::Malformed, RawValue::NULL, &error))
        };
        let Ok(parts) = serde_json::from_slice::<Vec<&RawValue>>(body) else {
            return refuse(errors::not_json());
        };
        let session = match self.session_of(post.headers, post.who.as_ref()) {
            Ok(session) => session,
            Err(refusal) => return Stage::Reply(refusal.reply(RawValue::NULL)),
        };
        let is_allowed = !session.client.era.has("2025-06-18");
        if !is_allowed || parts.is_empty() || parts.len() > BATCH_MAX {
            let text = "batches are not taken in this version of the protocol, or not of this size";
            return refuse(errors::invalid_request(text));
        }
        let accepted = Accepted {
            json: true,
            events: false,
        };
        let mut stages = Vec::with_capacity(parts.len());
        for part in parts {
            let stage = match Incoming::read(part.get().as_bytes()) {
                Some(Incoming::Request { id, method, params }) => match Params::read(params) {
                    Some(read) => {
                        let request = Request { id, method, params };
                        if let Err(error) = request.check_names() {
                            let reply = Reply::error(Standing::Answered, id, &error);
                            stages.push(Stage::Reply(reply));
                            continue;
                        }
                        let meta = Meta::read(read.meta);
                        self.read_legacy(post, &session, &request, &read, &meta, accepted)
                    }
                    None => {
                        let error = errors::invalid("params is no object");
                        Stage::Reply(Reply::error(Standing::Answered, id, &error))
                    }
                },
                Some(word) => {
                    take_word(&session, word);
                    continue;
                }
                None => refuse(errors::no_message()),
            };
            stages.push(stage);
        }
        Stage::Batch(stages)
    }

    fn begin_session(&self, request: &Request<'_>, who: Option<&Who>) -> Reply {
        let began = Instant::now();
        let (client, version) = greeted(request);
        let told = *self.versions.borrow();
        let session = match self.sessions.open(client, who, told) {
            Ok(session) => session,
            Err(full) => {
                let error = errors::busy(full.to_string());
                return Reply::error(Standing::Busy, request.id, &error);
            }
        };
        let greeting = self.greeting(version);
        operation::greeted(version, false, began.elapsed());
        Reply {
            session: Some(Arc::clone(&session.id)),
            ..Reply::json(Standing::Answered, message(request.id, greeting))
        }
    }

    /// The session that a request names. One that somebody else opened is as good as none.
    pub(super) fn session_of(
        &self,
        headers: &dyn Headers,
        who: Option<&Who>,
    ) -> Result<Arc<Session>, Box<Refusal>> {
        let refuse = |standing: Standing, error: Option<RpcError>| {
            Err(Box::new(Refusal { standing, error }))
        };
        let Some(id) = headers.get(SESSION_ID) else {
            if is_modern(headers) {
                return refuse(Standing::NotHere, None);
            }
            let text = "the header Mcp-Session-Id is missing: send initialize first, or what 2026-07-28 wants";
            return refuse(Standing::Malformed, Some(errors::invalid_request(text)));
        };
        let is_theirs = |session: &Arc<Session>| {
            session.owner.as_deref() == who.and_then(|who| who.name.as_deref())
        };
        let Some(session) = self.sessions.find(id).filter(is_theirs) else {
            return refuse(Standing::NoSuchSession, Some(errors::no_session()));
        };
        match headers.get(PROTOCOL_VERSION) {
            Some(version) if !LEGACY_VERSIONS.contains(&version) => {
                let text = format!(
                    "protocol version {version:?} is not supported in a session; there are {}",
                    LEGACY_VERSIONS.join(", ")
                );
                refuse(Standing::Malformed, Some(errors::invalid_request(text)))
            }
            Some(_) | None => Ok(session),
        }
    }
}

/// Whether a request is of the newer protocol by its header. Who has a session is not.
fn is_modern(headers: &dyn Headers) -> bool {
    let version = headers.get(PROTOCOL_VERSION);
    let is_unknown = version.is_some_and(|version| !LEGACY_VERSIONS.contains(&version));
    is_unknown && (headers.get(SESSION_ID).is_none() || version == Some(MODERN_VERSIONS[0]))
}

/// The client that a request of the newer protocol describes.
pub(super) fn modern_client(meta: &Meta<'_>) -> Result<Client, RpcError> {
    let missing =
        |what: &str| errors::invalid(format!("_meta needs io.modelcontextprotocol/{what}"));
    if meta.version.is_none() {
        return Err(missing("protocolVersion"));
    }
    let capabilities = client::capabilities(meta.capabilities);
    let capabilities = capabilities.ok_or_else(|| missing("clientCapabilities"))?;
    let client = Client::new(Era::Modern, client_name(meta.client_info), capabilities);
    if let Some(level) = &meta.log_level {
        client.set_level(level);
    }
    Ok(client)
}

/// The client of a handshake, and the version it settles on.
pub(super) fn greeted(request: &Request<'_>) -> (Client, &'static str) {
    let params = request.params.and_then(Members::of).unwrap_or_default();
    let era = Era::settled(params.text("protocolVersion").as_deref());
    let name = client_name(params.get("clientInfo"));
    let version = match era {
        Era::Legacy(version) => version,
        Era::Modern => MODERN_VERSIONS[0],
    };
    let capabilities = client::capabilities(params.get("capabilities"));
    let client = Client::new(era, name, capabilities.unwrap_or_default());
    (client, version)
}

/// The headers that repeat what the body says.
fn check_headers(
    headers: &dyn Headers,
    request: &Request<'_>,
    params: &Params<'_>,
) -> Result<(), RpcError> {
    must_say(headers, "mcp-method", request.method)?;
    let name = match request.method {
        "tools/call" | "prompts/get" => params.name(),
        "resources/read" => params.uri(),
        _ => None,
    };
    match name {
        Some(name) => must_say(headers, "mcp-name", &name),
        None => Ok(()),
    }
}

fn take_word(session: &Session, message: Incoming<'_>) {
    match message {
        Incoming::Response { id, result } => {
            session.client.questions.answer(id, unambiguous(result));
        }
        Incoming::Notification { method, params } => {
            if method == "notifications/cancelled"
                && let Some(id) = cancelled(params)
            {
                session.cancel(id);
            }
        }
        Incoming::Request { .. } => {}
    }
}

/// A client's answer to a question of ours, unless it can be read in two ways.
pub(super) fn unambiguous(result: Result<&RawValue, RpcError>) -> Result<&RawValue, RpcError> {
    let result = result?;
    match RepeatedName::first_in(result.get()) {
        None => Ok(result),
        Some(repeated) => Err(errors::invalid(format!(
            "the answer: {}",
            repeated.message()
        ))),
    }
}

/// The request that a client no longer wants.
pub(super) fn cancelled(params: Option<&RawValue>) -> Option<&RawValue> {
    #[derive(serde::Deserialize)]
    struct Cancelled<'a> {
        #[serde(rename = "requestId", borrow)]
        id: &'a RawValue,
    }
    let cancelled: Cancelled<'_> = steadyhand::typed_json::from_str(params?.get()).ok()?;
    Some(cancelled.id)
}
