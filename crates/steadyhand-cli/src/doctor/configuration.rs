//! The file: is it there, is it right, what does it name that is not there, and what lies around unused.

use std::collections::BTreeMap;
use std::sync::Arc;

use secrecy::SecretString;
use serde_json::{Value, json};

use super::Patient;
use super::check::{Check, Group, State};
use crate::{Session, value};
use steadyhand_config::import::{Client, Importer};
use steadyhand_config::words::dotted;
use steadyhand_config::{Configuration, Problem, Report, Resolver};

/// Problems and remarks that are shown; `config check` shows all.
const SHOWN_MAX: usize = 10;

/// What is right of the configuration, and everything that is wrong with the rest.
pub(super) struct Looked {
    pub(super) configuration: Arc<Configuration>,
    pub(super) report: Option<Report>,
}

pub(super) fn load(session: &Session<'_>) -> Looked {
    let path = session.found().map(|found| found.path);
    let (configuration, problems) = session.load_what_is_right(path.as_deref());
    let is_wrong = problems.iter().any(|problem| !problem.is_warning);
    let report = is_wrong.then(|| configuration.report(problems, &session.surroundings));
    Looked {
        configuration: Arc::new(configuration),
        report,
    }
}

pub(super) async fn check(patient: Patient<'_>, looked: &Looked) -> Vec<Check> {
    let mut checks = match &looked.report {
        None => of_file(patient, &looked.configuration),
        Some(report) => vec![wrong(report)],
    };
    checks.extend(found_but_not_used(patient).await);
    checks
}

fn of_file(patient: Patient<'_>, configuration: &Configuration) -> Vec<Check> {
    let session = patient.session;
    let check = |state, text: String| Check::new(Group::Config, "config.file", "file", state, text);
    let Some(file) = &configuration.file else {
        let text = "there is no steadyhand.toml here, above, or in the user's configuration folder: this is the demo set";
        return vec![check(State::Note, text.to_owned()).next("Make one: steadyhand init")];
    };
    let servers = configuration
        .tools
        .iter()
        .filter(|it| it.is_server())
        .count();
    let tools = configuration.tools.len() - servers;
    let shown = session.surroundings.shown(file).display().to_string();
    let text = format!(
        "{shown}: {}, {}",
        value::counted(tools, "tool"),
        value::counted(servers, "MCP server")
    );
    let by = session.found().map(|found| found.by);
    let mut checks = vec![check(State::Ok, text).detail("by", json!(by))];
    let remarks = &configuration.warnings;
    if !remarks.is_empty() {
        let text = format!("{} about it", value::counted(remarks.len(), "remark"));
        checks.push(
            Check::new(
                Group::Config,
                "config.remarks",
                "remarks",
                State::Note,
                text,
            )
            .because(lines_of(remarks))
            .next("See each in its place: steadyhand config check"),
        );
    }
    checks
}

fn wrong(report: &Report) -> Check {
    let errors: Vec<Problem> = report
        .problems
        .iter()
        .filter(|problem| !problem.is_warning)
        .cloned()
        .collect();
    let text = format!(
        "{} in {}: nothing of it can be used",
        value::counted(errors.len(), "problem"),
        report.subject
    );
    let problems: Vec<Value> = errors.iter().map(Problem::to_json).collect();
    Check::new(Group::Config, "config.file", "file", State::Fix, text)
        .because(lines_of(&errors))
        .next("See each in its place: steadyhand config check")
        .detail("problems", json!(problems))
}

/// `steadyhand.toml:6: server.listne is not a setting. Did you mean listen?`
fn lines_of(problems: &[Problem]) -> Vec<String> {
    let mut lines: Vec<String> = problems.iter().take(SHOWN_MAX).map(line_of).collect();
    if problems.len() > SHOWN_MAX {
        lines.push(format!("and {} more", problems.len() - SHOWN_MAX));
    }
    lines
}

fn line_of(problem: &Problem) -> String {
    let place = problem.place().map(|place| {
        let (line, _) = place.line_and_column();
        format!("{}:{line}: ", place.file.path.display())
    });
    let help = problem.help.as_ref().map(|help| format!(". {help}"));
    format!(
        "{}{}{}",
        place.unwrap_or_default(),
        problem.message,
        help.unwrap_or_default()
    )
}

