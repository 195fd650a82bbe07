//! A small file that says where a server of a configuration listens, so that commands find it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use steadyhand_process::private;

use steadyhand_store::history::is_alive;

const FOLDER: &str = "servers";
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The file of a server that runs; it goes when this does.
pub struct Presence {
    path: PathBuf,
    announced: Announced,
    /// A server of the same configuration that was there before, and is found again when this one has gone.
    before: Option<Announced>,
}

/// What the file says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Announced {
    /// Where to connect to.
    pub address: SocketAddr,
    /// The server says the same in `/health/live`; another program at this address does not.
    pub instance: String,
    pub pid: u32,
    /// What commands on this machine show. The file is for nobody else to read.
    #[serde(default)]
    pub token: Option<Token>,
    /// The SHA-256 of its certificate, where connections are TLS: whoever has it is this server.
    #[serde(default)]
    pub certificate: Option<String>,
    /// For people who look.
    pub configuration: Option<PathBuf>,
}

/// A secret that is written down in this one place.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct Token(pub SecretString);

impl Serialize for Token {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.expose_secret())
    }
}

impl Presence {
    /// Writes the file of a server with this configuration.
    pub(super) fn announce(
        state: &Path,
        configuration: Option<&Path>,
        address: SocketAddr,
        instance: &str,
        token: &SecretString,
        certificate: Option<String>,
    ) -> io::Result<Presence> {
        let announced = Announced {
            address: reachable(address),
            instance: instance.to_owned(),
            pid: std::process::id(),
            token: Some(Token(token.clone())),
            certificate,
            configuration: configuration.map(Path::to_owned),
        };
        let path = file_of(state, configuration);
        let folder = path.parent().unwrap_or(state);
        private::make_folder(folder)?;
        let before = read(&path).filter(Announced::is_alive);
        write(&path, &announced)?;
        Ok(Presence {
            path,
            announced,
            before,
        })
    }

    /// The certificate is another one.
    pub(super) fn renew(&mut self, certificate: Option<String>) -> io::Result<()> {
        if self.announced.certificate == certificate {
            return Ok(());
        }
        self.announced.certificate = certificate;
        write(&self.path, &self.announced)
    }
}

impl Announced {
    fn is_alive(&self) -> bool {
        is_alive(self.pid)
    }
}

fn write(path: &Path, announced: &Announced) -> io::Result<()> {
    let text = serde_json::to_string_pretty(announced)?;
    // Whole or not at all: a command may look at any moment.
    let unfinished = path.with_extension(format!("{}.new", std::process::id()));
    private::replace(path, &unfinished, text.as_bytes())
}

impl Drop for Presence {
    fn drop(&mut self) {
        // Another server of the same configuration may have announced itself since.
        let own = &self.announced.instance;
        if read(&self.path).is_none_or(|announced| announced.instance != *own) {
            return;
        }
        let _ = match self.before.take().filter(Announced::is_alive) {
            Some(before) => write(&self.path, &before),
            None => std::fs::remove_file(&self.path),
        };
    }
}

/// The server of a configuration, if one has announced itself. It may be gone since.
pub fn announced(state: &Path, configuration: Option<&Path>) -> Option<Announced> {
    read(&file_of(state, configuration))
}

/// Takes away what a server left behind that ended without a chance to.
pub fn forget(state: &Path, configuration: Option<&Path>, gone: &Announced) {
    drop(Presence {
        path: file_of(state, configuration),
        announced: gone.clone(),
        before: None,
    });
}

fn read(path: &Path) -> Option<Announced> {
    let text = private::read(path, FILE_BYTES_MAX).ok()?;
    serde_json::from_slice(&text).ok()
}

/// One file for each configuration: the same file by any path is the same configuration.
fn file_of(state: &Path, configuration: Option<&Path>) -> PathBuf {
    let name = key_of(configuration);
    state.join(FOLDER).join(format!("{name}.json"))
}

/// The name of a configuration in the state folder.
pub fn key_of(configuration: Option<&Path>) -> String {
    match configuration {
        None => "demo".to_owned(),
        Some(path) => {
            let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
            digest[..8]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect()
        }
    }
}

/// A server that listens everywhere is reached on this machine.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
