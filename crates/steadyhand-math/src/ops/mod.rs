//! The operators, on scalars and on matrices.

pub(crate) mod arithmetic;
pub(crate) mod bits;
pub(crate) mod compare;
pub(crate) mod linear;
pub(crate) mod logic;
pub(crate) mod power;
pub(crate) mod rounding;
