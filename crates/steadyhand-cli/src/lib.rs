//! The command line: what was typed, what is run, what is printed.

#![allow(
    missing_docs,
    reason = "a part of the program, not a library for others: names say what things are"
)]

mod alerts;
mod approvals;
mod arguments;
mod audit;
mod batch;
mod call;
mod calls;
mod changes;
mod chat;
mod choice;
mod codes;
mod complete;
mod config;
mod configuration;
mod connect;
mod conversation;
mod demo_broken;
mod demo_traffic;
mod doctor;
mod elsewhere;
mod error;
mod explain;
pub mod extensions;
mod first_steps;
mod init;
mod keys;
mod last_resort;
mod logging;
mod man;
pub mod markdown;
mod mcp;
mod mcp_stdio;
mod metrics;
mod models;
mod outcome;
mod pinned;
mod progress;
mod rehearsal;
mod remote;
mod screen;
mod secret;
mod serve;
mod starting;
mod stored_keys;
mod switch;
mod tail;
mod tools;
mod transcriber;
mod transcriber_http;
mod value;
mod verify;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use steadyhand_process::private;

use error::{Exit, Failed};
use extensions::EXTENSIONS;
use screen::Screen;
use steadyhand_config::settings::HistorySettings;
use steadyhand_config::surroundings::NAME_A_STATE_FOLDER;
use steadyhand_config::{Configuration, Surroundings};
use steadyhand_runtime::access::Door;
use steadyhand_runtime::approvals::{ApprovalState, Desk};
use steadyhand_runtime::audit::{AuditEvent, AuditLog, AuditOptions};
use steadyhand_runtime::pins::Pins;
use steadyhand_runtime::runtime::{Options, Runtime};
use steadyhand_server::serve as serving;
use steadyhand_server::serve::audited::SettingsInForce;
use steadyhand_server::serve::presence;
use steadyhand_store::documents::DocumentSearch;
use steadyhand_store::history::{HealthState, History, HistoryOptions, KeptKeys, KeysOptions};

/// How long a command may take to stop what it started.
const STOPPING_MAX: Duration = Duration::from_secs(5);
/// So many Steadyhands may stand one behind the other.
const DEPTH_MAX: usize = 4;
/// How long the end waits for the file of idempotency keys.
const CLOSING_KEYS_MAX: Duration = Duration::from_secs(5);
/// How long records of the audit log are kept, and how large it may grow, if nobody says.
const AUDIT_KEEP: Duration = Duration::from_secs(400 * 24 * 60 * 60);
const AUDIT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How long a command waits for what it did to be written down.
const WRITING_MAX: Duration = Duration::from_secs(1);

/// Runs the tools of AI applications, and shows what happens when they fail.
#[derive(Parser)]
#[command(
    name = "steadyhand",
    version,
    disable_help_subcommand = true,
    max_term_width = 100
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Args)]
struct Global {
    /// One JSON value on stdout
    #[arg(long, global = true)]
    json: bool,
    /// The configuration file; a plain mcpServers or Flex Chat JSON file will do
    #[arg(short, long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where state is kept
    #[arg(long, global = true, value_name = "DIR")]
    state: Option<PathBuf>,
    /// No notes on stderr
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// More detail; -vv shows everything, secrets removed
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Never ask; fail and say which flag would have answered
    #[arg(long, global = true)]
    no_input: bool,
    /// Colours
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    color: Color,
    /// The longest this command may take, such as 5s
    #[arg(long, global = true, value_parser = humantime::parse_duration, value_name = "TIME")]
    timeout: Option<Duration>,
    /// No box drawing, no marks beyond ASCII, no spinners
    #[arg(long, global = true)]
    plain: bool,
    /// Run in this process, even if a server answers
    #[arg(long, global = true)]
    local: bool,
    /// Use the configuration and the files it names even if somebody else could have written them; for this run only
    #[arg(long, global = true)]
    trust: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Subcommand)]
