//! `volume`: how loud this machine is. Reads and sets it through a program that the system has.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use steadyhand::{Category, Effect, Handler, Invocation, Output, Tool, ToolError};

use crate::source::Context;
use crate::source::command::{Inherit, LeftBehind, Limits, Program, environment, run_well};
use steadyhand_config::extensions::Fault;
use steadyhand_config::template::{Template, Values};

/// Where the sound server is; without these its clients cannot find it.
const NEEDED: [&str; 5] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "PIPEWIRE_REMOTE",
    "PIPEWIRE_RUNTIME_DIR",
    "PULSE_SERVER",
    "XDG_RUNTIME_DIR",
];
const STEP: i64 = 5;

/// Which program knows the volume.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeSettings {
    /// The program; the first of wpctl, pactl and amixer that is there when absent.
    pub backend: Option<Backend>,
    /// Where the program is, if not on PATH.
    pub program: Option<String>,
    /// The output device; the default one when absent. For amixer the name of a control, such as Master.
    pub device: Option<String>,
    /// The commands of the backend "custom".
    pub commands: Option<VolumeCommands>,
}

/// A program that knows the volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// PipeWire.
    Wpctl,
    /// PulseAudio.
    Pactl,
    /// ALSA.
    Amixer,
    /// The programs of `commands`.
    Custom,
}

/// Commands for a system that none of the known programs fits.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeCommands {
    /// Prints the level in percent, and the word "muted" when it is.
    pub get: Vec<String>,
    /// Sets the level; {level} stands for 0 to 100.
    pub set: Vec<String>,
    /// Mutes.
    pub mute: Vec<String>,
    /// Ends that.
    pub unmute: Vec<String>,
}

/// The tool.
pub fn tool(settings: &VolumeSettings, context: &Context) -> Result<Tool, Fault> {
    check(settings)?;
    let volume = Volume {
        settings: settings.clone(),
        folder: context.folder.clone(),
    };
    let schema = json!({
        "type": "object",
        "properties": {
            "action": {
                "type": "string",
                "enum": ["get", "set", "up", "down", "mute", "unmute", "toggle"],
                "description": "toggle mutes, or ends that"
            },
            "level": {"type": "integer", "minimum": 0, "maximum": 100, "description": "percent, for set"},
            "step": {"type": "integer", "minimum": 1, "maximum": 100, "default": STEP, "description": "percent, for up and down"}
        },
        "required": ["action"]
    });
    let description = "Get or change the sound volume of this machine; answers with the level in percent and whether it is muted";
    let tool = Tool::new("volume", description, schema, Arc::new(volume));
    // Up twice is not up once.
    Ok(tool.of_kind("builtin").not_safe_to_repeat())
}

/// What is wrong with the settings, if anything is.
pub fn check(settings: &VolumeSettings) -> Result<(), Fault> {
    let fault = |at: &str, message: &str, help: &str| Fault {
        at: at.to_owned(),
        message: message.to_owned(),
        help: Some(help.to_owned()),
    };
    match (settings.backend, &settings.commands) {
        (Some(Backend::Custom), None) => Err(fault(
            "/commands",
            "is missing: the backend \"custom\" needs its commands",
            "write get, set, mute and unmute, each a list such as [\"my-mixer\", \"--set\", \"{level}\"]",
        )),
        (Some(Backend::Custom), Some(_)) if settings.program.is_some() => Err(fault(
            "/program",
            "is not used by the backend \"custom\"",
            "write the program's path in `commands`",
        )),
        (Some(Backend::Custom), Some(commands)) => {
            let all = [
                ("/commands/get", &commands.get),
                ("/commands/set", &commands.set),
                ("/commands/mute", &commands.mute),
                ("/commands/unmute", &commands.unmute),
            ];
            for (at, command) in all {
                let help = "write the program and its arguments, such as [\"my-mixer\", \"--get\"]";
                if command.first().is_none_or(String::is_empty) {
                    return Err(fault(at, "is empty", help));
                }
                for element in command {
                    let template =
                        Template::parse(element).map_err(|error| fault(at, &error, help))?;
                    if template.names().iter().any(|name| *name != "level") {
                        return Err(fault(
                            at,
                            "has a place for something else than {level}",
                            help,
                        ));
                    }
                }
            }
            Ok(())
        }
        (_, Some(_)) => Err(fault(
            "/commands",
            "is for the backend \"custom\" only",
            "set backend = \"custom\", or remove it",
        )),
        (None, None) if settings.program.is_some() => Err(fault(
            "/program",
            "nobody knows how to talk to it",
            "say which backend it is: \"wpctl\", \"pactl\" or \"amixer\"",
        )),
        (_, None) => Ok(()),
    }
}

