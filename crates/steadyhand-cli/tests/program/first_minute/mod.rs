//! The first minute: the demo set where nothing is configured, and the way to a configuration of one's own.

mod demo;
mod init;
