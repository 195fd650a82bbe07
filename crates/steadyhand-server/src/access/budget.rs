//! How much one conversation, or one key, may ask for: calls, time, and the same thing over and over. What goes
//! beyond gets an outcome that the model can act on.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use steadyhand::{Asked, Category, ToolError};
use tokio::time::Instant;

use super::identity::owner_of;
use crate::approvals::arguments_hash;
use crate::config::settings::{BudgetSettings, Per};

/// Conversations that are followed.
const FOLLOWED_MAX: usize = 10_000;
/// One in which nothing was asked for so long is a new one.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// What was spent so far.
pub(crate) struct Budget {
    pub(crate) settings: BudgetSettings,
    spent: Mutex<HashMap<(String, String), Spent>>,
}

struct Spent {
    began: Instant,
    last: Instant,
    calls: u32,
    /// The last call, and how often it came in a row.
    same: (String, u32),
}

impl Budget {
    pub(crate) fn new(settings: BudgetSettings) -> Budget {
        Budget {
            settings,
            spent: Mutex::default(),
        }
    }

    /// Takes a call from what is left.
    pub(crate) fn take(&self, asked: &Asked<'_>) -> Result<(), ToolError> {
        let owner = asked.caller.map(owner_of).unwrap_or_default().to_owned();
        let (key, whose) = match (self.settings.per.unwrap_or_default(), asked.conversation) {
            (Per::Conversation, Some(conversation)) => {
                ((owner, conversation.to_owned()), "this conversation")
            }
            // What belongs to no conversation has none to be counted by.
            (Per::Conversation, None) => return Ok(()),
            (Per::Key, _) => ((owner, String::new()), "this caller"),
        };
        let now = Instant::now();
        let mut all = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= FOLLOWED_MAX && !all.contains_key(&key) {
            all.retain(|_, spent| is_kept(spent, now));
        }
        if all.get(&key).is_some_and(|spent| !is_kept(spent, now)) {
            all.remove(&key);
        }
        if all.len() >= FOLLOWED_MAX && !all.contains_key(&key) {
            return Err(over(
                "too many conversations are followed already; try again later",
            ));
        }
        let spent = all.entry(key).or_insert_with(|| Spent {
            began: now,
            last: now,
            calls: 0,
            same: (String::new(), 0),
        });
        spent.last = now;
        let call = arguments_hash(asked.tool_name, asked.args);
        let in_a_row = match spent.same.0 == call {
            true => spent.same.1 + 1,
            false => 1,
        };
        let BudgetSettings {
            calls,
            time,
            repeats,
            ..
        } = &self.settings;
        if calls.is_some_and(|calls| spent.calls >= calls) {
            return Err(over(&format!(
                "{whose} has made the {} calls it may make",
                spent.calls
            )));
        }
        if let Some(time) = time.filter(|time| now - spent.began > time.0) {
            return Err(over(&format!("{whose} has had the {time} it may have")));
        }
        if repeats.is_some_and(|repeats| in_a_row > repeats) {
            let tool = asked.tool_name;
            return Err(over(&format!(
                "{whose} has called '{tool}' with the very same arguments {} times in a row; use the answer it gave, or do something else",
                in_a_row - 1
            )));
        }
        spent.calls += 1;
        spent.same = (call, in_a_row);
        Ok(())
    }
}

fn is_kept(spent: &Spent, now: Instant) -> bool {
    now.saturating_duration_since(spent.last) < FORGOTTEN_AFTER
}

fn over(why: &str) -> ToolError {
    ToolError::of(Category::Overloaded, why)
}
