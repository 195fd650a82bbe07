//! One start of a server: the program, the handshake, its tools; and then the watch over it until it breaks.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use steadyhand_process::{Exit, Group, find_command};
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::catalogue::{Catalogue, Greeting};
use crate::connection::{Connection, too_large};
use crate::failure::{Step, What};
use crate::lists::{ListError, read_pages};
use crate::mux::Desk;
use crate::record::read_stderr;
use crate::settings::{ServerSettings, StdioSettings, Transport};
use crate::slot::{Answer, Whose};
use crate::wire::RpcError;

/// The protocol we ask for; servers answer with the one they speak.
pub(crate) const PROTOCOL_VERSION: &str = "2025-11-25";
/// How long after its end a program's output is read: something it left behind may hold the pipes open.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// How long a program that has closed its stdout may take to end.
const ENDING: Duration = Duration::from_millis(500);
/// How long a server may take to end when its stdin has ended, before it is told by a signal: the protocol's way.
const OWN_ACCORD: Duration = Duration::from_secs(1);

/// A server that is up.
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(crate) pid: u32,
    group: Group,
    /// Reads and writes; ends with the session.
    _tasks: JoinSet<()>,
    stdout_ended: CancellationToken,
    stderr_ended: CancellationToken,
    stdin_broken: CancellationToken,
    why_broken: Arc<Mutex<Option<io::Error>>>,
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
}

/// A start that failed.
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

/// Starts the program and opens a connection to it.
pub(crate) async fn start(
    settings: &ServerSettings,
    desk: &Arc<Desk>,
    witness: &impl Witness,
) -> Result<Session, Stuck> {
    let Transport::Stdio(stdio) = &settings.transport;
    witness.step(Step::FindCommand);
    let environment = stdio.environment();
    let path = environment.iter().find(|(name, _)| name == "PATH");
    let path = path.map(|(_, value)| value.clone()).unwrap_or_default();
    let found = find_command(&stdio.command, &stdio.cwd, &path, &stdio.cwd);
    let program = found.map_err(|not_found| Stuck {
        step: Step::FindCommand,
        what: What::not_found(&not_found),
    })?;
    witness.found(&program);
    witness.step(Step::Start);
    let stuck = |error: io::Error| Stuck {
        step: Step::Start,
        what: What::NotStarted(in_words(&error, stdio)),
    };
    let command = || {
        let mut command = Command::new(&program);
        command
            .args(&stdio.args)
            .current_dir(&stdio.cwd)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        command
    };
    if !stdio.cwd.is_dir() {
        return Err(stuck(io::ErrorKind::NotADirectory.into()));
    }
    let (mut group, pipes) = steadyhand_process::start(command).await.map_err(stuck)?;
    group.ends_by_itself_within(OWN_ACCORD);
    let missing = || io::Error::other("it has no pipes");
    let open = || -> io::Result<_> {
        let stdin = pipes.stdin.ok_or_else(missing)?.into_owned_fd()?;
        let stdout = pipes.stdout.ok_or_else(missing)?.into_owned_fd()?;
        let stderr = pipes.stderr.ok_or_else(missing)?;
        Ok((
            pipe::Sender::from_owned_fd(stdin)?,
            pipe::Receiver::from_owned_fd(stdout)?,
            stderr,
        ))
    };
    let (stdin, stdout, stderr) = open().map_err(stuck)?;
    let pid = group.pid();
    witness.started(pid);
    let connection = Connection::over(stdin, Arc::clone(desk));
    let mut tasks = JoinSet::new();
    let [stdout_ended, stderr_ended, stdin_broken] = [0; 3].map(|_| CancellationToken::new());
    let why_broken: Arc<Mutex<Option<io::Error>>> = Arc::default();
    tasks.spawn({
        let (connection, ended) = (connection.clone(), stdout_ended.clone().drop_guard());
        async move {
            connection.read(stdout).await;
            drop(ended);
        }
    });
    tasks.spawn({
        let (record, ended) = (Arc::clone(&desk.record), stderr_ended.clone().drop_guard());
        async move {
            read_stderr(stderr, &record).await;
            drop(ended);
        }
    });
    tasks.spawn({
        let (connection, why) = (connection.clone(), Arc::clone(&why_broken));
        let broken = stdin_broken.clone();
        async move {
            if let Err(error) = connection.write().await {
                *why.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                broken.cancel();
            }
        }
    });
    Ok(Session {
        connection,
        pid,
        group,
        _tasks: tasks,
        stdout_ended,
        stderr_ended,
        stdin_broken,
        why_broken,
    })
}

