//! Numbers that count arrangements.

use crate::broadcast::{both, each};
use crate::convert::{length, simple, to_f64, wrong_type};
use crate::env::Env;
use crate::error::{MathError, Result};
use crate::function::Builtin;
use crate::functions::probability::choose;
use crate::functions::statistics::flatten_args;
use crate::number::fraction::Fraction;
use crate::value::Value;

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("bellNumbers", 1..=1, |env, args| each(env, &args[0], bell)),
    Builtin::new("catalan", 1..=1, |env, args| each(env, &args[0], catalan)),
    Builtin::new("composition", 2..=2, |env, args| {
        both(env, &args[0], &args[1], composition)
    }),
    Builtin::new("stirlingS2", 2..=2, |env, args| {
        both(env, &args[0], &args[1], stirling)
    }),
    Builtin::new("multinomial", 1..=1, multinomial),
    Builtin::new("bernoulli", 1..=1, |env, args| {
        each(env, &args[0], bernoulli)
    }),
    Builtin::new("kldivergence", 2..=2, kldivergence),
];

/// Beyond these every count is infinite as a number.
const COUNT_MAX: usize = 400;

fn count(name: &str, value: &Value) -> Result<usize> {
    let n = length(name, value).map_err(|_| {
        MathError::value(format!(
            "Non-negative integer value expected in function {name}"
        ))
    })?;
    Ok(n)
}

/// How many ways n things fall into k groups that are not empty.
fn stirling_number(env: &mut Env, n: usize, k: usize) -> Result<f64> {
    if k > n {
        return Err(MathError::value(
            "k must be less than or equal to n in function stirlingS2",
        ));
    }
    if n > COUNT_MAX {
        return Ok(if k == 1 || k == n { 1.0 } else { f64::INFINITY });
    }
    env.purse.pay((n * k) as u64 + 1)?;
    let mut row = vec![0.0; k + 1];
    row[0] = 1.0;
    for i in 1..=n {
        for j in (1..=k.min(i)).rev() {
            row[j] = j as f64 * row[j] + row[j - 1];
        }
        row[0] = 0.0;
    }
    Ok(row[k])
}

fn stirling(env: &mut Env, n: &Value, k: &Value) -> Result<Value> {
    let (n, k) = (count("stirlingS2", n)?, count("stirlingS2", k)?);
    stirling_number(env, n, k).map(Value::Num)
}

/// Peirce's triangle: each row begins with the end of the one before.
fn bell(env: &mut Env, n: &Value) -> Result<Value> {
    let n = count("bellNumbers", n)?;
    if n > COUNT_MAX {
        return Ok(Value::Num(f64::INFINITY));
    }
    env.purse.pay((n * n) as u64 + 1)?;
    let mut row = vec![1.0];
    for _ in 1..n {
        let mut next = vec![row[row.len() - 1]];
        for above in &row {
            next.push(next[next.len() - 1] + above);
        }
        row = next;
    }
    Ok(Value::Num(row[row.len() - 1]))
}

fn catalan(env: &mut Env, n: &Value) -> Result<Value> {
    let n = count("catalan", n)? as f64;
    let ways = choose(env, 2.0 * n, n)?;
    Ok(Value::Num(ways / (n + 1.0)))
}

fn composition(env: &mut Env, n: &Value, k: &Value) -> Result<Value> {
    let (n, k) = (count("composition", n)?, count("composition", k)?);
    if k > n || k == 0 {
        return Err(MathError::value(
            "k must be less than or equal to n in function composition",
        ));
    }
    choose(env, n as f64 - 1.0, k as f64 - 1.0).map(Value::Num)
}

fn multinomial(env: &mut Env, args: &[Value]) -> Result<Value> {
    let values = flatten_args(env, args)?;
    let (mut total, mut ways) = (0.0, 1.0);
    for value in &values {
        let n = count("multinomial", value)? as f64;
        total += n;
        ways *= choose(env, total, n)?;
    }
    Ok(Value::Num(ways))
}

fn bernoulli(env: &mut Env, value: &Value) -> Result<Value> {
    let n = count("bernoulli", value)?;
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
