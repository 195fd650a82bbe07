//! A plan of chaos as it is written: a TOML file with one `[[rule]]` after the other.

use std::num::NonZeroU32;
use std::path::Path;

use serde::Deserialize;

use super::garbage::Garbage;
use steadyhand_config::document::plain;
use steadyhand_config::units::{Percent, Span};
use steadyhand_config::{NotRead, Trust};

const VERSION: u32 = 1;
/// Rules are looked at for each attempt.
const RULES_MAX: usize = 1_000;
const BYTES_MAX: u64 = 1024 * 1024;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    /// The version of this format; 1
    version: u32,
    /// Chooses among all that may happen; 0 if not said
    pub(super) seed: Option<u64>,
    /// What happens to which tools
    #[serde(default, rename = "rule")]
    pub(super) rules: Vec<Rule>,
}

/// Something that happens to attempts of some tools.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    /// A name for messages
    pub(super) name: Option<String>,
    /// Names or patterns of tools; all if not said
    #[serde(default)]
    pub(super) tools: Vec<String>,
    /// The share of attempts it happens to, such as "20%"
    pub(super) chance: Option<Percent>,
    /// It happens to every so many attempts of a tool
    pub(super) every: Option<NonZeroU32>,
    /// Takes so long
    pub(super) delay: Option<Span>,
    /// With delay: something between that and this
    pub(super) delay_max: Option<Span>,
    /// Fails so
    pub(super) fail: Option<Way>,
    /// The words of the failure
    pub(super) message: Option<String>,
    /// With fail: only after the tool has run, so that its answer is lost
    #[serde(default)]
    pub(super) after: bool,
    /// Never answers: the time limit ends it
    #[serde(default)]
    pub(super) hang: bool,
    /// The tool runs, and answers nonsense
    pub(super) garbage: Option<Garbage>,
}

/// How it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Way {
    /// As if it could not be reached.
    Network,
    /// As if it said itself that it was too slow.
    Timeout,
    /// As if it had been called too often.
    RateLimit,
    /// As if the credentials were wrong.
    Authentication,
    /// As the tool's own "no".
    Refusal,
    /// As an error nobody knows.
    Unknown,
}

impl Plan {
    pub(super) fn read(path: &Path, trust: &Trust) -> Result<Plan, String> {
        let text = trust.read(path, BYTES_MAX).map_err(|why| match why {
            NotRead::Unreadable(error) => plain(&error),
            NotRead::TooLarge => format!("it is larger than {BYTES_MAX} bytes"),
            why => why.to_string(),
        })?;
        let text = String::from_utf8(text).map_err(|_| "it is no text (UTF-8)".to_owned())?;
        Plan::parse(&text)
    }

    pub(super) fn parse(text: &str) -> Result<Plan, String> {
        let plan: Plan = toml::from_str(text).map_err(|error| toml_words(text, &error))?;
        let faults = plan.faults();
        match faults.is_empty() {
            true => Ok(plan),
            false => Err(faults.join("\n")),
        }
    }

    /// All that is wrong with it.
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.version != VERSION {
            faults.push(format!(
                "it is of version {}, this program reads version = {VERSION}",
                self.version
            ));
        }
        match self.rules.len() {
            0 => faults.push("it has no [[rule]], so nothing would happen".to_owned()),
            count if count > RULES_MAX => {
                faults.push(format!("it has {count} rules, {RULES_MAX} is the most"));
            }
            _ => {}
        }
        for (place, rule) in self.rules.iter().enumerate() {
            let of_rule = rule.faults().into_iter();
            faults.extend(of_rule.map(|fault| format!("rule {}: {fault}", place + 1)));
        }
        faults
    }
}

impl Rule {
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut fault = |text: &str| faults.push(text.to_owned());
        let blows = [self.hang, self.fail.is_some(), self.garbage.is_some()];
        match blows.into_iter().filter(|is| *is).count() {
            0 if self.delay.is_none() => {
                fault("it does nothing; give it one of delay, fail, hang and garbage");
            }
            0 | 1 => {}
            _ => fault("it has more than one of fail, hang and garbage; write a rule for each"),
        }
        if self.chance.is_some() && self.every.is_some() {
            fault("it has chance and every; keep one of them");
        }
        if self.fail.is_none() && (self.after || self.message.is_some()) {
            fault("after and message go with fail");
        }
        match (self.delay, self.delay_max) {
            (None, Some(_)) => fault("delay_max goes with delay"),
            (Some(delay), Some(max)) if delay.0 > max.0 => {
                fault("its delay_max is less than its delay; exchange them");
            }
            _ => {}
        }
        faults
    }
}

/// What is wrong with the text of a plan, and where.
fn toml_words(text: &str, error: &toml::de::Error) -> String {
    let fault = steadyhand::plain_words::misfit(&error.message());
    let Some(span) = error.span() else {
        return fault;
    };
    let before = &text[..text.floor_char_boundary(span.start)];
    let line = before.matches('\n').count() + 1;
    format!("line {line}: {fault}")
}
