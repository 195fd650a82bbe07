//! The commands as people and scripts use them: streams, exit codes, arguments.

mod arguments;
mod commands;
mod completions;
mod conversation;
mod exit_codes;
mod programs;
mod switches;
