//! Who may have how much of what the server shares: one type, asked by REST, MCP, the proxy and the pages.
//!
//! Every limit has a share for each caller, so that none of them keeps the others out, and where something is kept
//! open for long, a rest for operators. What a caller is counted as is in `account.rs`.

mod account;
mod caller;
mod connections;
mod limits;
mod mcp_shares;
mod memory;
mod not_admitted;
mod running;
mod slots;

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use steadyhand::{Call, FairQueue, Permission, ReservedBytes};
use steadyhand_mcp::serve::{SUSPENDED_REQUESTS_MAX, WATCHED_RESOURCES_MAX};

pub use account::CallerAccount;
pub use caller::{Caller, CallerPermit, Way};
pub use connections::{ConnectionActivity, ConnectionTable, OpenConnection};
pub use limits::Limits;
pub use mcp_shares::McpShares;
pub use memory::{CallerMemory, json_length};
pub use not_admitted::{NotAdmitted, NotAdmittedReason};
pub use running::{Place, Running, RunningCall};
pub use slots::{Slot, SlotLimits, Slots};

use crate::access::Budget;

/// Readers of `GET /v1/events` at the same time.
pub const EVENT_READERS_MAX: usize = 512;
/// Readers of `GET /v1/events` of one caller.
const EVENT_READERS_PER_CALLER_MAX: usize = 256;
/// Of all readers of events, so many are kept for operators.
const EVENT_READERS_OPERATOR_RESERVE: usize = 32;
/// Open pages of the dashboard: each keeps what it compresses against.
const PAGES_MAX: usize = 128;
/// Open pages of the dashboard of one caller.
const PAGES_PER_CALLER_MAX: usize = 64;
/// Of all open pages, so many are kept for operators.
const PAGES_OPERATOR_RESERVE: usize = 16;
/// Streams of news that MCP clients hold open.
const MCP_STREAMS_MAX: usize = 1_024;
/// Streams of news that the MCP clients of one caller hold open.
const MCP_STREAMS_PER_CALLER_MAX: usize = 512;
/// Of all streams of MCP clients, so many are kept for operators.
const MCP_STREAMS_OPERATOR_RESERVE: usize = 64;

/// Requests of one caller's MCP clients that wait until the client comes back with answers. Each of them is a call that
/// keeps its place at its tool: as many as half of the places that a tool has, if not set.
const SUSPENDED_REQUESTS_PER_CALLER_MAX: usize = 128;
/// Of all requests that wait so, so many are kept for operators.
const SUSPENDED_REQUESTS_OPERATOR_RESERVE: usize = 64;
/// Resources that one caller's MCP clients watch.
const WATCHED_RESOURCES_PER_CALLER_MAX: usize = 2_500;
/// Of all that are watched, so many are kept for operators.
const WATCHED_RESOURCES_OPERATOR_RESERVE: usize = 500;
/// Exports of calls at the same time: each keeps a thread, which readers of the history need, too, for as long as its
/// reader likes.
const EXPORTS_MAX: usize = 8;
/// Exports of calls of one caller.
const EXPORTS_PER_CALLER_MAX: usize = 3;
/// Of all exports, so many are kept for operators.
const EXPORTS_OPERATOR_RESERVE: usize = 2;
/// Large conversations that are looked at at the same time; each caller's next ones wait in turn.
const LARGE_CONVERSATIONS_MAX: usize = 4;

/// What all ways in ask before they take something that callers share.
pub struct Admission {
    pub limits: Limits,
    /// The calls that run now.
    pub running: Arc<Running>,
    /// What conversations or callers may ask for, where the configuration says.
    pub budget: ArcSwapOption<Budget>,
    /// The memory that is held for callers.
    pub memory: CallerMemory,
    /// Requests that are answered now.
    pub requests: Arc<Slots>,
    pub event_readers: Arc<Slots>,
    pub pages: Arc<Slots>,
    pub mcp_streams: Arc<Slots>,
    suspended_requests: Arc<Slots>,
    watched_resources: Arc<Slots>,
    pub exports: Arc<Slots>,
    /// Turns for large conversations, which take a thread and much memory for a while.
    pub large_conversations: FairQueue,
}

impl Admission {
    pub fn new(limits: Limits) -> Admission {
        let slots = |kind, total, per_caller, operator_reserve| {
            let limits = SlotLimits {
                total,
                per_caller,
                operator_reserve,
            };
            Slots::new(kind, limits)
        };
        Admission {
            running: Arc::default(),
            memory: CallerMemory::new(limits.memory_bytes),
            budget: ArcSwapOption::empty(),
            // How many there are in all is limited by the connections.
            requests: slots("connections", usize::MAX, limits.connections, 0),
            event_readers: slots(
                "open readers of events",
                EVENT_READERS_MAX,
                EVENT_READERS_PER_CALLER_MAX,
                EVENT_READERS_OPERATOR_RESERVE,
            ),
            pages: slots(
                "open pages",
                PAGES_MAX,
                PAGES_PER_CALLER_MAX,
                PAGES_OPERATOR_RESERVE,
            ),
            mcp_streams: slots(
                "open streams of news",
                MCP_STREAMS_MAX,
                MCP_STREAMS_PER_CALLER_MAX,
                MCP_STREAMS_OPERATOR_RESERVE,
            ),
            suspended_requests: slots(
                "requests that wait for their client's answers",
                SUSPENDED_REQUESTS_MAX,
                SUSPENDED_REQUESTS_PER_CALLER_MAX,
                SUSPENDED_REQUESTS_OPERATOR_RESERVE,
            ),
            watched_resources: slots(
                "watched resources",
                WATCHED_RESOURCES_MAX,
                WATCHED_RESOURCES_PER_CALLER_MAX,
                WATCHED_RESOURCES_OPERATOR_RESERVE,
            ),
            exports: slots(
                "running exports",
                EXPORTS_MAX,
                EXPORTS_PER_CALLER_MAX,
                EXPORTS_OPERATOR_RESERVE,
            ),
            large_conversations: FairQueue::new(LARGE_CONVERSATIONS_MAX),
            limits,
        }
    }

    /// Lets a call of a caller in: its rate is counted, and it goes on the list of calls that run.
    pub fn admit(&self, call: &mut Call, caller: &Caller) -> Result<Place, NotAdmitted> {
        caller.take(1)?;
        self.running.enter(call, &caller.name, &self.limits)
    }

    /// The same for many: all of them, or none.
    pub fn admit_all(
        &self,
        calls: &mut [Call],
        caller: &Caller,
    ) -> Result<Vec<Place>, NotAdmitted> {
        caller.take(calls.len())?;
        self.running.enter_all(calls, &caller.name, &self.limits)
    }
}

impl Admission {
    /// Makes room for the arguments of a call that may go on when its caller is gone.
    pub fn hold_arguments(&self, call: &Call) -> Result<Option<ReservedBytes>, NotAdmitted> {
        let owner = call.permit.as_ref().and_then(Permission::owner);
        let held = self.memory.hold_arguments(owner.unwrap_or_default(), call);
        held.map_err(|full| NotAdmitted::no_memory(&full))
    }
}
