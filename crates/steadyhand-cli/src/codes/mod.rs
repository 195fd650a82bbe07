//! Every code that an error carries: what it means and what to do about it. `steadyhand explain` prints a page, and
//! docs/reference/errors has the same ones; a test fails when the program says a code that has none.

mod calls;
mod commands;
mod models;
mod rest;

use serde_json::{Value, json};
use steadyhand::FailureCode;

use super::error::Exit;
use steadyhand_config::words;

/// One code.
pub(super) struct Page {
    pub(super) code: &'static str,
    pub(super) seen: &'static [Seen],
    /// What happened, in a sentence or two.
    means: &'static str,
    /// What to do, most likely first.
    next: &'static [&'static str],
}

/// Where a code is met.
#[derive(Clone, Copy)]
pub(super) enum Seen {
    /// In the outcome of a call, over every way in.
    Call,
    /// As the error of a command, which ends with this exit code.
    Command(Exit),
    /// As the refusal of a request over HTTP, with this status.
    Rest(u16),
}

const fn page(
    code: &'static str,
    seen: &'static [Seen],
    means: &'static str,
    next: &'static [&'static str],
) -> Page {
    Page {
        code,
        seen,
        means,
        next,
    }
}

/// All codes: of calls, of commands, of models, of requests.
pub(super) fn all() -> impl Iterator<Item = &'static Page> {
    let groups = [calls::PAGES, commands::PAGES, models::PAGES, rest::PAGES];
    groups.into_iter().flatten()
}

/// The page of a code, in whatever case it is written.
pub(super) fn find(code: &str) -> Option<&'static Page> {
    all().find(|page| page.code.eq_ignore_ascii_case(code))
}

/// The code that was probably meant.
pub(super) fn nearest(code: &str) -> Option<&'static str> {
    words::nearest(code, all().map(|page| page.code))
}

impl Page {
    fn failure(&self) -> Option<FailureCode> {
        let mut codes = FailureCode::ALL.into_iter();
        codes.find(|code| code.as_str() == self.code)
    }

    /// The first sentence, for lists.
    pub(super) fn gist(&self) -> &'static str {
        match self.means.split_once(". ") {
            Some((first, _)) => first,
            None => self.means.trim_end_matches('.'),
        }
    }

    /// What programs with this error end with.
    fn exits(&self) -> Vec<u8> {
        let of_call = self.failure().map(|code| Exit::of(code).code());
        let of_commands = self.seen.iter().filter_map(|seen| match seen {
            Seen::Command(exit) => Some(exit.code()),
            Seen::Call | Seen::Rest(_) => None,
        });
        let mut exits: Vec<u8> = of_call.into_iter().chain(of_commands).collect();
        exits.sort_unstable();
        exits.dedup();
        exits
    }

    fn statuses(&self) -> impl Iterator<Item = u16> {
        self.seen.iter().filter_map(|seen| match seen {
            Seen::Rest(status) => Some(*status),
            Seen::Call | Seen::Command(_) => None,
        })
    }

    /// For machines.
    pub(super) fn to_json(&self) -> Value {
        let failure = self.failure();
        json!({
            "code": self.code,
            "means": self.means,
            "next": self.next,
            "exit_codes": self.exits(),
            "http_status": self.statuses().next(),
            "in_outcomes": failure.is_some(),
            "retryable": failure.map(FailureCode::is_retryable),
        })
    }

    /// For people: a page of Markdown.
    pub(super) fn to_markdown(&self) -> String {
        let mut text = format!("# `{}`\n\n{}\n\n", self.code, self.means);
        if let Some(failure) = self.failure() {
            text += "- In the outcome of a call, as `error.code`.\n";
            text += match failure.is_retryable() {
                true => {
                    "- Steadyhand tries again by itself where the tool may run twice, and counts it against the tool's breaker.\n"
                }
                false => {
                    "- It is not tried again, and does not count against the tool's breaker.\n"
                }
            };
        }
        let exits: Vec<String> = self.exits().iter().map(u8::to_string).collect();
        if !exits.is_empty() {
            text += &format!("- A command ends with exit code {}.\n", exits.join(" or "));
        }
        for status in self.statuses() {
            text += &format!("- Over HTTP the status is {status}.\n");
        }
        text += "\n## What to do\n\n";
        for (number, step) in self.next.iter().enumerate() {
            text += &format!("{}. {step}\n", number + 1);
        }
        text
    }
}
