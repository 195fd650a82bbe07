//! Arguments that are checked on another thread: that thread copies them, and whoever lent them has them back when the
//! check is over, or when its call is.

use std::mem;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

/// Arguments taken out of a call. Dropped, it puts them back. A large value takes a while to be copied, so the thread
/// that serves connections does not copy it.
pub(crate) struct LentArguments<'a> {
    lender: &'a mut Value,
    shared: Arc<Mutex<Value>>,
}

impl<'a> LentArguments<'a> {
    pub(crate) fn of(lender: &'a mut Value) -> LentArguments<'a> {
        let shared = Arc::new(Mutex::new(mem::take(lender)));
        LentArguments { lender, shared }
    }

    /// The arguments, for the other thread. What stands there at the end is put back.
    pub(crate) fn shared(&self) -> Arc<Mutex<Value>> {
        Arc::clone(&self.shared)
    }
}

impl Drop for LentArguments<'_> {
    fn drop(&mut self) {
        mem::swap(self.lender, &mut *lock(&self.shared));
    }
}

pub(crate) fn lock(shared: &Mutex<Value>) -> MutexGuard<'_, Value> {
    shared.lock()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{LentArguments, lock};

    #[test]
    fn what_was_lent_comes_back_as_it_stands_then() {
        let mut arguments = json!({"a": "1"});
        let lent = LentArguments::of(&mut arguments);
        let shared = lent.shared();
        assert_eq!(*lock(&shared), json!({"a": "1"}));
        drop(lent);
        assert_eq!(arguments, json!({"a": "1"}));
        // Nobody has them twice: what a check does that nobody waits for changes nothing.
        assert_eq!(*lock(&shared), Value::Null);
        let lent = LentArguments::of(&mut arguments);
        *lock(&lent.shared()) = json!({"a": 1});
        drop(lent);
        assert_eq!(arguments, json!({"a": 1}));
    }
}
