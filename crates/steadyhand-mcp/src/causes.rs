//! Why a server probably did not start: a table of what servers say, and what each of it means.

use crate::failure::StartFailure;

/// A likely cause, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// What is wrong: `Python has no package "mcp"`.
    pub sentence: String,
    /// What to do about it.
    pub next_step: String,
    /// What to look at, in a few words, for the `Check:` line of SPEC V17.
    pub check: String,
}

/// The cause of a failed start, if it gives itself away.
pub fn likely(_failure: &StartFailure) -> Option<Cause> {
    None
}

/// What can be said where nothing gives the cause away.
pub(crate) fn unknown(_failure: &StartFailure) -> Cause {
    Cause {
        sentence: String::new(),
        next_step: String::new(),
        check: String::new(),
    }
}
