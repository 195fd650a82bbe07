//! Functions as values: built in, defined in an expression, or chosen by type.

use std::sync::Arc;

use super::env::Env;
use super::node::{Definition, Node};
use super::{Object, Value};
use crate::error::Result;

pub(crate) type Native = fn(&mut Env, &[Value]) -> Result<Value>;
/// Takes its arguments unevaluated, as `map` and `or` do.
pub(crate) type Lazy = fn(&mut Env, &[Node]) -> Result<Value>;

/// One function of the library.
#[derive(Debug)]
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    pub(crate) arguments_min: usize,
    pub(crate) arguments_max: usize,
    pub(crate) run: Native,
}

pub(crate) const ANY_NUMBER: usize = usize::MAX;

impl Builtin {
    pub(crate) const fn new(
        name: &'static str,
        arguments: std::ops::RangeInclusive<usize>,
        run: Native,
    ) -> Self {
        Self {
            name,
            arguments_min: *arguments.start(),
            arguments_max: *arguments.end(),
            run,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Function {
    Builtin(&'static Builtin),
    User(Arc<UserFunction>),
    /// `typed({"number": f, "string": g})`
    Typed(Arc<Object>),
    /// `node.evaluate`, `parser.get`, …: a name and what it belongs to.
    Method(Arc<(Value, Arc<str>)>),
}

#[derive(Debug)]
pub(crate) struct UserFunction {
    pub(crate) definition: Arc<Definition>,
    /// The parameters of the functions around it, where it was defined inside one.
    pub(crate) captured: Option<Arc<Frame>>,
}

/// The parameters of a function that runs, and of the functions around it.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) values: Vec<(Arc<str>, Value)>,
    pub(crate) outer: Option<Arc<Frame>>,
}

impl Frame {
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        let mut frame = self;
        loop {
            if let Some((_, value)) = frame.values.iter().find(|(own, _)| &**own == name) {
                return Some(value);
            }
            frame = frame.outer.as_deref()?;
        }
    }
}

impl Function {
    /// How it prints: its head as it was written, or only that it is one.
    pub(crate) fn syntax(&self) -> String {
        match self {
            Self::User(user) => {
                let definition = &user.definition;
                let parameters: Vec<&str> =
                    definition.parameters.iter().map(|name| &**name).collect();
                format!("{}({})", definition.name, parameters.join(", "))
            }
            Self::Builtin(_) | Self::Typed(_) | Self::Method(_) => "function".into(),
        }
    }
}
