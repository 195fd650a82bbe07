//! The one client for all outgoing requests: pooled connections, checked addresses, bounded answers.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::Url;
use reqwest::redirect::Policy;
use steadyhand::{CooperativeBudget, Effect, Invocation, ToolError};
use tokio::time::timeout_at;

use super::address;
use super::connect_limit::{ConnectLimit, with_connect_limit};
use super::error;
use super::redirect::{self, REDIRECTS_MAX};
use super::request::{Limits, Reach, Request, site};
use super::response::Response;
use super::way_out::{CheckedLookup, Refused, SystemWayOut, WayOut};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Shorter than servers commonly keep a silent connection, so that we seldom write into a closing one.
const IDLE_CONNECTION_KEPT: Duration = Duration::from_secs(30);
const USER_AGENT: &str = concat!("steadyhand/", env!("CARGO_PKG_VERSION"));

/// Sends requests. Cheap to clone; all clones share their connections.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    way_out: Arc<dyn WayOut>,
    // Two pools, because a pooled connection is not checked again: were there one, a host that one
    // tool may reach privately would be open to every other tool through its kept connection.
    configured: Pool,
    public: Pool,
}

/// Made when first used: loading the system's certificates takes a moment.
#[derive(Default)]
struct Pool(OnceLock<Result<reqwest::Client, String>>);

impl Client {
    /// A client on the system's network.
    pub fn new() -> Client {
        Client::on(Arc::new(SystemWayOut))
    }

    /// A client whose way out is replaced: for tests.
    pub fn on(way_out: Arc<dyn WayOut>) -> Client {
        Client(Arc::new(Inner {
            way_out,
            configured: Pool::default(),
            public: Pool::default(),
        }))
    }

    /// Sends a request and reads the answer, whatever its status; redirects are followed. An error
    /// means that there is no answer. Dropping the future aborts the exchange and its connection.
    pub async fn send(
        &self,
        request: Request,
        limits: Limits,
        reach: &Reach,
    ) -> Result<Response, ToolError> {
        let asked = site(&request.url);
        let exchange = self.exchange(request, limits.response_bytes_max, reach);
        let exchange = with_connect_limit(limits.until, exchange);
        match timeout_at(limits.until, exchange).await {
            Ok(result) => result,
            Err(_) => Err(error::too_slow(&asked)),
        }
    }

    /// The same for an attempt to run a tool, which whoever records spans is told of.
    pub async fn send_for(
        &self,
        invocation: &Invocation<'_>,
        request: Request,
        limits: Limits,
        reach: &Reach,
    ) -> Result<Response, ToolError> {
        invocation.describe(|| request.traced());
        let response = self.send(request, limits, reach).await?;
        invocation.describe(|| response.traced());
        Ok(response)
    }

    /// The same without going anywhere else: what sends us on is the answer.
    pub async fn send_once(
        &self,
        request: Request,
        limits: Limits,
        reach: &Reach,
    ) -> Result<Response, ToolError> {
        let asked = site(&request.url);
        let exchange = async {
            let answer = self.step(&request, reach, None).await?;
            read(answer, limits.response_bytes_max, 0, &request.url).await
        };
        let exchange = with_connect_limit(limits.until, exchange);
        match timeout_at(limits.until, exchange).await {
            Ok(result) => result,
            Err(_) => Err(error::too_slow(&asked)),
        }
    }

    async fn exchange(
        &self,
        mut request: Request,
        response_bytes_max: usize,
        reach: &Reach,
    ) -> Result<Response, ToolError> {
        let mut redirects = 0;
        let mut sent_by: Option<String> = None;
        loop {
            // What came before a redirect may have done something, even if this step cannot have.
            let honest = |error: ToolError| match redirects {
                0 => error,
                _ => error.effect(Effect::Unknown),
            };
            let answer = self
                .step(&request, reach, sent_by.as_deref())
                .await
                .map_err(honest)?;
            let next = redirect::next(&request, answer.status(), answer.headers())
                .map_err(|why| ToolError::answer(why).effect(Effect::Unknown))?;
            let Some(next) = next else {
                let read = read(answer, response_bytes_max, redirects, &request.url);
                return read.await.map_err(honest);
            };
            if redirects == REDIRECTS_MAX {
                return Err(ToolError::answer(format!(
                    "{} redirects again after {REDIRECTS_MAX} redirects; given up",
                    site(&request.url)
                ))
                .effect(Effect::Unknown));
            }
            redirects += 1;
            sent_by = Some(site(&request.url));
            request = next;
        }
    }

