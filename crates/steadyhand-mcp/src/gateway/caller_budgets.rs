//! Memory that all callers of a gateway share: each of them may have a part of it.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use steadyhand::ByteBudget;

/// One caller may have one part in so many.
const CALLER_PART: usize = 2;
/// Callers that have nothing are forgotten when there are so many.
const CALLERS_FOLLOWED: usize = 1_024;

/// The budget of all, and those of each.
pub(super) struct CallerBudgets {
    name: &'static str,
    all: ByteBudget,
    callers: Mutex<HashMap<Arc<str>, ByteBudget>>,
}

impl CallerBudgets {
    /// Parts of a part of the process's memory. `name` says what it is for.
    pub(super) fn new(name: &'static str, bytes_max: usize) -> Arc<CallerBudgets> {
        Arc::new(CallerBudgets {
            name,
            all: ByteBudget::process().part(name, bytes_max),
            callers: Mutex::default(),
        })
    }

    /// One caller's.
    pub(super) fn of(&self, account: &str) -> ByteBudget {
        let mut callers = self.callers.lock();
        if let Some(known) = callers.get(account) {
            return known.clone();
        }
        if callers.len() >= CALLERS_FOLLOWED {
            callers.retain(|_, budget| budget.used() > 0);
        }
        let name = format!("{} of '{}'", self.name, account.trim_start_matches('@'));
        let budget = self.all.part(name, self.all.bytes_max() / CALLER_PART);
        callers.insert(account.into(), budget.clone());
        budget
    }
}
