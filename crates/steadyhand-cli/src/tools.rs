//! `steadyhand tools`: which tools there are, everything about one of them, switching it off and on, and closing its breaker.

use std::sync::Arc;
use std::time::Duration;

use clap::Subcommand;
use clap_complete::engine::ArgValueCandidates;
use serde_json::{Value, json};

use super::error::{Exit, Failed};
use super::remote::{Remote, in_path};
use super::{Interrupts, Session, changes, complete, starting, switch, value};
use steadyhand_runtime::runtime::Runtime;
use steadyhand_server::views;

#[derive(Subcommand)]
pub(super) enum ToolsCommand {
    /// All tools
    List,
    /// One tool: its arguments, its policy, where each value comes from
    Show {
        /// The tool
        #[arg(add = ArgValueCandidates::new(complete::tool_names))]
        tool: String,
    },
    /// Offer a tool again that was switched off
    Enable {
        /// The tool
        #[arg(add = ArgValueCandidates::new(complete::tool_names))]
        tool: String,
    },
    /// Leave a tool out: steadyhand.toml says so, and a server that runs takes it over
    Disable {
        /// The tool
        #[arg(add = ArgValueCandidates::new(complete::tool_names))]
        tool: String,
    },
    /// What MCP servers say of themselves that is another than before, or new: tools, prompts, resources, instructions
    Changes,
    /// Accept a definition as it is now
    Accept {
        /// What changed, as `tools changes` names it; the name of a server stands for everything of it
        #[arg(add = ArgValueCandidates::new(complete::tool_names))]
        tool: String,
        /// The definition you have seen, as `tools changes` shows its hash; another one is not accepted
        #[arg(long, value_name = "HASH")]
        hash: Option<String>,
    },
    /// Reject a definition as it is now: it stays away until its server has another one
    Reject {
        /// What changed, as `tools changes` names it
        #[arg(add = ArgValueCandidates::new(complete::tool_names))]
        tool: String,
        /// The definition you have seen, as `tools changes` shows its hash; another one is not rejected
        #[arg(long, value_name = "HASH")]
        hash: Option<String>,
    },
    /// Close a tool's breaker by hand
    Reset {
        /// The tool
        #[arg(add = ArgValueCandidates::new(complete::tool_names))]
        tool: String,
    },
}

pub(super) async fn run(
    session: &Session<'_>,
    command: Option<&ToolsCommand>,
) -> Result<(), Failed> {
    let command = command.unwrap_or(&ToolsCommand::List);
    match command {
        ToolsCommand::Changes => return changes::list(session).await,
        ToolsCommand::Accept { tool, hash } => {
            return changes::accept(session, tool, hash.as_deref()).await;
        }
        ToolsCommand::Reject { tool, hash } => {
            return changes::reject(session, tool, hash.as_deref()).await;
        }
        ToolsCommand::Enable { tool } => return switch::set(session, tool, true).await,
        ToolsCommand::Disable { tool } => return switch::set(session, tool, false).await,
        ToolsCommand::List | ToolsCommand::Show { .. } | ToolsCommand::Reset { .. } => {}
    }
    let need = match command {
        ToolsCommand::List | ToolsCommand::Show { .. } => Need::All,
        _ => Need::Names,
    };
    let place = Place::find(session, need).await?;
    let ended = match command {
        ToolsCommand::List => list(session, &place).await,
        ToolsCommand::Show { tool } => show(session, &place, tool).await,
        ToolsCommand::Reset { tool } => reset(session, &place, tool).await,
        ToolsCommand::Changes
        | ToolsCommand::Accept { .. }
        | ToolsCommand::Reject { .. }
        | ToolsCommand::Enable { .. }
        | ToolsCommand::Disable { .. } => Ok(()),
    };
    if let Place::Here(runtime) = &place {
        session.stop(runtime, &mut Interrupts::listen()).await;
    }
    ended
}

/// Where the tools are: in a server, or in this process.
pub(super) enum Place {
    There(Remote),
    Here(Runtime),
}

/// What is wanted of the tools of MCP servers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Those that are known from earlier times: no server is started.
    Names,
    /// All: servers whose tools are not known yet are started, and asked.
    All,
}

impl Place {
    pub(super) async fn find(session: &Session<'_>, need: Need) -> Result<Place, Failed> {
        if let Some(remote) = Remote::find(session).await {
            return Ok(Place::There(remote));
        }
        let mut configuration = session.configuration()?;
        for table in configuration.tools.iter_mut().filter(|it| it.is_server()) {
            table.set_start("when", json!("first-call"));
            table.set_start("waits", json!(["0s"]));
        }
        let runtime = session.runtime_of(configuration, |options| {
            options.only_look = need == Need::Names;
            // It is said in a line of its own.
            options.degraded = Arc::new(|_, _| {});
        });
        let runtime = runtime.await?;
        if need == Need::All {
            starting::waited_for(session, &runtime).await?;
        }
        Ok(Place::Here(runtime))
    }
}

