//! Quantities: a value and the units it is measured in.

use super::Value;
use crate::error::Result;
use crate::unit::{Dimensions, Part, same_dimensions};

#[derive(Debug, Clone)]
pub(crate) struct Unit {
    /// In base units; `None` for a unit alone, as `cm` in `2 inch to cm`.
    pub(crate) value: Option<Value>,
    pub(crate) parts: Vec<Part>,
    pub(crate) dimensions: Dimensions,
    /// Written with the prefix it has, as after `to`.
    pub(crate) fixed_prefix: bool,
    /// Written in the units it has, as before any product of units.
    pub(crate) fixed_parts: bool,
}

impl Unit {
    pub(crate) fn without_value(parts: Vec<Part>) -> Self {
        let mut dimensions = Dimensions::default();
        for part in &parts {
            for (sum, own) in dimensions.iter_mut().zip(&part.unit.dimensions) {
                *sum += own * part.power;
            }
        }
        Self {
            value: None,
            parts,
            dimensions,
            fixed_prefix: false,
            fixed_parts: true,
        }
    }

    pub(crate) fn is_derived(&self) -> bool {
        self.parts.len() > 1
            || self
                .parts
                .first()
                .is_some_and(|part| (part.power - 1.0).abs() > 1e-15)
    }

    pub(crate) fn same_base(&self, other: &Self) -> bool {
        same_dimensions(&self.dimensions, &other.dimensions)
    }

    /// Whether it measures this: `[0, 1, …]` is a length.
    pub(crate) fn is_angle(&self) -> bool {
        let mut angle = Dimensions::default();
        angle[7] = 1.0;
        same_dimensions(&self.dimensions, &angle)
    }

    /// A quantity whose units cancel out is a plain number.
    pub(crate) fn settle(self) -> Value {
        match &self.value {
            Some(value) if same_dimensions(&self.dimensions, &Dimensions::default()) => {
                value.clone()
            }
            _ => Value::unit(self),
        }
    }

    /// The same units around another value.
    pub(crate) fn map(&self, apply: impl FnOnce(&Value) -> Result<Value>) -> Result<Self> {
        let value = self.value.as_ref().map(apply).transpose()?;
        Ok(Self {
            value,
            ..self.clone()
        })
    }
}
