//! Places in what was given, as JSON Pointers.

/// Where the messages of a repaired conversation were in the one that was given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places<'a> {
    /// What every place in the messages begins with.
    pub(crate) base: &'a str,
    /// For each message the one it was, or behind which it was put.
    pub(crate) origins: &'a [usize],
}

impl Places<'_> {
    /// The pointer to a message, by where it is now.
    pub(crate) fn of(&self, index: usize) -> String {
        let origin = self.origins.get(index).copied().unwrap_or(index);
        format!("{}/{origin}", self.base)
    }
}

/// The text of a JSON Pointer's step.
pub(crate) fn escape(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}