enum Command {
    /// Write a steadyhand.toml here, with the MCP servers that are found
    Init(init::InitArgs),
    /// The dashboard, MCP and REST; without a steadyhand.toml: the demo set
    Serve(serve::ServeArgs),
    /// Talk to a model that uses the tools; with a prompt or stdin: one answer, then the end
    Chat(chat::ChatArgs),
    /// Run one tool
    Call(call::CallArgs),
    /// Run many tools at once
    Batch(batch::BatchArgs),
    /// Past and running calls
    Calls {
        #[command(subcommand)]
        command: Option<calls::CallsCommand>,
    },
    /// How often tools were called, how that went, how long it took
    Metrics(metrics::MetricsArgs),
    /// The tools there are
    Tools {
        #[command(subcommand)]
        command: Option<tools::ToolsCommand>,
    },
    /// The models there are, and whether one can use tools
    Models {
        #[command(subcommand)]
        command: Option<models::ModelsCommand>,
    },
    /// Answer what is said: lines on stdin, an MQTT topic, or HTTP
    Transcriber(transcriber::TranscriberArgs),
    /// MCP servers: how they fare, why one does not start, which there are
    Mcp {
        #[command(subcommand)]
        command: Option<mcp::McpCommand>,
    },
    /// Say what a provider would refuse in a conversation
    Validate(conversation::ValidateArgs),
    /// Mend a conversation so that its provider accepts it, and say what was changed
    Repair(conversation::RepairArgs),
    /// A well-formed error result for a call, in a provider's shape
    ErrorResponse(conversation::ErrorResponseArgs),
    /// Calls that wait for a person's yes
    Approvals(approvals::ApprovalsArgs),
    /// Let a call run that waits for a yes
    Approve(approvals::ApproveArgs),
    /// Do not let a call run that waits for a yes
    Deny(approvals::DenyArgs),
    /// What is wrong now and was earlier
    Alerts {
        #[command(subcommand)]
        command: Option<alerts::AlertsCommand>,
    },
    /// API keys: who may do what over the network
    Keys {
        #[command(subcommand)]
        command: Option<keys::KeysCommand>,
    },
    /// The audit log: who decided and changed what
    Audit {
        #[command(subcommand)]
        command: Option<audit::AuditCommand>,
    },
    /// The configuration: is it right, and what does it say
    Config {
        #[command(subcommand)]
        command: config::ConfigCommand,
    },
    /// What the code of an error means, and what to do about it
    Explain(explain::ExplainArgs),
    /// All tools for an MCP client that starts this program
    McpStdio(mcp_stdio::McpStdioArgs),
    /// Which tools are safe to give to an agent: the twelve probes, and the examples that are declared
    Verify(verify::VerifyArgs),
    /// The server of the demo set that is broken on purpose
    #[command(hide = true)]
    DemoMcp {
        /// End before a word was said, with the reason on stderr
        #[arg(long, required = true)]
        crash: bool,
    },
    /// Check everything, and say how to fix what is wrong
    Doctor(doctor::DoctorArgs),
    /// The lines that connect another program with this one, or their installation
    Connect(connect::ConnectArgs),
    /// Completions for a shell, names of tools, servers, models and calls included
    Completions(complete::CompletionsArgs),
    /// The manual
    Man(man::ManArgs),
}

/// Runs the program and gives back its exit code.
pub fn main() -> ExitCode {
    last_resort::install();
    last_resort::contain(run_program).unwrap_or_else(|told| {
        last_resort::tell(&told);
        Exit::Unexpected.into()
    })
}

fn run_program() -> ExitCode {
    complete::answer_the_shell(Cli::command);
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => return error::usage(&usage),
    };
    let screen = Screen::new(&cli.global);
    screen.log(cli.global.verbose);
    match run(&cli, &screen) {
        Ok(()) => match screen.unwritten() {
            None => Exit::Done.into(),
            Some(reason) => {
                let failed = Failed::new(
                    Exit::Unexpected,
                    "output_failed",
                    format!("the answer could not be written: {reason}"),
                );
                failed.print(&screen);
                failed.exit().into()
            }
        },
        Err(failed) => {
            failed.print(&screen);
            failed.exit().into()
        }
    }
}

