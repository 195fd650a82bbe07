//! A server that did not start: at which step, what it said last, and what to do about it.

mod text;

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

use steadyhand_process::{Exit, NotFound, Reason};

use crate::client::lifecycle::causes::{self, Cause};
use crate::client::settings::Hide;

pub use text::continuing;
pub(crate) use text::is_path;

/// Everything that is known about a start that failed. Its texts are bounded and without secrets.
#[derive(Clone)]
pub struct StartFailure {
    /// The server's name in the configuration.
    pub server: String,
    /// How we talk to it: `stdio`, `http`, `sse`.
    pub transport: &'static str,
    /// How far it came.
    pub step: Step,
    /// What happened there.
    pub what: What,
    /// From the beginning of this attempt to its end.
    pub elapsed: Duration,
    /// The command line or the address for people, with secrets already taken out of it.
    pub command: String,
    /// The file that was started, where it was found: `/usr/bin/python3`.
    pub program: Option<String>,
    /// Where it is configured: `.mcp.json:9`.
    pub place: Option<String>,
    /// The folder it was started in, where that is configured.
    pub cwd: Option<String>,
    /// The last lines it wrote to stderr.
    pub stderr: Vec<String>,
    /// How many lines on stdout were no messages.
    pub noise_lines: u64,
    /// A few of them.
    pub noise_samples: Vec<String>,
    /// How often it was tried, this time included.
    pub attempts: u32,
}

/// The steps of a start, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Looking for the program.
    FindCommand,
    /// Starting it.
    Start,
    /// Reaching it over the network.
    Connect,
    /// The first exchange of messages.
    Initialize,
    /// Asking for its tools.
    ListTools,
    /// It was up, and did not stay up.
    Running,
}

/// What ended a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// There is no such program.
    NotFound {
        /// As it was asked for.
        program: String,
        /// The `PATH` that was searched.
        path: String,
        /// Where it is all the same, for people to read (`~/.nvm/…/npx`).
        elsewhere: Vec<String>,
    },
    /// The system did not start it, in its words.
    NotStarted(String),
    /// It ended.
    Exited {
        /// In words: `exited with code 1`.
        how: String,
        /// Its exit code, if it ended by itself.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
    /// It said nothing for too long.
    Silent {
        /// How long it was given.
        limit: Duration,
        /// The process that was still there.
        pid: Option<u32>,
    },
    /// It closed its stdout and went on running.
    Closed,
    /// It answered with a JSON-RPC error.
    Refused {
        /// The error's code.
        code: i64,
        /// The server's own words.
        message: String,
    },
    /// It answered with something that is no answer.
    Malformed(String),
    /// It gave more than anyone can take: pages without end, a message too large.
    TooMany(String),
    /// No connection to it, in the system's words.
    Unreachable(String),
    /// The connection broke.
    Broken(String),
    /// It answered with a status that is no success.
    Status {
        /// `401`
        code: u16,
        /// With its name and how the body begins.
        text: String,
    },
    /// It sends us somewhere else.
    Redirected {
        /// Where.
        to: String,
    },
    /// It answered with something that is no message: a web page, a text.
    NotMcp(String),
}

impl What {
    /// The same without secrets that a server may have put into its words.
    pub(crate) fn hidden(self, hide: &Hide) -> What {
        match self {
            What::NotStarted(text) => What::NotStarted(hide(text)),
            What::Refused { code, message } => What::Refused {
                code,
                message: hide(message),
            },
            What::Malformed(text) => What::Malformed(hide(text)),
            What::TooMany(text) => What::TooMany(hide(text)),
            What::Unreachable(text) => What::Unreachable(hide(text)),
            What::Broken(text) => What::Broken(hide(text)),
            What::Status { code, text } => What::Status {
                code,
                text: hide(text),
            },
            What::Redirected { to } => What::Redirected { to: hide(to) },
            What::NotMcp(text) => What::NotMcp(hide(text)),
            other @ (What::NotFound { .. }
            | What::Exited { .. }
            | What::Silent { .. }
            | What::Closed) => other,
        }
    }
}

impl Step {
    const ALL: [Step; 5] = [
        Step::FindCommand,
        Step::Start,
        Step::Connect,
        Step::Initialize,
        Step::ListTools,
    ];

    /// Whether it is one of a server over the network only, or of a program only.
    fn is_of_remote(self) -> Option<bool> {
        match self {
            Step::FindCommand | Step::Start => Some(false),
            Step::Connect => Some(true),
            Step::Initialize | Step::ListTools | Step::Running => None,
        }
    }

