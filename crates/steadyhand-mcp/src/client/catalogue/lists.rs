//! What a server lists beside its tools: prompts, resources and their templates, each entry as it was written.

use std::collections::HashSet;
use std::fmt;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use bytesize::ByteSize;
use foldhash::fast::FixedState;
use serde::Deserializer as _;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use steadyhand::{ByteBudget, ReservedBytes};
use tokio::time::{Instant, timeout_at};

use crate::client::calls::server_request::{NoListener, ServerRequest};
use crate::client::connection::slot::Answer;
use crate::client::connection::{Connection, no_memory, too_large, unreadable};
use crate::client::hidden::hide_in_entries;
use crate::client::http::TransportError;
use crate::client::memory::nodes;
use crate::wire::{Members, RpcError};

/// A list may have so many pages, and so many entries.
const PAGES_MAX: usize = 200;
const ENTRIES_MAX: usize = 10_000;
const CURSOR_BYTES_MAX: usize = 64 * 1024;
/// What all tools of a server may take, as they are read and kept here. A thousand tools of 3 kB each fit.
const TOOLS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The same for its prompts, its resources and its templates, each.
const OTHERS_BYTES_MAX: usize = 10 * 1024 * 1024;
/// So much of each list is every server's own, however much others take.
const FREE_BYTES: usize = 1024 * 1024;
/// What a member or an element of a tool takes: a definition is kept as it came, and read.
const TOOL_NODE_BYTES: usize = 128;
/// What a prompt or a resource takes beside its text.
const ENTRY_BYTES: usize = 256;

/// A list of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Listed {
    /// `prompts/list`
    Prompts,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    ResourceTemplates,
}

/// The entries of a list, in the server's order.
pub type Entries = Arc<Vec<Box<RawValue>>>;

/// All of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lists {
    pub(crate) prompts: Entries,
    pub(crate) resources: Entries,
    pub(crate) templates: Entries,
    /// The memory of each.
    held: [Option<Arc<ReservedBytes>>; 3],
    /// Which of them were read, be they empty.
    read: [bool; 3],
}

/// Lists that may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Changed(pub(crate) u8);

impl Changed {
    pub(crate) const TOOLS: Changed = Changed(1);
    pub(crate) const PROMPTS: Changed = Changed(2);
    pub(crate) const RESOURCES: Changed = Changed(4);
    pub(crate) const BESIDE_TOOLS: Changed = Changed(2 | 4);
    pub(crate) const ALL: Changed = Changed(1 | 2 | 4);

    pub(crate) fn has(self, what: Changed) -> bool {
        self.0 & what.0 != 0
    }
}

impl Listed {
    /// All of them.
    pub const ALL: [Listed; 3] = [
        Listed::Prompts,
        Listed::Resources,
        Listed::ResourceTemplates,
    ];

    /// How it is asked for.
    pub fn method(self) -> &'static str {
        match self {
            Listed::Prompts => "prompts/list",
            Listed::Resources => "resources/list",
            Listed::ResourceTemplates => "resources/templates/list",
        }
    }

    /// The member of the answer that has the entries.
    pub fn member(self) -> &'static str {
        match self {
            Listed::Prompts => "prompts",
            Listed::Resources => "resources",
            Listed::ResourceTemplates => "resourceTemplates",
        }
    }

    /// The capability of a server that has such a list.
    pub fn capability(self) -> &'static str {
        match self {
            Listed::Prompts => "prompts",
            Listed::Resources | Listed::ResourceTemplates => "resources",
        }
    }

    pub(crate) fn changes_with(self) -> Changed {
        match self {
            Listed::Prompts => Changed::PROMPTS,
            Listed::Resources | Listed::ResourceTemplates => Changed::RESOURCES,
        }
    }
}

impl Lists {
    pub(crate) fn get(&self, kind: Listed) -> &Entries {
        match kind {
            Listed::Prompts => &self.prompts,
            Listed::Resources => &self.resources,
            Listed::ResourceTemplates => &self.templates,
        }
    }