impl Session {
    /// The handshake.
    pub(crate) async fn greet(
        &mut self,
        settings: &ServerSettings,
        until: Instant,
    ) -> Result<Greeting, What> {
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "capabilities": settings.requests.capabilities(),
            "clientInfo": {"name": "steadyhand", "version": env!("CARGO_PKG_VERSION")},
        });
        let result = self.ask("initialize", &params, until, settings).await?;
        let greeting = Greeting::read(&result)?;
        self.connection
            .notify::<Value>("notifications/initialized", None);
        Ok(greeting)
    }

    /// All its tools.
    pub(crate) async fn list(
        &mut self,
        settings: &ServerSettings,
        until: Instant,
    ) -> Result<Catalogue, What> {
        let connection = self.connection.clone();
        let limit = until.saturating_duration_since(Instant::now());
        let pid = self.pid;
        tokio::select! {
            listed = list_tools(&connection, until) => listed.map_err(|error| match error {
                ListError::Refused(error) => refused(&error),
                ListError::Malformed(text) => What::Malformed(text),
                ListError::TooLarge(text) => What::TooMany(text),
                ListError::Late => What::Silent { limit: settings.start.limit.max(limit), pid: Some(pid) },
                ListError::Lost(reason) => What::Malformed(reason),
            }),
            end = self.broken() => Err(end.into()),
        }
    }

    /// Waits until something breaks. May be dropped and asked again.
    pub(crate) async fn broken(&mut self) -> End {
        let mut exit = None;
        tokio::select! {
            ended = self.group.ended() => exit = Some(ended),
            () = self.stdout_ended.cancelled() => {}
            () = self.stdin_broken.cancelled() => {}
        }
        if exit.is_none() {
            // A program that ends closes its pipes first.
            exit = timeout(ENDING, self.group.ended()).await.ok();
        }
        match exit {
            Some(exit) => {
                let last_words = async {
                    self.stdout_ended.cancelled().await;
                    self.stderr_ended.cancelled().await;
                };
                let _ = timeout(LAST_WORDS, last_words).await;
                End::Exited(exit.unwrap_or(Exit::Code(-1)))
            }
            None if self.stdin_broken.is_cancelled() => {
                let mut why = self
                    .why_broken
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                End::NotReading(why.take().unwrap_or_else(|| io::ErrorKind::TimedOut.into()))
            }
            None => End::StdoutClosed,
        }
    }

    /// Ends it: stdin is closed, which asks a server to end, then the whole group is stopped.
    pub(crate) async fn stop(self, reason: &str, grace: Duration) {
        self.connection.close(reason);
        self.group.stop(grace).await;
    }

    async fn ask<P: Serialize>(
        &mut self,
        method: &str,
        params: &P,
        until: Instant,
        settings: &ServerSettings,
    ) -> Result<Box<RawValue>, What> {
        let request = self.connection.request(method, Whose::Ours, |_| params);
        let mut reply = std::pin::pin!(request.answer());
        let answered = tokio::select! {
            answer = timeout_at(until, &mut reply) => answer,
            end = self.broken() => {
                // The answer may have been among its last words.
                match timeout(Duration::ZERO, &mut reply).await {
                    Ok(Answer::Result(result)) => Ok(Answer::Result(result)),
                    Ok(Answer::Error(error)) => Ok(Answer::Error(error)),
                    Ok(Answer::TooLarge(bytes)) => Ok(Answer::TooLarge(bytes)),
                    Ok(Answer::Lost(_)) | Err(_) => return Err(end.into()),
                }
            }
        };
        match answered {
            Ok(Answer::Result(result)) => Ok(result),
            Ok(Answer::Error(error)) => Err(refused(&error)),
            Ok(Answer::TooLarge(bytes)) => Err(What::TooMany(too_large(bytes))),
            Ok(Answer::Lost(lost)) => Err(What::Malformed(lost.reason)),
            Err(_) => Err(What::Silent {
                limit: settings.start.limit,
                pid: Some(self.pid),
            }),
        }
    }
}

/// Reads the list of tools.
pub(crate) async fn list_tools(
    connection: &Connection,
    until: Instant,
) -> Result<Catalogue, ListError> {
    let (tools, notes) = read_pages(connection, "tools/list", "tools", until).await?;
    Ok(Catalogue::read(tools, notes))
}

impl From<End> for What {
    fn from(end: End) -> What {
        match end {
            End::Exited(exit) => What::exited(exit),
            End::StdoutClosed => What::Closed,
            End::NotReading(error) => {
                What::Malformed(format!("it does not read what is sent to it ({error})"))
            }
        }
    }
}

fn refused(error: &RpcError) -> What {
    What::Refused {
        code: error.code,
        message: error.message.clone(),
    }
}

fn in_words(error: &io::Error, stdio: &StdioSettings) -> String {
    match error.kind() {
        io::ErrorKind::NotADirectory | io::ErrorKind::NotFound if !stdio.cwd.is_dir() => {
            format!("the folder {} does not exist", stdio.cwd.display())
        }
        _ => error.to_string(),
    }
}
