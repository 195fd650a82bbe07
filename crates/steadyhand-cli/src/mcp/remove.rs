//! `steadyhand mcp remove`: a server is taken out of the configuration; of another program's file it is left out.

use serde_json::json;

use super::super::Session;
use super::super::error::{Exit, Failed};
use super::file::File;
use super::no_such_server;
use steadyhand_config::edit::{self, Imports};

pub(super) fn run(session: &Session<'_>, name: &str) -> Result<(), Failed> {
    let file = File::find(session)?;
    let has_table = file.configuration.document.value["mcp"].get(name).is_some();
    let imported = &file.configuration.imported.servers;
    let imported = imported.iter().find(|server| server.name == name);
    if !has_table && imported.is_none() {
        return Err(no_such_server(&file.configuration, name));
    }
    let cannot = |why: edit::NotChanged| {
        let message = format!("{} was not changed: {why}", file.shown);
        Failed::new(Exit::Config, "config_file", message)
            .help("It may stand in steadyhand.local.toml, or be set by a variable: steadyhand config show")
    };
    let mut text = file.text.clone();
    let mut done = Vec::new();
    if has_table {
        text = edit::remove_server(&text, name).map_err(cannot)?;
        done.push(format!("Removed [mcp.{name}] from {}", file.shown));
    }
    if let Some(server) = imported {
        // The file is not ours to change.
        let imports = Imports {
            skip: vec![name.to_owned()],
            ..Imports::default()
        };
        text = edit::change_imports(&text, &imports).map_err(cannot)?;
        let from = session.surroundings.shown(&server.origin.file);
        done.push(format!(
            "{name} of {} is left out from now on: {} says so in [import] skip",
            from.display(),
            file.shown
        ));
    }
    file.write(session, &text)?;
    match session.screen.json {
        true => session
            .screen
            .json(&json!({"file": file.shown, "server": name, "skipped": imported.is_some()})),
        false => session.screen.answer(&done.join("\n")),
    }
    Ok(())
}
