//! So many of something at the same time: for all callers, for each of them, and a rest for operators.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::CallerAccount;

/// How many there are.
#[derive(Debug, Clone, Copy)]
pub struct SlotLimits {
    /// For all callers together.
    pub total: usize,
    /// For one caller.
    pub per_caller: usize,
    /// Of all, those that only operators get.
    pub operator_reserve: usize,
}

/// Slots of one kind.
#[derive(Debug)]
pub struct Slots {
    /// What one is for, in the plural.
    kind: &'static str,
    limits: SlotLimits,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    count: usize,
    by_caller: HashMap<Arc<str>, usize>,
}

/// One slot, given back when this goes.
#[derive(Debug)]
pub struct Slot {
    slots: Arc<Slots>,
    caller: Arc<str>,
}

/// Why there is no slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSlot {
    kind: &'static str,
    /// The caller that has its share, where it is that.
    caller: Option<Arc<str>>,
    max: usize,
}

impl Slots {
    pub fn new(kind: &'static str, limits: SlotLimits) -> Arc<Slots> {
        Arc::new(Slots {
            kind,
            limits,
            taken: Mutex::default(),
        })
    }

    /// Takes one for a caller.
    pub fn take(self: &Arc<Slots>, caller: &CallerAccount) -> Result<Slot, NoSlot> {
        let SlotLimits {
            total,
            per_caller,
            operator_reserve,
        } = self.limits;
        let total = match caller.is_operator() {
            true => total,
            false => total.saturating_sub(operator_reserve),
        };
        let mut taken = self.taken();
        let own = taken.by_caller.get(caller.id()).map_or(0, |count| *count);
        if own >= per_caller {
            return Err(NoSlot {
                kind: self.kind,
                caller: Some(Arc::clone(caller.id())),
                max: per_caller,
            });
        }
        if taken.count >= total {
            return Err(NoSlot {
                kind: self.kind,
                caller: None,
                max: total,
            });
        }
        taken.count += 1;
        taken.by_caller.insert(Arc::clone(caller.id()), own + 1);
        Ok(Slot {
            slots: Arc::clone(self),
            caller: Arc::clone(caller.id()),
        })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        // Each change is a count or two; a panic cannot come between them.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken();
        taken.count -= 1;
        if let Some(own) = taken.by_caller.get_mut(&self.caller) {
            *own -= 1;
            if *own == 0 {
                taken.by_caller.remove(&self.caller);
            }
        }
    }
}

impl fmt::Display for NoSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoSlot { kind, caller, max } = self;
        match caller {
            Some(caller) => {
                let caller = caller.trim_start_matches('@');
                write!(
                    f,
                    "{caller} has {max} {kind}, which is as many as one caller may have"
                )
            }
            None => write!(
                f,
                "there are {max} {kind}, which is as many as all callers may have"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{By, Identity};

    fn caller(name: &str) -> CallerAccount {
        CallerAccount::of_address(name.parse().expect("an address"))
    }

    #[test]
    fn s02_each_caller_has_its_share_and_operators_a_rest() {
        let slots = Slots::new(
            "open pages",
            SlotLimits {
                total: 4,
                per_caller: 2,
                operator_reserve: 1,
            },
        );
        let (one, other, third) = (caller("10.0.0.1"), caller("10.0.0.2"), caller("10.0.0.3"));
        let first = slots.take(&one).expect("free");
        let _second = slots.take(&one).expect("free");
        let full = slots.take(&one).expect_err("its share").to_string();
        assert_eq!(
            full,
            "10.0.0.1 has 2 open pages, which is as many as one caller may have"
        );
        let _third = slots
            .take(&other)
            .expect("another caller has its own share");
        let full = slots
            .take(&third)
            .expect_err("the rest is for operators")
            .to_string();
        assert_eq!(
            full,
            "there are 3 open pages, which is as many as all callers may have"
        );
        let operator = Identity::unlimited(By::Token);
        let operator = CallerAccount::of(&operator, "10.0.0.4".parse().expect("an address"));
        let fourth = slots.take(&operator).expect("an operator's");
        assert!(slots.take(&operator).is_err(), "all are taken");
        drop((first, fourth));
        slots.take(&one).expect("given back");
    }
}
