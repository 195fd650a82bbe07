//! Runs one program to its end: fed, read and limited. Dropping the future stops it with all it started.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use futures_util::future::join3;
use steadyhand::ToolError;
use steadyhand_process::{Exit, find_command, start};
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, Command};
use tokio::time::timeout;

use super::captured::Captured;
use super::error;
use super::limits::Limits;

/// How long, after the program's end, its pipes are read: something it left behind may hold them open.
const PIPE_WAIT: Duration = Duration::from_millis(500);
/// How much of the end of each stream is kept for error texts.
const LAST_BYTES: usize = 4 * 1024;

/// Everything that must be known to run a program once.
pub struct Program {
    /// As it is written: a name on PATH, or a path.
    pub name: String,
    /// Relative paths start here.
    pub base: PathBuf,
    pub args: Vec<String>,
    /// Where it runs.
    pub folder: PathBuf,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// What it reads; with none, its input is empty.
    pub stdin: Option<Vec<u8>>,
    pub limits: Limits,
    pub left_behind: LeftBehind,
}

/// What happens to processes that still run when the program itself has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftBehind {
    /// They are stopped.
    Stop,
    /// They go on.
    Keep,
}

/// A program that has ended.
#[derive(Debug)]
pub(super) struct Finished {
    pub exit: Exit,
    pub stdout: Captured,
    pub stderr: Captured,
}

impl Finished {
    /// Its last words: of stderr, or of stdout when that is empty.
    pub(super) fn last_words(&self) -> String {
        let words = self.stderr.last_lines();
        match words.is_empty() {
            true => self.stdout.last_lines(),
            false => words,
        }
    }
}

/// Runs a program to its end.
pub(super) async fn run(program: Program) -> Result<Finished, ToolError> {
    let path = find(&program)?;
    if !program.folder.is_dir() {
        return Err(error::no_folder(&program.name, &program.folder));
    }
    let launcher = program.limits.launcher();
    let launcher = launcher.map_err(|_| error::no_limits(&program.name))?;
    let (mut group, pipes) = start(|| command(&program, &launcher, &path))
        .await
        .map_err(|error| error::not_started(&program.name, &path, &error))?;

    let mut stdout = Captured::new(program.limits.output_bytes, LAST_BYTES);
    let mut stderr = Captured::new(0, LAST_BYTES);
    let exit = {
        let mut talk = pin!(join3(
            feed(pipes.stdin, program.stdin),
            stdout.read(pipes.stdout),
            stderr.read(pipes.stderr),
        ));
        let mut silent = false;
        let mut ended = pin!(group.ended());
        let exit = loop {
            tokio::select! {
                exit = &mut ended => break exit,
                _ = &mut talk, if !silent => silent = true,
            }
        };
        if !silent {
            let _ = timeout(PIPE_WAIT, &mut talk).await;
        }
        exit.map_err(|error| {
            ToolError::new(format!("`{}` is lost from sight: {error}", program.name))
        })?
    };
    match program.left_behind {
        LeftBehind::Stop => drop(group),
        LeftBehind::Keep => group.leave(),
    }
    Ok(Finished {
        exit,
        stdout,
        stderr,
    })
}

/// The file to execute. Looked for here and not by the system, so that the error can say where; behind a
/// launcher the system's own answer would be lost.
fn find(program: &Program) -> Result<PathBuf, ToolError> {
    let path = program.env.iter().find(|(name, _)| name == "PATH");
    let path = path.map(|(_, value)| value.as_os_str()).unwrap_or_default();
    find_command(&program.name, &program.base, path, &program.folder)
        .map_err(|lost| error::not_found(&lost))
}

fn command(program: &Program, launcher: &[OsString], path: &Path) -> Command {
    let mut command = match launcher {
        [first, options @ ..] => {
            let mut command = Command::new(first);
            command.args(options).arg(path);
            command
        }
        [] => {
            let mut command = Command::new(path);
            // Some programs look at the name they were called by.
            command.arg0(&program.name);
            command
        }
    };
    command
        .args(&program.args)
        .current_dir(&program.folder)
        .env_clear()
        .envs(program.env.iter().map(|(name, value)| (name, value)))
        .stdin(match program.stdin {
            Some(_) => Stdio::piped(),
            None => Stdio::null(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Writes the input and closes it. A program that does not read it all has read enough.
async fn feed(pipe: Option<ChildStdin>, input: Option<Vec<u8>>) -> io::Result<()> {
    match (pipe, input) {
        (Some(mut pipe), Some(input)) => pipe.write_all(&input).await,
        _ => Ok(()),
    }
}