fn run(cli: &Cli, screen: &Screen) -> Result<(), Failed> {
    let session = Session::new(&cli.global, screen);
    let Some(command) = &cli.command else {
        return first_steps::run(&session);
    };
    if command.keeps_something() {
        session.check_state_folder()?;
    }
    match command {
        Command::Init(args) => init::run(&session, args),
        Command::DemoMcp { .. } => {
            demo_broken::crash();
            Err(Failed::silent(Exit::Unexpected))
        }
        Command::Config { command } => session.block_on(config::run(&session, command)),
        Command::McpStdio(args) => session.block_on(mcp_stdio::run(&session, args)),
        Command::Verify(args) => session.block_on(verify::run(&session, args)),
        Command::Explain(args) => explain::run(screen, args),
        Command::Alerts { command } => session.block_on(alerts::run(&session, command.as_ref())),
        Command::Approvals(args) => session.block_on(approvals::list(&session, args)),
        Command::Approve(args) => session.block_on(approvals::approve(&session, args)),
        Command::Deny(args) => session.block_on(approvals::deny(&session, args)),
        Command::Audit { command } => audit::run(&session, command.as_ref()),
        Command::Keys { command } => keys::run(&session, command.as_ref()),
        Command::Completions(args) => complete::run(args, screen, &Cli::command()),
        Command::Connect(args) => session.block_on(connect::run(&session, args)),
        Command::Doctor(args) => session.block_on(doctor::run(&session, args)),
        Command::Man(args) => man::run(args, screen, Cli::command()),
        Command::Validate(args) => conversation::validate(&session, args),
        Command::Repair(args) => conversation::repair(&session, args),
        Command::ErrorResponse(args) => conversation::error_response(&session, args),
        Command::Serve(args) => session.block_on(serve::run(&session, args)),
        Command::Batch(args) => session.block_on(batch::run(&session, args)),
        Command::Calls { command } => session.block_on(calls::run(&session, command.as_ref())),
        Command::Metrics(args) => session.block_on(metrics::run(&session, args)),
        Command::Chat(args) => session.block_on(chat::run(&session, args)),
        Command::Models { command } => session.block_on(models::run(&session, command.as_ref())),
        Command::Transcriber(args) => session.block_on(transcriber::run(&session, args)),
        Command::Call(args) => session.block_on(call::run(&session, args)),
        Command::Tools { command } => session.block_on(tools::run(&session, command.as_ref())),
        Command::Mcp { command } => session.block_on(mcp::run(&session, command.as_ref())),
    }
}

impl Command {
    /// Whether it reads or writes the state folder. `doctor` says itself what is wrong with it.
    fn keeps_something(&self) -> bool {
        !matches!(
            self,
            Command::Init(_)
                | Command::DemoMcp { .. }
                | Command::Config { .. }
                | Command::Explain(_)
                | Command::Completions(_)
                | Command::Connect(_)
                | Command::Doctor(_)
                | Command::Man(_)
                | Command::Validate(_)
                | Command::Repair(_)
                | Command::ErrorResponse(_)
        )
    }
}

/// A Steadyhand behind another is fine; one whose own configuration starts it again would never stop starting itself.
fn check_depth() -> Result<(), Failed> {
    match steadyhand_process::depth() {
        0..DEPTH_MAX => Ok(()),
        depth => Err(Failed::new(
            Exit::Config,
            "starts_itself",
            format!("Steadyhand was started by itself, {depth} times over"),
        )
        .help(
            "An MCP server of the configuration is Steadyhand with the same configuration: take it out, or give it a file of its own with -c",
        )),
    }
}

/// What every command has at hand.
struct Session<'a> {
    global: &'a Global,
    screen: &'a Screen,
    surroundings: Surroundings,
    started: tokio::time::Instant,
    /// A file of a folder above was named.
    told_where: Cell<bool>,
}

