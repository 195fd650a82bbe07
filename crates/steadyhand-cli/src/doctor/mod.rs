//! `steadyhand doctor`: everything that can be wrong on this machine, looked at side by side, and how to mend it.
//!
//! Offline unless `--online`: programs of servers are started, addresses of this machine are asked, no other is.

mod check;
mod configuration;
mod listening;
mod machine;
mod models;
mod report;
mod running;
mod servers;
mod state;

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::error::{Exit, Failed};
use super::remote::{Missing, Remote};
use super::{Interrupts, STOPPING_MAX, Session};
use check::{Check, Group, State};
use report::Report;
use steadyhand_config::Configuration;
use steadyhand_runtime::source::command;

/// What does not start a server is over sooner than this.
const LOOK_MAX: Duration = Duration::from_secs(15);

#[derive(Args)]
pub(super) struct DoctorArgs {
    /// Contact models and MCP servers on other machines, too
    #[arg(long)]
    online: bool,
}

/// What the checks are about.
#[derive(Clone, Copy)]
struct Patient<'a> {
    session: &'a Session<'a>,
    /// None where the file is wrong.
    configuration: Option<&'a Arc<Configuration>>,
    /// What is right of it: where the server listens, where the history is.
    what_is_right: &'a Configuration,
    /// The server of this configuration, if one runs.
    running: Option<&'a Remote>,
    online: bool,
    /// Somebody does not want to wait: what was started is to be stopped.
    ending: &'a CancellationToken,
}

pub(super) async fn run(session: &Session<'_>, args: &DoctorArgs) -> Result<(), Failed> {
    let mut interrupts = Interrupts::listen();
    // Whatever a server starts ends with it.
    command::adopt_orphans();
    let loaded = configuration::load(session);
    let running = Remote::look(session, "cli").await;
    let ending = CancellationToken::new();
    let patient = Patient {
        ending: &ending,
        session,
        configuration: loaded.report.is_none().then_some(&loaded.configuration),
        what_is_right: &loaded.configuration,
        running: running.as_ref().ok(),
        online: args.online,
    };
    let silent = match &running {
        Err(Missing::Silent(address)) => Some(*address),
        _ => None,
    };
    let looking = async {
        let (of_file, secrets, servers, models, running, state, machine) = tokio::join!(
            within(
                session,
                LOOK_MAX,
                Group::Config,
                configuration::check(patient, &loaded)
            ),
            within_for(session, LOOK_MAX, configuration::secrets(patient)),
            // It has its own bound: what it started must be stopped, not dropped.
            servers::check(patient),
            within(session, LOOK_MAX, Group::Models, models::check(patient)),
            within(
                session,
                LOOK_MAX,
                Group::Running,
                running::check(patient, silent)
            ),
            within(session, LOOK_MAX, Group::State, state::check(patient)),
            within(session, LOOK_MAX, Group::Machine, machine::check(patient)),
        );
        let (missing, secrets) = secrets;
        let checks = [of_file, missing, servers, models, running, state, machine];
        (checks.concat(), secrets)
    };
    tokio::pin!(looking);
    let (checks, secrets) = tokio::select! {
        found = &mut looking => found,
        code = interrupts.next() => {
            ending.cancel();
            let _ = tokio::time::timeout(STOPPING_MAX, looking).await;
            return Err(Failed::interrupted(code));
        }
    };
    let report = Report::new(checks, secrets, session.surroundings.home.as_deref());
    match session.screen.json {
        true => session.screen.json(&report.to_json()),
        false => session.screen.answer(&report.for_people(session.screen)),
    }
    match report.count(State::Fix) {
        0 => Ok(()),
        _ => Err(Failed::silent(Exit::NotReachable)),
    }
}

/// The checks of a group, or that they took too long: nothing here waits without a bound.
async fn within(
    session: &Session<'_>,
    limit: Duration,
    group: Group,
    checks: impl Future<Output = Vec<Check>>,
) -> Vec<Check> {
    let limit = session.time_left().unwrap_or(limit).min(limit);
    match tokio::time::timeout(limit, checks).await {
        Ok(checks) => checks,
        Err(_) => {
            let after = super::value::duration(limit);
            vec![
                Check::new(
                    group,
                    "doctor.time",
                    "time",
                    State::Note,
                    format!("what is to be looked at here took longer than {after}"),
                )
                .next("Look again with -v, and give it longer with --timeout if that was short"),
            ]
        }
    }
}

/// The same for what finds secrets, too.
async fn within_for(
    session: &Session<'_>,
    limit: Duration,
    looking: impl Future<Output = (Vec<Check>, Vec<SecretString>)>,
) -> (Vec<Check>, Vec<SecretString>) {
    let mut secrets = Vec::new();
    let checks = within(session, limit, Group::Config, async {
        let (checks, found) = looking.await;
        secrets = found;
        checks
    });
    let checks = checks.await;
    (checks, secrets)
}