    async fn step(
        &self,
        request: &Request,
        reach: &Reach,
        sent_by: Option<&str>,
    ) -> Result<reqwest::Response, ToolError> {
        let pool = self.pool_for(&request.url, reach, sent_by)?;
        let mut sending = pool
            .request(request.method.clone(), request.url.clone())
            .headers(request.headers.clone());
        if let Some(body) = &request.body {
            sending = sending.body(body.clone());
        }
        sending
            .send()
            .await
            .map_err(|error| error::from_reqwest(error, &request.url, sent_by))
    }

    /// The pool whose rules fit the URL, or why we do not go there at all.
    fn pool_for(
        &self,
        url: &Url,
        reach: &Reach,
        sent_by: Option<&str>,
    ) -> Result<&reqwest::Client, ToolError> {
        let host = url.host_str().unwrap_or_default();
        let configured = reach.covers(url);
        let refuse = |address, why| {
            let refused = Refused {
                host: host.to_owned(),
                address,
                why,
            };
            error::from_refusal(&refused, sent_by)
        };
        // A host that is an address is never looked up, so it is checked here.
        let address = match url.host() {
            Some(url::Host::Ipv4(address)) => Some(address.into()),
            Some(url::Host::Ipv6(address)) => Some(address.into()),
            Some(url::Host::Domain(_)) => None,
            None => return Err(refuse(None, "no host")),
        };
        if !configured {
            let by_name = address::why_not_by_name(host);
            let by_address = address.and_then(address::why_not_public);
            if let Some(why) = by_name.or(by_address) {
                return Err(refuse(None, why));
            }
        }
        if let Some(address) = address {
            let door = self.0.way_out.connect(host, vec![address]);
            door.map_err(|_| refuse(None, "behind a closed door"))?;
        }
        match configured {
            true => self.0.configured.get(&self.0.way_out, Allowed::All),
            false => self.0.public.get(&self.0.way_out, Allowed::Public),
        }
    }
}

impl Default for Client {
    fn default() -> Client {
        Client::new()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Allowed {
    All,
    Public,
}

impl Pool {
    fn get(
        &self,
        way_out: &Arc<dyn WayOut>,
        allowed: Allowed,
    ) -> Result<&reqwest::Client, ToolError> {
        let made = self.0.get_or_init(|| build(way_out, allowed));
        made.as_ref().map_err(|why| {
            ToolError::answer(format!("outgoing HTTP cannot be set up: {why}")).never_started()
        })
    }
}

fn build(way_out: &Arc<dyn WayOut>, allowed: Allowed) -> Result<reqwest::Client, String> {
    // Someone may have chosen a provider before us; then theirs stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = || {
        reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .dns_resolver(CheckedLookup {
                way_out: Arc::clone(way_out),
                only_public: allowed == Allowed::Public,
            })
            // Redirects are checked step by step in this file.
            .redirect(Policy::none())
            // No proxy from the environment: it would resolve names out of our sight, and a variable
            // someone left behind would see every key.
            .no_proxy()
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .connector_layer(ConnectLimit)
            .pool_idle_timeout(IDLE_CONNECTION_KEPT)
    };
    builder().build().or_else(|error| {
        // A machine without certificates (a bare container) can still speak plain HTTP.
        tracing::warn!(%error, "no certificates on this system: https will fail; install ca-certificates or set SSL_CERT_FILE");
        let bare = builder().tls_certs_only([]).build();
        bare.map_err(|error| error.to_string())
    })
}

/// Reads at most so much, then stops: what a small body unpacks to counts, not what was sent.
async fn read(
    mut answer: reqwest::Response,
    bytes_max: usize,
    redirects: u32,
    url: &Url,
) -> Result<Response, ToolError> {
    let mut response = Response {
        status: answer.status(),
        headers: answer.headers().clone(),
        body: Vec::new(),
        truncated: false,
        redirects,
        site: site(url),
    };
    let mut turn = CooperativeBudget::default();
    loop {
        let chunk = answer.chunk().await;
        let Some(chunk) = chunk.map_err(|error| error::from_reqwest(error, url, None))? else {
            return Ok(response);
        };
        let room = bytes_max - response.body.len();
        if chunk.len() > room {
            response.body.extend_from_slice(&chunk[..room]);
            response.truncated = true;
            return Ok(response);
        }
        response.body.extend_from_slice(&chunk);
        turn.spend(chunk.len()).await;
    }
}
