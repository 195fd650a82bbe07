//! The language through its public surface: by itself, beside mathjs, and against hostile input.

mod parity;
mod peer;
