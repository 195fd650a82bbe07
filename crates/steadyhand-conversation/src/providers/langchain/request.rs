//! What LangChain takes: nearly everything, for its models know better.

use super::LangChainFormat;
use super::messages::LangChainWire;
use crate::host::Host;
use crate::providers::rules::RequestRules;
use crate::providers::wire::Wire;

impl RequestRules for LangChainFormat {
    fn wire(&self, _host: Host) -> &'static dyn Wire {
        &LangChainWire
    }

    fn is_served_by(&self, host: Host, _domain: &str) -> bool {
        host == Host::Compatible
    }

    fn takes_name(&self, name: &str) -> bool {
        !name.is_empty()
    }

    /// What its messages are turned into is not known here.
    fn reads_by_order(&self) -> bool {
        true
    }
}
