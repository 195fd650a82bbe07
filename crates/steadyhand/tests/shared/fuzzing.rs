//! Made-up inputs for parsers: briefly in the tests, for a chosen time by `scripts/fuzz`.

use std::fmt::Debug;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{TestCaseError, TestRunner};
use tokio::time::Instant;

/// How many seconds each property is tried, where `scripts/fuzz` asks for it.
const SECONDS: &str = "STEADYHAND_FUZZ_SECONDS";

/// Tries a property on so many inputs, or for as long as was asked for. A failing input is made small and shown: it
/// becomes a test of its own.
pub(crate) fn fuzz<T: Debug>(
    cases: u32,
    inputs: &impl Strategy<Value = T>,
    property: impl Fn(T) -> Result<(), TestCaseError>,
) {
    let seconds = std::env::var(SECONDS).ok();
    let seconds = seconds.and_then(|text| text.parse().ok());
    let seconds = Duration::from_secs(seconds.unwrap_or(0));
    let begun = Instant::now();
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        max_shrink_time: 20_000,
        ..ProptestConfig::default()
    };
    loop {
        let mut runner = TestRunner::new(config.clone());
        if let Err(failure) = runner.run(inputs, &property) {
            panic!("{failure}");
        }
        if begun.elapsed() >= seconds {
            break;
        }
    }
}

/// One of the texts, changed in a few places: parts are left out, repeated, taken from others or replaced by `words`.
pub(crate) fn changed(
    texts: &'static [&'static str],
    words: &'static [&'static str],
) -> impl Strategy<Value = String> {
    let change = (
        0..6_u8,
        any::<Index>(),
        any::<Index>(),
        select(texts),
        select(words),
    );
    (select(texts), vec(change, 0..8)).prop_map(|(text, changes)| {
        let mut text = text.to_owned();
        for (kind, one, other, another, word) in changes {
            if text.len() > 32 * 1024 {
                break;
            }
            let place =
                |text: &str, index: &Index| text.floor_char_boundary(index.index(text.len() + 1));
            let (start, end) = (place(&text, &one), place(&text, &other));
            let (start, end) = (start.min(end), start.max(end));
            match kind {
                0 => text.replace_range(start..end, ""),
                1 => {
                    let part = text[start..end].to_owned();
                    text.insert_str(start, &part);
                }
                2 => text.insert_str(start, word),
                3 => {
                    let end = text.floor_char_boundary(end.min(start + 8));
                    text.replace_range(start..end.max(start), word);
                }
                4 => {
                    let part = &another[place(another, &one)..];
                    text.insert_str(start, part);
                }
                _ => text.truncate(end),
            }
        }
        text
    })
}

/// The bytes, cut into pieces at these places.
pub(crate) fn pieces<'a>(bytes: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places
        .windows(2)
        .map(|pair| &bytes[pair[0]..pair[1]])
        .collect()
}
