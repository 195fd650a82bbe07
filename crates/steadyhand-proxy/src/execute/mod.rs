//! `execute = true`: the tools registered here are offered to the model, their calls are run and answered inside, and
//! the client sees what the model says in the end; streaming, its words as they come.

mod grow;
mod hidden;
mod offer;
mod read;
mod speak;
mod tell;

use axum::body::Bytes;
use axum::http::response::Parts;
use axum::http::{HeaderMap, Method, Request, Uri, header};
use hyper::body::Incoming;
use serde_json::Value;
use steadyhand_conversation::{Turn, repair_with};
use tokio::time::Instant;

use super::ProxyState;
use super::ask::{self, Asking, Came, Collected};
use super::client::Content;
use super::headers;
use super::report::Report;
use super::sanitize::mended;
use super::site::Chat;
use super::tap::{self, Framing};
use super::trouble::Trouble;
use super::upstream::{Execute, Upstream};
use offer::Offer;
use steadyhand_server::http::Caller;

pub(super) use hidden::Hidden;
pub(super) use tell::Telling;

/// One request whose tools are run here.
pub(super) struct Executing {
    state: ProxyState,
    upstream: Upstream,
    chat: Chat,
    caller: Caller,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    until: Instant,
    offer: Offer,
    rounds_max: u32,
}

/// Who asks whom for what.
pub(super) struct Place<'a> {
    pub(super) state: &'a ProxyState,
    pub(super) upstream: &'a Upstream,
    pub(super) chat: &'a Chat,
    pub(super) caller: &'a Caller,
}

/// What a request is made of, each time it is sent.
pub(super) struct Head {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) until: Instant,
}

/// What the first answer is.
pub(super) enum First {
    /// A refusal, and the request it is for.
    Refused(Parts, Incoming, Bytes),
    Came(Came),
}

/// The conversation inside.
struct Inside {
    request: Value,
    /// Turns that the client does not see.
    hidden: Vec<Value>,
    rounds: u32,
}

/// What follows an answer.
enum Next {
    /// The client gets this; whether it is another than the provider sent.
    Final(Value, bool),
    /// The model is asked again.
    Again,
}

impl Executing {
    /// None where there is nothing to offer, or nobody wants it: then the request is forwarded as it is.
    pub(super) fn prepare(
        place: Place<'_>,
        execute: &Execute,
        head: Head,
        sent: &Bytes,
    ) -> Option<(Executing, Value)> {
        let Place {
            state,
            upstream,
            chat,
            caller,
        } = place;
        let mut request: Value = serde_json::from_slice(sent).ok()?;
        let offer = Offer::of(&state.server, caller, chat.provider, execute, &request)?;
        let hidden = &state.proxy.hidden;
        hidden.restore(chat.provider, caller.account.id(), &mut request);
        offer.put(&mut request);
        let mut headers = headers::of_request(head.headers, true);
        // We have to read the answers.
        headers.remove(header::ACCEPT_ENCODING);
        let executing = Executing {
            state: state.clone(),
            upstream: upstream.clone(),
            chat: chat.clone(),
            caller: caller.clone(),
            method: head.method,
            uri: head.uri,
            headers,
            until: head.until,
            offer,
            rounds_max: execute.rounds_max,
        };
        let request = executing.mended(request);
        Some((executing, request))
    }

    /// Asks for the first time. What follows depends on how it is answered.
    pub(super) async fn begin(self, request: Value, report: &mut Report) -> Result<First, Trouble> {
        let (head, body) = self.send(&request).await?;
        if !head.status.is_success() {
            let sent = request.to_string().into();
            return Ok(First::Refused(head, body, sent));
        }
        let inside = Inside {
            request,
            hidden: Vec::new(),
            rounds: 0,
        };
        let framing = self.framing(&inside.request, &head);
        report.status(head.status.as_u16(), framing.is_some());
        if let Some(framing) = framing {
            return Ok(First::Came(Came::Told(Box::new(Telling {
                executing: self,
                inside,
                head,
                body,
                framing,
                turn: Default::default(),
            }))));
        }
        self.whole(inside, head, body, report)
            .await
            .map(First::Came)
    }

