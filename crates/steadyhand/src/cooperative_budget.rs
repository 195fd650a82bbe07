//! Turns: a reader whose input never pauses lets the other tasks of its thread run, and deadlines be looked at.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll};

use tokio::task::yield_now;

/// What is read in one turn.
const TURN_BYTES: usize = 64 * 1024;
/// What the smallest event or line counts: a turn has 256 of them at most.
const ITEM_BYTES: usize = TURN_BYTES / 256;

/// The budget of one reader. A future that always finds more to read never returns to its runtime by itself: timers on
/// its thread do not fire, and other tasks wait. With this it returns after 64 KiB, or 256 small items.
#[derive(Debug)]
pub struct CooperativeBudget {
    left: usize,
}

impl Default for CooperativeBudget {
    fn default() -> CooperativeBudget {
        CooperativeBudget { left: TURN_BYTES }
    }
}

impl CooperativeBudget {
    /// An item of so many bytes was read: if the turn is over, other tasks run first.
    pub async fn spend(&mut self, bytes: usize) {
        if self.is_over_after(bytes) {
            yield_now().await;
        }
    }

    /// The same where something is polled. After `Pending` the task is woken again by itself, and a new turn begins.
    pub fn poll_spend(&mut self, context: &mut Context<'_>, bytes: usize) -> Poll<()> {
        match self.is_over_after(bytes) {
            // Asked once, it has us woken after timers and sockets had their turn.
            true => pin!(yield_now()).poll(context),
            false => Poll::Ready(()),
        }
    }

    fn is_over_after(&mut self, bytes: usize) -> bool {
        self.left = self.left.saturating_sub(bytes.max(ITEM_BYTES));
        let is_over = self.left == 0;
        if is_over {
            self.left = TURN_BYTES;
        }
        is_over
    }
}
