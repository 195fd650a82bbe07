//! Conversations: real traffic, broken histories, random breakages, real peers.

mod attacks;
mod classes;
mod corpus;
mod peers;
mod random;
mod render;
mod requests;
mod shapes;
mod template;
mod threads;
mod tools;
mod trimming;
mod turns;
