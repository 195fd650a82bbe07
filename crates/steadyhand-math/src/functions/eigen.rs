//! eigen

use crate::function::Builtin;

pub(crate) const TABLE: &[Builtin] = &[];
