//! For tests of applications: scripted tools and a paused clock (`testing`), strict providers (`strict`).

#[cfg(feature = "testing")]
mod script;
pub mod strict;

#[cfg(feature = "testing")]
pub use script::Script;
#[cfg(feature = "testing")]
pub use script::Seen;
#[cfg(feature = "testing")]
pub use script::on_paused_clock;
#[cfg(feature = "testing")]
pub use script::script;
