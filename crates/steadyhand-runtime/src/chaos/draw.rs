//! Lots: the same for the same seed, rule, tool and number, on every machine and in every version.

/// FNV-1a, the 64 bit one.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The lot of one attempt.
pub(super) fn lot(seed: u64, rule: usize, tool: &str, number: u64) -> u64 {
    let bytes = seed
        .to_le_bytes()
        .into_iter()
        .chain((rule as u64).to_le_bytes())
        .chain(number.to_le_bytes())
        .chain(tool.bytes());
    let hash = bytes.fold(OFFSET, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(PRIME)
    });
    mixed(hash)
}

/// Another one that follows from it.
pub(super) fn further(lot: u64, which: u64) -> u64 {
    mixed(lot ^ which.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// As a share: 0 to just below 1.
pub(super) fn share(lot: u64) -> f64 {
    (lot >> 11) as f64 / (1u64 << 53) as f64
}

/// The last step of SplitMix64: every bit depends on every other.
fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    /// A plan and a seed in somebody's test suite must do tomorrow what they did yesterday.
    #[test]
    fn lots_never_change() {
        let lots = [
            (0, 0, "weather", 1),
            (7, 0, "weather", 1),
            (7, 1, "weather", 2),
        ]
        .map(|(seed, rule, tool, number)| super::lot(seed, rule, tool, number));
        assert_eq!(
            lots,
            [
                0x4bd0_2dc6_73ac_aa64,
                0xb9fb_c14a_5961_13db,
                0xb713_4afa_d89d_c3d6
            ]
        );
        assert!(super::share(u64::MAX) < 1.0);
    }
}
