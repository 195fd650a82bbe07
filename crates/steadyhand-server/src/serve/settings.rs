//! What `[server]` says, with its references replaced, and whether it may be served like that.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Map, Value};
use steadyhand::{plain_words, typed_json};

use steadyhand_config::listen::{DEFAULT_LISTEN, listen_address};
use steadyhand_config::proxy::ProxySettings;
use steadyhand_config::reference::Unresolved;
use steadyhand_config::settings::{
    AlertSettings, BudgetSettings, HistorySettings, JwtSettings, RequestLimits, ServerSettings,
    TelemetrySettings, TlsSettings,
};
use steadyhand_config::text::SecretText;
use steadyhand_config::{Configuration, Resolver, Surroundings};
use steadyhand_runtime::access::Keys;

/// `[server]`, ready for use.
pub struct Settings {
    pub listen: SocketAddr,
    pub token: Option<SecretText>,
    pub allowed_hosts: Vec<String>,
    pub limits: RequestLimits,
    pub history: HistorySettings,
    /// Whether there are pages for people.
    pub dashboard: bool,
    pub approval_wait: Option<Duration>,
    pub approval_by_caller: bool,
    pub jwt: Option<JwtSettings>,
    pub budget: Option<BudgetSettings>,
    /// Paths as they are to be opened.
    pub tls: Option<TlsSettings>,
    /// Who is told when something goes wrong; the error says why that is not known.
    pub alerts: Result<Vec<AlertSettings>, String>,
    /// Where traces and metrics are sent; the error says why that is not known.
    pub telemetry: Result<TelemetrySettings, String>,
    /// Where the proxy forwards to; the error says why that is not known.
    pub proxy: Result<BTreeMap<String, ProxySettings>, String>,
}

/// Why there is no server.
#[derive(Debug)]
pub struct CannotServe {
    pub fault: Fault,
    pub message: String,
    pub help: String,
}

/// What kind of thing is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A value that is kept elsewhere is not there.
    Secret,
    /// The settings do not make sense.
    Settings,
    /// The address cannot be had.
    Address,
}

impl Settings {
    pub(super) fn read(
        configuration: &Configuration,
        surroundings: &Surroundings,
    ) -> Result<Settings, CannotServe> {
        let server = section("server", configuration, surroundings).map_err(|(setting, it)| {
            CannotServe {
                fault: Fault::Secret,
                message: format!("{} in {setting}: {}", it.reference, it.reason),
                help: it.help,
            }
        })?;
        // Without a collector calls go on: what is wrong with it is no reason not to serve.
        let missing = |(setting, it): (String, Unresolved)| {
            format!("{} in {setting}: {}; {}", it.reference, it.reason, it.help)
        };
        let telemetry = section("telemetry", configuration, surroundings)
            .map_err(missing)
            .and_then(|value| {
                typed_json::from_value(value).map_err(|error| plain_words::json(&error))
            });
        let proxy = section("proxy", configuration, surroundings)
            .map_err(missing)
            .and_then(|value| {
                typed_json::from_value(value).map_err(|error| plain_words::json(&error))
            });
        let alerts = section("alerts", configuration, surroundings)
            .map_err(missing)
            .and_then(|value| match value {
                Value::Array(_) => {
                    typed_json::from_value(value).map_err(|error| plain_words::json(&error))
                }
                _ => Ok(Vec::new()),
            });
        let wrong = |message: String| CannotServe {
            fault: Fault::Settings,
            message,
            help: "steadyhand config check says where".to_owned(),
        };
        let server: ServerSettings = typed_json::from_value(server)
            .map_err(|error| wrong(format!("server: {}", plain_words::json(&error))))?;
        let listen = match server.listen.as_deref().filter(|listen| !listen.is_empty()) {
            None => DEFAULT_LISTEN,
            Some(listen) => listen_address(listen, Some(DEFAULT_LISTEN.port()))
                .map_err(|why| wrong(format!("server.listen: {why}")))?,
        };
        Ok(Settings {
            listen,
            token: server.token.filter(|token| !token.expose().is_empty()),
            allowed_hosts: server.allowed_hosts,
            limits: server.limits,
            history: server.history,
            dashboard: server.dashboard.unwrap_or(true),
            approval_wait: server.approval_wait.map(|span| span.0),
            approval_by_caller: server.approval_by_caller.unwrap_or(false),
            jwt: server.jwt,
            budget: server.budget,
            tls: server.tls.map(|tls| {
                let path = |path: &str| {
                    let path = surroundings.path(path, &configuration.folder);
                    path.display().to_string()
                };
                TlsSettings {
                    certificate: path(&tls.certificate),
                    key: path(&tls.key),
                }
            }),
            alerts,
            telemetry,
            proxy,
        })
    }

    /// Other machines are let in only with credentials.
    pub fn check(&self, address: SocketAddr, keys: &Keys) -> Result<(), CannotServe> {
        let has_credentials = self.token.is_some() || self.jwt.is_some() || keys.has_a_usable_one();
        if address.ip().is_loopback() || has_credentials {
            return Ok(());
        }
        Err(CannotServe {
            fault: Fault::Settings,
            message: format!(
                "{address} can be reached from other machines, and no token is set and no key made: whoever reaches it could run every tool"
            ),
            help: "Set token = \"${env:STEADYHAND_TOKEN}\" under [server], make a key (steadyhand keys create NAME), or listen on 127.0.0.1"
                .to_owned(),
        })
    }
}

/// A section of the file with its references replaced, or the first that stands for nothing.
fn section(
    name: &str,
    configuration: &Configuration,
    surroundings: &Surroundings,
) -> Result<Value, (String, Unresolved)> {
    let section = configuration.document.value.get(name).cloned();
    let mut value = section.unwrap_or_else(|| Value::Object(Map::new()));
    let resolver = Resolver::new(surroundings.clone(), configuration.folder.clone());
    let resolution = resolver.resolve_tree(&mut value);
    match resolution.unresolved.into_iter().next() {
        None => Ok(value),
        Some((pointer, unresolved)) => {
            let setting = steadyhand_config::words::dotted(&format!("/{name}{pointer}"));
            Err((setting, unresolved))
        }
    }
}

impl CannotServe {
    pub fn address(address: SocketAddr, error: &std::io::Error) -> CannotServe {
        let help = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                "Perhaps a steadyhand runs there already; --listen 127.0.0.1:0 takes a free port"
            }
            std::io::ErrorKind::PermissionDenied => {
                "Ports below 1024 are for the system: take a higher one with --listen"
            }
            _ => "Take an address of this machine with --listen",
        };
        CannotServe {
            fault: Fault::Address,
            message: format!(
                "cannot listen on {address}: {}",
                steadyhand_config::document::plain(error)
            ),
            help: help.to_owned(),
        }
    }
}
