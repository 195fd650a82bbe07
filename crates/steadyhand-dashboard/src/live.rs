//! One address, three answers: the page, the page again whenever it changes (SSE), or its inner part once.
//!
//! An update is always the whole inner part, so nothing is lost when one is missed; compressed against what was sent
//! before, it costs little more than what has changed in it.

use std::convert::Infallible;
use std::future::Future;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream;
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{Address, Page, Request, assets, refusal, shell};
use steadyhand_config::role::Right;
use steadyhand_runtime::admission::{CallerAccount, Slot};
use steadyhand_server::http::App;
use steadyhand_server::http::browser_login::identify;
use steadyhand_server::http::status::Refused;

/// The shortest time between two updates.
const PACE: Duration = Duration::from_millis(1000);
/// Some of what a page shows changes without an event: what a server prints, the minute of a chart.
const LOOK: Duration = Duration::from_secs(3);
/// A comment when nothing happens, for what stands between and closes silent connections.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const RETRY_MS: u64 = 1000;
/// What a script asks with for the inner part alone.
const PART: &str = "steadyhand-part";
/// What it says in a query to have already.
const KNOWN: &str = "_known";

/// Answers with the page in the form that was asked for.
pub(super) async fn show<F, Fut>(app: Arc<App>, address: Address, make: F) -> Response
where
    F: Fn(Request) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Page, Refused>> + Send,
{
    let is_part = address.headers.get(PART).is_some();
    let is_stream = accepts_events(&address.headers);
    let mut query = address.query.clone();
    let known = query.iter().position(|(name, _)| name == KNOWN);
    let known = known.map(|at| query.remove(at).1);
    let identity = Arc::clone(&address.identity);
    let request = move || Request {
        app: Arc::clone(&app),
        query: query.clone(),
        identity: Arc::clone(&identity),
    };
    let make = move |request: Request| {
        let desk = request.app.desk.clone();
        let made = make(request);
        async move {
            let mut page = made.await?;
            page.waiting = desk.waiting().len();
            Ok(page)
        }
    };
    if is_stream {
        return stream(request, make, &address.headers, &address.account, known);
    }
    let page = match make(request()).await {
        Ok(page) => page,
        Err(refused) => return refusal(&address.headers, &refused),
    };
    if is_part {
        return part(&page, &address.headers);
    }
    let version = version(&update(&page));
    let html = shell::whole(
        &address.headers,
        Some(&address.identity),
        &page,
        Some((&address.uri, &version)),
    );
    html.into_response()
}

/// What is sent to a page that is there already. It counts seconds by itself: what only the clock changes is left
/// out, so that nothing is sent when nothing happens. Foreign texts have no quotation marks of their own here.
fn update(page: &Page) -> String {
    let html = shell::inner(page).into_string();
    let mut rest = html.as_str();
    let mut still = String::with_capacity(html.len());
    let moving = [
        "class=\"tick\"",
        "class=\"moves\" transform=\"",
        "data-start=\"",
    ];
    while let Some((at, mark)) = moving
        .iter()
        .filter_map(|mark| Some((rest.find(mark)?, *mark)))
        .min()
    {
        let (before, after) = rest.split_at(at + mark.len());
        still.push_str(before);
        rest = match mark {
            // The text of the element.
            "class=\"tick\"" => {
                let text = after.find('>').map_or(0, |end| end + 1);
                still.push_str(&after[..text]);
                &after[after[text..].find('<').map_or(text, |end| text + end)..]
            }
            // The rest of its attributes.
            "data-start=\"" => {
                let value = after.find('"').map_or(0, |end| end + 1);
                still.push_str(&after[..value]);
                &after[after.find('>').unwrap_or(value)..]
            }
            _ => &after[after.find('"').unwrap_or(0)..],
        };
    }
    still.push_str(rest);
    still
}

/// The inner part once; nothing where it is what the script has.
fn part(page: &Page, headers: &HeaderMap) -> Response {
    let html = update(page);
    let version = version(&html);
    let known = headers.get(PART).is_some_and(|known| *known == *version);
    let mut response = match known {
        true => StatusCode::NO_CONTENT.into_response(),
        false => axum::response::Html(html).into_response(),
    };
    if let Ok(version) = HeaderValue::from_str(&version) {
        response.headers_mut().insert(PART, version);
    }
    if let Ok(build) = HeaderValue::from_str(assets::build()) {
        response.headers_mut().insert("steadyhand-build", build);
    }
    response
}

fn accepts_events(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT);
    accept.is_some_and(|accept| accept == "text/event-stream")
}

