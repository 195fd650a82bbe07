//! What a program printed, as the tool's output.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use steadyhand::{Output, ToolError, with_exact_integers};

use super::captured::{Captured, Text};
use super::error;

/// How the output of a program is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutputMode {
    /// One text, without the line ends at its end.
    #[default]
    Text,
    /// A JSON value.
    Json,
    /// A list of lines.
    Lines,
}

/// The output of a program that ended well. `hide` removes secrets.
///
/// Notes stand first: what is behind them may be cut once more, by the tool's own limit.
pub(super) fn answer(
    mode: OutputMode,
    program: &str,
    stdout: &Captured,
    hide: impl Fn(String) -> String,
) -> Result<Output, ToolError> {
    let mut printed = stdout.text();
    printed.text = hide(printed.text);
    match mode {
        OutputMode::Text => {
            let mut text = String::new();
            for note in notes(&printed) {
                text.push_str(&note);
                text.push('\n');
            }
            text.push_str(printed.text.trim_end_matches(['\n', '\r']));
            Ok(Output::json(text))
        }
        OutputMode::Lines => {
            let lines = printed.text.lines().map(str::to_owned);
            let all = notes(&printed).chain(lines).map(Value::String);
            Ok(Output::json(Value::Array(all.collect())))
        }
        OutputMode::Json => json(program, &printed).map(Output::json),
    }
}

fn json(program: &str, printed: &Text) -> Result<Value, ToolError> {
    if let Some((kept, bytes)) = printed.cut {
        return Err(error::unreadable(
            program,
            &format!(
                "its output of {bytes} bytes is larger than the {kept} that are read; raise `limits.output`"
            ),
        ));
    }
    serde_json::from_str(&with_exact_integers(&printed.text)).map_err(|fault| {
        let began = match printed.text.trim() {
            "" => "it printed nothing".to_owned(),
            text => format!("it began with {:?}", text.chars().take(80).collect::<String>()),
        };
        error::unreadable(
            program,
            &format!("its output is no JSON ({}); {began}; correct the program, or set `output = \"text\"`", steadyhand::plain_words::json(&fault)),
        )
    })
}

fn notes(printed: &Text) -> impl Iterator<Item = String> {
    let cut = printed
        .cut
        .map(|(kept, bytes)| format!("[cut: the first {kept} of {bytes} bytes]"));
    let mended = printed.mended.then(|| {
        "[note: the output is not valid UTF-8; � stands for what could not be read]".to_owned()
    });
    cut.into_iter().chain(mended)
}
