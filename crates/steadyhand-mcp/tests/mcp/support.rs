//! What the tests share: servers to talk to, a stage to call their tools on, and an eye on what is left behind.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::{Call, Effect, Event, FailureCode, Outcome, Output, ToolExecutor, ToolManager};
use steadyhand_mcp::{Phase, Server, ServerSettings};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// Whatever takes longer hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The start limit where a start is to reach it: enough for a server that is not silent, on a busy machine, too.
pub(crate) const SILENCE: Duration = Duration::from_secs(2);

/// Whether a mode of the hostile server says nothing at its start.
pub(crate) fn is_silent(mode: &str) -> bool {
    ["silent_init", "stdout_talker"].contains(&mode)
}

/// One server, its tools under their own names, and what is needed to see that nothing of it is left.
pub(crate) struct Stage {
    pub(crate) server: Server,
    pub(crate) executor: ToolExecutor,
    pub(crate) folder: Folder,
}

/// A folder of one's own, and a mark that everything started from it carries in its environment.
pub(crate) struct Folder {
    pub(crate) mark: String,
    folder: TempDir,
}

impl Folder {
    pub(crate) fn new() -> Folder {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        // Its name is unique, so it is the mark.
        let mark = folder.path().display().to_string();
        Folder { mark, folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Settings for the hostile server in one mode.
    pub(crate) fn hostile(&self, arguments: &[&str]) -> ServerSettings {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/server.py");
        let script = script.display().to_string();
        let words = ["-S", "-E", &script].into_iter();
        let words = words.chain(arguments.iter().copied());
        let mut settings = self.program("hostile", python(), words.map(str::to_owned));
        for (name, file) in [
            ("HOSTILE_STATE", "shown"),
            ("HOSTILE_LEDGER", "ledger"),
            ("HOSTILE_PIDS", "pids"),
        ] {
            let path = self.path(file).display().to_string();
            set(&mut settings, name, &path);
        }
        settings
    }

    /// Settings for any server: marked, its tools under their own names, no long waits.
    pub(crate) fn program(
        &self,
        name: &str,
        program: &Path,
        arguments: impl IntoIterator<Item = String>,
    ) -> ServerSettings {
        let program = program.display().to_string();
        let mut settings = ServerSettings::stdio(name, program, arguments);
        settings.prefix = false;
        settings.start.waits = [0, 20, 20].map(Duration::from_millis).to_vec();
        settings.start.retry_first = Duration::from_millis(200);
        settings.as_stdio().cwd = self.folder.path().to_owned();
        set(&mut settings, "STEADYHAND_TEST_MARK", &self.mark);
        settings
    }

    /// Nothing that was started from here is left.
    pub(crate) async fn assert_nobody_left(&self) {
        until("all its processes are gone", || {
            processes(&self.mark).is_empty()
        })
        .await;
        // Those may have cleared their environment.
        for pid in self.text("pids").lines() {
            let path = format!("/proc/{pid}/stat");
            until("what it left behind is gone", || is_dead(Path::new(&path))).await;
        }
    }
}

/// Sets a variable of a server.
pub(crate) fn set(settings: &mut ServerSettings, name: &str, value: &str) {
    let pair = (name.to_owned(), Some(value.to_owned()));
    settings.as_stdio().env.push(pair);
}

impl Stage {
    /// The hostile server in one mode, up or known to be down.
    pub(crate) async fn of(arguments: &[&str]) -> Stage {
        let folder = Folder::new();
        let settings = folder.hostile(arguments);
        Stage::with(folder, settings).await
    }

    /// Any server, up or known to be down.
    pub(crate) async fn with(folder: Folder, settings: ServerSettings) -> Stage {
        let stage = Stage::begin(folder, settings);
        stage.server.settled(PATIENCE).await;
        stage.take_tools();
        stage
    }

    /// Any server, just started. Its tools are there from the start if they were seen before.
    pub(crate) fn begin(folder: Folder, settings: ServerSettings) -> Stage {
        let server = Server::new(settings, Some(folder.path("state")));
        let stage = Stage {
            executor: ToolExecutor::new(ToolManager::new()),
            server,
            folder,
        };
        stage.take_tools();
        stage.server.start();
        stage
    }

    /// A hostile server, just started, whose tools are known from a time when it was well.
    pub(crate) async fn remembered(
        arguments: &[&str],
        change: impl FnOnce(&mut ServerSettings),
    ) -> Stage {
        let folder = Folder::new();
        let mut well = folder.hostile(arguments);
        set(&mut well, "HOSTILE_TIMES", "0");
        let before = Stage::with(folder, well).await;
        assert_eq!(before.server.state().phase, Phase::Running);
        before.server.stop().await;
        let folder = before.folder;
        let mut ill = folder.hostile(arguments);
        change(&mut ill);
        Stage::begin(folder, ill)
    }

    /// Takes over the tools as the server offers them now.
    pub(crate) fn take_tools(&self) {
        let refused = self
            .executor
            .tools()
            .replace_source(self.server.name(), self.server.tools());
        assert!(refused.is_empty(), "{refused:?}");
    }

    pub(crate) async fn call(&self, tool: &str, args: Value) -> Outcome {
        self.run(Call::new(tool, args)).await
    }

    /// Runs a call, and sees that it does not hang.
    pub(crate) async fn run(&self, call: Call) -> Outcome {
        let (tool, patience) = (call.name.clone(), PATIENCE);
        let outcome = tokio::time::timeout(patience, self.executor.execute(call)).await;
        outcome.unwrap_or_else(|_| panic!("{tool} hangs: no outcome after {patience:?}"))
    }

    /// The text a tool gives.
    pub(crate) async fn text(&self, tool: &str, args: Value) -> String {
        text(&self.call(tool, args).await)
    }

    /// What a model reads of a tool's answer.
    pub(crate) async fn text_shown(&self, tool: &str, args: &Value) -> String {
        let outcome = self.call(tool, args.clone()).await;
        value(&outcome);
        outcome.output().map(Output::text).unwrap_or_default()
    }

    /// What a tool gives as JSON in a text.
    pub(crate) async fn json(&self, tool: &str, args: Value) -> Value {
        let text = self.text(tool, args).await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The very next call works.
    pub(crate) async fn assert_next_call_works(&self) {
        self.assert_echo("still there").await;
    }

    /// Whatever was sent to others, calls work: every one of many.
    pub(crate) async fn assert_others_are_served(&self) {
        for _ in 0..200 {
            self.assert_echo("still there").await;
        }
    }

    pub(crate) async fn assert_echo(&self, answer: &str) {
        let text = self.text("echo", json!({"message": "still there"})).await;
        assert_eq!(text, answer);
    }

    /// A call works as soon as the server is back.
    pub(crate) async fn assert_comes_back(&self) {
        let end = Instant::now() + PATIENCE;
        loop {
            let outcome = self.call("echo", json!({"message": "back"})).await;
            let Some(failure) = outcome.failure() else {
                return;
            };
            assert_eq!(
                (failure.code, failure.effect),
                (FailureCode::NetworkError, Effect::None),
                "{failure}"
            );
            assert!(Instant::now() < end, "it does not come back: {failure}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Stops the server, and sees that nothing of it is left.
    pub(crate) async fn over(self) {
        let stopped = tokio::time::timeout(PATIENCE, self.server.stop()).await;
        stopped.expect("stopping hangs");
        self.folder.assert_nobody_left().await;
    }
}

/// The text of an outcome that is a success.
pub(crate) fn text(outcome: &Outcome) -> String {
    let value = value(outcome);
    let text = value.as_str();
    text.unwrap_or_else(|| panic!("no text: {value}"))
        .to_owned()
}

/// The value of an outcome that is a success.
pub(crate) fn value(outcome: &Outcome) -> &Value {
    match &outcome.result {
        Ok(output) => output.value(),
        Err(failure) => panic!("{} failed: {failure}", outcome.tool_name),
    }
}

/// The failure of an outcome that is none: its code, its effect, its words.
pub(crate) fn failure(outcome: &Outcome) -> (FailureCode, Effect, &str) {
    match &outcome.result {
        Ok(output) => panic!("{} succeeded: {}", outcome.tool_name, output.value()),
        Err(failure) => (failure.code, failure.effect, &failure.message),
    }
}

/// Looks again and again until it is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "never happened: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// The living processes that have `mark` in their environment or their arguments. A zombie has neither.
pub(crate) fn processes(mark: &str) -> Vec<u32> {
    let holds = |pid: &u32, file: &str| {
        let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        bytes
            .windows(mark.len())
            .any(|part| part == mark.as_bytes())
    };
    let entries = std::fs::read_dir("/proc").expect("Linux").flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| holds(pid, "environ") || holds(pid, "cmdline"))
        .collect()
}

fn is_dead(stat: &Path) -> bool {
    let stat = std::fs::read_to_string(stat).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

/// The interpreter itself, past any script that stands for it in PATH.
pub(crate) fn python() -> &'static Path {
    static PYTHON: LazyLock<PathBuf> = LazyLock::new(|| {
        let output = Command::new("python3")
            .args(["-c", "import sys; print(sys.executable)"])
            .output()
            .expect("python3 is installed: ./test sees to that");
        let path = String::from_utf8(output.stdout).expect("a path");
        PathBuf::from(OsString::from(path.trim()))
    });
    &PYTHON
}

/// A program that `./test` installs below `target/peers`.
pub(crate) fn peer(path: &str) -> PathBuf {
    let found = ancestors().map(|folder| folder.join("target/peers").join(path));
    let mut found = found.filter(|path| path.exists());
    found.next().unwrap_or_else(|| {
        panic!("target/peers/{path} is not installed: run ./test, or: . scripts/peers.sh && install_peers target/peers")
    })
}

/// An example of this crate, which `cargo test` builds beside the tests.
pub(crate) fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().expect("a path of our own");
    let profile = tests.parent().and_then(Path::parent);
    let path = profile.expect("target/debug").join("examples").join(name);
    assert!(
        path.exists(),
        "{} is missing: cargo build -p steadyhand-mcp --example {name}",
        path.display()
    );
    path
}

fn ancestors() -> impl Iterator<Item = &'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors()
}

/// How far a call said it was, and of how much.
pub(crate) type Done = (f64, Option<f64>);

/// What an executor tells about its calls.
pub(crate) struct Watched(Arc<Mutex<Vec<Done>>>);

impl Watched {
    pub(crate) fn of(executor: &ToolExecutor) -> Watched {
        let told = Arc::<Mutex<Vec<_>>>::default();
        let keep = Arc::clone(&told);
        let observer = move |event: &Event| {
            if let Event::Progress { done, total, .. } = event {
                let mut told = keep.lock().unwrap_or_else(PoisonError::into_inner);
                told.push((*done, *total));
            }
        };
        executor.observe(observer).expect("a thread to watch on");
        Watched(told)
    }

    /// How far calls said they were.
    pub(crate) fn progress(&self) -> Vec<Done> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
