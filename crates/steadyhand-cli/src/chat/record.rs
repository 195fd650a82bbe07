//! What a turn did: for `--json`, and for those who stopped it.

use serde_json::{Value, json};
use steadyhand_models::{AgentEvent, TurnEnd};

use super::line::arguments;

/// A turn that came to its end.
pub(super) struct Ended {
    pub(super) turn: TurnEnd,
    pub(super) calls: Vec<CallView>,
    /// The signal that stopped it.
    pub(super) signal: Option<u8>,
}

/// A call of this turn, as JSON shows it.
pub(super) struct CallView {
    call_id: String,
    name: String,
    args: Value,
    elapsed_ms: f64,
    /// The failure's code; `NOT_RUN` for one that the loop refused.
    failed: Option<String>,
    content: String,
}

impl CallView {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "call_id": self.call_id,
            "name": self.name,
            "args": self.args,
            "ok": self.failed.is_none(),
            "error": self.failed,
            "elapsed_ms": self.elapsed_ms,
            "result": self.content,
        })
    }

    fn is_cancelled(&self) -> bool {
        self.failed.as_deref() == Some("CANCELLED")
    }
}

impl Ended {
    /// What is done and what is not, after Ctrl-C.
    pub(super) fn what_was_stopped(&self) -> String {
        let names = |calls: Vec<&CallView>| {
            let names = calls.iter().map(|call| {
                let args = arguments(&call.args);
                match args.len() {
                    0 | 41.. => call.name.clone(),
                    _ => format!("{} {args}", call.name),
                }
            });
            names.collect::<Vec<_>>().join(", ")
        };
        let (cancelled, others): (Vec<&CallView>, Vec<&CallView>) =
            self.calls.iter().partition(|call| call.is_cancelled());
        let done: Vec<&CallView> = others
            .into_iter()
            .filter(|call| call.failed.is_none())
            .collect();
        let mut text = "Stopped.".to_owned();
        if !done.is_empty() {
            text.push_str(&format!(" Done: {}.", names(done)));
        }
        if !cancelled.is_empty() {
            text.push_str(&format!(
                " Cancelled: {}; the model is told so.",
                names(cancelled)
            ));
        }
        text
    }
}

/// What a turn did, as it is told.
#[derive(Default)]
pub(super) struct Record {
    /// Calls that were started, in the order asked; what is none any more has ended.
    started: Vec<Option<(String, Value)>>,
    ended: Vec<(usize, CallView)>,
}

impl Record {
    pub(super) fn note(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::CallStarted { call_id, args, .. } => {
                self.started.push(Some((call_id, args)));
            }
            AgentEvent::CallFinished {
                call_id,
                name,
                elapsed_ms,
                result,
                outcome,
            } => {
                let is_it = |one: &Option<(String, Value)>| {
                    one.as_ref().is_some_and(|(id, _)| *id == call_id)
                };
                let place = self.started.iter().position(is_it);
                let args = place.and_then(|place| self.started[place].take());
                let failed = match &outcome {
                    Some(outcome) => outcome.failure().map(|failure| failure.code.to_string()),
                    None => Some("NOT_RUN".to_owned()),
                };
                let view = CallView {
                    call_id,
                    name,
                    args: args.map_or(Value::Null, |(_, args)| args),
                    elapsed_ms,
                    failed,
                    content: result.content.text().into_owned(),
                };
                self.ended.push((place.unwrap_or(self.started.len()), view));
            }
            _ => {}
        }
    }

    /// The calls in the order asked.
    pub(super) fn calls(mut self) -> Vec<CallView> {
        self.ended.sort_by_key(|(place, _)| *place);
        self.ended.into_iter().map(|(_, view)| view).collect()
    }
}
