//! Numbers that count arrangements.

use num_bigint::BigInt;
use num_traits::{ToPrimitive, Zero};

use crate::broadcast::each;
use crate::convert::{simple, to_f64, wrong_type};
use crate::error::{MathError, Result};
use crate::functions::probability::{Counts, binomial, count, counts};
use crate::functions::statistics::flatten_args;
use crate::number::decimal::Decimal;
use crate::number::fraction::Fraction;
use crate::ops::arithmetic::{divide_scalar, multiply_scalar};
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::Builtin;

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("bellNumbers", 1..=1, |env, args| each(env, &args[0], bell)),
    Builtin::new("catalan", 1..=1, |env, args| each(env, &args[0], catalan)),
    Builtin::new("composition", 2..=2, |env, args| {
        composition(env, &args[0], &args[1])
    }),
    Builtin::new("stirlingS2", 2..=2, |env, args| {
        stirling(env, &args[0], &args[1])
    }),
    Builtin::new("multinomial", 1..=1, multinomial),
    Builtin::new("bernoulli", 1..=1, |env, args| {
        each(env, &args[0], bernoulli)
    }),
    Builtin::new("kldivergence", 2..=2, kldivergence),
];

/// Beyond these every count is infinite as a number.
const COUNT_MAX: f64 = 400.0;

fn small_count(name: &str, value: &Value, index: usize) -> Result<usize> {
    count(name, value, index).map(|n| n as usize)
}

/// A count in the kind of number that was counted with; big numbers hold 64 digits, so it is computed exactly first.
fn counted(env: &Env, n: BigInt, is_big: bool) -> Value {
    if is_big {
        Value::big(Decimal::new(n, 0).rounded(env.settings.precision))
    } else {
        Value::Num(n.to_f64().unwrap_or(f64::INFINITY))
    }
}

/// How many ways n things fall into k groups that are not empty.
fn stirling(env: &mut Env, n: &Value, k: &Value) -> Result<Value> {
    let Counts { n, k, is_big } = counts("stirlingS2", n, k)?;
    if k > n {
        return Err(MathError::value(
            "k must be less than or equal to n in function stirlingS2",
        ));
    }
    if n > COUNT_MAX {
        return match (k, is_big) {
            (1.0, _) => Ok(counted(env, BigInt::from(1), is_big)),
            (k, _) if k == n => Ok(counted(env, BigInt::from(1), is_big)),
            (_, false) => Ok(Value::Num(f64::INFINITY)),
            (_, true) => Err(MathError::limit("stirlingS2 is known here up to 400")),
        };
    }
    let (n, k) = (n as usize, k as usize);
    env.purse.pay((n * k) as u64 + 1)?;
    let mut row = vec![BigInt::zero(); k + 1];
    row[0] = BigInt::from(1);
    for i in 1..=n {
        for j in (1..=k.min(i)).rev() {
            row[j] = &row[j] * j + &row[j - 1];
        }
        row[0] = BigInt::zero();
    }
    Ok(counted(env, row[k].clone(), is_big))
}

/// Peirce's triangle: each row begins with the end of the one before.
fn bell(env: &mut Env, value: &Value) -> Result<Value> {
    let n = count("bellNumbers", value, 0)?;
    let is_big = matches!(value, Value::Big(_));
    if n > COUNT_MAX {
        if is_big {
            return Err(MathError::limit("bellNumbers is known here up to 400"));
        }
        return Ok(Value::Num(f64::INFINITY));
    }
    let n = n as usize;
    env.purse.pay((n * n) as u64 + 1)?;
    let mut row = vec![BigInt::from(1)];
    for _ in 1..n {
        let mut next = vec![row[row.len() - 1].clone()];
        for above in &row {
            let sum = &next[next.len() - 1] + above;
            next.push(sum);
        }
        row = next;
    }
    let last = row[row.len() - 1].clone();
    Ok(counted(env, last, is_big))
}

