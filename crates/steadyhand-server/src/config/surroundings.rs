//! What the configuration may ask of the machine: variables, folders, the key store. Tests give their own.

use std::collections::HashMap;
use std::env::VarError;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::keyring::{Keyring, SystemKeyring};
use super::ownership::Trust;

/// The variables, folders and key store that references and imports are resolved with.
#[derive(Clone)]
pub struct Surroundings {
    /// The user's home folder, where there is one.
    pub home: Option<PathBuf>,
    /// The folder the program was started in: what other programs call the workspace.
    pub current: PathBuf,
    /// Whose conventions say where configuration files are.
    pub system: System,
    variables: Variables,
    keyring: Arc<dyn Keyring>,
    trust: Trust,
}

/// The family of operating systems, as far as file locations differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Linux and the other Unixes
    Linux,
    /// macOS
    Mac,
    /// Windows
    Windows,
}

#[derive(Clone)]
enum Variables {
    OfTheProcess,
    Given(Arc<HashMap<String, String>>),
}

impl Surroundings {
    /// Those of the running program.
    pub fn of_this_process() -> Surroundings {
        Surroundings {
            home: etcetera::home_dir().ok(),
            current: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            system: System::of_this_machine(),
            variables: Variables::OfTheProcess,
            keyring: Arc::new(SystemKeyring::default()),
            trust: Trust::default(),
        }
    }

    /// Made up ones: only these variables, and whatever this key store says.
    pub fn given(
        variables: impl IntoIterator<Item = (&'static str, &'static str)>,
        home: &Path,
        current: &Path,
        keyring: Arc<dyn Keyring>,
    ) -> Surroundings {
        let variables = variables
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        Surroundings {
            home: Some(home.to_owned()),
            current: current.to_owned(),
            system: System::of_this_machine(),
            variables: Variables::Given(Arc::new(variables)),
            keyring,
            trust: Trust::default(),
        }
    }

    /// A variable of the environment.
    pub fn variable(&self, name: &str) -> Result<String, VarError> {
        match &self.variables {
            Variables::OfTheProcess => std::env::var(name),
            Variables::Given(given) => given.get(name).cloned().ok_or(VarError::NotPresent),
        }
    }

    /// All variables whose names and values are Unicode.
    pub fn variables(&self) -> Vec<(String, String)> {
        match &self.variables {
            Variables::OfTheProcess => std::env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .collect(),
            Variables::Given(given) => given
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        }
    }

    /// The user's configuration of this program.
    pub fn config_folder(&self) -> PathBuf {
        self.own_folder("XDG_CONFIG_HOME", ".config")
    }

    /// Where the program keeps what it wants to find again.
    pub fn state_folder(&self) -> PathBuf {
        self.own_folder("XDG_STATE_HOME", ".local/state")
    }

    fn own_folder(&self, variable: &str, below_home: &str) -> PathBuf {
        let base = self
            .folder(variable, below_home)
            .filter(|path| path.is_absolute());
        base.unwrap_or_else(|| self.current.join(".steadyhand"))
            .join("steadyhand")
    }

    /// A path as the user would name it: relative to where they are, if it lies below.
    pub fn shown(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.current).unwrap_or(path).to_owned()
    }

    /// The same, and from the home folder on if it lies there: `~/.cursor/mcp.json`.
    pub(crate) fn shown_at_home(&self, path: &Path) -> String {
        let home = self.home.as_deref().filter(|home| home.parent().is_some());
        let is_at_home = home == Some(&*self.current);
        let below_current = path.strip_prefix(&self.current).ok();
        let shown = match (
            below_current,
            home.and_then(|home| path.strip_prefix(home).ok()),
        ) {
            (Some(below), _) if !is_at_home => below.to_owned(),
            (_, Some(below)) => Path::new("~").join(below),
            _ => path.to_owned(),
        };
        shown.display().to_string()
    }

    /// The key store.
    pub fn keyring(&self) -> &dyn Keyring {
        self.keyring.as_ref()
    }

    /// Which files of others are used.
    pub(crate) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// For a run in which everything that is named is used, whoever could have written it.
    #[must_use]
    pub fn trusting_everything(mut self) -> Surroundings {
        self.trust = Trust::in_everything();
        self
    }

    /// A folder named by a variable, else one below the home folder.
    pub(crate) fn folder(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        match self.variable(variable) {
            Ok(folder) if !folder.is_empty() => Some(PathBuf::from(folder)),
            _ => Some(self.home.as_ref()?.join(below_home)),
        }
    }

    /// A path as people write it: `~/…` is in the home folder, a relative one starts at `base`.
    pub(crate) fn path(&self, written: &str, base: &Path) -> PathBuf {
        base.join(self.without_tilde(written))
    }

    /// `~` and `~/…` replaced by the home folder; anything else as it is.
    pub(crate) fn without_tilde(&self, written: &str) -> PathBuf {
        let below_home = match written {
            "~" => Some(""),
            _ => written
                .strip_prefix("~/")
                .or_else(|| written.strip_prefix("~\\")),
        };
        match (below_home, &self.home) {
            (Some(""), Some(home)) => home.clone(),
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(written),
        }
    }
}

impl System {
    fn of_this_machine() -> System {
        match std::env::consts::OS {
            "macos" => System::Mac,
            "windows" => System::Windows,
            _ => System::Linux,
        }
    }
}

// Variables hold secrets: only where we are is shown.
impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings")
            .field("home", &self.home)
            .field("current", &self.current)
            .field("system", &self.system)
            .finish_non_exhaustive()
    }
}
