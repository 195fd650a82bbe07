//! matrix_functions

use crate::function::Builtin;

pub(crate) const TABLE: &[Builtin] = &[];
