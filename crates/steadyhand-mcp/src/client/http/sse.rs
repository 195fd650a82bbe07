//! HTTP+SSE, the way of 2024: one stream for everything the server says, and an endpoint it names for what we say.

use std::sync::Arc;

use hyper::StatusCode;

use super::client::Body;
use super::event_reader::{EventReader, NextEvent};
use super::exchange::{content_type, get, is_same_place, joined};
use super::{Kind, Link, TransportError, listening_stream};

/// A stream whose endpoint is known.
pub(crate) struct Opened {
    body: Body,
    /// What came with the endpoint already.
    pending: Vec<u8>,
}

/// Opens the stream and waits for the endpoint. Whoever calls bounds the time.
pub(crate) async fn open(link: &Link) -> Result<Opened, TransportError> {
    let url = link.remote.url.clone();
    let response = get(link, &url, None, None).await.map_err(|no| {
        let kind = match no.was_sent {
            true => Kind::Broken,
            false => Kind::Unreachable,
        };
        TransportError::new(kind, link.hidden(no.why))
    })?;
    link.mux.hear();
    let status = response.status();
    if status != StatusCode::OK {
        return Err(TransportError::status(
            status.as_u16(),
            response.headers(),
            "",
        ));
    }
    if content_type(response.headers()) != Some("text/event-stream") {
        let text = "gave no stream of events";
        return Err(TransportError::new(Kind::NotMcp, text));
    }
    let mut events = EventReader::new(link, response.into_body(), &[]);
    while let NextEvent::Event(event) = events.next().await {
        if event.kind != "endpoint" {
            continue;
        }
        let said = String::from_utf8_lossy(&event.data).into_owned();
        let endpoint = joined(&url, said.trim());
        // What we send may hold secrets: they stay where they were meant to go.
        let endpoint = endpoint.filter(|endpoint| is_same_place(&url, endpoint));
        let Some(endpoint) = endpoint else {
            let said = link.hidden(super::transport_error::beginning(&said));
            let text = format!("names an endpoint somewhere else: {said}");
            return Err(TransportError::new(Kind::NotMcp, text));
        };
        link.url.store(Arc::new(endpoint));
        let (body, pending) = events.into_rest();
        return Ok(Opened { body, pending });
    }
    let text = "ended its stream before it named an endpoint";
    Err(TransportError::new(Kind::NotMcp, text))
}

/// Reads the stream until it ends, which is the end of everything that waits for it.
pub(crate) async fn keep(link: Arc<Link>, opened: Opened) {
    let read = listening_stream::read(&link, opened.body, &opened.pending, |_| {}).await;
    let why = match read {
        Ok(()) => "the server ended the stream".to_owned(),
        Err(why) => format!("the stream broke: {why}"),
    };
    link.tell_broken(&TransportError::new(Kind::Broken, link.hidden(why)));
}
