//! Chaos on purpose: tools that take long, fail, hang or answer nonsense, by a plan and a seed. For whoever tests an
//! agent; everything that was injected says so.

mod draw;
mod garbage;
mod handler;
mod plan;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use steadyhand::wildcard::wild;

use steadyhand_config::Trust;

use garbage::Garbage;
pub use handler::Chaotic;
use plan::{Plan, Rule, Way};

/// Stands at the beginning of whatever is told of something injected.
pub use steadyhand_config::marks::ON_PURPOSE as MARK;

/// A plan at work. What it does to the n-th attempt of a tool depends on its seed alone.
pub struct Chaos {
    plan: Plan,
    seed: u64,
    /// Attempts so far, by rule and tool: no more than there are tools.
    seen: Mutex<HashMap<(usize, String), u64>>,
    attempts: AtomicU64,
    struck: AtomicU64,
}

/// What happens to one attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Strike {
    /// Which rules, in words: `rule 2 (bad network)`.
    rules: String,
    delay: Duration,
    way: Option<Blow>,
}

/// What happens besides a delay.
#[derive(Debug, Clone, PartialEq)]
enum Blow {
    Hang,
    Fail {
        way: Way,
        words: Option<String>,
        ran: bool,
    },
    Garbage(Garbage),
}

impl Chaos {
    /// Reads a plan. The error says what is wrong with it, and where.
    pub fn read(path: &Path, seed: Option<u64>, trust: &Trust) -> Result<Arc<Chaos>, String> {
        let plan = Plan::read(path, trust)?;
        Ok(Arc::new(Chaos {
            seed: seed.or(plan.seed).unwrap_or_default(),
            plan,
            seen: Mutex::default(),
            attempts: AtomicU64::new(0),
            struck: AtomicU64::new(0),
        }))
    }

    /// In words: `3 rules, seed 7`.
    pub fn in_words(&self) -> String {
        let rules = match self.plan.rules.len() {
            1 => "1 rule".to_owned(),
            count => format!("{count} rules"),
        };
        format!("{rules}, seed {}", self.seed)
    }

    /// Attempts that came by, and those that something was done to.
    pub fn counts(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.attempts), count(&self.struck))
    }

    /// Whether any rule means this tool.
    pub fn concerns(&self, tool: &str) -> bool {
        self.plan.rules.iter().any(|rule| means(rule, tool))
    }

    /// What happens to the next attempt of this tool.
    pub fn next(&self, tool: &str) -> Option<Strike> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        let mut strike = Strike {
            rules: String::new(),
            delay: Duration::ZERO,
            way: None,
        };
        for (place, rule) in self.plan.rules.iter().enumerate() {
            if !means(rule, tool) {
                continue;
            }
            let number = self.number(place, tool);
            let lot = draw::lot(self.seed, place, tool, number);
            if !strikes(rule, number, lot) || !self.hit(&mut strike, rule, lot) {
                continue;
            }
            if !strike.rules.is_empty() {
                strike.rules.push_str(", ");
            }
            strike.rules.push_str(&rule_in_words(place, rule));
        }
        (!strike.rules.is_empty()).then(|| {
            self.struck.fetch_add(1, Ordering::Relaxed);
            strike
        })
    }

    /// Delays add up; of the other things the first one happens. False if nothing is left of the rule.
    fn hit(&self, strike: &mut Strike, rule: &Rule, lot: u64) -> bool {
        let least = rule.delay.map_or(Duration::ZERO, |delay| delay.0);
        let spread = rule
            .delay_max
            .map_or(Duration::ZERO, |max| max.0.saturating_sub(least));
        let delay = least + spread.mul_f64(draw::share(draw::further(lot, 1)));
        let blow = match (rule.hang, rule.fail, rule.garbage) {
            (true, ..) => Some(Blow::Hang),
            (false, Some(way), _) => Some(Blow::Fail {
                way,
                words: rule.message.clone(),
                ran: rule.after,
            }),
            (false, None, Some(garbage)) => {
                Some(Blow::Garbage(garbage.or_any(draw::further(lot, 2))))
            }
            (false, None, None) => None,
        };
        if blow.is_some() && strike.way.is_some() {
            return false;
        }
        strike.delay += delay;
        strike.way = strike.way.take().or(blow);
        true
    }

    /// Counts from 1.
    fn number(&self, place: usize, tool: &str) -> u64 {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let number = seen.entry((place, tool.to_owned())).or_default();
        *number += 1;
        *number
    }
}

