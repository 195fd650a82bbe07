//! The program, its configuration and its sources, tested from outside.

mod import;
mod support;
