//! Finds units by name, remembers units an expression creates, and in which unit it likes to read its answers.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::prefix::{NO_PREFIX, PrefixSet};
use super::table::{BASES, DEFAULTS, UNITS};
use super::{DIMENSIONS, Dimensions, Part};
use crate::error::{MathError, Result};
use crate::names::is_letter;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// One unit: what it measures and how much of the base unit it is.
#[derive(Debug, Clone)]
pub(crate) struct Definition {
    pub(crate) name: Arc<str>,
    pub(crate) prefixes: PrefixSet,
    pub(crate) base: Option<Arc<str>>,
    pub(crate) value: f64,
    /// So many times the imaginary unit, as reactive power is.
    pub(crate) is_imaginary: bool,
    pub(crate) offset: f64,
    pub(crate) dimensions: Dimensions,
}

static KNOWN: LazyLock<Map<&'static str, Arc<Definition>>> = LazyLock::new(|| {
    let mut known = Map::default();
    for row in UNITS {
        let dimensions = BASES
            .iter()
            .find(|(key, _)| *key == row.base)
            .map(|(_, dimensions)| widen(dimensions));
        for name in row.names.split(' ') {
            let definition = Definition {
                name: name.into(),
                prefixes: row.prefixes,
                base: Some(row.base.into()),
                value: row.value,
                is_imaginary: name == "VAR",
                offset: row.offset,
                dimensions: dimensions.unwrap_or_default(),
            };
            known.insert(name, Arc::new(definition));
        }
    }
    known
});

fn widen(dimensions: &[i8; 9]) -> Dimensions {
    std::array::from_fn(|i| dimensions.get(i).map_or(0.0, |power| f64::from(*power)))
}

/// What one session adds to the known units.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    created: Map<Arc<str>, Arc<Definition>>,
    /// What can be measured beyond the known quantities.
    created_bases: Vec<(Arc<str>, Dimensions)>,
    /// Base dimensions in use beyond the nine.
    dimensions_created: usize,
    /// The unit last named for each quantity: sums and products are written in it.
    preferred: Map<Arc<str>, Part>,
}

/// Units one session may create.
const CREATED_MAX: usize = 256;

impl Registry {
    /// Exactly this unit, without a prefix.
    pub(crate) fn known(name: &str) -> Option<Arc<Definition>> {
        KNOWN.get(name).cloned()
    }

    pub(crate) fn find(&self, name: &str) -> Option<Part> {
        if let Some(definition) = self.exact(name) {
            return Some(Part {
                unit: definition,
                prefix: NO_PREFIX,
                power: 1.0,
            });
        }
        // No prefix is longer than "quetta"; units begin on a character.
        (1..name.len().min(7))
            .filter(|at| name.is_char_boundary(*at))
            .find_map(|at| {
                let unit = self.exact(&name[at..])?;
                let prefix = unit.prefixes.find(&name[..at])?;
                Some(Part {
                    unit,
                    prefix,
                    power: 1.0,
                })
            })
    }

    fn exact(&self, name: &str) -> Option<Arc<Definition>> {
        self.created.get(name).or_else(|| KNOWN.get(name)).cloned()
    }

    /// Remembers that this unit was named.
    pub(crate) fn prefer(&mut self, part: &Part) {
        if let Some(base) = &part.unit.base {
            self.preferred.insert(
                base.clone(),
                Part {
                    power: 1.0,
                    ..part.clone()
                },
            );
        }
    }

    /// The single unit a quantity of these dimensions is written in; `Some(None)` if it needs none.
    pub(crate) fn unit_for(&self, dimensions: &Dimensions) -> Option<Option<Part>> {
        if dimensions.iter().all(|power| power.abs() <= 1e-12) {
            return Some(None);
        }
        let base = self.base_of(dimensions)?;
        self.writing(&base).map(Some)
    }

