//! Addresses that a server sends a person to. They are foreign: not all of them may be shown or opened.

use url::Url;

/// The address to log in at, if it is one to be shown to a person or opened for them.
pub(crate) fn login_address(text: &str) -> Result<Url, String> {
    let refused = |why: &str| {
        Err(format!(
            "the address to log in at, which the server names, is not used: {why}"
        ))
    };
    // Others are escaped in an address. They could steer a terminal, or turn the direction of what is read.
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return refused("there are characters in it that are none of an address");
    }
    let Ok(address) = Url::parse(text) else {
        return refused("it is no address");
    };
    if !matches!(address.scheme(), "http" | "https") {
        let scheme: String = address.scheme().chars().take(40).collect();
        return refused(&format!(
            "it begins with {scheme}:, and only http(s) addresses are"
        ));
    }
    if !address.has_host() {
        return refused("it names no host");
    }
    // What stands before an @ looks like the host.
    if !address.username().is_empty() || address.password().is_some() {
        return refused("there is a user name in it");
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::login_address;

    #[test]
    fn only_web_addresses_are_shown_to_log_in_at() {
        for wrong in [
            "javascript:alert(1)",
            "JavaScript://login.example/%0aalert(1)",
            "file:///etc/passwd",
            "data:text/html,<script>alert(1)</script>",
            "vscode://open?x=1",
            "ms-settings:network",
            "https:",
            "/relative",
            "",
            "https://login.example/\u{1b}]8;;evil",
            "https://login.example/\nopen",
            "\u{2028}https://login.example",
            "https://login.example/\u{202e}moc.knab",
            "https://bank.example@login.example/",
        ] {
            assert!(login_address(wrong).is_err(), "{wrong:?}");
        }
        for right in ["https://login.example/a?b=c", "http://127.0.0.1:8080/a"] {
            assert!(login_address(right).is_ok(), "{right:?}");
        }
    }
}
