//! Which calls are meant: the words people type (`tool:home_* state:failed >500ms`), the same in the CLI, REST and the dashboard.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use steadyhand::FailureCode;
use utoipa::ToSchema;

use super::record::CallState;
use super::words::{Word, quoted, quoted_text, words_of};
use steadyhand_config::role::owner_of;
use steadyhand_config::units::Span;

/// More words than anyone types, and longer ones: a filter is text from outside.
const WORDS_MAX: usize = 32;
const WORD_BYTES_MAX: usize = 256;

/// The names a word may have before its colon, as they are offered to people.
const NAMES: [&str; 9] = [
    "tool", "state", "error", "server", "caller", "since", "until", "slower", "text",
];

/// Which calls are meant. All that is said must be so; nothing said means every call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// Names of tools, any of them; `*` stands for anything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool: Vec<String>,
    /// States, any of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub state: Vec<StateWord>,
    /// Codes of failures, any of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub error: Vec<FailureCode>,
    /// Where the tool comes from; `*` stands for anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Who asked; `*` stands for anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// Only calls of this one, whatever else is asked for: set by whoever asks for somebody, never by words.
    #[serde(skip)]
    pub owner: Option<String>,
    /// Calls that came in at or after this moment, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// Calls that came in before this moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// Calls that took longer than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slower_ms: Option<f64>,
    /// Texts that occur in the id, the tool, the message, the arguments or the result, each of them somewhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub text: Vec<String>,
}

/// A state as people ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum StateWord {
    /// Not ended yet.
    Running,
    /// The tool answered.
    Ok,
    /// The tool failed.
    Error,
    /// Out of time.
    Timeout,
    /// Withdrawn.
    Cancelled,
    /// Refused before the tool was started.
    Rejected,
    /// Its end is not known.
    Interrupted,
    /// No answer of the tool, for whatever reason but the caller's own: error, timeout, rejected, interrupted.
    Failed,
    /// A fallback answered.
    Fallback,
}

/// A word that means nothing here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FilterError(pub String);

impl Filter {
    /// Reads the words people type. `now_ms` is what `since:1h` counts from.
    pub fn parse(words: &str, now_ms: u64) -> Result<Filter, FilterError> {
        let mut filter = Filter::default();
        filter.add_words(words, now_ms)?;
        Ok(filter)
    }

    /// Reads the pairs of a query: `tool=home_*&state=failed&since=1h`, and `q` for words as people type them.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
        now_ms: u64,
    ) -> Result<Filter, FilterError> {
        let mut filter = Filter::default();
        for (name, value) in pairs {
            match name {
                "q" => filter.add_words(value, now_ms)?,
                _ => filter.add(name, value, now_ms)?,
            }
        }
        Ok(filter)
    }

    /// Adds one condition by its name.
    pub fn add(&mut self, name: &str, value: &str, now_ms: u64) -> Result<(), FilterError> {
        if value.len() > WORD_BYTES_MAX {
            return Err(FilterError(format!(
                "what is asked for as {name} is longer than {WORD_BYTES_MAX} bytes"
            )));
        }
        if value.is_empty() {
            return Err(FilterError(format!("{name}: has nothing after it")));
        }
        match name {
            "tool" => extend(&mut self.tool, split(value).map(|tool| Ok(tool.to_owned())))?,
            "state" => extend(&mut self.state, split(value).map(StateWord::from_str))?,
            "error" | "code" => extend(&mut self.error, split(value).map(code))?,
            "server" | "source" => self.server = Some(value.to_owned()),
            "caller" | "from" => self.caller = Some(value.to_owned()),
            "since" => self.since_ms = Some(moment(name, value, now_ms)?),
            "until" => self.until_ms = Some(moment(name, value, now_ms)?),
            "slower" => self.slower_ms = Some(slower(value)?),
            "text" => extend(&mut self.text, [Ok(value.to_owned())])?,
            _ => return Err(unknown(name)),
        }
        Ok(())
    }

    /// Whether a call with this caller is one of the owner's, where one is set.
    pub fn is_by_owner(&self, caller: Option<&str>) -> bool {
        let is_own = |owner: &String| caller.is_some_and(|caller| owner_of(caller) == owner);
        self.owner.as_ref().is_none_or(is_own)
    }

    fn add_words(&mut self, words: &str, now_ms: u64) -> Result<(), FilterError> {
        for word in words_of(words) {
            match word {
                Word::Named(name, value) => self.add(&name, &value, now_ms)?,
                Word::Slower(value) => self.add("slower", &value, now_ms)?,
                Word::Text(text) => self.add("text", &text, now_ms)?,
            }
        }
        Ok(())
    }

    /// The states that may be meant, and whether only calls with a fallback's answer are.
    pub(super) fn states(&self) -> Vec<CallState> {
        let meant = |state: &CallState| {
            self.state.is_empty() || self.state.iter().any(|word| word.may_mean(*state))
        };
        let may_have_code = |state: &CallState| {
            self.error.is_empty() || !matches!(state, CallState::Running | CallState::Ok)
        };
        let states = CallState::ALL.into_iter();
        states.filter(meant).filter(may_have_code).collect()
    }

    /// Whether a call in this state, with or without a fallback's answer, is meant.
    pub(super) fn means_state(&self, state: CallState, fallback_used: bool) -> bool {
        self.state.is_empty()
            || self.state.iter().any(|word| match word {
                StateWord::Fallback => fallback_used,
                word => word.may_mean(state),
            })
    }
}

