//! The models of a configuration: which one is meant, and a client for it.

pub mod check;
pub mod checked;
pub mod reach;
mod scratch;

use std::sync::Arc;

use serde_json::Value;
use steadyhand_models::{Client, Demo, Dialect, Model, ModelError, ModelErrorKind};

use steadyhand_config::check_models::{DEMO, table};
use steadyhand_config::models::{ModelSettings, Provider};
use steadyhand_config::words::{dotted, nearest};
use steadyhand_config::{Configuration, Resolver, Surroundings};

/// A model, ready to be asked, and what its table says about conversations with it.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// Its name in the configuration; `provider/model` for one that is not in it.
    pub name: String,
    /// The model.
    pub model: Arc<dyn Model>,
    /// How many rounds of tools one question may take.
    pub max_iterations: Option<u32>,
    /// What it is told before everything else.
    pub system: Option<String>,
    /// Whether calls that it writes as text are run.
    pub recover_calls: bool,
}

/// A model of the configuration, as a list shows it.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Whose protocol it speaks.
    pub provider: &'static str,
    /// The name its provider knows it by.
    pub model: Option<String>,
    /// Whether it is the one that is used when nobody says.
    pub is_default: bool,
}

/// The model that is meant: by this name, or the one of `models.default`, or the only one there is, or else the
/// demo. Nothing is sent to it.
///
/// # Errors
///
/// Where there is no such model, or what it needs is not there.
pub fn choose(
    configuration: &Configuration,
    surroundings: &Surroundings,
    name: Option<&str>,
) -> Result<Chosen, ModelError> {
    let models = &configuration.root.models;
    let only = || {
        let mut names = models.names();
        names.next().filter(|_| names.next().is_none())
    };
    let name = name.or(models.default_name()).or_else(only);
    let name = match name {
        Some(name) => name,
        None if models.names().next().is_none() => DEMO,
        None => return Err(undecided(models.names())),
    };
    let sections = &configuration.document.value["models"];
    if let Some(table) = table(sections, name) {
        return configured(configuration, surroundings, name, table);
    }
    if name == DEMO {
        return Ok(demo(DEMO));
    }
    match by_provider(name) {
        Some((dialect, model)) => not_configured(surroundings, name, dialect, model),
        None => Err(unknown(name, models.names())),
    }
}

/// The models there are, the demo included.
pub fn list(configuration: &Configuration) -> Vec<Listed> {
    let models = &configuration.root.models;
    let default = models.default_name();
    let mut listed: Vec<Listed> = Vec::new();
    for name in models.names() {
        let table = serde_json::from_value::<ModelSettings>(models.0[name].clone());
        let Ok(table) = table else {
            continue;
        };
        listed.push(Listed {
            name: name.to_owned(),
            provider: provider_name(table.provider),
            model: table.model,
            is_default: default == Some(name),
        });
    }
    if !listed.iter().any(|one| one.name == DEMO) {
        listed.push(Listed {
            name: DEMO.to_owned(),
            provider: provider_name(Provider::Scripted),
            model: None,
            is_default: default == Some(DEMO) || listed.is_empty(),
        });
    }
    if default.is_none()
        && let [only, demo] = listed.as_mut_slice()
        && demo.name == DEMO
    {
        only.is_default = true;
    }
    listed
}

fn provider_name(provider: Provider) -> &'static str {
    provider.as_str()
}

fn dialect_of(provider: Provider) -> Option<Dialect> {
    dialect_called(provider.as_str())
}

fn dialect_called(name: &str) -> Option<Dialect> {
    let mut all = Dialect::ALL.into_iter();
    all.find(|dialect| dialect.as_str() == name)
}

fn demo(name: &str) -> Chosen {
    Chosen {
        name: name.to_owned(),
        model: Arc::new(Demo::new()),
        max_iterations: None,
        system: None,
        recover_calls: false,
    }
}

/// The settings of a model, its references replaced.
fn resolved(
    configuration: &Configuration,
    surroundings: &Surroundings,
    name: &str,
    mut table: Value,
) -> Result<ModelSettings, ModelError> {
    let resolver = Resolver::new(surroundings.clone(), configuration.folder.clone());
    let resolution = resolver.resolve_tree(&mut table);
    if let Some((pointer, unresolved)) = resolution.unresolved.into_iter().next() {
        let setting = dotted(&format!("/models/{name}{pointer}"));
        let message = match (pointer.as_str(), table["provider"].as_str()) {
            ("/key", Some(provider)) => format!(
                "no key for {provider}: {} in {setting}: {}",
                unresolved.reference, unresolved.reason
            ),
            _ => format!(
                "{} in {setting}: {}",
                unresolved.reference, unresolved.reason
            ),
        };
        return Err(without_key(message, &unresolved.help));
    }
    serde_json::from_value(table).map_err(|error| {
        let fault = steadyhand::plain_words::json(&error);
        ModelError::new(ModelErrorKind::Settings, format!("models.{name}: {fault}"))
            .help("steadyhand config check says where")
    })
}

