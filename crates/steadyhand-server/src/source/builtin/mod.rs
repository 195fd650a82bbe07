//! Tools that ship inside the program.

pub mod volume;
