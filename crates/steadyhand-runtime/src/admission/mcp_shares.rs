//! The shares of a caller at the MCP endpoint.

use std::sync::Arc;

use steadyhand_mcp::serve::{CallerShares, SharedLimit, TakenShare};

use super::{Admission, CallerAccount};

/// One caller's.
pub struct McpShares {
    admission: Arc<Admission>,
    account: CallerAccount,
}

impl McpShares {
    pub fn of(admission: &Arc<Admission>, account: &CallerAccount) -> Arc<McpShares> {
        Arc::new(McpShares {
            admission: Arc::clone(admission),
            account: account.clone(),
        })
    }
}

impl CallerShares for McpShares {
    fn take(&self, limit: SharedLimit) -> Result<TakenShare, String> {
        let slots = match limit {
            SharedLimit::SuspendedRequests => &self.admission.suspended_requests,
            SharedLimit::WatchedResources => &self.admission.watched_resources,
        };
        match slots.take(&self.account) {
            Ok(slot) => Ok(Box::new(slot)),
            Err(full) => Err(full.to_string()),
        }
    }
}
