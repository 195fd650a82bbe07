//! One start of a server: a program or an address, the handshake, its tools; and then the watch until it breaks.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use steadyhand_process::Exit;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::Instant;

use crate::client::catalogue::Catalogue;
use crate::client::catalogue::lists::{ListError, ListKind, Pages, read_pages};
use crate::client::connection::mux::{Desk, Mux};
use crate::client::connection::{Connection, Way};
use crate::client::http::{Link, Remote, TransportError};
use crate::client::lifecycle::failure::{Step, What};
use crate::client::settings::{ServerSettings, Transport};
use crate::client::stdio::{self, Program};
use crate::wire::RpcError;

/// A server that is up.
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(crate) host: Host,
}

/// What is behind a connection.
pub(crate) enum Host {
    /// A program of ours.
    Program(Program),
    /// Someone else's.
    Remote {
        link: Arc<Link>,
        /// Read what comes without having been asked for.
        tasks: JoinSet<()>,
    },
}

/// How a session ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The program ended.
    Exited(Exit),
    /// It closed its stdout, and lives.
    StdoutClosed,
    /// It reads nothing.
    NotReading(io::Error),
    /// It cannot be reached.
    Away(TransportError),
}

/// A start that failed.
#[derive(Debug)]
pub(crate) struct Stuck {
    pub(crate) step: Step,
    pub(crate) what: What,
}

/// Told about each step when it begins, and about the program once it runs.
pub(crate) trait Witness {
    fn step(&self, step: Step);
    fn found(&self, program: &Path);
    fn started(&self, pid: u32);
}

/// Starts the program, or makes ready to speak with the server. `remote` is there where its address is configured.
pub(crate) async fn start(
    settings: &ServerSettings,
    remote: Option<&Result<Remote, String>>,
    desk: &Arc<Desk>,
    witness: &impl Witness,
) -> Result<Session, Stuck> {
    match (&settings.transport, remote) {
        (Transport::Stdio(stdio), _) => {
            let (connection, program) = stdio::start(stdio, desk, witness).await?;
            let host = Host::Program(program);
            Ok(Session { connection, host })
        }
        (Transport::Http(_), Some(Ok(remote))) => {
            witness.step(Step::Connect);
            remote.probe().await.map_err(|why| Stuck {
                step: Step::Connect,
                what: What::Unreachable(why),
            })?;
            Ok(Session::over(remote, settings, desk, Flavour::Streamable))
        }
        (Transport::Http(_), remote) => {
            let why = remote.and_then(|remote| remote.as_ref().err().cloned());
            Err(Stuck {
                step: Step::Connect,
                what: What::NotStarted(why.unwrap_or_default()),
            })
        }
    }
}

/// How a server over HTTP is spoken with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    Streamable,
    Sse,
}

impl Session {
    /// A conversation over HTTP; nothing is sent yet.
    pub(crate) fn over(
        remote: &Remote,
        settings: &ServerSettings,
        desk: &Arc<Desk>,
        flavour: Flavour,
    ) -> Session {
        let mux = Arc::new(Mux::new(Arc::clone(desk)));
        let hello = crate::client::lifecycle::handshake::hello(settings).to_string();
        let is_sse = flavour == Flavour::Sse;
        let link = Link::new(remote.clone(), Arc::clone(&mux), hello, is_sse);
        Session {
            connection: Connection::new(mux, Way::Http(Arc::clone(&link))),
            host: Host::Remote {
                link,
                tasks: JoinSet::new(),
            },
        }
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        match &self.host {
            Host::Program(program) => Some(program.pid),
            Host::Remote { .. } => None,
        }
    }

    /// All its tools.
    pub(crate) async fn list(
        &mut self,
        settings: &ServerSettings,
        until: Instant,
    ) -> Result<Catalogue, What> {
        let connection = self.connection.clone();
        let limit = until.saturating_duration_since(Instant::now());
        let pid = self.pid();
        tokio::select! {
            listed = list_tools(&connection, until) => listed.map_err(|error| match error {
                ListError::Refused(error) => refused(&error),
                ListError::Malformed(text) => What::Malformed(text),
                ListError::TooLarge(text) => What::TooMany(text),
                ListError::Late => What::Silent { limit: settings.start.limit.max(limit), pid },
                ListError::Lost(reason) => What::Malformed(reason),
                ListError::TransportError(trouble) => trouble.to_what(),
            }),
            end = self.broken() => Err(end.into()),
        }
    }

    /// Waits until something breaks. May be dropped and asked again.
    pub(crate) async fn broken(&mut self) -> End {
        match &mut self.host {
            Host::Program(program) => program.broken().await,
            Host::Remote { link, .. } => End::Away(link.broken().await),
        }
    }

    /// Ends it: a program's stdin is closed, which asks it to end, then the whole group is stopped; a session is
    /// ended where there is one.
    pub(crate) async fn stop(self, reason: &str, grace: Duration) {
        self.connection.close(reason);
        match self.host {
            Host::Program(program) => program.stop(grace).await,
            Host::Remote { link, tasks } => {
                drop(tasks);
                link.goodbye().await;
            }
        }
    }
}

/// Reads the list of tools.
pub(crate) async fn list_tools(
    connection: &Connection,
    until: Instant,
) -> Result<Catalogue, ListError> {
    let Pages {
        entries,
        notes,
        held,
    } = read_pages(connection, ListKind::TOOLS, until).await?;
    let has_headers = connection.has_headers();
    // Thousands of tools take their time.
    let read = move || Catalogue::read(entries, notes, has_headers).holding(held);
    let read = spawn_blocking(read).await;
    read.map_err(|_| ListError::Malformed("its tools could not be read".to_owned()))
}

impl From<End> for What {
    fn from(end: End) -> What {
        match end {
            End::Exited(exit) => What::exited(exit),
            End::StdoutClosed => What::Closed,
            End::NotReading(error) => {
                What::Malformed(format!("it does not read what is sent to it ({error})"))
            }
            End::Away(trouble) => trouble.to_what(),
        }
    }
}

pub(crate) fn refused(error: &RpcError) -> What {
    What::Refused {
        code: error.code,
        message: error.message.clone(),
    }
}
