//! What REST and the commands both answer: the same record, wherever it is asked for.

pub(crate) mod calls;
pub(crate) mod conversations;
pub(crate) mod keys;
pub(crate) mod metrics;
pub(crate) mod servers;
pub(crate) mod settings;
pub(crate) mod tools;
