//! A program on this machine as a tool. No shell: each element of `command` reaches it as it is.

mod answer;
mod arguments;
mod captured;
mod environment;
mod error;
mod limits;
mod line;
mod run;
mod script;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use steadyhand::{Handler, Invocation, Output, Tool, ToolError};

use super::{Context, Fault, Fixed, Settings, Source};
use steadyhand_config::SecretText;
use steadyhand_config::template::Values;

pub use answer::OutputMode;
pub use arguments::Part;
pub use environment::Inherit;
pub use environment::environment;
pub use limits::CommandLimits;
pub use limits::Limits;
use line::Line;
use run::run;
pub use run::{LeftBehind, Program};
use steadyhand_process::Exit;
pub use steadyhand_process::{adopt_orphans, settle};

/// A program on this machine.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandSettings {
    /// The program and its arguments; no shell. `{name}` is the place of an argument, `{name...}` of a list.
    /// A list such as ["-n", "{count}"] is left out when `count` is absent. A text is a program without arguments, and is
    /// never split into words. A place inside a script that an interpreter runs (`sh -c`, `python -c`, `ssh`) is refused.
    #[serde(deserialize_with = "arguments::parts")]
    #[schemars(schema_with = "arguments::parts_schema")]
    pub command: Vec<Part>,
    /// What models are told about it.
    pub description: Option<String>,
    /// The JSON Schema of the arguments, or the path of a file that holds it; made from the places when absent.
    #[serde(default)]
    #[schemars(schema_with = "super::input_schema")]
    pub input: Option<Value>,
    /// The folder it runs in; the folder of this file when absent.
    pub cwd: Option<String>,
    /// Variables of its environment.
    #[serde(default)]
    pub env: BTreeMap<String, SecretText>,
    /// Names of variables it gets of Steadyhand's own environment, besides HOME, LANG, LC_*, LOGNAME, PATH,
    /// SHELL, TERM, TMPDIR, TZ and USER; or "all".
    #[serde(default)]
    pub inherit_env: Inherit,
    /// A text it reads on its standard input, with places for arguments; empty when absent.
    pub stdin: Option<SecretText>,
    /// Hands it the arguments of the call as JSON on its standard input.
    #[serde(default)]
    pub stdin_json: bool,
    /// How its output is read.
    #[serde(default)]
    pub output: OutputMode,
    /// Exit codes that mean success.
    #[serde(default = "only_zero")]
    pub ok: Vec<u8>,
    /// Arguments whose values may begin with a dash even where the program could take them for an option.
    #[serde(default)]
    pub allow_dash: Vec<String>,
    /// What happens to processes that still run when the program itself has ended.
    #[serde(default)]
    pub background: Background,
    /// How much it may use.
    pub limits: Option<CommandLimits>,
}

/// What happens to processes that a program leaves behind when it ends by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Background {
    /// They are stopped: nothing survives a call.
    #[default]
    Stop,
    /// They go on: for programs that start something, such as `xdg-open`. A time-out stops them even so.
    Keep,
}

impl Settings for CommandSettings {
    const KIND: &'static str = "command";
    const TEMPLATES: &'static [&'static str] = &["command", "stdin"];

    fn check(&self) -> Vec<Fault> {
        let mut faults = self.plain_faults();
        match Line::parse(self) {
            Err(fault) => faults.push(fault),
            Ok(line) => {
                faults.extend(script::fault(self));
                if let Some(schema) = &self.input {
                    faults.extend(line.faults_with(schema));
                }
            }
        }
        faults
    }

    fn build(self, name: &str, context: &Context) -> Result<Arc<dyn Source>, Fault> {
        if let Some(fault) = self.check().into_iter().next() {
            return Err(fault);
        }
        let line = Line::parse(&self)?;
        let schema = match &self.input {
            Some(schema) => schema.clone(),
            None => arguments::schema_of(line.places().into_iter()),
        };
        let description = match &self.description {
            Some(text) => text.clone(),
            None => format!("Runs the program {}", line.program),
        };
        let used: Vec<String> = line
            .places()
            .iter()
            .map(|place| place.name.to_owned())
            .collect();
        let gets_all = self.stdin_json;
        let handler = CommandHandler {
            line,
            settings: self,
            base: context.folder.clone(),
            schema: schema.clone(),
        };
        let tool = Tool::new(name, description, schema, Arc::new(handler)).of_kind("command");
        let tool = match gets_all {
            true => tool,
            false => tool.uses_only(used),
        };
        // What a program does cannot be seen from outside (SPEC D7).
        Ok(Arc::new(Fixed::new(name, vec![tool.not_safe_to_repeat()])))
    }
}

