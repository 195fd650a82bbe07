//! The last resort: a panic ends a command with one clear line and the exit code of an unexpected failure, not with
//! a trace. No input should ever lead here.

use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::{Mutex, PoisonError};

use serde_json::json;

/// A panic may quote what it was working on; not a page of it.
const WORDS_BYTES_MAX: usize = 400;

/// What the last panic of the main thread said.
static LAST_WORDS: Mutex<String> = Mutex::new(String::new());

/// Keeps what a panic says for the one line that is printed. `RUST_BACKTRACE=1` shows the whole trace, too.
pub(super) fn install() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
            usual(panic);
        }
        let words = words_of(panic);
        match std::thread::current().name() {
            Some("main") => *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = words,
            // Whoever waits for such a thread tells what it means; the log has where it was.
            _ => tracing::error!("a part of Steadyhand failed: {words}"),
        }
    }));
}

/// Runs a command; after a panic, the line that tells of it.
pub(super) fn contain<T>(command: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(command)).map_err(|_| {
        let words = LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner);
        format!("Steadyhand stopped because of a fault of its own: {words}")
    })
}

/// Tells it on stderr.
#[allow(clippy::print_stderr, reason = "whatever prints may be what failed")]
pub(super) fn tell(message: &str) {
    const HELP: &str = "What it was doing may be done in part: check before trying again. Please report this line and the command";
    let wants_json = std::env::args_os().any(|arg| arg == "--json");
    match wants_json {
        true => {
            eprintln!(
                "{}",
                json!({"error": {"code": "unexpected", "message": message, "help": HELP}})
            );
        }
        false => eprintln!("Error: {message}. {HELP}"),
    }
}

fn words_of(panic: &PanicHookInfo<'_>) -> String {
    let words = panic.payload_as_str().unwrap_or("no words");
    let words = steadyhand::redact::text(words).replace(['\n', '\t'], " ");
    let words = steadyhand::visible::text(&words).into_owned();
    let words = steadyhand::cut::text(&words, WORDS_BYTES_MAX);
    match panic.location() {
        Some(place) => format!("{words} ({}:{})", place.file(), place.line()),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::contain;

    #[test]
    fn a_panic_of_a_command_becomes_one_line() {
        let told = contain(|| -> () { panic!("no such\ncolumn") }).expect_err("it panics");
        assert!(told.starts_with("Steadyhand stopped because of a fault of its own"));
        assert!(!told.contains('\n'), "{told}");
        assert_eq!(contain(|| 4), Ok(4));
    }
}
