//! Causes of servers over HTTP: by what they answered, or why they could not.

use regex::Regex;
use std::sync::LazyLock;

use super::{Cause, setting};
use crate::client::lifecycle::failure::{StartFailure, What};

/// What is probably wrong, and what to do about it.
pub(super) fn cause(failure: &StartFailure) -> Cause {
    let (server, address, setting) = (&failure.server, &failure.command, setting(failure));
    match &failure.what {
        What::Unreachable(why) => unreachable(failure, why),
        What::Broken(_) => Cause::new(
            format!("Something at {address} takes connections and breaks them."),
            "Look at the server's own log; if it stands behind a proxy, at the proxy's.",
            format!("{address} is an MCP server, and what its log says"),
        ),
        What::Status { code, .. } => status(failure, *code),
        What::Redirected { to } => Cause::new(
            format!(
                "It has moved to {to}; what we send may hold secrets, so it is not followed there."
            ),
            format!("If that is right, set it as `url` at {setting}."),
            format!("whether {to} is the right address"),
        ),
        What::NotMcp(_) => Cause::new(
            format!("What answers at {address} is no MCP endpoint."),
            format!("Most have it at /mcp, older ones at /sse: correct `url` at {setting}."),
            format!("the path in {address}"),
        ),
        What::Silent { .. } => Cause::new(
            format!("Something at {address} takes the request and says nothing."),
            "If it starts slowly, raise the limit:  start = { timeout = \"60s\" }; else look at its own log.",
            format!("{address} is an MCP server, and how long its start takes"),
        ),
        What::Refused { code, message } => Cause::new(
            format!("The server answered, and refused: {message} (code {code})."),
            format!(
                "Its own documentation says why. If it is about the protocol's version, try  protocol = \"legacy\"  or  \"modern\"  at {setting}."
            ),
            format!("what {server} needs in order to answer"),
        ),
        What::NotStarted(why) => Cause::new(
            format!("{why}."),
            format!("Correct it at {setting}."),
            format!("the settings at {setting}"),
        ),
        What::Malformed(how) => Cause::new(
            format!("{server} does not do what an MCP server does: {how}."),
            "Check that the address is that of an MCP server, and that it is up to date.",
            format!("{address} is an MCP server, and up to date"),
        ),
        What::TooMany(_) => Cause::new(
            format!("{server} gave more than Steadyhand takes from one server."),
            "Update it or report it to its makers.",
            format!("{server} is up to date"),
        ),
        What::NotFound { .. } | What::Exited { .. } | What::Closed => Cause::new(
            "",
            format!("Look at its settings: {setting}"),
            format!("{address} is right"),
        ),
    }
}

fn unreachable(failure: &StartFailure, why: &str) -> Cause {
    static NAME: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?i)lookup|not known|no such host|name resolution|nodename|resolve")
            .expect("fixed")
    });
    static TLS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"(?i)certificate|UnknownIssuer|tls|handshake|corrupt message|InvalidContentType",
        )
        .expect("fixed")
    });
    let (address, setting) = (&failure.command, setting(failure));
    if why.to_ascii_lowercase().contains("refused") {
        return Cause::new(
            format!("Nothing listens at {address}."),
            format!("Start the server there, or correct `url` at {setting}."),
            format!("the server at {address} is running"),
        );
    }
    if NAME.is_match(why) {
        return Cause::new(
            format!("The name in {address} is not known."),
            format!("Correct `url` at {setting}, or look at the network and its DNS."),
            "the host's name and the network",
        );
    }
    if TLS.is_match(why) {
        return Cause::new(
            format!("The connection to {address} is not secure: {why}."),
            "Is it http instead of https? Else its certificate must be one this system trusts (SSL_CERT_FILE names others).",
            "http or https, and the server's certificate",
        );
    }
    Cause::new(
        format!("There is no way to {address}: {why}."),
        format!("Look at the network, a firewall, or correct `url` at {setting}."),
        "the network, and the address",
    )
}

fn status(failure: &StartFailure, code: u16) -> Cause {
    let (address, setting) = (&failure.command, setting(failure));
    match code {
        401 | 407 => Cause::new(
            "It wants to know who asks.",
            format!(
                "Log in:  steadyhand mcp login {}  or set a token at {setting}:  headers = {{ Authorization = \"Bearer ${{env:TOKEN}}\" }}",
                failure.server
            ),
            "the token in its headers",
        ),
        403 => Cause::new(
            "It knows who asks, and refuses; or it does not accept requests from here.",
            format!(
                "Look at what the token at {setting} allows, and at the server's list of hosts."
            ),
            "what the token allows",
        ),
        404 | 405 => Cause::new(
            format!("There is no MCP endpoint at {address}."),
            format!("Most have it at /mcp, older ones at /sse: correct `url` at {setting}."),
            format!("the path in {address}"),
        ),
        429 => Cause::new(
            "It is asked too often.",
            "Wait; it is tried again by itself.",
            "the limits of its service",
        ),
        500..=599 => Cause::new(
            "It, or a proxy before it, has a fault of its own.",
            "Look at its log; it is tried again by itself.",
            format!("the server behind {address}, and its log"),
        ),
        _ => Cause::new(
            "It does not accept what we send.",
            format!(
                "Try  protocol = \"legacy\"  or  \"modern\"  at {setting}; its log may say more."
            ),
            format!("the version of the server at {address}"),
        ),
    }
}
