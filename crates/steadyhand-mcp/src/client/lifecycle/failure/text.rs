//! A failed start in words: one line, the lines of SPEC V17, and the block with all details.

use std::fmt::Write;
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use steadyhand::redact;

use super::{StartFailure, Step, What};
use crate::client::lifecycle::causes::{self, Cause};

/// Lines of stderr in the details.
pub(super) const DETAIL_LINES_MAX: usize = 20;
/// Lines of stderr in the lines of SPEC V17.
const V17_LINES_MAX: usize = 8;
const LINE_CHARS_MAX: usize = 400;
const COMMAND_CHARS_MAX: usize = 300;
const PATH_CHARS_MAX: usize = 1_000;
const NOISE_SHOWN_MAX: usize = 3;
const TOOLS_NAMED_MAX: usize = 8;
const NOTHING: &str = "(nothing)";

/// The last line of SPEC V17: what still works.
pub fn continuing(names: &[&str]) -> String {
    let named = names[..names.len().min(TOOLS_NAMED_MAX)].join(", ");
    let tools = match names.len().saturating_sub(TOOLS_NAMED_MAX) {
        _ if names.is_empty() => "none".to_owned(),
        0 => named,
        more => format!("{named} and {more} more"),
    };
    format!("⚠️ Continuing with local tools only ({tools})")
}

impl StartFailure {
    /// One line to stand behind the server's name: `exited with code 1 at initialize, after 436 ms`.
    pub fn summary(&self) -> String {
        let (step, after) = (self.step, took(self.elapsed));
        if step == Step::Running {
            let how = clean(&self.what.of_one_that_ran());
            return format!("{how} {} times in a short while", self.attempts);
        }
        match &self.what {
            What::NotFound { program, .. } => not_found(program),
            What::NotStarted(why) => format!("could not be started: {}", clean(why)),
            What::Exited { how, .. } => format!("{} at {step}, after {after}", clean(how)),
            What::Silent { limit, .. } => format!("no answer to {step} within {}", took(*limit)),
            What::Closed => format!("closed its stdout at {step}, after {after}"),
            What::Refused { code, message } => {
                format!("refused {step}: {} (code {code})", clean(message))
            }
            What::Malformed(how) => format!("no valid answer to {step}: {}", clean(how)),
            What::TooMany(what) => format!("too much at {step}: {}", clean(what)),
            What::Unreachable(why) => format!("cannot be reached: {}", clean(why)),
            What::Broken(why) => format!("the connection broke at {step}: {}", clean(why)),
            What::Status { text, .. } => format!("answered {step} with {}", clean(text)),
            What::Redirected { to } => format!("redirects to {}", clean(to)),
            What::NotMcp(how) => clean(how),
        }
    }

    /// How often it failed and how, with its last words: `2 starts failed, the last one exited with code 3 at
    /// initialize, after 41 ms: FATAL: missing API key`.
    pub fn so_far(&self) -> String {
        let summary = self.summary_with_last_words();
        match (self.step, self.attempts) {
            (Step::Running, _) => format!("it {summary}"),
            (_, 1) => format!("1 start failed: {summary}"),
            (_, attempts) => format!("{attempts} starts failed, the last one: {summary}"),
        }
    }

    /// The same line, and what it said last.
    pub fn summary_with_last_words(&self) -> String {
        let mut stderr = self.stderr.iter().rev();
        let last = stderr.find(|line| !line.trim().is_empty());
        match last.filter(|_| !self.is_remote()) {
            Some(last) => format!("{}: {}", self.summary(), clean(last)),
            None => self.summary(),
        }
    }

    /// One sentence that names the server.
    pub(super) fn message(&self) -> String {
        let (server, step) = (&self.server, self.step);
        if step == Step::Running {
            return format!("{server} {}", self.summary());
        }
        match &self.what {
            What::NotFound { program, .. } => {
                format!("{server} was not started: {}", not_found(program))
            }
            What::NotStarted(why) => format!("{server} could not be started: {}", clean(why)),
            What::Exited { how, .. } => {
                format!("{server} {} before answering {step}", clean(how))
            }
            What::Silent { limit, .. } => {
                format!("{server} did not answer {step} within {}", took(*limit))
            }
            What::Closed => format!("{server} closed its stdout before answering {step}"),
            What::Refused { code, message } => {
                format!("{server} refused {step}: {} (code {code})", clean(message))
            }
            What::Malformed(how) => {
                format!("{server} gave no valid answer to {step}: {}", clean(how))
            }
            What::TooMany(what) => format!("{server} gave too much at {step}: {}", clean(what)),
            What::Broken(why) => {
                format!("the connection to {server} broke at {step}: {}", clean(why))
            }
            What::Unreachable(_)
            | What::Status { .. }
            | What::Redirected { .. }
            | What::NotMcp(_) => format!("{server} {}", self.summary()),
        }
    }

