//! Programs and all they start, with real programs.

#[cfg(target_os = "linux")]
mod adoption;
mod find;
mod group;
#[cfg(target_os = "linux")]
mod guard;
mod support;
