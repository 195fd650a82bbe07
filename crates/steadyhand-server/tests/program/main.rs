//! The program, its configuration and its sources, tested from outside.

mod cli;
mod config;
mod http;
mod command;
mod documents;
mod openapi;
mod support;
