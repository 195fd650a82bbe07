//! Switches a tool off or on: `enabled = false` in the configuration file, which is then read again.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::Runtime;
use steadyhand_config::document::plain;
use steadyhand_config::replace::{NotReplaced, replace};
use steadyhand_config::{Extensions, Report, Surroundings, ToolTable, edit};

/// The setting.
pub const SWITCH: &str = "enabled";

/// The table that can switch a tool.
pub struct ToolSwitch {
    /// The tool by its whole name.
    pub tool: String,
    /// The keys of the table.
    pub keys: Vec<String>,
}

impl ToolSwitch {
    /// As it is written: `mcp.mail.each.mail__send.enabled = false`.
    pub fn setting(&self, on: bool) -> String {
        format!("{}.{SWITCH} = {on}", self.keys.join("."))
    }
}

/// Why a tool is as it was.
pub enum NotSwitched {
    NoSuchTool,
    /// There is no file that could say it, or it cannot be changed.
    File {
        message: String,
        help: String,
    },
    /// The file would not be right.
    Wrong(Arc<Report>),
}

impl Runtime {
    /// The table that can switch this tool; tools that are switched off are found too.
    pub fn switch_of(&self, tool: &str) -> Option<ToolSwitch> {
        let found = self.manager().find(tool);
        let (name, source) = match &found {
            Some(found) => (found.name().to_owned(), found.source().map(str::to_owned)),
            None => {
                let mut left_out = self.left_out().into_iter();
                let (source, it) = left_out.find(|(_, it)| it.name == tool)?;
                (it.name, Some(source))
            }
        };
        let generation = self.generation();
        let is_it = |table: &&ToolTable| Some(&table.name) == source.as_ref() || table.name == name;
        let table = generation.configuration.tools.iter().find(is_it)?;
        let mut keys = vec![table.section.to_owned(), table.name.clone()];
        if table.kind.brings_many {
            keys.extend(["each".to_owned(), name.clone()]);
        }
        Some(ToolSwitch { tool: name, keys })
    }

    /// Whether the settings leave this tool out.
    pub fn is_switched_off(&self, tool: &str) -> bool {
        let generation = self.generation();
        let mut sources = generation.sources.iter();
        sources.any(|source| source.has_seen(tool) && source.is_switched_off(tool))
    }

    /// Writes the switch into the configuration file and puts it in force. Gives back what the file says.
    pub async fn switch_tool(&self, tool: &str, on: bool) -> Result<ToolSwitch, NotSwitched> {
        let switch = self.switch_of(tool).ok_or(NotSwitched::NoSuchTool)?;
        let setting = switch.setting(on);
        let by_hand = format!("Write {setting} into the configuration file by hand");
        let refuse = |message: String| NotSwitched::File {
            message,
            help: by_hand.clone(),
        };
        let Some(path) = self.generation().configuration.file.clone() else {
            return Err(NotSwitched::File {
                message: "there is no steadyhand.toml that could say it".to_owned(),
                help: "Make one: steadyhand init".to_owned(),
            });
        };
        let surroundings = self.inner.options.surroundings.clone();
        let shown = surroundings.shown(&path).display().to_string();
        if path.extension().is_none_or(|ending| ending != "toml") {
            return Err(refuse(format!(
                "{shown} belongs to another program, and is not changed"
            )));
        }
        let keys = switch.keys.clone();
        let extensions = self.inner.options.extensions;
        let write = move || write_switch(&path, &keys, on, &surroundings, extensions);
        let written = tokio::task::spawn_blocking(write).await;
        let unchanged = |why: String| refuse(format!("{shown} was not changed: {why}"));
        match written {
            Ok(Ok(())) => {}
            Ok(Err(NotWritten::Wrong(report))) => return Err(NotSwitched::Wrong(report)),
            Ok(Err(NotWritten::Unchanged(why))) => return Err(unchanged(why)),
            Err(error) => return Err(unchanged(error.to_string())),
        }
        self.reload().await.map_err(NotSwitched::Wrong)?;
        Ok(switch)
    }
}

enum NotWritten {
    Unchanged(String),
    Wrong(Arc<Report>),
}

fn write_switch(
    path: &Path,
    keys: &[String],
    on: bool,
    surroundings: &Surroundings,
    extensions: &Extensions,
) -> Result<(), NotWritten> {
    let unreadable = |error: std::io::Error| NotWritten::Unchanged(plain(&error));
    // A link stays a link: what it leads to is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let text = surroundings.trust().read_to_edit(&path);
    let text = text.map_err(unreadable)?;
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let changed = edit::set_switch(&text, &keys, SWITCH, on)
        .map_err(|why| NotWritten::Unchanged(why.to_string()))?;
    if changed == text {
        return Ok(());
    }
    match replace(&path, &changed, surroundings, extensions) {
        Ok(_) => Ok(()),
        Err(NotReplaced::Unwritable(error)) => Err(unreadable(error)),
        Err(NotReplaced::Wrong(report)) => Err(NotWritten::Wrong(Arc::new(report))),
    }
}