    /// The word for it on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Step::FindCommand => "find command",
            Step::Start => "start process",
            Step::Connect => "connect",
            Step::Initialize => "initialize",
            Step::ListTools => "tools/list",
            Step::Running => "running",
        }
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl What {
    /// The program was not found.
    pub fn not_found(not_found: &NotFound) -> What {
        let file = || match &not_found.file {
            Some(file) => file.display().to_string(),
            None => not_found.name.clone(),
        };
        match not_found.reason {
            Reason::Missing => {}
            Reason::IsFolder => return What::NotStarted(format!("{} is a folder", file())),
            Reason::NotExecutable => {
                let file = file();
                let why = format!("{file} may not be executed; chmod +x {file} allows it");
                return What::NotStarted(why);
            }
        }
        What::NotFound {
            program: not_found.name.clone(),
            path: not_found
                .path
                .as_ref()
                .map(|path| path.to_string_lossy().into_owned())
                .unwrap_or_default(),
            elsewhere: not_found
                .elsewhere
                .iter()
                .map(|path| path.display().to_string())
                .collect(),
        }
    }

    /// The program ended.
    pub fn exited(exit: Exit) -> What {
        let (code, signal) = match exit {
            Exit::Code(code) => (Some(code), None),
            Exit::Signal(signal) => (None, Some(signal)),
        };
        What::Exited {
            how: exit.to_string(),
            code,
            signal,
        }
    }

    /// As the end of a sentence about a server that was up: `exited with code 1`.
    pub(crate) fn of_one_that_ran(&self) -> String {
        match self {
            What::Exited { how, .. } => how.clone(),
            What::Closed => "closed its stdout".to_owned(),
            What::Silent { limit, .. } => format!("did not answer a ping within {limit:?}"),
            What::NotStarted(why) | What::Malformed(why) | What::TooMany(why) => why.clone(),
            What::Refused { message, .. } => message.clone(),
            What::NotFound { program, .. } => format!("was not found ({program})"),
            What::Unreachable(why) => format!("cannot be reached: {why}"),
            What::Broken(why) => why.clone(),
            What::Status { text, .. } => format!("answered {text}"),
            What::Redirected { to } => format!("redirects to {to}"),
            What::NotMcp(how) => how.clone(),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl StartFailure {
    /// A failure of the first attempt, with nothing else known yet.
    pub fn new(server: impl Into<String>, step: Step, what: What) -> StartFailure {
        StartFailure {
            server: server.into(),
            transport: "stdio",
            step,
            what,
            elapsed: Duration::ZERO,
            command: String::new(),
            program: None,
            place: None,
            cwd: None,
            stderr: Vec::new(),
            noise_lines: 0,
            noise_samples: Vec::new(),
            attempts: 1,
        }
    }

    /// The likely cause, where its words or its end give one away.
    pub fn cause(&self) -> Option<Cause> {
        causes::likely(self)
    }

    /// What to look at, for the `Check:` line: what is configured, else what the cause and the command
    /// suggest.
    pub fn hints(&self, check: &[String]) -> String {
        if !check.is_empty() {
            return check.join(", ");
        }
        match self.cause() {
            Some(cause) => cause.check,
            None => causes::unknown(self).check,
        }
    }

    /// Whether trying again may help without anyone doing anything.
    pub fn is_retryable(&self) -> bool {
        self.step != Step::FindCommand
    }

    fn ended_with(&self) -> (Option<i32>, Option<i32>) {
        match self.what {
            What::Exited { code, signal, .. } => (code, signal),
            _ => (None, None),
        }
    }
}

/// One sentence: `calendar exited with code 1 before answering initialize`.
impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}

impl std::error::Error for StartFailure {}

/// Without what the server wrote: that may hold anything.
impl fmt::Debug for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartFailure")
            .field("server", &self.server)
            .field("step", &self.step)
            .field("summary", &self.summary())
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}

/// As `--json` shows it.
impl Serialize for StartFailure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct View<'a> {
            code: &'a str,
            message: String,
            server: &'a str,
            transport: &'a str,
            step: &'a str,
            exit_code: Option<i32>,
            signal: Option<i32>,
            #[serde(skip_serializing_if = "Option::is_none")]
            status: Option<u16>,
            elapsed_ms: u64,
            attempts: u32,
            stderr_tail: Vec<String>,
            stdout_noise: Vec<String>,
            stdout_noise_lines: u64,
            help: String,
            retryable: bool,
        }
        let (exit_code, signal) = self.ended_with();
        let view = View {
            code: "mcp_start_failed",
            message: self.message(),
            server: &self.server,
            transport: self.transport,
            step: self.step.as_str(),
            exit_code,
            signal,
            status: match self.what {
                What::Status { code, .. } => Some(code),
                _ => None,
            },
            elapsed_ms: self.elapsed.as_millis() as u64,
            attempts: self.attempts,
            stderr_tail: self.stderr_lines(text::DETAIL_LINES_MAX),
            stdout_noise: self.noise_lines_shown(),
            stdout_noise_lines: self.noise_lines,
            help: self.help().join(" "),
            retryable: self.is_retryable(),
        };
        view.serialize(serializer)
    }
}
