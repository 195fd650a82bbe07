//! What the audit log says of a configuration: which file it was, and which settings changed; never their values.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::views;
use steadyhand_config::Configuration;

/// Settings of one section that are named; of others only the number is.
const NAMED_MAX: usize = 20;
/// Sections that are named.
const SECTIONS_MAX: usize = 40;

/// The settings in force, to be compared with those that follow.
pub struct SettingsInForce {
    /// The file, or that there is none.
    pub file: String,
    /// A digest of everything the file says.
    digest: String,
    /// A digest of each value, by the name of its setting.
    values: BTreeMap<String, [u8; 32]>,
}

impl SettingsInForce {
    pub fn of(configuration: &Configuration) -> SettingsInForce {
        let file = configuration.file.as_ref();
        let file = file.map_or_else(|| "no file".to_owned(), |file| file.display().to_string());
        let view = views::settings::effective(configuration);
        let settings = view["settings"].as_array().into_iter().flatten();
        let values = settings.map(|setting| {
            let name = setting["setting"].as_str().unwrap_or_default().to_owned();
            (name, Sha256::digest(setting["value"].to_string()).into())
        });
        let text = configuration.document.value.to_string();
        let digest = Sha256::digest(text)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        SettingsInForce {
            file,
            digest,
            values: values.collect(),
        }
    }

    pub(super) fn view(&self, generation: u64) -> Value {
        json!({"generation": generation, "sha256": self.digest})
    }

    /// What a command puts in the place of another text.
    pub fn digest(&self) -> Value {
        json!({"sha256": self.digest})
    }

    /// The names of settings that are other ones now, by section.
    pub fn differences(&self, now: &SettingsInForce) -> Value {
        let names: BTreeSet<&String> = self.values.keys().chain(now.values.keys()).collect();
        let changed = names
            .into_iter()
            .filter(|name| self.values.get(*name) != now.values.get(*name));
        let mut sections: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for name in changed {
            let (section, setting) = parted(name);
            sections.entry(section).or_default().push(setting);
        }
        let mut view = serde_json::Map::new();
        let count = sections.len();
        for (section, mut settings) in sections.into_iter().take(SECTIONS_MAX) {
            let more = settings.len().saturating_sub(NAMED_MAX);
            settings.truncate(NAMED_MAX);
            if more > 0 {
                settings.push(format!("and {more} more"));
            }
            view.insert(section, json!(settings));
        }
        if count > SECTIONS_MAX {
            view.insert("more sections".to_owned(), json!(count - SECTIONS_MAX));
        }
        Value::Object(view)
    }
}

/// `tools.pay` and `retry.max` of `tools.pay.retry.max`; `server` and `token` of `server.token`.
fn parted(name: &str) -> (String, String) {
    let parts: Vec<&str> = name.splitn(3, '.').collect();
    match parts.as_slice() {
        [kind @ ("tools" | "mcp" | "proxy" | "models"), one, rest] => {
            (format!("{kind}.{one}"), (*rest).to_owned())
        }
        [section, ..] if parts.len() > 1 => {
            (section.to_string(), name[section.len() + 1..].to_owned())
        }
        _ => (name.to_owned(), String::new()),
    }
}
