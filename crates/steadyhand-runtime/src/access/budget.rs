//! How much one conversation, or one key, may ask for: calls, time, and the same thing over and over. What goes
//! beyond gets an outcome that the model can act on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use steadyhand::{Asked, Category, KeyCaller, Permission, Permit, ToolError, typed_json};
use tokio::time::Instant;

use crate::approvals::arguments_hash;
use steadyhand_config::Configuration;
use steadyhand_config::settings::{BudgetSettings, Per};

/// Conversations whose budgets are followed, over all callers.
const FOLLOWED_MAX: usize = 40_000;
/// Conversations of one caller whose budgets are followed.
const FOLLOWED_PER_CALLER_MAX: usize = 10_000;
/// When there is no room, one part in so many of the conversations of whoever has most is forgotten.
const FORGOTTEN_PART: usize = 16;
/// One in which nothing was asked for so long is a new one.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// The same where calls belong together only because nothing says otherwise: as long as a session lasts unused.
const UNNAMED_FORGOTTEN_AFTER: Duration = Duration::from_secs(60 * 60);

/// What was spent so far.
pub struct Budget {
    pub settings: BudgetSettings,
    spent: Mutex<AllSpent>,
}

/// By who is counted, and by conversation.
#[derive(Default)]
struct AllSpent {
    by_owner: HashMap<String, HashMap<String, Spent>>,
    count: usize,
}

struct Spent {
    began: Instant,
    last: Instant,
    calls: u32,
    /// The last call, and how often it came in a row.
    same: (String, u32),
}

/// What becomes of calls that name no conversation, where each conversation has a budget of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unnamed {
    /// They are not counted: naming one is up to the caller.
    IsNotCounted,
    /// All of one caller's are one conversation: their protocol has no word for one.
    IsOneConversation,
}

/// What the calls of a process with one caller are taken from, if its configuration has a budget.
pub fn budget_permit(configuration: &Configuration, caller: &'static str) -> Option<Permission> {
    let settings = configuration.document.value.get("server")?.get("budget")?;
    let settings = typed_json::from_value(settings.clone()).ok()?;
    let budget = Budget::new(settings);
    Some(Permission::new(Arc::new(OneCaller { budget, caller })))
}

/// The one caller of a process. It may use everything.
struct OneCaller {
    budget: Budget,
    caller: &'static str,
}

impl Permit for OneCaller {
    fn allows(&self, _: &str) -> bool {
        true
    }

    fn refusal(&self, tool: &str) -> String {
        format!("'{tool}' may not be used")
    }

    fn owner(&self) -> Option<&str> {
        Some(self.caller)
    }

    fn key_caller(&self) -> Option<KeyCaller<'_>> {
        // Whoever runs the program has all of the kept keys.
        None
    }

    fn admit(&self, asked: &Asked<'_>) -> Result<(), ToolError> {
        self.budget
            .take(asked, self.caller, Unnamed::IsOneConversation)
    }
}

impl Budget {
    pub fn new(settings: BudgetSettings) -> Budget {
        Budget {
            settings,
            spent: Mutex::default(),
        }
    }

