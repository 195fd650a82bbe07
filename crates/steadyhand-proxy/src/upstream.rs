//! Where each provider is, and what may be done on the way to it: `[proxy.…]`, ready for use.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use steadyhand_conversation::{Host, Provider};
use url::Url;

use super::sigv4::AwsCredentials;
use super::site::Site;
use super::trouble::Trouble;
use steadyhand_config::proxy::{AwsSettings, ProxySettings, is_base};
use steadyhand_config::text::SecretText;

/// Anthropic's own limit for a request.
const BODY_BYTES: usize = 32 * 1024 * 1024;
/// As patient as the providers' own clients.
const FIRST: Duration = Duration::from_secs(600);
const IDLE: Duration = Duration::from_secs(300);
const WHOLE: Duration = Duration::from_secs(3600);
/// SPEC L07.
const ROUNDS: u32 = 5;

/// A provider as it is configured.
#[derive(Debug, Clone)]
pub(super) struct Upstream {
    pub(super) site: Site,
    /// Without a slash at its end.
    base: String,
    is_usable: bool,
    /// The host, and the port where it is not the usual one: for people.
    pub(super) place: String,
    /// Who serves the APIs there, where the configuration says so.
    host: Option<Host>,
    /// The host's name.
    domain: String,
    /// What requests that are signed are signed with anew.
    pub(super) aws: Option<AwsCredentials>,
    pub(super) repair: bool,
    pub(super) execute: Option<Execute>,
    pub(super) keep: bool,
    pub(super) body_bytes: usize,
    pub(super) patience: Patience,
}

/// Which tools are offered, and how often they may be called.
#[derive(Debug, Clone)]
pub(super) struct Execute {
    /// Names or patterns; all if there are none.
    pub(super) tools: Vec<String>,
    pub(super) rounds_max: u32,
}

/// How long a provider is waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) first: Duration,
    pub(super) idle: Duration,
    pub(super) whole: Duration,
}

/// All providers, or why none can be reached.
pub(super) struct Upstreams(Result<[Arc<Upstream>; Site::ALL.len()], String>);

impl Upstreams {
    pub(super) fn of(settings: &Result<BTreeMap<String, ProxySettings>, String>) -> Upstreams {
        Upstreams(match settings {
            Err(problem) => Err(problem.clone()),
            Ok(all) => Ok(Site::ALL.map(|site| {
                let settings = all.get(site.as_str()).cloned();
                Arc::new(Upstream::new(site, &settings.unwrap_or_default()))
            })),
        })
    }

    pub(super) fn get(&self, site: Site) -> Result<&Arc<Upstream>, Trouble> {
        let all = self.0.as_ref();
        let all = all.map_err(|problem| Trouble::NotSetUp(problem.clone()))?;
        let upstream = &all[site as usize];
        match upstream.is_usable {
            true => Ok(upstream),
            // Its text is not repeated: it may hold a key.
            false => Err(Trouble::NotSetUp(format!(
                "upstream under [proxy.{}] is no http or https URL",
                site.as_str()
            ))),
        }
    }
}

impl Upstream {
    fn new(site: Site, settings: &ProxySettings) -> Upstream {
        let base = settings.upstream.as_ref().map(SecretText::expose);
        let base = base.unwrap_or(site.public_url()).trim();
        let url = Url::parse(base).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        let place = match url.as_ref().and_then(Url::port) {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let span =
            |span: Option<steadyhand_config::units::Span>, usual| span.map_or(usual, |it| it.0);
        Upstream {
            site,
            base: base.trim_end_matches('/').to_owned(),
            is_usable: is_base(base),
            host: settings.host.map(Into::into),
            domain: host.to_owned(),
            aws: settings.aws.as_ref().map(|aws| credentials(aws, host)),
            place,
            repair: settings.repair.unwrap_or(true),
            execute: settings.execute.unwrap_or(false).then(|| Execute {
                tools: settings.tools.clone(),
                rounds_max: settings.max_iterations.unwrap_or(ROUNDS),
            }),
            keep: settings.keep_conversations.unwrap_or(false),
            body_bytes: settings.body.map_or(BODY_BYTES, |size| size.0 as usize),
            patience: Patience {
                first: span(settings.first, FIRST),
                idle: span(settings.idle, IDLE),
                whole: span(settings.timeout, WHOLE),
            },
        }
    }

    /// Who serves this provider's API there, where the path of a request does not show it.
    pub(super) fn host_of(&self, provider: Provider) -> Host {
        let of_domain = || Host::of_api_at(&self.domain, provider);
        self.host.unwrap_or_else(of_domain)
    }

    /// The address of a path of the provider's own, query and all.
    pub(super) fn uri(&self, rest: &str) -> Result<Uri, Trouble> {
        // The base URL of some SDKs ends with a version, and their paths begin with it.
        let version = self.base.rsplit('/').next().unwrap_or_default();
        let rest = match rest
            .strip_prefix('/')
            .and_then(|rest| rest.strip_prefix(version))
        {
            Some(after) if version.starts_with('v') && after.starts_with('/') => after,
            _ => rest,
        };
        let slash = if rest.starts_with('/') { "" } else { "/" };
        let uri: Result<Uri, _> = format!("{}{slash}{rest}", self.base).parse();
        uri.map_err(|_| {
            let message = "the path cannot be part of an address. Write it percent-encoded";
            Trouble::Refused(
                steadyhand_server::http::status::Why::BadRequest,
                message.to_owned(),
            )
        })
    }
}

/// The region is part of Amazon's host names: `bedrock-runtime.eu-west-1.amazonaws.com`.
fn credentials(settings: &AwsSettings, host: &str) -> AwsCredentials {
    let of_host = host.strip_suffix(".amazonaws.com");
    let of_host = of_host.and_then(|host| host.split('.').nth(1));
    let region = settings.region.as_deref().or(of_host);
    AwsCredentials {
        access_key_id: settings.access_key_id.expose().to_owned(),
        secret_access_key: settings.secret_access_key.expose().into(),
        session_token: settings.session_token.as_ref().map(|it| it.expose().into()),
        region: region.unwrap_or("us-east-1").to_owned(),
    }
}
