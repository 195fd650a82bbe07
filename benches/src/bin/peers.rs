//! The same tool through other executors (to come).
fn main() {}
