//! What an expression can evaluate to, and what functions run in: each of these holds others of them.

pub(crate) mod env;
pub(crate) mod function;
pub(crate) mod matrix;
pub(crate) mod node;
pub(crate) mod unit;

use std::sync::Arc;

use indexmap::IndexMap;
use num_bigint::BigInt;

use self::function::Function;
use self::matrix::Matrix;
use self::node::Node;
use self::unit::Unit;
use crate::number::complex::Complex;
use crate::number::decimal::Decimal;
use crate::number::fraction::Fraction;

/// Values are never changed in place: whoever holds one keeps what it has, and no value can contain itself.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Undefined,
    Null,
    Bool(bool),
    Num(f64),
    Complex(Complex),
    Int(Arc<BigInt>),
    Big(Arc<Decimal>),
    Frac(Arc<Fraction>),
    Text(Arc<str>),
    Unit(Arc<Unit>),
    Matrix(Arc<Matrix>),
    Object(Arc<Object>),
    Function(Function),
    Node(Arc<Node>),
    /// What several statements gave.
    Results(Arc<Vec<Value>>),
}

/// A map, in the order its keys were written, and how it prints if not like a map.
#[derive(Debug, Clone, Default)]
pub(crate) struct Object {
    pub(crate) entries: IndexMap<Arc<str>, Value, foldhash::fast::RandomState>,
    pub(crate) kind: ObjectKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ObjectKind {
    #[default]
    Plain,
    /// The factors of a matrix: one line each.
    Factors,
    /// A compiled expression: `compile("…")`.
    Compiled,
    /// Has variables of its own: `parser()`.
    Parser,
    /// The place where a matrix is cut: `index(1, 2:3)`.
    Index,
}

impl Object {
    pub(crate) fn of<const N: usize>(entries: [(&str, Value); N]) -> Self {
        let entries = entries
            .into_iter()
            .map(|(key, value)| (key.into(), value))
            .collect();
        Self {
            entries,
            kind: ObjectKind::Plain,
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.entries.get(key)
    }
}

impl Value {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn int(n: BigInt) -> Self {
        Self::Int(Arc::new(n))
    }

    pub(crate) fn big(n: Decimal) -> Self {
        Self::Big(Arc::new(n))
    }

    pub(crate) fn frac(n: Fraction) -> Self {
        Self::Frac(Arc::new(n))
    }

    pub(crate) fn unit(unit: Unit) -> Self {
        Self::Unit(Arc::new(unit))
    }

    pub(crate) fn matrix(matrix: Matrix) -> Self {
        Self::Matrix(Arc::new(matrix))
    }

    pub(crate) fn object(object: Object) -> Self {
        Self::Object(Arc::new(object))
    }

    /// What mathjs's `typeOf` calls it.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Undefined => "undefined",
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Num(_) => "number",
            Self::Complex(_) => "Complex",
            Self::Int(_) => "bigint",
            Self::Big(_) => "BigNumber",
            Self::Frac(_) => "Fraction",
            Self::Text(_) => "string",
            Self::Unit(_) => "Unit",
            Self::Matrix(matrix) => matrix.kind.name(),
            Self::Object(object) => match object.kind {
                ObjectKind::Parser => "Parser",
                ObjectKind::Index => "Index",
                ObjectKind::Plain | ObjectKind::Factors | ObjectKind::Compiled => "Object",
            },
            Self::Function(_) => "function",
            Self::Node(node) => node.type_name(),
            Self::Results(_) => "ResultSet",
        }
    }

    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Self::Undefined | Self::Null)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Num(value)
    }
}

impl From<Complex> for Value {
    fn from(value: Complex) -> Self {
        Self::Complex(value)
    }
}

impl From<Matrix> for Value {
    fn from(value: Matrix) -> Self {
        Self::matrix(value)
    }
}
