//! The commands as people and scripts use them: streams, exit codes, arguments.

mod arguments;
mod commands;
mod completions;
mod conversation;
mod exit_codes;
mod guidance;
mod log_lines;
mod programs;
mod switches;
