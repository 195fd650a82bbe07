//! Whom limits count: who a request has proved to be, or else the address it comes from. What callers call
//! themselves (a header, the name of an MCP client) never counts.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use crate::access::{By, Identity};
use steadyhand_config::role::Right;

/// One caller, as limits count it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerAccount {
    id: Arc<str>,
    is_operator: bool,
}

impl CallerAccount {
    /// A caller with a name of its own is one wherever it comes from; any other is its address.
    pub fn of(identity: &Identity, peer: IpAddr) -> CallerAccount {
        let id = match (&identity.name, identity.by) {
            (Some(name), _) => Arc::clone(name),
            (None, By::Local) => "commands on this machine".into(),
            (None, By::Nothing | By::Token | By::Key | By::Jwt) => network(peer),
        };
        CallerAccount {
            id,
            // Where nobody is asked who they are, nobody has shown to be an operator.
            is_operator: identity.by != By::Nothing && identity.may(Right::Operate),
        }
    }

    /// A caller that has shown nothing yet.
    pub fn of_address(peer: IpAddr) -> CallerAccount {
        CallerAccount {
            id: network(peer),
            is_operator: false,
        }
    }

    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// It has shown that it may operate this server.
    pub fn is_operator(&self) -> bool {
        self.is_operator
    }
}

/// Whose budget a call is taken from. Whoever reaches this machine through itself has all of its addresses.
pub(super) fn budget_owner(account: &str) -> &str {
    match account.parse::<IpAddr>() {
        Ok(address) if address.is_loopback() => "this machine",
        _ => account,
    }
}

/// An IPv4 address, or the network of an IPv6 one: its other addresses are had for nothing.
fn network(peer: IpAddr) -> Arc<str> {
    match peer.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let [a, b, c, d, ..] = address.segments();
            format!("{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)).into()
        }
        address => address.to_string().into(),
    }
}
