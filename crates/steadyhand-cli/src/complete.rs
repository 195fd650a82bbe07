//! Completions for shells. Names of tools, servers, models and calls come from the configuration and its history at
//! the moment of asking: nothing is started, and nobody is asked.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::{CompleteEnv, EnvCompleter};

use super::error::{Exit, Failed};
use super::screen::Screen;
use super::{history_path, man};
use crate::extensions::EXTENSIONS;
use steadyhand_config::{Configuration, Surroundings, find};
use steadyhand_runtime::source::mcp;
use steadyhand_server::serve as serving;
use steadyhand_store::history::inspect;

/// The variable by which a shell asks the program itself for completions.
const VARIABLE: &str = "STEADYHAND_COMPLETE";
/// Calls that are offered: the newest.
const CALLS_MAX: usize = 50;

#[derive(Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(required_unless_present = "into")]
    shell: Option<Shell>,
    /// Write the files of all shells into this folder, for a package
    #[arg(long, value_name = "DIR", conflicts_with = "shell")]
    into: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
pub(super) enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
    Elvish,
}

impl Shell {
    fn completer(self) -> &'static dyn EnvCompleter {
        match self {
            Shell::Bash => &clap_complete::env::Bash,
            Shell::Zsh => &clap_complete::env::Zsh,
            Shell::Fish => &clap_complete::env::Fish,
            Shell::Powershell => &clap_complete::env::Powershell,
            Shell::Elvish => &clap_complete::env::Elvish,
        }
    }

    /// What the shell expects such a file to be called.
    fn file(self) -> &'static str {
        match self {
            Shell::Bash => "steadyhand",
            Shell::Zsh => "_steadyhand",
            Shell::Fish => "steadyhand.fish",
            Shell::Powershell => "steadyhand.ps1",
            Shell::Elvish => "steadyhand.elv",
        }
    }
}

/// If a shell asks for completions, answers it and ends the program.
pub(super) fn answer_the_shell(command: fn() -> clap::Command) {
    CompleteEnv::with_factory(command).var(VARIABLE).complete();
}

pub(super) fn run(
    args: &CompletionsArgs,
    screen: &Screen,
    command: &clap::Command,
) -> Result<(), Failed> {
    let name = command.get_name();
    if let Some(folder) = &args.into {
        return write_all(screen, folder, name);
    }
    let Some(shell) = args.shell else {
        return Err(Failed::new(Exit::Usage, "usage", "which shell?"));
    };
    screen.exact(&script(shell, name)?);
    Ok(())
}

/// The lines that a shell reads at its start.
fn script(shell: Shell, name: &str) -> Result<String, Failed> {
    let mut script = Vec::new();
    shell
        .completer()
        .write_registration(VARIABLE, name, name, name, &mut script)
        .map_err(|error| Failed::unexpected(error.to_string()))?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

fn write_all(screen: &Screen, folder: &Path, name: &str) -> Result<(), Failed> {
    let shells = [
        Shell::Bash,
        Shell::Zsh,
        Shell::Fish,
        Shell::Powershell,
        Shell::Elvish,
    ];
    let cannot = |error: std::io::Error| man::cannot_write(folder, &error);
    fs::create_dir_all(folder).map_err(cannot)?;
    let mut written = Vec::new();
    for shell in shells {
        let mut text = script(shell, name)?;
        if let Shell::Zsh = shell {
            // Loaded by its name it is also the first to be asked.
            text.push_str(&format!(
                "if [[ \"${{funcstack[1]}}\" = _{name} ]]; then _clap_dynamic_completer_{name} \"$@\"; fi\n"
            ));
        }
        fs::write(folder.join(shell.file()), text).map_err(cannot)?;
        written.push(shell.file().to_owned());
    }
    man::tell(screen, folder, &written, "file");
    Ok(())
}

/// The tools that the configuration names, and those of MCP servers as far as they are known: nothing is started
/// or looked up for this, and sources with many tools are not loaded.
pub(super) fn tool_names() -> Vec<CompletionCandidate> {
    let asked = Asked::now();
    let Some(configuration) = asked.configuration() else {
        return Vec::new();
    };
    let kept = mcp::Kept::new(&configuration, &asked.surroundings);
    let names = configuration
        .tools
        .iter()
        .flat_map(|table| match table.is_server() {
            true => kept.tool_names(table),
            false => vec![table.name.clone()],
        });
    candidates(names)
}

/// The MCP servers of the configuration.
pub(super) fn server_names() -> Vec<CompletionCandidate> {
    let configuration = Asked::now().configuration();
    candidates(configuration.iter().flat_map(super::mcp::names))
}

/// The models of the configuration, and the demo.
pub(super) fn model_names() -> Vec<CompletionCandidate> {
    let Some(configuration) = Asked::now().configuration() else {
        return Vec::new();
    };
    let models = steadyhand_runtime::models::list(&configuration).into_iter();
    candidates(models.map(|model| model.name))
}

/// The newest calls of the history, each with its tool.
pub(super) fn call_ids() -> Vec<CompletionCandidate> {
    let asked = Asked::now();
    let Some(configuration) = asked.configuration() else {
        return Vec::new();
    };
    let settings = serving::settings_of(&configuration, &asked.surroundings);
    let settings = settings.map(|settings| settings.history);
    let state = match &asked.state {
        Some(state) => asked.surroundings.current.join(state),
        None => asked.surroundings.state_folder(),
    };
    let path = history_path(
        &asked.surroundings,
        &state,
        &configuration,
        &settings.unwrap_or_default(),
    );
    let calls = inspect::newest(&path, CALLS_MAX).into_iter();
    calls
        .map(|(id, tool)| CompletionCandidate::new(id).help(Some(tool.into())))
        .collect()
}

fn candidates(names: impl IntoIterator<Item = impl Into<OsString>>) -> Vec<CompletionCandidate> {
    let names = names.into_iter();
    names
        .map(|name| CompletionCandidate::new(name.into()))
        .collect()
}

/// Where the line stands that is being typed: the folder, and the flags before the cursor.
struct Asked {
    surroundings: Surroundings,
    file: Option<PathBuf>,
    state: Option<PathBuf>,
}

impl Asked {
    fn now() -> Asked {
        let surroundings = Surroundings::of_this_process();
        // What is typed stands behind the first `--`.
        let words: Vec<OsString> = std::env::args_os()
            .skip_while(|word| word != "--")
            .collect();
        let flag = |names: &[&str]| {
            let at = words
                .iter()
                .position(|word| names.iter().any(|name| word == name))?;
            words.get(at + 1).map(PathBuf::from)
        };
        let config = flag(&["-c", "--config"]);
        let found = find::find(config.as_deref(), &surroundings);
        Asked {
            file: found.map(|found| found.path),
            state: flag(&["--state"]),
            surroundings,
        }
    }

    fn configuration(&self) -> Option<Configuration> {
        Configuration::load(self.file.as_deref(), &self.surroundings, &EXTENSIONS).ok()
    }
}