impl<'a> Session<'a> {
    fn new(global: &'a Global, screen: &'a Screen) -> Session<'a> {
        Session {
            global,
            screen,
            surroundings: match global.trust {
                true => Surroundings::of_this_process().trusting_everything(),
                false => Surroundings::of_this_process(),
            },
            started: tokio::time::Instant::now(),
            told_where: Cell::new(false),
        }
    }

    /// Logs as the configuration says: for a program that stays.
    fn log_as(&self, configuration: &Configuration) {
        // The demo set fails on purpose, and says so elsewhere.
        if !configuration.is_demo {
            let settings = &configuration.root.log;
            self.screen.log_as(self.global.verbose, settings);
        }
    }

    /// The same after each change of the configuration.
    async fn follow_log_settings(&self, runtime: &Runtime) -> std::convert::Infallible {
        let mut changes = runtime.changes();
        while changes.changed().await.is_ok() {
            self.log_as(&runtime.generation().configuration);
        }
        std::future::pending().await
    }

    /// All tools, loaded in this process.
    async fn runtime(&self, adapt: impl FnOnce(&mut Options)) -> Result<Runtime, Failed> {
        let configuration = self.configuration()?;
        self.runtime_of(configuration, adapt).await
    }

    /// Nothing is kept where somebody else could change it.
    fn check_state_folder(&self) -> Result<(), Failed> {
        if self.global.state.is_some() {
            return Ok(());
        }
        let folder = self.surroundings.find_state_folder().map_err(|none| {
            Failed::new(Exit::Config, "state_folder_unknown", none.to_string())
                .help(NAME_A_STATE_FOLDER)
        })?;
        if folder.is_where_we_started {
            self.screen.note(&format!(
                "Warning: state is kept in {}, the folder this was started in, because it is there from an earlier version. {NAME_A_STATE_FOLDER}, and move it there.",
                folder.path.display()
            ));
        }
        Ok(())
    }

    /// Where state is kept.
    fn state(&self) -> PathBuf {
        match &self.global.state {
            Some(state) => self.surroundings.current.join(state),
            None => self.surroundings.state_folder(),
        }
    }

    /// The history of the calls of a configuration: where it says, or one of its own in the state folder.
    fn history(&self, configuration: &Configuration, settings: &HistorySettings) -> History {
        let path = history_path(&self.surroundings, &self.state(), configuration, settings);
        let mut options = HistoryOptions::new(path);
        if let Some(keep) = settings.keep {
            options.keep = keep.0;
        }
        if let Some(size) = settings.max_size {
            options.max_bytes = size.0;
        }
        History::open(options)
    }

    /// Idempotency keys of a configuration that outlive a process.
    fn keys(&self, configuration: Option<&Path>) -> Arc<KeptKeys> {
        Arc::new(KeptKeys::open_with(self.keys_options(configuration)))
    }

    /// Where they are. The second marker is in another folder: it notices when that of the history is replaced.
    fn keys_options(&self, configuration: Option<&Path>) -> KeysOptions {
        let (name, state) = (presence::key_of(configuration), self.state());
        KeysOptions::new(state.join("history").join(format!("{name}.keys.db")))
            .second_marker(state.join("markers").join(format!("{name}.keys.marker")))
    }

    /// What is known of idempotency keys is in their file, and the file is closed, before the process ends.
    async fn close_keys(&self, keys: Option<Arc<KeptKeys>>) {
        let Some(keys) = keys else {
            return;
        };
        let closing = tokio::task::spawn_blocking(move || keys.close(CLOSING_KEYS_MAX));
        if !closing.await.unwrap_or(false) {
            tracing::warn!(
                "idempotency keys are not carried over into their file; the next process finds them in its log"
            );
        }
    }

    /// Where the audit log of a configuration is, and how much of it is kept.
    fn audit_options_of(&self, configuration: &Configuration) -> AuditOptions {
        let settings = &configuration.root.audit;
        let name = presence::key_of(configuration.file.as_deref());
        let (state, node) = (self.state(), settings.node.clone());
        AuditOptions {
            folder: state.join("audit").join(&name),
            head: state.join("markers").join(format!("{name}.audit.json")),
            key: state.join("access").join(format!("{name}.audit.key")),
            node: node
                .filter(|node| !node.is_empty())
                .unwrap_or_else(host_name),
            keep: settings.keep.map_or(AUDIT_KEEP, |keep| keep.0),
            max_bytes: settings.max_size.map_or(AUDIT_BYTES_MAX, |size| size.0),
        }
    }

    fn audit_options(&self) -> Result<AuditOptions, Failed> {
        Ok(self.audit_options_of(&self.configuration()?))
    }

    /// The audit log of a configuration, to be written.
    fn audit_log(&self, configuration: &Configuration) -> AuditLog {
        let settings = &configuration.root.audit;
        match settings.enabled.unwrap_or(true) {
            true => AuditLog::open(
                self.audit_options_of(configuration),
                settings.required.unwrap_or(false),
            ),
            false => AuditLog::off(),
        }
    }

    /// Does something that belongs into the audit log: that it is about to be done is on the disk first.
    fn audited<T>(
        &self,
        event: AuditEvent,
        act: impl FnOnce() -> Result<T, Failed>,
        changed: impl FnOnce(&T) -> AuditEvent,
    ) -> Result<T, Failed> {
        // A configuration that cannot be read does not keep an administrator from revoking a key.
        let Ok(configuration) = self.configuration() else {
            return act();
        };
        let log = self.audit_log(&configuration);
        let written = self.block_on_value(log.before(event.clone().result("asked")));
        written.map_err(|why| not_written_down(&why))?;
        let done = act();
        log.note(match &done {
            Ok(value) => changed(value),
            Err(_) => event.result("refused"),
        });
        self.block_on_value(log.flush());
        if let Some(why) = log.trouble() {
            self.screen
                .note(&format!("It is not in the audit log: {why}"));
        }
        done
    }

    /// Yeses and noes that are said in this process go into the audit log: a yes before its tool starts. The log is to
    /// be flushed before the process ends.
    fn audit_approvals(
        &self,
        desk: &Desk,
        configuration: &Configuration,
        history: Option<History>,
    ) -> AuditLog {
        let log = self.audit_log(configuration);
        let told = log.clone();
        desk.tell(move |approval| {
            if approval.state != ApprovalState::Waiting {
                told.note(AuditEvent::of_approval(approval));
            }
        });
        let written = log.clone();
        desk.before_start(move || {
            let (log, history) = (written.clone(), history.clone());
            Box::pin(async move {
                if let Some(history) = history {
                    // After a crash the history knows which calls were never started.
                    history.written_down().await;
                }
                log.flush().await;
            })
        });
        log
    }

    /// Changes our configuration file, which belongs into the audit log: which settings are other ones afterwards, never
    /// their values.
    async fn edited<T>(
        &self,
        event: AuditEvent,
        edit: impl FnOnce() -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        let in_force = || {
            let found = self.found()?;
            Configuration::load(Some(&found.path), &self.surroundings, &EXTENSIONS).ok()
        };
        // A first file is made: there is nothing before it, nor a log of it.
        let before = in_force();
        let log = before.as_ref().map(|before| self.audit_log(before));
        let before = before.as_ref().map(SettingsInForce::of);
        let was = before.as_ref().map(SettingsInForce::digest);
        if let Some(log) = &log {
            let asked = event.clone().changed(was.clone(), None).result("asked");
            let asked = log.before(asked).await;
            asked.map_err(|why| not_written_down(&why))?;
        }
        let done = edit();
        let after = in_force();
        let log = log.or_else(|| after.as_ref().map(|after| self.audit_log(after)));
        let Some(log) = log else {
            return done;
        };
        let after = after.as_ref().map(SettingsInForce::of);
        let mut now = after.as_ref().map(SettingsInForce::digest);
        if let (Some(before), Some(after), Some(now)) = (&before, &after, &mut now) {
            now["changed"] = before.differences(after);
        }
        let result = if done.is_ok() { "done" } else { "refused" };
        log.note(event.changed(was, now).result(result));
        log.flush().await;
        done
    }

    /// Writes down what a command did, or that it failed.
    async fn written_down<T>(
        &self,
        event: AuditEvent,
        ended: Result<T, Failed>,
    ) -> Result<T, Failed> {
        if let Ok(configuration) = self.configuration() {
            let log = self.audit_log(&configuration);
            let result = if ended.is_ok() { "done" } else { "refused" };
            log.note(event.result(result));
            log.flush().await;
        }
        ended
    }

    fn user(&self) -> Option<String> {
        user_name()
    }

    fn block_on_value<T>(&self, future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime without threads of its own")
            .block_on(future)
    }

    /// What a server of a configuration knows of those who come.
    fn door(&self, configuration: Option<&Path>) -> Arc<Door> {
        let name = presence::key_of(configuration);
        Door::of(&self.state(), &name, AuditLog::off())
    }

    /// The same for a server, which writes down what operators do.
    fn door_of_server(&self, configuration: &Configuration) -> Arc<Door> {
        let name = presence::key_of(configuration.file.as_deref());
        Door::of(&self.state(), &name, self.audit_log(configuration))
    }

    /// The definitions of tools that servers of a configuration had before.
    fn pins(&self, configuration: Option<&Path>) -> Pins {
        let name = presence::key_of(configuration);
        Pins::open(self.state().join("pins").join(format!("{name}.json")))
    }

    /// The history that the configuration means, to read.
    fn past(&self) -> Result<History, Failed> {
        let configuration = self.configuration()?;
        Ok(self.history(&configuration, &self.history_settings(&configuration)))
    }

    /// Writes down what this process runs, where a server would.
    fn remember(&self, runtime: &Runtime) -> Option<History> {
        let generation = runtime.generation();
        let configuration = &generation.configuration;
        let history = self.history(configuration, &self.history_settings(configuration));
        history.attach(runtime.executor()).ok()?;
        Some(history)
    }

    fn history_settings(&self, configuration: &Configuration) -> HistorySettings {
        let settings = serving::settings_of(configuration, &self.surroundings);
        settings.map_or_else(|_| HistorySettings::default(), |settings| settings.history)
    }

    async fn runtime_of(
        &self,
        configuration: Configuration,
        adapt: impl FnOnce(&mut Options),
    ) -> Result<Runtime, Failed> {
        check_depth()?;
        let mut options = Options::new(self.surroundings.clone(), &EXTENSIONS);
        options.services.push(Arc::new(DocumentSearch::default()));
        options.state = self.state();
        options.pins = Some(self.pins(configuration.file.as_deref()));
        options.progress = self.screen.progress();
        // What is broken on purpose needs no alarm.
        let tells = self.screen.tells_starts(&configuration.root.log);
        let is_silent = !tells || configuration.is_demo;
        let plain = self.screen.plain;
        options.degraded = Arc::new(move |text, _| {
            if !is_silent {
                screen::line(&screen::marked(text, plain));
            }
        });
        adapt(&mut options);
        // Who only looks writes nothing down; a server of the command line has no past.
        if options.only_look || !options.servers.is_empty() {
            options.pins = None;
        }
        if !options.only_look {
            self.close_state_to_others();
        }
        let starting = Runtime::start(configuration, options);
        match self.time_left() {
            None => Ok(starting.await),
            Some(left) => tokio::time::timeout(left, starting)
                .await
                .map_err(|_| Failed::timed_out(self.global.timeout.unwrap_or_default())),
        }
    }

    /// What is kept is read by its owner alone, also what an older version has left open. Nothing else is touched: the
    /// state folder may be one that has other things in it.
    fn close_state_to_others(&self) {
        let state = self.state();
        let closed: usize = STATE_FOLDERS
            .iter()
            .map(|folder| private::close_to_others(&state.join(folder)))
            .sum();
        let is_ours = STATE_FOLDERS.iter().any(|it| state.join(it).is_dir())
            && self.surroundings.home.as_ref() != Some(&state);
        let closed = closed + usize::from(is_ours && private::close_folder(&state));
        if closed > 0 {
            tracing::warn!(
                folder = %state.display(),
                files_and_folders = closed,
                "what is kept could be read by others on this machine: it is closed to them from here on"
            );
        }
    }

    /// Stops everything a runtime has started; another interrupt does not wait for that.
    async fn stop(&self, runtime: &Runtime, interrupts: &mut Interrupts) {
        let stopping = async {
            let _ = tokio::time::timeout(STOPPING_MAX, runtime.stop_servers()).await;
            runtime.settle(STOPPING_MAX).await;
        };
        tokio::select! {
            () = stopping => {}
            _ = interrupts.next() => {}
        }
        let Some(pins) = runtime.pins().cloned() else {
            return;
        };
        for change in pins.take_untold() {
            self.screen.note(&format!(
                "{}. See it: steadyhand tools changes",
                change.words()
            ));
        }
        let _ = tokio::task::spawn_blocking(move || pins.save()).await;
    }

    /// What is left of `--timeout`.
    fn time_left(&self) -> Option<Duration> {
        let limit = self.global.timeout?;
        Some(limit.saturating_sub(self.started.elapsed()))
    }

    /// Tells what is missing from the tools, and why.
    fn tell_problems(&self, runtime: &Runtime) {
        for problem in &runtime.generation().problems {
            self.screen.note(&problem.to_string());
        }
    }

    fn block_on(&self, command: impl Future<Output = Result<(), Failed>>) -> Result<(), Failed> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| Failed::unexpected(format!("no threads to run on: {error}")))?;
        let ended = runtime.block_on(command);
        // Blocking work that is left over (a name being looked up) is not waited for.
        runtime.shutdown_background();
        ended
    }
}

