//! Sets, written as lists.

use std::cmp::Ordering;

use crate::convert::{simple, truthy, wrong_type};
use crate::error::{MathError, Result};
use crate::functions::relational::natural;
use crate::functions::sorting::sorted;
use crate::functions::statistics::flatten_args;
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::Builtin;
use crate::value::matrix::{Matrix, MatrixKind};

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("setCartesian", 2..=2, cartesian),
    Builtin::new("setDifference", 2..=2, |env, args| {
        from_both(env, args, difference)
    }),
    Builtin::new("setDistinct", 1..=1, distinct),
    Builtin::new("setIntersect", 2..=2, |env, args| {
        from_both(env, args, intersect)
    }),
    Builtin::new("setIsSubset", 2..=2, is_subset),
    Builtin::new("setMultiplicity", 2..=2, multiplicity),
    Builtin::new("setPowerset", 1..=1, powerset),
    Builtin::new("setSize", 1..=2, size),
    Builtin::new("setSymDifference", 2..=2, |env, args| {
        from_both(env, args, symmetric)
    }),
    Builtin::new("setUnion", 2..=2, |env, args| from_both(env, args, union)),
];

fn kind_of(args: &[Value]) -> Result<MatrixKind> {
    let mut kind = MatrixKind::Array;
    for (at, arg) in args.iter().enumerate() {
        match arg {
            Value::Matrix(matrix) => kind = kind.with(matrix.kind),
            other => return Err(wrong_type("set", other, at)),
        }
    }
    Ok(kind)
}

/// Sets are lists; a number alone is none.
fn must_be_list(name: &str, value: &Value, index: usize) -> Result<()> {
    match value {
        Value::Matrix(_) => Ok(()),
        other => Err(wrong_type(name, other, index)),
    }
}

/// Numbers are ordered by size and all other kinds by name: several kinds of numbers beside others have no order.
fn must_have_order(values: &[Value]) -> Result<()> {
    let is_number = |value: &&Value| {
        matches!(
            value,
            Value::Num(_) | Value::Int(_) | Value::Big(_) | Value::Frac(_)
        )
    };
    let mut kinds: Vec<&str> = values
        .iter()
        .filter(is_number)
        .map(Value::type_name)
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    if kinds.len() > 1 && !values.iter().all(|value| is_number(&value)) {
        return Err(MathError::value(
            "Functions of sets do not support several kinds of numbers beside other kinds of values",
        ));
    }
    Ok(())
}

fn in_order(env: &mut Env, value: &Value) -> Result<Vec<Value>> {
    let values = flatten_args(env, std::slice::from_ref(value))?;
    must_have_order(&values)?;
    sorted(env, values, natural)
}

type FromBoth = fn(&mut Env, &[Value], &[Value]) -> Result<Vec<Value>>;

fn from_both(env: &mut Env, args: &[Value], combine: FromBoth) -> Result<Value> {
    let kind = kind_of(args)?;
    let (a, b) = (in_order(env, &args[0])?, in_order(env, &args[1])?);
    let cells = combine(env, &a, &b)?;
    Ok(Matrix::vector(cells).of_kind(kind).into())
}

/// What is in the first and not in the second, each as often as it is there more often.
fn difference(env: &mut Env, a: &[Value], b: &[Value]) -> Result<Vec<Value>> {
    walk(env, a, b, |order| order == Ordering::Less)
}

fn intersect(env: &mut Env, a: &[Value], b: &[Value]) -> Result<Vec<Value>> {
    walk(env, a, b, |order| order == Ordering::Equal)
}

/// Walks both sorted lists side by side and keeps those of the first that compare as wanted.
fn walk(env: &mut Env, a: &[Value], b: &[Value], keep: fn(Ordering) -> bool) -> Result<Vec<Value>> {
    let (mut i, mut j, mut kept) = (0, 0, Vec::new());
    while i < a.len() {
        let order = match b.get(j) {
            Some(other) => natural(env, &a[i], other)?,
            None => Ordering::Less,
        };
        if order != Ordering::Greater {
            if keep(order) {
                kept.push(a[i].clone());
            }
            i += 1;
        }
        if order != Ordering::Less {
            j += 1;
        }
    }
    Ok(kept)
}

