//! Calculates with quantities, reads them and writes them.

mod read;
mod write;

use crate::convert::to_f64;
use crate::error::{MathError, Result};
use crate::number::complex::Complex;
use crate::number::decimal::Decimal;
use crate::number::fraction::Fraction;
use crate::ops::arithmetic::{abs, add_scalar, divide_scalar, multiply_scalar, subtract_scalar};
use crate::ops::power::pow_scalar;
use crate::refusals::unsupported;
use crate::unit::{Part, Registry};
use crate::value::Value;
use crate::value::env::Env;
use crate::value::unit::Unit;

/// A plain number in the kind of number that `like` is.
fn in_kind(x: f64, like: &Value) -> Value {
    match like {
        Value::Big(_) => Value::big(Decimal::from_f64(x)),
        Value::Frac(_) => Fraction::from_f64(x).map_or(Value::Num(x), Value::frac),
        _ => Value::Num(x),
    }
}

/// How far apart two zeros lie, in base degrees: exactly, so that 32 °F are 0 °C.
fn offset_between(
    env: &Env,
    (from, from_value): (f64, f64),
    (to, to_value): (f64, f64),
    like: &Value,
) -> Value {
    let exact = |value: f64, offset: f64| {
        Ok::<_, MathError>(Fraction::from_f64(value)?.multiply(&Fraction::from_f64(offset)?))
    };
    let between = match (exact(from_value, from), exact(to_value, to)) {
        (Ok(from), Ok(to)) => from.subtract(&to),
        _ => return in_kind(from_value * from - to_value * to, like),
    };
    match like {
        Value::Big(_) => Value::big(between.to_decimal(env.settings.precision)),
        like => in_kind(between.to_f64(), like),
    }
}

impl Unit {
    /// This many of a unit that has no value yet.
    pub(crate) fn with_value(self, env: &mut Env, value: &Value) -> Result<Self> {
        let value = self.normalized(env, value)?;
        Ok(Self {
            value: Some(value),
            ..self
        })
    }

    fn factor(env: &mut Env, part: &Part, like: &Value) -> Result<Value> {
        if part.unit.is_imaginary {
            let one = Complex::new(0.0, part.unit.value * part.prefix.value);
            return pow_scalar(env, &one.into(), &Value::Num(part.power));
        }
        if let Value::Num(_) = like {
            let one = part.unit.value * part.prefix.value;
            return Ok(Value::Num(if part.power == 1.0 {
                one
            } else {
                one.powf(part.power)
            }));
        }
        let value = match like {
            // A degree Fahrenheit is 5/9 of a kelvin, which no float is.
            Value::Big(_) if part.unit.value == 5.0 / 9.0 => {
                let precision = env.settings.precision;
                Value::big(Decimal::integer(5).divide(&Decimal::integer(9), precision))
            }
            like => in_kind(part.unit.value, like),
        };
        let prefix = in_kind(part.prefix.value, like);
        let product = multiply_scalar(env, &value, &prefix)?;
        pow_scalar(env, &product, &in_kind(part.power, like))
    }

    fn normalized(&self, env: &mut Env, value: &Value) -> Result<Value> {
        let mut result = value.clone();
        for part in &self.parts {
            let factor = Self::factor(env, part, value)?;
            result = multiply_scalar(env, &result, &factor)?;
        }
        Ok(result)
    }

    fn denormalized(&self, env: &mut Env, value: &Value) -> Result<Value> {
        let mut result = value.clone();
        for part in &self.parts {
            let factor = Self::factor(env, part, value)?;
            result = divide_scalar(env, &result, &factor)?;
        }
        Ok(result)
    }

    /// The number before its own unit.
    pub(crate) fn number(&self, env: &mut Env) -> Result<Value> {
        match &self.value {
            Some(value) => self.denormalized(env, value),
            None => Ok(Value::Null),
        }
    }

    pub(crate) fn number_in(&self, env: &mut Env, unit: &Self) -> Result<Value> {
        self.to(env, unit)?.number(env)
    }

    /// In radians, for angles.
    pub(crate) fn radians(&self, function: &str) -> Result<Value> {
        if !self.is_angle() {
            return Err(MathError::units(format!(
                "Unit in function {function} is no angle"
            )));
        }
        Ok(self.value.clone().unwrap_or(Value::Num(1.0)))
    }

    pub(crate) fn to(&self, env: &mut Env, target: &Self) -> Result<Self> {
        if !self.same_base(target) {
            let (to, from) = (target.write(env)?, self.write(env)?);
            return Err(MathError::units(format!(
                "Units do not match ('{to}' != '{from}')"
            )));
        }
        if target.value.is_some() {
            return Err(MathError::units("Cannot convert to a unit with a value"));
        }
        let value = match &self.value {
            Some(value) => value.clone(),
            None => self.normalized(env, &Value::Num(1.0))?,
        };
        let offset = |unit: &Self| {
            unit.parts
                .first()
                .map_or((0.0, 0.0), |part| (part.unit.offset, part.unit.value))
        };
        let (from, to) = (offset(self), offset(target));
        let plain = self.value.is_none()
            || self.is_derived()
            || self.parts.is_empty()
            || target.parts.is_empty();
        let value = if plain || from.0 == to.0 {
            value
        } else {
            let shift = offset_between(env, from, to, &value);
            add_scalar(env, &value, &shift)?
        };
        Ok(Self {
            value: Some(value),
            fixed_prefix: true,
            fixed_parts: true,
            ..target.clone()
        })
    }

