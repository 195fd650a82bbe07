//! What several tests share: a folder of one's own, and the program run in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use snapbox::cmd::{Command, OutputAssert};
use steadyhand_config::progress::Progress;
use steadyhand_runtime::net::Client;
use steadyhand_runtime::source::Context;

/// Whatever takes longer hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a configuration, where the program can be run as a user would run it.
pub(crate) struct Workplace {
    folder: PathBuf,
    /// Goes with the workplace it was made for.
    _made: Option<tempfile::TempDir>,
    variables: Vec<(String, String)>,
}

impl Workplace {
    /// An empty folder.
    pub(crate) fn new() -> Workplace {
        let made = tempfile::tempdir().expect("a folder for temporary files");
        Workplace {
            folder: made.path().to_owned(),
            _made: Some(made),
            variables: Vec::new(),
        }
    }

    /// The same folder once more, as a second process there would have it.
    pub(crate) fn shared(&self) -> Workplace {
        Workplace {
            folder: self.folder.clone(),
            _made: None,
            variables: self.variables.clone(),
        }
    }

    /// A folder with this `steadyhand.toml`.
    pub(crate) fn with_config(config: &str) -> Workplace {
        let workplace = Workplace::new();
        workplace.write("steadyhand.toml", config);
        workplace
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a file, and the folders it needs.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.file(name);
        let folder = path.parent().expect("a file in the workplace");
        std::fs::create_dir_all(folder).expect("a folder in the workplace");
        std::fs::write(path, text).expect("a file in the workplace");
    }

    /// Sets a variable for the programs run from here on.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> &mut Workplace {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The variables that were set.
    pub(crate) fn variables(&self) -> &[(String, String)] {
        &self.variables
    }

    /// The program with these arguments, split at spaces.
    pub(crate) fn run(&self, arguments: &str) -> OutputAssert {
        let words: Vec<&str> = arguments
            .split(' ')
            .filter(|word| !word.is_empty())
            .collect();
        self.run_words(&words)
    }

    /// The program with these arguments.
    pub(crate) fn run_words(&self, arguments: &[&str]) -> OutputAssert {
        self.command(arguments).assert()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        Command::new(env!("CARGO_BIN_EXE_steadyhand"))
            .with_assert(snapbox::Assert::new().action_env("SNAPSHOTS"))
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .envs(measured())
            .env("PATH", path)
            .env("HOME", self.path())
            .env("LANG", "C.UTF-8")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .timeout(PATIENCE)
    }

    /// What the program prints as JSON.
    pub(crate) fn json(&self, arguments: &str) -> serde_json::Value {
        let run = self.run(arguments);
        let output = run.get_output();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!(
                "`steadyhand {arguments}` printed no JSON ({error}): {}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            )
        })
    }
}

/// Where programs count what they run while `scripts/coverage` measures: all that they get of our own environment.
pub(crate) fn measured() -> Option<(&'static str, String)> {
    let name = "LLVM_PROFILE_FILE";
    Some((name, std::env::var(name).ok()?))
}

/// The exit code, stdout and stderr of a finished program.
pub(crate) fn parts(run: &OutputAssert) -> (i32, String, String) {
    let output = run.get_output();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// What a source is given: everything below this folder, and nobody watching.
pub(crate) fn context(folder: &Path) -> Context {
    Context {
        folder: folder.to_owned(),
        state: folder.join("state"),
        internal: Default::default(),
        trust: Default::default(),
        progress: Progress::silent(),
        http: Client::new(),
        home: Default::default(),
        place: None,
        written: Default::default(),
        secrets: Vec::new(),
        relays: false,
    }
}

/// Serves the routes on a port of loopback, for as long as the test runs.
pub(crate) async fn serve(app: axum::Router) -> std::net::SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("loopback");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// A client for what tests serve.
pub(crate) fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    // No certificates: loading the system's takes longer than most tests.
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]);
    client.build().expect("a client")
}
