//! TLS, where a certificate is configured: read at the start, and again when the configuration is.

use std::fs;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use tokio_rustls::TlsAcceptor;

use super::settings::{CannotServe, Fault};
use crate::config::document::plain;
use crate::config::settings::TlsSettings;

/// The certificate in force.
pub(super) struct Tls {
    current: ArcSwapOption<Loaded>,
}

struct Loaded {
    acceptor: TlsAcceptor,
    fingerprint: String,
}

impl Tls {
    pub(super) fn of(settings: Option<&TlsSettings>) -> Result<Tls, CannotServe> {
        let loaded = settings.map(load).transpose();
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
    pub(super) fn renew(&self, settings: Option<&TlsSettings>) {
        match (self.current.load().is_some(), settings) {
            (true, Some(settings)) => match load(settings) {
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

    /// The SHA-256 of the certificate.
    pub(super) fn fingerprint(&self) -> Option<String> {
        self.current
            .load()
            .as_ref()
            .map(|loaded| loaded.fingerprint.clone())
    }
}

/// Whether connections could be TLS as it is configured.
pub(crate) fn check(settings: Option<&TlsSettings>) -> Result<(), CannotServe> {
    Tls::of(settings).map(drop)
}

/// The SHA-256 of a certificate, as it is announced.
pub(crate) fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    let digest = Sha256::digest(certificate.as_ref());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn load(settings: &TlsSettings) -> Result<Loaded, String> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let read = |setting: &str, path: &str| {
        let bytes = fs::read(path);
        bytes.map_err(|error| format!("server.tls.{setting}: {path}: {}", plain(&error)))
    };
    let chain = read("certificate", &settings.certificate)?;
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
    let key = read("key", &settings.key)?;
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
    })
}