    fn value_or_one(&self, env: &mut Env, like: Option<&Value>) -> Result<Value> {
        match &self.value {
            Some(value) => Ok(value.clone()),
            None => {
                let one = in_kind(1.0, like.unwrap_or(&Value::Num(1.0)));
                self.normalized(env, &one)
            }
        }
    }

    pub(crate) fn times(&self, env: &mut Env, other: &Self, sign: f64) -> Result<Value> {
        let mut product = self.clone();
        for (sum, own) in product.dimensions.iter_mut().zip(&other.dimensions) {
            *sum += own * sign;
        }
        env.purse
            .pay(1 + (self.parts.len() + other.parts.len()) as u64)?;
        product.parts.extend(other.parts.iter().map(|part| Part {
            power: part.power * sign,
            ..part.clone()
        }));
        product.value = None;
        if self.value.is_some() || other.value.is_some() {
            let left = self.value_or_one(env, other.value.as_ref())?;
            let right = other.value_or_one(env, self.value.as_ref())?;
            product.value = Some(if sign > 0.0 {
                multiply_scalar(env, &left, &right)?
            } else {
                divide_scalar(env, &left, &right)?
            });
        }
        product.fixed_parts = false;
        Ok(product.settle())
    }

    pub(crate) fn scaled(&self, env: &mut Env, factor: &Value, sign: f64) -> Result<Value> {
        let value = self.value_or_one(env, Some(factor))?;
        let value = if sign > 0.0 {
            multiply_scalar(env, &value, factor)?
        } else {
            divide_scalar(env, &value, factor)?
        };
        Ok(Self {
            value: Some(value),
            ..self.clone()
        }
        .settle())
    }

    /// `1 / s`
    pub(crate) fn under(&self, env: &mut Env, numerator: &Value) -> Result<Value> {
        let number = Self {
            value: Some(numerator.clone()),
            ..Self::without_value(Vec::new())
        };
        number.times(env, self, -1.0)
    }

    pub(crate) fn pow(&self, env: &mut Env, exponent: &Value) -> Result<Value> {
        let power = to_f64(exponent);
        if !power.is_finite() {
            return Err(unsupported("pow", "units to the power of NaN or Infinity"));
        }
        let mut result = self.clone();
        result
            .dimensions
            .iter_mut()
            .for_each(|dimension| *dimension *= power);
        result.parts.iter_mut().for_each(|part| part.power *= power);
        if let Some(value) = &self.value {
            result.value = Some(pow_scalar(env, value, exponent)?);
        }
        result.fixed_parts = false;
        Ok(result.settle())
    }

    pub(crate) fn plus(&self, env: &mut Env, other: &Self, sign: f64) -> Result<Value> {
        let missing = |name: &str| {
            MathError::units(format!(
                "Parameter {name} contains a unit with undefined value"
            ))
        };
        let left = self.value.as_ref().ok_or_else(|| missing("x"))?;
        let right = other.value.as_ref().ok_or_else(|| missing("y"))?;
        if !self.same_base(other) {
            let (x, y) = (self.write(env)?, other.write(env)?);
            return Err(MathError::units(format!(
                "Units do not match ('{x}' and '{y}')"
            )));
        }
        let value = if sign > 0.0 {
            add_scalar(env, left, right)?
        } else {
            subtract_scalar(env, left, right)?
        };
        Ok(Value::unit(Self {
            value: Some(value),
            fixed_prefix: false,
            ..self.clone()
        }))
    }

    /// Its size: of a temperature in degrees as far as it lies from absolute zero, of apparent power in watts.
    pub(crate) fn abs(&self, env: &mut Env) -> Result<Self> {
        let mut size = self.clone();
        if let Some(value) = &self.value {
            let offset = match self.parts.as_slice() {
                [part] if !self.is_derived() => part.unit.value * part.unit.offset,
                _ => 0.0,
            };
            size.value = Some(if offset == 0.0 {
                abs(env, value)?
            } else {
                let offset = in_kind(offset, value);
                let shifted = add_scalar(env, value, &offset)?;
                let shifted = abs(env, &shifted)?;
                subtract_scalar(env, &shifted, &offset)?
            });
        }
        for part in &mut size.parts {
            if matches!(&*part.unit.name, "VA" | "VAR")
                && let Some(watt) = Registry::known("W")
            {
                part.unit = watt;
            }
        }
        Ok(size)
    }
}
