//! The codes of requests over HTTP that are refused. How a call ended is never one of these: that is the answer.

use super::Seen::{Command, Rest};
use super::{Page, page};
use crate::error::Exit;

pub(super) const PAGES: &[Page] = &[
    page(
        "bad_request",
        &[Rest(400)],
        "The body or the query is not what this address takes.",
        &["The message names the field; `/openapi.json` and `docs/rest.md` have the shapes."],
    ),
    page(
        "token_missing",
        &[Rest(401)],
        "The request has no credentials, or none that are good.",
        &[
            "Send `Authorization: Bearer …` with the server's `token` or a key (`steadyhand keys create NAME`).",
            "Commands on the server's own machine need none.",
        ],
    ),
    page(
        "not_allowed",
        &[Rest(403)],
        "The credentials are good, but their role does not include this.",
        &[
            "`GET /v1/whoami` says which role it is; the table in `docs/access.md` says what each may.",
        ],
    ),
    page(
        "foreign_request",
        &[Rest(403)],
        "The request is addressed to a name that is not this server's, or comes from a web page of somebody else's.",
        &[
            "If you reach the server by a name of your own, write it under `[server]`: `allowed_hosts = [\"tools.example.org\"]`.",
        ],
    ),
    page(
        "rate_limited",
        &[Rest(429)],
        "The key calls more often than it may. Nothing was run.",
        &["Wait for `retry-after`; `--rate` of `steadyhand keys create` is the limit."],
    ),
    page(
        "too_many_calls",
        &[Rest(429)],
        "This caller has too many calls running.",
        &["Wait for some of them; `GET /v1/calls?q=state:running` shows them."],
    ),
    page(
        "no_such_route",
        &[Rest(404)],
        "Nothing is at this address.",
        &["`/openapi.json` has every address there is."],
    ),
    page(
        "no_such_method",
        &[Rest(405)],
        "Something is at this address, but not for this method.",
        &["`/openapi.json` has the methods."],
    ),
    page(
        "no_such_tool",
        &[Rest(404)],
        "No tool has this name.",
        &["`GET /v1/tools` lists them."],
    ),
    page(
        "no_such_conversation",
        &[Rest(404)],
        "No conversation has this name.",
        &["`GET /v1/conversations` lists them."],
    ),
    page(
        "no_such_alert",
        &[Rest(404)],
        "No alert has this id.",
        &["`GET /v1/alerts` lists them; those that are over go when there are 500 newer ones."],
    ),
    page(
        "cannot_decide",
        &[Rest(409)],
        "The approval is decided already, or your decision is about other arguments than the call has.",
        &["Look again: `GET /v1/approvals`. A yes is to exact arguments (`arguments_hash`)."],
    ),
    page(
        "definition_changed",
        &[Command(Exit::Refused), Rest(409)],
        "You accept or reject the definition of a tool, and it is another than the one you have seen, or you have not seen it. Nothing was accepted.",
        &[
            "Look again (`GET /v1/tool-changes`, `steadyhand tools changes`), and send the `definition_hash` of what you have seen. The answer has the hash of the definition there is now.",
        ],
    ),
    page(
        "call_has_ended",
        &[Rest(409)],
        "The call has ended: nothing is left to cancel.",
        &["`GET /v1/calls/{id}` says how it ended."],
    ),
    page(
        "too_slow",
        &[Rest(408)],
        "The body of the request did not come in time.",
        &["Send it again."],
    ),
    page(
        "too_large",
        &[Rest(413)],
        "The request is larger than is taken.",
        &["The message has the limit; send a large batch in parts."],
    ),
    page(
        "server_busy",
        &[Rest(503)],
        "The server as a whole has too much to do. Nothing was run.",
        &["Wait for `retry-after`."],
    ),
    page(
        "shutting_down",
        &[Rest(503)],
        "The server is about to end, and takes no new calls. Nothing was run.",
        &["Ask again when it is back."],
    ),
];