/// What the state folder has, wherever it is.
const STATE_FOLDERS: [&str; 15] = [
    "access",
    "audit",
    "conversations",
    "documents",
    "history",
    "logins",
    "markers",
    "mcp",
    "models",
    "openapi",
    "pins",
    "proxy-cases",
    "proxy-conversations",
    "refused",
    "servers",
];

/// Something was not done, because it belongs into the audit log.
fn not_written_down(why: &str) -> Failed {
    let message =
        format!("nothing was done, because it could not be written into the audit log: {why}");
    Failed::new(Exit::Unexpected, "audit_unavailable", message)
        .help("Check the state folder; [audit] required = false lets you act without the log")
}

/// Who uses this command, as far as the machine says.
fn user_name() -> Option<String> {
    let mut named = ["SUDO_USER", "USER", "LOGNAME"]
        .iter()
        .filter_map(|name| std::env::var(name).ok());
    let named = named.find(|name| !name.is_empty());
    #[cfg(unix)]
    let named = named.or_else(|| Some(format!("uid {}", rustix::process::getuid().as_raw())));
    named
}

/// The name of this machine.
fn host_name() -> String {
    let told = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let named = ["HOSTNAME", "COMPUTERNAME"].map(|name| std::env::var(name).ok());
    let mut names = told.into_iter().chain(named.into_iter().flatten());
    names
        .find_map(|name| Some(name.trim().to_owned()).filter(|name| !name.is_empty()))
        .unwrap_or_else(|| "this machine".to_owned())
}

