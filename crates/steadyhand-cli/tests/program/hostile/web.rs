//! HTTP services that misbehave, behind tools of kind `http`.

use super::peers::Peers;
use super::world::{Cast, Fault, Kind};

pub(super) fn cast(peers: &Peers) -> Cast {
    let mut cast = Cast::default();
    for (tool, words, promise, url, is_hang) in peers.services() {
        let limit = match is_hang {
            true => "timeout = \"400ms\"\nretry = { attempts = 1 }",
            // A Retry-After of a day must not be waited for.
            false => "deadline = \"8s\"",
        };
        let table = format!(
            "[tools.{tool}]\nkind = \"http\"\nurl = \"{url}\"\ninput = {{ type = \"object\" }}\n{limit}\n"
        );
        let fault = Fault::new(Kind::Http, tool, words, promise);
        let fault = match tool.ends_with("_100mb") {
            true => fault.heavy(),
            false => fault,
        };
        cast.add(fault, &table);
    }
    cast
}
