//! The configuration file: found, read, checked, and turned into settings.

mod document;
pub mod flex_chat;
pub mod import;
pub mod keyring;
pub mod reference;
pub mod secret;
pub mod surroundings;
pub mod text;
pub mod units;

pub use document::Place;
pub use surroundings::Surroundings;
pub use text::SecretText;
