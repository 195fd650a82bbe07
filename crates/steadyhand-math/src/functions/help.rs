//! `help` has texts to show in mathjs; here it says where they are.

use crate::env::Env;
use crate::error::{MathError, Result};
use crate::function::Builtin;
use crate::syntax::node::Node;
use crate::value::Value;

pub(crate) const TABLE: &[Builtin] = &[];

pub(crate) fn help(_: &mut Env, _: &[Node]) -> Result<Value> {
    Err(MathError::unsupported(
        "Function help is left out here; the documentation is mathjs's own",
    ))
}
