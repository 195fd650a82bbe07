//! What goes wrong with a program, and what that means (SPEC R07): the one place that decides.
//!
//! | what happened | code | effect | tried again |
//! |---|---|---|---|
//! | not found, may not be executed, no such folder, no way to limit it | `TOOL_EXECUTION_ERROR`, final | none | no |
//! | an argument it cannot be given | `VALIDATION_ERROR` | none | no |
//! | the system has no process, memory or file to spare | `TOOL_EXECUTION_ERROR` | none | yes |
//! | an exit code that is not in `ok` | `TOOL_EXECUTION_ERROR`, or what its words say | done | only if `idempotent` |
//! | a signal | `TOOL_EXECUTION_ERROR`, or what its words say | unknown | only if `idempotent` |
//! | an answer that cannot be read | `TOOL_EXECUTION_ERROR` | done, result lost | only if `idempotent` |

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use steadyhand::{Category, Effect, Problem, ToolError};
use steadyhand_process::{Exit, NotFound, Reason};

use steadyhand_config::document::plain;

/// No file that can be executed.
pub(super) fn not_found(lost: &NotFound) -> ToolError {
    let program = &lost.name;
    let file = lost.file.as_deref().unwrap_or(Path::new(program)).display();
    never(match (lost.reason, &lost.path) {
        (Reason::IsFolder, _) => {
            format!("cannot start `{program}`: {file} is a folder; correct the path in `command`")
        }
        (Reason::NotExecutable, _) => format!(
            "cannot start `{program}`: {file} may not be executed by this user; check its permissions (chmod +x)"
        ),
        (Reason::Missing, None) => format!(
            "cannot start `{program}`: there is no {file}; install it, or correct the path in `command`"
        ),
        (Reason::Missing, Some(path)) => {
            let searched = short(&path.to_string_lossy());
            let help = match lost.elsewhere.first() {
                Some(place) => format!("write {} in `command`", place.display()),
                None => "install it, or write its full path in `command`".to_owned(),
            };
            format!("cannot start `{program}`: it is not on PATH (searched {searched}); {help}")
        }
    })
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
    let why = match (exit, cpu) {
        (Exit::Signal(signal), Some(limit)) if signal == Signal::XCPU.as_raw() => format!(
            ": it used up its CPU time of {} (limits.cpu)",
            humantime::format_duration(limit)
        ),
        _ => String::new(),
    };
    let how = format!("`{program}` {exit}{why}");
    let error = ToolError::new(match words.is_empty() {
        true => format!("{how} and said nothing"),
        false => format!("{how}: {words}"),
    });
    error.effect(match exit {
        Exit::Code(_) => Effect::Done,
        // It was stopped somewhere on its way.
        Exit::Signal(_) => Effect::Unknown,
    })
}

/// The program ended well, but its output is not what the configuration says.
pub(super) fn unreadable(program: &str, message: &str) -> ToolError {
    ToolError::new(format!("`{program}` ran, but {message}")).result_lost()
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
