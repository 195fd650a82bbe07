//! The program, its configuration and its sources, tested from outside.

mod openapi;
mod support;
