//! For tests of applications: scripted tools and a paused clock.

mod script;

pub use script::Script;
pub use script::Seen;
pub use script::on_paused_clock;
pub use script::script;