fn catalan(env: &mut Env, value: &Value) -> Result<Value> {
    let n = count("catalan", value, 0)?;
    let is_big = matches!(value, Value::Big(_));
    let ways = binomial(env, 2.0 * n, n, is_big)?;
    divide_scalar(env, &ways, &Value::Num(n + 1.0))
}

fn composition(env: &mut Env, n: &Value, k: &Value) -> Result<Value> {
    let Counts { n, k, is_big } = counts("composition", n, k)?;
    if k > n || k == 0.0 {
        return Err(MathError::value(
            "k must be less than or equal to n in function composition",
        ));
    }
    binomial(env, n - 1.0, k - 1.0, is_big)
}

fn multinomial(env: &mut Env, args: &[Value]) -> Result<Value> {
    let values = flatten_args(env, args)?;
    let is_big = values.iter().any(|value| matches!(value, Value::Big(_)));
    let mut total = 0.0;
    let mut ways = if is_big {
        Value::big(Decimal::integer(1))
    } else {
        Value::Num(1.0)
    };
    for value in &values {
        let n = match value {
            Value::Num(_) | Value::Big(_) => count("multinomial", value, 0)?,
            other => return Err(wrong_type("multinomial", other, 0)),
        };
        total += n;
        let factor = binomial(env, total, n, is_big)?;
        ways = multiply_scalar(env, &ways, &factor)?;
    }
    Ok(ways)
}

fn bernoulli(env: &mut Env, value: &Value) -> Result<Value> {
    let n = small_count("bernoulli", value, 0)?;
    if n > 120 {
        return Err(MathError::limit("bernoulli is known here up to 120"));
    }
    let number = bernoulli_number(env, n)?;
    Ok(match value {
        Value::Frac(_) | Value::Int(_) => Value::frac(number),
        Value::Big(_) => Value::big(number.to_decimal(env.settings.precision)),
        _ => Value::Num(number.to_f64()),
    })
}

/// Akiyama and Tanigawa's triangle, with B₁ = −½.
fn bernoulli_number(env: &mut Env, n: usize) -> Result<Fraction> {
    if n == 1 {
        return Fraction::new((-1).into(), 2.into());
    }
    if n % 2 == 1 {
        return Ok(Fraction::integer(0));
    }
    let mut row: Vec<Fraction> = Vec::with_capacity(n + 1);
    for m in 0..=n {
        row.push(Fraction::new(1.into(), (m + 1).into())?);
        for j in (1..=m).rev() {
            env.purse.pay(24)?;
            let difference = row[j - 1].subtract(&row[j]);
            row[j - 1] = difference.multiply(&Fraction::integer(j));
        }
    }
    Ok(row[0].clone())
}

fn kldivergence(env: &mut Env, args: &[Value]) -> Result<Value> {
    let numbers = |value: &Value| -> Result<Vec<f64>> {
        let Value::Matrix(matrix) = value else {
            return Err(wrong_type("kldivergence", value, 0));
        };
        matrix
            .cells
            .iter()
            .map(|cell| simple("kldivergence", cell, 0).map(|cell| to_f64(&cell)))
            .collect()
    };
    let (p, q) = (numbers(&args[0])?, numbers(&args[1])?);
    env.purse.pay(p.len() as u64)?;
    if p.len() != q.len() {
        return Err(MathError::dimensions(
            "Distributions must have the same length",
        ));
    }
    let (sum_p, sum_q) = (p.iter().sum::<f64>(), q.iter().sum::<f64>());
    if sum_p == 0.0 || sum_q == 0.0 {
        return Err(MathError::value(
            "Sum of elements in distribution must be non zero",
        ));
    }
    let divergence = p.iter().zip(&q).map(|(p, q)| {
        let (p, q) = (p / sum_p, q / sum_q);
        p * (p / q).ln()
    });
    Ok(Value::Num(divergence.sum()))
}
