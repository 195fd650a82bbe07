//! `steadyhand models`: which models there are, and whether one can use tools.

use clap::Subcommand;
use clap_complete::engine::ArgValueCandidates;
use serde_json::{Value, json};

use super::error::Failed;
use super::{Interrupts, Session, complete, value};
use steadyhand_config::document::plain;
use steadyhand_runtime::models::check::{self, Grade, TASKS, TaskResult};
use steadyhand_runtime::models::checked::Checked;
use steadyhand_runtime::models::{self, Listed};

#[derive(Subcommand)]
pub(super) enum ModelsCommand {
    /// The models of the configuration, and how they did at their last check
    List,
    /// Give a model seven fixed tasks with tools, and show how it does; remembered per model
    Check {
        /// The model: a name of [models], provider/model, or demo
        #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::model_names))]
        model: Option<String>,
        /// Only this task
        #[arg(long, value_name = "TASK", value_parser = task_names())]
        only: Option<String>,
    },
}

fn task_names() -> Vec<&'static str> {
    TASKS.iter().map(|task| task.name).collect()
}

pub(super) async fn run(
    session: &Session<'_>,
    command: Option<&ModelsCommand>,
) -> Result<(), Failed> {
    match command.unwrap_or(&ModelsCommand::List) {
        ModelsCommand::List => list(session),
        ModelsCommand::Check { model, only } => {
            check(session, model.as_deref(), only.as_deref()).await
        }
    }
}

fn list(session: &Session<'_>) -> Result<(), Failed> {
    let configuration = session.configuration()?;
    let state = session.state();
    let models = models::list(&configuration);
    let checked = |one: &Listed| Checked::of(&state, &one.name);
    if session.screen.json {
        let models: Vec<Value> = models
            .iter()
            .map(|one| {
                json!({
                    "name": one.name,
                    "provider": one.provider,
                    "model": one.model,
                    "default": one.is_default,
                    "checked": checked(one),
                })
            })
            .collect();
        session.screen.json(&json!({ "models": models }));
        return Ok(());
    }
    let mut rows = Vec::new();
    if session.screen.stdout_is_terminal {
        let head = ["MODEL", "PROVIDER", "NAME THERE", "DEFAULT", "CHECK"];
        rows.push(head.map(str::to_owned).to_vec());
    }
    for one in &models {
        let check = match checked(one) {
            Some(checked) => format!("{} of {} tasks", checked.passed, checked.tasks),
            None => "-".to_owned(),
        };
        let default = if one.is_default { "default" } else { "-" };
        rows.push(vec![
            one.name.clone(),
            one.provider.to_owned(),
            one.model.clone().unwrap_or_else(|| "-".to_owned()),
            default.to_owned(),
            check,
        ]);
    }
    session.screen.answer(&value::columns(session.screen, rows));
    session
        .screen
        .note("steadyhand models check --model NAME gives one its tasks");
    Ok(())
}

async fn check(
    session: &Session<'_>,
    model: Option<&str>,
    only: Option<&str>,
) -> Result<(), Failed> {
    let mut interrupts = Interrupts::listen();
    let configuration = session.configuration()?;
    let chosen = models::choose(&configuration, &session.surroundings, model)?;
    let tasks: Vec<&check::Task> = TASKS
        .iter()
        .filter(|task| only.is_none_or(|only| only == task.name))
        .collect();
    let note = chosen.model.note().map(|note| format!(" ({note})"));
    session.screen.note(&format!(
        "{}{}: {}",
        chosen.model.name(),
        note.unwrap_or_default(),
        value::counted(tasks.len(), "task")
    ));
    let progress = session.screen.progress();
    let mut results: Vec<TaskResult> = Vec::new();
    for (done, task) in tasks.iter().enumerate() {
        progress.step("models check", done as u64, tasks.len() as u64);
        let running = check::run(task, &chosen.model, chosen.recover_calls);
        let limit = session.time_left();
        let result = tokio::select! {
            result = running => result?,
            code = interrupts.next() => return Err(Failed::interrupted(code)),
            () = passed(limit) => return Err(Failed::timed_out(session.global.timeout.unwrap_or_default())),
        };
        results.push(result);
    }
    progress.finished("models check");
    let provider = chosen.model.provider().as_str();
    let checked = Checked::now(&chosen.name, chosen.model.name(), provider, results);
    if only.is_none()
        && let Err(error) = checked.keep(&session.state())
    {
        session
            .screen
            .note(&format!("It is not remembered: {}", plain(&error)));
    }
    show(session, &checked);
    Ok(())
}

async fn passed(limit: Option<std::time::Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

fn show(session: &Session<'_>, checked: &Checked) {
    if session.screen.json {
        session.screen.json(checked);
        return;
    }
    let mut rows = Vec::new();
    if session.screen.stdout_is_terminal {
        let head = ["TASK", "ABOUT", "RESULT", "TOOK", "WHY"];
        rows.push(head.map(str::to_owned).to_vec());
    }
    for result in &checked.results {
        let about = TASKS.iter().find(|task| task.name == result.task);
        let took = std::time::Duration::from_millis(result.elapsed_ms);
        rows.push(vec![
            result.task.clone(),
            about.map_or("", |task| task.about).to_owned(),
            word(result.grade).to_owned(),
            value::duration(took),
            result.reason.clone(),
        ]);
    }
    session.screen.answer(&value::columns(session.screen, rows));
    session.screen.note(&format!(
        "{}: {} of {} tasks passed",
        checked.model, checked.passed, checked.tasks
    ));
}

fn word(grade: Grade) -> &'static str {
    match grade {
        Grade::Passed => "passed",
        Grade::Partly => "partly",
        Grade::Failed => "failed",
    }
}
