//! This machine: the port, room on the disk, the programs that servers and tools are made of.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use steadyhand_process::{NotFound, Reason, find_command};
use tokio::net::TcpListener;

use super::Patient;
use super::check::{Check, Group, State};
use super::listening;
use steadyhand_config::ToolTable;
use steadyhand_config::listen::DEFAULT_LISTEN;
use steadyhand_server::serve::{self, presence};

/// How long a program may take to say its version.
const VERSION_MAX: Duration = Duration::from_secs(5);
/// Programs whose version decides whether servers run.
const TOLD: [&str; 11] = [
    "node", "npx", "bun", "deno", "uv", "uvx", "pipx", "python", "python3", "docker", "podman",
];
/// Below this, writing fails soon; below the other, it is worth knowing.
const DISK_FIX: u64 = 100 * 1000 * 1000;
const DISK_NOTE: u64 = 1000 * 1000 * 1000;

pub(super) async fn check(patient: Patient<'_>) -> Vec<Check> {
    let (mut checks, programs) = tokio::join!(port(patient), programs(patient));
    checks.push(disk(&patient.session.state()));
    checks.extend(programs);
    checks
}

/// Whether `serve` could listen, or does.
async fn port(patient: Patient<'_>) -> Vec<Check> {
    let session = patient.session;
    let settings = serve::settings_of(patient.what_is_right, &session.surroundings);
    let mut exposed_key = None;
    let (listen, refusal) = match settings {
        Ok(settings) => {
            let file = session.found().map(|found| found.path);
            let door = session.door(file.as_deref());
            let refusal = settings.check(settings.listen, &door.keys).err();
            let trust = session.surroundings.trust();
            match serve::tls::check(settings.tls.as_ref(), trust) {
                Ok(exposed) => {
                    exposed_key = exposed;
                    (settings.listen, refusal)
                }
                Err(unusable) => (settings.listen, refusal.or(Some(unusable))),
            }
        }
        // A secret that is missing is told with the others.
        Err(cannot) if cannot.fault == serve::Fault::Secret => (DEFAULT_LISTEN, None),
        Err(cannot) => (DEFAULT_LISTEN, Some(cannot)),
    };
    let mut checks = vec![of_port(patient, listen).await];
    if let Some(exposed) = exposed_key {
        let (text, next) = exposed.split_once(". ").unwrap_or((&exposed, ""));
        checks.push(
            Check::new(Group::Machine, "machine.tls_key", "TLS", State::Note, text).next(next),
        );
    }
    if let Some(cannot) = refusal {
        checks.push(
            Check::new(
                Group::Machine,
                "machine.serve",
                "serve",
                State::Fix,
                cannot.message,
            )
            .next(cannot.help),
        );
    }
    checks
}

async fn of_port(patient: Patient<'_>, listen: SocketAddr) -> Check {
    let port = listen.port();
    let check = |state: State, text: String| {
        let name = match port {
            0 => "port".to_owned(),
            port => format!("port {port}"),
        };
        Check::new(Group::Machine, "machine.port", name, state, text)
    };
    if let Some(remote) = patient.running {
        let file = patient.session.found().map(|found| found.path);
        let announced = presence::announced(&patient.session.state(), file.as_deref());
        let pid = announced.map(|announced| format!(", pid {}", announced.pid));
        let pid = pid.unwrap_or_default();
        let text = format!(
            "steadyhand serve of this configuration is at {}{pid}",
            remote.address()
        );
        return check(State::Ok, text);
    }
    if port == 0 {
        return check(State::Ok, "any free one is taken".to_owned());
    }
    match TcpListener::bind(listen).await {
        Ok(_) => check(State::Ok, "free".to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            let who = tokio::task::spawn_blocking(move || listening::who(port)).await;
            let who = who.ok().flatten();
            let who = who.unwrap_or_else(|| "another program".to_owned());
            check(State::Fix, format!("taken by {who}")).next(format!(
                "End that program, or take another port: steadyhand serve --listen {}:{}",
                listen.ip(),
                port.checked_add(1).unwrap_or(7400)
            ))
        }
        Err(error) => {
            let cannot = serve::CannotServe::address(listen, &error);
            check(State::Fix, cannot.message).next(cannot.help)
        }
    }
}

