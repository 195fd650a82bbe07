//! `steadyhand mcp logs`: what a server printed, from the process that runs it, or as it was kept.

use std::time::Duration;

use serde_json::{Value, json};
use steadyhand_mcp::{LogLine, kept_log};

use super::super::error::{Exit, Failed};
use super::super::remote::{Remote, in_path};
use super::super::{Interrupts, Session};
use super::{names, no_such_server};
use steadyhand_config::document::plain;
use steadyhand_server::views;

/// Between two looks for new lines.
const LOOK: Duration = Duration::from_millis(300);

pub(super) async fn run(session: &Session<'_>, name: &str, follow: bool) -> Result<(), Failed> {
    let mut interrupts = Interrupts::listen();
    let remote = Remote::find(session).await;
    let mut from = match remote {
        Some(remote) => From::Server(remote),
        None => {
            // One that was named on the command line only has a log, too.
            let configuration = session.configuration()?;
            let is_known = names(&configuration).iter().any(|known| known == name);
            if !is_known && kept(session, name)?.is_empty() {
                return Err(no_such_server(&configuration, name));
            }
            From::Disk {
                shown: 0,
                last_ms: 0,
            }
        }
    };
    let first = from.next(session, name, 0).await?;
    if !follow {
        return show_all(session, name, &first);
    }
    let mut next = first["next"].as_u64().unwrap_or(0);
    show(session, &first);
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            code = interrupts.next() => return Err(Failed::silent(Exit::Signal(code))),
        }
        if session.time_left().is_some_and(|left| left.is_zero()) {
            return Ok(());
        }
        let more = from.next(session, name, next).await?;
        next = more["next"].as_u64().unwrap_or(next);
        show(session, &more);
    }
}

/// Where the lines come from.
enum From {
    Server(Remote),
    /// How many lines were shown, and the moment of the last one.
    Disk {
        shown: usize,
        last_ms: u64,
    },
}

impl From {
    async fn next(
        &mut self,
        session: &Session<'_>,
        name: &str,
        after: u64,
    ) -> Result<Value, Failed> {
        match self {
            From::Server(remote) => {
                let path = format!("/v1/servers/{}/logs?after={after}", in_path(name));
                remote.get(&path).await
            }
            From::Disk { shown, last_ms } => {
                let mut lines = kept(session, name)?;
                let all = lines.len();
                match *shown <= all {
                    true => drop(lines.drain(..*shown)),
                    // The file has been cut to its last lines.
                    false => lines.retain(|line| line.at_ms > *last_ms),
                }
                *shown = all;
                *last_ms = lines.last().map_or(*last_ms, |line| line.at_ms);
                Ok(views::servers::log(name, &lines, 0))
            }
        }
    }
}

fn kept(session: &Session<'_>, name: &str) -> Result<Vec<LogLine>, Failed> {
    kept_log(&session.state(), name).map_err(|error| {
        let message = format!("what {name} printed cannot be read: {}", plain(&error));
        Failed::new(Exit::NotReachable, "log_unreadable", message).help(format!(
            "It is kept in {}",
            session.state().join("mcp").display()
        ))
    })
}

fn show_all(session: &Session<'_>, name: &str, log: &Value) -> Result<(), Failed> {
    if session.screen.json {
        session.screen.json(log);
        return Ok(());
    }
    if log["lines"].as_array().is_none_or(Vec::is_empty) {
        session.screen.note(&format!(
            "{name} has printed nothing. Start it and see: steadyhand mcp test {name}"
        ));
        return Ok(());
    }
    show(session, log);
    Ok(())
}

fn show(session: &Session<'_>, log: &Value) {
    let screen = session.screen;
    let lines = log["lines"].as_array().into_iter().flatten();
    let lines: Vec<String> = lines
        .map(|line| match screen.json {
            true => json!(line).to_string(),
            false => in_words(session, line),
        })
        .collect();
    if !lines.is_empty() && screen.json {
        screen.exact(&lines.join("\n"));
    } else if !lines.is_empty() {
        screen.answer(&lines.join("\n"));
    }
}

fn in_words(session: &Session<'_>, line: &Value) -> String {
    let moment = line["at_ms"]
        .as_i64()
        .map(jiff::Timestamp::from_millisecond);
    let moment = match moment {
        Some(Ok(moment)) => {
            let here = moment.to_zoned(jiff::tz::TimeZone::system());
            here.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string()
        }
        _ => String::new(),
    };
    let text = |name: &str| line[name].as_str().unwrap_or_default();
    let screen = session.screen;
    let said = screen.foreign(text("text"));
    match text("stream") {
        "note" => screen.dim(&format!("{moment}  {:6}  {said}", "")),
        stream => format!("{}  {said}", screen.dim(&format!("{moment}  {stream:6}"))),
    }
}