/// The words of it again, as people would type them.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words: Vec<String> = Vec::new();
        let mut add = |name: &str, value: &str| words.push(format!("{name}:{}", quoted(value)));
        for tool in &self.tool {
            add("tool", tool);
        }
        for state in &self.state {
            add("state", state.as_str());
        }
        for code in &self.error {
            add("error", &code.as_str().to_ascii_lowercase());
        }
        for (name, value) in [("server", &self.server), ("caller", &self.caller)] {
            if let Some(value) = value {
                add(name, value);
            }
        }
        for (name, moment) in [("since", self.since_ms), ("until", self.until_ms)] {
            if let Some(ms) = moment {
                add(name, &timestamp(ms));
            }
        }
        if let Some(ms) = self.slower_ms {
            words.push(format!(">{ms}ms"));
        }
        words.extend(self.text.iter().map(|text| quoted_text(text)));
        f.write_str(&words.join(" "))
    }
}

impl StateWord {
    const ALL: [StateWord; 9] = [
        StateWord::Running,
        StateWord::Ok,
        StateWord::Error,
        StateWord::Timeout,
        StateWord::Cancelled,
        StateWord::Rejected,
        StateWord::Interrupted,
        StateWord::Failed,
        StateWord::Fallback,
    ];

    /// The word itself.
    pub fn as_str(self) -> &'static str {
        match self {
            StateWord::Running => CallState::Running.as_str(),
            StateWord::Ok => CallState::Ok.as_str(),
            StateWord::Error => CallState::Error.as_str(),
            StateWord::Timeout => CallState::Timeout.as_str(),
            StateWord::Cancelled => CallState::Cancelled.as_str(),
            StateWord::Rejected => CallState::Rejected.as_str(),
            StateWord::Interrupted => CallState::Interrupted.as_str(),
            StateWord::Failed => "failed",
            StateWord::Fallback => "fallback",
        }
    }

    fn may_mean(self, state: CallState) -> bool {
        use CallState as S;
        match self {
            StateWord::Running => state == S::Running,
            StateWord::Ok => state == S::Ok,
            StateWord::Error => state == S::Error,
            StateWord::Timeout => state == S::Timeout,
            StateWord::Cancelled => state == S::Cancelled,
            StateWord::Rejected => state == S::Rejected,
            StateWord::Interrupted => state == S::Interrupted,
            StateWord::Failed => {
                matches!(state, S::Error | S::Timeout | S::Rejected | S::Interrupted)
            }
            StateWord::Fallback => {
                matches!(state, S::Error | S::Timeout | S::Rejected | S::Cancelled)
            }
        }
    }
}

