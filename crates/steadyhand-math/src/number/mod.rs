//! The kinds of numbers beside f64, and how numbers are written.

pub(crate) mod complex;
mod complex_angles;
pub(crate) mod decimal;
pub(crate) mod digits;
pub(crate) mod fraction;
pub(crate) mod integer;
pub(crate) mod special;
pub(crate) mod transcendental;
