//! What is forwarded of a message's head: everything but what concerns one connection only, and what is ours.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use steadyhand_conversation::Fix;

use steadyhand_server::http::TOKEN_HEADER;

/// Says what was mended: `missing_result;at="/messages/1/content/0", bad_call_id;in=response;at="/content/0/id", …`.
const FIXES_HEADER: &str = "steadyhand-fixes";
/// Says what was not mended, because the request is signed and we have no keys to sign it anew.
const UNMENDED_HEADER: &str = "steadyhand-unmended";
/// Fixes that are listed; the others are counted.
const LISTED_MAX: usize = 32;
const PLACE_CHARS_MAX: usize = 100;

/// Ours: nobody else understands them.
const OWN: [&str; 2] = [TOKEN_HEADER, "steadyhand-caller"];

/// A browser sends the cookies of this server, its login among them, to everything that has its address.
const COOKIES: [&str; 2] = ["cookie", "cookie2"];

/// They concern one connection (RFC 9110, 7.6.1), or are made anew for the next one.
const OF_A_CONNECTION: [HeaderName; 9] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::EXPECT,
    HeaderName::from_static("keep-alive"),
];

/// The head of a request, for the provider. `is_whole` where the body is sent at once: its length is counted anew.
pub(super) fn of_request(mut headers: HeaderMap, is_whole: bool) -> HeaderMap {
    drop_those_of_a_connection(&mut headers);
    headers.remove(header::HOST);
    for own in OWN.iter().chain(&COOKIES) {
        headers.remove(*own);
    }
    if is_whole {
        headers.remove(header::CONTENT_LENGTH);
    }
    headers
}

/// The head of an answer, for the client.
pub(super) fn of_answer(mut headers: HeaderMap, fixes: Fixes<'_>) -> HeaderMap {
    drop_those_of_a_connection(&mut headers);
    say(&mut headers, fixes);
    headers
}

/// Says in a head what was mended, and what could not be.
pub(super) fn say(headers: &mut HeaderMap, fixes: Fixes<'_>) {
    if let Some(listed) = listed(fixes.of_request, fixes.of_answer) {
        headers.insert(FIXES_HEADER, listed);
    }
    if let Some(listed) = listed(fixes.left_out, &[]) {
        headers.insert(UNMENDED_HEADER, listed);
    }
}

/// What was mended on the way, there and back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fixes<'a> {
    pub(super) of_request: &'a [Fix],
    pub(super) of_answer: &'a [Fix],
    /// What was not mended, because the request is signed.
    pub(super) left_out: &'a [Fix],
}

/// The fixes as they stand in the header; none if there are none.
fn listed(of_request: &[Fix], of_answer: &[Fix]) -> Option<HeaderValue> {
    let count = of_request.len() + of_answer.len();
    if count == 0 {
        return None;
    }
    let place = |at: &str| -> String {
        let legal = |char: char| match char {
            '"' | '\\' => '?',
            ' '..='~' => char,
            _ => '?',
        };
        at.chars().take(PLACE_CHARS_MAX).map(legal).collect()
    };
    let asked = of_request.iter().map(|fix| (fix, ""));
    let answered = of_answer.iter().map(|fix| (fix, ";in=response"));
    let one =
        |(fix, of): (&Fix, &str)| format!("{}{of};at=\"{}\"", fix.code.as_str(), place(&fix.at));
    let mut all: Vec<String> = asked.chain(answered).take(LISTED_MAX).map(one).collect();
    if count > LISTED_MAX {
        all.push(format!("more;count={}", count - LISTED_MAX));
    }
    HeaderValue::from_str(&all.join(", ")).ok()
}

fn drop_those_of_a_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in OF_A_CONNECTION.iter().chain(&named) {
        headers.remove(name);
    }
}