/// The file of a history: where the configuration says, or one of its own in the state folder.
fn history_path(
    surroundings: &Surroundings,
    state: &Path,
    configuration: &Configuration,
    settings: &HistorySettings,
) -> PathBuf {
    match &settings.path {
        // A link that somebody has configured is meant, be it the file or its folder.
        Some(path) => {
            let path = surroundings.path(path, &configuration.folder);
            let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
            let in_folder = folder.zip(path.file_name());
            let in_folder = in_folder.map(|(folder, name)| folder.join(name));
            let found = path.canonicalize().ok().or(in_folder);
            found.unwrap_or(path)
        }
        None => {
            let name = presence::key_of(configuration.file.as_deref());
            state.join("history").join(format!("{name}.db"))
        }
    }
}

/// What was remembered is on the disk, if the disk is quick. If it cannot be, that is said.
async fn written(session: &Session<'_>, history: Option<History>) {
    let Some(history) = history else {
        return;
    };
    let flush = tokio::task::spawn_blocking(move || {
        history.flush(WRITING_MAX);
        history.health()
    });
    if let Ok(health) = flush.await
        && health.state == HealthState::Degraded
        && let Some(reason) = health.reason
    {
        session
            .screen
            .note(&format!("It is not written down: {reason}"));
    }
}

