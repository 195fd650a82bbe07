//! What servers answer that are no tools: prompts, resources, completion, subscriptions, levels of logs.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use steadyhand::visible;
use tokio::time::{Instant, sleep};

use super::answer;
use super::client::{Answered, Client};
use super::dispatch::{Handled, Inner, Origin};
use super::era::Era;
use super::errors;
use super::inquiry::{Answer, Inquiry};
use super::message::held_bytes;
use super::news::Mailbox;
use super::request::{Meta, Params, Request, text};
use super::shares::CallerShares;
use super::splice::{Hints, passed};
use super::subscriptions::{NoRoom, Then};
use super::suspended::{self, Caller, Subject};
use super::url_elicitation::relayed;
use super::work::Work;
use crate::client::calls::rpc_error::read_rpc_error;
use crate::client::relay::{Counterpart, Passage, Question};
use crate::client::server::Server;
use crate::wire::{Members, RpcError};

/// How long a server may take. While a client thinks about a question of it, time stands still.
const LIMIT: Duration = Duration::from_secs(60);
/// However long anyone thinks.
const LIMIT_MAX: Duration = Duration::from_secs(600);
/// An address of a resource is kept for as long as somebody watches it.
const WATCHED_URI_BYTES_MAX: usize = 4 * 1024;

impl Inner {
    pub(super) fn get_prompt(
        self: &Arc<Self>,
        request: &Request<'_>,
        params: &Params<'_>,
        meta: &Meta<'_>,
        origin: Origin<'_>,
    ) -> Result<Handled, RpcError> {
        let name = params.name();
        let name = name.ok_or_else(|| errors::invalid("prompts/get needs the name of a prompt"))?;
        let listing = self.listing();
        let Some((server, own)) = listing.routes.prompt(&name) else {
            return Err(errors::invalid(format!("Unknown prompt: {name}")));
        };
        let own = raw(own);
        let members = request.params.and_then(Members::of).unwrap_or_default();
        let errand = Errand {
            servers: vec![server.clone()],
            method: "prompts/get",
            params: for_server(members).with("name", &own).to_raw(),
            hints: Hints::None,
        };
        let subject = Subject::new(
            Caller::of(&origin),
            "prompts/get",
            name.into_owned(),
            params.arguments.map(RawValue::to_owned),
        );
        self.pass(errand, subject, params, meta, origin)
    }

    pub(super) fn read_resource(
        self: &Arc<Self>,
        request: &Request<'_>,
        params: &Params<'_>,
        meta: &Meta<'_>,
        origin: Origin<'_>,
    ) -> Result<Handled, RpcError> {
        let uri = params.uri();
        let uri = uri.ok_or_else(|| errors::invalid("resources/read needs a uri"))?;
        let servers = self.listing().routes.resource(&uri);
        if servers.is_empty() {
            return Err(errors::no_such_resource(&uri, origin.client.era));
        }
        let members = request.params.and_then(Members::of).unwrap_or_default();
        let errand = Errand {
            servers,
            method: "resources/read",
            params: for_server(members).to_raw(),
            hints: Hints::Caching,
        };
        let subject = Subject::new(
            Caller::of(&origin),
            "resources/read",
            uri.into_owned(),
            None,
        );
        self.pass(errand, subject, params, meta, origin)
    }

    pub(super) fn complete(
        self: &Arc<Self>,
        request: &Request<'_>,
        meta: &Meta<'_>,
        origin: Origin<'_>,
    ) -> Result<Handled, RpcError> {
        let members = request.params.and_then(Members::of).unwrap_or_default();
        let of = members.get("ref").and_then(Members::of);
        let of = of.ok_or_else(|| errors::invalid("completion/complete needs a ref"))?;
        let listing = self.listing();
        let (server, of) = match (of.text("name"), of.text("uri")) {
            (Some(name), _) => {
                let Some((server, own)) = listing.routes.prompt(&name) else {
                    return Err(errors::invalid(format!("Unknown prompt: {name}")));
                };
                (server.clone(), of.with("name", &raw(own)).to_raw())
            }
            (None, Some(uri)) => {
                let server = listing.routes.template(&uri).cloned();
                let server = server.or_else(|| listing.routes.resource(&uri).into_iter().next());
                let server =
                    server.ok_or_else(|| errors::no_such_resource(&uri, origin.client.era))?;
                (server, of.to_raw())
            }
            (None, None) => return Err(errors::invalid("the ref names no prompt and no resource")),
        };
        let errand = Errand {
            servers: vec![server],
            method: "completion/complete",
            params: members.without("_meta").with("ref", &of).to_raw(),
            hints: Hints::None,
        };
        let subject = Subject::new(
            Caller::of(&origin),
            "completion/complete",
            String::new(),
            None,
        );
        self.pass(errand, subject, &Params::default(), meta, origin)
    }

