//! The library of functions and constants, one file per category; here is where names are looked up.

pub(crate) mod algebra;
pub(crate) mod arithmetic;
pub(crate) mod bitwise;
pub(crate) mod combinatorics;
pub(crate) mod complex;
pub(crate) mod construction;
pub(crate) mod divisors;
pub(crate) mod eigen;
pub(crate) mod expression;
pub(crate) mod factor;
pub(crate) mod fourier;
pub(crate) mod geometry;
pub(crate) mod help;
pub(crate) mod higher;
pub(crate) mod linear;
pub(crate) mod logical;
pub(crate) mod matrices;
pub(crate) mod matrix_functions;
pub(crate) mod ode;
pub(crate) mod operators;
pub(crate) mod probability;
pub(crate) mod random;
pub(crate) mod range;
pub(crate) mod relational;
pub(crate) mod reshape;
pub(crate) mod rounding;
pub(crate) mod sets;
pub(crate) mod signal;
pub(crate) mod sorting;
pub(crate) mod special;
pub(crate) mod statistics;
pub(crate) mod strings;
pub(crate) mod trigonometry;
pub(crate) mod typed;
pub(crate) mod units;
pub(crate) mod utils;

use std::collections::HashMap;
use std::f64::consts;
use std::sync::LazyLock;

use crate::error::Result;
use crate::number::complex::I;
use crate::number::transcendental;
use crate::unit::constants::CONSTANTS;
use crate::value::Value;
use crate::value::env::{Env, NumberKind};
use crate::value::function::{Builtin, Function, Lazy};
use crate::value::unit::Unit;

/// What a name means when no variable has it.
enum Entry {
    Builtin(&'static Builtin),
    Lazy(Lazy),
    Number(f64),
    Physical(f64, &'static str),
    ImaginaryUnit,
    Version,
}

/// The version of mathjs whose language this is.
const VERSION: &str = "15.2.0";

static NAMES: LazyLock<HashMap<&'static str, Entry, foldhash::fast::RandomState>> =
    LazyLock::new(|| {
        let mut names = HashMap::default();
        let tables: &[&'static [Builtin]] = &[
            algebra::TABLE,
            arithmetic::TABLE,
            bitwise::TABLE,
            combinatorics::TABLE,
            complex::TABLE,
            construction::TABLE,
            divisors::TABLE,
            eigen::TABLE,
            expression::TABLE,
            factor::TABLE,
            fourier::TABLE,
            geometry::TABLE,
            help::TABLE,
            higher::TABLE,
            linear::TABLE,
            logical::TABLE,
            matrices::TABLE,
            matrix_functions::TABLE,
            ode::TABLE,
            operators::TABLE,
            probability::TABLE,
            random::TABLE,
            range::TABLE,
            relational::TABLE,
            reshape::TABLE,
            rounding::TABLE,
            sets::TABLE,
            signal::TABLE,
            sorting::TABLE,
            special::TABLE,
            statistics::TABLE,
            strings::TABLE,
            trigonometry::TABLE,
            typed::TABLE,
            units::TABLE,
            utils::TABLE,
        ];
        for builtin in tables.iter().copied().flatten() {
            names.insert(builtin.name, Entry::Builtin(builtin));
        }
        for (name, value, unit) in CONSTANTS {
            names.insert(
                name,
                if unit.is_empty() {
                    Entry::Number(*value)
                } else {
                    Entry::Physical(*value, unit)
                },
            );
        }
        let numbers = [
            ("pi", consts::PI),
            ("PI", consts::PI),
            ("tau", consts::TAU),
            ("e", consts::E),
            ("E", consts::E),
            ("phi", 1.618_033_988_749_895),
            ("LN2", consts::LN_2),
            ("LN10", consts::LN_10),
            ("LOG2E", consts::LOG2_E),
            ("LOG10E", consts::LOG10_E),
            ("SQRT1_2", consts::FRAC_1_SQRT_2),
            ("SQRT2", consts::SQRT_2),
        ];
        names.extend(numbers.map(|(name, value)| (name, Entry::Number(value))));
        names.insert("i", Entry::ImaginaryUnit);
        names.insert("version", Entry::Version);
        names.extend(LAZY.iter().map(|(name, lazy)| (*name, Entry::Lazy(*lazy))));
        names
    });

/// Functions that look at their arguments before these are computed.
const LAZY: &[(&str, Lazy)] = &[
    ("map", higher::map),
    ("filter", higher::filter),
    ("forEach", higher::for_each),
    ("and", logical::and),
    ("or", logical::or),
    ("partitionSelect", sorting::partition_select),
    ("help", help::help),
];

/// What can be called by this name.
pub(crate) enum Callable {
    Builtin(&'static Builtin),
    Lazy(Lazy),
}

pub(crate) fn find(name: &str) -> Option<Callable> {
    match NAMES.get(name)? {
        Entry::Builtin(builtin) => Some(Callable::Builtin(builtin)),
        Entry::Lazy(lazy) => Some(Callable::Lazy(*lazy)),
        Entry::Number(_) | Entry::Physical(..) | Entry::ImaginaryUnit | Entry::Version => None,
    }
}

pub(crate) fn is_defined(name: &str) -> bool {
    NAMES.contains_key(name)
}

/// What the name alone evaluates to.
pub(crate) fn value(env: &mut Env, name: &str) -> Result<Option<Value>> {
    Ok(Some(match NAMES.get(name) {
        Some(Entry::Number(value)) => match (env.settings.number, name) {
            (NumberKind::BigNumber, "pi" | "PI") => {
                Value::big(transcendental::pi(env.settings.precision))
            }
            (NumberKind::BigNumber, "e" | "E") => {
                Value::big(transcendental::e(env.settings.precision))
            }
            _ => Value::Num(*value),
        },
        Some(Entry::Physical(value, unit)) => {
            let unit = Unit::read(env, unit)?.with_value(env, &Value::Num(*value))?;
            Value::unit(Unit {
                fixed_prefix: true,
                ..unit
            })
        }
        Some(Entry::ImaginaryUnit) => I.into(),
        Some(Entry::Version) => Value::text(VERSION),
        Some(Entry::Builtin(builtin)) => Value::Function(Function::Builtin(builtin)),
        // Functions that look at their arguments first have no value of their own.
        Some(Entry::Lazy(_)) | None => return Ok(None),
    }))
}