/// References that stand for nothing, by who uses them; and every secret, to keep it out of the report.
pub(super) async fn secrets(patient: Patient<'_>) -> (Vec<Check>, Vec<SecretString>) {
    let Some(configuration) = patient.configuration.cloned() else {
        return (Vec::new(), Vec::new());
    };
    let surroundings = patient.session.surroundings.clone();
    // Files and key stores are read.
    let looking = tokio::task::spawn_blocking(move || {
        let resolver = Resolver::new(surroundings, configuration.folder.clone());
        look(&configuration, &resolver)
    });
    looking.await.unwrap_or_default()
}

fn look(configuration: &Configuration, resolver: &Resolver) -> (Vec<Check>, Vec<SecretString>) {
    let mut checks = Vec::new();
    let mut secrets = configuration.imported.secrets.clone();
    for table in &configuration.tools {
        secrets.extend(table.secrets.iter().cloned());
        if let Some(reason) = &table.unusable {
            let place = table.place.clone().unwrap_or_default();
            let text = format!("{} is disabled ({place}): {reason}", table.name);
            checks.push(missing(State::Note, text));
        }
    }
    let sections = configuration.document.value.as_object();
    for (section, value) in sections.into_iter().flatten() {
        let resolution = resolver.resolve_tree_of(section, &mut value.clone());
        secrets.extend(resolution.secrets);
        // Models tell of their keys themselves.
        for (pointer, unresolved) in resolution.unresolved {
            if section == "models" {
                continue;
            }
            let origin = configuration.document.nearest_origin(&pointer);
            let place = origin.map(|origin| format!(" ({})", origin.short()));
            let (state, result) = consequence(&pointer);
            let text = format!(
                "{}: {}; {result}{}",
                unresolved.reference,
                unresolved.reason,
                place.unwrap_or_default()
            );
            checks.push(
                missing(state, text)
                    .next(&unresolved.help)
                    .detail("setting", json!(dotted(&pointer))),
            );
        }
    }
    (checks, secrets)
}

fn missing(state: State, text: String) -> Check {
    Check::new(Group::Config, "config.secret", "secrets", state, text)
}

/// What does not work without it.
fn consequence(pointer: &str) -> (State, String) {
    let mut keys = pointer.split('/').skip(1);
    match (keys.next(), keys.next()) {
        (Some("tools" | "mcp"), Some(name)) => (State::Note, format!("{name} is disabled")),
        (Some("server"), _) => (State::Fix, "steadyhand serve does not start".to_owned()),
        (Some(section), _) => (State::Note, format!("[{section}] does not work")),
        (None, _) => (State::Note, "it is not used".to_owned()),
    }
}

/// MCP servers in files of other programs that nobody has asked us to read.
async fn found_but_not_used(patient: Patient<'_>) -> Vec<Check> {
    let surroundings = patient.session.surroundings.clone();
    let configuration = patient.configuration.cloned();
    let own_file = patient.session.found().map(|found| found.path);
    let looking = tokio::task::spawn_blocking(move || {
        let mut by_file: BTreeMap<String, (&'static str, Vec<String>)> = BTreeMap::new();
        for (program, _) in Client::KNOWN {
            let imports = configuration.as_ref().map(|it| &it.root.import.mcp);
            if imports.is_some_and(|imports| imports.iter().any(|it| it == program)) {
                continue;
            }
            let importer = Importer::new(surroundings.clone());
            let folder = surroundings.current.clone();
            let imported = importer.read_all(&[program], &[], &folder);
            // `connect` has put ourselves there.
            for server in imported.without_ourselves().servers {
                let file = &server.origin.file;
                let read = configuration.iter().flat_map(|it| &it.imported.servers);
                let is_read = read.into_iter().any(|read| read.origin.file == *file);
                if is_read || own_file.as_ref() == Some(file) {
                    continue;
                }
                let shown = surroundings.shown_at_home(file);
                let names = by_file.entry(shown).or_insert((program, Vec::new()));
                if !names.1.contains(&server.name) {
                    names.1.push(server.name);
                }
            }
        }
        by_file
    });
    let found = looking.await.unwrap_or_default().into_iter();
    found
        .map(|(file, (program, names))| {
            let text = format!("{file}: {}", names.join(", "));
            Check::new(Group::Config, "config.found", "not used", State::Info, text).next(format!(
                "Take them over: steadyhand mcp import {program} --all"
            ))
        })
        .collect()
}