    /// Answers that come at once: the client gets the last one.
    async fn whole(
        &self,
        mut inside: Inside,
        mut head: Parts,
        mut body: Incoming,
        report: &mut Report,
    ) -> Result<Came, Trouble> {
        loop {
            let bytes = match self.asking().collect(&mut body).await? {
                Collected::Whole(bytes) => bytes,
                Collected::More(_) => {
                    return Err(Trouble::Garbage("it is too large".to_owned()));
                }
            };
            report.status(head.status.as_u16(), false);
            if !head.status.is_success() {
                return Ok(Came::Whole(head, bytes));
            }
            let answer: Value = serde_json::from_slice(&bytes).map_err(|error| {
                Trouble::Garbage(format!(
                    "it is no JSON: {}",
                    steadyhand::plain_words::json(&error)
                ))
            })?;
            read::refuse_repeated_name(&bytes)?;
            let seen = tap::checked(self.chat.provider, answer.clone());
            let problems = seen.problems.clone();
            report.saw(seen);
            match self.next(&mut inside, answer).await? {
                Next::Final(answer, false) if self.upstream.repair => {
                    let provider = self.chat.provider;
                    let mended = mended(provider, &bytes, answer, &problems, report)?;
                    if mended.is_some() {
                        head.headers.remove(header::CONTENT_LENGTH);
                    }
                    return Ok(Came::Whole(head, mended.unwrap_or(bytes)));
                }
                Next::Final(_, false) => return Ok(Came::Whole(head, bytes)),
                Next::Final(answer, true) => {
                    head.headers.remove(header::CONTENT_LENGTH);
                    return Ok(Came::Whole(head, answer.to_string().into()));
                }
                Next::Again => (head, body) = self.send(&inside.request).await?,
            }
        }
    }

    /// Runs the calls of an answer that are ours.
    async fn next(&self, inside: &mut Inside, answer: Value) -> Result<Next, Trouble> {
        let provider = self.chat.provider;
        let format = provider.format();
        let is_ours = |name: &str| self.offer.is_ours(name);
        let all = Turn::read(provider, &answer);
        let count = all
            .calls()
            .iter()
            .filter(|call| is_ours(&call.name))
            .count();
        if count == 0 {
            self.remember(inside, &all);
            return Ok(Next::Final(answer, false));
        }
        if inside.rounds >= self.rounds_max {
            // It was told to answer, and calls once more: nobody would answer that call.
            let mut theirs = answer;
            format.keep_calls(&mut theirs, &|name| !is_ours(name));
            return Ok(Next::Final(theirs, true));
        }
        let mut own = answer.clone();
        format.keep_calls(&mut own, &is_ours);
        let turn = Turn::read_named(provider, &own, |name| self.offer.original(name));
        let calls = turn.calls().iter();
        let calls = calls.map(|call| self.caller.of(call.clone())).collect();
        // As outcomes, and as messages.
        let held = self
            .state
            .server
            .execute_all(calls, &self.caller, 2)
            .await?;
        let results = turn.results(&held.outcomes);
        drop(held);
        if count < all.calls().len() {
            // Ours are answered here, theirs by the client: the model sees one after the other.
            format.leave_out_words(&mut own);
            inside.hidden.extend(format.answer_messages(&own));
            inside.hidden.extend(results);
            let mut theirs = answer;
            format.keep_calls(&mut theirs, &|name| !is_ours(name));
            self.remember(inside, &Turn::read(provider, &theirs));
            return Ok(Next::Final(theirs, true));
        }
        let mut turn = format.answer_messages(&answer);
        turn.extend(results);
        inside.hidden.extend(turn.iter().cloned());
        let mut request = std::mem::take(&mut inside.request);
        grow::append(provider, &mut request, turn);
        inside.rounds += 1;
        self.offer.relax(&mut request);
        if inside.rounds >= self.rounds_max {
            self.offer.end(&mut request);
        }
        inside.request = self.mended(request);
        Ok(Next::Again)
    }

    /// When the client goes on with its own calls, the model must see what was before them.
    fn remember(&self, inside: &Inside, theirs: &Turn) {
        if let Some(call) = theirs.calls().first()
            && !inside.hidden.is_empty()
        {
            let hidden = &self.state.proxy.hidden;
            hidden.remember(self.caller.account.id(), &call.id, inside.hidden.clone());
        }
    }

    fn mended(&self, request: Value) -> Value {
        let options = self.chat.options(self.upstream.host_of(self.chat.provider));
        repair_with(self.chat.provider, &options, request).0
    }

    fn framing(&self, request: &Value, head: &Parts) -> Option<Framing> {
        let streams = request["stream"] == true;
        ask::framing(&self.chat, streams, &head.headers)
    }

    async fn send(&self, request: &Value) -> Result<(Parts, Incoming), Trouble> {
        let (mut head, ()) = Request::new(()).into_parts();
        head.method = self.method.clone();
        head.uri = self.uri.clone();
        head.headers = self.headers.clone();
        let content = Content::Whole(request.to_string().into());
        self.asking().send(head, content).await
    }

    fn asking(&self) -> Asking<'_> {
        Asking {
            proxy: &self.state.proxy,
            upstream: &self.upstream,
            until: self.until,
        }
    }
}
