//! A text of an imported file: as it may be shown, and as it is used.

use std::fmt;

use crate::SecretText;

/// A text whose variables have been replaced, beside the form of it that people may see.
#[derive(Clone)]
pub struct ImportedText {
    shown: String,
    value: SecretText,
}

impl ImportedText {
    pub(super) fn new(shown: String, value: &str) -> ImportedText {
        ImportedText {
            shown,
            value: SecretText::from(value),
        }
    }

    /// The text itself, for the one place that uses it.
    pub fn expose(&self) -> &str {
        self.value.expose()
    }

    /// As written in the file, variables not replaced, literal secrets hidden.
    pub fn shown(&self) -> &str {
        &self.shown
    }
}

impl fmt::Debug for ImportedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shown)
    }
}