struct Volume {
    settings: VolumeSettings,
    folder: PathBuf,
}

/// One thing to ask of the backend.
#[derive(Clone, Copy)]
enum Step {
    Read,
    Level(i64),
    Muted(bool),
}

/// How loud it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Loudness {
    level: i64,
    muted: bool,
}

impl Handler for Volume {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        self.act(invocation.args).boxed()
    }
}

impl Volume {
    async fn act(&self, args: &Value) -> Result<Output, ToolError> {
        let backend = self.backend()?;
        // Asking changes nothing.
        let before = async || {
            let read = self.read(backend).await;
            read.map_err(|error| error.effect(Effect::None))
        };
        let step = whole(args.get("step")).unwrap_or(STEP);
        let change = match args.get("action").and_then(Value::as_str).unwrap_or("get") {
            "set" => Step::Level(whole(args.get("level")).ok_or_else(|| {
                ToolError::of(Category::Validation, "Invalid parameters: missing 'level'")
            })?),
            "up" => {
                let now = before().await?.level;
                // Some systems go beyond 100: up must not turn that down.
                Step::Level((now + step).min(100).max(now))
            }
            "down" => Step::Level((before().await?.level - step).max(0)),
            "mute" => Step::Muted(true),
            "unmute" => Step::Muted(false),
            "toggle" => Step::Muted(!before().await?.muted),
            _ => return before().await.map(Loudness::output),
        };
        self.ask(backend, change).await?;
        let after = self.read(backend).await;
        after.map(Loudness::output).map_err(ToolError::result_lost)
    }

    fn backend(&self) -> Result<Backend, ToolError> {
        if let Some(backend) = self.settings.backend {
            return Ok(backend);
        }
        let known = [Backend::Wpctl, Backend::Pactl, Backend::Amixer];
        let found = known
            .into_iter()
            .find(|known| which::which(known.name()).is_ok());
        found.ok_or_else(|| {
            ToolError::answer("no program that knows the volume is on PATH; install wpctl (PipeWire), pactl (PulseAudio) or amixer (ALSA), or set `backend = \"custom\"` with `commands`").never_started()
        })
    }

    async fn read(&self, backend: Backend) -> Result<Loudness, ToolError> {
        let printed = self.ask(backend, Step::Read).await?;
        let read = match backend {
            Backend::Wpctl => read_wpctl(&printed),
            Backend::Pactl => read_percent(&printed, "Mute: yes"),
            Backend::Amixer => read_percent(&printed, "[off]"),
            Backend::Custom => read_custom(&printed),
        };
        read.ok_or_else(|| {
            let began: String = printed.chars().take(80).collect();
            ToolError::new(format!(
                "{} did not say how loud it is; it printed {began:?}",
                backend.name()
            ))
        })
    }

    /// Runs what a step takes, one after the other; what they print.
    async fn ask(&self, backend: Backend, step: Step) -> Result<String, ToolError> {
        let mut printed = String::new();
        for mut command in self.commands(backend, step) {
            let name = command.remove(0);
            let own = BTreeMap::from([("LC_ALL".to_owned(), "C".into())]);
            let program = Program {
                name: self.settings.program.clone().unwrap_or(name),
                base: self.folder.clone(),
                args: command,
                folder: self.folder.clone(),
                env: environment(&Inherit::Names(NEEDED.map(str::to_owned).to_vec()), &own),
                stdin: None,
                limits: Limits::from(None),
                left_behind: LeftBehind::Stop,
            };
            printed.push_str(&run_well(program).await?);
            printed.push('\n');
        }
        Ok(printed)
    }

