//! A terminal of our own, with the program in it: keys go in, what a person would see comes out.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::{PATIENCE, Workplace};

/// The program in a terminal. Stopped when this goes.
pub(crate) struct Terminal {
    keys: File,
    child: Child,
    seen: Arc<Seen>,
    read: usize,
}

#[derive(Default)]
struct Seen {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    is_over: bool,
}

impl Terminal {
    /// Starts `steadyhand` with these arguments in a terminal of 100 columns.
    pub(crate) fn start(workplace: &Workplace, arguments: &[&str]) -> Terminal {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC);
        let ours = ours.expect("a terminal");
        grantpt(&ours).expect("allowed");
        unlockpt(&ours).expect("unlocked");
        let name = ptsname(&ours, Vec::new()).expect("its name");
        let theirs = File::options()
            .read(true)
            .write(true)
            // Not the terminal of this process, whatever session it leads.
            .custom_flags(OpenptFlags::NOCTTY.bits() as i32)
            .open(name.to_str().expect("a path"))
            .expect("its other end");
        let size = Winsize {
            ws_row: 40,
            ws_col: 100,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&theirs, size).expect("a size");
        let end = || theirs.try_clone().expect("one more");
        // Makes it the terminal of the program: that is how Ctrl-C becomes a signal.
        let child = Command::new("setsid")
            .args(["--ctty", "--wait", env!("CARGO_BIN_EXE_steadyhand")])
            .args(arguments)
            .current_dir(workplace.path())
            .env_clear()
            .envs(crate::support::measured())
            .env("PATH", std::env::var("PATH").unwrap_or_default())
            .env("HOME", workplace.path())
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .envs(
                workplace
                    .variables()
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("setsid of util-linux");
        drop(theirs);
        let keys = File::from(ours);
        let seen = Arc::new(Seen::default());
        let (mut screen, shared) = (keys.try_clone().expect("one more"), Arc::clone(&seen));
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // An error is how a terminal says that nobody is left at its other end.
            while let Ok(count @ 1..) = screen.read(&mut piece) {
                let mut state = shared.state.lock().expect("seen");
                state.bytes.extend_from_slice(&piece[..count]);
                shared.more.notify_all();
            }
            shared.state.lock().expect("seen").is_over = true;
            shared.more.notify_all();
        });
        Terminal {
            keys,
            child,
            seen,
            read: 0,
        }
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("keys");
    }

    /// Types a line.
    pub(crate) fn line(&mut self, line: &str) {
        self.press(&format!("{line}\r"));
    }

    /// Waits until this is seen, after what was waited for before. Gives back everything up to its end.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        let seen = Arc::clone(&self.seen);
        let mut state = seen.state.lock().expect("seen");
        let until = tokio::time::Instant::now() + PATIENCE;
        loop {
            let shown = plain(&state.bytes);
            if let Some(at) = shown.get(self.read..).and_then(|new| new.find(text)) {
                let from = self.read;
                self.read += at + text.len();
                return shown[from..self.read].to_owned();
            }
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            assert!(
                !state.is_over && !left.is_zero(),
                "{text:?} was never seen, but:\n{}",
                shown.get(self.read..).unwrap_or_default()
            );
            let wait = left.min(Duration::from_millis(500));
            state = seen.more.wait_timeout(state, wait).expect("seen").0;
        }
    }

    /// Ends the program as a crash would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("its end");
    }

    /// Waits for the end of the program: its exit code, and all that was shown.
    pub(crate) fn ended(&mut self) -> (Option<i32>, String) {
        let seen = Arc::clone(&self.seen);
        let mut state = seen.state.lock().expect("seen");
        let until = tokio::time::Instant::now() + PATIENCE;
        while !state.is_over {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            assert!(!left.is_zero(), "still runs:\n{}", plain(&state.bytes));
            state = seen.more.wait_timeout(state, left).expect("seen").0;
        }
        let shown = plain(&state.bytes);
        drop(state);
        let status: ExitStatus = self.child.wait().expect("its end");
        (status.code(), shown)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The hangup of its terminal ends the program; this ends the one that waits for it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is seen, without what steers the terminal.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut plain = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' if letters.peek() == Some(&'[') => {
                letters.next();
                let _ = letters.by_ref().find(|end| ('@'..='~').contains(end));
            }
            '\r' => {}
            other => plain.push(other),
        }
    }
    plain
}