    fn pass(
        self: &Arc<Self>,
        errand: Errand,
        subject: Subject,
        params: &Params<'_>,
        meta: &Meta<'_>,
        origin: Origin<'_>,
    ) -> Result<Handled, RpcError> {
        if let Some(resumed) = self.resumed(params, meta, &origin, &subject)? {
            return Ok(Handled::Work(Box::new(resumed)));
        }
        let given = suspended::given(params.input_responses)?;
        let memory = origin.memory();
        let told = self.told_memory(&origin);
        let (client, sink) = (origin.client, origin.sink);
        let inquiry = Inquiry::new(Arc::clone(&client), sink, meta.progress_token, given, told);
        let counterpart = Arc::clone(&inquiry);
        let passage = Arc::new(Passage::new(counterpart, meta.passed_on(), None));
        let timed = Arc::clone(&inquiry);
        let work = async move {
            let late = errors::unanswered(format!("{} took longer than it may", errand.method));
            let asking = errand.run(&passage, &client);
            let answer = limited(&timed, asking).await.unwrap_or(Err(late))?;
            held_bytes(answer, &memory).map_err(|full| errors::busy(full.to_string()))
        };
        Ok(Handled::Work(Box::new(Work::new(
            inquiry,
            subject,
            work.boxed(),
        ))))
    }

    pub(super) fn subscribe(
        self: &Arc<Self>,
        params: &Params<'_>,
        origin: Origin<'_>,
    ) -> Result<Handled, RpcError> {
        let uri = params.uri();
        let uri = uri.ok_or_else(|| errors::invalid("resources/subscribe needs a uri"))?;
        let Some(mailbox) = origin.mailbox.cloned() else {
            return Err(errors::invalid("there is no session to be told of it"));
        };
        check_uri(&uri)?;
        let (inner, uri, era) = (Arc::clone(self), uri.into_owned(), origin.client.era);
        let shares = origin.who.as_ref().and_then(|who| who.shares.clone());
        let subject = Subject::new(
            Caller::of(&origin),
            "resources/subscribe",
            uri.clone(),
            None,
        );
        let told = self.told_memory(&origin);
        let inquiry = Inquiry::new(origin.client, origin.sink, None, Default::default(), told);
        let work = async move {
            inner.watch(&uri, &mailbox, shares.as_deref()).await?;
            answer::done(era)
        };
        Ok(Handled::Work(Box::new(Work::new(
            inquiry,
            subject,
            work.boxed(),
        ))))
    }

    pub(super) fn unsubscribe(
        self: &Arc<Self>,
        params: &Params<'_>,
        origin: Origin<'_>,
    ) -> Result<Handled, RpcError> {
        let uri = params.uri();
        let uri = uri.ok_or_else(|| errors::invalid("resources/unsubscribe needs a uri"))?;
        if let Some(mailbox) = origin.mailbox
            && self.subscriptions.remove(&uri, mailbox) == Then::TellServer
        {
            self.ask_in_background("resources/unsubscribe", &uri);
        }
        Ok(Handled::Now(answer::done(origin.client.era)))
    }

    /// Lets a mailbox hear of a resource.
    pub(super) async fn watch(
        &self,
        uri: &str,
        mailbox: &Arc<Mailbox>,
        shares: Option<&dyn CallerShares>,
    ) -> Result<(), CannotWatch> {
        let mut added = self.subscriptions.add(uri, mailbox, shares);
        if added == Err(NoRoom::OfAll) {
            // Some of those that are counted may be watched by nobody any more.
            self.tidy_subscriptions();
            added = self.subscriptions.add(uri, mailbox, shares);
        }
        match added.map_err(CannotWatch::NoRoom)? {
            Then::Nothing => Ok(()),
            Then::TellServer => {
                let servers = self.listing().routes.resource(uri);
                let watched = ask_first(&servers, "resources/subscribe", uri).await;
                if watched.is_err() {
                    self.subscriptions.remove(uri, mailbox);
                }
                watched.map_err(CannotWatch::Server)
            }
        }
    }

