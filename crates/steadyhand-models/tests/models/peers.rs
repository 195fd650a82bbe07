//! Programs that are not ours, in `target/peers`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// Long enough for a cold start of Python on a machine that does much else.
const PEER_TIME_MAX: Duration = Duration::from_secs(300);

/// Runs it, and reads what it writes as JSON.
pub(crate) async fn ask_peer(command: Command) -> Value {
    ask_peer_with(command, String::new()).await
}

/// The same, with something to read.
pub(crate) async fn ask_peer_with(command: Command, input: String) -> Value {
    let shown = format!("{command:?}");
    // Nothing of a test may leave this machine, nor depend on what its user has set.
    let mut command = tokio::process::Command::from(command);
    command
        .env("LANGSMITH_TRACING", "false")
        .env_remove("HTTP_PROXY")
        .env_remove("HTTPS_PROXY")
        .env_remove("http_proxy")
        .env_remove("https_proxy")
        .env_remove("ALL_PROXY")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command
        .spawn()
        .unwrap_or_else(|error| panic!("{shown}: {error}"));
    let mut stdin = child.stdin.take().expect("a pipe");
    let writer = tokio::spawn(async move {
        use tokio::io::AsyncWriteExt;
        let _ = stdin.write_all(input.as_bytes()).await;
    });
    let output = tokio::time::timeout(PEER_TIME_MAX, child.wait_with_output()).await;
    let output = output
        .unwrap_or_else(|_| panic!("{shown} takes too long"))
        .expect("its output");
    writer.await.expect("its input");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{shown} failed:\n{errors}");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{shown}: {error}\n{errors}"))
}

pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/peers")
        .join(name)
}

/// Something in `target/peers` of the workspace.
pub(crate) fn peer(path: &str) -> PathBuf {
    let found = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|directory| directory.join("target/peers").join(path))
        .find(|candidate| candidate.exists());
    found.expect("run ./test once: it installs the peers")
}