#[cfg(unix)]
fn disk(state: &Path) -> Check {
    let check = |fares: State, text: String| {
        Check::new(Group::Machine, "machine.disk", "disk", fares, text)
    };
    let there = state.ancestors().find(|path| path.exists());
    let Ok(disk) = rustix::fs::statvfs(there.unwrap_or(Path::new("/"))) else {
        return check(State::Info, "its room is not known".to_owned());
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let text = format!("{} free", bytesize::ByteSize(free).display().si());
    let room = "Make room, or keep less: history = { max_size = \"100MiB\" } under [server]";
    match free {
        free if free < DISK_FIX => check(State::Fix, text).next(room),
        free if free < DISK_NOTE => check(State::Note, text).next(room),
        _ => check(State::Ok, text),
    }
    .detail("free_bytes", json!(free))
}

#[cfg(not(unix))]
fn disk(_: &Path) -> Check {
    let text = "its room is not looked at on this system";
    Check::new(Group::Machine, "machine.disk", "disk", State::Info, text)
}

/// The versions of what servers are started with, and programs of tools that are not there. A server whose program
/// is missing says so itself.
async fn programs(patient: Patient<'_>) -> Vec<Check> {
    let Some(configuration) = patient.configuration else {
        return Vec::new();
    };
    let mut wanted: Vec<(String, OsString)> = Vec::new();
    let mut checks = Vec::new();
    for table in &configuration.tools {
        let Some(program) = program_of(table) else {
            continue;
        };
        let path = path_for(table);
        let found = find_command(
            &program,
            &configuration.folder,
            &path,
            &configuration.folder,
        );
        match found {
            Ok(file) => {
                let base = file.file_name().unwrap_or_default().to_string_lossy();
                let is_told = TOLD.contains(&&*base) && table.is_server();
                if is_told && !wanted.iter().any(|(name, _)| *name == *base) {
                    wanted.push((base.into_owned(), file.into_os_string()));
                }
            }
            Err(missing) if !table.is_server() => checks.push(not_there(table, &missing)),
            Err(_) => {}
        }
    }
    let versions = join_all(wanted.iter().map(|(name, file)| version(name, file))).await;
    let versions: Vec<String> = versions.into_iter().flatten().collect();
    if !versions.is_empty() {
        let text = versions.join(", ");
        checks.push(Check::new(
            Group::Machine,
            "machine.programs",
            "programs",
            State::Ok,
            text,
        ));
    }
    checks
}

/// The program of a server or of a tool, if its name is known before a call.
fn program_of(table: &ToolTable) -> Option<String> {
    if table.own.get("disabled") == Some(&json!(true)) {
        return None;
    }
    let command = match table.own.get("command")? {
        Value::String(command) => command,
        Value::Array(words) => words.first()?.as_str()?,
        _ => return None,
    };
    (!command.contains(['{', '$']) && !command.is_empty()).then(|| command.to_owned())
}

fn path_for(table: &ToolTable) -> OsString {
    let own = table.own.get("path_add").and_then(Value::as_array);
    let own = own.into_iter().flatten().filter_map(Value::as_str);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = own.map(Into::into).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).unwrap_or(path)
}

fn not_there(table: &ToolTable, missing: &NotFound) -> Check {
    let place = table.place.as_ref().map(|place| format!(" ({place})"));
    let place = place.unwrap_or_default();
    let why = match missing.reason {
        Reason::Missing if missing.path.is_some() => "is not in PATH",
        Reason::Missing => "is not there",
        Reason::NotExecutable => "may not be executed",
        Reason::IsFolder => "is a folder",
    };
    let text = format!("{} {why}{place}", missing.name);
    let check = Check::new(
        Group::Config,
        "config.program",
        &table.name,
        State::Fix,
        text,
    );
    match missing.elsewhere.first() {
        Some(file) => check.next(format!(
            "It is at {}: give that path in command",
            file.display()
        )),
        None => check.next(format!(
            "Install {}, or give its full path in command",
            missing.name
        )),
    }
}

/// `node 20.20.1`
async fn version(name: &str, file: &OsString) -> Option<String> {
    let mut command = tokio::process::Command::new(file);
    command
        .arg("--version")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(VERSION_MAX, command.output()).await;
    let output = output.ok()?.ok()?;
    let said = match output.stdout.is_empty() {
        true => output.stderr,
        false => output.stdout,
    };
    let said = String::from_utf8_lossy(&said);
    let words = said.lines().next()?.split_whitespace();
    let mut numbers = words.map(|word| word.trim_start_matches('v').trim_end_matches(','));
    let number = numbers.find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    Some(format!("{name} {number}"))
}
