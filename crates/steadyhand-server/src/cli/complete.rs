//! Completions for shells. The names of tools come from the configuration at the moment of asking.

use clap_complete::engine::CompletionCandidate;
use clap_complete::env::{CompleteEnv, EnvCompleter};

use super::error::Failed;
use super::screen::Screen;
use crate::config::{Configuration, Surroundings, find};
use crate::source::mcp;

/// The variable by which a shell asks the program itself for completions.
const VARIABLE: &str = "STEADYHAND_COMPLETE";

#[derive(Clone, Copy, clap::ValueEnum)]
pub(super) enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
    Elvish,
}

/// If a shell asks for completions, answers it and ends the program.
pub(super) fn answer_the_shell(command: fn() -> clap::Command) {
    CompleteEnv::with_factory(command).var(VARIABLE).complete();
}

/// Prints the lines that a shell reads at its start.
pub(super) fn print(shell: Shell, screen: &Screen, command: clap::Command) -> Result<(), Failed> {
    let completer: &dyn EnvCompleter = match shell {
        Shell::Bash => &clap_complete::env::Bash,
        Shell::Zsh => &clap_complete::env::Zsh,
        Shell::Fish => &clap_complete::env::Fish,
        Shell::Powershell => &clap_complete::env::Powershell,
        Shell::Elvish => &clap_complete::env::Elvish,
    };
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    completer
        .write_registration(VARIABLE, &name, &name, &name, &mut script)
        .map_err(|error| Failed::unexpected(error.to_string()))?;
    screen.answer(&String::from_utf8_lossy(&script));
    Ok(())
}

/// The tools that the configuration names, and those of MCP servers as far as they are known: nothing is started
/// or looked up for this, and sources with many tools are not loaded.
pub(super) fn tool_names() -> Vec<CompletionCandidate> {
    let surroundings = Surroundings::of_this_process();
    let found = find::find(None, &surroundings);
    let path = found.as_ref().map(|found| found.path.as_path());
    let Ok(configuration) = Configuration::load(path, &surroundings) else {
        return Vec::new();
    };
    let kept = mcp::Kept::new(&configuration, &surroundings);
    let names = configuration
        .tools
        .iter()
        .flat_map(|table| match table.is_server() {
            true => kept.tool_names(table),
            false => vec![table.name.clone()],
        });
    names.map(CompletionCandidate::new).collect()
}

/// The MCP servers of the configuration.
pub(super) fn server_names() -> Vec<CompletionCandidate> {
    let surroundings = Surroundings::of_this_process();
    let found = find::find(None, &surroundings);
    let path = found.as_ref().map(|found| found.path.as_path());
    let configuration = Configuration::load(path, &surroundings);
    let names = configuration.map(|configuration| super::mcp::names(&configuration));
    names
        .unwrap_or_default()
        .into_iter()
        .map(CompletionCandidate::new)
        .collect()
}

/// The models of the configuration, and the demo.
pub(super) fn model_names() -> Vec<CompletionCandidate> {
    let surroundings = Surroundings::of_this_process();
    let found = find::find(None, &surroundings);
    let path = found.as_ref().map(|found| found.path.as_path());
    let Ok(configuration) = Configuration::load(path, &surroundings) else {
        return Vec::new();
    };
    let models = crate::models::list(&configuration).into_iter();
    models
        .map(|model| CompletionCandidate::new(model.name))
        .collect()
}
