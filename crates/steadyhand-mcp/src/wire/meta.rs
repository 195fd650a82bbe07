//! What messages say about the protocol itself: its versions, and the names under which `_meta` has it.

use std::sync::LazyLock;

/// The newest version that begins with `initialize`.
pub(crate) const LEGACY_VERSION: &str = "2025-11-25";
/// The newest version that needs no beginning.
pub(crate) const MODERN_VERSION: &str = "2026-07-28";

/// Which process greets: one that greets itself would list its own tools without end.
pub(crate) const META_INSTANCE: &str = "io.steadyhand/instance";
pub(crate) static INSTANCE: LazyLock<String> =
    LazyLock::new(|| uuid::Uuid::new_v4().simple().to_string());

pub(crate) const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";
pub(crate) const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";
pub(crate) const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub(crate) const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
