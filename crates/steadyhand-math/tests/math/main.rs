//! The language through its public surface: by itself, beside mathjs, and against hostile input.

mod compare;
mod differential;
mod generate;
mod hostile;
mod language;
mod parity;
mod peer;
mod rare;
mod silent;
mod typical;
