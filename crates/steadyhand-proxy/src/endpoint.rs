//! `/proxy/{provider}/…`: one request from a client, to its answer.

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{Method, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use steadyhand_conversation::Host;
use tokio::time::Instant;

use super::ProxyState;
use super::ask::{Asking, Came, Collected, Flow};
use super::cases::Case;
use super::client::Content;
use super::execute::{Executing, First, Head, Place};
use super::headers;
use super::keep::Keeping;
use super::keys::Keys;
use super::look::{self, Looked};
use super::passing::{Course, Passing};
use super::report::Report;
use super::sigv4;
use super::site::{self, Chat};
use super::study::study;
use super::trouble::{self, Trouble};
use super::upstream::Upstream;
use steadyhand_server::http::Caller;
use steadyhand_server::http::limits::Whole;
use steadyhand_server::http::status::{Refused, Why};
use steadyhand_store::history::Refusal;

/// Everything that comes to the proxy.
pub(crate) async fn endpoint(state: ProxyState, caller: Caller, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let own = parts
        .uri
        .path_and_query()
        .map(|own| own.as_str().to_owned());
    let own = own.unwrap_or_default();
    let Some((site, rest)) = site::split(&own) else {
        let names = site::Site::ALL.map(site::Site::as_str).join(", ");
        return Refused::new(
            Why::NoSuchRoute,
            format!("there is no provider at {}", parts.uri.path()),
            format!("The path begins with /proxy/ and one of {names}"),
        )
        .into_response();
    };
    let path = rest.split('?').next().unwrap_or_default();
    let chat = match parts.method {
        Method::POST => Chat::at(site, path),
        _ => None,
    };
    let shape = chat.as_ref().map_or(site.provider(), Chat::error_shape);
    let mut report = Report::begin(&state, site, path, &caller.name);
    let upstreams = state.proxy.upstreams.load_full();
    let came = match upstreams.get(site) {
        Err(trouble) => Err(trouble),
        Ok(upstream) => {
            report.goes_to(upstream);
            let passage = Passage {
                state: &state,
                caller: &caller,
                upstream,
                chat: chat.as_ref(),
                path,
                rest,
                until: Instant::now() + upstream.patience.whole,
            };
            let came = passage.run(parts, body, &mut report).await;
            came.map(|came| (came, passage.until, upstream))
        }
    };
    match came {
        Ok((Came::Whole(head, bytes), _, _)) => {
            report.answered();
            let mut response = Response::from_parts(head, Body::from(bytes));
            *response.headers_mut() =
                headers::of_answer(std::mem::take(response.headers_mut()), report.all_fixes());
            response
        }
        Ok((Came::Flows(flow), until, upstream)) => flowing(*flow, &state, upstream, until, report),
        Ok((Came::Told(telling), _, _)) => telling.respond(report),
        Err(trouble) => {
            report.status(trouble.status().as_u16(), false);
            let words = report.failed(&trouble);
            let mut response = trouble::response(shape, &trouble, &words);
            headers::say(response.headers_mut(), report.all_fixes());
            response
        }
    }
}

/// An answer that passes as it comes.
fn flowing(
    flow: Flow,
    state: &ProxyState,
    upstream: &Upstream,
    until: Instant,
    mut report: Report,
) -> Response {
    let Flow {
        mut head,
        body,
        before,
        tap,
        ending,
    } = flow;
    head.headers = headers::of_answer(head.headers, report.all_fixes());
    report.status(head.status.as_u16(), tap.is_some());
    let mut passing = Passing::new(
        body,
        Course {
            patience: upstream.patience,
            until,
            closing: state.proxy.ending.clone().cancelled_owned(),
            repair: upstream.repair,
            report,
        },
    )
    .after(before);
    if let Some(tap) = tap {
        passing = passing.tapped(tap);
    }
    if let Some((shape, framing)) = ending {
        passing = passing.ending(shape, framing);
    }
    Response::from_parts(head, Body::new(passing))
}

/// One request on its way.
struct Passage<'a> {
    state: &'a ProxyState,
    caller: &'a Caller,
    upstream: &'a Upstream,
    chat: Option<&'a Chat>,
    /// The provider's own path.
    path: &'a str,
    /// The same with its query.
    rest: &'a str,
    until: Instant,
}