    /// Tells the server of a resource something that nobody waits for.
    pub(super) fn ask_in_background(&self, method: &'static str, uri: &str) {
        let (servers, uri) = (self.listing().routes.resource(uri), uri.to_owned());
        tokio::spawn(async move {
            if let Err(error) = ask_first(&servers, method, &uri).await {
                tracing::debug!(
                    method,
                    uri,
                    error = error.message,
                    "a server did not want it"
                );
            }
        });
    }

    pub(super) fn set_level(
        self: &Arc<Self>,
        request: &Request<'_>,
        origin: &Origin<'_>,
    ) -> Result<Handled, RpcError> {
        let members = request.params.and_then(Members::of).unwrap_or_default();
        let level = members.get("level").and_then(text).unwrap_or_default();
        if !origin.client.set_level(&level) {
            return Err(errors::invalid(format!(
                "there is no level {level:?} of messages"
            )));
        }
        if let Some(mailbox) = origin.mailbox {
            self.add_log_reader(&origin.client, mailbox);
        }
        self.tell_wanted_level();
        Ok(Handled::Now(answer::done(origin.client.era)))
    }
}

/// Why nobody tells of a resource.
#[derive(Debug, Clone)]
pub(super) enum CannotWatch {
    NoRoom(NoRoom),
    /// Its server does not.
    Server(RpcError),
}

impl From<CannotWatch> for RpcError {
    fn from(cannot: CannotWatch) -> RpcError {
        match cannot {
            CannotWatch::NoRoom(full) => errors::busy(full.to_string()),
            CannotWatch::Server(error) => error,
        }
    }
}

/// Whether a resource of this address may be watched.
pub(super) fn check_uri(uri: &str) -> Result<(), RpcError> {
    match uri.len() > WATCHED_URI_BYTES_MAX {
        true => Err(errors::invalid(format!(
            "a uri of {} bytes cannot be watched: it may have {WATCHED_URI_BYTES_MAX}; nothing is watched",
            uri.len()
        ))),
        false => Ok(()),
    }
}

/// Lets a server know which messages someone wants to hear.
pub(super) fn tell_level(server: Server, level: &str) {
    let has_log = |greeting: crate::Greeting| greeting.capabilities.get("logging").is_some();
    if !server.greeting().is_some_and(has_log) {
        return;
    }
    let params = raw(&json!({ "level": level }));
    tokio::spawn(async move {
        let until = Instant::now() + LIMIT;
        let set = server
            .ask("logging/setLevel", Some(&params), &nobodys(), until)
            .await;
        if let Err(error) = set {
            tracing::debug!(
                server = server.name(),
                error = error.message,
                "its level was not set"
            );
        }
    });
}

/// Asks one server after the other until one does it.
async fn ask_first(servers: &[Server], method: &str, uri: &str) -> Result<(), RpcError> {
    let params = raw(&json!({ "uri": uri }));
    let mut said = Err(errors::no_such_resource(uri, Era::Modern));
    for server in servers {
        let until = Instant::now() + LIMIT;
        said = server
            .ask(method, Some(&params), &nobodys(), until)
            .await
            .map(drop);
        if said.is_ok() {
            break;
        }
    }
    said
}

/// What servers are asked.
struct Errand {
    /// The next one is asked if the one before does not have it.
    servers: Vec<Server>,
    method: &'static str,
    params: Box<RawValue>,
    hints: Hints,
}

impl Errand {
    async fn run(&self, passage: &Arc<Passage>, client: &Client) -> Answer {
        let era = client.era;
        let mut said = Err(errors::unanswered("there is no server for it"));
        for server in &self.servers {
            let until = Instant::now() + LIMIT_MAX;
            said = server
                .ask(self.method, Some(&self.params), passage, until)
                .await;
            match &said {
                Err(error) if is_not_there(error) => {}
                Ok(_) | Err(_) => {
                    return match said {
                        Ok(result) => {
                            let result = hidden(server, result)?;
                            Ok(passed(&result, era, None, self.hints))
                        }
                        Err(error) => self.refused(error, client),
                    };
                }
            }
        }
        match said {
            Ok(_) => Err(errors::unanswered("there is no server for it")),
            Err(error) => self.refused(error, client),
        }
    }

