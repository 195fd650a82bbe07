//! The line that a person types: edited, remembered while the chat lasts, cleared by Ctrl-C.

use rustyline::history::MemHistory;
use rustyline::{Cmd, ConditionalEventHandler, Config, Editor, Event, EventContext, EventHandler};
use rustyline::{KeyEvent, Movement, RepeatCount};

use super::keys::{Keys, Terminal};
use crate::Interrupts;
use crate::error::Failed;

/// What came of asking for a line.
pub(super) enum Typed {
    Line(String),
    /// Ctrl-C, and the line was empty.
    Interrupt,
    /// Ctrl-D, or the terminal is gone.
    End,
    /// A signal that ends the program.
    Signal(u8),
}

/// Reads lines from the terminal.
pub(super) struct Prompt {
    /// None while a line is being read.
    editor: Option<Editor<(), MemHistory>>,
    before: Terminal,
    /// Typed while the last answer came.
    typed_ahead: String,
}

impl Prompt {
    pub(super) fn new() -> Result<Prompt, Failed> {
        let before = Terminal::as_it_is();
        let made = Editor::with_history(Config::default(), MemHistory::new());
        let mut editor = made.map_err(|error| {
            Failed::unexpected(format!("no line can be read from this terminal: {error}"))
        })?;
        let clear = EventHandler::Conditional(Box::new(ClearTheLine));
        editor.bind_sequence(KeyEvent::ctrl('C'), clear);
        Ok(Prompt {
            editor: Some(editor),
            before,
            typed_ahead: String::new(),
        })
    }

    /// What was typed while an answer came begins the next line.
    pub(super) fn begin_with(&mut self, keys: &Keys) {
        self.typed_ahead = keys.typed();
    }

    /// The next line. A signal does not wait for it.
    pub(super) async fn line(
        &mut self,
        prompt: &'static str,
        interrupts: &mut Interrupts,
    ) -> Typed {
        let Some(mut editor) = self.editor.take() else {
            return Typed::End;
        };
        let typed = std::mem::take(&mut self.typed_ahead);
        let reading = tokio::task::spawn_blocking(move || {
            let read = editor.readline_with_initial(prompt, (&typed, ""));
            if let Ok(line) = &read
                && !line.trim().is_empty()
            {
                let _ = editor.add_history_entry(line.as_str());
            }
            (editor, read)
        });
        tokio::select! {
            read = reading => match read {
                Ok((editor, read)) => {
                    self.editor = Some(editor);
                    match read {
                        Ok(line) => Typed::Line(line),
                        Err(rustyline::error::ReadlineError::Interrupted) => Typed::Interrupt,
                        Err(_) => Typed::End,
                    }
                }
                Err(_) => Typed::End,
            },
            // Whoever reads still holds the terminal in its own mode.
            code = interrupts.next() => {
                self.before.restore();
                Typed::Signal(code)
            }
        }
    }
}

/// Ctrl-C clears a line that has something, and leaves one that has nothing.
struct ClearTheLine;

impl ConditionalEventHandler for ClearTheLine {
    fn handle(
        &self,
        _: &Event,
        _: RepeatCount,
        _: bool,
        context: &EventContext<'_>,
    ) -> Option<Cmd> {
        match context.line().is_empty() {
            true => Some(Cmd::Interrupt),
            false => Some(Cmd::Kill(Movement::WholeBuffer)),
        }
    }
}
