//! Lines that are drawn over while something runs.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Where nobody says how wide the terminal is.
const WIDTH: usize = 80;

/// A line by itself.
pub(super) fn lonely_line() -> ProgressBar {
    let bar = live_line();
    bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
    bar
}

/// Lines under each other.
pub(super) fn live_lines() -> MultiProgress {
    MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10))
}

/// One of them; drawn once it is added.
pub(super) fn live_line() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    let style = ProgressStyle::with_template("{msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar
}

/// As wide as the terminal is now; people change it.
pub(super) fn width() -> usize {
    #[cfg(unix)]
    {
        let size = rustix::termios::tcgetwinsize(std::io::stderr());
        let columns = size.map_or(0, |size| usize::from(size.ws_col));
        if columns > 0 {
            return columns;
        }
    }
    WIDTH
}
