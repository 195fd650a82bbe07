//! `help` has texts to show in mathjs; here it says where they are.

use crate::error::{MathError, Result};
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::Builtin;
use crate::value::node::Node;

pub(crate) const TABLE: &[Builtin] = &[];

pub(crate) fn help(_: &mut Env, _: &[Node]) -> Result<Value> {
    Err(MathError::unsupported(
        "Function help is left out here; the documentation is mathjs's own",
    ))
}
