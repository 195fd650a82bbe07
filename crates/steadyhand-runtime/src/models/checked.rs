//! What is remembered of a model's check: one small file per model in the state folder.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use steadyhand_process::private;

use super::check::{Grade, TaskResult};

const FOLDER: &str = "models";
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A check and when it was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// The model, by the name in the configuration.
    pub name: String,
    /// The name its provider knows it by.
    pub model: String,
    /// Whose protocol it speaks.
    pub provider: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Tasks that were passed.
    pub passed: usize,
    /// All tasks.
    pub tasks: usize,
    /// Each of them.
    pub results: Vec<TaskResult>,
}

impl Checked {
    /// A check that was made now.
    pub fn now(name: &str, model: &str, provider: &str, results: Vec<TaskResult>) -> Checked {
        let passed = results
            .iter()
            .filter(|result| result.grade == Grade::Passed)
            .count();
        Checked {
            name: name.to_owned(),
            model: model.to_owned(),
            provider: provider.to_owned(),
            at_ms: jiff::Timestamp::now().as_millisecond().max(0) as u64,
            passed,
            tasks: results.len(),
            results,
        }
    }

    /// Remembers it, in the place of an earlier one of the same model.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    pub fn keep(&self, state: &Path) -> io::Result<()> {
        let path = file_of(state, &self.name);
        let unfinished = path.with_extension(format!("{}.new", std::process::id()));
        private::replace(&path, &unfinished, &serde_json::to_vec_pretty(self)?)
    }

    /// What is remembered of a model, if it is still the same one.
    pub fn of(state: &Path, name: &str) -> Option<Checked> {
        let text = private::read(&file_of(state, name), FILE_BYTES_MAX).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

/// Names of models have any characters: the file's name is their digest.
fn file_of(state: &Path, name: &str) -> PathBuf {
    let digest = Sha256::digest(name.as_bytes());
    let short: String = digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    state.join(FOLDER).join(format!("{short}.json"))
}
