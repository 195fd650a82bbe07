//! Models: is there a key, and does something answer. Those on this machine are asked, others with `--online`.

use futures_util::future::join_all;
use steadyhand_models::ModelError;

use super::Patient;
use super::check::{Check, Group, State};
use super::servers::is_here;
use steadyhand_runtime::models::reach::{Answer, Reach, reach};
use steadyhand_runtime::models::{Listed, list};

/// Names of models that are listed where the one that is meant is not there.
const NAMED_MAX: usize = 5;

pub(super) async fn check(patient: Patient<'_>) -> Vec<Check> {
    let Some(configuration) = patient.configuration else {
        return Vec::new();
    };
    let models = list(configuration);
    join_all(models.iter().map(|model| one(patient, model))).await
}

async fn one(patient: Patient<'_>, listed: &Listed) -> Check {
    let check = |state: State, text: String| {
        Check::new(Group::Models, "models.reach", &listed.name, state, text)
            .detail("provider", listed.provider.into())
    };
    let Some(configuration) = patient.configuration.cloned() else {
        return check(State::Info, "not looked at".to_owned());
    };
    let (surroundings, name) = (patient.session.surroundings.clone(), listed.name.clone());
    // Files and key stores are read.
    let looking =
        tokio::task::spawn_blocking(move || reach(&configuration, &surroundings, &name)).await;
    let reach = match looking {
        Ok(Ok(Some(reach))) => reach,
        Ok(Ok(None)) => return check(State::Ok, "a fixed script: no key, no network".to_owned()),
        Ok(Err(error)) => return cannot(&error, check),
        Err(error) => return check(State::Note, format!("not looked at: {error}")),
    };
    let key = match reach.key {
        Some(_) => "key set, ",
        None => "",
    };
    let who = format!("{} {}", reach.dialect, reach.model);
    if !is_here(reach.url()) && !patient.online {
        return check(
            State::Ok,
            format!("{who}: {key}not contacted (use --online)"),
        );
    }
    let answer = reach.ask().await;
    answered(&reach, &answer, check)
}

fn cannot(error: &ModelError, check: impl Fn(State, String) -> Check) -> Check {
    let help = error.help.clone().unwrap_or_default();
    check(State::Fix, error.message.clone()).next(help)
}

fn answered(reach: &Reach, answer: &Answer, check: impl Fn(State, String) -> Check) -> Check {
    let (host, model) = (reach.host(), &reach.model);
    let who = format!("{} {model}", reach.dialect);
    match answer {
        Answer::Models(models) if models.is_empty() || has(models, model) => {
            check(State::Ok, format!("{who}: answers at {host}"))
        }
        Answer::Models(models) => {
            let shown: Vec<&str> = models.iter().take(NAMED_MAX).map(String::as_str).collect();
            let more = match models.len() > shown.len() {
                true => format!(" and {} more", models.len() - shown.len()),
                false => String::new(),
            };
            let text = format!("{host} answers and does not have {model}");
            let check =
                check(State::Fix, text).because([format!("it has: {}{more}", shown.join(", "))]);
            match reach.dialect.client().how_to_get(model) {
                Some(command) => check.next(format!("Get it: {command}")),
                None => check.next("Name one of those in model = \"…\""),
            }
        }
        Answer::Status(status @ (401 | 403)) => check(
            State::Fix,
            format!("{who}: {host} does not take the key ({status})"),
        )
        .next("Make a new key with the provider, and set it where the configuration looks for it"),
        // Some that speak the protocol have no list of models.
        Answer::Status(404 | 405) => check(State::Ok, format!("{who}: answers at {host}")),
        Answer::Status(status) => check(State::Note, format!("{who}: {host} answers {status}"))
            .next("Ask it something: steadyhand chat --model NAME hello"),
        Answer::Nobody => {
            let check = check(State::Fix, format!("nothing listens on {host}"));
            let start = reach.dialect.client().how_to_start();
            match (start, is_here(reach.url())) {
                (Some(command), true) => check.next(format!("Start it: {command}")),
                (None, true) => check.next("Start it, or change its url"),
                (_, false) => check.next(
                    "Is there a way out of this machine? A proxy may be needed (HTTPS_PROXY)",
                ),
            }
        }
        Answer::Broken(why) => check(State::Fix, format!("{who}: {host} gives no answer: {why}"))
            .next("Look at what it prints, or start it again"),
    }
}

/// Ollama calls the same model `qwen3` and `qwen3:latest`.
fn has(models: &[String], model: &str) -> bool {
    let is_it = |there: &String| {
        there == model || there.strip_suffix(":latest") == Some(model.trim_end_matches(":latest"))
    };
    models.iter().any(is_it)
}
