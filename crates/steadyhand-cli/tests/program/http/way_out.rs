//! A double for the way out: names mean what a test says, connections are recorded, and whatever is
//! not on loopback is led there or refused. No traffic leaves this machine.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use futures_util::future::{BoxFuture, ready};
use steadyhand_runtime::net::{Client, WayOut};

/// An address of the public internet; here it leads to loopback.
pub(super) const PUBLIC: &str = "93.184.216.34";

#[derive(Default)]
pub(super) struct Double {
    /// The answers to lookups of a name, one after the other, the last for ever.
    names: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    lookups: Mutex<Vec<String>>,
    connects: Mutex<Vec<(String, Vec<IpAddr>)>>,
}

impl Double {
    pub(super) fn new(names: &[(&str, &[&str])]) -> Arc<Double> {
        let double = Arc::new(Double::default());
        for (name, addresses) in names {
            double.answer_next(name, addresses);
        }
        double
    }

    /// One more answer to lookups of this name.
    pub(super) fn answer_next(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses
            .iter()
            .map(|text| text.parse().expect("an address"));
        let mut names = self.names.lock().expect("no panic here");
        names
            .entry(name.to_owned())
            .or_default()
            .push(addresses.collect());
    }

    pub(super) fn client(self: &Arc<Double>) -> Client {
        Client::on(Arc::clone(self) as Arc<dyn WayOut>)
    }

    pub(super) fn lookups(&self) -> Vec<String> {
        self.lookups.lock().expect("no panic here").clone()
    }

    /// The hosts that were about to be connected to, with the addresses the connector would have got.
    pub(super) fn connects(&self) -> Vec<(String, Vec<IpAddr>)> {
        self.connects.lock().expect("no panic here").clone()
    }

    pub(super) fn hosts_connected(&self) -> Vec<String> {
        self.connects().into_iter().map(|(host, _)| host).collect()
    }
}

impl WayOut for Double {
    fn lookup(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        self.lookups
            .lock()
            .expect("no panic here")
            .push(host.clone());
        let mut names = self.names.lock().expect("no panic here");
        let found = names.get_mut(&host).map(|answers| match answers.len() {
            1 => answers[0].clone(),
            _ => answers.remove(0),
        });
        let unknown = || io::Error::other("Name or service not known");
        Box::pin(ready(found.ok_or_else(unknown)))
    }

    fn connect(&self, host: &str, addresses: Vec<IpAddr>) -> io::Result<Vec<IpAddr>> {
        let mut connects = self.connects.lock().expect("no panic here");
        connects.push((host.to_owned(), addresses.clone()));
        let public: IpAddr = PUBLIC.parse().expect("an address");
        let led_home = |address: IpAddr| match address {
            address if address.is_loopback() => Ok(address),
            address if address == public => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            other => Err(io::Error::other(format!("{other} is off limits in tests"))),
        };
        addresses.into_iter().map(led_home).collect()
    }
}
