//! Sends requests to providers on pooled connections. Nothing runs twice: a request is sent again only where it is
//! certain that the provider has not processed it.

use std::sync::OnceLock;

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Uri, Version, header};
use hyper::body::{Body as _, Incoming};
use hyper::{Request, Response};

use super::connection::{Dialer, Wire};
use super::pool::{Connection, ConnectionPool};
use super::trouble::Trouble;

/// What a request carries.
pub(super) enum Content {
    Whole(Bytes),
    /// As it comes from the client.
    Passing(Body),
}

#[derive(Default)]
pub(super) struct Client {
    dialer: OnceLock<Dialer>,
    pool: ConnectionPool,
}

impl Client {
    /// Sends a request, whose address is absolute. Dropping the future, or the body of the answer, ends the exchange
    /// and its connection.
    pub(super) async fn send(
        &self,
        mut head: Parts,
        content: Content,
    ) -> Result<Response<Incoming>, Trouble> {
        let uri = prepare(&mut head)?;
        let host = format!(
            "{}://{}",
            uri.scheme_str().unwrap_or_default(),
            uri.authority().map(|it| it.as_str()).unwrap_or_default()
        );
        let (copy, body) = match content {
            Content::Whole(bytes) => (Some((head.clone(), bytes.clone())), Body::from(bytes)),
            Content::Passing(body) if body.is_end_stream() => {
                (Some((head.clone(), Bytes::new())), body)
            }
            Content::Passing(body) => (None, body),
        };
        let mut request = Request::from_parts(head, body);
        let mut may_use_again = true;
        loop {
            let pooled = match may_use_again {
                true => self.pool.take(&host),
                false => None,
            };
            let is_used_again = pooled.is_some();
            let mut connection = match pooled {
                Some(connection) => connection,
                None => self.dial(&uri, &host).await?,
            };
            let mut error = match connection.sender.try_send_request(request).await {
                Ok(response) => {
                    if closes(&response) {
                        connection.wire.announce_close();
                    }
                    self.pool.give_back(&host, connection);
                    return Ok(response);
                }
                Err(error) => error,
            };
            let unsent = error.take_message();
            let error = error.into_error();
            // On a connection of its own a request fails as it would without us.
            if !is_used_again {
                return Err(Trouble::of_exchange(&error));
            }
            tracing::debug!(%error, host, "a connection that was kept is closed");
            request = match (unsent, &copy) {
                (Some(unsent), _) => unsent,
                (None, Some((head, bytes))) if may_be_repeated(head, bytes, &connection.wire) => {
                    may_use_again = false;
                    Request::from_parts(head.clone(), Body::from(bytes.clone()))
                }
                (None, _) => return Err(Trouble::of_exchange(&error)),
            };
        }
    }

    async fn dial(&self, uri: &Uri, host: &str) -> Result<Connection, Trouble> {
        let dialer = self.dialer.get_or_init(Dialer::new);
        let dialled = dialer.dial(uri).await;
        let dialled = dialled.map_err(|error| Trouble::of_dialling(&*error))?;
        Ok(self.pool.run(host, dialled))
    }
}

/// Whether a request that was sent, and got no answer, may be sent again. Of those that change something only one whose
/// end was never written: no server processes half a request. For the others RFC 9110, 9.2.2 leaves it to their sender.
fn may_be_repeated(head: &Parts, bytes: &Bytes, wire: &Wire) -> bool {
    let is_safe = matches!(head.method, Method::GET | Method::HEAD | Method::OPTIONS);
    is_safe || wire.written() < bytes.len() as u64
}

/// The head as it is written to a server itself; gives back the whole address.
fn prepare(head: &mut Parts) -> Result<Uri, Trouble> {
    let uri = head.uri.clone();
    let unusable = |_| Trouble::NotSetUp("its address cannot be used".to_owned());
    let host = HeaderValue::from_str(&host_of(&uri))
        .map_err(|_| ())
        .map_err(unusable)?;
    head.headers.insert(header::HOST, host);
    head.version = Version::HTTP_11;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    head.uri = path.parse().map_err(|_| ()).map_err(unusable)?;
    Ok(uri)
}

/// The host of an address, as it stands in a request's head: with its port, where that is not the usual one.
pub(super) fn host_of(uri: &Uri) -> String {
    let host = uri.host().unwrap_or_default();
    let usual_port = match uri.scheme_str() {
        Some("https") => 443,
        _ => 80,
    };
    match uri.port_u16() {
        Some(port) if port != usual_port => format!("{host}:{port}"),
        _ => host.to_owned(),
    }
}

/// Whether an answer says that its connection ends with it.
fn closes(response: &Response<Incoming>) -> bool {
    let said = response.headers().get_all(header::CONNECTION).iter();
    let mut said = said.filter_map(|value| value.to_str().ok());
    response.version() == Version::HTTP_10
        || said.any(|value| {
            let mut words = value.split(',');
            words.any(|word| word.trim().eq_ignore_ascii_case("close"))
        })
}
