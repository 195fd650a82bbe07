//! Reads one file: bytes to text, text to passages, by what kind of file it is.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use encoding_rs::{Encoding, WINDOWS_1252};

use super::html;
use super::passages::{self, Passage};

/// A text of 4 MiB has a few thousand; more are made by nothing but headings.
const PASSAGES_MAX: usize = 20_000;

/// A file as the index keeps it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Document {
    pub(super) title: String,
    pub(super) passages: Vec<Passage>,
}

/// Why a file is not in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Skipped {
    TooLarge,
    Binary,
    Empty,
    Unreadable,
}

impl Skipped {
    /// As the index and the answers say it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Skipped::TooLarge => "too_large",
            Skipped::Binary => "binary",
            Skipped::Empty => "empty",
            Skipped::Unreadable => "unreadable",
        }
    }
}

/// Reads a file of at most `bytes_max`, which must lie in `root`.
pub(super) fn file(path: &Path, root: &Path, bytes_max: u64) -> Result<Document, Skipped> {
    let bytes = bytes(path, root, bytes_max)?;
    document(path, &bytes)
}

/// The document that these bytes are.
pub(super) fn document(path: &Path, bytes: &[u8]) -> Result<Document, Skipped> {
    let kind = Kind::of(path);
    let text = decode(bytes, kind).ok_or(Skipped::Binary)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let (title, mut passages) = match kind {
        Kind::Markdown => passages::of_markdown(&text),
        Kind::Text => (None, passages::of_text(&text)),
        Kind::Html => html::passages(&text).ok_or(Skipped::TooLarge)?,
    };
    if passages.len() > PASSAGES_MAX {
        return Err(Skipped::TooLarge);
    }
    if passages.is_empty() {
        // A page that only has a name is still found by it.
        passages.push(Passage {
            heading: String::new(),
            line: 1,
            text: title.clone().ok_or(Skipped::Empty)?,
        });
    }
    let title = title.unwrap_or_else(|| stem.replace(['_', '-'], " "));
    Ok(Document { title, passages })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Markdown,
    Text,
    Html,
}

impl Kind {
    fn of(path: &Path) -> Kind {
        let ending = path.extension().unwrap_or_default().to_string_lossy();
        match ending.to_ascii_lowercase().as_str() {
            "md" | "markdown" | "mdx" | "mkd" => Kind::Markdown,
            "html" | "htm" | "xhtml" => Kind::Html,
            _ => Kind::Text,
        }
    }
}

fn bytes(path: &Path, root: &Path, bytes_max: u64) -> Result<Vec<u8>, Skipped> {
    // Scanned as a plain file, but that was a moment ago: a link put in its place since must not
    // lead out, and a pipe would block the open.
    let real = path.canonicalize().map_err(|_| Skipped::Unreadable)?;
    let root = root.canonicalize().map_err(|_| Skipped::Unreadable)?;
    let metadata = real.metadata().map_err(|_| Skipped::Unreadable)?;
    if !real.starts_with(root) || !metadata.is_file() {
        return Err(Skipped::Unreadable);
    }
    let file = File::open(real).map_err(|_| Skipped::Unreadable)?;
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|_| Skipped::Unreadable)?;
    match bytes.len() as u64 > bytes_max {
        true => Err(Skipped::TooLarge),
        false => Ok(bytes),
    }
}

/// The text of a file; none when it is no text. A byte order mark decides, then UTF-8 if it is
/// that, then what an HTML page says of itself, then the commonest of the old encodings.
fn decode(bytes: &[u8], kind: Kind) -> Option<String> {
    if let Some((encoding, mark_len)) = Encoding::for_bom(bytes) {
        let (text, _) = encoding.decode_without_bom_handling(&bytes[mark_len..]);
        return Some(text.into_owned());
    }
    if looks_binary(bytes) {
        return None;
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Some(text.to_owned());
    }
    let declared = match kind {
        Kind::Html => html::declared_encoding(bytes),
        Kind::Markdown | Kind::Text => None,
    };
    let (text, _) = declared
        .unwrap_or(WINDOWS_1252)
        .decode_without_bom_handling(bytes);
    Some(text.into_owned())
}

/// A zero byte, or more than a few control characters, in what is looked at of it.
fn looks_binary(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(16 * 1024)];
    let odd = |byte: &&u8| **byte < 0x20 && !matches!(**byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b);
    start.contains(&0) || start.iter().filter(odd).count() * 50 > start.len()
}
