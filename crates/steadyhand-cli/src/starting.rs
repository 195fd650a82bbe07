//! What MCP servers do while someone waits for them: a line for each on a terminal, a line for each change in a log.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;
use tokio::time::Instant;

use super::error::Failed;
use super::screen::Screen;
use super::{Interrupts, Session, value};
use steadyhand_runtime::runtime::Runtime;
use steadyhand_server::views;

/// Between two looks.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// Whatever a server's limits are, nobody waits longer for a look at it.
const SETTLING_MAX: Duration = Duration::from_secs(600);
/// What is over sooner would only flicker.
const GLIMPSE: Duration = Duration::from_millis(200);
/// What is over sooner needs no lines in a log.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shows what the servers of a runtime do, for as long as it is awaited; nothing of it stays on the terminal.
pub(super) async fn shown(session: &Session<'_>, runtime: &Runtime) -> Infallible {
    let mut starting = Starting::new(session.screen);
    loop {
        starting.show(&views::servers::all(runtime));
        tokio::time::sleep(LOOK).await;
    }
}

/// The same, until none is on its way any more.
pub(super) async fn shown_until_up(session: &Session<'_>, runtime: &Runtime) {
    let mut starting = Starting::new(session.screen);
    loop {
        let servers = views::servers::all(runtime);
        if !servers.iter().any(is_on_its_way) {
            return;
        }
        starting.show(&servers);
        tokio::time::sleep(LOOK).await;
    }
}

/// One line for every server once it is up, for as long as this is awaited; one that is not is told elsewhere. A server
/// that ends again and again is told once, until it stays up.
pub(super) async fn told(session: &Session<'_>, runtime: &Runtime) -> Infallible {
    let mut starts: HashMap<String, u64> = HashMap::new();
    let mut unstable: HashSet<String> = HashSet::new();
    let mut changes = runtime.server_changes();
    let plain = session.screen.plain;
    loop {
        changes.mark_unchanged();
        let servers = views::servers::all(runtime);
        let width = name_width(servers.iter());
        for server in &servers {
            let name = text(server, "name");
            let now = server["starts"].as_u64().unwrap_or(0);
            let before = starts.insert(name.to_owned(), now);
            if let Some(how) = server["unstable"].as_str() {
                if unstable.insert(name.to_owned()) {
                    let mark = if plain { "!" } else { "▲" };
                    session.screen.note(&format!(
                        "  {mark} {name:width$}  unstable: it {how}. It is started again each time. See what it printed: steadyhand mcp logs {name}"
                    ));
                }
                continue;
            }
            unstable.remove(name);
            if now > before.unwrap_or(0) && text(server, "phase") == "running" {
                session.screen.note(&line(server, width, plain));
            }
        }
        // Servers that do nothing cost nothing.
        let _ = changes.changed().await;
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until every server is up, known to be down or at rest, and shows them meanwhile. What was started is
/// stopped if that is interrupted.
pub(super) async fn waited_for(session: &Session<'_>, runtime: &Runtime) -> Result<(), Failed> {
    let mut interrupts = Interrupts::listen();
    let limit = session
        .time_left()
        .unwrap_or(SETTLING_MAX)
        .min(SETTLING_MAX);
    let code = tokio::select! {
        () = runtime.servers_settled(limit) => return Ok(()),
        code = interrupts.next() => code,
        never = shown(session, runtime) => match never {},
    };
    session.stop(runtime, &mut interrupts).await;
    Err(Failed::interrupted(code))
}

/// Waits for what a first list of tools waits for, and shows it meanwhile. What was started is stopped if that is
/// interrupted.
pub(super) async fn first_tools(session: &Session<'_>, runtime: &Runtime) -> Result<(), Failed> {
    let Some(missing) = runtime.first_tools() else {
        return Ok(());
    };
    let limit = session.time_left().unwrap_or(SETTLING_MAX);
    let mut interrupts = Interrupts::listen();
    let code = tokio::select! {
        _ = tokio::time::timeout(limit, missing) => return Ok(()),
        code = interrupts.next() => code,
        never = shown(session, runtime) => match never {},
    };
    session.stop(runtime, &mut interrupts).await;
    Err(Failed::interrupted(code))
}

/// The servers that are still on their way, behind a number of tools: ` (files is starting)`.
pub(super) fn in_words(runtime: &Runtime) -> String {
    let servers = views::servers::all(runtime);
    let starting = servers.iter().filter(|server| is_on_its_way(server));
    let starting: Vec<&str> = starting.map(|server| text(server, "name")).collect();
    match starting[..] {
        [] => String::new(),
        [one] => format!(" ({one} is starting)"),
        _ => format!(" ({} are starting)", starting.join(", ")),
    }
}

/// Servers on their way.
pub(super) struct Starting<'a> {
    screen: &'a Screen,
    began: Instant,
    drawn: Option<MultiProgress>,
    lines: HashMap<String, ProgressBar>,
    told: HashMap<String, String>,
}

impl<'a> Starting<'a> {
    pub(super) fn new(screen: &'a Screen) -> Starting<'a> {
        let target = || ProgressDrawTarget::stderr_with_hz(10);
        let may_draw = screen.has_bars() && !screen.quiet && !screen.json;
        Starting {
            screen,
            began: Instant::now(),
            drawn: may_draw.then(|| MultiProgress::with_draw_target(target())),
            lines: HashMap::new(),
            told: HashMap::new(),
        }
    }

    /// As they are now.
    pub(super) fn show(&mut self, servers: &[Value]) {
        if self.began.elapsed() < GLIMPSE {
            return;
        }
        let wanted = servers
            .iter()
            .filter(|server| is_on_its_way(server) || self.is_known(server));
        let wanted: Vec<&Value> = wanted.collect();
        let width = name_width(wanted.iter().copied());
        for server in wanted {
            let name = text(server, "name");
            match &self.drawn {
                Some(drawn) => {
                    let line = self.lines.entry(name.to_owned());
                    let line = line.or_insert_with(|| drawn.add(new_line()));
                    line.set_message(self::line(server, width, false));
                }
                None => self.tell(server),
            }
        }
    }

    fn is_known(&self, server: &Value) -> bool {
        let name = text(server, "name");
        self.lines.contains_key(name) || self.told.contains_key(name)
    }

    /// A line when something has changed; nothing about what is over in a moment.
    fn tell(&mut self, server: &Value) {
        if self.began.elapsed() < PATIENCE {
            return;
        }
        let (name, status) = (text(server, "name"), text(server, "status"));
        let change = format!("{status} {}", server["attempt"]);
        if self.told.get(name) == Some(&change) {
            return;
        }
        self.told.insert(name.to_owned(), change);
        let doing = match is_on_its_way(server) {
            // Why it failed is told once, when it is known to be down.
            true => on_its_way(server, ""),
            false => doing(server),
        };
        self.screen.note(&format!("{name} {status}: {doing}"));
    }
}

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        if let Some(drawn) = &self.drawn {
            let _ = drawn.clear();
        }
    }
}

