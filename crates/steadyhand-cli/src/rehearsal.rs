//! `--record`, `--replay`, `--chaos`: rehearsals for whoever tests an agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::Session;
use super::error::{Exit, Failed};
use super::value::counted;
use steadyhand_runtime::cassette::{Recording, Summary, Tape};
use steadyhand_runtime::chaos::Chaos;
use steadyhand_runtime::runtime::{Options, Runtime};

#[derive(Args, Clone)]
#[command(next_help_heading = "Rehearsals")]
pub(super) struct RehearsalArgs {
    /// Keep every call and its outcome in this file, secrets removed; one that is there is continued
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record: Option<PathBuf>,
    /// Answer calls from a file that --record wrote; no tool is run, no server started
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Let tools fail, hang, take long or answer nonsense, as this TOML file says
    #[arg(long, value_name = "PLAN")]
    chaos: Option<PathBuf>,
    /// Another seed than the plan's
    #[arg(long, value_name = "NUMBER", requires = "chaos")]
    seed: Option<u64>,
}

/// What was read of the files.
pub(super) struct Rehearsal {
    record: Option<PathBuf>,
    tape: Option<Arc<Tape>>,
    chaos: Option<Arc<Chaos>>,
}

impl RehearsalArgs {
    /// Whether it must be this process that runs the calls.
    pub(super) fn is_asked_for(&self) -> bool {
        self.record.is_some() || self.replay.is_some() || self.chaos.is_some()
    }

    /// Reads the files; what is wrong with one is said before anything is started.
    pub(super) fn read(&self, session: &Session<'_>) -> Result<Rehearsal, Failed> {
        let trust = session.surroundings.trust();
        let here = |path: &PathBuf| session.surroundings.current.join(path);
        let tape = self.replay.as_ref().map(|path| {
            let tape = Tape::read(&here(path), trust).map_err(|reason| no_tape(path, &reason))?;
            Ok::<_, Failed>(Arc::new(tape.called(path)))
        });
        let chaos = self.chaos.as_ref().map(|path| {
            let read = Chaos::read(&here(path), self.seed, trust);
            read.map_err(|reason| no_plan(path, &reason))
        });
        let rehearsal = Rehearsal {
            record: self.record.as_ref().map(here),
            tape: tape.transpose()?,
            chaos: chaos.transpose()?,
        };
        rehearsal.tell(session);
        Ok(rehearsal)
    }
}

impl Rehearsal {
    fn tell(&self, session: &Session<'_>) {
        let screen = session.screen;
        if let Some(tape) = &self.tape {
            let (tools, calls) = tape.size();
            let file = tape.name();
            screen.note(&format!(
                "Replay: {} with {} from {file}. No tool is run.",
                counted(tools, "tool"),
                counted(calls, "recorded call"),
            ));
            for remark in tape.remarks() {
                screen.note(&format!("Replay: {file}: {remark}"));
            }
        }
        if let Some(chaos) = &self.chaos {
            let plan = chaos.in_words();
            screen.note(&format!(
                "Chaos: {plan}. Tools fail, hang or take long on purpose; what is injected says [chaos]."
            ));
        }
    }

    /// What is told on purpose must not outlive the rehearsal: no key is settled with it, no definition kept.
    pub(super) fn apply(&self, options: &mut Options) {
        if self.tape.is_some() || self.chaos.is_some() {
            options.keys = None;
        }
        if self.tape.is_some() {
            options.pins = None;
        }
        options.replay.clone_from(&self.tape);
        options.chaos.clone_from(&self.chaos);
    }

    /// Begins to record, if that is asked for.
    pub(super) fn begin(&self, session: &Session<'_>, runtime: &Runtime) -> Result<Take, Failed> {
        let recording = self.record.as_ref().map(|path| {
            let begun = Recording::begin(path, runtime);
            let begun = begun.map_err(|reason| not_recorded(path, &reason))?;
            let shown = session.surroundings.shown(path);
            session
                .screen
                .note(&format!("Recording to {}.", shown.display()));
            Ok::<_, Failed>((begun, path.clone()))
        });
        Ok(Take {
            recording: recording.transpose()?,
            tape: self.tape.clone(),
            chaos: self.chaos.clone(),
        })
    }
}

/// A rehearsal that goes on.
pub(super) struct Take {
    recording: Option<(Recording, PathBuf)>,
    tape: Option<Arc<Tape>>,
    chaos: Option<Arc<Chaos>>,
}

impl Take {
    /// Waits for what is still to be written, and says what there was.
    pub(super) async fn end(self, session: &Session<'_>) {
        let screen = session.screen;
        if let Some((recording, path)) = self.recording {
            let summary = recording.finish().await;
            let shown = session.surroundings.shown(&path);
            screen.note(&recorded(&summary, &shown));
        }
        if let Some(tape) = &self.tape {
            let (answered, unknown) = tape.used();
            let answered = counted(answered as usize, "call");
            screen.note(&match unknown {
                0 => format!("Replay: {answered} answered, none was missing."),
                _ => format!("Replay: {answered} answered, {unknown} not in the cassette."),
            });
        }
        if let Some(chaos) = &self.chaos {
            let (attempts, struck) = chaos.counts();
            let attempts = counted(attempts as usize, "attempt");
            let plan = chaos.in_words();
            screen.note(&format!("Chaos ({plan}): {struck} of {attempts} struck."));
        }
    }
}

fn recorded(summary: &Summary, file: &Path) -> String {
    let (calls, file) = (counted(summary.calls as usize, "call"), file.display());
    match &summary.reason {
        None => format!("Recorded {calls} in {file}."),
        Some(reason) => format!(
            "Recorded {calls} in {file}; {} are missing from it: {reason}.",
            summary.missing
        ),
    }
}

fn no_tape(path: &Path, reason: &str) -> Failed {
    let message = format!("{} cannot be replayed: {reason}", path.display());
    Failed::new(Exit::Usage, "cassette_unusable", message)
        .help("Record one: steadyhand serve --record FILE, and make the calls")
}

fn no_plan(path: &Path, reason: &str) -> Failed {
    let message = format!("{} is no plan of chaos", path.display());
    Failed::new(Exit::Usage, "chaos_plan_invalid", message)
        .evidence("why", reason.trim_end())
        .help("A plan is version = 1 and [[rule]] tables with tools, chance or every, and one of delay, fail, hang, garbage\ndocs/testing-agents.md has examples")
}

fn not_recorded(path: &Path, reason: &str) -> Failed {
    let message = format!("{} cannot be recorded to: {reason}", path.display());
    Failed::new(Exit::Usage, "cassette_unusable", message)
        .help("Name a new file, or a cassette that --record wrote before")
}
