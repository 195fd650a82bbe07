//! `steadyhand man`: the manual, made from the commands themselves; one page, or all of them into a folder.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use clap_mangen::Man;
use serde_json::json;

use super::error::{Exit, Failed};
use super::screen::Screen;
use super::value;
use steadyhand_config::document::plain;

#[derive(Args)]
pub(super) struct ManArgs {
    /// Write all pages into this folder; without it the first one is printed (steadyhand man | man -l -)
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(super) fn run(args: &ManArgs, screen: &Screen, command: clap::Command) -> Result<(), Failed> {
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        let rendered = Man::new(command).render(&mut page);
        rendered.map_err(|error| Failed::unexpected(error.to_string()))?;
        screen.exact(&String::from_utf8_lossy(&page));
        return Ok(());
    };
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut written = Vec::new();
    fs::create_dir_all(folder)
        .and_then(|()| write(command, folder, &mut written))
        .map_err(|error| cannot_write(folder, &error))?;
    tell(screen, folder, &written, "page");
    Ok(())
}

/// A page for each command and each command below it.
fn write(command: clap::Command, folder: &Path, written: &mut Vec<String>) -> std::io::Result<()> {
    let below = command.get_subcommands().filter(|it| !it.is_hide_set());
    for command in below.cloned().collect::<Vec<_>>() {
        write(command, folder, written)?;
    }
    let page = Man::new(command);
    page.generate_to(folder)?;
    written.push(page.get_filename());
    Ok(())
}

/// Says which files were written.
pub(super) fn tell(screen: &Screen, folder: &Path, written: &[String], what: &str) {
    match screen.json {
        true => screen.json(&json!({"folder": folder.display().to_string(), "files": written})),
        false => screen.note(&format!(
            "Wrote {} into {}",
            value::counted(written.len(), what),
            folder.display()
        )),
    }
}

pub(super) fn cannot_write(folder: &Path, error: &std::io::Error) -> Failed {
    let message = format!("cannot write into {}: {}", folder.display(), plain(error));
    Failed::new(Exit::Usage, "output_failed", message).help("Name a folder that may be written to")
}
