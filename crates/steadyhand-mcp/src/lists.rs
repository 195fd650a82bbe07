//! What a server lists beside its tools: prompts, resources and their templates, each entry as it was written.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use crate::connection::{Connection, too_large};
use crate::errand::{Alone, Errand};
use crate::http::Trouble;
use crate::slot::Answer;
use crate::wire::{Members, RpcError};

/// A list may have so many pages, and so many entries.
const PAGES_MAX: usize = 200;
const ENTRIES_MAX: usize = 10_000;

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

    /// The same with other entries in one of them.
    pub(crate) fn with(&self, kind: Listed, entries: Vec<Box<RawValue>>) -> Lists {
        let mut lists = self.clone();
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
    Trouble(Trouble),
    Late,
}

/// Reads all pages of a list; notes say what was left out.
pub(crate) async fn read_pages(
    connection: &Connection,
    method: &str,
    member: &str,
    until: Instant,
) -> Result<(Vec<Box<RawValue>>, Vec<String>), ListError> {
    let mut entries: Vec<Box<RawValue>> = Vec::new();
    let mut notes = Vec::new();
    let mut cursor: Option<Box<RawValue>> = None;
    for page in 1.. {
        let params = cursor.as_deref();
        let params = params.map(|cursor| Members(vec![("cursor".into(), cursor)]).to_raw());
        let errand = Errand::ours(method, params.as_deref());
        let result = match timeout_at(until, errand.run(connection, &Alone)).await {
            Ok(Answer::Result(result)) => result,
            Ok(Answer::Error(error)) => return Err(ListError::Refused(error)),
            Ok(Answer::TooLarge(bytes)) => return Err(ListError::TooLarge(too_large(bytes))),
            Ok(Answer::Lost(lost)) => return Err(ListError::Lost(lost.reason)),
            Ok(Answer::Trouble(trouble)) => return Err(ListError::Trouble(trouble)),
            Ok(Answer::Unanswered(why)) => return Err(ListError::Malformed(why)),
            Err(_) => return Err(ListError::Late),
        };
        let members = Members::of(&result).unwrap_or_default();
        let listed: Option<Vec<&RawValue>> = members
            .get(member)
            .and_then(|listed| serde_json::from_str(listed.get()).ok());
        let Some(listed) = listed else {
            let text = format!("its answer to {method} has no list of {member}");
            return Err(ListError::Malformed(text));
        };
        entries.extend(listed.into_iter().map(RawValue::to_owned));
        if entries.len() > ENTRIES_MAX {
            notes.push(format!(
                "it lists more than {ENTRIES_MAX} {member}; the first {ENTRIES_MAX} are used"
            ));
            entries.truncate(ENTRIES_MAX);
            break;
        }
        let next = members.get("nextCursor");
        let Some(next) = next.filter(|next| !["null", "\"\""].contains(&next.get())) else {
            break;
        };
        let is_same = cursor
            .as_ref()
            .is_some_and(|cursor| cursor.get() == next.get());
        if is_same || page >= PAGES_MAX {
            notes.push(format!(
                "its list of {member} did not end after {page} pages; the first {} {member} are used",
                entries.len()
            ));
            break;
        }
        cursor = Some(next.to_owned());
    }
    Ok((entries, notes))
}

/// Whether a server says that it has such a list.
pub(crate) fn has(capabilities: &Value, kind: Listed) -> bool {
    capabilities
        .get(kind.capability())
        .is_some_and(|capability| !capability.is_null())
}
