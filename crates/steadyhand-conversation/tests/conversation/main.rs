//! Conversations: real traffic, broken histories, random breakages, real peers.

mod attacks;
mod classes;
mod corpus;
mod foreign;
mod foreign_fields;
mod fuzz;
#[path = "../../../steadyhand/tests/shared/fuzzing.rs"]
#[allow(dead_code, reason = "other crates use more of it")]
mod fuzzing;
mod homes;
mod hosts;
mod limits;
mod open_turns;
mod peers;
mod random;
mod refusals;
mod render;
mod requests;
mod roles;
mod schemas;
mod shapes;
mod sound;
mod template;
mod threads;
mod tools;
mod trimming;
mod turns;
mod writer;
