//! Amazon's signatures (SigV4). A signature covers the host, the path and the body of a request, so none that a client
//! made for our address is worth anything at Amazon's: with keys of ours a request is signed anew.

use std::fmt::Write as _;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use super::client::host_of;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const SERVICE: &str = "bedrock";
const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");
const BODY_DIGEST: HeaderName = HeaderName::from_static("x-amz-content-sha256");
/// What stays as it is in a path (RFC 3986, 2.3).
const OTHERS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// What requests are signed with.
#[derive(Debug, Clone)]
pub(super) struct AwsCredentials {
    pub(super) access_key_id: String,
    pub(super) secret_access_key: SecretString,
    pub(super) session_token: Option<SecretString>,
    pub(super) region: String,
}

/// Whether a request is signed. One with an API key (`Authorization: Bearer …`) is not.
pub(super) fn is_signed(headers: &HeaderMap) -> bool {
    let authorization = headers.get(header::AUTHORIZATION);
    authorization.is_some_and(|value| value.as_bytes().starts_with(ALGORITHM.as_bytes()))
}

/// Signs a request to this absolute address anew.
pub(super) fn sign(
    head: &mut Parts,
    body: &[u8],
    credentials: &AwsCredentials,
    now: jiff::Timestamp,
) {
    for header in [header::AUTHORIZATION, DATE, TOKEN, BODY_DIGEST] {
        head.headers.remove(header);
    }
    let date_time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let mut signed = vec![
        ("host", host_of(&head.uri)),
        ("x-amz-date", date_time.clone()),
    ];
    if let Some(token) = &credentials.session_token {
        signed.push(("x-amz-security-token", token.expose_secret().to_owned()));
    }
    let request = canonical(head, body, &signed);
    let authorization = authorization(&request, &signed, &date_time, credentials, SERVICE);
    for (name, value) in signed.iter().skip(1).map(|(name, value)| (*name, value)) {
        if let Ok(value) = HeaderValue::from_str(value) {
            head.headers.insert(HeaderName::from_static(name), value);
        }
    }
    if let Ok(mut value) = HeaderValue::from_str(&authorization) {
        value.set_sensitive(true);
        head.headers.insert(header::AUTHORIZATION, value);
    }
}

/// The request in the form that is signed.
fn canonical(head: &Parts, body: &[u8], signed: &[(&str, String)]) -> String {
    let path = head.uri.path().split('/');
    let path: Vec<String> = path
        .map(|part| utf8_percent_encode(part, OTHERS).to_string())
        .collect();
    let mut query: Vec<String> = head
        .uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| match pair.contains('=') {
            true => pair.to_owned(),
            false => format!("{pair}="),
        })
        .collect();
    query.sort();
    let mut text = format!("{}\n{}\n{}\n", head.method, path.join("/"), query.join("&"));
    for (name, value) in signed {
        let _ = writeln!(text, "{name}:{}", value.trim());
    }
    let _ = write!(text, "\n{}\n{}", names(signed), hex(&Sha256::digest(body)));
    text
}

fn names(signed: &[(&str, String)]) -> String {
    let names: Vec<&str> = signed.iter().map(|(name, _)| *name).collect();
    names.join(";")
}

fn authorization(
    request: &str,
    signed: &[(&str, String)],
    date_time: &str,
    credentials: &AwsCredentials,
    service: &str,
) -> String {
    let date = &date_time[..8];
    let scope = format!("{date}/{}/{service}/aws4_request", credentials.region);
    let digest = hex(&Sha256::digest(request.as_bytes()));
    let to_sign = format!("{ALGORITHM}\n{date_time}\n{scope}\n{digest}");
    let secret = format!("AWS4{}", credentials.secret_access_key.expose_secret());
    let parts = [date, &credentials.region, service, "aws4_request", &to_sign];
    let signature = parts
        .iter()
        .fold(secret.into_bytes(), |key, part| mac(&key, part.as_bytes()));
    format!(
        "{ALGORITHM} Credential={}/{scope}, SignedHeaders={}, Signature={}",
        credentials.access_key_id,
        names(signed),
        hex(&signature)
    )
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `get-vanilla` of Amazon's published examples.
    #[test]
    fn amazons_own_example_is_signed_as_amazon_signs_it() {
        let credentials = AwsCredentials {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
            session_token: None,
            region: "us-east-1".to_owned(),
        };
        let request = axum::http::Request::get("https://example.amazonaws.com/").body(());
        let (head, ()) = request.expect("a request").into_parts();
        let date_time = "20150830T123600Z";
        let signed = [
            ("host", host_of(&head.uri)),
            ("x-amz-date", date_time.to_owned()),
        ];
        let request = canonical(&head, b"", &signed);
        assert_eq!(
            authorization(&request, &signed, date_time, &credentials, "service"),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        );
    }
}
