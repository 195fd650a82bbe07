//! What REST and the commands both answer: the same record, wherever it is asked for.

pub mod calls;
pub mod conversations;
pub mod keys;
pub mod metrics;
pub mod servers;
pub mod settings;
pub mod tools;
