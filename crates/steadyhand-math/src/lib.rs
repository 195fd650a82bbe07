//! The expression language of mathjs, native: numbers, units, matrices, complex and big numbers, variables, functions.
//!
//! Every expression stays within [`Limits`]: none can hang, overflow the stack or exhaust memory, and none can reach
//! anything outside. Symbolic algebra (`simplify`, `derivative`, `rationalize`) is left out, and says so.
//!
//! ```
//! assert_eq!(steadyhand_math::evaluate("5.4 cm to inch").unwrap().to_string(), "2.125984251968504 inch");
//! let refused = steadyhand_math::evaluate("zeros(1e9)").unwrap_err();
//! assert_eq!(refused.to_string(), "Matrix too large: 1000000000 cells, at most 100000 are allowed");
//! ```

mod access;
mod broadcast;
mod convert;
mod error;
mod eval;
mod format;
mod functions;
mod limits;
mod names;
mod nesting;
mod number;
mod ops;
mod quantity;
mod refusals;
mod session;
mod signatures;
mod syntax;
mod unit;
mod value;

pub use error::ErrorKind;
pub use error::MathError;
pub use limits::Limits;
pub use session::Answer;
pub use session::Session;
pub use session::evaluate;
