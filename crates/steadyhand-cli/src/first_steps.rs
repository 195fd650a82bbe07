//! `steadyhand` alone: what this is, what is here, and what to do next. Never an error.

use serde_json::json;

use super::error::Failed;
use super::{Session, value};
use crate::extensions::EXTENSIONS;
use steadyhand_config::{Configuration, Problem};

pub(super) fn run(session: &Session<'_>) -> Result<(), Failed> {
    let screen = session.screen;
    let version = env!("CARGO_PKG_VERSION");
    let here = here(session);
    let steps = steps(&here);
    if screen.json {
        let next: Vec<&str> = steps.iter().map(|(command, _)| *command).collect();
        let file = session.found().map(|found| found.path);
        screen.json(&json!({
            "version": version,
            "configuration": file,
            "here": here.sentence,
            "next": next,
        }));
        return Ok(());
    }
    let width = steps.iter().map(|(command, _)| command.len()).max();
    let width = width.unwrap_or(0);
    let steps: Vec<String> = steps
        .iter()
        .map(|(command, what)| format!("  {command:width$}  {what}").trim_end().to_owned())
        .collect();
    screen.answer(&format!(
        "Steadyhand {version} runs the tools of AI agents, and shows what happens when they fail.\n\n{}\n\n{}\n\nAll commands: steadyhand --help",
        here.sentence,
        steps.join("\n"),
    ));
    Ok(())
}

/// Which configuration the next command would use.
struct Here {
    kind: Kind,
    sentence: String,
}

enum Kind {
    Demo,
    Own,
    Wrong,
}

fn here(session: &Session<'_>) -> Here {
    let Some(found) = session.found() else {
        return Here {
            kind: Kind::Demo,
            sentence: "No steadyhand.toml here: commands use the demo set, without a key and without a network."
                .to_owned(),
        };
    };
    let file = session
        .surroundings
        .shown(&found.path)
        .display()
        .to_string();
    match Configuration::load(Some(&found.path), &session.surroundings, &EXTENSIONS) {
        Ok(configuration) => {
            let (servers, tools): (Vec<_>, Vec<_>) = configuration
                .tools
                .iter()
                .partition(|table| table.is_server());
            Here {
                kind: Kind::Own,
                sentence: format!(
                    "{file} is used here: {} and {} in it.",
                    value::counted(tools.len(), "tool table"),
                    value::counted(servers.len(), "MCP server")
                ),
            }
        }
        Err(report) if report.problems.iter().any(Problem::is_about_trust) => Here {
            kind: Kind::Wrong,
            sentence: format!(
                "{file} is here, and somebody else could have written it: commands ask before they use it."
            ),
        },
        Err(report) => Here {
            kind: Kind::Wrong,
            sentence: format!(
                "{file} is used here, and {} wrong with it.",
                match report.problems.len() {
                    1 => "something is".to_owned(),
                    many => format!("{many} things are"),
                }
            ),
        },
    }
}

fn steps(here: &Here) -> Vec<(&'static str, &'static str)> {
    const SERVE: (&str, &str) = (
        "steadyhand serve",
        "the dashboard, MCP and REST on 127.0.0.1:7400",
    );
    match here.kind {
        Kind::Demo => vec![
            SERVE,
            ("steadyhand call weather city=Oslo", "run one tool"),
            (
                "steadyhand chat \"Will it rain in Oslo?\"",
                "a model that uses the tools",
            ),
            (
                "steadyhand init",
                "a steadyhand.toml of your own, with what is found here",
            ),
        ],
        Kind::Own => vec![
            SERVE,
            ("steadyhand tools list", "the tools there are"),
            ("steadyhand call TOOL name=value", "run one tool"),
            ("steadyhand chat", "a model that uses the tools"),
        ],
        Kind::Wrong => vec![("steadyhand config check", "says what is wrong, and where")],
    }
}
