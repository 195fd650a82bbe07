//! The configuration: everything wrong told at once, every value with its origin, secrets kept.

mod all_at_once;
mod fuzz;
mod long_lines;
mod mistakes;
mod origins;
#[cfg(unix)]
mod ownership;
mod reload;

mod sample;
mod secrets;