fn means(rule: &Rule, tool: &str) -> bool {
    rule.tools.is_empty() || rule.tools.iter().any(|pattern| wild(pattern, tool))
}

fn strikes(rule: &Rule, number: u64, lot: u64) -> bool {
    match (rule.every, rule.chance) {
        (Some(every), _) => number.is_multiple_of(u64::from(every.get())),
        (None, Some(chance)) => draw::share(lot) * 100.0 < chance.0,
        (None, None) => true,
    }
}

fn rule_in_words(place: usize, rule: &Rule) -> String {
    let number = place + 1;
    match &rule.name {
        Some(name) => format!("rule {number} ({name})"),
        None => format!("rule {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chaos(plan: &str, seed: u64) -> Chaos {
        Chaos {
            plan: Plan::parse(plan).expect("a plan"),
            seed,
            seen: Mutex::default(),
            attempts: AtomicU64::new(0),
            struck: AtomicU64::new(0),
        }
    }

    fn strikes_of(chaos: &Chaos, tool: &str, attempts: usize) -> Vec<Option<Strike>> {
        (0..attempts).map(|_| chaos.next(tool)).collect()
    }

    const CHANCE: &str = r#"
        version = 1
        [[rule]]
        chance = "30%"
        fail = "network"
        [[rule]]
        tools = ["slow_*"]
        chance = "50%"
        delay = "1s"
        delay_max = "3s"
    "#;

    #[test]
    fn the_same_seed_does_the_same_and_another_one_something_else() {
        let once = strikes_of(&chaos(CHANCE, 7), "slow_report", 200);
        assert_eq!(once, strikes_of(&chaos(CHANCE, 7), "slow_report", 200));
        assert_ne!(once, strikes_of(&chaos(CHANCE, 8), "slow_report", 200));
        assert_ne!(once, strikes_of(&chaos(CHANCE, 7), "slow_other", 200));
    }

    #[test]
    fn a_chance_is_about_kept_and_a_delay_stays_within_its_bounds() {
        let all = strikes_of(&chaos(CHANCE, 7), "slow_report", 2_000);
        let failed = all.iter().flatten().filter(|one| one.way.is_some()).count();
        assert!((500..700).contains(&failed), "{failed} of 2000");
        let delays: Vec<Duration> = all.iter().flatten().map(|one| one.delay).collect();
        let delayed = delays.iter().filter(|delay| !delay.is_zero());
        let (low, high) = (Duration::from_secs(1), Duration::from_secs(3));
        assert!(delayed.clone().all(|delay| (low..=high).contains(delay)));
        assert!((850..1_150).contains(&delayed.count()));
    }

    #[test]
    fn what_one_tool_is_called_changes_nothing_for_another() {
        let alone = strikes_of(&chaos(CHANCE, 7), "weather", 50);
        let beside = chaos(CHANCE, 7);
        let mixed: Vec<_> = (0..50)
            .map(|_| {
                beside.next("slow_report");
                beside.next("weather")
            })
            .collect();
        assert_eq!(alone, mixed);
    }

    #[test]
    fn every_third_attempt_means_every_third() {
        let plan = "version = 1\n[[rule]]\nevery = 3\nhang = true\n";
        let hangs: Vec<bool> = strikes_of(&chaos(plan, 1), "any", 7)
            .iter()
            .map(Option::is_some)
            .collect();
        assert_eq!(hangs, [false, false, true, false, false, true, false]);
    }
}
