//! Shows progress on stderr: a bar on a terminal, a line where there is none, and nothing for what takes
//! less than a second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::Instant;

use steadyhand_config::progress::{Progress, Watcher};

/// What is over sooner needs no progress.
const PATIENCE: Duration = Duration::from_secs(1);
/// A log does not want a line for every step.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// Progress on stderr.
pub(super) fn to_stderr(as_bar: bool) -> Progress {
    Progress::to(Arc::new(Shown {
        as_bar,
        works: Mutex::default(),
    }))
}

struct Shown {
    as_bar: bool,
    works: Mutex<HashMap<String, Work>>,
}

struct Work {
    started: Instant,
    bar: Option<ProgressBar>,
    told: Option<Instant>,
}

impl Watcher for Shown {
    fn step(&self, what: &str, done: u64, total: u64) {
        let mut works = self.works.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let new = || Work {
            started: now,
            bar: None,
            told: None,
        };
        let work = works.entry(what.to_owned()).or_insert_with(new);
        if now.duration_since(work.started) < PATIENCE {
            return;
        }
        if self.as_bar {
            let bar = work.bar.get_or_insert_with(|| bar(what, total));
            bar.set_length(total.max(done));
            bar.set_position(done);
            return;
        }
        let is_due = work
            .told
            .is_none_or(|told| now.duration_since(told) >= BETWEEN_LINES);
        if is_due {
            work.told = Some(now);
            line(&match total {
                0 => format!("{what}: {done}"),
                _ => format!("{what}: {done} of {total}"),
            });
        }
    }

    fn finished(&self, what: &str) {
        let mut works = self.works.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(work) = works.remove(what) else {
            return;
        };
        if let Some(bar) = work.bar {
            bar.finish_and_clear();
        }
        if work.told.is_some() {
            let took =
                humantime::format_duration(Duration::from_secs(work.started.elapsed().as_secs()));
            line(&format!("{what}: done in {took}"));
        }
    }
}

fn bar(what: &str, total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos} of {len}  {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(what.to_owned());
    bar
}

#[allow(clippy::print_stderr, reason = "progress goes to stderr")]
fn line(text: &str) {
    eprintln!("{}", super::screen::visible(text));
}