    fn base_of(&self, dimensions: &Dimensions) -> Option<Arc<str>> {
        let same = |other: &Dimensions| super::same_dimensions(dimensions, other);
        let known = BASES
            .iter()
            .find(|(_, own)| same(&widen(own)))
            .map(|(key, _)| Arc::from(*key));
        known.or_else(|| {
            self.created_bases
                .iter()
                .find(|(_, own)| same(own))
                .map(|(key, _)| key.clone())
        })
    }

    fn writing(&self, base: &str) -> Option<Part> {
        if let Some(part) = self.preferred.get(base) {
            return Some(part.clone());
        }
        let (_, name) = DEFAULTS.iter().find(|(key, _)| *key == base)?;
        self.find(name)
    }

    /// Base units for each dimension, to write what has no unit of its own; `None` where a dimension has none.
    pub(crate) fn base_units(&self, dimensions: &Dimensions) -> Option<Vec<Part>> {
        const ORDER: [&str; 9] = [
            "MASS",
            "LENGTH",
            "TIME",
            "CURRENT",
            "TEMPERATURE",
            "LUMINOUS_INTENSITY",
            "AMOUNT_OF_SUBSTANCE",
            "ANGLE",
            "BIT",
        ];
        let mut parts = Vec::new();
        for (at, power) in dimensions.iter().enumerate() {
            if power.abs() > 1e-12 {
                let base = ORDER.get(at).and_then(|base| self.writing(base))?;
                parts.push(Part {
                    power: *power,
                    ..base
                });
            }
        }
        Some(parts)
    }

    pub(crate) fn si_units(dimensions: &Dimensions) -> Option<Vec<Part>> {
        Self::default().base_units(dimensions)
    }

    /// A unit that measures something new, or so much of known dimensions.
    pub(crate) fn create(
        &mut self,
        name: &str,
        aliases: &[String],
        prefixes: PrefixSet,
        offset: f64,
        measure: Option<(f64, Dimensions)>,
    ) -> Result<()> {
        for taken in std::iter::once(name).chain(aliases.iter().map(String::as_str)) {
            if self.exact(taken).is_some() {
                return Err(MathError::units(format!(
                    "Cannot create unit \"{taken}\": a unit with that name already exists"
                )));
            }
            let mut letters = taken.chars();
            let starts_well = letters.next().is_some_and(is_letter);
            if !starts_well || !letters.all(|c| is_letter(c) || c.is_ascii_digit()) {
                return Err(MathError::units(format!(
                    "Invalid unit name (must be alphanumeric): \"{taken}\""
                )));
            }
        }
        if self.created.len() + aliases.len() >= CREATED_MAX {
            return Err(MathError::limit(format!(
                "Too many units created: at most {CREATED_MAX} are allowed"
            )));
        }
        let (value, dimensions) = match measure {
            Some(measure) => measure,
            None => (1.0, self.new_dimension()?),
        };
        let mut base = self.base_of(&dimensions);
        let is_new = base.is_none() && dimensions.iter().any(|power| *power != 0.0);
        if is_new {
            let key: Arc<str> = format!("{name}_STUFF").into();
            self.created_bases.push((key.clone(), dimensions));
            base = Some(key);
        }
        let definition = Definition {
            name: name.into(),
            prefixes,
            base,
            value,
            is_imaginary: false,
            offset,
            dimensions,
        };
        for alias in aliases {
            let alias: Arc<str> = alias.as_str().into();
            self.created.insert(
                alias.clone(),
                Arc::new(Definition {
                    name: alias,
                    ..definition.clone()
                }),
            );
        }
        let definition = Arc::new(definition);
        if is_new {
            self.prefer(&Part {
                unit: definition.clone(),
                prefix: NO_PREFIX,
                power: 1.0,
            });
        }
        self.created.insert(name.into(), definition);
        Ok(())
    }

    fn new_dimension(&mut self) -> Result<Dimensions> {
        let at = 9 + self.dimensions_created;
        if at >= DIMENSIONS {
            return Err(MathError::limit("Too many base units created"));
        }
        self.dimensions_created += 1;
        Ok(std::array::from_fn(|i| if i == at { 1.0 } else { 0.0 }))
    }
}
