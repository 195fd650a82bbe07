//! A server's "URL elicitation required" (MCP 2025-11-25) as its client gets it: a person is shown it, and visits the pages
//! that it names before the request is sent again. So what is no page, or hides something, does not pass.

use serde_json::{Map, Value, json};
use steadyhand::visible;

use super::answer::CALL_ID;
use super::client::Client;
use super::era::Era;
use super::errors;
use crate::client::calls::rpc_error::page_of;
use crate::wire::RpcError;

/// So many pages are named in one error.
const PAGES_MAX: usize = 16;
const ID_BYTES_MAX: usize = 1024;
const MESSAGE_BYTES_MAX: usize = 2_000;

/// The error for this client. None if it cannot do anything with it, or if it names no page that a person can be sent
/// to: then it is a failure like others.
pub(super) fn relayed(
    error: &RpcError,
    client: &Client,
    call_id: Option<&str>,
) -> Option<RpcError> {
    if error.code != errors::VISIT_NEEDED || !takes_pages(client) {
        return None;
    }
    let mut data = error.data.as_ref()?.as_object()?.clone();
    let pages = data.get("elicitations")?.as_array()?;
    let pages: Vec<Value> = pages
        .iter()
        .filter(|page| leads_somewhere(page))
        .take(PAGES_MAX)
        .cloned()
        .collect();
    if pages.is_empty() {
        return None;
    }
    data.insert("elicitations".to_owned(), pages.into());
    let mut data = made_visible(Value::Object(data));
    if let Some(id) = call_id {
        // Members of the server that look like ours have another name by now.
        match &mut data["_meta"] {
            Value::Object(meta) => drop(meta.insert(CALL_ID.to_owned(), json!(id))),
            other => *other = json!({CALL_ID: id}),
        }
    }
    let message = steadyhand::cut::text(&visible::text(&error.message), MESSAGE_BYTES_MAX);
    let mut relayed = RpcError::new(errors::VISIT_NEEDED, message);
    relayed.data = Some(data);
    Some(relayed)
}

/// A client of that protocol that said that it can send a person to a page.
fn takes_pages(client: &Client) -> bool {
    let is_able = client.capabilities.pointer("/elicitation/url");
    let is_of_that_protocol = matches!(client.era, Era::Legacy(_)) && client.era.has("2025-11-25");
    is_of_that_protocol && is_able.is_some_and(|able| !able.is_null())
}

/// Whether a person can be sent there. The client tells pages apart by their ids, so an id is not changed.
fn leads_somewhere(page: &Value) -> bool {
    let text = |name: &str| page.get(name).and_then(Value::as_str);
    let id = text("elicitationId").unwrap_or_default();
    let is_id = !id.is_empty() && id.len() <= ID_BYTES_MAX && visible::text(id) == id;
    page_of(page).is_some() && text("mode").is_some() && is_id && text("message").is_some()
}

/// All its texts with everything in them to be seen.
fn made_visible(value: Value) -> Value {
    match value {
        Value::String(text) => visible::text(&text).into(),
        Value::Array(items) => items.into_iter().map(made_visible).collect(),
        Value::Object(members) => {
            let shown = |(name, member): (String, Value)| {
                (visible::text(&name).into_owned(), made_visible(member))
            };
            Value::Object(members.into_iter().map(shown).collect::<Map<_, _>>())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://auth.example/start?flow=7";

    fn client(version: &str, capabilities: Value) -> Client {
        let era = Era::settled(Some(version));
        Client::new(era, None, capabilities)
    }

    fn able() -> Client {
        client("2025-11-25", json!({"elicitation": {"url": {}}}))
    }

    fn page(id: &str, url: &str) -> Value {
        json!({"mode": "url", "elicitationId": id, "url": url, "message": "Sign in"})
    }

    fn error(data: Value) -> RpcError {
        let mut error = RpcError::new(errors::VISIT_NEEDED, "Sign\u{202e} in first");
        error.data = Some(data);
        error
    }

    #[test]
    fn s01_only_pages_pass_and_what_hides_in_their_texts_is_seen() {
        let mut first = page("1", URL);
        first["message"] = json!("Sign in\u{1b}[2J");
        first["vendor\u{200b}"] = json!({"x": "\u{202e}y"});
        let mut of_a_form = page("2", URL);
        of_a_form["mode"] = json!("form");
        let data = json!({"elicitations": [
            page("3", "javascript:alert(1)"), page("4", "file:///etc/passwd"), page("5", "vscode://open"),
            page("6", "https://bank.example@evil.example/"), page("7", "https://auth.example/\u{202e}x"),
            page("", URL), page("8\u{200b}", URL), of_a_form, "https://auth.example", first, page("9", "http://127.0.0.1:8080/"),
        ], "more": [1, "a\u{7}b"]});
        let relayed = relayed(&error(data), &able(), Some("c1")).expect("it is relayed");
        assert_eq!(relayed.code, -32042);
        assert_eq!(relayed.message, r"Sign\u{202e} in first");
        let first = json!({"mode": "url", "elicitationId": "1", "url": URL, "message": r"Sign in\u{1b}[2J",
            r"vendor\u{200b}": {"x": r"\u{202e}y"}});
        assert_eq!(
            relayed.data,
            Some(
                json!({"elicitations": [first, page("9", "http://127.0.0.1:8080/")], "more": [1, r"a\u{7}b"],
                "_meta": {"io.steadyhand/callId": "c1"}})
            )
        );
    }

    #[test]
    fn v13_who_cannot_send_a_person_anywhere_gets_a_failure_like_others() {
        let with_a_page = error(json!({"elicitations": [page("1", URL)]}));
        for client in [
            client("2025-11-25", json!({"elicitation": {}})),
            client("2025-11-25", json!({"elicitation": {"url": null}})),
            client("2025-06-18", json!({"elicitation": {"url": {}}})),
            Client::new(Era::Modern, None, json!({"elicitation": {"url": {}}})),
        ] {
            assert_eq!(relayed(&with_a_page, &client, None), None);
        }
        for data in [
            json!(null),
            json!({}),
            json!({"elicitations": []}),
            json!({"elicitations": {"0": page("1", URL)}}),
            json!({"elicitations": [page("1", "javascript:alert(1)")]}),
        ] {
            assert_eq!(relayed(&error(data), &able(), None), None);
        }
        assert!(relayed(&with_a_page, &able(), None).is_some());
    }
}
