//! A few turns for many: each owner's wait in a line of their own, and the lines take turns. Whoever asks for a thousand
//! delays its own work, and that of others by one turn each.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

/// So many turns at the same time. Cheap to clone; clones are the same queue.
///
#[derive(Clone)]
pub struct FairQueue(Arc<Inner>);

struct Inner {
    turns_max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    taken: usize,
    last_number: u64,
    /// Those who wait, by owner. No line is empty.
    lines: HashMap<Arc<str>, VecDeque<Waiting>>,
    /// The owners with a line, in the order in which it is their turn.
    next: VecDeque<Arc<str>>,
}

struct Waiting {
    number: u64,
    handed_over: oneshot::Sender<()>,
}

/// A turn, given to the next when this goes.
pub struct FairTurn(FairQueue);

/// A place in a line. Whoever leaves it without having heard of the turn that it was given passes that on.
struct Place {
    queue: FairQueue,
    owner: Arc<str>,
    number: u64,
    has_turn: bool,
}

impl FairQueue {
    /// A queue for so many turns at the same time, at least one.
    pub fn new(turns_max: usize) -> FairQueue {
        FairQueue(Arc::new(Inner {
            turns_max: turns_max.max(1),
            state: Mutex::default(),
        }))
    }

    /// Waits for a turn. Dropping the future leaves the queue.
    pub async fn take(&self, owner: &str) -> FairTurn {
        loop {
            let (mut place, handed_over) = {
                let mut state = self.state();
                if state.taken < self.0.turns_max {
                    state.taken += 1;
                    return FairTurn(self.clone());
                }
                self.enter(&mut state, owner)
            };
            if handed_over.await.is_ok() {
                place.has_turn = true;
                return FairTurn(self.clone());
            }
        }
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.state().lines.values().map(VecDeque::len).sum()
    }

    fn enter(&self, state: &mut State, owner: &str) -> (Place, oneshot::Receiver<()>) {
        let (handed_over, is_handed_over) = oneshot::channel();
        state.last_number += 1;
        let number = state.last_number;
        let known = state.lines.get_key_value(owner);
        let known = known.map(|(owner, _)| Arc::clone(owner));
        let owner = known.unwrap_or_else(|| {
            let owner: Arc<str> = owner.into();
            state.next.push_back(Arc::clone(&owner));
            owner
        });
        let line = state.lines.entry(Arc::clone(&owner)).or_default();
        line.push_back(Waiting {
            number,
            handed_over,
        });
        let place = Place {
            queue: self.clone(),
            owner,
            number,
            has_turn: false,
        };
        (place, is_handed_over)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is complete before anything else can panic.
        self.0.state.lock()
    }
}

impl State {
    /// Gives a turn to the first of the line whose turn it is, or back if nobody waits.
    fn hand_over(&mut self) {
        let Some(first) = self.take_first() else {
            self.taken -= 1;
            return;
        };
        // Whoever has just stopped waiting passes it on when its place goes.
        let _ = first.handed_over.send(());
    }

    fn take_first(&mut self) -> Option<Waiting> {
        let owner = self.next.pop_front()?;
        let line = self.lines.get_mut(&owner)?;
        let first = line.pop_front();
        match line.is_empty() {
            true => drop(self.lines.remove(&owner)),
            false => self.next.push_back(owner),
        }
        first
    }

    /// False where it is in its line no more: it was given a turn.
    fn leave(&mut self, owner: &Arc<str>, number: u64) -> bool {
        let Some(line) = self.lines.get_mut(owner) else {
            return false;
        };
        let before = line.len();
        line.retain(|waiting| waiting.number != number);
        let was_there = line.len() < before;
        if line.is_empty() {
            self.lines.remove(owner);
            self.next.retain(|other| other != owner);
        }
        was_there
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.has_turn {
            return;
        }
        let mut state = self.queue.state();
        if !state.leave(&self.owner, self.number) {
            state.hand_over();
        }
    }
}

impl Drop for FairTurn {
    fn drop(&mut self) {
        self.0.state().hand_over();
    }
}

impl fmt::Debug for FairQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = self.state().taken;
        write!(f, "FairQueue({taken} of {})", self.0.turns_max)
    }
}

impl fmt::Debug for FairTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FairTurn of {:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// Takes a turn later, and writes its owner down then.
    async fn enter(queue: &FairQueue, owner: &'static str, order: &Arc<Mutex<Vec<&'static str>>>) {
        let before = queue.waiting();
        let (entered, order) = (queue.clone(), Arc::clone(order));
        tokio::spawn(async move {
            let turn = entered.take(owner).await;
            order.lock().push(owner);
            drop(turn);
        });
        while queue.waiting() == before {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn s02_work_of_one_caller_delays_that_of_others_by_one_turn() {
        let queue = FairQueue::new(2);
        let running = [queue.take("greedy").await, queue.take("greedy").await];
        let order = Arc::default();
        for _ in 0..500 {
            enter(&queue, "greedy", &order).await;
        }
        for owner in ["other", "third", "other"] {
            enter(&queue, owner, &order).await;
        }
        drop(running);
        while Arc::strong_count(&order) > 1 {
            tokio::task::yield_now().await;
        }
        let order = order.lock();
        assert_eq!(order.len(), 503);
        let place = |owner: &str| order.iter().rposition(|it| *it == owner).expect("it ran");
        assert!(
            place("third") < 6 && place("other") < 8,
            "{:?}",
            &order[..10]
        );
        assert_eq!(queue.state().taken, 0);
    }

    #[tokio::test]
    async fn a_turn_that_was_given_to_somebody_who_has_left_goes_to_the_next() {
        let queue = FairQueue::new(1);
        let turn = queue.take("ann").await;
        let mut leaves_early = Box::pin(queue.take("bob"));
        let mut leaves_late = Box::pin(queue.take("bob"));
        let mut stays = Box::pin(queue.take("eve"));
        for waits in [&mut leaves_early, &mut leaves_late, &mut stays] {
            assert!(waits.now_or_never().is_none());
        }
        drop(leaves_early);
        assert_eq!(queue.waiting(), 2);
        drop(turn);
        assert!((&mut stays).now_or_never().is_none(), "bob has the turn");
        drop(leaves_late);
        let turn = stays.now_or_never().expect("it was passed on");
        assert_eq!((queue.waiting(), queue.state().taken), (0, 1));
        drop(turn);
        assert_eq!(queue.state().taken, 0);
    }
}
