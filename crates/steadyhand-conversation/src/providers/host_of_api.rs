//! Who serves a provider's API.

use super::Provider;
use crate::host::Host;

impl Host {
    /// Who serves this provider's API at an address without scheme, port and path.
    ///
    /// Makers serve each other's APIs as any service does: Google, Anthropic and Amazon have OpenAI's, and none of
    /// OpenAI's own rules.
    pub fn of_api_at(domain: &str, provider: Provider) -> Host {
        let host = Host::of_domain(domain);
        let domain = domain.trim_end_matches('.').to_ascii_lowercase();
        match provider.rules().is_served_by(host, &domain) {
            true => host,
            false => Host::Compatible,
        }
    }
}
