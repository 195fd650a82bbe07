//! `steadyhand connect`: the lines that connect another program with this one, printed or written into its file.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};
use steadyhand::{clock, redact};

use super::Session;
use super::choice::Choice;
use super::error::{Exit, Failed};
use super::remote::Remote;
use steadyhand_config::connect::change::Change;
use steadyhand_config::connect::{Client, Scope, Us, Way, own_command, token_variable};
use steadyhand_config::document::plain;
use steadyhand_server::serve as serving;

#[derive(Args)]
pub(super) struct ConnectArgs {
    /// The program
    #[arg(value_enum)]
    client: Choice<Client>,
    /// Write it into the program's file; what was there stays, and a copy is kept beside it
    #[arg(long)]
    install: bool,
    /// The program reaches the server that runs (steadyhand serve); the default where it can
    #[arg(long, conflicts_with = "stdio")]
    http: bool,
    /// The program starts a steadyhand of its own (steadyhand mcp-stdio)
    #[arg(long)]
    stdio: bool,
    /// Whose file: project for claude-code and vscode, user for the others if not said
    #[arg(long, value_enum, value_name = "WHOSE")]
    scope: Option<Choice<Scope>>,
    /// Another file than the program's usual one
    #[arg(long, value_name = "FILE", conflicts_with = "scope")]
    file: Option<PathBuf>,
    /// Our name in the program's file
    #[arg(long, default_value = "steadyhand")]
    name: String,
}

pub(super) async fn run(session: &Session<'_>, args: &ConnectArgs) -> Result<(), Failed> {
    let client = args.client.0;
    let way = match (args.http, args.stdio) {
        (true, _) => Way::Http,
        (_, true) => Way::Stdio,
        (false, false) => client.usual_way(),
    };
    if let Some(why) = client.refuses(way) {
        let message = format!("{} cannot be connected like that: {why}", client.title());
        return Err(Failed::new(Exit::Usage, "usage", message));
    }
    let running = Remote::look(session, "cli").await.ok();
    let address = running.map(|remote| remote.address());
    let us = us(session, args, address)?;
    let file = file(session, args);
    let connection = Connection {
        client,
        way,
        us,
        file,
        is_served: address.is_some(),
    };
    match args.install {
        true => connection.install(session),
        false => connection.print(session),
    }
}

/// What is to be connected with what.
struct Connection {
    client: Client,
    way: Way,
    us: Us,
    file: Option<PathBuf>,
    /// Whether a server of this configuration runs.
    is_served: bool,
}

impl Connection {
    fn print(&self, session: &Session<'_>) -> Result<(), Failed> {
        let snippet = self.client.snippet(self.way, &self.us);
        if session.screen.json {
            let mut view = self.view(session);
            view["snippet"] = json!(snippet);
            session.screen.json(&view);
            return Ok(());
        }
        session.screen.exact(&snippet);
        if let Some(file) = &self.file {
            let line = self.client.line(self.way, &self.us);
            let install = self.install_command();
            session.screen.note(&format!(
                "\nThis belongs into {}. To have it written there: {install}",
                session.surroundings.shown_at_home(file)
            ));
            if line != install {
                session.screen.note(&format!("Or let it do that:  {line}"));
            }
        }
        self.remarks(session);
        Ok(())
    }

    fn install(&self, session: &Session<'_>) -> Result<(), Failed> {
        let Some(file) = &self.file else {
            let message = format!("{} has no such file to write to", self.client.title());
            return Err(Failed::new(Exit::Usage, "usage", message)
                .help("Leave --install or --scope out, or name the file: --file FILE"));
        };
        // A link stays a link: what it leads to is replaced.
        let file = &fs::canonicalize(file).unwrap_or_else(|_| file.clone());
        let shown = session.surroundings.shown_at_home(file);
        let before = match fs::read_to_string(file) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(cannot("read", &shown, &error)),
        };
        let text = before.as_deref().unwrap_or_default();
        let entry = self.client.entry(self.way, &self.us);
        let input = self.client.input(self.way, &self.us);
        let change = Change {
            client: self.client,
            name: &self.us.name,
            entry: &entry,
            input: input.as_ref(),
        };
        let after = change.of(text).map_err(|why| {
            let message = format!("{shown} cannot be read, so it was not changed: {why}");
            Failed::new(Exit::Config, "client_file", message)
                .detail("file", json!(shown))
                .help(format!(
                    "Mend it first, or put the lines in by hand: steadyhand connect {}",
                    self.client.word()
                ))
        })?;
        let is_changed = after != text || before.is_none();
        let backup = match is_changed {
            true => write(file, before.is_some(), &after)
                .map_err(|error| cannot("written", &shown, &error))?,
            false => None,
        };
        let backup = backup.map(|backup| session.surroundings.shown_at_home(&backup));
        let difference = difference(text, &after);
        if session.screen.json {
            let mut view = self.view(session);
            view["installed"] = json!(true);
            view["changed"] = json!(is_changed);
            view["backup"] = json!(backup);
            view["diff"] = json!(difference);
            session.screen.json(&view);
            return Ok(());
        }
        let (title, name) = (self.client.title(), &self.us.name);
        if !is_changed {
            session
                .screen
                .answer(&format!("{shown} says so already: nothing was changed."));
            return Ok(());
        }
        session.screen.answer(&format!("{shown}\n{difference}"));
        session.screen.note(&format!(
            "{title} has {name} from its next start on.{}",
            match &backup {
                Some(backup) => format!(" The file as it was: {backup}"),
                None => " The file is new.".to_owned(),
            }
        ));
        self.remarks(session);
        Ok(())
    }

    /// What has to be there for it to work.
    fn remarks(&self, session: &Session<'_>) {
        if self.way == Way::Http && !self.is_served {
            let base = &self.us.base;
            session.screen.note(&format!(
                "No server of this configuration runs at {base} yet: steadyhand serve"
            ));
        }
        let Some(variable) = self.us.token.as_ref().filter(|_| self.way == Way::Http) else {
            return;
        };
        session.screen.note(&match self.client {
            Client::VsCode => {
                "The token is not in the file: VS Code asks for it once and keeps it.".to_owned()
            }
            client => format!(
                "The token is not in it: {} reads it from the variable {variable}. A key for it alone: steadyhand keys create {}",
                client.title(),
                client.word()
            ),
        });
    }

    fn install_command(&self) -> String {
        let way = match self.way == self.client.usual_way() {
            true => String::new(),
            false => format!(" --{}", self.way.word()),
        };
        format!("steadyhand connect {}{way} --install", self.client.word())
    }

    fn view(&self, session: &Session<'_>) -> Value {
        let file = self.file.as_ref();
        json!({
            "client": self.client.word(),
            "way": self.way.word(),
            "name": self.us.name,
            "file": file.map(|file| session.surroundings.shown_at_home(file)),
            "entry": self.client.entry(self.way, &self.us),
            "line": self.client.line(self.way, &self.us),
            "token_variable": self.us.token,
        })
    }
}

