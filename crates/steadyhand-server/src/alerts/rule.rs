//! When somebody is told: `breaker_open`, or `error_rate > 20% for 5m`.

use std::fmt;
use std::time::Duration;

use steadyhand::wildcard::wild;

use steadyhand_config::extensions::Fault;
use steadyhand_config::settings::AlertSettings;
use steadyhand_config::units::{Percent, Span};

/// The time that is looked at if nobody says.
const WINDOW: Duration = Duration::from_secs(5 * 60);
const WINDOW_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Fewer calls say nothing: one of one that failed is no "100 %".
const CALLS_MIN: u32 = 10;
/// What is watched is over once it is this far below what raised it: a value that trembles around its limit is one
/// alert, not hundreds.
const CLEAR_AT: f64 = 0.8;

/// A rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// What is watched.
    pub watched: Watched,
    /// More than this raises it: a share (0.05), milliseconds, or a count.
    pub above: f64,
    /// At most this clears it.
    pub clear_at: f64,
    /// The time that is looked at.
    pub window: Duration,
    /// Calls in that time, or it says nothing.
    pub calls_min: u32,
    /// Names or patterns of tools and servers; all if empty.
    pub subjects: Vec<String>,
}

/// What a rule watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Watched {
    /// The share of executions that failed.
    ErrorRate,
    /// The mean time of executions.
    Average,
    /// The time that 95 of 100 executions do not exceed.
    P95,
    /// A breaker that is not closed.
    BreakerOpen,
    /// An MCP server that is down.
    ServerDown,
    /// Calls whose arguments did not fit.
    ValidationFailures,
    /// Answers of models that are not what their provider would give or accept.
    InvalidResponses,
    /// Conversations that their provider would have refused, mended on the way.
    MendedConversations,
    /// A tool whose definition is another one.
    ToolsChanged,
    /// Calls that wait for a person for longer than this.
    ApprovalWaiting,
    /// Calls that were refused since a tool had no room.
    QueueFull,
}

impl Watched {
    /// All of them.
    pub const ALL: [Watched; 11] = [
        Watched::ErrorRate,
        Watched::Average,
        Watched::P95,
        Watched::BreakerOpen,
        Watched::ServerDown,
        Watched::ValidationFailures,
        Watched::InvalidResponses,
        Watched::MendedConversations,
        Watched::ToolsChanged,
        Watched::ApprovalWaiting,
        Watched::QueueFull,
    ];

