//! Verdicts about schemas: what was compiled once needs no second look, and the schemas of one list share a budget.

use std::collections::HashMap;
use std::io;
use std::sync::LazyLock;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::roomy_stack::processor_time_with_that;
use super::{DEPTH_MAX, Mended, Rules, SCHEMA_BYTES_MAX, STEPS_INLINE, Schema};
use crate::call::Arguments;
use crate::cut::{depth_exceeds, json_bytes};

/// How long the schemas of one list of tools may take together, of the processor's time, beyond what is usual.
pub const SCHEMAS_TIME_MAX: Duration = Duration::from_secs(1);
/// What one schema may take without being counted.
const USUAL_TIME: Duration = Duration::from_millis(2);
/// So many verdicts are remembered.
pub const VERDICTS_MAX: usize = 10_000;

type Verdict = Result<(), String>;

static VERDICTS: LazyLock<Mutex<HashMap<[u8; 32], Verdict>>> = LazyLock::new(Mutex::default);

/// What is wrong with a schema, if anything is.
pub(crate) fn verdict(schema: &Value) -> Verdict {
    let is_too_large =
        depth_exceeds(schema, DEPTH_MAX) || json_bytes(schema, SCHEMA_BYTES_MAX) > SCHEMA_BYTES_MAX;
    if is_too_large {
        return Schema::compile(schema).map(drop);
    }
    let key = hash(schema);
    let verdicts = || VERDICTS.lock();
    if let Some(known) = verdicts().get(&key) {
        return known.clone();
    }
    // Nobody waits for the lock while a schema is compiled.
    let verdict = Schema::compile(schema).map(drop);
    let mut verdicts = verdicts();
    if verdicts.len() >= VERDICTS_MAX {
        verdicts.clear();
    }
    verdicts.insert(key, verdict.clone());
    verdict
}

fn hash(schema: &Value) -> [u8; 32] {
    struct Hashed(Sha256);
    impl io::Write for Hashed {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut hashed = Hashed(Sha256::new());
    // The only possible error would be ours.
    let _ = serde_json::to_writer(&mut hashed, schema);
    hashed.0.finalize().into()
}

/// What the schemas of one list of tools may still take: each is within its own budget, and there can be thousands.
#[derive(Debug)]
pub struct SchemaBudget {
    left: Duration,
}

impl Default for SchemaBudget {
    fn default() -> SchemaBudget {
        SchemaBudget {
            left: SCHEMAS_TIME_MAX,
        }
    }
}

impl SchemaBudget {
    /// A budget of so much time beyond what is usual.
    pub fn of(left: Duration) -> SchemaBudget {
        SchemaBudget { left }
    }

    /// Says what is wrong with a schema, if anything is, or that there is no time left to find out.
    pub fn check(&mut self, schema: &Value) -> Result<(), String> {
        self.within(|| verdict(schema))
    }

    /// The schema, compiled to ask whether arguments fit it.
    pub fn compile<'a>(&mut self, schema: &'a Value) -> Result<CompiledSchema<'a>, String> {
        let compiled = self.within(|| Schema::compile(schema))?;
        Ok(CompiledSchema {
            schema: compiled,
            document: schema,
        })
    }

    fn within<T>(&mut self, work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        if self.left.is_zero() {
            return Err(
                "the schemas of the tools before it in the list took all the time there is for them; remove tools, or make their schemas simpler"
                    .to_owned(),
            );
        }
        let before = processor_time_with_that();
        let done = work();
        let taken = processor_time_with_that().saturating_sub(before);
        self.left = self.left.saturating_sub(taken.saturating_sub(USUAL_TIME));
        done
    }
}

/// A schema that only says whether arguments fit it: nothing is mended, nothing is explained.
#[derive(Debug)]
pub struct CompiledSchema<'a> {
    schema: Schema,
    document: &'a Value,
}

impl CompiledSchema<'_> {
    /// Whether these arguments fit as they are, within so many bytes and the steps of a short check.
    pub fn takes(&self, args: &Value, bytes_max: usize) -> bool {
        let rules = Rules {
            strict: false,
            coerce: false,
            args_bytes_max: bytes_max,
        };
        let mut copy = Arguments::Json(args.clone());
        let mut mended = Mended::default();
        let Ok(read) = super::read(&mut copy, self.document, rules, None, &mut mended) else {
            return false;
        };
        let steps = &mut STEPS_INLINE.clone();
        let checked = self
            .schema
            .check(read, self.document, rules, &mut mended, steps);
        checked.is_ok()
    }
}
