//! Lines from the terminal that nobody may need any more: reading ends when this goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc;

use super::keys::Terminal;

/// Lines that were typed and not asked for yet.
const LINES_MAX: usize = 4;
#[cfg(unix)]
const LINE_BYTES_MAX: usize = 4096;

/// Reads lines for as long as it lives. What was typed before does not count.
pub(super) struct Keyboard {
    lines: mpsc::Receiver<String>,
    stop: Arc<AtomicBool>,
    before: Terminal,
}

impl Keyboard {
    pub(super) fn open() -> Keyboard {
        let before = Terminal::as_it_is();
        before.take_lines();
        let (told, lines) = mpsc::channel(LINES_MAX);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        tokio::task::spawn_blocking(move || read(&stopped, &told));
        Keyboard {
            lines,
            stop,
            before,
        }
    }

    /// The next line; none at the end of input.
    pub(super) async fn line(&mut self) -> Option<String> {
        self.lines.recv().await
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.before.restore();
    }
}

#[cfg(unix)]
fn read(stop: &AtomicBool, told: &mpsc::Sender<String>) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    // Between two looks at whether anybody still wants to know.
    let pause = Timespec {
        tv_sec: 0,
        tv_nsec: 50_000_000,
    };
    let stdin = std::io::stdin();
    let mut line: Vec<u8> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut watched, Some(&pause)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            // What nobody here wants any more is for the next who reads.
            Ok(_) if stop.load(Ordering::Relaxed) => return,
            Ok(_) => {}
            Err(_) => return,
        }
        let mut piece = [0; 256];
        match rustix::io::read(&stdin, &mut piece) {
            Ok(0) => return,
            Ok(count) => line.extend_from_slice(&piece[..count]),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => continue,
            Err(_) => return,
        }
        line.truncate(LINE_BYTES_MAX);
        while let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            let rest = line.split_off(end + 1);
            let typed = String::from_utf8_lossy(&line).trim_end().to_owned();
            line = rest;
            if told.blocking_send(typed).is_err() {
                return;
            }
        }
    }
}

#[cfg(not(unix))]
fn read(_: &AtomicBool, told: &mpsc::Sender<String>) {
    let mut line = String::new();
    while std::io::stdin()
        .read_line(&mut line)
        .is_ok_and(|count| count > 0)
    {
        if told.blocking_send(std::mem::take(&mut line)).is_err() {
            return;
        }
    }
}