/// The signals that ask the program to end. From the moment this is made, none is missed.
struct Interrupts {
    #[cfg(unix)]
    signals: [Option<tokio::signal::unix::Signal>; 3],
}

impl Interrupts {
    fn listen() -> Interrupts {
        Interrupts {
            #[cfg(unix)]
            signals: {
                use tokio::signal::unix::{SignalKind, signal};
                // The last one: the terminal is gone, and what was started on it must not stay behind.
                [
                    SignalKind::interrupt(),
                    SignalKind::terminate(),
                    SignalKind::hangup(),
                ]
                .map(|kind| signal(kind).ok())
            },
        }
    }

    /// For a program to which a hangup means something else.
    fn without_hangup() -> Interrupts {
        #[allow(unused_mut, reason = "only Unix has signals")]
        let mut interrupts = Interrupts::listen();
        #[cfg(unix)]
        {
            interrupts.signals[2] = None;
        }
        interrupts
    }

    /// The exit code of the next one.
    async fn next(&mut self) -> u8 {
        #[cfg(unix)]
        {
            let [interrupt, terminate, hangup] = &mut self.signals;
            tokio::select! {
                () = received(interrupt) => 130,
                () = received(terminate) => 143,
                () = received(hangup) => 129,
            }
        }
        #[cfg(not(unix))]
        match tokio::signal::ctrl_c().await {
            Ok(()) => 130,
            Err(_) => std::future::pending().await,
        }
    }
}

#[cfg(unix)]
async fn received(signal: &mut Option<tokio::signal::unix::Signal>) {
    if let Some(signal) = signal
        && signal.recv().await.is_some()
    {
        return;
    }
    std::future::pending::<()>().await;
}
