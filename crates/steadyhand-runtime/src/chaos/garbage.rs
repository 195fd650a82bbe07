//! Nonsense in the place of an answer, as broken services give it.

use serde::Deserialize;
use serde_json::{Value, json};
use steadyhand::Output;

use super::MARK;

/// More than a tool may answer by default.
const HUGE_BYTES: usize = 2 * 1024 * 1024;

/// Which nonsense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Garbage {
    /// A page of a proxy that stands before the service.
    Html,
    /// The answer, cut off in the middle.
    Truncated,
    /// Nothing at all.
    Empty,
    /// Another shape than anybody expects.
    Shape,
    /// Far too much.
    Huge,
    /// Characters that steer terminals and are not to be seen.
    Control,
    /// One of these, by the seed.
    Any,
}

impl Garbage {
    pub(super) fn or_any(self, lot: u64) -> Garbage {
        const ALL: [Garbage; 6] = [
            Garbage::Html,
            Garbage::Truncated,
            Garbage::Empty,
            Garbage::Shape,
            Garbage::Huge,
            Garbage::Control,
        ];
        match self {
            Garbage::Any => ALL[(lot % ALL.len() as u64) as usize],
            one => one,
        }
    }

    pub(super) fn in_words(self) -> &'static str {
        match self {
            Garbage::Html => "a page of HTML",
            Garbage::Truncated => "half of it",
            Garbage::Empty => "nothing",
            Garbage::Shape => "another shape",
            Garbage::Huge => "far too much",
            Garbage::Control => "control characters",
            Garbage::Any => "nonsense",
        }
    }

    /// What is answered in the place of `output`.
    pub(super) fn in_place_of(self, output: &Output) -> Output {
        match self {
            Garbage::Html => Output::json(format!(
                "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1><!-- {MARK} --></body></html>"
            )),
            Garbage::Truncated => {
                let text = output.text();
                Output::json(text[..text.floor_char_boundary(text.len() / 2)].to_owned())
            }
            Garbage::Empty => Output::json(""),
            Garbage::Shape => Output::json(json!([[null, {"": [MARK, -0.0, 1e300]}], false])),
            Garbage::Huge | Garbage::Any => {
                let word = format!("{MARK} ");
                Output::json(Value::String(word.repeat(HUGE_BYTES / word.len())))
            }
            Garbage::Control => Output::json(format!(
                "{MARK} \u{1b}[2J\u{1b}]0;title\u{7}\u{0}\u{202e}txet\u{feff}\u{fffd}"
            )),
        }
    }
}
