//! Why an expression has no answer: a kind to ask, a text to read.

use std::fmt;

/// An expression that could not be read or computed. `Display` says what is wrong, near mathjs's own words.
#[derive(Clone, PartialEq, Eq)]
pub struct MathError(Box<(ErrorKind, String)>);

/// What kind of trouble an expression met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is no expression; `char` is the 1-based character where reading stopped.
    Syntax {
        /// The 1-based position, in characters.
        char: usize,
    },
    /// A variable, unit or constant that does not exist.
    UndefinedSymbol,
    /// A function that does not exist.
    UndefinedFunction,
    /// A function was given too few, too many or unsuitable arguments.
    Arguments,
    /// Matrices whose sizes do not fit each other, or an index outside a matrix.
    Dimensions,
    /// Units that cannot be combined or converted.
    Units,
    /// The expression wants more steps, depth, cells, text or digits than allowed.
    Limit,
    /// Part of mathjs that is left out here on purpose.
    Unsupported,
    /// The values themselves do not work: a singular matrix, an unreadable number.
    Value,
}

impl MathError {
    /// The kind of trouble, to decide on; the text is for people and models.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.0
    }

    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new((kind, message.into())))
    }

    pub(crate) fn syntax(message: impl fmt::Display, char: usize) -> Self {
        Self::new(
            ErrorKind::Syntax { char },
            format!("{message} (char {char})"),
        )
    }

    pub(crate) fn arguments(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Arguments, message)
    }

    pub(crate) fn dimensions(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Dimensions, message)
    }

    pub(crate) fn units(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Units, message)
    }

    pub(crate) fn value(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Value, message)
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }
}

impl fmt::Display for MathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.1)
    }
}

impl fmt::Debug for MathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.0, self.0.1)
    }
}

impl std::error::Error for MathError {}

pub(crate) type Result<T> = std::result::Result<T, MathError>;
