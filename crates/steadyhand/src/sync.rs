//! The atomics of the concurrent machines, named in one place: the tests put loom's here instead.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