fn symmetric(env: &mut Env, a: &[Value], b: &[Value]) -> Result<Vec<Value>> {
    let mut left = difference(env, a, b)?;
    left.extend(difference(env, b, a)?);
    Ok(left)
}

fn union(env: &mut Env, a: &[Value], b: &[Value]) -> Result<Vec<Value>> {
    let mut all = symmetric(env, a, b)?;
    all.extend(intersect(env, a, b)?);
    Ok(all)
}

fn distinct(env: &mut Env, args: &[Value]) -> Result<Value> {
    let kind = kind_of(args)?;
    let values = in_order(env, &args[0])?;
    Ok(Matrix::vector(without_repeats(env, values)?)
        .of_kind(kind)
        .into())
}

fn without_repeats(env: &mut Env, values: Vec<Value>) -> Result<Vec<Value>> {
    let mut kept: Vec<Value> = Vec::with_capacity(values.len());
    for value in values {
        let repeats = match kept.last() {
            Some(last) => natural(env, last, &value)? == Ordering::Equal,
            None => false,
        };
        if !repeats {
            kept.push(value);
        }
    }
    Ok(kept)
}

fn is_subset(env: &mut Env, args: &[Value]) -> Result<Value> {
    kind_of(args)?;
    let (a, b) = (in_order(env, &args[0])?, in_order(env, &args[1])?);
    Ok(Value::Bool(intersect(env, &a, &b)?.len() == a.len()))
}

fn multiplicity(env: &mut Env, args: &[Value]) -> Result<Value> {
    must_be_list("setMultiplicity", &args[1], 1)?;
    let values = flatten_args(env, &args[1..])?;
    let wanted = simple("setMultiplicity", &args[0], 0)?;
    let mut count = 0;
    for value in &values {
        if natural(env, value, &wanted)? == Ordering::Equal {
            count += 1;
        }
    }
    Ok(Value::Num(f64::from(count)))
}

fn size(env: &mut Env, args: &[Value]) -> Result<Value> {
    must_be_list("setSize", &args[0], 0)?;
    let values = in_order(env, &args[0])?;
    let unique = args
        .get(1)
        .map(|unique| truthy("setSize", unique))
        .transpose()?
        .unwrap_or(false);
    let values = if unique {
        without_repeats(env, values)?
    } else {
        values
    };
    Ok(Value::Num(values.len() as f64))
}

fn cartesian(env: &mut Env, args: &[Value]) -> Result<Value> {
    let kind = kind_of(args)?;
    let (a, b) = (in_order(env, &args[0])?, in_order(env, &args[1])?);
    let rows = a.len().saturating_mul(b.len());
    env.purse.pay_cells(rows.saturating_mul(2))?;
    let cells = a
        .iter()
        .flat_map(|a| b.iter().flat_map(move |b| [a.clone(), b.clone()]))
        .collect();
    Ok(Matrix {
        kind,
        size: vec![rows, 2],
        cells,
    }
    .into())
}

/// All subsets, the small ones first.
fn powerset(env: &mut Env, args: &[Value]) -> Result<Value> {
    must_be_list("setPowerset", &args[0], 0)?;
    let values = in_order(env, &args[0])?;
    let count = 1usize
        .checked_shl(values.len() as u32)
        .filter(|_| values.len() < 60)
        .unwrap_or(usize::MAX);
    env.purse
        .pay_cells(count.saturating_mul(values.len().max(1)))?;
    let mut subsets: Vec<Vec<Value>> = (0..count)
        .map(|mask| {
            values
                .iter()
                .enumerate()
                .filter(|(at, _)| mask >> at & 1 == 1)
                .map(|(_, value)| value.clone())
                .collect()
        })
        .collect();
    subsets.sort_by_key(Vec::len);
    let cells = subsets
        .into_iter()
        .map(|subset| Matrix::array(subset).into())
        .collect();
    Ok(Matrix::array(cells).into())
}
