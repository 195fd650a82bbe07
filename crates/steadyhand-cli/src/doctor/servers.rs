//! MCP servers and other sources of tools: each server is really started, once, and stopped again. Where a server of
//! this configuration runs, that one is asked instead: a second copy of a server may get in the way of the first.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::check::{Check, Group, State};
use super::{LOOK_MAX, Patient};
use crate::{STOPPING_MAX, starting, value};
use steadyhand_config::import::ImportedServer;
use steadyhand_config::{Configuration, Resolver, ToolTable};
use steadyhand_runtime::runtime::Runtime;
use steadyhand_server::views;

/// A first start may download packages; after this the rest of the report is worth more.
const START_MAX: Duration = Duration::from_secs(60);

pub(super) async fn check(patient: Patient<'_>) -> Vec<Check> {
    let Some(configuration) = patient.configuration else {
        return Vec::new();
    };
    let (started, mut checks) = to_start(patient, configuration);
    let loading = patient.session.runtime_of(started, |options| {
        options.only_look = patient.running.is_some();
        // It is told here, in its place.
        options.degraded = Arc::new(|_, _| {});
        options.pins = None;
    });
    let runtime = match tokio::time::timeout(LOOK_MAX, loading).await {
        Ok(Ok(runtime)) => runtime,
        Ok(Err(_)) | Err(_) => {
            let text = "the sources of tools could not be loaded in time";
            let check = Check::new(Group::Servers, "servers.load", "sources", State::Fix, text);
            return vec![check.next("See which one is slow: steadyhand config check -v")];
        }
    };
    checks.extend(sources(patient, configuration, &runtime));
    let servers = match patient.running {
        Some(remote) => match remote.get("/v1/servers").await {
            Ok(view) => view["servers"].as_array().cloned().unwrap_or_default(),
            // It is told with the server that runs.
            Err(_) => Vec::new(),
        },
        None => {
            settled(patient, &runtime).await;
            let servers = views::servers::all(&runtime);
            let _ = tokio::time::timeout(STOPPING_MAX, runtime.stop_servers()).await;
            runtime.settle(STOPPING_MAX).await;
            servers
        }
    };
    let servers = servers.iter().map(of_server);
    checks.extend(servers.map(|check| match configuration.is_demo {
        true => meant(check),
        false => check,
    }));
    if !configuration.tools.iter().any(ToolTable::is_server) {
        checks.push(
            Check::new(
                Group::Servers,
                "servers.start",
                "none",
                State::Info,
                "no MCP server is configured",
            )
            .next("Add one: steadyhand mcp add NAME -- COMMAND ARGS"),
        );
    }
    checks
}

/// Until every server is up or known to be down, within bounds; shown meanwhile.
async fn settled(patient: Patient<'_>, runtime: &Runtime) {
    let session = patient.session;
    let limit = session.time_left().unwrap_or(START_MAX).min(START_MAX);
    tokio::select! {
        () = runtime.servers_settled(limit) => {}
        () = patient.ending.cancelled() => {}
        never = starting::shown(session, runtime) => match never {},
    }
}

/// What is started for it: one attempt of each server on this machine. The rest is said not to be.
fn to_start(patient: Patient<'_>, configuration: &Configuration) -> (Configuration, Vec<Check>) {
    let mut checks = Vec::new();
    let mut tables = Vec::new();
    for table in &configuration.tools {
        let address = address_of(patient, table);
        let is_away = address.as_ref().is_some_and(|address| !is_here(address));
        if is_away && !patient.online && !(table.is_server() && patient.running.is_some()) {
            let written = json!(table.shown.as_ref().unwrap_or(&table.own));
            let shown = |key: &str| steadyhand_mcp::shown_url(starting::text(&written, key));
            checks.push(match table.is_server() {
                true => {
                    let text = format!("{}, not contacted (use --online)", shown("url"));
                    of_name(&table.name, State::Info, text)
                }
                false => {
                    let text = format!("from {}, not contacted (use --online)", shown("spec"));
                    let (group, id) = (Group::Config, "config.source");
                    Check::new(group, id, &table.name, State::Info, text)
                }
            });
            continue;
        }
        let mut table = table.clone();
        if table.is_server() {
            table.set_start("waits", json!(["0s"]));
            table.set_start("when", json!("boot"));
        }
        tables.push(table);
    }
    let mut started = Configuration::empty();
    started.file.clone_from(&configuration.file);
    started.is_demo = configuration.is_demo;
    started.folder.clone_from(&configuration.folder);
    started.document = configuration.document.clone();
    started.root.defaults = configuration.root.defaults.clone();
    started.imported.servers = switched_off(&configuration.imported.servers);
    started.tools = tables;
    (started, checks)
}

fn switched_off(servers: &[ImportedServer]) -> Vec<ImportedServer> {
    let off = servers.iter().filter(|server| !server.enabled);
    off.cloned().collect()
}

/// The address of a server, or of the document that a source is made from.
fn address_of(patient: Patient<'_>, table: &ToolTable) -> Option<String> {
    let key = if table.is_server() { "url" } else { "spec" };
    let written = table.own.get(key)?.as_str()?;
    let surroundings = patient.session.surroundings.clone();
    let resolver = Resolver::new(surroundings, patient.configuration?.folder.clone());
    let address = match table.is_imported {
        true => written.to_owned(),
        // One that is not known is somewhere else.
        false => match resolver.resolve(written) {
            Ok(resolved) => resolved.text,
            Err(_) => return table.is_server().then(|| written.to_owned()),
        },
    };
    let is_address = address.starts_with("http://") || address.starts_with("https://");
    is_address.then_some(address)
}

