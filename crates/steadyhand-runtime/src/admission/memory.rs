//! The memory that is held for callers: bodies of requests, arguments of calls that go on by themselves, answers. Each
//! caller has a part of the whole (`[server] limits.memory`), and each answer a part of its caller's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use steadyhand::{BudgetExceeded, ByteBudget, Category, ReservedBytes, ToolError};

/// One caller may have one part in so many of the memory.
const MEMORY_PER_CALLER_PART: usize = 2;
/// One answer may have one part in so many of its caller's memory.
const MEMORY_PER_ANSWER_PART: usize = 2;
/// What must be free of an answer's memory for a call to be started.
const MEMORY_TO_START_CALL: usize = 64 * 1024;
/// Arguments up to this size are not accounted for: their number is bounded by the calls that run.
const SMALL_ARGUMENTS_BYTES: usize = 16 * 1024;
/// Callers that have nothing are forgotten when there are so many.
const CALLERS_FOLLOWED: usize = 1_024;

/// The memory of all callers.
pub struct CallerMemory {
    process: ByteBudget,
    per_caller: usize,
    callers: Mutex<HashMap<Arc<str>, ByteBudget>>,
}

impl CallerMemory {
    /// From here on the process holds at most so many bytes for others.
    pub fn new(bytes_max: usize) -> CallerMemory {
        let process = ByteBudget::process().clone();
        process.set_bytes_max(bytes_max);
        CallerMemory {
            process,
            per_caller: bytes_max / MEMORY_PER_CALLER_PART,
            callers: Mutex::default(),
        }
    }

    /// The memory of one caller.
    pub fn of(&self, account: &str) -> ByteBudget {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = callers.get(account) {
            return known.clone();
        }
        if callers.len() >= CALLERS_FOLLOWED {
            callers.retain(|_, memory| memory.used() > 0);
        }
        let name = format!("caller '{}'", account.trim_start_matches('@'));
        let memory = self.process.part(name, self.per_caller);
        callers.insert(account.into(), memory.clone());
        memory
    }

    /// The memory of one answer to a caller.
    pub fn of_answer(&self, account: &str) -> ByteBudget {
        let bytes_max = self.per_caller / MEMORY_PER_ANSWER_PART;
        self.of(account).part("one answer", bytes_max)
    }

    /// Makes room for the arguments of a call that may go on when its caller is gone.
    pub fn hold_arguments(
        &self,
        account: &str,
        call: &steadyhand::Call,
    ) -> Result<Option<ReservedBytes>, BudgetExceeded> {
        let bytes = match &call.args {
            steadyhand::Arguments::Text(text) => text.len(),
            steadyhand::Arguments::Json(value) => json_length(value),
        };
        match bytes > SMALL_ARGUMENTS_BYTES {
            true => self.of(account).reserve(bytes).map(Some),
            false => Ok(None),
        }
    }
}

/// Whether a call may be started whose result goes into an answer: not when an earlier one did not fit into it.
pub(super) fn may_start(answer: &ByteBudget) -> Result<(), ToolError> {
    let room = match answer.refused() {
        0 => answer.reserve(MEMORY_TO_START_CALL).map(drop),
        _ => Err(BudgetExceeded {
            budget: "one answer".into(),
            bytes_max: answer.bytes_max(),
            used: answer.used(),
            wanted: MEMORY_TO_START_CALL,
        }),
    };
    room.map_err(|full| {
        let message = format!("{full}; ask for less at once, or try again when answers are taken");
        ToolError::of(Category::Overloaded, message)
    })
}

/// How long something is as JSON.
pub fn json_length(value: &impl serde::Serialize) -> usize {
    struct Counter(usize);

    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let mut counter = Counter(0);
    // What cannot be written takes no room in an answer either.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}