impl CommandSettings {
    fn plain_faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut fault = |at: String, message: &str, help: &str| {
            faults.push(Fault {
                at,
                message: message.to_owned(),
                help: Some(help.to_owned()),
            });
        };
        if self.ok.is_empty() {
            fault(
                "/ok".to_owned(),
                "no exit code means success",
                "leave it out for [0]",
            );
        }
        if self.stdin.is_some() && self.stdin_json {
            let help = "keep `stdin` for a text of your own, or `stdin_json` for the arguments";
            fault(
                "/stdin".to_owned(),
                "`stdin` and `stdin_json` exclude each other",
                help,
            );
        }
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.expose().contains('\0') {
                let at = format!("/env/{}", name.replace('~', "~0").replace('/', "~1"));
                fault(
                    at,
                    "cannot be a variable: an empty name, a = in it, or a NUL byte",
                    "rename it",
                );
            }
        }
        faults
    }
}

struct CommandHandler {
    line: Line,
    settings: CommandSettings,
    base: PathBuf,
    schema: Value,
}

impl Handler for CommandHandler {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        self.call(invocation.args).boxed()
    }
}

impl CommandHandler {
    async fn call(&self, args: &Value) -> Result<Output, ToolError> {
        let settings = &self.settings;
        let finished = run(self.program(args)?).await?;
        let hide = |text: String| environment::hide_secrets(text, &settings.env);
        match finished.exit {
            Exit::Code(code) if settings.ok.iter().any(|ok| i32::from(*ok) == code) => {
                answer::answer(settings.output, &self.line.program, &finished.stdout, hide)
            }
            exit => {
                let cpu = Limits::from(settings.limits).cpu;
                let words = hide(finished.last_words());
                Err(error::ended_badly(&self.line.program, exit, &words, cpu))
            }
        }
    }

    fn program(&self, args: &Value) -> Result<Program, ToolError> {
        let settings = &self.settings;
        let values = Values::new(args, &self.schema);
        let stdin = match &self.line.stdin {
            Some(template) => {
                template.fill(&values, |value| Ok::<_, ToolError>(value.to_owned()))?
            }
            None => settings.stdin_json.then(|| args.to_string()),
        };
        Ok(Program {
            name: self.line.program.clone(),
            base: self.base.clone(),
            args: self.line.arguments.fill(&values)?,
            folder: self.base.join(settings.cwd.as_deref().unwrap_or("")),
            env: environment(&settings.inherit_env, &settings.env),
            stdin: stdin.map(String::into_bytes),
            limits: settings.limits.into(),
            left_behind: match settings.background {
                Background::Stop => LeftBehind::Stop,
                Background::Keep => LeftBehind::Keep,
            },
        })
    }
}

/// Runs a program that must end with 0: what it printed.
pub async fn run_well(program: Program) -> Result<String, ToolError> {
    let name = program.name.clone();
    let finished = run(program).await?;
    match finished.exit {
        Exit::Code(0) => Ok(finished.stdout.text().text),
        exit => Err(error::ended_badly(
            &name,
            exit,
            &finished.last_words(),
            None,
        )),
    }
}

fn only_zero() -> Vec<u8> {
    vec![0]
}
