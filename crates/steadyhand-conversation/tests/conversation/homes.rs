//! What is known of a provider is in its folder, and nowhere else.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The most files outside of this crate that may switch on the provider.
const SWITCHES_MAX: &str = "11";

#[test]
fn few_files_elsewhere_switch_on_the_provider() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let counted = Command::new("python3")
        .arg(root.join("scripts/provider-switches"))
        .arg(SWITCHES_MAX)
        .output()
        .expect("Python starts");
    let said = String::from_utf8_lossy(&counted.stdout);
    assert!(
        counted.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&counted.stderr)
    );
    assert!(
        said.contains("/site.rs"),
        "it finds those there are: {said}"
    );
}

#[test]
fn strict_providers_use_nothing_of_the_repair() {
    let providers = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/providers");
    let mut strict = 0;
    for folder in fs::read_dir(providers).expect("providers") {
        let file = folder.expect("a folder").path().join("strict.rs");
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        strict += 1;
        for line in text
            .lines()
            .filter(|line| line.contains("crate::") || line.contains("super::"))
        {
            let is_own = line.starts_with("use super::") && line.ends_with("Format;");
            let is_allowed = is_own || line.starts_with("use crate::providers::strict_rules::{");
            assert!(is_allowed, "{}: {line}", file.display());
        }
    }
    assert!(strict > 7, "{strict} strict providers");
}
