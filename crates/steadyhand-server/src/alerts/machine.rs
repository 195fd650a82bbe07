//! The pure part: what happened goes in with its time, changes of alerts come out.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::alert::{Alert, AlertState, Change, ChangeKind};
use super::measure::{Measured, measure};
use super::rule::{Rule, Watched};
use super::series::Series;

/// Alerts that are over and still listed.
const PAST_MAX: usize = 500;
/// Alerts that are so: beyond, something else is the matter than one tool.
const ACTIVE_MAX: usize = 1_000;
/// Subjects that are followed for one rule.
const SUBJECTS_MAX: usize = 10_000;
/// How long a changed tool is worth an alert, where nobody accepts or takes back the change.
const CHANGE_FOR: Duration = Duration::from_secs(60 * 60);

/// All rules, what they watch, and what they found.
pub struct Machine {
    rules: Vec<Rule>,
    series: HashMap<(usize, String), Series>,
    /// States that are so, by rule and subject, and why.
    states: HashMap<(usize, String), Standing>,
    active: Vec<Active>,
    past: VecDeque<Alert>,
    /// Rules and subjects that nobody is told of until then.
    silences: HashMap<(Watched, String), (Instant, u64)>,
    /// Approvals that wait: the tool, and since when.
    waiting: Vec<(String, Instant)>,
    last: u64,
}

/// How a call ended, as far as rules care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The tool ran and answered.
    Well,
    /// The tool ran and failed, or took too long.
    Failed,
    /// The arguments did not fit.
    Invalid,
    /// There was no room for it.
    NoRoom,
}

/// A moment, on both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// For spans.
    pub instant: Instant,
    /// In milliseconds since 1970, to be shown.
    pub wall_ms: u64,
}

struct Standing {
    why: String,
    /// Until when, where it does not end by itself.
    until: Option<Instant>,
}

struct Active {
    rule: usize,
    alert: Alert,
}

impl Machine {
    /// Watches by these rules.
    pub fn new(rules: Vec<Rule>) -> Machine {
        Machine {
            rules,
            series: HashMap::new(),
            states: HashMap::new(),
            active: Vec::new(),
            past: VecDeque::new(),
            silences: HashMap::new(),
            waiting: Vec::new(),
            last: 0,
        }
    }

    /// Other rules. Alerts of rules that are gone are over; what others have seen so far goes on.
    pub fn replace_rules(&mut self, rules: Vec<Rule>, now: Now) -> Vec<Change> {
        let place: Vec<Option<usize>> = self
            .rules
            .iter()
            .map(|old| rules.iter().position(|new| new == old))
            .collect();
        let mut changes = Vec::new();
        for active in std::mem::take(&mut self.active) {
            match place[active.rule] {
                Some(rule) => self.active.push(Active { rule, ..active }),
                None => changes.push(self.over(active, "its rule is no longer in force", now)),
            }
        }
        let moved = |(rule, subject): (usize, String)| Some((place[rule]?, subject));
        let series = std::mem::take(&mut self.series);
        self.series = series
            .into_iter()
            .filter_map(|(key, it)| Some((moved(key)?, it)))
            .collect();
        let states = std::mem::take(&mut self.states);
        self.states = states
            .into_iter()
            .filter_map(|(key, it)| Some((moved(key)?, it)))
            .collect();
        self.rules = rules;
        changes
    }

    /// A call ended.
    pub fn call_ended(&mut self, tool: &str, ended: Ended, took: Duration, now: Now) {
        for (number, rule) in self.rules.iter().enumerate() {
            let is_execution = matches!(ended, Ended::Well | Ended::Failed);
            let (counts, is_marked) = match rule.watched {
                Watched::ErrorRate => (is_execution, ended == Ended::Failed),
                Watched::Average | Watched::P95 => (is_execution, false),
                Watched::ValidationFailures => (ended == Ended::Invalid, true),
                Watched::QueueFull => (ended == Ended::NoRoom, true),
                Watched::InvalidResponses
                | Watched::MendedConversations
                | Watched::BreakerOpen
                | Watched::ServerDown
                | Watched::ToolsChanged
                | Watched::ApprovalWaiting => (false, false),
            };
            if counts && rule.means(tool) {
                add(&mut self.series, (number, rule), tool, is_marked, took, now);
            }
        }
    }

    /// An answer of a model was not what its provider would accept.
    pub fn response_invalid(&mut self, provider: &str, now: Now) {
        self.happened(Watched::InvalidResponses, provider, now);
    }

    /// A conversation was not what its provider would accept, and was mended.
    pub fn conversation_mended(&mut self, provider: &str, now: Now) {
        self.happened(Watched::MendedConversations, provider, now);
    }

    fn happened(&mut self, watched: Watched, subject: &str, now: Now) {
        for (number, rule) in self.rules.iter().enumerate() {
            if rule.watched == watched && rule.means(subject) {
                let key = (number, rule);
                add(&mut self.series, key, subject, true, Duration::ZERO, now);
            }
        }
    }