impl FromStr for StateWord {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<StateWord, FilterError> {
        let word = text.to_ascii_lowercase();
        let known = StateWord::ALL.map(StateWord::as_str);
        let found = StateWord::ALL
            .into_iter()
            .find(|state| state.as_str() == word);
        found.ok_or_else(|| FilterError(no_such("state", text, &known)))
    }
}

fn split(value: &str) -> impl Iterator<Item = &str> {
    value
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

fn extend<T>(
    list: &mut Vec<T>,
    more: impl IntoIterator<Item = Result<T, FilterError>>,
) -> Result<(), FilterError> {
    for item in more {
        list.push(item?);
    }
    match list.len() > WORDS_MAX {
        true => Err(FilterError(format!(
            "more than {WORDS_MAX} words of one kind"
        ))),
        false => Ok(()),
    }
}

/// `timeout`, `TIMEOUT`, `network` for NETWORK_ERROR.
fn code(text: &str) -> Result<FailureCode, FilterError> {
    let wanted = text.to_ascii_uppercase().replace('-', "_");
    let is_it = |code: &FailureCode| {
        code.as_str() == wanted || code.as_str().strip_suffix("_ERROR") == Some(&wanted)
    };
    FailureCode::ALL.into_iter().find(is_it).ok_or_else(|| {
        let known = FailureCode::ALL.map(|code| code.as_str().to_ascii_lowercase());
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        FilterError(no_such("error", text, &known))
    })
}

/// `500ms`, `2s`.
fn slower(text: &str) -> Result<f64, FilterError> {
    let span: Span = text.parse().map_err(FilterError)?;
    Ok(span.0.as_secs_f64() * 1e3)
}

/// `1h` ago, or a moment: RFC 3339, or milliseconds since 1970.
fn moment(name: &str, text: &str, now_ms: u64) -> Result<u64, FilterError> {
    if let Ok(Span(ago)) = text.parse::<Span>() {
        return Ok(now_ms.saturating_sub(ago.as_millis() as u64));
    }
    if let Ok(ms) = text.parse::<u64>() {
        return Ok(ms);
    }
    // Without a zone it is the time on this machine's clock.
    let local = || {
        let civil = text.parse::<jiff::civil::DateTime>().ok()?;
        civil.to_zoned(jiff::tz::TimeZone::system()).ok()
    };
    let moment = text.parse::<jiff::Timestamp>().ok();
    match moment.or_else(|| local().map(|local| local.timestamp())) {
        Some(moment) => Ok(moment.as_millisecond().max(0) as u64),
        None => Err(FilterError(format!(
            "{name}:{text} is no moment; write how long ago (15m, 2h, 3d) or a time such as 2026-01-31T14:00:00Z (2026-01-31T14:00 is local time)"
        ))),
    }
}

fn timestamp(ms: u64) -> String {
    match i64::try_from(ms).map(jiff::Timestamp::from_millisecond) {
        Ok(Ok(moment)) => moment.to_string(),
        _ => ms.to_string(),
    }
}

fn unknown(name: &str) -> FilterError {
    FilterError(no_such("filter", name, &NAMES))
}

fn no_such(what: &str, text: &str, known: &[&str]) -> String {
    let text: String = text.chars().take(64).collect();
    let near = known
        .iter()
        .map(|word| {
            (
                strsim::damerau_levenshtein(word, &text.to_ascii_lowercase()),
                word,
            )
        })
        .min()
        .filter(|(distance, _)| *distance <= 2);
    let list = known.join(", ");
    match near {
        Some((_, word)) => {
            format!("there is no {what} \"{text}\"; did you mean {word}? There are: {list}")
        }
        None => format!("there is no {what} \"{text}\"; there are: {list}"),
    }
}
