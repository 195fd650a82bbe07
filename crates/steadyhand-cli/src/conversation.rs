//! `steadyhand validate`, `repair` and `error-response`: conversations as providers want them (R01–R03, R14).

use std::io::Read;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::Value;
use steadyhand_conversation::{self as conversation, Code, Host, Options, Problem, Provider, What};

use super::Session;
use super::error::{Exit, Failed};
use super::value::counted;
use steadyhand_config::document::plain;
use steadyhand_proxy::splice::spliced;
use steadyhand_server::views;

const BYTES_MAX: u64 = 256 * 1024 * 1024;

#[derive(Args)]
pub(super) struct ValidateArgs {
    #[command(flatten)]
    file: File,
    /// What the file holds: request, response, or messages (also: match), a history whose calls and results must match
    #[arg(long, default_value = "match")]
    what: What,
}

#[derive(Args)]
pub(super) struct RepairArgs {
    #[command(flatten)]
    file: File,
    /// What the file holds: request, messages or response; a request or messages if not said, as it looks
    #[arg(long)]
    what: Option<What>,
}

#[derive(Args)]
pub(super) struct ErrorResponseArgs {
    /// Whose shape: anthropic, openai, openai-responses, gemini, mistral, ollama, bedrock-converse, langchain
    #[arg(long)]
    provider: Provider,
    /// What is written: the result of a call, or a model's whole response
    #[arg(long, value_enum, default_value_t = ErrorPart::Result)]
    what: ErrorPart,
    /// The id of the call that is answered; needed for a result
    #[arg(long)]
    id: Option<String>,
    /// The tool that was asked for; needed for a result
    #[arg(long)]
    name: Option<String>,
    /// The model that was asked, for a response
    #[arg(long)]
    model: Option<String>,
    /// What went wrong
    message: String,
}

/// What an error is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ErrorPart {
    Result,
    Response,
}

#[derive(Args)]
struct File {
    /// A JSON file, or JSONL with one conversation a line; - for stdin
    file: PathBuf,
    /// Whose rules: anthropic, openai, openai-responses, gemini, mistral, ollama, bedrock-converse, langchain
    #[arg(long)]
    provider: Provider,
    /// Who serves it: original (the provider itself), azure, bedrock or vertex (with Anthropic's body), deepseek, compatible (any other)
    #[arg(long, default_value_t)]
    host: Host,
}

/// A conversation of a file, and the line it is on where there is one a line.
struct Conversation {
    line: Option<usize>,
    value: Value,
    /// As it is written there.
    text: String,
}

impl Conversation {
    /// `/1/content/0`, with the line before it where there is one a line.
    fn place(&self, at: &str) -> String {
        let at = if at.is_empty() { "/" } else { at };
        match self.line {
            None => at.to_owned(),
            Some(line) => format!("{line}:{at}"),
        }
    }
}