    /// As it is written in a rule.
    pub fn word(self) -> &'static str {
        match self {
            Watched::ErrorRate => "error_rate",
            Watched::Average => "average",
            Watched::P95 => "p95",
            Watched::BreakerOpen => "breaker_open",
            Watched::ServerDown => "server_down",
            Watched::ValidationFailures => "validation_failures",
            Watched::InvalidResponses => "invalid_responses",
            Watched::MendedConversations => "mended_conversations",
            Watched::ToolsChanged => "tools_changed",
            Watched::ApprovalWaiting => "approval_waiting",
            Watched::QueueFull => "queue_full",
        }
    }

    /// Whether it is so or not, without a number to compare.
    pub(super) fn is_a_state(self) -> bool {
        matches!(
            self,
            Watched::BreakerOpen | Watched::ServerDown | Watched::ToolsChanged
        )
    }

    fn unit(self) -> Unit {
        match self {
            Watched::ErrorRate => Unit::Share,
            Watched::Average | Watched::P95 | Watched::ApprovalWaiting => Unit::Time,
            Watched::ValidationFailures
            | Watched::InvalidResponses
            | Watched::MendedConversations
            | Watched::QueueFull => Unit::Count,
            Watched::BreakerOpen | Watched::ServerDown | Watched::ToolsChanged => Unit::None,
        }
    }

    /// SPEC R12, and what the field expects beyond.
    fn default_limit(self) -> f64 {
        match self {
            Watched::ErrorRate => 0.05,
            Watched::Average | Watched::P95 => 5_000.0,
            Watched::ApprovalWaiting => 30_000.0,
            // A model that gets arguments wrong now and then is nothing new.
            Watched::ValidationFailures => 20.0,
            Watched::InvalidResponses
            | Watched::MendedConversations
            | Watched::QueueFull
            | Watched::BreakerOpen
            | Watched::ServerDown
            | Watched::ToolsChanged => 0.0,
        }
    }

    /// A number of this kind as people read it.
    pub(super) fn shown(self, number: f64) -> String {
        match self.unit() {
            Unit::Share => format!("{:.1} %", number * 100.0),
            Unit::Time => {
                let span = Duration::try_from_secs_f64(number / 1e3).unwrap_or_default();
                let ms = Duration::from_millis(span.as_millis() as u64);
                humantime::format_duration(ms).to_string()
            }
            Unit::Count => format!("{number:.0}"),
            Unit::None => String::new(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Share,
    Time,
    Count,
    None,
}

impl Rule {
    /// A rule as it is written, for all tools and servers.
    pub fn parse(when: &str) -> Result<Rule, String> {
        let mut words = when.split_whitespace();
        let first = words.next().unwrap_or_default();
        let watched = Watched::ALL.into_iter().find(|it| it.word() == first);
        let watched = watched.ok_or_else(|| {
            let known = Watched::ALL.map(Watched::word).join(", ");
            format!("{first:?} is nothing that can be watched; there are: {known}")
        })?;
        let mut rule = Rule::of(watched);
        let example = rule.example();
        let wrong = |what: &str| format!("{what}; write it such as \"{example}\"");
        let mut words = words.peekable();
        if words.peek() == Some(&">") {
            words.next();
            let limit = words
                .next()
                .ok_or_else(|| wrong("> has nothing after it"))?;
            rule.above = number(watched.unit(), limit).map_err(|why| wrong(&why))?;
            rule.clear_at = rule.above * CLEAR_AT;
        }
        if words.peek() == Some(&"for") {
            words.next();
            let span = words
                .next()
                .ok_or_else(|| wrong("for has nothing after it"))?;
            let span: Span = span.parse()?;
            if span.0.is_zero() || span.0 > WINDOW_MAX {
                return Err(wrong("for takes more than nothing and at most a day"));
            }
            rule.window = span.0;
        }
        match words.next() {
            None => Ok(rule),
            Some(word) => Err(wrong(&format!("{word:?} is not understood here"))),
        }
    }

    /// A rule of the configuration.
    pub fn of_settings(settings: &AlertSettings) -> Result<Rule, String> {
        let mut rule = Rule::parse(&settings.when)?;
        rule.subjects.clone_from(&settings.tools);
        if let Some(calls) = settings.min_calls {
            rule.calls_min = calls;
        }
        if let Some(clear) = &settings.clear {
            let limit = number(rule.watched.unit(), clear)?;
            if limit > rule.above {
                return Err(format!(
                    "it is above the limit itself: {clear} of \"{}\"",
                    settings.when
                ));
            }
            rule.clear_at = limit;
        }
        Ok(rule)
    }

    /// Everything that is wrong with a rule of the configuration.
    pub fn check(settings: &AlertSettings) -> Vec<Fault> {
        let fault = |at: &str, message: String| Fault {
            at: at.to_owned(),
            message,
            help: None,
        };
        let mut faults = Vec::new();
        let rule = Rule::parse(&settings.when);
        if let Err(wrong) = &rule {
            faults.push(fault("/when", wrong.clone()));
        }
        if let Some(clear) = &settings.clear {
            let wrong = match &rule {
                Ok(_) => Rule::of_settings(settings).err(),
                // Which unit it must have is not known: it must at least have one.
                Err(_) => {
                    let units = [Unit::Share, Unit::Time, Unit::Count];
                    let fits = units.iter().any(|unit| number(*unit, clear).is_ok());
                    (!fits).then(|| format!("{clear:?} is no share, time or number"))
                }
            };
            faults.extend(wrong.map(|wrong| fault("/clear", wrong)));
        }
        faults
    }

    /// What holds where the configuration says nothing of it (SPEC R12).
    pub fn defaults() -> Vec<Rule> {
        [
            Watched::ErrorRate,
            Watched::Average,
            Watched::BreakerOpen,
            Watched::ServerDown,
            Watched::ValidationFailures,
            Watched::InvalidResponses,
            Watched::ToolsChanged,
            Watched::ApprovalWaiting,
        ]
        .map(Rule::of)
        .into()
    }

    fn of(watched: Watched) -> Rule {
        let above = watched.default_limit();
        Rule {
            watched,
            above,
            clear_at: above * CLEAR_AT,
            window: WINDOW,
            calls_min: CALLS_MIN,
            subjects: Vec::new(),
        }
    }

    /// Whether it watches this tool or server.
    pub fn means(&self, subject: &str) -> bool {
        let fits = |pattern: &String| wild(pattern, subject);
        self.subjects.is_empty() || self.subjects.iter().any(fits)
    }

    fn example(&self) -> &'static str {
        match self.watched.unit() {
            Unit::Share => "error_rate > 20% for 5m",
            Unit::Time => "average > 5s for 5m",
            Unit::Count => "validation_failures > 3 for 5m",
            Unit::None => "breaker_open",
        }
    }
}

/// The rule as it would be written.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.watched.word())?;
        if self.watched.is_a_state() {
            return Ok(());
        }
        write!(f, " > {}", self.watched.shown(self.above))?;
        match self.watched {
            Watched::ApprovalWaiting => Ok(()),
            _ => write!(f, " for {}", humantime::format_duration(self.window)),
        }
    }
}

fn number(unit: Unit, text: &str) -> Result<f64, String> {
    match unit {
        Unit::Share => Ok(text.parse::<Percent>()?.0 / 100.0),
        Unit::Time => Ok(text.parse::<Span>()?.0.as_secs_f64() * 1e3),
        Unit::Count => text
            .parse::<u32>()
            .map(f64::from)
            .map_err(|_| format!("{text:?} is no number")),
        Unit::None => Err("it is so or not, and there is nothing to compare".to_owned()),
    }
}
