//! Where an expression runs: its variables, its settings, and the purse it pays from.

use std::collections::HashMap;
use std::sync::Arc;

use super::Value;
use super::function::Frame;
use crate::error::{MathError, Result};
use crate::limits::{Limits, Purse};
use crate::unit::Registry;

pub(crate) type Variables = HashMap<Arc<str>, Value, foldhash::fast::RandomState>;

#[derive(Debug)]
pub(crate) struct Env {
    pub(crate) purse: Purse,
    pub(crate) variables: Variables,
    /// The parameters of the function that runs now.
    pub(crate) frame: Option<Arc<Frame>>,
    /// The lengths that `end` stands for, innermost last.
    pub(crate) ends: Vec<usize>,
    pub(crate) units: Registry,
    pub(crate) settings: Settings,
    pub(crate) random: fastrand::Rng,
    depth: usize,
}

/// What `config({…})` can change.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) number: NumberKind,
    pub(crate) precision: usize,
    pub(crate) relative_tolerance: f64,
    pub(crate) absolute_tolerance: f64,
    pub(crate) predictable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberKind {
    Number,
    BigNumber,
    Fraction,
    BigInt,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            number: NumberKind::Number,
            precision: 64,
            relative_tolerance: 1e-12,
            absolute_tolerance: 1e-15,
            predictable: false,
        }
    }
}

impl Env {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            purse: Purse::new(limits),
            variables: Variables::default(),
            frame: None,
            ends: Vec::new(),
            units: Registry::default(),
            settings: Settings::default(),
            random: fastrand::Rng::new(),
            depth: 0,
        }
    }

    /// Gets ready for the next expression: a full purse, and nothing left of the one before but its variables.
    pub(crate) fn restart(&mut self) {
        self.purse.refill();
        self.depth = 0;
        self.frame = None;
        self.ends.clear();
    }

    /// Every step into something that may lead back here is counted, so the stack cannot overflow.
    #[inline]
    pub(crate) fn descend(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > self.purse.limits.depth * 2 {
            return Err(MathError::limit(format!(
                "Expression nested too deeply: more than {} levels while it ran",
                self.purse.limits.depth * 2
            )));
        }
        self.purse.pay(1)
    }

    #[inline]
    pub(crate) fn ascend(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&Value> {
        self.frame
            .as_ref()
            .and_then(|frame| frame.get(name))
            .or_else(|| self.variables.get(name))
    }
}
