//! `steadyhand keys`: API keys made, listed, revoked. They are in the state folder, and a server that runs sees the
//! change at its next request.

use std::time::Duration;

use clap::{Args, Subcommand};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use steadyhand::clock;

use super::choice::Choice;
use super::error::{Exit, Failed};
use super::{Session, value};
use steadyhand_config::role::Role;
use steadyhand_config::units::Rate;
use steadyhand_runtime::access::{CannotKeep, Keys, NewKey, Tools};
use steadyhand_runtime::audit::AuditEvent;
use steadyhand_server::serve::presence;
use steadyhand_server::views;

#[derive(Subcommand)]
pub(super) enum KeysCommand {
    /// Make a key; it is shown this once
    Create(CreateArgs),
    /// The keys there are, revoked ones too
    List,
    /// From here on this key lets nobody in
    Revoke {
        /// Its id, or its name
        key: String,
    },
}

#[derive(Args)]
pub(super) struct CreateArgs {
    /// Whose it is, or what it is for
    name: String,
    /// What it lets its owner do
    #[arg(long, value_enum, default_value_t = Choice(Role::Caller))]
    role: Choice<Role>,
    /// Only these tools: a name, or a pattern such as weather*
    #[arg(long = "tool", value_name = "PATTERN")]
    tools: Vec<String>,
    /// Not these tools, whatever is allowed
    #[arg(long, value_name = "PATTERN")]
    deny: Vec<String>,
    /// How many calls in which time, such as 60/min
    #[arg(long, value_parser = parse_rate)]
    rate: Option<Rate>,
    /// When it is of no more use, such as 30d
    #[arg(long, value_parser = humantime::parse_duration, value_name = "TIME")]
    expires: Option<Duration>,
}

fn parse_rate(text: &str) -> Result<Rate, String> {
    text.parse()
}

pub(super) fn run(session: &Session<'_>, command: Option<&KeysCommand>) -> Result<(), Failed> {
    let found = session.found();
    let file = found.as_ref().map(|found| found.path.as_path());
    let keys = Keys::of(&session.state(), &presence::key_of(file));
    match command {
        None | Some(KeysCommand::List) => list(session, &keys),
        Some(KeysCommand::Create(args)) => create(session, &keys, args),
        Some(KeysCommand::Revoke { key }) => revoke(session, &keys, key),
    }
}

fn create(session: &Session<'_>, keys: &Keys, args: &CreateArgs) -> Result<(), Failed> {
    let is_first = !keys.are_in_force();
    let now_ms = clock::wall_ms();
    let new = NewKey {
        name: args.name.clone(),
        role: args.role.0,
        tools: Tools {
            allow: args.tools.clone(),
            deny: args.deny.clone(),
        },
        rate: args.rate,
        expires_ms: args.expires.map(|after| now_ms + after.as_millis() as u64),
    };
    let event = || AuditEvent::of_command("key.create", session.user()).on(&args.name);
    let (key, secret) = session.audited(
        event(),
        || keys.create(new).map_err(failed),
        |(key, _)| event().changed(None, Some(views::keys::one(key, now_ms))),
    )?;
    if session.screen.json {
        let mut view = views::keys::one(&key, now_ms);
        view["key"] = json!(secret.expose_secret());
        session.screen.json(&view);
        return Ok(());
    }
    session.screen.exact(secret.expose_secret());
    session.screen.note(&format!(
        "That is the key of {} ({}). It is not shown again: only its digest is kept.",
        key.name,
        key.role.word()
    ));
    if is_first {
        session
            .screen
            .note("From here on a server of this configuration asks everybody for a key.");
    }
    Ok(())
}

fn list(session: &Session<'_>, keys: &Keys) -> Result<(), Failed> {
    let keys = keys.list().map_err(failed)?;
    let view = views::keys::list(&keys, clock::wall_ms());
    if session.screen.json {
        session.screen.json(&view);
        return Ok(());
    }
    if keys.is_empty() {
        session
            .screen
            .note("There are no keys. steadyhand keys create NAME makes one.");
        return Ok(());
    }
    let mut rows = Vec::new();
    if session.screen.stdout_is_terminal {
        let names = ["ID", "NAME", "ROLE", "STATE", "TOOLS", "RATE", "EXPIRES"];
        rows.push(names.map(str::to_owned).to_vec());
    }
    let listed = view["keys"].as_array().into_iter().flatten();
    rows.extend(listed.map(row));
    let text = value::columns(session.screen, rows);
    session.screen.answer(&text);
    Ok(())
}

fn row(key: &Value) -> Vec<String> {
    let text = |name: &str| key[name].as_str().unwrap_or("-").to_owned();
    let patterns = |name: &str, mark: &str| -> Vec<String> {
        let patterns = key["tools"][name].as_array().into_iter().flatten();
        let texts = patterns.filter_map(Value::as_str);
        texts.map(|text| format!("{mark}{text}")).collect()
    };
    let mut tools = [patterns("allow", ""), patterns("deny", "not ")].concat();
    if tools.is_empty() {
        tools.push("all".to_owned());
    }
    let expires = key["expires_ms"].as_i64();
    let expires = expires.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    vec![
        text("id"),
        text("name"),
        text("role"),
        text("state"),
        tools.join(", "),
        text("rate"),
        expires.map_or("-".to_owned(), |moment| moment.to_string()),
    ]
}

fn revoke(session: &Session<'_>, keys: &Keys, key: &str) -> Result<(), Failed> {
    let now_ms = clock::wall_ms();
    let listed = keys.list().unwrap_or_default();
    let before = listed.iter().find(|one| one.id == key || one.name == key);
    let before = before.map(|one| views::keys::one(one, now_ms));
    let event = || {
        AuditEvent::of_command("key.revoke", session.user())
            .on(key)
            .changed(before.clone(), None)
    };
    let revoked = session.audited(
        event(),
        || keys.revoke(key).map_err(failed),
        |revoked| {
            let after = views::keys::one(revoked, clock::wall_ms());
            event().changed(before.clone(), Some(after))
        },
    )?;
    if session.screen.json {
        session
            .screen
            .json(&views::keys::one(&revoked, clock::wall_ms()));
        return Ok(());
    }
    session.screen.note(&format!(
        "{} ({}) lets nobody in any more.",
        revoked.name, revoked.id
    ));
    if !keys.has_a_usable_one() {
        session.screen.note(
            "No key is left, and a server still asks for one: steadyhand keys create NAME --role admin makes a new one.",
        );
    }
    Ok(())
}

fn failed(cannot: CannotKeep) -> Failed {
    let (exit, code, help) = match &cannot {
        CannotKeep::Wrong(_) => (Exit::Usage, "key_refused", "steadyhand keys create --help"),
        CannotKeep::NoSuchKey(_) => (
            Exit::Usage,
            "no_such_key",
            "steadyhand keys list shows them",
        ),
        CannotKeep::File(_) => (
            Exit::Unexpected,
            "keys_unavailable",
            "Check the file and its permissions; --state DIR names another folder",
        ),
    };
    Failed::new(exit, code, cannot.to_string()).help(help)
}
