//! Those who wait for a place of one tool, where callers are told apart: each waits in a line of its own, and the lines
//! take turns. When the queue is full, whoever has most waiting makes room.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use crate::fair_queue::{FairQueue, FairTurn};

/// The lines of one tool. Nothing is made before somebody waits.
#[derive(Debug, Default)]
pub(crate) struct CallerLines {
    /// Whoever has the turn waits for the next place.
    turns: OnceLock<FairQueue>,
    lines: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    by_caller: HashMap<Arc<str>, Vec<Waiting>>,
    count: usize,
    last_number: u64,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    pushed_out: CancellationToken,
}

/// Somebody in a line, until this goes.
pub(crate) struct InLine<'a> {
    lines: &'a CallerLines,
    caller: Arc<str>,
    number: u64,
    /// Cancelled when somebody else needs the room more.
    pub(crate) pushed_out: CancellationToken,
}

impl CallerLines {
    /// Enters a line. `others` wait elsewhere; all together may be so many. None if there is no room, and nobody has
    /// more waiting than this caller.
    pub(crate) fn enter(&self, caller: &str, others: usize, max: usize) -> Option<InLine<'_>> {
        let mut lines = self.lines();
        if lines.count + others >= max && !lines.push_out_for(caller) {
            return None;
        }
        lines.last_number += 1;
        lines.count += 1;
        let (number, pushed_out) = (lines.last_number, CancellationToken::new());
        let known = lines.by_caller.get_key_value(caller);
        let caller = known.map_or_else(|| caller.into(), |(caller, _)| Arc::clone(caller));
        let line = lines.by_caller.entry(Arc::clone(&caller)).or_default();
        line.push(Waiting {
            number,
            pushed_out: pushed_out.clone(),
        });
        Some(InLine {
            lines: self,
            caller,
            number,
            pushed_out,
        })
    }

    /// Waits until it is this caller's turn to wait for a place.
    pub(crate) async fn turn(&self, caller: &str) -> FairTurn {
        let turns = self.turns.get_or_init(|| FairQueue::new(1));
        turns.take(caller).await
    }

    /// How many are in lines.
    pub(crate) fn waiting(&self) -> usize {
        self.lines().count
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        // Each change is complete before anything else can panic.
        self.lines.lock()
    }
}

impl Lines {
    /// Ends the wait of the newest of whoever has most, if that is more than this caller will have.
    fn push_out_for(&mut self, caller: &str) -> bool {
        let own = self.by_caller.get(caller).map_or(0, Vec::len);
        let most = self.by_caller.iter().max_by_key(|(_, line)| line.len());
        let Some((most, line)) = most.filter(|(_, line)| line.len() > own + 1) else {
            return false;
        };
        let newest = line.last().map(|waiting| waiting.number);
        let (most, newest) = (Arc::clone(most), newest.unwrap_or_default());
        self.leave(&most, newest)
            .inspect(|gone| gone.pushed_out.cancel());
        true
    }

    fn leave(&mut self, caller: &Arc<str>, number: u64) -> Option<Waiting> {
        let line = self.by_caller.get_mut(caller)?;
        let place = line.iter().position(|waiting| waiting.number == number)?;
        let gone = line.remove(place);
        if line.is_empty() {
            self.by_caller.remove(caller);
        }
        self.count -= 1;
        Some(gone)
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        // One that was pushed out has left already.
        self.lines.lines().leave(&self.caller, self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s02_whoever_has_most_waiting_makes_room() {
        let lines = CallerLines::default();
        let greedy: Vec<_> = (0..4).map_while(|_| lines.enter("greedy", 1, 5)).collect();
        assert_eq!((greedy.len(), lines.waiting()), (4, 4));
        assert!(lines.enter("greedy", 1, 5).is_none(), "its own");
        let other = lines.enter("other", 1, 5).expect("the newest makes room");
        let out: Vec<bool> = greedy
            .iter()
            .map(|it| it.pushed_out.is_cancelled())
            .collect();
        assert_eq!(out, [false, false, false, true]);
        let second = lines.enter("other", 1, 5).expect("once more");
        assert!(greedy[2].pushed_out.is_cancelled());
        assert!(lines.enter("other", 1, 5).is_none(), "both have two");
        assert_eq!(lines.waiting(), 4);
        drop((greedy, other, second));
        assert_eq!(lines.waiting(), 0);
        assert!(lines.lines().by_caller.is_empty());
    }
}
