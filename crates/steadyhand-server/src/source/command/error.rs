//! What goes wrong with a program, and what that means (SPEC R07): the one place that decides.
//!
//! | what happened | code | effect | tried again |
//! |---|---|---|---|
//! | not found, may not be executed, no such folder, no way to limit it | `TOOL_EXECUTION_ERROR`, final | none | no |
//! | an argument it cannot be given | `VALIDATION_ERROR` | none | no |
//! | the system has no process, memory or file to spare | `TOOL_EXECUTION_ERROR` | none | yes |
//! | an exit code that is not in `ok`, a signal | `TOOL_EXECUTION_ERROR`, or what its words say | unknown | only if `idempotent` |
//! | an answer that cannot be read | `TOOL_EXECUTION_ERROR` | done | only if `idempotent` |

use crate::config::document::plain;
use std::io;
use std::path::Path;
use std::time::Duration;

use steadyhand::{Category, Effect, Problem, ToolError};

use super::group::Exit;

/// A name without a slash that no folder of PATH has.
pub(super) fn not_on_path(program: &str, path: &str) -> ToolError {
    never(format!(
        "cannot start `{program}`: it is not on PATH (searched {}); install it, or write its full path in `command`",
        short(path)
    ))
}

/// The working directory is not there, or is no directory.
pub(super) fn no_folder(program: &str, folder: &Path) -> ToolError {
    never(format!(
        "cannot start `{program}`: the folder {} does not exist; make it, or change `cwd`",
        folder.display()
    ))
}

/// The system would not start the program.
pub(super) fn not_started(program: &str, path: &Path, error: &io::Error) -> ToolError {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::NotFound if path.exists() => never(format!(
            "cannot start `{program}`: {shown} is there, but the interpreter that its first line names is not; install it"
        )),
        io::ErrorKind::NotFound => never(format!(
            "cannot start `{program}`: there is no {shown}; install it, or correct the path in `command`"
        )),
        io::ErrorKind::PermissionDenied => never(format!(
            "cannot start `{program}`: {shown} may not be executed by this user; check its permissions (chmod +x)"
        )),
        io::ErrorKind::ArgumentListTooLong => ToolError::of(
            Category::Validation,
            format!(
                "cannot start `{program}`: the arguments are longer than the system allows; hand long texts over with `stdin`"
            ),
        )
        .never_started(),
        // Out of processes, memory or files, or the file is being written: may pass.
        _ => ToolError::new(format!("cannot start `{program}`: {}", plain(error))).never_started(),
    }
}

/// Nobody can set the limits that the program must have.
pub(super) fn no_limits(program: &str) -> ToolError {
    never(format!(
        "cannot start `{program}`: its limits of memory and CPU time are set by the program prlimit, which is not on PATH; install it (util-linux), or remove `limits.memory` and `limits.cpu`"
    ))
}

/// An argument that the program cannot or must not be given.
pub(super) fn bad_argument(name: &str, message: String) -> ToolError {
    let problem = Problem {
        at: format!("/{name}"),
        code: "command".to_owned(),
        message: message.clone(),
        expected: None,
        got: None,
        example: None,
    };
    ToolError::of(Category::Validation, format!("`{name}` {message}"))
        .never_started()
        .problems(vec![problem])
}

/// The program ended with an exit code that is no success, or by a signal.
pub(super) fn ended_badly(
    program: &str,
    exit: Exit,
    words: &str,
    cpu: Option<Duration>,
) -> ToolError {
    let how = match exit {
        Exit::Code(code) => format!("`{program}` exited with code {code}"),
        Exit::Signal(signal) => {
            let name = signal_name(signal).map_or(String::new(), |name| format!(" ({name})"));
            let why = match (name.as_str(), cpu) {
                (" (SIGXCPU)", Some(limit)) => format!(
                    ": it used up its CPU time of {} (limits.cpu)",
                    humantime::format_duration(limit)
                ),
                _ => String::new(),
            };
            format!("`{program}` was ended by signal {signal}{name}{why}")
        }
    };
    ToolError::new(match words.is_empty() {
        true => format!("{how} and said nothing"),
        false => format!("{how}: {words}"),
    })
}

/// The program ended well, but its output is not what the configuration says.
pub(super) fn unreadable(program: &str, message: &str) -> ToolError {
    ToolError::new(format!("`{program}` ran, but {message}")).effect(Effect::Done)
}

/// It did not start, and will not next time.
fn never(message: String) -> ToolError {
    ToolError::answer(message).never_started()
}

fn short(text: &str) -> String {
    const CHARS_MAX: usize = 300;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None if text.is_empty() => "nothing: PATH is empty".to_owned(),
        None => text.to_owned(),
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    use rustix::process::Signal;
    const NAMES: [(Signal, &str); 15] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
    ];
    let found = NAMES.iter().find(|(named, _)| named.as_raw() == signal);
    found.map(|(_, name)| *name)
}
