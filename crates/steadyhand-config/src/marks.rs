//! Marks in texts that more than one crate writes or looks for.

/// What a call's progress messages begin with where something was done to it on purpose (fault injection).
pub const ON_PURPOSE: &str = "[chaos]";