/// Says everything a provider would refuse; ends with 5 if there is anything.
pub(super) fn validate(session: &Session<'_>, args: &ValidateArgs) -> Result<(), Failed> {
    let conversations = args.file.read(session)?;
    let mut found = 0;
    let mut is_refused = false;
    for conversation in &conversations {
        let (view, problems) = args.file.validated(args.what, &conversation.value);
        found += problems.len();
        is_refused |= problems
            .iter()
            .any(|problem| problem.provider_text.is_some() || problem.code == Code::NoMessages);
        if session.screen.json {
            session.screen.json(&view);
            continue;
        }
        for problem in &problems {
            let place = conversation.place(&problem.at);
            let code = problem.code.as_str();
            let told = format!("{place}  {code}  {}", problem.message);
            session.screen.answer(&session.screen.foreign(&told));
            if let Some(text) = &problem.provider_text {
                let told = format!("    the provider would say: {text}");
                session.screen.answer(&session.screen.foreign(&told));
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
        _ => {
            let (provider, shown) = (args.file.provider, args.file.shown());
            let problems = counted(found, "problem");
            // Some things no provider refuses, and its model misreads.
            let told = match (args.what, is_refused) {
                (What::Response, _) => format!("{shown} is no whole response of {provider}'s"),
                (_, true) => format!("{provider} would refuse {shown}"),
                (_, false) => format!("{provider} would accept {shown}, and its model misread it"),
            };
            let what = match args.what {
                What::Response => " --what response",
                What::Request | What::Match => "",
            };
            let failed = Failed::new(
                Exit::ToolError,
                "invalid_conversation",
                format!("{told}: {problems}"),
            );
            // What a provider accepts is left as it is.
            match is_refused || args.what == What::Response {
                false => Err(failed),
                true => Err(failed.help(format!(
                    "steadyhand repair {shown} --provider {provider}{}{what}",
                    args.file.host_shown()
                ))),
            }
        }
    }
}

/// Prints the conversation as the provider accepts it; what was changed is said on stderr.
pub(super) fn repair(session: &Session<'_>, args: &RepairArgs) -> Result<(), Failed> {
    let provider = args.file.provider;
    let conversations = args.file.read(session)?;
    for conversation in &conversations {
        if !views::conversations::is_what_is_said(provider, args.what, &conversation.value) {
            return Err(args.file.no_conversation(conversation, args.what));
        }
    }
    if args.what == Some(What::Response) {
        for response in conversations {
            repair_response(session, provider, response);
        }
        return Ok(());
    }
    for Conversation { line, value, text } in conversations {
        if session.screen.json {
            let view = views::conversations::repaired(provider, args.file.host, value);
            session.screen.json(&view);
            continue;
        }
        let (repaired, fixes) =
            conversation::repair_with(provider, &args.file.options(), value.clone());
        let shown = shown(session, &text, &repaired, fixes.is_empty());
        if let Some(line) = line {
            session.screen.note(&format!("line {line}:"));
        }
        session
            .screen
            .note(conversation::explain(provider, &value, &repaired, &fixes).trim_end());
        args.file.note_what_is_left(session, &repaired);
        session.screen.exact(&shown);
    }
    Ok(())
}

/// What was repaired, for people or for programs. What is as it was keeps its bytes: numbers that JSON readers round,
/// spaces, the way letters are written.
fn shown(session: &Session<'_>, text: &str, repaired: &Value, is_as_it_was: bool) -> String {
    if session.screen.stdout_is_terminal {
        return serde_json::to_string_pretty(repaired).unwrap_or_default();
    }
    match is_as_it_was {
        true => text.trim().to_owned(),
        false => {
            let spliced = spliced(text.as_bytes(), repaired);
            String::from_utf8_lossy(&spliced).into_owned()
        }
    }
}

/// Prints a model's response so that its readers can rely on it; what was changed is said on stderr.
fn repair_response(session: &Session<'_>, provider: Provider, response: Conversation) {
    let Conversation { line, value, text } = response;
    if session.screen.json {
        let view = views::conversations::repaired_response(provider, value);
        return session.screen.json(&view);
    }
    let (repaired, fixes) = conversation::repair_response(provider, value);
    if let Some(line) = line {
        session.screen.note(&format!("line {line}:"));
    }
    match fixes.is_empty() {
        true => session.screen.note("Nothing to mend in this response."),
        false if fixes.len() == 1 => session.screen.note("1 fix in this response:"),
        false => session
            .screen
            .note(&format!("{} fixes in this response:", fixes.len())),
    }
    for fix in &fixes {
        let at = if fix.at.is_empty() { "/" } else { &fix.at };
        let told = format!("  {at}  {}\n    {}", fix.code.as_str(), fix.message);
        session.screen.note(&session.screen.foreign(&told));
    }
    let left = conversation::validate(provider, What::Response, &repaired);
    if !left.is_empty() {
        session.screen.note(&format!(
            "\n{} left that no repair can mend safely",
            counted(left.len(), "problem")
        ));
    }
    let shown = shown(session, &text, &repaired, fixes.is_empty());
    session.screen.exact(&shown);
}

/// A well-formed error in a provider's shape: the result of a call, or a model's whole response.
pub(super) fn error_response(
    session: &Session<'_>,
    args: &ErrorResponseArgs,
) -> Result<(), Failed> {
    let made = match (args.what, &args.id, &args.name) {
        (ErrorPart::Result, Some(id), Some(name)) => {
            conversation::error_result(args.provider, id, name, &args.message)
        }
        (ErrorPart::Result, _, _) => {
            let message = "the result of a call needs the call's id and the tool's name";
            return Err(Failed::new(Exit::Usage, "usage", message)
                .help("Say --id ID --name TOOL; for a model's response: --what response"));
        }
        (ErrorPart::Response, _, _) => {
            let model = args.model.as_deref().unwrap_or_default();
            conversation::error_response(args.provider, model, &args.message)
        }
    };
    session.screen.json(&made);
    Ok(())
}

impl File {
    fn options(&self) -> Options {
        Options::new().host(self.host)
    }

    fn validated(&self, what: What, value: &Value) -> (Value, Vec<Problem>) {
        views::conversations::validated(self.provider, self.host, what, value)
    }

    /// What follows the name of the provider in a command that is shown.
    fn host_shown(&self) -> String {
        match self.host {
            Host::Original => String::new(),
            host => format!(" --host {host}"),
        }
    }

    fn shown(&self) -> String {
        self.file.display().to_string()
    }

    /// What is in the file is no conversation.
    fn no_conversation(&self, conversation: &Conversation, what: Option<What>) -> Failed {
        let wanted = views::conversations::wanted(self.provider, what);
        let (place, help) = match conversation.line {
            None => (self.shown(), format!("Give {wanted}")),
            Some(line) => (
                format!("line {line} of {}", self.shown()),
                format!(
                    "Each line is {wanted}; with one message a line: jq -s . {0} | steadyhand repair - --provider {1}",
                    self.shown(),
                    self.provider
                ),
            ),
        };
        let message = format!("there is no list of messages in {place}");
        Failed::new(Exit::Usage, "usage", message).help(help)
    }

    /// A repair cannot know what only the sender does: a model, a tool's schema.
    fn note_what_is_left(&self, session: &Session<'_>, repaired: &Value) {
        if !repaired.is_object() {
            return;
        }
        let left =
            conversation::validate_with(self.provider, &self.options(), What::Request, repaired);
        if !left.is_empty() {
            session.screen.note(&format!(
                "\n{} left that no repair can mend: steadyhand validate {} --provider {}{} --what request",
                counted(left.len(), "problem"),
                self.shown(),
                self.provider,
                self.host_shown()
            ));
        }
    }

    /// One conversation, or one a line.
    fn read(&self, session: &Session<'_>) -> Result<Vec<Conversation>, Failed> {
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
        // Some editors begin a file with a mark of its encoding.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        if text.trim().is_empty() {
            return Err(cannot("it is empty".to_owned()));
        }
        let whole = match serde_json::from_str(text) {
            Ok(value) => {
                let (line, text) = (None, text.to_owned());
                return Ok(vec![Conversation { line, value, text }]);
            }
            Err(error) => error,
        };
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty());
        let parsed: Vec<_> = lines
            .map(|(index, line)| (index + 1, line, serde_json::from_str(line)))
            .collect();
        // With one line that can be read it is JSONL, and the others must be too.
        if !parsed.iter().any(|(_, _, value)| value.is_ok()) {
            return Err(cannot(format!("it is no JSON: {whole}")));
        }
        let one = |(line, text, value): (usize, &str, serde_json::Result<Value>)| match value {
            Ok(value) => Ok(Conversation {
                line: Some(line),
                value,
                text: text.to_owned(),
            }),
            Err(error) => Err(cannot(format!(
                "line {line} is no JSON: {}",
                steadyhand::plain_words::json(&error)
            ))),
        };
        parsed.into_iter().map(one).collect()
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
