//! How a program ended.

use std::fmt;

use rustix::process::{Signal, WaitIdStatus};

/// How a program ended. As text: `exited with code 1`, `was killed by signal 9 (SIGKILL)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    /// Whether it ended by itself with code 0.
    pub fn is_success(self) -> bool {
        self == Exit::Code(0)
    }

    /// What `waitid` tells; none as long as the program runs.
    pub(crate) fn read(status: &WaitIdStatus) -> Option<Exit> {
        let code = status.exit_status().map(Exit::Code);
        code.or_else(|| status.terminating_signal().map(Exit::Signal))
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exited with code {code}"),
            Exit::Signal(signal) => match name_of(*signal) {
                Some(name) => write!(f, "was killed by signal {signal} ({name})"),
                None => write!(f, "was killed by signal {signal}"),
            },
        }
    }
}

fn name_of(signal: i32) -> Option<&'static str> {
    const NAMES: [(Signal, &str); 18] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::SYS, "SIGSYS"),
    ];
    let found = NAMES.iter().find(|(named, _)| named.as_raw() == signal);
    found.map(|(_, name)| *name)
}
