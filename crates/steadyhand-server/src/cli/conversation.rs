//! `steadyhand validate`, `repair` and `error-response`: conversations as providers want them (R01–R03, R14).

use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use serde_json::Value;
use steadyhand::conversation::{self, Provider, What};

use super::Session;
use super::error::{Exit, Failed};
use super::value::counted;
use crate::config::document::plain;
use crate::views;

const BYTES_MAX: u64 = 256 * 1024 * 1024;

#[derive(Args)]
pub(super) struct ValidateArgs {
    #[command(flatten)]
    file: File,
    /// What the file holds: a request, a response, or a history whose calls and results must match
    #[arg(long, default_value = "match")]
    what: What,
}

#[derive(Args)]
pub(super) struct RepairArgs {
    #[command(flatten)]
    file: File,
}

#[derive(Args)]
pub(super) struct ErrorResponseArgs {
    /// Whose shape: anthropic, openai, openai-responses, gemini, mistral, ollama, langchain
    #[arg(long)]
    provider: Provider,
    /// The id of the call that is answered
    #[arg(long)]
    id: String,
    /// The tool that was asked for
    #[arg(long)]
    name: String,
    /// What went wrong
    message: String,
}

#[derive(Args)]
struct File {
    /// A JSON file, or JSONL with one conversation a line; - for stdin
    file: PathBuf,
    /// Whose rules: anthropic, openai, openai-responses, gemini, mistral, ollama, langchain
    #[arg(long)]
    provider: Provider,
}

/// Says everything a provider would refuse; ends with 5 if there is anything.
pub(super) fn validate(session: &Session<'_>, args: &ValidateArgs) -> Result<(), Failed> {
    let conversations = args.file.read(session)?;
    let mut found = 0;
    for (index, conversation) in conversations.iter().enumerate() {
        let (view, problems) =
            views::conversations::validated(args.file.provider, args.what, conversation);
        found += problems.len();
        if session.screen.json {
            session.screen.json(&view);
            continue;
        }
        for problem in &problems {
            let place = args.file.place(index, conversations.len(), &problem.at);
            session.screen.answer(&format!(
                "{place}  {}  {}",
                problem.code.as_str(),
                problem.message
            ));
            if let Some(text) = &problem.provider_text {
                session
                    .screen
                    .answer(&format!("    the provider would say: {text}"));
            }
        }
    }
    match found {
        0 => {
            session.screen.note(&format!(
                "{} would accept {}",
                args.file.provider,
                args.file.shown()
            ));
            Ok(())
        }
        _ => Err(Failed::new(
            Exit::ToolError,
            "invalid_conversation",
            format!(
                "{} would refuse {}: {}",
                args.file.provider,
                args.file.shown(),
                counted(found, "problem")
            ),
        )
        .help(format!(
            "steadyhand repair {} --provider {}",
            args.file.shown(),
            args.file.provider
        ))),
    }
}

/// Prints the conversation as the provider accepts it; what was changed is said on stderr.
pub(super) fn repair(session: &Session<'_>, args: &RepairArgs) -> Result<(), Failed> {
    let provider = args.file.provider;
    for conversation in args.file.read(session)? {
        if session.screen.json {
            session
                .screen
                .json(&views::conversations::repaired(provider, conversation));
            continue;
        }
        let (repaired, fixes) = conversation::repair(provider, conversation.clone());
        let text = match session.screen.stdout_is_terminal {
            true => serde_json::to_string_pretty(&repaired),
            false => serde_json::to_string(&repaired),
        };
        session
            .screen
            .note(conversation::explain(provider, &conversation, &repaired, &fixes).trim_end());
        session.screen.answer(&text.unwrap_or_default());
    }
    Ok(())
}

/// A well-formed error result for a call, in a provider's shape.
pub(super) fn error_response(
    session: &Session<'_>,
    args: &ErrorResponseArgs,
) -> Result<(), Failed> {
    let result = conversation::error_result(args.provider, &args.id, &args.name, &args.message);
    session.screen.json(&result);
    Ok(())
}

impl File {
    fn shown(&self) -> String {
        self.file.display().to_string()
    }

    /// `/1/content/0`, with the line before it where there are several conversations.
    fn place(&self, index: usize, count: usize, at: &str) -> String {
        match count {
            1 => at.to_owned(),
            _ => format!("{}:{at}", index + 1),
        }
    }

    /// One conversation, or one a line.
    fn read(&self, session: &Session<'_>) -> Result<Vec<Value>, Failed> {
        let cannot = |reason: String| {
            Failed::new(
                Exit::Usage,
                "usage",
                format!("{} cannot be read: {reason}", self.shown()),
            )
            .help(
                "A JSON file with a list of messages or a whole request, or JSONL with one a line",
            )
        };
        let text = self.text(session).map_err(|error| cannot(plain(&error)))?;
        if text.len() as u64 > BYTES_MAX {
            return Err(cannot(format!("it is larger than {} MiB", BYTES_MAX >> 20)));
        }
        let whole = match serde_json::from_str(&text) {
            Ok(conversation) => return Ok(vec![conversation]),
            Err(error) => error,
        };
        let lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty());
        let parsed: Vec<_> = lines
            .map(|(number, line)| (number, serde_json::from_str(line)))
            .collect();
        // With one line that can be read it is JSONL, and the others must be too.
        if !parsed.iter().any(|(_, line)| line.is_ok()) {
            return Err(cannot(format!("it is no JSON: {whole}")));
        }
        parsed
            .into_iter()
            .map(|(number, line)| {
                line.map_err(|error| cannot(format!("line {} is no JSON: {error}", number + 1)))
            })
            .collect()
    }

    fn text(&self, session: &Session<'_>) -> std::io::Result<String> {
        let mut text = String::new();
        match self.file.as_os_str() == "-" {
            true => std::io::stdin()
                .lock()
                .take(BYTES_MAX + 1)
                .read_to_string(&mut text)?,
            false => std::fs::File::open(session.surroundings.current.join(&self.file))?
                .take(BYTES_MAX + 1)
                .read_to_string(&mut text)?,
        };
        Ok(text)
    }
}
