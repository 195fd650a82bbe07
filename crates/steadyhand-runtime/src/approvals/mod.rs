//! Calls that wait for a person's yes: bound to the exact arguments, with an end, decided once.

mod approval;
mod desk;
mod elicited;
mod fingerprint;
mod gate;
mod hidden;

pub use approval::Foreign;
pub use approval::in_words;
pub use approval::{Approval, ApprovalState, CannotDecide, Decision};
pub use desk::Desk;
pub use fingerprint::of as arguments_hash;
pub use gate::{Ask, NobodyToAsk};
pub use hidden::hash_of;
pub use hidden::{HiddenBecause, HiddenPart};
