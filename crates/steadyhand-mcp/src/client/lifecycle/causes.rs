//! Why a server probably did not start: a table of what servers say, and what each of it means.

mod ending;
mod programs;
mod remote;
mod surroundings;

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::client::lifecycle::failure::{StartFailure, What};

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

/// The cause of a failed start, if it gives itself away: by the words of the server, else by its end.
pub fn likely(failure: &StartFailure) -> Option<Cause> {
    let failure = &failure.tidy();
    if failure.is_remote() {
        return Some(remote::cause(failure));
    }
    if let Some(cause) = ending::speaks_for_itself(failure) {
        return Some(cause);
    }
    let evidence = failure.evidence();
    let found = TABLE.iter().find_map(|(pattern, cause)| {
        // The last words are the ones it went down with.
        let last = pattern.captures_iter(&evidence).last()?;
        cause(&Found(last), failure)
    });
    found.or_else(|| ending::cause(failure))
}

/// What can be said where nothing gives the cause away.
pub(crate) fn unknown(failure: &StartFailure) -> Cause {
    ending::unknown(&failure.tidy())
}

/// What a row makes of the words it was found by; none where the rest of the failure speaks against it.
type Meaning = fn(&Found<'_>, &StartFailure) -> Option<Cause>;
/// What to search for in what was said, and what it means. The first row that fits stands.
type Row = (&'static str, Meaning);

static TABLE: LazyLock<Vec<(Regex, Meaning)>> = LazyLock::new(|| {
    [programs::ROWS, surroundings::ROWS]
        .concat()
        .into_iter()
        .map(|(pattern, cause)| (Regex::new(pattern).expect("a fixed pattern"), cause))
        .collect()
});

/// The words a row was found by.
struct Found<'a>(Captures<'a>);

impl<'a> Found<'a> {
    /// A named part of the pattern; of several of one meaning (`var1`, `var2`), the one that fits.
    fn part(&self, name: &str) -> Option<&'a str> {
        if let Some(part) = self.0.name(name) {
            return Some(part.as_str());
        }
        (1..=9).find_map(|number| Some(self.0.name(&format!("{name}{number}"))?.as_str()))
    }
}

impl Cause {
    fn new(
        sentence: impl Into<String>,
        next_step: impl Into<String>,
        check: impl Into<String>,
    ) -> Cause {
        Cause {
            sentence: sentence.into(),
            next_step: next_step.into(),
            check: check.into(),
        }
    }
}

/// The first word of the command line.
fn program(failure: &StartFailure) -> &str {
    if let What::NotFound { program, .. } = &failure.what {
        return program;
    }
    let word = failure.command.split_whitespace().next();
    word.map_or("the program", |word| word.trim_matches(['"', '\'']))
}

/// The program without its folder.
fn base(failure: &StartFailure) -> &str {
    let program = program(failure);
    program.rsplit(['/', '\\']).next().unwrap_or(program)
}

/// The command line without its first word.
fn arguments(failure: &StartFailure) -> &str {
    let mut words = failure.command.splitn(2, char::is_whitespace);
    words.nth(1).unwrap_or_default().trim()
}

/// Where its settings are: `.mcp.json:9`, else the server's section.
fn setting(failure: &StartFailure) -> String {
    match &failure.place {
        Some(place) => place.clone(),
        None => format!("[mcp.{}]", failure.server),
    }
}