    /// A server's error as its client is to read it.
    fn refused(&self, mut error: RpcError, client: &Client) -> Answer {
        let era = client.era;
        match (self.method, error.code) {
            // Nothing to propose is no failure.
            ("completion/complete", errors::METHOD_NOT_FOUND) => {
                let mut nothing =
                    json!({"completion": {"values": [], "total": 0, "hasMore": false}});
                if era.is_modern() {
                    nothing["resultType"] = json!("complete");
                }
                answer::of(&nothing)
            }
            (_, errors::VISIT_NEEDED) => Err(relayed(&error, client, None).unwrap_or_else(|| {
                // Where a person has to go is told in words: nobody sends this client there.
                let said = read_rpc_error(error.code, &error.message, error.data.as_ref());
                errors::unanswered(visible::text(said.message()))
            })),
            // The method is there: it is the server that does not have it.
            (_, errors::METHOD_NOT_FOUND) => Err(errors::unanswered(error.message)),
            ("resources/read", errors::NO_SUCH_RESOURCE) if era.is_modern() => {
                error.code = errors::INVALID_PARAMS;
                let uri = Members::of(&self.params).and_then(|params| params.text("uri"));
                let data = error.data.get_or_insert_with(|| json!({}));
                if let (Value::Object(data), Some(uri)) = (data, uri) {
                    data.entry("uri").or_insert_with(|| json!(uri));
                }
                Err(error)
            }
            _ => Err(error),
        }
    }
}

/// Whether a server says that it does not have a resource.
fn is_not_there(error: &RpcError) -> bool {
    [
        errors::NO_SUCH_RESOURCE,
        errors::INVALID_PARAMS,
        errors::METHOD_NOT_FOUND,
    ]
    .contains(&error.code)
}

/// Waits for a server; time does not count while the client is asked something.
async fn limited<T>(inquiry: &Inquiry, work: impl Future<Output = T>) -> Option<T> {
    let out_of_time = async {
        let mut left = LIMIT;
        while !left.is_zero() {
            let step = left.min(Duration::from_secs(1));
            sleep(step).await;
            if !inquiry.is_thought_about() {
                left -= step;
            }
        }
    };
    tokio::select! {
        done = work => Some(done),
        () = out_of_time => None,
    }
}

/// What a server is asked with, without what is between its client and us.
fn for_server(members: Members<'_>) -> Members<'_> {
    ["_meta", "inputResponses", "requestState"]
        .into_iter()
        .fold(members, Members::without)
}

/// A result without the secrets its server is started with.
fn hidden(server: &Server, result: Box<RawValue>) -> Result<Box<RawValue>, RpcError> {
    let settings = server.settings();
    let Some(hide) = &settings.hide else {
        return Ok(result);
    };
    let text = hide(result.get().to_owned());
    if text == result.get() {
        return Ok(result);
    }
    RawValue::from_string(text)
        .map_err(|_| errors::unanswered("the answer cannot be shown: it holds a secret"))
}

/// On nobody's behalf.
pub(super) fn nobodys() -> Arc<Passage> {
    Arc::new(Passage::new(Arc::new(Nobody(json!({}))), Vec::new(), None))
}

struct Nobody(Value);

impl Counterpart for Nobody {
    fn capabilities(&self) -> &Value {
        &self.0
    }

    fn ask(self: Arc<Self>, questions: Vec<Question>) -> BoxFuture<'static, Vec<Answered>> {
        let nobody = |_| Err(errors::unanswered("there is nobody to ask"));
        ready(questions.into_iter().map(nobody).collect()).boxed()
    }

    fn tell(&self, _: &str, _: Option<&RawValue>) {}

    fn log_level(&self) -> Option<&str> {
        None
    }
}

fn raw(value: &(impl serde::Serialize + ?Sized)) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The address in a notice of a server.
pub(super) fn uri_of(params: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Updated {
        uri: String,
    }
    let updated: Updated = steadyhand::typed_json::from_str(params.get()).ok()?;
    Some(updated.uri)
}