    /// As they were in an earlier run. One that is empty may not have been read then.
    pub(crate) fn kept(prompts: Entries, resources: Entries, templates: Entries) -> Lists {
        Lists {
            held: Default::default(),
            read: [&prompts, &resources, &templates].map(|list| !list.is_empty()),
            prompts,
            resources,
            templates,
        }
    }

    /// A list that was read.
    pub(crate) fn known(&self, kind: Listed) -> Option<Entries> {
        self.read[kind as usize].then(|| Arc::clone(self.get(kind)))
    }

    /// The same with other entries in one of them.
    pub(crate) fn with(
        &self,
        kind: Listed,
        entries: Vec<Box<RawValue>>,
        held: Option<ReservedBytes>,
    ) -> Lists {
        let mut lists = self.clone();
        lists.held[kind as usize] = held.map(Arc::new);
        lists.read[kind as usize] = true;
        let list = match kind {
            Listed::Prompts => &mut lists.prompts,
            Listed::Resources => &mut lists.resources,
            Listed::ResourceTemplates => &mut lists.templates,
        };
        *list = Arc::new(entries);
        lists
    }
}

/// Whether they are the same, to the letter.
pub(crate) fn is_like(one: &[Box<RawValue>], other: &[Box<RawValue>]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| a.get() == b.get())
}

/// Why a list could not be read.
#[derive(Debug)]
pub(crate) enum ListError {
    Refused(RpcError),
    Malformed(String),
    TooLarge(String),
    Lost(String),
    TransportError(TransportError),
    Late,
}

/// A list as far as it could be read.
pub(crate) struct Pages {
    pub(crate) entries: Vec<Box<RawValue>>,
    /// What was left out, in sentences.
    pub(crate) notes: Vec<String>,
    /// The memory of the entries.
    pub(crate) held: ReservedBytes,
}

/// Which list is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListKind {
    pub(crate) method: &'static str,
    /// The member of the answer that has the entries.
    pub(crate) member: &'static str,
    /// What all its entries may take.
    bytes_max: usize,
    /// What one entry takes here, by its text.
    weigh: fn(&str) -> usize,
}

impl ListKind {
    pub(crate) const TOOLS: ListKind = ListKind {
        method: "tools/list",
        member: "tools",
        bytes_max: TOOLS_BYTES_MAX,
        weigh: |tool| tool.len() + nodes(tool) * TOOL_NODE_BYTES,
    };

    pub(crate) fn of(kind: Listed) -> ListKind {
        ListKind {
            method: kind.method(),
            member: kind.member(),
            bytes_max: OTHERS_BYTES_MAX,
            weigh: |entry| entry.len() + ENTRY_BYTES,
        }
    }
}

/// Reads all pages of a list, as far as it fits: what is beyond is left out, and said so.
pub(crate) async fn read_pages(
    connection: &Connection,
    kind: ListKind,
    until: Instant,
) -> Result<Pages, ListError> {
    let mut builder = ListBuilder::new(kind, &connection.desk().memory);
    let mut cursor: Option<Box<RawValue>> = None;
    let mut cursors: HashSet<u64> = HashSet::new();
    for page in 1.. {
        let params = cursor.as_deref();
        let params = params.map(|cursor| Members(vec![("cursor".into(), cursor)]).to_raw());
        let errand = ServerRequest::ours(kind.method, params.as_deref());
        let result = match timeout_at(until, errand.run(connection, &NoListener)).await {
            Ok(Answer::Result(result)) => result,
            Ok(Answer::Error(error)) => return Err(ListError::Refused(error)),
            Ok(Answer::TooLarge(bytes)) => return Err(ListError::TooLarge(too_large(bytes))),
            Ok(Answer::NoMemory(exceeded)) => {
                return Err(ListError::TooLarge(no_memory(&exceeded)));
            }
            Ok(Answer::Unreadable(why)) => return Err(ListError::Malformed(unreadable(&why))),
            Ok(Answer::Lost(lost)) => return Err(ListError::Lost(lost.reason)),
            Ok(Answer::TransportError(trouble)) => return Err(ListError::TransportError(trouble)),
            Ok(Answer::Unanswered(why)) => return Err(ListError::Malformed(why)),
            Err(_) => return Err(ListError::Late),
        };
        let members = Members::of(&result).unwrap_or_default();
        let listed = members.get(kind.member);
        if !listed.is_some_and(|listed| builder.page(listed)) {
            let text = format!(
                "its answer to {} has no list of {}",
                kind.method, kind.member
            );
            return Err(ListError::Malformed(text));
        }
        let next = members.get("nextCursor");
        let next = next.filter(|next| !["null", "\"\""].contains(&next.get()));
        let Some(next) = next.filter(|_| !builder.is_full) else {
            break;
        };
        // A server that gives a cursor again gives the same pages again.
        let is_new = cursors.insert(FixedState::default().hash_one(next.get()));
        if !is_new || page >= PAGES_MAX || next.get().len() > CURSOR_BYTES_MAX {
            builder.leave_out(&format!(
                "its list of {} did not end after {page} pages",
                kind.member
            ));
            break;
        }
        cursor = Some(next.to_owned());
    }
    let hide = connection.desk().record.hide_in_lists();
    Ok(Pages {
        entries: hide_in_entries(builder.entries, hide),
        notes: builder.notes,
        held: builder.held,
    })
}