    /// The lines of SPEC V17 but for the last one, which [`continuing`] gives. `check` is what is
    /// configured to look at.
    pub fn v17(&self, check: &[String]) -> String {
        let (attempts, transport, server) = (self.attempts, self.transport, &self.server);
        let mut text = format!("❌ Failed to initialize MCP tools after {attempts} attempts\n");
        let _ = writeln!(
            text,
            "   Reason: Connection to {transport} server '{server}' failed"
        );
        match self.is_remote() {
            // What it prints is seen by others; what it answered, by us.
            true => row(&mut text, "   MCP Server answer: ", &[self.summary()]),
            false => row(
                &mut text,
                "   MCP Server stderr: ",
                &self.stderr_or_nothing(V17_LINES_MAX),
            ),
        }
        let _ = write!(text, "   Check: {}", self.hints(check));
        text
    }

    /// The whole story: what happened to what, the evidence, the next step.
    pub fn detail(&self) -> String {
        let server = &self.server;
        self.detail_for(&format!(
            "More: steadyhand mcp logs {server}     Again: steadyhand mcp restart {server}"
        ))
    }

    /// The same for those who have another way to look closer and to try again; nothing is said of none.
    pub fn detail_for(&self, more: &str) -> String {
        let stderr = match self.was_running() {
            true => self.stderr_or_nothing(DETAIL_LINES_MAX),
            false => Vec::new(),
        };
        format!(
            "Error: {}\n{}",
            self.headline(),
            self.evidence_rows(&stderr, more)
        )
    }

    /// What the lines of [`StartFailure::v17`] leave open: the command, the step, the next step. They have its stderr.
    pub fn detail_after_v17(&self, more: &str) -> String {
        self.evidence_rows(&[], more)
    }

    /// The same with a headline, as an error.
    pub fn detail_below_v17(&self, more: &str) -> String {
        format!(
            "Error: {}\n{}",
            self.headline(),
            self.detail_after_v17(more)
        )
    }

    fn evidence_rows(&self, stderr: &[String], more: &str) -> String {
        let mut text = String::new();
        if !self.command.is_empty() {
            let command = self.command_shown();
            let label = match self.is_remote() {
                true => "   address   ",
                false => "   command   ",
            };
            row(&mut text, label, &[format!("{command}{}", self.origin())]);
        }
        row(&mut text, "   step      ", &[self.step_line()]);
        if let What::NotFound { path, program, .. } = &self.what
            && !is_path(program)
        {
            row(&mut text, "   PATH      ", &[bounded(path, PATH_CHARS_MAX)]);
        }
        if self.noise_lines > 0 {
            row(&mut text, "   stdout    ", &self.noise_rows());
        }
        row(&mut text, "   stderr    ", stderr);
        if stderr.len() > 1 {
            text.push('\n');
        }
        let mut help = self.help();
        if self.was_running() && !more.is_empty() {
            help.push(more.to_owned());
        }
        row(&mut text, "   help: ", &help);
        text.truncate(text.trim_end().len());
        text
    }

    /// The likely cause and the next step, a line each.
    pub(super) fn help(&self) -> Vec<String> {
        let Cause {
            sentence,
            next_step,
            ..
        } = self.cause().unwrap_or_else(|| causes::unknown(self));
        [sentence, next_step]
            .into_iter()
            .filter(|line| !line.is_empty())
            .collect()
    }

    pub(super) fn stderr_lines(&self, lines_max: usize) -> Vec<String> {
        let last = self.stderr.len().saturating_sub(lines_max);
        self.stderr[last..].iter().map(|line| clean(line)).collect()
    }

    pub(super) fn noise_lines_shown(&self) -> Vec<String> {
        let samples = self.noise_samples.iter().take(NOISE_SHOWN_MAX);
        samples.map(|line| clean(line)).collect()
    }

    /// The same with its texts fit to be repeated in others.
    pub(crate) fn tidy(&self) -> StartFailure {
        let mut tidy = self.clone();
        tidy.command = self.command_shown();
        tidy.program = self.program.as_deref().map(clean);
        match &mut tidy.what {
            What::NotStarted(words) | What::Malformed(words) | What::TooMany(words) => {
                *words = clean(words);
            }
            What::Refused { message, .. } => *message = clean(message),
            What::Unreachable(words)
            | What::Broken(words)
            | What::Status { text: words, .. }
            | What::Redirected { to: words }
            | What::NotMcp(words) => *words = clean(words),
            What::Exited { how, .. } => *how = clean(how),
            What::NotFound {
                program, elsewhere, ..
            } => {
                *program = clean(program);
                elsewhere.iter_mut().for_each(|path| *path = clean(path));
            }
            What::Silent { .. } | What::Closed => {}
        }
        tidy
    }

    fn command_shown(&self) -> String {
        bounded(&redact::text(&self.command), COMMAND_CHARS_MAX)
    }

    /// All that was said, by the server and about it: what a cause is searched in.
    pub(crate) fn evidence(&self) -> String {
        let about = match &self.what {
            What::NotStarted(words) | What::Malformed(words) | What::TooMany(words) => words,
            What::Refused { message, .. } => message,
            What::Exited { how, .. } => how,
            What::Unreachable(words)
            | What::Broken(words)
            | What::Status { text: words, .. }
            | What::Redirected { to: words }
            | What::NotMcp(words) => words,
            What::NotFound { .. } | What::Silent { .. } | What::Closed => "",
        };
        let lines = self.noise_lines_shown().into_iter();
        let lines = lines.chain(self.stderr_lines(DETAIL_LINES_MAX));
        let lines: Vec<String> = lines.chain([clean(about)]).collect();
        lines.join("\n")
    }