async fn list(session: &Session<'_>, place: &Place) -> Result<(), Failed> {
    let listed = match place {
        Place::There(remote) => remote.get("/v1/tools").await?,
        Place::Here(runtime) => views::tools::list(runtime, |_| true),
    };
    let screen = session.screen;
    let rows_of = |name: &str| listed[name].as_array().cloned().unwrap_or_default();
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    for problem in rows_of("problems") {
        screen.note(&in_words(&problem));
    }
    if screen.json {
        screen.json(&listed);
        return Ok(());
    }
    let tools = rows_of("tools");
    let mut rows = Vec::new();
    if screen.stdout_is_terminal {
        rows.push(
            ["TOOL", "KIND", "STATE", "DESCRIPTION"]
                .map(str::to_owned)
                .to_vec(),
        );
    }
    for tool in &tools {
        let description = text(tool, "description");
        let first_line = description.lines().next().unwrap_or_default();
        rows.push(vec![
            text(tool, "name"),
            text(tool, "kind"),
            text(tool, "state"),
            first_line.to_owned(),
        ]);
    }
    screen.answer(&value::columns(screen, rows));
    for open in tools.iter().filter_map(open_breaker) {
        screen.note(&screen.foreign(&open));
    }
    for it in rows_of("left_out") {
        screen.note(&format!(
            "{}: {} is no tool: {}",
            text(&it, "source"),
            text(&it, "name"),
            text(&it, "reason")
        ));
    }
    if let Place::Here(runtime) = place {
        tell_where_they_are_from(session, runtime);
    }
    Ok(())
}

fn tell_where_they_are_from(session: &Session<'_>, runtime: &Runtime) {
    let generation = runtime.generation();
    let mut is_told = false;
    for server in views::servers::all(runtime) {
        let (name, status) = (
            starting::text(&server, "name"),
            starting::text(&server, "status"),
        );
        if starting::text(&server, "phase") == "down" {
            let reason = starting::text(&server, "reason");
            is_told = true;
            session.screen.note(&format!(
                "{name} is {status}: {reason}; see why: steadyhand mcp test {name}"
            ));
        }
    }
    if generation.configuration.is_demo {
        session
            .screen
            .note("No steadyhand.toml here, so this is the demo set. Your own: steadyhand init");
        return;
    }
    if !is_told && runtime.manager().is_empty() {
        session
            .screen
            .note("No tools. Add a [tools.name] or [mcp.name] table to steadyhand.toml");
    }
}

/// Something that is missing from the tools, as the runtime would say it.
fn in_words(problem: &Value) -> String {
    let text = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
    let problem = steadyhand_runtime::runtime::SourceProblem {
        name: text("name"),
        reason: text("reason"),
        place: problem["place"].as_str().map(str::to_owned),
    };
    problem.to_string()
}

async fn show(session: &Session<'_>, place: &Place, name: &str) -> Result<(), Failed> {
    let tool = match place {
        Place::There(remote) => remote.get(&format!("/v1/tools/{}", in_path(name))).await?,
        Place::Here(runtime) if runtime.manager().find(name).is_none() => {
            return Err(match runtime.failed_start_of(name) {
                Some(failure) => {
                    let server = &failure.server;
                    Failed::of_start(
                        &failure,
                        &format!("Again: steadyhand mcp test {server}"),
                        false,
                    )
                }
                None => no_such_tool(runtime, name),
            });
        }
        Place::Here(runtime) => {
            views::tools::one(runtime, name).ok_or_else(|| no_such_tool(runtime, name))?
        }
    };
    let screen = session.screen;
    if screen.json {
        screen.json(&tool);
        return Ok(());
    }
    let said = |name: &str| tool[name].as_str().unwrap_or_default();
    let mut text = format!(
        "{}  {}\n",
        screen.bold(said("name")),
        screen.dim(said("kind"))
    );
    text.push_str(&format!("{}\n", screen.foreign(said("description"))));
    if let Some(reason) = tool["reason"].as_str() {
        text.push_str(&format!("\n{reason}\n"));
    }
    if let Some(open) = open_breaker(&tool) {
        text.push_str(&format!("\n{}\n", screen.foreign(&open)));
    }
    text.push_str(&format!("\n{}\n", screen.bold("Arguments")));
    text.push_str(&indented(&value::columns(
        screen,
        argument_rows(&tool["schema"]),
    )));
    text.push_str(&format!("\n{}\n", screen.bold("Policy")));
    let cell = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rows = tool["policy"].as_object().into_iter().flatten();
    let rows = rows.map(|(name, it)| vec![name.clone(), cell(&it["value"]), cell(&it["origin"])]);
    text.push_str(&indented(&value::columns(screen, rows.collect())));
    if let Some(example) = steadyhand::example_arguments(&tool["schema"]) {
        text.push_str(&format!(
            "\n{}\n  {}\n",
            screen.bold("Try"),
            value::as_command(said("name"), &example)
        ));
    }
    screen.answer(&text);
    Ok(())
}