    /// Takes a call from what is left. `owner` is who is counted: what callers call themselves is not.
    pub fn take(&self, asked: &Asked<'_>, owner: &str, unnamed: Unnamed) -> Result<(), ToolError> {
        let per = self.settings.per.unwrap_or_default();
        let (conversation, whose) = match (per, asked.conversation) {
            (Per::Conversation, Some(conversation)) => (conversation, "this conversation"),
            (Per::Conversation, None) if unnamed == Unnamed::IsNotCounted => return Ok(()),
            (Per::Conversation, None) => ("", "this caller, outside of any session,"),
            (Per::Key, _) => ("", "this caller"),
        };
        let forgotten_after = match (per, asked.conversation) {
            (Per::Conversation, None) => UNNAMED_FORGOTTEN_AFTER,
            _ => FORGOTTEN_AFTER,
        };
        let now = Instant::now();
        let mut all = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let spent = all
            .of(owner, conversation, now, forgotten_after)
            .ok_or_else(|| {
                let name = owner.trim_start_matches('@');
                over(&format!(
                    "{name} has {FOLLOWED_PER_CALLER_MAX} conversations with a budget, which is as many as one caller may have; go on in one of them, or try again when one was idle for a day"
                ))
            })?;
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

impl AllSpent {
    /// What one conversation has spent. None where its caller has as many as it may.
    fn of(
        &mut self,
        owner: &str,
        conversation: &str,
        now: Instant,
        forgotten_after: Duration,
    ) -> Option<&mut Spent> {
        let known = self.by_owner.get(owner);
        let known_spent = known.and_then(|own| own.get(conversation));
        match known_spent {
            Some(spent) if now.saturating_duration_since(spent.last) < forgotten_after => {}
            Some(_) => self.forget(owner, conversation),
            None if known.is_some_and(|own| own.len() >= FOLLOWED_PER_CALLER_MAX) => {
                self.forget_old(now);
                let own = self.by_owner.get(owner).map_or(0, HashMap::len);
                if own >= FOLLOWED_PER_CALLER_MAX {
                    return None;
                }
            }
            None => {}
        }
        if self.count >= FOLLOWED_MAX {
            self.forget_old(now);
        }
        if self.count >= FOLLOWED_MAX {
            self.forget_oldest_of_most();
        }
        let own = self.by_owner.entry(owner.to_owned()).or_default();
        let before = own.len();
        own.entry(conversation.to_owned()).or_insert_with(|| Spent {
            began: now,
            last: now,
            calls: 0,
            same: (String::new(), 0),
        });
        self.count += own.len() - before;
        own.get_mut(conversation)
    }

    fn forget(&mut self, owner: &str, conversation: &str) {
        let Some(own) = self.by_owner.get_mut(owner) else {
            return;
        };
        self.count -= usize::from(own.remove(conversation).is_some());
        if own.is_empty() {
            self.by_owner.remove(owner);
        }
    }

    fn forget_old(&mut self, now: Instant) {
        let is_kept = |spent: &Spent| now.saturating_duration_since(spent.last) < FORGOTTEN_AFTER;
        self.by_owner.retain(|_, own| {
            own.retain(|_, spent| is_kept(spent));
            !own.is_empty()
        });
        self.count = self.by_owner.values().map(HashMap::len).sum();
    }

    /// Whoever follows most conversations makes room for others: with several at once, so that looking for them costs
    /// little.
    fn forget_oldest_of_most(&mut self) {
        let most = self.by_owner.iter().max_by_key(|(_, own)| own.len());
        let Some((owner, own)) = most else {
            return;
        };
        let mut used: Vec<Instant> = own.values().map(|spent| spent.last).collect();
        used.sort_unstable();
        let (owner, room) = (owner.clone(), used.len().div_ceil(FORGOTTEN_PART));
        let Some(until) = used.get(room - 1).copied() else {
            return;
        };
        if let Some(own) = self.by_owner.get_mut(&owner) {
            let mut left = room;
            own.retain(|_, spent| {
                let goes = left > 0 && spent.last <= until;
                left -= usize::from(goes);
                !goes
            });
            self.count -= room;
        }
    }
}

fn over(why: &str) -> ToolError {
    ToolError::of(Category::Overloaded, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s02_conversations_of_one_caller_leave_room_for_others() {
        let (mut all, now) = (AllSpent::default(), Instant::now());
        let mut take = |owner: &str, conversation: &str| {
            let spent = all.of(owner, conversation, now, FORGOTTEN_AFTER);
            spent.map(|spent| {
                spent.calls += 1;
                spent.calls
            })
        };
        for number in 0..FOLLOWED_PER_CALLER_MAX {
            assert_eq!(take("greedy", &number.to_string()), Some(1));
        }
        assert_eq!(take("greedy", "one more"), None);
        assert_eq!(take("greedy", "7"), Some(2), "what it has goes on");
        for number in 0..200 {
            assert_eq!(take("other", &number.to_string()), Some(1));
        }
        // When too many are followed in all, whoever has most makes room.
        for owner in ["second", "third", "fourth", "fifth"] {
            for number in 0..FOLLOWED_PER_CALLER_MAX {
                assert_eq!(
                    take(owner, &number.to_string()),
                    Some(1),
                    "{owner} {number}"
                );
            }
        }
        assert_eq!(take("other", "3"), Some(2), "nobody else's were forgotten");
        let followed: usize = all.by_owner.values().map(HashMap::len).sum();
        assert!(
            all.count == followed && followed <= FOLLOWED_MAX,
            "{followed}"
        );
    }
}