    /// Something is so, and why; or it is over, and what ended it.
    pub fn state(
        &mut self,
        watched: Watched,
        subject: &str,
        is_so: Result<String, String>,
        now: Now,
    ) -> Vec<Change> {
        let meant: Vec<usize> = (0..self.rules.len())
            .filter(|number| {
                let rule = &self.rules[*number];
                rule.watched == watched && rule.means(subject)
            })
            .collect();
        let mut changes = Vec::new();
        for number in meant {
            let key = (number, subject.to_owned());
            match &is_so {
                Ok(why) => {
                    if self.states.len() >= SUBJECTS_MAX && !self.states.contains_key(&key) {
                        continue;
                    }
                    let until =
                        (watched == Watched::ToolsChanged).then(|| now.instant + CHANGE_FOR);
                    let why = why.clone();
                    self.states.insert(key, Standing { why, until });
                }
                Err(because) => {
                    self.states.remove(&key);
                    changes.extend(self.clear((number, subject), because, now));
                }
            }
        }
        changes.extend(self.tick(now));
        changes
    }

    /// The approvals that wait now: the tool, and since when.
    pub fn approvals_wait(&mut self, waiting: Vec<(String, Instant)>) {
        self.waiting = waiting;
    }

    /// Looks at everything once.
    pub fn tick(&mut self, now: Now) -> Vec<Change> {
        let mut changes = Vec::new();
        self.silences.retain(|_, (until, _)| now.instant < *until);
        for (number, subject, measured) in self.measured(now) {
            let is_active = self.find(number, &subject).is_some();
            match (is_active, measured) {
                (false, Measured::TooMuch { value, message }) => {
                    changes.extend(self.raise((number, subject), value, message, now));
                }
                (true, Measured::TooMuch { value, message }) => {
                    if let Some(place) = self.find(number, &subject) {
                        let alert = &mut self.active[place].alert;
                        (alert.value, alert.message) = (value, message);
                    }
                }
                (true, Measured::Fine { because }) => {
                    changes.extend(self.clear((number, &subject), &because, now));
                }
                (true, Measured::Between { value }) => {
                    if let Some(place) = self.find(number, &subject) {
                        self.active[place].alert.value = Some(value);
                    }
                }
                (false, Measured::Fine { .. } | Measured::Between { .. }) => {}
            }
        }
        changes
    }

    /// Somebody knows. None if there is no such alert that is not over.
    pub fn acknowledge(&mut self, id: &str, by: &str, now: Now) -> Option<Alert> {
        let active = self
            .active
            .iter_mut()
            .find(|active| active.alert.id == id)?;
        let alert = &mut active.alert;
        alert.state = AlertState::Acknowledged;
        alert.acknowledged_ms.get_or_insert(now.wall_ms);
        alert.acknowledged_by.get_or_insert_with(|| by.to_owned());
        Some(alert.clone())
    }

    /// Nobody is told of this for so long, also if it comes again. None if there is no such alert.
    pub fn silence(&mut self, id: &str, span: Duration, now: Now) -> Option<Alert> {
        let until_ms = now.wall_ms + u64::try_from(span.as_millis()).unwrap_or(u64::MAX / 2);
        let actives = self
            .active
            .iter_mut()
            .map(|active| (active.rule, &mut active.alert));
        let mut active = actives.filter(|(_, alert)| alert.id == id);
        let (watched, alert) = match active.next() {
            Some((rule, alert)) => (self.rules[rule].watched, alert),
            None => {
                let alert = self.past.iter_mut().find(|alert| alert.id == id)?;
                let mut all = Watched::ALL.into_iter();
                (all.find(|watched| watched.word() == alert.watched)?, alert)
            }
        };
        alert.silenced_until_ms = Some(until_ms);
        let key = (watched, alert.subject.clone());
        let silenced = alert.clone();
        self.silences.insert(key, (now.instant + span, until_ms));
        Some(silenced)
    }

    /// Those that are so, the newest first, then those that are over.
    pub fn alerts(&self) -> Vec<Alert> {
        let active = self.active.iter().rev().map(|active| active.alert.clone());
        active.chain(self.past.iter().rev().cloned()).collect()
    }

