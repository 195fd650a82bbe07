//! What the clients of a gateway share, beside sessions: whoever serves the gateway gives each caller a share of it.

use std::any::Any;

/// What a caller takes a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedLimit {
    /// Requests that wait until their client comes back with answers.
    SuspendedRequests,
    /// Resources that a client is told of when they change; each client's count by themselves.
    WatchedResources,
}

/// Requests that wait for their clients' answers at the same time, over all callers.
pub const SUSPENDED_REQUESTS_MAX: usize = 1_024;
/// Resources that are watched at the same time, over all clients: one that two clients watch counts twice.
pub const WATCHED_RESOURCES_MAX: usize = 10_000;

/// One part that a caller has taken, given back when this goes.
pub type TakenShare = Box<dyn Any + Send + Sync>;

/// The shares of one caller.
pub trait CallerShares: Send + Sync {
    /// Takes one part. The error says whose limit is reached.
    fn take(&self, limit: SharedLimit) -> Result<TakenShare, String>;
}

#[cfg(test)]
pub(super) mod testing {
    use std::sync::Arc;

    use super::*;

    /// A caller that may have so many of each.
    pub(in crate::gateway) struct FewOfEach {
        name: &'static str,
        max: usize,
        taken: Arc<()>,
    }

    impl FewOfEach {
        pub(in crate::gateway) fn of(name: &'static str, max: usize) -> FewOfEach {
            FewOfEach {
                name,
                max,
                taken: Arc::default(),
            }
        }

        pub(in crate::gateway) fn taken(&self) -> usize {
            Arc::strong_count(&self.taken) - 1
        }
    }

    impl CallerShares for FewOfEach {
        fn take(&self, _: SharedLimit) -> Result<TakenShare, String> {
            match self.taken() < self.max {
                true => Ok(Box::new(Arc::clone(&self.taken))),
                false => Err(format!("{} has {} of them", self.name, self.max)),
            }
        }
    }
}
