//! The language through its public surface.
