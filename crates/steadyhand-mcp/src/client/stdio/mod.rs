//! A server on stdio: its program started, its pipes read and written.

pub(crate) mod writer;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use steadyhand::{BudgetExceeded, CooperativeBudget};
use steadyhand_process::{Exit, Group, find_command};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::client::connection::mux::{Desk, Mux, Outlet};
use crate::client::connection::{Connection, Way};
use crate::client::lifecycle::failure::{Step, What};
use crate::client::lifecycle::session::{End, Stuck, Witness};
use crate::client::memory::HeldBuffer;
use crate::client::record::read_stderr;
use crate::client::settings::StdioSettings;
use crate::client::stdio::writer::{Haste, Writer};
use crate::wire::{Line, Lines};

/// The longest line a server may send: a result may hold pictures.
const LINE_BYTES_MAX: usize = crate::client::http::ANSWER_BYTES_MAX;
/// A line that goes on after so long is read on; one that is a whole message by then is taken as it is.
const LINE_PAUSE: Duration = Duration::from_millis(500);
/// After so many pauses without a byte, a line that is meant as an answer counts as cut off.
const PAUSES_MAX: u32 = 6;
/// What is read at once.
const READ_BYTES: usize = 64 * 1024;
/// How long after its end a program's output is read: something it left behind may hold the pipes open.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// How long a program that has closed its stdout may take to end.
const ENDING: Duration = Duration::from_millis(500);
/// How long a server may take to end when its stdin has ended, before it is told by a signal: the protocol's way.
const OWN_ACCORD: Duration = Duration::from_secs(1);

/// A program that runs.
pub(crate) struct Program {
    pub(crate) pid: u32,
    group: Group,
    /// Reads and writes; ends with the program.
    _tasks: JoinSet<()>,
    stdout_ended: CancellationToken,
    stderr_ended: CancellationToken,
    stdin_broken: CancellationToken,
    why_broken: Arc<Mutex<Option<io::Error>>>,
}

impl Outlet for Writer {
    fn say(&self, line: Vec<u8>) {
        let _ = self.send(line, None, Haste::Together);
    }

    fn reply(&self, line: Vec<u8>) {
        if self.has_room_for_replies() {
            self.say(line);
        } else {
            tracing::debug!("a server asks more than it reads answers");
        }
    }
}

/// Starts the program and opens a connection to it.
pub(crate) async fn start(
    stdio: &StdioSettings,
    desk: &Arc<Desk>,
    witness: &impl Witness,
) -> Result<(Connection, Program), Stuck> {
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
    let writer = Arc::new(Writer::new(stdin, Arc::clone(&desk.record), &desk.memory));
    let mux = Arc::new(Mux::new(Arc::clone(desk)));
    let connection = Connection::new(Arc::clone(&mux), Way::Stdio(Arc::clone(&writer)));
    let mut tasks = JoinSet::new();
    let [stdout_ended, stderr_ended, stdin_broken] = [0; 3].map(|_| CancellationToken::new());
    let why_broken: Arc<Mutex<Option<io::Error>>> = Arc::default();
    tasks.spawn({
        let (writer, ended) = (Arc::clone(&writer), stdout_ended.clone().drop_guard());
        async move {
            read(&mux, writer, stdout).await;
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
        let why = Arc::clone(&why_broken);
        let broken = stdin_broken.clone();
        async move {
            if let Err(error) = writer.run().await {
                *why.lock() = Some(error);
                broken.cancel();
            }
        }
    });
    let program = Program {
        pid,
        group,
        _tasks: tasks,
        stdout_ended,
        stderr_ended,
        stdin_broken,
        why_broken,
    };
    Ok((connection, program))
}

impl Program {
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
                let mut why = self.why_broken.lock();
                End::NotReading(why.take().unwrap_or_else(|| io::ErrorKind::TimedOut.into()))
            }
            None => End::StdoutClosed,
        }
    }

    /// Stops it with all it has started.
    pub(crate) async fn stop(self, grace: Duration) {
        self.group.stop(grace).await;
    }
}

/// Reads what the server sends until it ends or the connection is closed.
async fn read(mux: &Arc<Mux>, writer: Arc<Writer>, mut stdout: pipe::Receiver) {
    let mut lines = Lines::new(LINE_BYTES_MAX);
    let outlet: Arc<dyn Outlet> = writer as _;
    let mut pauses = 0;
    let mut state = ReadState {
        held: HeldBuffer::new(&mux.desk.memory),
        exceeded: None,
        turn: CooperativeBudget::default(),
    };
    loop {
        // A line is begun and not ended: it may be all that comes.
        let is_open = !lines.unended().is_empty();
        let buffer = lines.buffer();
        buffer.reserve(READ_BYTES);
        let more = stdout.read_buf(buffer);
        let read = match is_open {
            true => timeout(LINE_PAUSE, more).await,
            false => Ok(more.await),
        };
        match read {
            Ok(Ok(0) | Err(_)) => break,
            Ok(Ok(_)) => pauses = 0,
            Err(_) => {
                pauses += 1;
                if let Some(line) = lines.unended_message() {
                    take_line(mux, line, &outlet, &mut state).await;
                } else if pauses == PAUSES_MAX {
                    mux.unreadable(lines.unended(), None);
                }
                continue;
            }
        }
        mux.hear();
        while let Some(line) = lines.next_line() {
            take_line(mux, line, &outlet, &mut state).await;
        }
        if let Err(exceeded) = state.held.resize(lines.held()) {
            lines.give_up_line();
            state.exceeded = Some(exceeded);
        }
    }
    while let Some(line) = lines.last_line() {
        match line {
            // Cut off by its end, which is what its calls are told.
            Line::Noise(bytes) => mux.desk.record.noise(bytes, bytes.len()),
            line => take_line(mux, line, &outlet, &mut state).await,
        }
    }
}

/// How far reading is.
struct ReadState {
    /// The memory of what is not a whole line yet.
    held: HeldBuffer,
    /// There was none for the line that is thrown away now.
    exceeded: Option<BudgetExceeded>,
    turn: CooperativeBudget,
}

async fn take_line(
    mux: &Arc<Mux>,
    line: Line<'_>,
    outlet: &Arc<dyn Outlet>,
    state: &mut ReadState,
) {
    let record = &mux.desk.record;
    let bytes = match &line {
        Line::Noise(bytes) => bytes.len(),
        _ => 0,
    };
    state.turn.spend(bytes).await;
    match line {
        Line::Message(message) => mux.take(message, None, outlet),
        Line::Batch(messages) => {
            for message in messages {
                mux.take(message, None, outlet);
                state.turn.spend(0).await;
            }
        }
        Line::Salvaged { noise, message } => {
            record.noise(noise, noise.len());
            mux.take(message, None, outlet);
        }
        Line::Noise(bytes) => {
            record.noise(bytes, bytes.len());
            mux.unreadable(bytes, None);
        }
        Line::TooLong {
            start,
            bytes,
            answers,
        } => match (answers, state.exceeded.take()) {
            (Some(id), Some(exceeded)) => mux.no_memory(id, exceeded),
            (Some(id), None) if mux.too_large(id, bytes) => {}
            _ => record.noise(start, bytes),
        },
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
