//! `steadyhand alerts`: what is wrong now and was earlier; said to be known, or kept quiet for a while (SPEC R12).

use std::time::Duration;

use clap::Subcommand;
use serde_json::Value;

use super::error::{Exit, Failed};
use super::remote::{Remote, in_path};
use super::{Session, value};

#[derive(Subcommand)]
pub(super) enum AlertsCommand {
    /// What is wrong now, and what was
    List {
        /// Only what is not over
        #[arg(long)]
        active: bool,
    },
    /// Say that somebody knows
    Ack {
        /// The alert
        id: String,
    },
    /// Tell nobody for a while
    Silence {
        /// The alert
        id: String,
        /// For how long
        #[arg(long = "for", value_parser = humantime::parse_duration, default_value = "1h", value_name = "TIME")]
        span: Duration,
    },
}

pub(super) async fn run(
    session: &Session<'_>,
    command: Option<&AlertsCommand>,
) -> Result<(), Failed> {
    let remote = server(session, "alerts are raised").await?;
    match command {
        None => list(session, &remote, false).await,
        Some(AlertsCommand::List { active }) => list(session, &remote, *active).await,
        Some(AlertsCommand::Ack { id }) => {
            let path = format!("/v1/alerts/{}/ack", in_path(id));
            let alert = remote.post(&path, None).await?.body;
            told(session, &alert, "It is known now")
        }
        Some(AlertsCommand::Silence { id, span }) => {
            let ms = span.as_millis();
            let path = format!("/v1/alerts/{}/silence?for_ms={ms}", in_path(id));
            let alert = remote.post(&path, None).await?.body;
            let span = humantime::format_duration(*span);
            told(session, &alert, &format!("Nobody is told of it for {span}"))
        }
    }
}

/// The server whose memory it is.
pub(super) async fn server(session: &Session<'_>, what: &str) -> Result<Remote, Failed> {
    let found = Remote::find(session).await;
    found.ok_or_else(|| {
        Failed::new(
            Exit::NotReachable,
            "no_server",
            format!("no server of this configuration runs, and {what} by one"),
        )
        .help("steadyhand serve starts one")
    })
}

async fn list(session: &Session<'_>, remote: &Remote, only_active: bool) -> Result<(), Failed> {
    let mut view = remote.get("/v1/alerts").await?;
    if let (true, Some(alerts)) = (only_active, view["alerts"].as_array_mut()) {
        alerts.retain(|alert| alert["state"] != "cleared");
        view["count"] = alerts.len().into();
    }
    if session.screen.json {
        session.screen.json(&view);
        return Ok(());
    }
    let alerts = view["alerts"].as_array().cloned().unwrap_or_default();
    if alerts.is_empty() {
        session.screen.note("Nothing is wrong, and nothing was.");
        return Ok(());
    }
    let mut rows = Vec::new();
    if session.screen.stdout_is_terminal {
        let names = ["ID", "STATE", "SINCE", "WHAT", "WHY IT IS OVER"];
        rows.push(names.map(str::to_owned).to_vec());
    }
    rows.extend(alerts.iter().map(row));
    session.screen.answer(&value::columns(session.screen, rows));
    Ok(())
}

fn row(alert: &Value) -> Vec<String> {
    let text = |name: &str| alert[name].as_str().unwrap_or_default().to_owned();
    vec![
        text("id"),
        text("state"),
        moment(&alert["raised_ms"]),
        text("message"),
        text("cleared_because"),
    ]
}

/// A moment as people read it.
pub(super) fn moment(ms: &Value) -> String {
    let moment = ms.as_i64().map(jiff::Timestamp::from_millisecond);
    match moment {
        Some(Ok(moment)) => moment.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
        _ => String::new(),
    }
}

fn told(session: &Session<'_>, alert: &Value, note: &str) -> Result<(), Failed> {
    if session.screen.json {
        session.screen.json(alert);
        return Ok(());
    }
    let message = alert["message"].as_str().unwrap_or_default();
    session.screen.note(&format!("{note}: {message}"));
    Ok(())
}