/// Whether an address is one of this machine.
pub(super) fn is_here(address: &str) -> bool {
    let Ok(url) = url::Url::parse(address.trim()) else {
        return false;
    };
    match url.host() {
        Some(url::Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// Sources that are not servers, and brought nothing or not all.
fn sources(patient: Patient<'_>, configuration: &Configuration, runtime: &Runtime) -> Vec<Check> {
    let tools = runtime.manager().list();
    let brings: HashSet<&str> = tools
        .iter()
        .flat_map(|tool| [Some(tool.name()), tool.source()])
        .flatten()
        .collect();
    // A reference that stands for nothing is told as such.
    let surroundings = patient.session.surroundings.clone();
    let resolver = Resolver::new(surroundings, configuration.folder.clone());
    let lacks_a_secret = |name: &str| {
        let mut tables = configuration.tools.iter();
        tables
            .find(|table| table.name == name)
            .is_some_and(|table| {
                let mut own = json!(table.own);
                table.unusable.is_some() || !resolver.resolve_tree(&mut own).unresolved.is_empty()
            })
    };
    let generation = runtime.generation();
    let is_server = |name: &str| {
        let mut tables = configuration.tools.iter();
        tables.any(|table| table.is_server() && table.name == name)
    };
    let mut checks = Vec::new();
    for problem in &generation.problems {
        if is_server(&problem.name) || lacks_a_secret(&problem.name) {
            continue;
        }
        let state = match brings.contains(problem.name.as_str()) {
            true => State::Note,
            false => State::Fix,
        };
        let place = problem.place.as_ref().map(|place| format!(" ({place})"));
        let text = format!("{}{}", problem.reason, place.unwrap_or_default());
        checks.push(Check::new(
            Group::Config,
            "config.source",
            &problem.name,
            state,
            text,
        ));
    }
    checks
}

fn of_name(name: &str, state: State, text: impl Into<String>) -> Check {
    Check::new(Group::Servers, "servers.start", name, state, text)
}

/// One server, as REST and `mcp list` show it.
fn of_server(server: &Value) -> Check {
    let text = |name: &str| starting::text(server, name);
    let name = text("name");
    let check = match text("phase") {
        "running" => runs(server),
        "idle" => of_name(name, State::Ok, "at rest: it starts when it is needed"),
        "down" => is_down(server),
        "starting" | "restarting" => {
            let seconds = server["for_ms"].as_u64().unwrap_or(0) / 1000;
            let doing = format!(
                "still {} after {seconds} s, at {}",
                text("status"),
                text("step")
            );
            of_name(name, State::Note, doing).next(format!(
                "Wait for it: steadyhand mcp test {name} --timeout 5m"
            ))
        }
        "disabled" => of_name(
            name,
            State::Info,
            format!("not started: {}", text("reason")),
        ),
        other => of_name(name, State::Note, other),
    };
    match server["place"].as_str() {
        Some(place) => check.detail("place", json!(place)),
        None => check,
    }
}

fn runs(server: &Value) -> Check {
    let tools = value::counted(server["tools"].as_u64().unwrap_or(0) as usize, "tool");
    let mut text = format!(
        "running, {tools}, {}",
        starting::millis(&server["start_ms"])
    );
    let noise = server["noise_lines"].as_u64().unwrap_or(0);
    if noise > 0 {
        let lines = value::counted(noise as usize, "line");
        text.push_str(&format!("; {lines} on stdout that no MCP client can read"));
    }
    let name = starting::text(server, "name");
    let unusable = server["unusable"].as_array().map_or(&[][..], Vec::as_slice);
    if let Some(unstable) = server["unstable"].as_str() {
        return of_name(name, State::Note, format!("{text}; unstable"))
            .because([format!("it {unstable}")])
            .next(format!("See what it printed: steadyhand mcp logs {name}"));
    }
    if unusable.is_empty() {
        return of_name(name, State::Ok, text);
    }
    let why = unusable.iter().take(3).map(|tool| {
        format!(
            "{}: {}",
            starting::text(tool, "name"),
            starting::text(tool, "reason")
        )
    });
    let all = server["unusable_count"].as_u64();
    let all = all.map_or(unusable.len(), |all| all as usize);
    let tools = value::counted(all, "tool");
    of_name(name, State::Note, format!("{text}; {tools} cannot be used")).because(why)
}

/// What does not work in the demo set shall not: nobody has to do anything about it.
fn meant(mut check: Check) -> Check {
    if check.state == State::Fix {
        check.state = State::Note;
        check.text = format!(
            "{}; it is broken on purpose, to show how that looks",
            check.text
        );
    }
    check
}

fn is_down(server: &Value) -> Check {
    let name = starting::text(server, "name");
    let failure = &server["failure"];
    let last_words = failure["stderr_tail"].as_array().into_iter().flatten();
    let mut last_words = last_words.filter_map(Value::as_str).map(str::trim);
    let last_words = last_words.rfind(|line| !line.is_empty());
    of_name(name, State::Fix, starting::text(server, "reason"))
        .because(last_words.map(|line| format!("its last words: {line}")))
        .next(starting::text(failure, "help"))
        .next(format!("See every step: steadyhand mcp test {name}"))
        .detail("step", failure["step"].clone())
        .detail("exit_code", failure["exit_code"].clone())
}
