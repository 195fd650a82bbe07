//! Where an expression runs: its variables, its settings, and the purse it pays from.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{ErrorKind, MathError, Result};
use crate::limits::{Limits, Purse};
use crate::number::decimal::Decimal;
use crate::number::fraction::Fraction;
use crate::number::integer;
use crate::syntax::node::Node;
use crate::syntax::parser;
use crate::unit::Registry;
use crate::value::Value;

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

#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) values: Vec<(Arc<str>, Value)>,
    pub(crate) outer: Option<Arc<Frame>>,
}

impl Frame {
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        let mut frame = self;
        loop {
            if let Some((_, value)) = frame.values.iter().find(|(own, _)| &**own == name) {
                return Some(value);
            }
            frame = frame.outer.as_deref()?;
        }
    }
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

    /// Reads and runs one text with a full purse.
    pub(crate) fn run(&mut self, expression: &str) -> Result<Value> {
        self.purse.refill();
        self.depth = 0;
        self.frame = None;
        self.ends.clear();
        let node = self.parse(expression)?;
        self.eval(&node)
    }

    pub(crate) fn parse(&mut self, expression: &str) -> Result<Node> {
        self.purse.pay(expression.len() as u64 / 64)?;
        let (kind, digits_max) = (self.settings.number, self.purse.limits.big_digits);
        parser::parse(expression, &self.purse.limits, &|text| {
            read_number(text, kind, digits_max)
        })
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

fn read_number(text: &str, kind: NumberKind, digits_max: usize) -> Result<Value> {
    if kind == NumberKind::Number
        && text.len() <= 15
        && text.bytes().all(|byte| byte.is_ascii_digit())
    {
        // Short whole numbers, the usual ones, are exact however they are read.
        let whole = text
            .bytes()
            .fold(0u64, |whole, byte| whole * 10 + u64::from(byte - b'0'));
        return Ok(Value::Num(whole as f64));
    }
    let unreadable = || {
        MathError::new(
            ErrorKind::Value,
            format!("String \"{text}\" is not a valid number"),
        )
    };
    let is_based = text.starts_with("0b") || text.starts_with("0o") || text.starts_with("0x");
    if is_based {
        return integer::read_based(text)
            .map(Value::Num)
            .ok_or_else(unreadable);
    }
    match kind {
        NumberKind::Number => text.parse().map(Value::Num).map_err(|_| unreadable()),
        NumberKind::BigNumber => Decimal::read(text).map(Value::big).ok_or_else(unreadable),
        NumberKind::Fraction => Fraction::read(text).map(Value::frac).ok_or_else(unreadable),
        NumberKind::BigInt => {
            match Decimal::read(text).and_then(|decimal| decimal.to_bigint(digits_max)) {
                Some(n) => Ok(Value::int(n)),
                None => text.parse().map(Value::Num).map_err(|_| unreadable()),
            }
        }
    }
}