/// The entries of a list while its pages are read.
struct ListBuilder {
    kind: ListKind,
    entries: Vec<Box<RawValue>>,
    notes: Vec<String>,
    held: ReservedBytes,
    bytes: usize,
    /// No more is taken.
    is_full: bool,
}

impl ListBuilder {
    fn new(kind: ListKind, memory: &ByteBudget) -> ListBuilder {
        ListBuilder {
            kind,
            entries: Vec::new(),
            notes: Vec::new(),
            held: memory.nothing(),
            bytes: 0,
            is_full: false,
        }
    }

    /// Takes the entries of one page, one by one: a page may have millions. False if it is no list.
    fn page(&mut self, listed: &RawValue) -> bool {
        let mut json = serde_json::Deserializer::from_str(listed.get());
        json.deserialize_seq(EachEntry(self)).is_ok()
    }

    /// Takes an entry if there is room for it. False if no more is taken.
    fn take(&mut self, entry: &RawValue) -> bool {
        let kind = self.kind;
        if self.entries.len() >= ENTRIES_MAX {
            let why = format!("it lists more than {ENTRIES_MAX} {}", kind.member);
            self.leave_out(&why);
            return false;
        }
        let bytes = (kind.weigh)(entry.get());
        if self.bytes + bytes > kind.bytes_max {
            let why = format!(
                "its list of {} takes more than {} of memory",
                kind.member,
                ByteSize(kind.bytes_max as u64).display().iec()
            );
            self.leave_out(&why);
            return false;
        }
        self.bytes += bytes;
        // What every server may have is not accounted for: others cannot take it away.
        let accounted = self.bytes.saturating_sub(FREE_BYTES);
        if let Err(exceeded) = self.held.grow(accounted - self.held.bytes()) {
            self.leave_out(&format!("its list of {} is cut: {exceeded}", kind.member));
            return false;
        }
        self.entries.push(entry.to_owned());
        true
    }

    fn leave_out(&mut self, why: &str) {
        let (count, member) = (self.entries.len(), self.kind.member);
        self.notes
            .push(format!("{why}; the first {count} {member} are used"));
        self.is_full = true;
    }
}

/// Hands each element of a list on, until no more is taken.
struct EachEntry<'a>(&'a mut ListBuilder);

impl<'de> Visitor<'de> for EachEntry<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(entry) = list.next_element::<&'de RawValue>()? {
            if !self.0.take(entry) {
                while list.next_element::<IgnoredAny>()?.is_some() {}
            }
        }
        Ok(())
    }
}

/// Whether a server says that it has such a list.
pub(crate) fn has(capabilities: &Value, kind: Listed) -> bool {
    capabilities
        .get(kind.capability())
        .is_some_and(|capability| !capability.is_null())
}
