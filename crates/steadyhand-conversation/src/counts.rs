//! How often each fault was mended since the process began (SPEC R03: every correction is counted).

use std::sync::atomic::{AtomicU64, Ordering};

use crate::problem::{Code, Fix};
use crate::providers::Provider;

const PROVIDERS: usize = Provider::ALL.len();
const CODES: usize = Code::ALL.len();

static COUNTS: [[AtomicU64; CODES]; PROVIDERS] =
    [const { [const { AtomicU64::new(0) }; CODES] }; PROVIDERS];

/// The fixes that repairs of this process made, by provider and kind; those that were never made are not there.
pub fn fixes_made() -> Vec<(Provider, Code, u64)> {
    let mut made = Vec::new();
    for (provider, counts) in Provider::ALL.into_iter().zip(&COUNTS) {
        for (code, count) in Code::ALL.iter().zip(counts) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                made.push((provider, *code, count));
            }
        }
    }
    made
}

pub(super) fn count(provider: Provider, fixes: &[Fix]) {
    for fix in fixes {
        COUNTS[provider as usize][fix.code as usize].fetch_add(1, Ordering::Relaxed);
    }
}
