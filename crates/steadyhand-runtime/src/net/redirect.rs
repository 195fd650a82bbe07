//! Where an answer sends us next, and what may go there.

use reqwest::header::{ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, HeaderMap, LOCATION, USER_AGENT};
use reqwest::{Method, StatusCode, Url};

use super::request::{Request, site};

/// Redirects that are followed for one request.
pub const REDIRECTS_MAX: u32 = 5;

/// The next request, or `None` when the answer is final; the error says why we do not go there.
pub fn next(
    request: &Request,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<Option<Request>, String> {
    let keeps_method = match status.as_u16() {
        301 | 302 => request.method != Method::POST,
        303 => matches!(request.method, Method::GET | Method::HEAD),
        307 | 308 => true,
        _ => return Ok(None),
    };
    let Some(location) = headers.get(LOCATION) else {
        return Ok(None);
    };
    let from = site(&request.url);
    let location = location
        .to_str()
        .map_err(|_| format!("{from} redirects to an address that is no text"))?;
    let mut url = request
        .url
        .join(location)
        .map_err(|_| format!("{from} redirects to something that is no URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!(
            "{from} redirects to a {}: address, which is not followed",
            url.scheme()
        ));
    }
    if request.url.scheme() == "https" && url.scheme() == "http" {
        return Err(format!(
            "{from} redirects from https to http ({}), which is not followed: everyone could read along",
            site(&url)
        ));
    }
    let mut next = request.clone();
    let stays = same_owner(&request.url, &url);
    // Nobody but the configuration chooses the credentials we show, and only its own host sees them.
    let (user, password) = match stays {
        true => (request.url.username(), request.url.password()),
        false => ("", None),
    };
    let _ = url.set_username(user);
    let _ = url.set_password(password);
    if !stays {
        // Any header of the configuration may be a key, whatever it is called.
        next.headers = harmless(&request.headers);
    }
    if !keeps_method {
        next.method = Method::GET;
        next.body = None;
        next.headers.remove(CONTENT_TYPE);
    }
    next.url = url;
    Ok(Some(next))
}

/// The same origin, or the same host gone from http to https.
fn same_owner(from: &Url, to: &Url) -> bool {
    let upgrade = from.scheme() == "http"
        && to.scheme() == "https"
        && from.port().is_none()
        && to.port().is_none();
    from.host() == to.host() && (upgrade || from.origin() == to.origin())
}

fn harmless(headers: &HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for name in [ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, USER_AGENT] {
        for value in headers.get_all(&name) {
            kept.append(&name, value.clone());
        }
    }
    kept
}