/// Until when a breaker keeps calls away, what ends that, and what the tool last said.
fn open_breaker(tool: &Value) -> Option<String> {
    let breaker = &tool["breaker"];
    let state = breaker["state"].as_str().filter(|it| *it != "closed")?;
    let failures = breaker["failures"].as_u64();
    let failures = failures.map_or(String::new(), |count| {
        format!(
            " after {} in a row",
            value::counted(count as usize, "failure")
        )
    });
    let trial = breaker["trialInMs"].as_u64().map_or(String::new(), |ms| {
        let left = Duration::from_millis(ms);
        format!("; the next call after {} is a trial", value::duration(left))
    });
    let last = breaker["lastError"]["message"].as_str();
    let last = last.map_or(String::new(), |last| format!("\nThe last failure: {last}"));
    let name = tool["name"].as_str().unwrap_or_default();
    Some(format!(
        "The breaker of {name} is {state}{failures}{trial}. To close it now: steadyhand tools reset {name}{last}"
    ))
}

async fn reset(session: &Session<'_>, place: &Place, name: &str) -> Result<(), Failed> {
    let view = match place {
        Place::There(remote) => {
            let path = format!("/v1/tools/{}/breaker/reset", in_path(name));
            remote.post(&path, None).await?.body
        }
        Place::Here(runtime) => {
            let tool = runtime.manager().find(name);
            let tool = tool.ok_or_else(|| no_such_tool(runtime, name))?;
            session.screen.note(
                "No server of this configuration runs: breakers live in a server, so nothing was open here.",
            );
            json!({"name": tool.name(), "breaker": runtime.manager().breaker(name)})
        }
    };
    if session.screen.json {
        session.screen.json(&view);
        return Ok(());
    }
    let name = view["name"].as_str().unwrap_or_default();
    session
        .screen
        .answer(&match view["breaker"]["state"].as_str() {
            Some(state) => format!("{name}: its breaker is {state}"),
            None => format!("{name} has no breaker"),
        });
    Ok(())
}

pub(super) fn no_such_tool(runtime: &Runtime, name: &str) -> Failed {
    let near = views::tools::near(runtime, name);
    Failed::new(
        Exit::ToolError,
        "TOOL_NOT_FOUND",
        format!("there is no tool {name}"),
    )
    .help(match near {
        Some(near) => format!("Did you mean {near}?\nsteadyhand tools list"),
        None => "steadyhand tools list".to_owned(),
    })
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// Name, type, required, description: one row for each argument.
fn argument_rows(schema: &Value) -> Vec<Vec<String>> {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut rows = Vec::new();
    for (name, property) in properties.into_iter().flatten() {
        let kind = match property.get("type") {
            Some(Value::String(kind)) => kind.clone(),
            Some(Value::Array(kinds)) => kinds
                .iter()
                .filter_map(Value::as_str)
                .collect::<Vec<_>>()
                .join(" or "),
            _ => "any".to_owned(),
        };
        let need = if required.contains(&name.as_str()) {
            "required"
        } else {
            ""
        };
        let mut about: Vec<String> = Vec::new();
        about.extend(
            property
                .get("description")
                .and_then(Value::as_str)
                .map(str::to_owned),
        );
        if let Some(options) = property.get("enum").and_then(Value::as_array) {
            let options: Vec<String> = options
                .iter()
                .map(|option| {
                    option
                        .as_str()
                        .map_or_else(|| option.to_string(), str::to_owned)
                })
                .collect();
            about.push(format!("one of {}", options.join(", ")));
        }
        for (key, words) in [
            ("minimum", "at least"),
            ("maximum", "at most"),
            ("default", "default"),
        ] {
            about.extend(property.get(key).map(|limit| format!("{words} {limit}")));
        }
        rows.push(vec![name.clone(), kind, need.to_owned(), about.join("; ")]);
    }
    if rows.is_empty() {
        rows.push(vec!["(none declared)".to_owned()]);
    }
    rows
}
