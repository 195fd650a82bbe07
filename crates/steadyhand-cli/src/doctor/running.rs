//! The server of this configuration, if one runs: does it answer, and what does it say is broken.

use std::net::SocketAddr;

use serde_json::Value;

use super::Patient;
use super::check::{Check, Group, State};
use crate::starting::text;
use crate::value;

pub(super) async fn check(patient: Patient<'_>, silent: Option<SocketAddr>) -> Vec<Check> {
    let check = |state: State, text: String| {
        Check::new(Group::Running, "running.answers", "serve", state, text)
    };
    if let Some(address) = silent {
        let text = format!("a server is announced at {address} and does not answer");
        return vec![
            check(State::Fix, text)
                .next("Look at its log, then end it and start it again: steadyhand serve"),
        ];
    }
    let Some(remote) = patient.running else {
        return Vec::new();
    };
    let address = remote.address();
    let (live, overview) = tokio::join!(remote.get("/health/live"), remote.get("/v1/overview"));
    let mut checks = Vec::new();
    match live {
        Ok(live) => checks.push(answers(address, &live, check)),
        Err(_) => checks.push(check(
            State::Fix,
            format!("{address} has stopped answering"),
        )),
    }
    let overview = overview.unwrap_or_default();
    let problems = overview["problems"].as_array().into_iter().flatten();
    // Servers are told one by one already.
    let problems = problems.filter(|it| !text(it, "path").starts_with("/servers"));
    checks.extend(problems.map(|problem| {
        let state = match text(problem, "severity") {
            "error" => State::Fix,
            _ => State::Note,
        };
        let (subject, message) = (text(problem, "subject"), text(problem, "message"));
        Check::new(Group::Running, "running.problem", subject, state, message).next(format!(
            "{}: http://{address}{}",
            text(problem, "see"),
            text(problem, "path")
        ))
    }));
    checks
}

fn answers(address: SocketAddr, live: &Value, check: impl Fn(State, String) -> Check) -> Check {
    let up = live["uptime_ms"].as_u64().unwrap_or(0);
    let up = value::duration(std::time::Duration::from_millis(up));
    let version = text(live, "version");
    let said = format!("answers at {address}, version {version}, up for {up}");
    match version == env!("CARGO_PKG_VERSION") {
        true => check(State::Ok, said),
        false => check(
            State::Note,
            format!("{said}; this program is another version"),
        )
        .next("Start it again with this program: steadyhand serve"),
    }
}