fn version(html: &str) -> String {
    let digest = Sha256::digest(html.as_bytes());
    digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn stream<F, Fut>(
    request: impl Fn() -> Request + Send + Sync + 'static,
    make: F,
    headers: &HeaderMap,
    account: &CallerAccount,
    known: Option<String>,
) -> Response
where
    F: Fn(Request) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Page, Refused>> + Send,
{
    let slot = match request().app.admission.pages.take(account) {
        Ok(slot) => slot,
        Err(full) => return (StatusCode::SERVICE_UNAVAILABLE, full.to_string()).into_response(),
    };
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_packed = text("accept-encoding").is_some_and(|accepted| accepted.contains("gzip"));
    let app = request().app;
    // What it got last, or what it had when it was opened.
    let known = text("last-event-id").map(str::to_owned).or(known);
    let updates = Updates {
        news: app.live.news(),
        closing: app.live.closing(),
        sent: known.unwrap_or_default(),
        drawn_at: None,
        pack: is_packed.then(|| GzEncoder::new(Vec::new(), Compression::new(6))),
        opened_by: (Arc::clone(&app), headers.clone()),
        make: move || make(request()),
        _slot: slot,
    };
    let pieces = stream::unfold(updates, |mut updates| async move {
        let piece = updates.next().await?;
        Some((Ok::<Bytes, Infallible>(piece), updates))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    let mut set = |name: &'static str, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    set("content-type", "text/event-stream");
    set("cache-control", "no-store");
    // nginx would keep events to itself until it has a page of them.
    set("x-accel-buffering", "no");
    if is_packed {
        set("content-encoding", "gzip");
    }
    response
}

/// Whether who opened the page may still see it: a key may have been revoked since.
async fn is_let_in((app, headers): &(Arc<App>, HeaderMap)) -> bool {
    // They were let in when the page was opened: this is no attempt of any address.
    let nowhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let identity = identify(app, headers, nowhere).await;
    identity.is_ok_and(|identity| identity.may(Right::View))
}

/// What one open page gets.
struct Updates<M> {
    news: watch::Receiver<u64>,
    closing: CancellationToken,
    /// The version the page has.
    sent: String,
    drawn_at: Option<Instant>,
    pack: Option<GzEncoder<Vec<u8>>>,
    opened_by: (Arc<App>, HeaderMap),
    make: M,
    _slot: Slot,
}

impl<M, Fut> Updates<M>
where
    M: Fn() -> Fut,
    Fut: Future<Output = Result<Page, Refused>>,
{
    /// The next piece of the stream; none when the server ends, or the page is about something that is gone.
    async fn next(&mut self) -> Option<Bytes> {
        let is_first = self.drawn_at.is_none();
        let silent_until = Instant::now() + KEEP_ALIVE;
        loop {
            if !self.wait().await {
                return None;
            }
            if !is_let_in(&self.opened_by).await {
                return None;
            }
            self.drawn_at = Some(Instant::now());
            let page = (self.make)().await.ok()?;
            let html = update(&page);
            let version = version(&html);
            let mut text = String::new();
            if is_first {
                let build = assets::build();
                text.push_str(&format!(
                    "retry: {RETRY_MS}\nevent: hello\ndata: {build}\n\n"
                ));
            }
            if version != self.sent {
                text.push_str(&event(&version, &html));
                self.sent = version;
            } else if Instant::now() >= silent_until {
                text.push_str(": still here\n\n");
            }
            if !text.is_empty() {
                return Some(self.packed(text));
            }
        }
    }

    /// Until something may have changed, and no sooner than a moment after the last time. False when it is over.
    async fn wait(&mut self) -> bool {
        let Some(drawn_at) = self.drawn_at else {
            return !self.closing.is_cancelled();
        };
        let closing = self.closing.clone();
        let changed = async {
            sleep_until(drawn_at + PACE).await;
            // The sender lives as long as the server.
            let _ = timeout_at(drawn_at + LOOK, self.news.changed()).await;
        };
        tokio::select! {
            () = changed => true,
            () = closing.cancelled() => false,
        }
    }

    fn packed(&mut self, text: String) -> Bytes {
        let Some(pack) = &mut self.pack else {
            return text.into();
        };
        // Writing into memory does not fail.
        let _ = pack.write_all(text.as_bytes());
        let _ = pack.flush();
        std::mem::take(pack.get_mut()).into()
    }
}

fn event(version: &str, html: &str) -> String {
    let mut text = format!("id: {version}\nevent: page\n");
    for line in html.lines() {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Menu, format};
    use maud::html;

    fn page(body: maud::Markup) -> Page {
        Page::new("T", Menu::None, body)
    }

    #[test]
    fn what_only_the_clock_changes_is_no_change() {
        let at = |ms: u64, x: i64, width: u64| {
            update(&page(html! {
                p { "runs " (format::running(ms, Some(1000.0))) " and then " span.tick data-until="5" { (x) } }
                svg { g.moves transform=(format!("translate({x} 0)")) { rect.info x="4" data-start="9" width=(width) {} } }
                p { "the end" }
            }))
        };
        let still = at(1, 2, 3);
        assert_eq!(still, at(1, 400, 500));
        assert_ne!(still, at(2, 2, 3));
        assert!(
            still.contains("of 1.0 s") && still.contains("the end"),
            "{still}"
        );
        assert!(still.contains("data-start=\"9\"></rect>"), "{still}");
        let foreign = "class=\"tick\" data-start=\"x";
        let quoted = update(&page(html! { b { (foreign) } }));
        assert!(
            quoted.contains("class=&quot;tick&quot; data-start=&quot;x"),
            "{quoted}"
        );
    }
}
