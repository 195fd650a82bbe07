//! Conversations: real traffic, broken histories, random breakages, real peers.

mod attacks;
mod classes;
mod corpus;
mod foreign;
mod foreign_fields;
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
mod template;
mod threads;
mod tools;
mod trimming;
mod turns;
mod writer;
