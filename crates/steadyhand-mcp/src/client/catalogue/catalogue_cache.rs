//! What is known of a server, kept on disk: so that a restart can answer at once, before the server is up.

use std::io;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use steadyhand_process::private;

use crate::client::catalogue::lists::Lists;
use crate::client::catalogue::{Catalogue, Greeting};
use crate::client::hidden::hide_in_json;
use crate::client::lifecycle::era::Era;
use crate::client::settings::Hide;

/// More than this is not kept.
const FILE_BYTES_MAX: usize = 32 * 1024 * 1024;
const VERSION: u32 = 1;

/// What is kept of a server.
#[derive(Serialize, Deserialize)]
pub(crate) struct CachedCatalogue {
    version: u32,
    fingerprint: String,
    seen_ms: u64,
    tools: Vec<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) greeting: Option<Greeting>,
    /// The era it was found to speak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) era: Option<Era>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    prompts: Vec<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    resources: Vec<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    templates: Vec<Box<RawValue>>,
}

impl CachedCatalogue {
    pub(crate) fn of(
        fingerprint: String,
        catalogue: &Catalogue,
        lists: &Lists,
        greeting: Option<Greeting>,
        era: Option<Era>,
    ) -> CachedCatalogue {
        CachedCatalogue {
            version: VERSION,
            fingerprint,
            seen_ms: catalogue.seen_ms,
            tools: catalogue.raw().to_vec(),
            greeting,
            era,
            prompts: lists.prompts.to_vec(),
            resources: lists.resources.to_vec(),
            templates: lists.templates.to_vec(),
        }
    }

    /// What was kept, if it is of the same server.
    pub(crate) fn load(path: &Path, fingerprint: &str) -> Option<CachedCatalogue> {
        let bytes = private::read(path, FILE_BYTES_MAX as u64).ok()?;
        let kept: CachedCatalogue = serde_json::from_slice(&bytes).ok()?;
        (kept.version == VERSION && kept.fingerprint == fingerprint).then_some(kept)
    }

    /// Keeps it, in one step: a reader sees the old one or the new one.
    pub(crate) fn save(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_vec(self)?;
        if text.len() > FILE_BYTES_MAX {
            return Err(io::Error::other("it is too large to be kept"));
        }
        let mut new = path.as_os_str().to_owned();
        new.push(format!(".{}", std::process::id()));
        private::replace(path, Path::new(&new), &text)
    }

    /// Takes secrets out of it: they may be known only since. Whether there were any.
    pub(crate) fn hide(&mut self, hide: &Hide) -> bool {
        let mut changed = false;
        let lists = [
            &mut self.tools,
            &mut self.prompts,
            &mut self.resources,
            &mut self.templates,
        ];
        for entry in lists.into_iter().flatten() {
            if let Some(hidden) = hide_in_json(entry, hide) {
                *entry = hidden;
                changed = true;
            }
        }
        if let Some(greeting) = &mut self.greeting {
            let before = greeting.clone();
            greeting.hide(hide);
            changed |= *greeting != before;
        }
        changed
    }

    pub(crate) fn lists(&mut self) -> Lists {
        let mut take = |list: fn(&mut CachedCatalogue) -> &mut Vec<Box<RawValue>>| {
            Arc::new(std::mem::take(list(self)))
        };
        Lists::kept(
            take(|kept| &mut kept.prompts),
            take(|kept| &mut kept.resources),
            take(|kept| &mut kept.templates),
        )
    }

    pub(crate) fn catalogue(self, is_remote: bool) -> Catalogue {
        let has_headers = self.era == Some(Era::Modern) && is_remote;
        let mut catalogue = Catalogue::read(self.tools, Vec::new(), has_headers);
        catalogue.seen_ms = self.seen_ms;
        catalogue
    }
}