/// What others must know of us: where we listen, or how we are started.
fn us(
    session: &Session<'_>,
    args: &ConnectArgs,
    running: Option<SocketAddr>,
) -> Result<Us, Failed> {
    let configuration = session.configuration()?;
    let settings = serving::settings_of(&configuration, &session.surroundings);
    let has_keys = session
        .door(configuration.file.as_deref())
        .keys
        .are_in_force();
    let (listen, needs_token, is_tls) = match &settings {
        Ok(settings) => (
            settings.listen,
            has_keys || settings.token.is_some() || settings.jwt.is_some(),
            settings.tls.is_some(),
        ),
        // A token that is not set here is one all the same.
        Err(_) => {
            let server = &configuration.root.server;
            let listen = server
                .listen
                .as_deref()
                .and_then(|listen| listen.parse().ok());
            let listen = listen.unwrap_or(steadyhand_config::listen::DEFAULT_LISTEN);
            (listen, true, server.tls.is_some())
        }
    };
    let address = running.unwrap_or_else(|| serving::presence::reachable(listen));
    if address.port() == 0 && args.client.0.usual_way() == Way::Http && !args.stdio {
        let message = "server.listen leaves the port open, and no server runs that has one";
        return Err(Failed::new(Exit::NotReachable, "no_server", message)
            .help("Start steadyhand serve first, or give it a port"));
    }
    let state = session.global.state.as_ref();
    let state = state.map(|state| session.surroundings.current.join(state));
    let scheme = if is_tls { "https" } else { "http" };
    Ok(Us {
        name: args.name.clone(),
        base: format!("{scheme}://{address}"),
        token: needs_token.then(|| token_variable(&configuration.root.server)),
        command: own_command(configuration.file.as_deref(), state.as_deref()),
    })
}

fn file(session: &Session<'_>, args: &ConnectArgs) -> Option<PathBuf> {
    if let Some(file) = &args.file {
        return Some(session.surroundings.current.join(file));
    }
    let client = args.client.0;
    let scope = args
        .scope
        .map_or_else(|| client.usual_scope(), |scope| scope.0);
    client.file(scope, &session.surroundings)
}

/// Replaces the file in one step; what was there before is kept beside it. Says where.
fn write(file: &Path, is_there: bool, text: &str) -> io::Result<Option<PathBuf>> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let backup = folder.join(format!("{name}.before-{}", clock::wall_ms()));
    if is_there {
        fs::copy(file, &backup)?;
    }
    let new = folder.join(format!(".{name}.{}.new", std::process::id()));
    let written = fs::write(&new, text).and_then(|()| {
        if is_there {
            fs::set_permissions(&new, fs::metadata(file)?.permissions())?;
        }
        fs::rename(&new, file)
    });
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written.map(|()| is_there.then_some(backup))
}

/// The lines that come and go, without what they hold of secrets. A comma that a neighbour got is not worth a line.
fn difference(before: &str, after: &str) -> String {
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines();
        lines
            .map(|line| line.trim_end().trim_end_matches(',').to_owned())
            .collect()
    };
    let (before, after) = (lines(before), lines(after));
    let (before, after): (Vec<&str>, Vec<&str>) = (
        before.iter().map(String::as_str).collect(),
        after.iter().map(String::as_str).collect(),
    );
    let changes = TextDiff::from_slices(&before, &after);
    let changes = changes.iter_all_changes();
    let lines = changes.filter_map(|change| match change.tag() {
        ChangeTag::Equal => None,
        ChangeTag::Delete => Some(format!("- {}", redact::mask(change.value()))),
        ChangeTag::Insert => Some(format!("+ {}", redact::mask(change.value()))),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn cannot(what: &str, file: &str, error: &io::Error) -> Failed {
    let message = format!("{file} cannot be {what}: {}", plain(error));
    Failed::new(Exit::Config, "client_file", message)
        .help("Name another file with --file, or put the lines in by hand")
}
