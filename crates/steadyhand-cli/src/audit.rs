//! `steadyhand audit`: who decided and changed what; listed, written out, verified. It reads the files of this machine.

use std::io::Write;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use steadyhand::clock;

use super::error::{Exit, Failed};
use super::{Session, value};
use steadyhand_runtime::audit::{AuditOptions, AuditRecord};

#[derive(Subcommand)]
pub(super) enum AuditCommand {
    /// The latest records, the newest first
    List(ListArgs),
    /// Every record as it stands in the log, one line of JSON each, the oldest first
    Export {
        /// Only what is not older, such as 30d
        #[arg(long, value_parser = humantime::parse_duration, value_name = "TIME")]
        since: Option<Duration>,
    },
    /// Whether every record is there and as it was written
    Verify {
        /// Only from this record on: what is wrong before it is known to you
        #[arg(long, default_value_t = 1, value_name = "RECORD")]
        from: u64,
    },
}

const LIMIT: u32 = 50;

#[derive(Args)]
pub(super) struct ListArgs {
    /// How many
    #[arg(long, default_value_t = LIMIT, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Only what is not older, such as 30d
    #[arg(long, value_parser = humantime::parse_duration, value_name = "TIME")]
    since: Option<Duration>,
}

pub(super) fn run(session: &Session<'_>, command: Option<&AuditCommand>) -> Result<(), Failed> {
    let options = session.audit_options()?;
    match command {
        None => list(session, &options, LIMIT, None),
        Some(AuditCommand::List(args)) => list(session, &options, args.limit, args.since),
        Some(AuditCommand::Export { since }) => export(session, &options, *since),
        Some(AuditCommand::Verify { from }) => verify(session, &options, *from),
    }
}

fn since_ms(since: Option<Duration>) -> u64 {
    since.map_or(0, |since| {
        clock::wall_ms().saturating_sub(since.as_millis() as u64)
    })
}

fn list(
    session: &Session<'_>,
    options: &AuditOptions,
    limit: u32,
    since: Option<Duration>,
) -> Result<(), Failed> {
    let records = options.latest(None, since_ms(since), limit as usize);
    let records = records.map_err(|error| unreadable(options, &error))?;
    let screen = session.screen;
    if screen.json {
        screen.json(&json!({"count": records.len(), "records": records}));
        return Ok(());
    }
    if records.is_empty() {
        screen.note("Nothing was decided or changed yet, as far as this log goes back.");
        return Ok(());
    }
    let mut rows = Vec::new();
    if screen.stdout_is_terminal {
        let names = ["N", "WHEN", "WHO", "FROM", "ACTION", "SUBJECT", "RESULT"];
        rows.push(names.map(str::to_owned).to_vec());
    }
    rows.extend(records.iter().map(row));
    let text = value::columns(screen, rows);
    screen.answer(&text);
    Ok(())
}

fn row(record: &AuditRecord) -> Vec<String> {
    let at = i64::try_from(record.at_ms).ok();
    let at = at.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    let dash = || "-".to_owned();
    let from = match &record.from.address {
        Some(address) => format!("{} {address}", record.from.way),
        None => record.from.way.clone(),
    };
    vec![
        record.n.to_string(),
        at.map_or_else(dash, |at| at.to_string()),
        record.who.name.clone().unwrap_or_else(dash),
        from,
        record.action.clone(),
        record.subject.clone().unwrap_or_else(dash),
        record.result.clone(),
    ]
}

fn export(
    session: &Session<'_>,
    options: &AuditOptions,
    since: Option<Duration>,
) -> Result<(), Failed> {
    if session.screen.json {
        let mut records: Vec<Value> = Vec::new();
        let all = options.each_line(since_ms(since), |line| {
            records.push(serde_json::from_slice(line).unwrap_or(Value::Null));
            Ok(())
        });
        all.map_err(|error| unreadable(options, &error))?;
        session
            .screen
            .json(&json!({"count": records.len(), "records": records}));
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    let written = options.each_line(since_ms(since), |line| out.write_all(line));
    match written {
        Ok(_) => Ok(()),
        // Whoever reads it has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(unreadable(options, &error)),
    }
}

fn verify(session: &Session<'_>, options: &AuditOptions, from: u64) -> Result<(), Failed> {
    let verdict = options.verify(from);
    let verdict = verdict.map_err(|error| unreadable(options, &error))?;
    let screen = session.screen;
    match verdict {
        Err(broken) => Err(Failed::new(
            Exit::Refused,
            "audit_broken",
            format!(
                "the audit log is broken at record {}: {} ({})",
                broken.record, broken.reason, broken.place
            ),
        )
        .detail("record", json!(broken.record))
        .help(format!(
            "Find out who changed it, keep a copy, and compare it with an export or the program's own log; steadyhand audit verify --from {} looks at what follows",
            broken.record + 1
        ))),
        Ok(verified) if screen.json => {
            screen.json(&json!({"ok": true, "log": verified}));
            Ok(())
        }
        Ok(None) => {
            screen.note("There is no audit log yet: nothing was decided or changed.");
            Ok(())
        }
        Ok(Some(verified)) => {
            screen.answer(&format!(
                "Whole: records {} to {}, the last one {}",
                verified.first.max(from),
                verified.records,
                verified.hash
            ));
            Ok(())
        }
    }
}

fn unreadable(options: &AuditOptions, error: &std::io::Error) -> Failed {
    let folder = options.folder.display();
    Failed::new(
        Exit::Unexpected,
        "audit_unavailable",
        format!("the audit log in {folder} cannot be read: {error}"),
    )
    .help("Check the folder and its permissions; --state DIR names another one")
}
