//! The two eras of the protocol: with a handshake and sessions, or with everything in each request.

/// The protocols with a handshake, the newest first.
pub(super) const LEGACY_VERSIONS: [&str; 4] =
    ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The protocols without.
pub(super) const MODERN_VERSIONS: [&str; 1] = ["2026-07-28"];

/// Which of them a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// Every request says everything by itself.
    Modern,
    /// There was a handshake, which settled on this version.
    Legacy(&'static str),
}

impl Era {
    /// What a handshake settles on: the version that was asked for, if there is such a one.
    pub(super) fn settled(wanted: Option<&str>) -> Era {
        let known = LEGACY_VERSIONS
            .iter()
            .find(|version| wanted == Some(version));
        Era::Legacy(known.unwrap_or(&LEGACY_VERSIONS[0]))
    }

    /// The version that is spoken.
    pub(super) fn version(self) -> &'static str {
        match self {
            Era::Modern => MODERN_VERSIONS[0],
            Era::Legacy(version) => version,
        }
    }

    pub(super) fn is_modern(self) -> bool {
        self == Era::Modern
    }

    /// Whether it has what came with that version.
    pub(super) fn has(self, version: &str) -> bool {
        match self {
            Era::Modern => true,
            // Versions are dates.
            Era::Legacy(own) => own >= version,
        }
    }
}
