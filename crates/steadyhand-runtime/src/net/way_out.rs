//! How names become addresses, and the last door before a connection. Tests put a double here.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address;

/// The way out of this process. A test's double records what is asked of it, and refuses.
pub trait WayOut: Send + Sync {
    /// The addresses of a host.
    fn lookup(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;

    /// The addresses that will be connected to, checked before. A host that is an address itself
    /// passes here too: then only an error makes a difference.
    fn connect(&self, host: &str, addresses: Vec<IpAddr>) -> io::Result<Vec<IpAddr>>;
}

/// The system's own resolver, and every door open.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemWayOut;

impl WayOut for SystemWayOut {
    fn lookup(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }

    fn connect(&self, _: &str, addresses: Vec<IpAddr>) -> io::Result<Vec<IpAddr>> {
        Ok(addresses)
    }
}

/// Resolves for the connector. What is checked here is what gets connected to: a name cannot mean
/// one address for the check and another for the connection.
pub(super) struct CheckedLookup {
    pub(super) way_out: Arc<dyn WayOut>,
    pub(super) only_public: bool,
}

impl Resolve for CheckedLookup {
    fn resolve(&self, name: Name) -> Resolving {
        let way_out = Arc::clone(&self.way_out);
        let only_public = self.only_public;
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found = way_out.lookup(host.clone()).await?;
            if found.is_empty() {
                return Err(io::Error::new(io::ErrorKind::NotFound, "no address found").into());
            }
            if only_public {
                // One inner address among outer ones is how rebinding looks: all must be public.
                for &address in &found {
                    if let Some(why) = address::why_not_public(address) {
                        return Err(Refused {
                            host,
                            address: Some(address),
                            why,
                        }
                        .into());
                    }
                }
            }
            let addresses = way_out.connect(&host, found)?;
            let addresses = addresses.into_iter().map(|ip| SocketAddr::new(ip, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

/// A host we do not connect to.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{host}{} is {why}", .address.map(|address| format!(" ({address})")).unwrap_or_default())]
pub(super) struct Refused {
    pub(super) host: String,
    /// What it resolved to, if it had to be.
    pub(super) address: Option<IpAddr>,
    pub(super) why: &'static str,
}
