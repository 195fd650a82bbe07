//! Keeps the panics that tests cause on purpose off the screen.

use std::panic;
use std::sync::Once;

/// Panics whose text begins so are part of a test.
pub(crate) const ON_PURPOSE: &str = "on purpose";

/// From here on, panics on purpose print nothing. The others do.
pub(crate) fn about_panics_on_purpose() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let text = info.payload_as_str().unwrap_or_default();
            if !text.starts_with(ON_PURPOSE) {
                loud(info);
            }
        }));
    });
}