    fn headline(&self) -> String {
        let server = &self.server;
        match (&self.what, self.step) {
            (What::Silent { pid, .. }, _) => {
                let still = match pid {
                    Some(pid) => format!("; it was still running (pid {pid})"),
                    None => String::new(),
                };
                format!("{}{still}", self.message())
            }
            (_, Step::ListTools) => format!("{server} started, but did not tell its tools"),
            (_, Step::Running) => format!("{server} did not stay up"),
            _ if self.is_remote() => format!("no connection to {server}"),
            _ => format!("{server} did not start"),
        }
    }

    fn origin(&self) -> String {
        let place = self.place.clone();
        let cwd = self.cwd.as_ref().map(|cwd| format!("cwd {cwd}"));
        let known: Vec<String> = place.into_iter().chain(cwd).collect();
        match known.is_empty() {
            true => String::new(),
            false => format!("      ({})", known.join(", ")),
        }
    }

    fn step_line(&self) -> String {
        let step = self.step;
        let passed: Vec<String> = Step::ALL
            .iter()
            .filter(|passed| **passed < step && passed.is_of_remote() != Some(!self.is_remote()))
            .map(|passed| format!("{passed} ok"))
            .collect();
        let passed = match passed.is_empty() {
            true => String::new(),
            false => format!("      ({})", passed.join(", ")),
        };
        let happened = match &self.what {
            What::Exited { how, .. } => {
                format!("{}, after {}", clean(how), took(self.elapsed))
            }
            What::Closed => format!("stdout closed, after {}", took(self.elapsed)),
            What::NotStarted(why) => clean(why),
            What::Refused { .. }
            | What::NotFound { .. }
            | What::Silent { .. }
            | What::Malformed(_)
            | What::TooMany(_)
            | What::Unreachable(_)
            | What::Broken(_)
            | What::Status { .. }
            | What::Redirected { .. }
            | What::NotMcp(_) => self.summary(),
        };
        format!("{step}: {happened}{passed}")
    }

    fn noise_rows(&self) -> Vec<String> {
        let what = match self.noise_lines {
            1 => "1 line that is not MCP:".to_owned(),
            lines => format!("{lines} lines that are not MCP:"),
        };
        let mut samples = self.noise_lines_shown().into_iter();
        let first = samples.next().unwrap_or_default();
        let rows = [format!("{what}  {first}").trim_end().to_owned()];
        rows.into_iter().chain(samples).collect()
    }

    fn stderr_or_nothing(&self, lines_max: usize) -> Vec<String> {
        let lines = self.stderr_lines(lines_max);
        match lines.iter().all(|line| line.trim().is_empty()) {
            true => vec![NOTHING.to_owned()],
            false => lines,
        }
    }

    /// It is someone else's: nothing of it is seen but its answers.
    pub(crate) fn is_remote(&self) -> bool {
        self.transport != "stdio"
    }

    fn was_running(&self) -> bool {
        self.step > Step::Connect && !self.is_remote()
    }
}

fn not_found(program: &str) -> String {
    match is_path(program) {
        true => format!("\"{}\" does not exist", clean(program)),
        false => format!("\"{}\" is not in PATH", clean(program)),
    }
}

pub(crate) fn is_path(program: &str) -> bool {
    program.contains(['/', '\\'])
}

/// A label and its lines, the later ones below the first.
fn row(text: &mut String, label: &str, lines: &[String]) {
    let indent = label.chars().count();
    for (index, line) in lines.iter().enumerate() {
        let written = match index {
            0 => writeln!(text, "{label}{line}"),
            _ if line.is_empty() => writeln!(text),
            _ => writeln!(text, "{:indent$}{line}", ""),
        };
        debug_assert!(written.is_ok());
    }
}

/// A line from outside for a terminal and a log: no escape sequences, no secrets, bounded.
fn clean(line: &str) -> String {
    static ESCAPES: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?")
            .expect("a fixed pattern")
    });
    let read = &line[..line.floor_char_boundary(16 * LINE_CHARS_MAX)];
    let plain = ESCAPES.replace_all(read, "");
    let plain: String = plain
        .chars()
        .map(|c| match c {
            '\t' | '\n' => ' ',
            c => c,
        })
        .collect();
    let shown = redact::text(plain.trim_end());
    bounded(&steadyhand::visible::text(&shown), LINE_CHARS_MAX)
}

fn bounded(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// `436 ms`, `1.9 s`, `20 s`.
fn took(time: Duration) -> String {
    let ms = time.as_millis();
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..10_000 if !ms.is_multiple_of(1_000) => format!("{:.1} s", time.as_secs_f64()),
        1_000..600_000 => format!("{:.0} s", time.as_secs_f64()),
        _ => format!("{:.0} min", time.as_secs_f64() / 60.0),
    }
}