    /// The rules in force.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    fn find(&self, rule: usize, subject: &str) -> Option<usize> {
        let is_it = |active: &Active| active.rule == rule && active.alert.subject == subject;
        self.active.iter().position(is_it)
    }

    /// What every rule finds for every subject it knows something of.
    fn measured(&mut self, now: Now) -> Vec<(usize, String, Measured)> {
        let mut found = Vec::new();
        let rules = &self.rules;
        let active = &self.active;
        self.series.retain(|(number, subject), series| {
            let rule = &rules[*number];
            let sums = series.sums(now.instant);
            let is_active = active
                .iter()
                .any(|active| active.rule == *number && active.alert.subject == *subject);
            if is_active || sums.count > 0 {
                found.push((*number, subject.clone(), measure(rule, subject, &sums)));
            }
            // What is not called any more takes no room.
            sums.count > 0
        });
        let is_past =
            |standing: &Standing| standing.until.is_some_and(|until| now.instant >= until);
        for ((number, subject), standing) in &self.states {
            let measured = match is_past(standing) {
                false => Measured::TooMuch {
                    value: None,
                    message: standing.why.clone(),
                },
                true => Measured::Fine {
                    because: format!(
                        "it is known for {}, and nothing else has changed",
                        humantime::format_duration(CHANGE_FOR)
                    ),
                },
            };
            found.push((*number, subject.clone(), measured));
        }
        self.states.retain(|_, standing| !is_past(standing));
        found.extend(self.waiting_too_long(now));
        found
    }

    fn waiting_too_long(&self, now: Now) -> Vec<(usize, String, Measured)> {
        let mut found = Vec::new();
        let rules = self.rules.iter().enumerate();
        for (number, rule) in rules.filter(|(_, rule)| rule.watched == Watched::ApprovalWaiting) {
            let mut longest: HashMap<&str, (Duration, usize)> = HashMap::new();
            for (tool, since) in self.waiting.iter().filter(|(tool, _)| rule.means(tool)) {
                let waited = now.instant.saturating_duration_since(*since);
                let entry = longest.entry(tool).or_default();
                *entry = (entry.0.max(waited), entry.1 + 1);
            }
            for (tool, (waited, count)) in &longest {
                let ms = waited.as_secs_f64() * 1e3;
                if ms > rule.above {
                    let message = format!(
                        "{count} of {tool} wait for a yes or no, the oldest for {}",
                        rule.watched.shown(ms)
                    );
                    let value = Some(ms);
                    found.push((
                        number,
                        (*tool).to_owned(),
                        Measured::TooMuch { value, message },
                    ));
                }
            }
            let raised = self.active.iter().filter(|active| active.rule == number);
            for subject in raised.map(|active| &active.alert.subject) {
                let waits = longest.get(subject.as_str());
                if waits.is_none_or(|(waited, _)| waited.as_secs_f64() * 1e3 <= rule.above) {
                    let because = "nobody is waited for any more".to_owned();
                    found.push((number, subject.clone(), Measured::Fine { because }));
                }
            }
        }
        found
    }

    fn raise(
        &mut self,
        (rule, subject): (usize, String),
        value: Option<f64>,
        message: String,
        now: Now,
    ) -> Option<Change> {
        if self.active.len() >= ACTIVE_MAX {
            return None;
        }
        self.last += 1;
        let watched = self.rules[rule].watched;
        let silenced = self.silences.get(&(watched, subject.clone()));
        let alert = Alert {
            id: format!("a{}", self.last),
            state: AlertState::Raised,
            rule: self.rules[rule].to_string(),
            watched: watched.word().to_owned(),
            subject,
            message,
            value,
            raised_ms: now.wall_ms,
            acknowledged_ms: None,
            acknowledged_by: None,
            silenced_until_ms: silenced.map(|(_, until_ms)| *until_ms),
            cleared_ms: None,
            cleared_because: None,
        };
        let is_silenced = silenced.is_some();
        self.active.push(Active {
            rule,
            alert: alert.clone(),
        });
        Some(Change {
            kind: ChangeKind::Raised,
            alert,
            rule,
            is_silenced,
        })
    }

    fn clear(&mut self, (rule, subject): (usize, &str), because: &str, now: Now) -> Option<Change> {
        let place = self.find(rule, subject)?;
        let active = self.active.remove(place);
        Some(self.over(active, because, now))
    }

    fn over(&mut self, active: Active, because: &str, now: Now) -> Change {
        let Active { rule, mut alert } = active;
        alert.state = AlertState::Cleared;
        alert.cleared_ms = Some(now.wall_ms);
        alert.cleared_because = Some(because.to_owned());
        if self.past.len() == PAST_MAX {
            self.past.pop_front();
        }
        self.past.push_back(alert.clone());
        let silenced = alert.silenced_until_ms;
        Change {
            kind: ChangeKind::Cleared,
            is_silenced: silenced.is_some_and(|until| now.wall_ms < until),
            alert,
            rule,
        }
    }
}

fn add(
    all: &mut HashMap<(usize, String), Series>,
    (number, rule): (usize, &Rule),
    subject: &str,
    is_marked: bool,
    took: Duration,
    now: Now,
) {
    let key = (number, subject.to_owned());
    if all.len() >= SUBJECTS_MAX && !all.contains_key(&key) {
        return;
    }
    let with_times = rule.watched == Watched::P95;
    let series = all
        .entry(key)
        .or_insert_with(|| Series::new(rule.window, now.instant, with_times));
    series.add(now.instant, is_marked, took);
}
