//! `steadyhand tools`: which tools there are, everything about one of them, and closing its breaker.

use clap::Subcommand;
use clap_complete::engine::ArgValueCandidates;
use serde_json::{Value, json};

use super::error::{Exit, Failed};
use super::remote::{Remote, in_path};
use super::{Session, complete, value};
use crate::runtime::Runtime;
use crate::views;

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
    let place = Place::find(session).await?;
    match command.unwrap_or(&ToolsCommand::List) {
        ToolsCommand::List => list(session, &place).await,
        ToolsCommand::Show { tool } => show(session, &place, tool).await,
        ToolsCommand::Reset { tool } => reset(session, &place, tool).await,
    }
}

/// Where the tools are: in a server, or in this process.
pub(super) enum Place {
    There(Remote),
    Here(Runtime),
}

impl Place {
    pub(super) async fn find(session: &Session<'_>) -> Result<Place, Failed> {
        match Remote::find(session).await {
            Some(remote) => Ok(Place::There(remote)),
            None => Ok(Place::Here(session.runtime(|_| {}).await?)),
        }
    }
}

async fn list(session: &Session<'_>, place: &Place) -> Result<(), Failed> {
    let listed = match place {
        Place::There(remote) => remote.get("/v1/tools").await?,
        Place::Here(runtime) => views::tools::list(runtime),
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
        let state = if tool["available"] == true {
            "ready"
        } else {
            "disabled"
        };
        let description = text(tool, "description");
        let first_line = description.lines().next().unwrap_or_default();
        rows.push(vec![
            text(tool, "name"),
            text(tool, "kind"),
            state.to_owned(),
            first_line.to_owned(),
        ]);
    }
    screen.answer(&value::columns(screen, rows));
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
    let servers = generation.configuration.imported.servers.len();
    if runtime.manager().is_empty() && servers > 0 {
        let servers = value::counted(servers, "MCP server");
        session.screen.note(&format!(
            "No tools yet: {servers} found, for a later version to connect."
        ));
    } else if runtime.manager().is_empty() {
        session
            .screen
            .note("No tools. Add a [tools.name] table to steadyhand.toml");
    } else if generation.configuration.file.is_none() {
        session
            .screen
            .note("No steadyhand.toml here, so these are the builtins.");
    }
}

/// Something that is missing from the tools, as the runtime would say it.
fn in_words(problem: &Value) -> String {
    let text = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
    let problem = crate::runtime::SourceProblem {
        name: text("name"),
        reason: text("reason"),
        place: problem["place"].as_str().map(str::to_owned),
    };
    problem.to_string()
}

async fn show(session: &Session<'_>, place: &Place, name: &str) -> Result<(), Failed> {
    let tool = match place {
        Place::There(remote) => remote.get(&format!("/v1/tools/{}", in_path(name))).await?,
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