    /// The commands of one step: the program first.
    fn commands(&self, backend: Backend, step: Step) -> Vec<Vec<String>> {
        let device = self.settings.device.as_deref();
        let line = |elements: &[&str]| {
            let elements = std::iter::once(backend.name()).chain(elements.iter().copied());
            elements.map(str::to_owned).collect()
        };
        let flag = |muted: bool| if muted { "1" } else { "0" };
        match backend {
            Backend::Wpctl => {
                let device = device.unwrap_or("@DEFAULT_AUDIO_SINK@");
                vec![match step {
                    Step::Read => line(&["get-volume", device]),
                    Step::Level(level) => line(&["set-volume", device, &format!("{level}%")]),
                    Step::Muted(muted) => line(&["set-mute", device, flag(muted)]),
                }]
            }
            Backend::Pactl => {
                let device = device.unwrap_or("@DEFAULT_SINK@");
                match step {
                    Step::Read => vec![
                        line(&["get-sink-volume", device]),
                        line(&["get-sink-mute", device]),
                    ],
                    Step::Level(level) => {
                        vec![line(&["set-sink-volume", device, &format!("{level}%")])]
                    }
                    Step::Muted(muted) => vec![line(&["set-sink-mute", device, flag(muted)])],
                }
            }
            Backend::Amixer => {
                let device = device.unwrap_or("Master");
                vec![match step {
                    Step::Read => line(&["get", device]),
                    Step::Level(level) => line(&["set", device, &format!("{level}%")]),
                    Step::Muted(true) => line(&["set", device, "mute"]),
                    Step::Muted(false) => line(&["set", device, "unmute"]),
                }]
            }
            Backend::Custom => self
                .settings
                .commands
                .iter()
                .map(|own| own.line(step))
                .collect(),
        }
    }
}

impl VolumeCommands {
    fn line(&self, step: Step) -> Vec<String> {
        let (command, args) = match step {
            Step::Read => (&self.get, json!({})),
            Step::Level(level) => (&self.set, json!({"level": level})),
            Step::Muted(true) => (&self.mute, json!({})),
            Step::Muted(false) => (&self.unmute, json!({})),
        };
        let values = Values::new(&args, &Value::Null);
        let fill = |element: &String| {
            let template = Template::parse(element).ok()?;
            template
                .fill(&values, |value| Ok::<_, ()>(value.to_owned()))
                .ok()?
        };
        command.iter().filter_map(fill).collect()
    }
}

impl Backend {
    fn name(self) -> &'static str {
        match self {
            Backend::Wpctl => "wpctl",
            Backend::Pactl => "pactl",
            Backend::Amixer => "amixer",
            Backend::Custom => "the custom command",
        }
    }
}

impl Loudness {
    fn output(self) -> Output {
        Output::json(json!({"level": self.level, "muted": self.muted}))
    }
}

/// `Volume: 0.45 [MUTED]`
fn read_wpctl(printed: &str) -> Option<Loudness> {
    let rest = printed.split("Volume:").nth(1)?;
    let level: f64 = rest.split_whitespace().next()?.parse().ok()?;
    Some(Loudness {
        level: (level * 100.0).round() as i64,
        muted: rest.contains("[MUTED]"),
    })
}

/// `Front Left: Playback 29491 [45%] [off]`, `Volume: front-left: 29491 /  45% / …`
fn read_percent(printed: &str, muted: &str) -> Option<Loudness> {
    let (before, _) = printed.split_once('%')?;
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next()?;
    Some(Loudness {
        level: digits.parse().ok()?,
        muted: printed.contains(muted),
    })
}

/// `45`, `45%`, `45 muted`
fn read_custom(printed: &str) -> Option<Loudness> {
    let number = printed
        .split(|c: char| !c.is_ascii_digit() && c != '.')
        .find_map(|word| word.parse::<f64>().ok())?;
    let mut words = printed.split(|c: char| !c.is_ascii_alphabetic());
    Some(Loudness {
        level: number.round() as i64,
        muted: words.any(|word| word.eq_ignore_ascii_case("muted")),
    })
}

/// 45 and 45.0 are the same integer in JSON Schema.
fn whole(value: Option<&Value>) -> Option<i64> {
    let value = value?;
    value
        .as_i64()
        .or_else(|| value.as_f64().map(|number| number.round() as i64))
}
