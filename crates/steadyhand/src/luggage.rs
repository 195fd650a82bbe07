//! Something between whoever calls and the tool, which the engine does not look at.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Something a call carries for its tool: see [`Invocation::luggage`](crate::Invocation::luggage).
#[derive(Clone)]
pub struct Luggage(Arc<dyn Any + Send + Sync>);

impl Luggage {
    pub(crate) fn new<T: Any + Send + Sync>(luggage: Arc<T>) -> Luggage {
        Luggage(luggage)
    }

    pub(crate) fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for Luggage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Luggage")
    }
}
