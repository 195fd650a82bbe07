//! `steadyhand tools enable` and `disable`: whether a tool is offered, written into the configuration.

use serde_json::json;

use super::Session;
use super::error::{Exit, Failed};
use super::mcp::file::File;
use super::tools::no_such_tool;
use crate::config::edit;
use crate::runtime::Runtime;

/// The setting.
const SWITCH: &str = "enabled";

pub(super) async fn set(session: &Session<'_>, tool: &str, on: bool) -> Result<(), Failed> {
    let file = File::find(session)?;
    if file.is_new {
        let message = format!("there is no {} that could say it", file.shown);
        return Err(
            Failed::new(Exit::Config, "config_file", message).help("Make one: steadyhand init")
        );
    }
    // Nothing is started for it.
    let runtime = session.runtime(|options| options.only_look = true).await?;
    let Some((name, keys)) = table_of(&runtime, tool) else {
        return Err(no_such_tool(&runtime, tool));
    };
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let text = edit::set_switch(&file.text, &keys, SWITCH, on).map_err(|why| {
        let message = format!("{} was not changed: {why}", file.shown);
        Failed::new(Exit::Config, "config_file", message).help(format!(
            "Write {SWITCH} = {on} into [{}] by hand",
            keys.join(".")
        ))
    })?;
    let is_changed = text != file.text;
    if is_changed {
        file.write(session, &text)?;
    }
    let setting = format!("{}.{SWITCH} = {on}", keys.join("."));
    if session.screen.json {
        let view = json!({"tool": name, "enabled": on, "file": file.shown, "setting": setting, "changed": is_changed});
        session.screen.json(&view);
        return Ok(());
    }
    let state = if on { "on" } else { "off" };
    session.screen.answer(&match is_changed {
        true => format!("{name} is switched {state}: {} says {setting}", file.shown),
        false => format!("{name} is switched {state} already: nothing was changed"),
    });
    Ok(())
}

/// The tool by its whole name, and the keys of the table that can switch it.
fn table_of(runtime: &Runtime, tool: &str) -> Option<(String, Vec<String>)> {
    let found = runtime.manager().find(tool);
    let (name, source) = match &found {
        Some(found) => (found.name().to_owned(), found.source().map(str::to_owned)),
        // One that is switched off is not among them.
        None => {
            let mut left_out = runtime.left_out().into_iter();
            let (source, it) = left_out.find(|(_, it)| it.name == tool)?;
            (it.name, Some(source))
        }
    };
    let generation = runtime.generation();
    let tables = &generation.configuration.tools;
    let is_it = |table: &&crate::config::ToolTable| {
        Some(&table.name) == source.as_ref() || table.name == name
    };
    let table = tables.iter().find(is_it)?;
    let mut keys = vec![table.section.to_owned(), table.name.clone()];
    if table.kind.brings_many {
        keys.extend(["each".to_owned(), name.clone()]);
    }
    Some((name, keys))
}