fn new_line() -> ProgressBar {
    let line = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{wide_msg}");
    line.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    line
}

fn line(server: &Value, width: usize, plain: bool) -> String {
    let (name, status) = (text(server, "name"), text(server, "status"));
    let mark = mark(server, plain);
    format!("  {mark} {name:width$}  {status:11}  {}", doing(server))
}

/// What stands before a server's name.
pub(super) fn mark(server: &Value, plain: bool) -> &'static str {
    match (text(server, "phase"), plain) {
        ("running", false) => "●",
        ("running", true) => "+",
        ("starting" | "restarting", false) => "◌",
        ("starting" | "restarting", true) => "~",
        ("idle", false) => "○",
        ("idle", true) => "o",
        ("down", false) => "✗",
        ("down", true) => "x",
        _ => "-",
    }
}

pub(super) fn is_on_its_way(server: &Value) -> bool {
    matches!(text(server, "phase"), "starting" | "restarting")
}

/// So wide that all names fit.
pub(super) fn name_width<'v>(servers: impl Iterator<Item = &'v Value>) -> usize {
    super::value::column_width(servers.map(|server| text(server, "name").chars().count()))
}

/// What it does, or how it fares.
fn doing(server: &Value) -> String {
    match text(server, "phase") {
        "running" => {
            let tools = value::counted(server["tools"].as_u64().unwrap_or(0) as usize, "tool");
            format!("{tools:>9}   {}", millis(&server["start_ms"]))
        }
        "starting" | "restarting" => on_its_way(server, text(server, "reason")),
        _ => text(server, "reason").to_owned(),
    }
}

fn on_its_way(server: &Value, reason: &str) -> String {
    let attempt = server["attempt"].as_u64().unwrap_or(0);
    let which = match attempt {
        0 | 1 => String::new(),
        _ => format!("attempt {attempt} of {}", server["attempts_max"]),
    };
    if let Some(wait) = server["next_try_in_ms"].as_u64() {
        let wait = value::duration(Duration::from_millis(wait));
        let reason = match reason {
            "" => String::new(),
            reason => format!("{reason}; "),
        };
        return format!("{reason}{which} in {wait}");
    }
    let step = server["step"].as_str().map(str::to_owned);
    let which = Some(which).filter(|which| !which.is_empty());
    let doing: Vec<String> = step.into_iter().chain(which).collect();
    let seconds = server["for_ms"].as_f64().unwrap_or(0.0) / 1e3;
    format!("{}   {seconds:.1} s", doing.join(", "))
        .trim()
        .to_owned()
}

pub(super) fn millis(ms: &Value) -> String {
    let Some(ms) = ms.as_f64() else {
        return String::new();
    };
    value::duration(Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default())
}

pub(super) fn text<'v>(server: &'v Value, name: &str) -> &'v str {
    server[name].as_str().unwrap_or_default()
}