fn configured(
    configuration: &Configuration,
    surroundings: &Surroundings,
    name: &str,
    table: Value,
) -> Result<Chosen, ModelError> {
    let settings = resolved(configuration, surroundings, name, table)?;
    let model: Arc<dyn Model> = match dialect_of(settings.provider) {
        None => Arc::new(Demo::new()),
        Some(dialect) => {
            let client = Client::new(for_client(surroundings, dialect, &settings));
            Arc::new(client.map_err(with_way_out)?)
        }
    };
    Ok(Chosen {
        name: name.to_owned(),
        model,
        max_iterations: settings.max_iterations,
        system: settings.system,
        recover_calls: settings.recover_calls.unwrap_or(false),
    })
}

fn for_client(
    surroundings: &Surroundings,
    dialect: Dialect,
    settings: &ModelSettings,
) -> steadyhand_models::ModelSettings {
    let name = settings.model.clone().unwrap_or_default();
    let mut client = steadyhand_models::ModelSettings::new(dialect, name);
    let key = settings.key.as_ref().map(|key| key.expose().to_owned());
    let key = key.filter(|key| !key.is_empty());
    // A key from the environment goes to those it was made for, and to nobody else.
    let own_key = || match settings.url {
        None => key_of(surroundings, dialect),
        Some(_) => None,
    };
    if let Some(key) = key.or_else(own_key) {
        client = client.key(key);
    }
    if let Some(url) = &settings.url {
        client = client.url(url.expose().trim());
    }
    client.max_tokens = settings.max_tokens;
    client.temperature = settings.temperature;
    client.keep_alive.clone_from(&settings.keep_alive);
    client.thinking.clone_from(&settings.thinking);
    client.num_ctx = settings.num_ctx.unwrap_or(client.num_ctx);
    client.attempts = settings.attempts.unwrap_or(client.attempts);
    if let Some(timeout) = settings.timeout {
        let patience = &mut client.patience;
        patience.whole = timeout.0;
        patience.first = patience.first.min(timeout.0);
        patience.next = patience.next.min(timeout.0);
    }
    client
}

/// `anthropic/claude-sonnet-4-5`: a model that is in no configuration.
fn by_provider(name: &str) -> Option<(Dialect, &str)> {
    let (provider, model) = name.split_once('/')?;
    let dialect = dialect_called(provider)?;
    (!model.is_empty()).then_some((dialect, model))
}

fn not_configured(
    surroundings: &Surroundings,
    name: &str,
    dialect: Dialect,
    model: &str,
) -> Result<Chosen, ModelError> {
    let mut settings = steadyhand_models::ModelSettings::new(dialect, model);
    if let Some(key) = key_of(surroundings, dialect) {
        settings = settings.key(key);
    }
    let client = Client::new(settings).map_err(with_way_out)?;
    Ok(Chosen {
        name: name.to_owned(),
        model: Arc::new(client),
        max_iterations: None,
        system: None,
        recover_calls: false,
    })
}

fn key_of(surroundings: &Surroundings, dialect: Dialect) -> Option<String> {
    let key = surroundings.variable(dialect.key_variable()?).ok()?;
    Some(key).filter(|key| !key.is_empty())
}

fn without_key(message: String, help: &str) -> ModelError {
    let error = ModelError::new(ModelErrorKind::Unauthorized, message);
    with_way_out(error.help(help))
}

/// Who has no key yet is told how to begin without.
fn with_way_out(error: ModelError) -> ModelError {
    if error.kind != ModelErrorKind::Unauthorized {
        return error;
    }
    let help = error.help.clone().unwrap_or_default();
    error.help(format!(
        "{help}\nTo try without a key: steadyhand chat --model {DEMO}"
    ))
}

fn undecided<'a>(names: impl Iterator<Item = &'a str>) -> ModelError {
    let names: Vec<&str> = names.collect();
    ModelError::new(
        ModelErrorKind::Settings,
        "there are several models, and none is the default",
    )
    .help(format!(
        "Name one: --model {}; or set default = \"{}\" under [models]",
        names.join(" or --model "),
        names.first().unwrap_or(&DEMO)
    ))
}

fn unknown<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> ModelError {
    let all: Vec<&str> = names.chain([DEMO]).collect();
    let help = match nearest(name, all.iter().copied()) {
        Some(near) => format!("Did you mean {near}?"),
        None => format!(
            "There are: {}; without configuration: provider/model, such as ollama/qwen3:8b",
            all.join(", ")
        ),
    };
    let message = format!("there is no model \"{name}\"");
    ModelError::new(ModelErrorKind::Settings, message).help(help)
}
