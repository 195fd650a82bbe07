//! How a quantity is written: in which units, with which prefix.

use crate::convert::to_f64;
use crate::error::{MathError, Result};
use crate::format::write_value;
use crate::number::digits::{Notation, Style, write_javascript};
use crate::unit::prefix::Prefix;
use crate::unit::{Part, Registry};
use crate::value::Value;
use crate::value::env::Env;
use crate::value::unit::Unit;

/// A prefix is good when about this many powers of ten are left before the unit.
const OFFSET: f64 = 1.2;

impl Unit {
    pub(crate) fn write(&self, env: &mut Env) -> Result<String> {
        self.write_styled(env, &Style::EXACT)
    }

    pub(crate) fn write_styled(&self, env: &mut Env, style: &Style) -> Result<String> {
        let best = self.best(env, OFFSET);
        let units = best.units_text();
        let Some(value) = &best.value else {
            return Ok(units);
        };
        let number = best.denormalized(env, value)?;
        // A precision of nothing says nothing about quantities.
        let is_unsaid = style.precision == Some(0) && style.notation == Notation::Auto;
        let style = if is_unsaid { &Style::EXACT } else { style };
        let text = write_value(env, &number, style)?;
        let text = if matches!(value, Value::Complex(_)) {
            format!("({text})")
        } else {
            text
        };
        Ok(if units.is_empty() {
            text
        } else {
            format!("{text} {units}")
        })
    }

    /// In the units and with the prefix it reads best in.
    pub(crate) fn best(&self, env: &Env, offset: f64) -> Self {
        let mut unit = if self.fixed_parts || self.value.is_none() {
            self.clone()
        } else {
            self.simplified(env)
        };
        unit.choose_power_unit();
        if let [part] = unit.parts.as_mut_slice()
            && !unit.fixed_prefix
            && (part.power - part.power.round()).abs() < 1e-14
        {
            part.prefix = best_prefix(part, part.unit.prefixes.all(), unit.value.as_ref(), offset);
        }
        unit
    }

    /// Apparent power is written so that its number is real: imaginary volt-amperes are reactive.
    fn choose_power_unit(&mut self) {
        let is_imaginary = matches!(&self.value, Some(Value::Complex(z)) if z.re.abs() < 1e-14);
        for part in &mut self.parts {
            let other = match (&*part.unit.name, is_imaginary) {
                ("VA", true) => "VAR",
                ("VAR", false) => "VA",
                _ => continue,
            };
            if let Some(other) = Registry::known(other) {
                part.unit = other;
            }
        }
    }

    /// `toBest(quantity, units)`: with the best of the prefixes these units have.
    pub(crate) fn best_of(&self, candidates: &[Self], offset: f64) -> Result<Self> {
        let mut unit = self.clone();
        let prefixes: Vec<Prefix> = candidates
            .iter()
            .filter_map(|unit| unit.parts.first())
            .map(|part| part.prefix)
            .collect();
        let fits = candidates.iter().all(|candidate| candidate.same_base(self));
        let Some(first) = prefixes.first().filter(|_| fits) else {
            return Err(MathError::units(
                "Invalid unit type. Expected compatible string or Unit.",
            ));
        };
        if let [part] = unit.parts.as_mut_slice() {
            part.prefix = *first;
            part.prefix = best_prefix(part, &prefixes, unit.value.as_ref(), offset);
        }
        unit.fixed_prefix = true;
        Ok(unit)
    }

    fn simplified(&self, env: &Env) -> Self {
        let parts = match env.units.unit_for(&self.dimensions) {
            Some(None) => Vec::new(),
            Some(Some(part)) => vec![part],
            None => match env.units.base_units(&self.dimensions) {
                Some(proposed) if proposed.len() < self.parts.len() => proposed,
                _ => self.parts.clone(),
            },
        };
        Self {
            parts,
            ..self.clone()
        }
    }

    pub(crate) fn to_si(&self, env: &mut Env) -> Result<Self> {
        let parts = Registry::si_units(&self.dimensions)
            .ok_or_else(|| MathError::units("Cannot express custom unit in SI units"))?;
        let target = Self {
            value: None,
            parts,
            fixed_prefix: true,
            fixed_parts: true,
            ..self.clone()
        };
        if self.value.is_some() {
            self.to(env, &target)
        } else {
            Ok(target)
        }
    }

    /// `(kg m) / s^2`
    pub(crate) fn units_text(&self) -> String {
        let name = |part: &Part, power: f64, always: bool| {
            let name = format!("{}{}", part.prefix.name, part.unit.name);
            if always || (power - 1.0).abs() > 1e-15 {
                format!("{name}^{}", write_javascript(power))
            } else {
                name
            }
        };
        let above: Vec<String> = self
            .parts
            .iter()
            .filter(|part| part.power > 0.0)
            .map(|part| name(part, part.power, false))
            .collect();
        let below = self.parts.iter().filter(|part| part.power < 0.0);
        if above.is_empty() {
            return below
                .map(|part| name(part, part.power, true))
                .collect::<Vec<_>>()
                .join(" ");
        }
        let below: Vec<String> = below.map(|part| name(part, -part.power, false)).collect();
        if below.is_empty() {
            return above.join(" ");
        }
        let group = |names: Vec<String>| {
            if names.len() > 1 {
                format!("({})", names.join(" "))
            } else {
                names.concat()
            }
        };
        format!("{} / {}", group(above), group(below))
    }
}

fn best_prefix(part: &Part, prefixes: &[Prefix], value: Option<&Value>, offset: f64) -> Prefix {
    let size = match value {
        Some(Value::Complex(z)) => z.abs(),
        Some(value) => to_f64(value).abs(),
        None => 0.0,
    };
    // An exact zero has no prefix of its own, as in mathjs.
    let is_exact = matches!(value, Some(Value::Big(_) | Value::Frac(_)));
    if size == 0.0 && !is_exact {
        return part.prefix;
    }
    let distance = |prefix: &Prefix| {
        (size / (prefix.value * part.unit.value.abs()).powf(part.power)).ln()
            / std::f64::consts::LN_10
            - offset
    };
    let own = distance(&part.prefix);
    if own > -2.200001 && own < 1.800001 {
        return part.prefix;
    }
    let (mut best, mut best_distance) = (part.prefix, own.abs());
    for prefix in prefixes.iter().filter(|prefix| prefix.scientific) {
        let distance = distance(prefix).abs();
        if distance < best_distance
            || (distance == best_distance && prefix.name.len() < best.name.len())
        {
            (best, best_distance) = (*prefix, distance);
        }
    }
    best
}
