//! Starts programs, and stops them with everything they started.
