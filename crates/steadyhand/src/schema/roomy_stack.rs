//! A stack for compiled schemas whose parts stand in each other by the thousand: they are taken apart one inside the other,
//! and the stacks of ordinary threads are too small for that. Nothing that a stack is too small for can be caught.

use std::cell::Cell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;

use super::counted::processor_time;

/// Only what is used of it takes memory. The parts of the largest schema there may be need a tenth of it.
const STACK_BYTES: usize = 64 * 1024 * 1024;
/// So many levels of a schema, references followed, fit on any stack.
const LEVELS_ON_ANY_STACK: usize = 1_000;

/// Whether parts of a schema may stand in each other deeper than ordinary stacks allow. At worst a reference on the lowest
/// level leads to a part that nobody has met yet.
pub(super) fn is_needed(schema: &Value) -> bool {
    let (levels, references) = extent(schema);
    levels * (references + 1) > LEVELS_ON_ANY_STACK
}

/// How many levels a schema has, and how many references.
fn extent(part: &Value) -> (usize, usize) {
    let add = |(levels, references): (usize, usize), part: &Value| {
        let (own_levels, own_references) = extent(part);
        (levels.max(own_levels), references + own_references)
    };
    let (levels, references) = match part {
        Value::Array(items) => items.iter().fold((0, 0), add),
        Value::Object(members) => {
            let own = ["$ref", "$dynamicRef", "$recursiveRef"];
            let own = own.iter().filter(|name| members.contains_key(**name));
            members.values().fold((0, own.count()), add)
        }
        _ => (0, 0),
    };
    (levels + 1, references)
}

/// Does work there. None if there is no such thread to be had, or the work panics.
pub(super) fn run<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    let (done, time) = thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("schema".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || {
                let done = work();
                (done, processor_time())
            });
        thread.ok()?.join().ok()
    })?;
    TIME_THERE.set(TIME_THERE.get() + time);
    Some(done)
}

thread_local! {
    static TIME_THERE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// The processor time of this thread, and what work took there that this thread waited for.
pub(super) fn processor_time_with_that() -> Duration {
    processor_time() + TIME_THERE.get()
}

/// Something that is dropped there, if that is needed.
pub(super) struct DroppedThere<T: Send + 'static> {
    value: Option<T>,
    is_deep: bool,
}

impl<T: Send + 'static> DroppedThere<T> {
    pub(super) fn new(value: T, is_deep: bool) -> DroppedThere<T> {
        let value = Some(value);
        DroppedThere { value, is_deep }
    }
}

impl<T: Send + 'static> Deref for DroppedThere<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value
            .as_ref()
            .expect("it is there until it is dropped")
    }
}

impl<T: Send + 'static> Drop for DroppedThere<T> {
    fn drop(&mut self) {
        let Some(value) = self.value.take_if(|_| self.is_deep) else {
            return;
        };
        let shared = Arc::new(Mutex::new(Some(value)));
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("schema".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let value = theirs.lock().take();
                drop(value);
            });
        if thread.is_err() {
            // Its memory is lost. To drop it here would end the process.
            std::mem::forget(shared);
        }
    }
}

impl<T: Send + 'static> fmt::Debug for DroppedThere<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DroppedThere(deep: {})", self.is_deep)
    }
}