impl Passage<'_> {
    async fn run(
        &self,
        mut parts: Parts,
        body: Body,
        report: &mut Report,
    ) -> Result<Came, Trouble> {
        if self.state.server.closing.is_cancelled() {
            return Err(Trouble::Closing);
        }
        let uri = self.upstream.uri(self.rest)?;
        if self
            .state
            .server
            .access
            .load()
            .is_shown_in_the_usual_header(&parts.headers)
        {
            parts.headers.remove(header::AUTHORIZATION);
        }
        let asking = Asking {
            proxy: &self.state.proxy,
            upstream: self.upstream,
            until: self.until,
        };
        let is_signed = sigv4::is_signed(&parts.headers);
        let is_signed_anew = is_signed && self.upstream.aws.is_some();
        let Some(chat) = self.chat else {
            let content = match is_signed_anew {
                true => Content::Whole(self.whole(body).await?.bytes),
                false => Content::Passing(body),
            };
            let is_posted = parts.method == Method::POST;
            let request = outgoing(parts, uri, is_signed_anew);
            let (head, body) = asking.send(request, content).await?;
            let generation = match is_posted {
                true => site::generation(self.upstream.site, self.path),
                false => None,
            };
            return Ok(Asking::pass(head, body, generation));
        };
        let keys = Keys::of(&parts.headers, &parts.uri);
        let mut whole = self.whole(body).await?;
        let mut looked = self.looked(chat, &parts, &mut whole).await?;
        if is_signed && !is_signed_anew && !looked.fixes.is_empty() {
            report.left_unmended(std::mem::take(&mut looked.fixes));
            looked.bytes = whole.bytes.clone();
        }
        let sent = looked.bytes;
        report.asked(looked.model.as_deref(), looked.fixes);
        if self.upstream.keep {
            report.keep(Keeping::new(chat.provider, sent.clone(), keys.scrubber()));
        }
        if let Some((executing, request)) = self.executing(chat, &parts, &uri, &sent) {
            drop(whole);
            return match executing.begin(request, report).await? {
                First::Came(came) => Ok(came),
                First::Refused(head, body, sent) => {
                    report.status(head.status.as_u16(), false);
                    let answer = (head, body);
                    self.refused(&asking, chat, answer, &sent, &keys, report)
                        .await
                }
            };
        }
        let request = outgoing(parts, uri, true);
        let content = Content::Whole(sent.clone());
        let (head, body) = asking.send(request, content).await?;
        drop(whole);
        if matches!(head.status.as_u16(), 400 | 422) {
            report.status(head.status.as_u16(), false);
            return self
                .refused(&asking, chat, (head, body), &sent, &keys, report)
                .await;
        }
        asking
            .answer(chat, looked.streams, (head, body), report)
            .await
    }

    /// The body of a request.
    async fn whole(&self, body: Body) -> Result<Whole, Trouble> {
        let setting = format!("body = \"…\" under [proxy.{}]", self.upstream.site.as_str());
        let limit = self.upstream.body_bytes;
        Ok(Whole::read_up_to(
            body,
            &self.state.server,
            &self.caller.account,
            limit,
            &setting,
        )
        .await?)
    }

    /// The request with tools of ours, where that is configured and there are any to offer.
    fn executing(
        &self,
        chat: &Chat,
        parts: &Parts,
        uri: &hyper::Uri,
        sent: &Bytes,
    ) -> Option<(Executing, Value)> {
        let execute = self.upstream.execute.as_ref()?;
        // Bedrock's streams are binary and its tools stand elsewhere: tools are not run for it.
        if chat.host == Some(Host::Bedrock) {
            return None;
        }
        let head = Head {
            method: parts.method.clone(),
            uri: uri.clone(),
            headers: parts.headers.clone(),
            until: self.until,
        };
        let place = Place {
            state: self.state,
            upstream: self.upstream,
            chat,
            caller: self.caller,
        };
        Executing::prepare(place, execute, head, sent)
    }

    /// The conversation, mended where it must be. What we do not read is forwarded as it is.
    async fn looked(
        &self,
        chat: &Chat,
        parts: &Parts,
        whole: &mut Whole,
    ) -> Result<Looked, Trouble> {
        let is_plain = parts
            .headers
            .get(header::CONTENT_ENCODING)
            .is_none_or(|coding| coding == "identity");
        if !self.upstream.repair || !is_plain {
            return Ok(Looked::untouched(&whole.bytes));
        }
        let host = self.upstream.host_of(chat.provider);
        if let Some(sound) = look::glanced(chat, host, &whole.bytes) {
            return Ok(sound);
        }
        match whole.make_room(look::VALUES_MAX)? {
            true => {
                let large = &self.state.server.admission.large_conversations;
                let turns = (large, &**self.caller.account.id());
                Ok(look::look(chat, host, &whole.bytes, turns).await)
            }
            false => Ok(Looked::untouched(&whole.bytes)),
        }
    }

    /// The provider says no. Where that is by a rule we do not know, the case is kept; the answer is its own.
    async fn refused(
        &self,
        asking: &Asking<'_>,
        chat: &Chat,
        (head, mut body): (axum::http::response::Parts, hyper::body::Incoming),
        sent: &Bytes,
        keys: &Keys,
        report: &mut Report,
    ) -> Result<Came, Trouble> {
        let said = match asking.collect(&mut body).await? {
            Collected::Whole(said) => said,
            Collected::More(before) => {
                return Ok(Came::Flows(Box::new(Flow {
                    head,
                    body,
                    before,
                    tap: None,
                    ending: None,
                })));
            }
        };
        if let Some(refusal) = self.studied(chat, &head, &said, sent, keys, report) {
            report.refused(refusal);
        }
        Ok(Came::Whole(head, said))
    }

    fn studied(
        &self,
        chat: &Chat,
        head: &axum::http::response::Parts,
        said: &Bytes,
        sent: &Bytes,
        keys: &Keys,
        report: &Report,
    ) -> Option<Refusal> {
        let decoder = super::coding::Decoder::of(&head.headers)?;
        let said = decoder.whole(said, 4 * 1024 * 1024).ok()?;
        let request: Value = serde_json::from_slice(sent).ok()?;
        let options = chat.options(self.upstream.host_of(chat.provider));
        let mut studied = study(chat.provider, &options, &request, &said)?;
        let scrubber = keys.scrubber();
        if let Some(scrubbed) = scrubber.text(&studied.said) {
            studied.said = scrubbed;
        }
        let is_known = !studied.known.is_empty();
        let case = Case {
            provider: chat.provider,
            path: self.path,
            status: head.status.as_u16(),
            studied: &studied,
            request: &request,
            fixes: report.fixes(),
        };
        // Rare, and a small file: worth the moment that this thread waits for the disk.
        let case = match is_known {
            true => None,
            false => self.state.proxy.cases.keep(&case),
        };
        Some(Refusal {
            message: studied.said,
            at: studied.at,
            is_known,
            case,
        })
    }
}

/// The head of the request as the provider gets it. `is_whole` where its body is sent at once.
fn outgoing(parts: Parts, uri: hyper::Uri, is_whole: bool) -> Parts {
    let (mut head, ()) = Request::new(()).into_parts();
    head.method = parts.method;
    head.uri = uri;
    head.headers = headers::of_request(parts.headers, is_whole);
    head
}
