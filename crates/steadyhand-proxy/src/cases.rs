//! Refusals by rules that are not known here, one file each: what the provider said, and the shape of what it refused.
//! Words, keys and headers are not in it.

use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use steadyhand::clock;
use steadyhand_conversation::{Fix, Provider};

use super::folder::Folder;
use super::shape::shape_of;
use super::study::Studied;

const FOLDER: &str = "proxy-cases";
const CASES_MAX: usize = 50;
const CASE_BYTES_MAX: usize = 256 * 1024;
/// Messages around the place, where the whole is too large.
const AROUND: usize = 3;

/// The folder of cases.
#[derive(Debug)]
pub(super) struct Cases(Folder);

/// A refusal that is worth a file.
pub(super) struct Case<'a> {
    pub(super) provider: Provider,
    pub(super) path: &'a str,
    pub(super) status: u16,
    pub(super) studied: &'a Studied,
    /// What was sent.
    pub(super) request: &'a Value,
    pub(super) fixes: &'a [Fix],
}

impl Cases {
    pub(super) fn new(state: &Path) -> Cases {
        Cases(Folder::new(state.join(FOLDER), CASES_MAX, CASE_BYTES_MAX))
    }

    /// Keeps a case, unless one of the same rule is there. Gives back its file. Blocks for as long as a disk may.
    pub(super) fn keep(&self, case: &Case<'_>) -> Option<String> {
        let name = format!("{}-{}.json", case.provider, rule(&case.studied.said));
        let path = self.0.path().join(&name);
        if self.0.has(&name) {
            return Some(path.display().to_string());
        }
        let mut text = written(case, shape_of(case.request));
        if text.len() > self.0.bytes_max() {
            text = written(case, around(case));
        }
        match self.0.put(&name, text.as_bytes()) {
            Ok(path) => Some(path.display().to_string()),
            Err(error) => {
                tracing::warn!(%error, "a case cannot be kept in {}", self.0.path().display());
                None
            }
        }
    }
}

fn written(case: &Case<'_>, request: Value) -> String {
    let fixes = case.fixes.iter().take(100);
    let fixes: Vec<Value> = fixes
        .map(|fix| json!({"at": fix.at, "code": fix.code}))
        .collect();
    let value = json!({
        "at_ms": clock::wall_ms(),
        "provider": case.provider.as_str(),
        "path": case.path,
        "status": case.status,
        "said": case.studied.said,
        "place": case.studied.at,
        "fixes": fixes,
        "request": request,
        "note": "texts are replaced by their length; headers are not kept",
    });
    serde_json::to_string_pretty(&value).unwrap_or_default()
}

/// Only what stands around the place that was named.
fn around(case: &Case<'_>) -> Value {
    let place = case.studied.at.as_deref().unwrap_or_default();
    let mut steps = place.split('/').skip(1);
    let (list, index) = (steps.next().unwrap_or("messages"), steps.next());
    let index: usize = index.and_then(|index| index.parse().ok()).unwrap_or(0);
    let items = case.request.get(list).and_then(Value::as_array);
    let items = items.map_or(&[][..], Vec::as_slice);
    let from = index.saturating_sub(AROUND).min(items.len());
    let to = (index + AROUND + 1).min(items.len());
    let shown: Vec<Value> = items[from..to].iter().map(shape_of).collect();
    json!({ list: shown, "from": from, "of": items.len() })
}

/// A name for the rule: its words without what differs from case to case, numbers and ids.
fn rule(said: &str) -> String {
    let words = said.split(|char: char| !char.is_alphanumeric() && char != '_');
    let is_plain = |word: &&str| {
        !word.is_empty()
            && !word.chars().any(|char| char.is_ascii_digit())
            && !word.contains("call_")
    };
    let words: Vec<&str> = words.filter(is_plain).collect();
    let digest = Sha256::digest(words.join(" ").as_bytes());
    digest[..6]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
