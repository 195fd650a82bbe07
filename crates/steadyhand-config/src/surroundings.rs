//! What the configuration may ask of the machine: variables, folders, the key store. Tests give their own.

use std::collections::HashMap;
use std::env::VarError;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::keyring::{Keyring, SystemKeyring};
use super::ownership::{self, Trust};

/// The variables, folders and key store that references and imports are resolved with.
#[derive(Clone)]
pub struct Surroundings {
    /// The user's home folder, where there is one. Absolute.
    pub home: Option<PathBuf>,
    /// The folder the program was started in: what other programs call the workspace.
    pub current: PathBuf,
    /// Whose conventions say where configuration files are.
    pub system: System,
    variables: Variables,
    keyring: Arc<dyn Keyring>,
    trust: Trust,
    /// The environment names no home folder, or a relative one.
    is_homeless: bool,
}

/// Where state is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFolder {
    pub path: PathBuf,
    /// 0.1.0 made it in the folder where it was started, because it knew no other place.
    pub is_where_we_started: bool,
}

/// Nobody says where state could be kept.
#[derive(Debug, thiserror::Error)]
#[error(
    "nobody says where state is kept: this user has no home folder, and HOME and XDG_STATE_HOME name no absolute one"
)]
pub struct NoStateFolder;

/// What to do about it.
pub const NAME_A_STATE_FOLDER: &str =
    "Name a folder of your own: --state DIR, or set XDG_STATE_HOME or HOME to an absolute path";
/// Nothing can be made in it: stands for the state folder where there is none.
const NOWHERE: &str = "/dev/null/steadyhand";

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
        let named = etcetera::home_dir().ok().filter(|home| home.is_absolute());
        Surroundings {
            is_homeless: named.is_none(),
            home: named.or_else(ownership::home_of_this_user),
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
            is_homeless: false,
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

    /// The user's configuration of this program, where there can be one.
    pub fn config_folder(&self) -> Option<PathBuf> {
        let folder = self.own_folder("XDG_CONFIG_HOME", ".config");
        folder.map(|folder| folder.path)
    }

    /// Where the program keeps what it wants to find again. Where nobody says that, nothing can be kept.
    pub fn state_folder(&self) -> PathBuf {
        let found = self.find_state_folder();
        found.map_or_else(|_| PathBuf::from(NOWHERE), |folder| folder.path)
    }

    /// The same, with what a person should know of it.
    pub fn find_state_folder(&self) -> Result<StateFolder, NoStateFolder> {
        self.own_folder("XDG_STATE_HOME", ".local/state")
            .ok_or(NoStateFolder)
    }

    /// A folder named by a variable, else one below the home folder; a relative name is none, as the XDG specification
    /// wants it. Never one in the folder where we were started: whoever owns that folder would own what we keep.
    fn own_folder(&self, variable: &str, below_home: &str) -> Option<StateFolder> {
        let named = self.variable(variable).ok().filter(|path| !path.is_empty());
        let in_use = |base: PathBuf| StateFolder {
            path: base.join("steadyhand"),
            is_where_we_started: false,
        };
        let absolute = named.as_ref().map(PathBuf::from);
        if let Some(base) = absolute.filter(|path| path.is_absolute()) {
            return Some(in_use(base));
        }
        if self.is_homeless || named.is_some() {
            let path = self.current.join(".steadyhand").join("steadyhand");
            if ownership::is_ours_alone(&path) {
                return Some(StateFolder {
                    path,
                    is_where_we_started: true,
                });
            }
        }
        let home = self.home.as_ref()?;
        Some(in_use(home.join(below_home)))
    }

    /// A path as the user would name it: relative to where they are, if it lies below.
    pub fn shown(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.current).unwrap_or(path).to_owned()
    }

    /// The same, and from the home folder on if it lies there: `~/.cursor/mcp.json`.
    pub fn shown_at_home(&self, path: &Path) -> String {
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
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// For a run in which everything that is named is used, whoever could have written it.
    #[must_use]
    pub fn trusting_everything(mut self) -> Surroundings {
        self.trust = Trust::in_everything();
        self
    }

    /// A folder named by a variable, else one below the home folder.
    pub fn folder(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        match self.variable(variable) {
            Ok(folder) if !folder.is_empty() => Some(PathBuf::from(folder)),
            _ => Some(self.home.as_ref()?.join(below_home)),
        }
    }

    /// A path as people write it: `~/…` is in the home folder, a relative one starts at `base`.
    pub fn path(&self, written: &str, base: &Path) -> PathBuf {
        base.join(self.without_tilde(written))
    }

    /// `~` and `~/…` replaced by the home folder; anything else as it is.
    pub fn without_tilde(&self, written: &str) -> PathBuf {
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

#[cfg(test)]
mod tests {
    use super::super::keyring::SystemKeyring;
    use super::*;

    fn homeless(current: &Path, home: Option<&Path>, xdg: &'static str) -> Surroundings {
        let keyring = Arc::new(SystemKeyring::default());
        let mut made =
            Surroundings::given([("XDG_STATE_HOME", xdg)], Path::new("/"), current, keyring);
        made.is_homeless = home.is_none();
        made.home = home.map(Path::to_owned);
        made
    }

    #[cfg(unix)]
    #[test]
    fn s06_state_is_never_kept_where_somebody_else_owns_the_folder_we_started_in() {
        use std::os::unix::fs::PermissionsExt;

        let place = tempfile::tempdir().expect("a folder");
        let mode = |path: &Path, mode: u32| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(path, mode).expect("a mode");
        };
        let found = |home: Option<&Path>, xdg| {
            let found = homeless(place.path(), home, xdg).find_state_folder();
            found.ok().map(|it| (it.path, it.is_where_we_started))
        };
        let at = |path: &str| Some((PathBuf::from(path), false));
        // Nothing is made up.
        assert_eq!(found(None, ""), None);
        assert_eq!(found(None, "relative"), None);
        // What is relative is none, as if nothing was said.
        let home = Some(Path::new("/home/ann"));
        let usual = at("/home/ann/.local/state/steadyhand");
        assert_eq!(found(home, ""), usual);
        assert_eq!(found(home, "relative"), usual);
        assert_eq!(found(None, "/var/lib"), at("/var/lib/steadyhand"));
        // One that 0.1.0 has made goes on, as long as nobody else can write it.
        let old = place.path().join(".steadyhand").join("steadyhand");
        std::fs::create_dir_all(&old).expect("made");
        mode(&old, 0o755);
        let kept = Some((old.clone(), true));
        assert_eq!(found(None, ""), kept);
        assert_eq!(found(home, "relative"), kept);
        assert_eq!(found(home, ""), usual, "0.1.0 used this one, too");
        for (path, open, closed) in [
            (old.as_path(), 0o777, 0o700),
            (old.parent().expect("a folder"), 0o777, 0o700),
            (place.path(), 0o777, 0o700),
        ] {
            mode(path, open);
            assert_eq!(found(None, ""), None, "{}", path.display());
            mode(path, closed);
            assert_eq!(found(None, ""), kept, "{}", path.display());
        }
    }
}
