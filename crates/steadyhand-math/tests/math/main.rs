//! The language through its public surface: by itself, beside mathjs, and against hostile input.

mod generate;
mod hostile;
mod language;
mod parity;
mod peer;
mod rare;
mod typical;
