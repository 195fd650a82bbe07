//! What homes share that mend a model's answer (the `sanitizeResponse` of SPEC R03, R14).
//!
//! Only what has one possible meaning is changed: a call without an id gets one, arguments get the form they should have,
//! a content that is not there becomes an empty one. Arguments that cannot be read stay as they are: made into an object
//! they could be run. `validate` still names them.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use steadyhand::RepeatedName;

use super::rules::Rules;
use crate::problem::{Code, Log};
use crate::texts::{self, as_text};

/// Mends one answer.
pub(crate) struct Mender<'a> {
    rules: &'static dyn Rules,
    /// What ids are made of: the same response always gives the same ones, and another one others.
    seed: String,
    /// The ids that calls of this response have.
    ids: HashSet<String>,
    log: &'a mut Log,
}

impl<'a> Mender<'a> {
    pub(crate) fn new(rules: &'static dyn Rules, response: &Value, log: &'a mut Log) -> Mender<'a> {
        Mender {
            rules,
            seed: response.to_string(),
            ids: HashSet::new(),
            log,
        }
    }

    /// What follows is an answer of its own.
    pub(super) fn begin_answer(&mut self) {
        self.ids.clear();
    }

    pub(super) fn role(&mut self, message: &mut Value, at: &str) {
        if message.get("role").is_some_and(|role| role == "assistant") {
            return;
        }
        self.fixed(
            &format!("{at}/role"),
            Code::WrongRole,
            "the answer is not said to be the model's",
            "its role is now \"assistant\"",
        );
        message["role"] = json!("assistant");
    }

    pub(super) fn content(&mut self, at: &str) {
        self.fixed(
            &format!("{at}/content"),
            Code::EmptyContent,
            NO_CONTENT,
            "it has an empty one",
        );
    }

    /// Every call has an id of its own. One that is there stays, whatever it looks like: its provider may read it.
    pub(super) fn id(&mut self, call: &mut Map<String, Value>, key: &str, at: &str) {
        let at = format!("{at}/{key}");
        let own = match call.get(key) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(own)) => own.clone(),
            Some(odd) => {
                let own = as_text(odd);
                self.fixed(&at, Code::BadCallId, "the id is no string", "it is one now");
                call.insert(key.to_owned(), json!(own));
                own
            }
        };
        if own.is_empty() && self.rules.ids_are_optional() {
            return;
        }
        if !own.is_empty() && self.ids.insert(own.clone()) {
            return;
        }
        let (code, fault) = match own.as_str() {
            "" => (Code::BadCallId, "the call has no id".to_owned()),
            // Where nobody needs ids, two calls may share one.
            _ if self.rules.ids_are_optional() => return,
            own => (
                Code::DuplicateCallId,
                format!("another call of this answer has the id {own}"),
            ),
        };
        let number = self.ids.len();
        let made = self.rules.new_id(&format!("{number} {at} {}", self.seed));
        self.fixed(&at, code, fault, format!("its id is now {made}"));
        self.ids.insert(made.clone());
        call.insert(key.to_owned(), json!(made));
    }

    pub(super) fn name(&mut self, call: &mut Map<String, Value>, at: &str) {
        let is_named = |name: &Value| name.as_str().is_some_and(|name| !name.is_empty());
        if call.get("name").is_some_and(is_named) {
            return;
        }
        self.fixed(
            &format!("{at}/name"),
            Code::BadCallName,
            "the call has no name",
            format!("it is called {}, which is no tool", texts::NO_NAME),
        );
        call.insert("name".to_owned(), json!(texts::NO_NAME));
    }

    /// Arguments that must be an object. What is no object and not the text of one stays.
    pub(super) fn object(&mut self, call: &mut Map<String, Value>, key: &str, at: &str) {
        let (fault, object) = match call.get(key) {
            Some(Value::Object(_)) => return,
            None | Some(Value::Null) => ("the call has no arguments", json!({})),
            Some(Value::String(said)) if said.trim().is_empty() => {
                ("the call has no arguments", json!({}))
            }
            // What can be read in two ways stays what it is: it is not run.
            Some(Value::String(said)) if RepeatedName::first_in(said).is_some() => return,
            Some(Value::String(said)) => match serde_json::from_str::<Value>(said) {
                Ok(object @ Value::Object(_)) => ("the arguments are text, not an object", object),
                _ => return,
            },
            Some(_) => return,
        };
        self.fixed(
            at,
            Code::BadArguments,
            fault,
            "they are written as an object",
        );
        call.insert(key.to_owned(), object);
    }

    /// Arguments that must be the text of an object. What is no JSON stays: nobody can run it by mistake.
    pub(super) fn text(
        &mut self,
        call: &mut Map<String, Value>,
        key: &str,
        at: &str,
        takes_objects: bool,
    ) {
        let (fault, said) = match call.get(key) {
            Some(Value::String(said)) if !said.trim().is_empty() => return,
            None | Some(Value::Null | Value::String(_)) => {
                ("the call has no arguments", "{}".to_owned())
            }
            Some(Value::Object(_)) if takes_objects => return,
            Some(other) => ("the arguments are not a text", other.to_string()),
        };
        self.fixed(at, Code::BadArguments, fault, "they are written as a text");
        call.insert(key.to_owned(), json!(said));
    }

    pub(super) fn fixed(
        &mut self,
        at: &str,
        code: Code,
        fault: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.log.found(at, code, fault).fixed(fix);
    }
}

pub(super) const NO_CONTENT: &str = "the answer has no content, and calls no tool";

pub(super) fn says_something(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::Array(items)) => !items.is_empty(),
        Some(_) => true,
    }
}
