//! Texts that were read from files, and places in them.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use steadyhand::redact;

/// A file that was read: its text is kept for the messages that quote it.
#[derive(Debug)]
pub struct SourceFile {
    /// As the user would name it.
    pub path: PathBuf,
    /// What it holds.
    pub text: String,
    masked: OnceLock<String>,
}

/// A stretch of a file.
#[derive(Debug, Clone)]
pub struct Place {
    /// The file.
    pub file: Arc<SourceFile>,
    /// The bytes.
    pub span: Range<usize>,
}

impl Place {
    /// A line and column of a file, both counted from 1.
    pub fn at(file: &Arc<SourceFile>, line: usize, column: usize) -> Place {
        let before = file.text.split_inclusive('\n').take(line.saturating_sub(1));
        let start: usize = before.map(str::len).sum();
        let rest = file.text.get(start..).unwrap_or_default();
        let within: usize = rest
            .chars()
            .take(column.saturating_sub(1))
            .map(char::len_utf8)
            .sum();
        let start = (start + within).min(file.text.len());
        Place {
            file: Arc::clone(file),
            span: start..start,
        }
    }

    /// Line and column, counted from 1.
    pub fn line_and_column(&self) -> (usize, usize) {
        let text = &self.file.text;
        let before = &text[..text.floor_char_boundary(self.span.start)];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        (line, column)
    }

    /// `steadyhand.toml:62`
    pub fn short(&self) -> String {
        let name = self.file.path.file_name().unwrap_or_default();
        format!("{}:{}", name.to_string_lossy(), self.line_and_column().0)
    }
}

impl SourceFile {
    pub(crate) fn new(path: PathBuf, text: String) -> SourceFile {
        SourceFile {
            path,
            text,
            masked: OnceLock::new(),
        }
    }

    /// A text that ships inside the program.
    pub fn embedded(name: &str, text: &str) -> Arc<SourceFile> {
        Arc::new(SourceFile::new(PathBuf::from(name), text.to_owned()))
    }

    /// What messages may quote of it: keys that are written out are stars, everything else is in its place.
    pub fn masked(&self) -> &str {
        self.masked
            .get_or_init(|| redact::mask(&self.text).into_owned())
    }
}

/// What went wrong with a file, without the number of the operating system.
pub fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => {
            let text = error.to_string();
            let end = text.find(" (os error").unwrap_or(text.len());
            text[..end].to_lowercase()
        }
    }
}
