//! Everything that is listed, ready to be sent: tools of the manager, prompts and resources of all servers. Made anew
//! only when something changes.

use std::collections::HashMap;
use std::hash::BuildHasher;

use bytes::Bytes;
use foldhash::fast::FixedState;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use steadyhand::Tool;

use super::errors;
use super::headers::{ParamHeader, param_headers};
use super::host::Host;
use super::message::on_one_line;
use super::routes::Routes;
use crate::client::catalogue::lists::Listed;
use crate::client::server::Server;
use crate::wire::{Members, RpcError};

/// A page may be so large; only who lists more needs a second one. Clients take lines of 16 MiB and more.
const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// What is said about how to use the servers, all of them together.
const INSTRUCTIONS_BYTES_MAX: usize = 32 * 1024;

/// Everything that is listed now.
pub(super) struct Listing {
    /// The manager's count of changes when it was made.
    pub(super) tools_version: u64,
    pub(super) tools: List,
    pub(super) prompts: List,
    pub(super) resources: List,
    pub(super) templates: List,
    pub(super) routes: Routes,
    /// Headers that repeat arguments, by tool.
    pub(super) headers: HashMap<String, Vec<ParamHeader>>,
    /// How to use the servers, in their own words.
    pub(super) instructions: Option<String>,
}

/// One list, as it is sent.
#[derive(Default, PartialEq)]
pub(super) struct List {
    /// `"tools":[…]` and, where it goes on, `,"nextCursor":"…"`.
    pages: Vec<Bytes>,
    /// Tells it from what it was before.
    mark: u64,
}

impl Listing {
    pub(super) fn of(host: &dyn Host) -> Listing {
        let (manager, servers) = (host.tools(), &host.servers()[..]);
        // Before the tools are read: what changes meanwhile is seen the next time.
        let tools_version = *manager.changes().borrow();
        let tools = manager.list();
        let definitions = tools.iter().map(|tool| definition(tool, servers, host));
        let headers = tools.iter().filter_map(|tool| {
            let headers = param_headers(tool.schema());
            (!headers.is_empty()).then(|| (tool.name().to_owned(), headers))
        });
        let mut routes = Routes::default();
        let (mut prompts, mut resources, mut templates) = (Vec::new(), Vec::new(), Vec::new());
        for server in servers {
            let listed = |kind| host.listed(server, kind);
            prompts.extend(routes.add_prompts(server, &listed(Listed::Prompts)));
            resources.extend(routes.add_resources(server, &listed(Listed::Resources)));
            let listed = listed(Listed::ResourceTemplates);
            templates.extend(routes.add_templates(server, &listed));
        }
        Listing {
            tools_version,
            tools: List::of("tools", definitions),
            prompts: List::of(Listed::Prompts.member(), prompts),
            resources: List::of(Listed::Resources.member(), resources),
            templates: List::of(Listed::ResourceTemplates.member(), templates),
            headers: headers.collect(),
            routes,
            instructions: instructions(servers, host),
        }
    }
}

impl List {
    pub(super) fn none(member: &str) -> List {
        List::of(member, [])
    }

    pub(super) fn of(member: &str, entries: impl IntoIterator<Item = Box<RawValue>>) -> List {
        let mut pages: Vec<Vec<u8>> = Vec::new();
        let mut page = format!("\"{member}\":[").into_bytes();
        let begun = page.len();
        for entry in entries {
            if page.len() > begun && page.len() + entry.get().len() > PAGE_BYTES_MAX {
                let next = format!("\"{member}\":[").into_bytes();
                pages.push(std::mem::replace(&mut page, next));
            }
            if page.len() > begun {
                page.push(b',');
            }
            page.extend_from_slice(entry.get().as_bytes());
        }
        pages.push(page);
        let hasher = FixedState::default();
        let mark = pages.iter().fold(0u64, |mark, page| {
            mark.rotate_left(1) ^ hasher.hash_one(page)
        });
        let last = pages.len() - 1;
        for (place, page) in pages.iter_mut().enumerate() {
            page.push(b']');
            if place < last {
                let next = format!(",\"nextCursor\":\"{mark:x}.{}\"", place + 1);
                page.extend_from_slice(next.as_bytes());
            }
            on_one_line(page);
        }
        let mut pages: Vec<Bytes> = pages.into_iter().map(Bytes::from).collect();
        pages.shrink_to_fit();
        List { pages, mark }
    }

    /// The page that a cursor stands for; the first without one.
    pub(super) fn page(&self, cursor: Option<&str>) -> Result<Bytes, RpcError> {
        let Some(cursor) = cursor else {
            return Ok(self.pages[0].clone());
        };
        let unknown = || {
            errors::invalid(
                "the cursor is not one of this list, or the list has changed: ask again, without one",
            )
        };
        let (mark, place) = cursor.split_once('.').ok_or_else(unknown)?;
        let place: usize = place.parse().map_err(|_| unknown())?;
        if u64::from_str_radix(mark, 16) != Ok(self.mark) {
            return Err(unknown());
        }
        self.pages.get(place).cloned().ok_or_else(unknown)
    }
}

/// A tool as its server wrote it, or as we would.
pub(super) fn definition(tool: &Tool, servers: &[Server], host: &dyn Host) -> Box<RawValue> {
    let of_server = || {
        let source = tool.source().filter(|_| tool.kind() == "mcp")?;
        let server = servers.iter().find(|server| server.name() == source)?;
        server.definition(tool.name())
    };
    let verbatim = host.definition(tool).or_else(of_server);
    verbatim.unwrap_or_else(|| {
        let described = to_raw_value(&described(tool));
        described.unwrap_or_else(|_| RawValue::NULL.to_owned())
    })
}

fn described(tool: &Tool) -> Value {
    let mut schema = tool.schema().clone();
    // The protocol demands what JSON Schema leaves open.
    if let Some(fields) = schema.as_object_mut()
        && !fields.contains_key("type")
    {
        fields.insert("type".to_owned(), json!("object"));
    }
    json!({
        "name": tool.name(),
        "description": tool.description(),
        "inputSchema": schema,
    })
}

fn instructions(servers: &[Server], host: &dyn Host) -> Option<String> {
    let mut all = String::new();
    for server in servers {
        let said = host.instructions(server);
        let Some(said) = said.filter(|said| !said.trim().is_empty()) else {
            continue;
        };
        let room = INSTRUCTIONS_BYTES_MAX.saturating_sub(all.len());
        if !all.is_empty() {
            all.push_str("\n\n");
        }
        let said = &said[..said.floor_char_boundary(room)];
        all.push_str(&format!("{}: {}", server.name(), said.trim()));
    }
    (!all.is_empty()).then_some(all)
}

/// One member of an entry, as a text.
pub(super) fn member(entry: &RawValue, name: &str) -> Option<String> {
    Members::of(entry)?.text(name).map(|text| text.into_owned())
}

/// An entry under another name.
pub(super) fn renamed(entry: &RawValue, name: &str) -> Option<Box<RawValue>> {
    let name = to_raw_value(name).ok()?;
    let members = Members::of(entry)?;
    Some(members.with("name", &name).to_raw())
}

/// A cursor as it was sent.
pub(super) fn cursor(raw: Option<&RawValue>) -> Result<Option<String>, RpcError> {
    let read = |raw: &RawValue| {
        String::deserialize(raw).map_err(|_| errors::invalid("the cursor is no text"))
    };
    raw.map(read).transpose()
}
