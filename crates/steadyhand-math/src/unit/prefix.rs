//! Prefixes of units: k, milli, Gi, …

use std::sync::LazyLock;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Prefix {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    /// Powers of a thousand are chosen by themselves when a quantity is written; the others only when asked for.
    pub(crate) scientific: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PrefixSet {
    None,
    Short,
    Long,
    ShortLong,
    Squared,
    Cubic,
    BinaryShort,
    BinaryLong,
    Btu,
}

pub(crate) const NO_PREFIX: Prefix = Prefix {
    name: "",
    value: 1.0,
    scientific: true,
};

#[rustfmt::skip]
const DECIMAL: &[(&str, &str, i32)] = &[
    ("da", "deca", 1), ("h", "hecto", 2), ("k", "kilo", 3), ("M", "mega", 6), ("G", "giga", 9), ("T", "tera", 12),
    ("P", "peta", 15), ("E", "exa", 18), ("Z", "zetta", 21), ("Y", "yotta", 24), ("R", "ronna", 27), ("Q", "quetta", 30),
    ("d", "deci", -1), ("c", "centi", -2), ("m", "milli", -3), ("u", "micro", -6), ("n", "nano", -9), ("p", "pico", -12),
    ("f", "femto", -15), ("a", "atto", -18), ("z", "zepto", -21), ("y", "yocto", -24), ("r", "ronto", -27), ("q", "quecto", -30),
];

#[rustfmt::skip]
const BINARY: &[(&str, &str, i32)] = &[
    ("Ki", "kibi", 1), ("Mi", "mebi", 2), ("Gi", "gibi", 3), ("Ti", "tebi", 4),
    ("Pi", "pebi", 5), ("Ei", "exi", 6), ("Zi", "zebi", 7), ("Yi", "yobi", 8),
];

fn decimal(power: i32, short: bool, long: bool) -> Vec<Prefix> {
    let mut prefixes = vec![NO_PREFIX];
    for (enabled, is_long) in [(short, false), (long, true)] {
        if enabled {
            prefixes.extend(DECIMAL.iter().map(|(short, long, exponent)| Prefix {
                name: if is_long { long } else { short },
                // Parsed, not computed: 1e-15 and 10^-15 differ in the last bit.
                value: format!("1e{}", exponent * power).parse().unwrap_or(1.0),
                scientific: exponent % 3 == 0,
            }));
        }
    }
    prefixes
}

fn binary(is_long: bool) -> Vec<Prefix> {
    let mut prefixes: Vec<Prefix> = decimal(1, !is_long, is_long)
        .into_iter()
        .filter(|prefix| (1.0..=1e24).contains(&prefix.value) && prefix.scientific)
        .collect();
    prefixes.extend(BINARY.iter().map(|(short, long, power)| Prefix {
        name: if is_long { long } else { short },
        value: 1024f64.powi(*power),
        scientific: true,
    }));
    prefixes
}

impl PrefixSet {
    pub(crate) fn all(self) -> &'static [Prefix] {
        static SHORT: LazyLock<Vec<Prefix>> = LazyLock::new(|| decimal(1, true, false));
        static LONG: LazyLock<Vec<Prefix>> = LazyLock::new(|| decimal(1, false, true));
        static SHORT_LONG: LazyLock<Vec<Prefix>> = LazyLock::new(|| decimal(1, true, true));
        static SQUARED: LazyLock<Vec<Prefix>> = LazyLock::new(|| decimal(2, true, false));
        static CUBIC: LazyLock<Vec<Prefix>> = LazyLock::new(|| decimal(3, true, false));
        static BINARY_SHORT: LazyLock<Vec<Prefix>> = LazyLock::new(|| binary(false));
        static BINARY_LONG: LazyLock<Vec<Prefix>> = LazyLock::new(|| binary(true));
        match self {
            Self::None => &[NO_PREFIX],
            Self::Short => &SHORT,
            Self::Long => &LONG,
            Self::ShortLong => &SHORT_LONG,
            Self::Squared => &SQUARED,
            Self::Cubic => &CUBIC,
            Self::BinaryShort => &BINARY_SHORT,
            Self::BinaryLong => &BINARY_LONG,
            Self::Btu => &[
                NO_PREFIX,
                Prefix {
                    name: "MM",
                    value: 1e6,
                    scientific: true,
                },
            ],
        }
    }

    pub(crate) fn find(self, name: &str) -> Option<Prefix> {
        self.all()
            .iter()
            .copied()
            .find(|prefix| prefix.name == name)
    }

    pub(crate) fn named(name: &str) -> Self {
        match name.to_ascii_uppercase().as_str() {
            "SHORT" => Self::Short,
            "LONG" => Self::Long,
            "SHORTLONG" => Self::ShortLong,
            "BINARY_SHORT" => Self::BinaryShort,
            "BINARY_LONG" => Self::BinaryLong,
            _ => Self::None,
        }
    }
}
