//! Programs of others that read what we export (scripts/peers.sh installs them).

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Runs `tests/peers/{script}` with the Python of `target/peers/{home}`, and reads its JSON.
pub(crate) fn python(home: &str, script: &str, arguments: &[&str], input: &[u8]) -> Value {
    let mut child = Command::new(interpreter(home))
        .arg(script_path(script))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Python runs");
    let mut stdin = child.stdin.take().expect("it was asked for");
    let input = input.to_vec();
    // A thread of its own, or a full pipe would block both ends.
    let writing = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("it ends");
    let _ = writing.join();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn script_path(script: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/peers")
        .join(script)
}

/// Something in `target/peers` of the workspace, which is above this crate's folder.
fn interpreter(home: &str) -> PathBuf {
    let found = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|folder| folder.join("target/peers").join(home).join("bin/python"))
        .find(|candidate| candidate.exists());
    found.unwrap_or_else(|| panic!("{home} is missing: run ./test once, it installs it"))
}
