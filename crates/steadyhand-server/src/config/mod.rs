//! The configuration file: found, read, checked, and turned into settings.

pub mod text;
pub mod units;

pub use text::SecretText;
