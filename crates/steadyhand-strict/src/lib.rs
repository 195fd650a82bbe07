//! Servers on this machine that stand for model providers: as strict as the real ones, in their words.
//!
//! For the tests of applications: point a client at one of the addresses, and a request that the provider would
//! refuse is refused, with its status, its envelope and its text. What is in order gets a reply: `ok`, or what the
//! test has prepared. The rules are those of `steadyhand_conversation::strict`; the engine itself opens no socket,
//! which is why this is a crate of its own.
//!
//! ```
//! # use steadyhand_conversation::Provider;
//! # #[tokio::main] async fn main() -> std::io::Result<()> {
//! let providers = steadyhand_strict::StrictProviders::start().await?;
//! let base_url = providers.base_url(Provider::Anthropic); // for the client's settings
//! assert!(base_url.starts_with("http://127.0.0.1:"));
//! assert!(providers.heard().is_empty());
//! # Ok(()) }
//! ```

mod server;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use steadyhand_conversation::{Provider, strict};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// How many requests are remembered; the oldest are forgotten.
const HEARD_MAX: usize = 1_000;

/// All providers, at one address. They end when this is dropped.
#[derive(Debug)]
pub struct StrictProviders {
    address: SocketAddr,
    memory: Arc<Memory>,
    serving: JoinHandle<()>,
}

/// A request, and what was answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// Who was asked.
    pub provider: Provider,
    /// Where, with the query.
    pub path: String,
    /// What was sent; null where it was no JSON.
    pub request: Value,
    /// 200, or the status of the refusal.
    pub status: u16,
    /// What was answered, as one reply even where it was streamed.
    pub answer: Value,
}

impl StrictProviders {
    /// On a port of 127.0.0.1 that nobody uses.
    ///
    /// # Errors
    ///
    /// There is no port to be had.
    pub async fn start() -> io::Result<StrictProviders> {
        StrictProviders::listen((Ipv4Addr::LOCALHOST, 0).into()).await
    }

    /// At this address.
    ///
    /// # Errors
    ///
    /// The address is taken, or not one of this machine's.
    pub async fn listen(address: SocketAddr) -> io::Result<StrictProviders> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let memory = Arc::new(Memory::default());
        let router = server::router(Arc::clone(&memory));
        let serving = tokio::spawn(async move {
            // Ends with an error only where the listener itself does; clients then see the connection refused.
            let _ = axum::serve(listener, router).await;
        });
        Ok(StrictProviders {
            address,
            memory,
            serving,
        })
    }

    /// What a client of this provider is given as its base URL.
    pub fn base_url(&self, provider: Provider) -> String {
        let rules = strict::stand_in(provider);
        let (at, name, path) = (self.address, rules.name_in_addresses(), rules.base_path());
        format!("http://{at}/{name}{path}")
    }

    /// What the model says next: a whole reply in the provider's own shape. Given out in order; then `ok` again.
    pub fn reply(&self, provider: Provider, reply: Value) {
        let mut prepared = self.memory.prepared();
        prepared.entry(provider).or_default().push_back(reply);
    }

    /// What was asked and answered, the latest last.
    pub fn heard(&self) -> Vec<Heard> {
        self.memory.heard().iter().cloned().collect()
    }
}

impl Drop for StrictProviders {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// What the server and its owner share.
#[derive(Debug, Default)]
struct Memory {
    heard: Mutex<VecDeque<Heard>>,
    prepared: Mutex<HashMap<Provider, VecDeque<Value>>>,
}

impl Memory {
    fn heard(&self) -> MutexGuard<'_, VecDeque<Heard>> {
        self.heard.lock()
    }

    fn prepared(&self) -> MutexGuard<'_, HashMap<Provider, VecDeque<Value>>> {
        self.prepared.lock()
    }

    fn remember(&self, heard: Heard) {
        let mut all = self.heard();
        if all.len() == HEARD_MAX {
            all.pop_front();
        }
        all.push_back(heard);
    }

    fn next_reply(&self, provider: Provider) -> Option<Value> {
        self.prepared().get_mut(&provider)?.pop_front()
    }
}
