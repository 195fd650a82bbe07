//! TLS, where a certificate is configured: read at the start, and again when the configuration is.

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use tokio_rustls::TlsAcceptor;

use super::settings::{CannotServe, Fault};
use steadyhand_config::Trust;
use steadyhand_config::settings::TlsSettings;

/// A certificate with those that lead from it to its authority, or a key.
const PEM_BYTES_MAX: u64 = 1024 * 1024;

/// The certificate in force.
pub(super) struct Tls {
    current: ArcSwapOption<Loaded>,
}

struct Loaded {
    acceptor: TlsAcceptor,
    fingerprint: String,
    /// Who else can read the key.
    exposed_key: Option<String>,
}

impl Tls {
    pub(super) fn of(settings: Option<&TlsSettings>, trust: &Trust) -> Result<Tls, CannotServe> {
        let loaded = settings.map(|settings| load(settings, trust)).transpose();
        let loaded = loaded.map_err(|message| CannotServe {
            fault: Fault::Settings,
            message,
            help: "Both are PEM files; the key must be the one of the certificate".to_owned(),
        })?;
        Ok(Tls {
            current: ArcSwapOption::from_pointee(loaded),
        })
    }

    /// Another certificate for connections that come from here on. Whether there is TLS at all stays as it was.
    pub(super) fn renew(&self, settings: Option<&TlsSettings>, trust: &Trust) {
        match (self.current.load().is_some(), settings) {
            (true, Some(settings)) => match load(settings, trust) {
                Ok(loaded) => self.current.store(Some(Arc::new(loaded))),
                Err(reason) => {
                    tracing::error!(reason, "the server goes on with the certificate it had");
                }
            },
            (true, None) | (false, Some(_)) => tracing::warn!(
                "server.tls has come or gone, which applies when the server is started again"
            ),
            (false, None) => {}
        }
    }

    pub(super) fn acceptor(&self) -> Option<TlsAcceptor> {
        self.current
            .load()
            .as_ref()
            .map(|loaded| loaded.acceptor.clone())
    }

    /// Who else can read the private key, in a sentence that says what to do.
    pub(super) fn exposed_key(&self) -> Option<String> {
        self.current.load().as_ref()?.exposed_key.clone()
    }

    /// The SHA-256 of the certificate.
    pub(super) fn fingerprint(&self) -> Option<String> {
        self.current
            .load()
            .as_ref()
            .map(|loaded| loaded.fingerprint.clone())
    }
}

/// Whether connections could be TLS as it is configured, and who else can read the key.
pub fn check(settings: Option<&TlsSettings>, trust: &Trust) -> Result<Option<String>, CannotServe> {
    let tls = Tls::of(settings, trust)?;
    Ok(tls.exposed_key())
}

/// The SHA-256 of a certificate, as it is announced.
pub fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    let digest = Sha256::digest(certificate.as_ref());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn load(settings: &TlsSettings, trust: &Trust) -> Result<Loaded, String> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (certificate, key) = (&settings.certificate, &settings.key);
    let chain = trust.read(Path::new(certificate), PEM_BYTES_MAX);
    let chain = chain.map_err(|why| format!("server.tls.certificate: {certificate}: {why}"))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&chain).collect();
    let chain = chain
        .map_err(|error| format!("server.tls.certificate: {}: {error}", settings.certificate))?;
    let first = chain.first().ok_or_else(|| {
        format!(
            "server.tls.certificate: {} has no certificate in it",
            settings.certificate
        )
    })?;
    let fingerprint = fingerprint(first);
    let key = trust.read_private_key(Path::new(key), PEM_BYTES_MAX);
    let key = key.map_err(|why| format!("server.tls.key: {}: {why}", settings.key));
    let (key, exposed_key) = key?;
    if let Some(exposed) = &exposed_key {
        tracing::warn!("server.tls.key: {exposed}");
    }
    let key = PrivateKeyDer::from_pem_slice(&key)
        .map_err(|error| format!("server.tls.key: {}: {error}", settings.key))?;
    let config = ServerConfig::builder().with_no_client_auth();
    let mut config = config.with_single_cert(chain, key).map_err(|error| {
        format!(
            "server.tls: {} and {} do not fit: {error}",
            settings.certificate, settings.key
        )
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Loaded {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        fingerprint,
        exposed_key,
    })
}
