//! Whole numbers: divisors, multiples, inverses.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, Zero};

use crate::broadcast::both;
use crate::convert::{Pair, pair, to_f64};
use crate::error::{MathError, Result};
use crate::number::decimal::Decimal;
use crate::number::fraction::Fraction;
use crate::number::integer;
use crate::ops::arithmetic::{EXACT_MAX, modulo_by_floor};
use crate::refusals::unsupported;
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::{ANY_NUMBER, Builtin};
use crate::value::matrix::Matrix;

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("gcd", 1..=ANY_NUMBER, gcd),
    Builtin::new("invmod", 2..=2, invmod),
    Builtin::new("lcm", 1..=ANY_NUMBER, lcm),
    Builtin::new("xgcd", 2..=2, xgcd),
];

/// Two whole numbers, and how to give one back in the kind they came in.
type Integers = (BigInt, BigInt, fn(BigInt) -> Value);

fn integers(env: &mut Env, name: &str, a: &Value, b: &Value) -> Result<Integers> {
    let not_whole = || {
        MathError::value(format!(
            "Parameters in function {name} must be integer numbers"
        ))
    };
    let digits = env.purse.limits.big_digits;
    let whole = |decimal: Decimal| decimal.to_bigint(digits).ok_or_else(not_whole);
    Ok(match pair(env, name, a, b)? {
        Pair::Num(a, b) => (
            integer::exact(a).ok_or_else(not_whole)?,
            integer::exact(b).ok_or_else(not_whole)?,
            |n| Value::Num(to_f64(&Value::int(n))),
        ),
        Pair::Int(a, b) => (a, b, Value::int),
        Pair::Big(a, b) => (whole(a)?, whole(b)?, |n| Value::big(Decimal::new(n, 0))),
        _ => return Err(not_whole()),
    })
}

fn gcd(env: &mut Env, args: &[Value]) -> Result<Value> {
    fold_integers(env, args, |env, a, b| {
        if let Pair::Frac(a, b) = pair(env, "gcd", a, b)? {
            let above = (&a.numerator * &b.denominator).gcd(&(&b.numerator * &a.denominator));
            return Ok(Value::frac(Fraction::new(
                above,
                a.denominator * b.denominator,
            )?));
        }
        let (whole_a, whole_b, back) = integers(env, "gcd", a, b)?;
        let divisor = back(whole_a.gcd(&whole_b));
        must_be_certain(env, "gcd", a, b, &divisor)?;
        Ok(divisor)
    })
}

fn lcm(env: &mut Env, args: &[Value]) -> Result<Value> {
    fold_integers(env, args, |env, a, b| {
        if let Pair::Frac(a, b) = pair(env, "lcm", a, b)? {
            let above = a.numerator.lcm(&b.numerator);
            return Ok(Value::frac(Fraction::new(
                above,
                a.denominator.gcd(&b.denominator),
            )?));
        }
        let (whole_a, whole_b, back) = integers(env, "lcm", a, b)?;
        let multiple = back(whole_a.lcm(&whole_b));
        must_be_certain(env, "lcm", a, b, &multiple)?;
        Ok(multiple)
    })
}

fn fold_integers(env: &mut Env, args: &[Value], apply: crate::broadcast::Scalar2) -> Result<Value> {
    let args = match args {
        [Value::Matrix(matrix)] if matrix.size.len() == 1 => matrix.cells.clone(),
        [Value::Matrix(matrix)] if matrix.rows() == 1 => matrix.cells.clone(),
        args => args.to_vec(),
    };
    if args.len() < 2 {
        return Err(MathError::arguments(
            "Too few arguments: the common divisor or multiple of at least two numbers, or of a one-dimensional list, is computed",
        ));
    }
    let mut result = args[0].clone();
    for value in &args[1..] {
        result = both(env, &result, value, apply)?;
    }
    Ok(result)
}

fn xgcd(env: &mut Env, args: &[Value]) -> Result<Value> {
    must_be_exact("xgcd", args)?;
    let (a, b, back) = integers(env, "xgcd", &args[0], &args[1])?;
    if a.is_zero() && b.is_zero() {
        let zero = back(a);
        return Ok(Matrix::vector(vec![zero.clone(), zero.clone(), zero]).into());
    }
    let (mut old_r, mut r) = (a, b);
    let (mut old_x, mut x) = (BigInt::from(1), BigInt::zero());
    let (mut old_y, mut y) = (BigInt::zero(), BigInt::from(1));
    while !r.is_zero() {
        let quotient = old_r.div_floor(&r);
        env.purse.pay(1)?;
        (old_r, r) = (r.clone(), old_r - &quotient * r);
        (old_x, x) = (x.clone(), old_x - &quotient * x);
        (old_y, y) = (y.clone(), old_y - &quotient * y);
    }
    if old_r.is_negative() {
        (old_r, old_x, old_y) = (-old_r, -old_x, -old_y);
    }
    Ok(Matrix::vector(vec![back(old_r), back(old_x), back(old_y)]).into())
}

/// Numbers above 2^53 are rounded themselves. What floats find for them must be what is exact, or nobody knows.
fn must_be_certain(env: &mut Env, name: &str, a: &Value, b: &Value, exact: &Value) -> Result<()> {
    let (Value::Num(exact), Pair::Num(a, b)) = (exact, pair(env, name, a, b)?) else {
        return Ok(());
    };
    if a.abs().max(b.abs()).max(*exact) <= EXACT_MAX {
        return Ok(());
    }
    let (mut divisor, mut rest) = (a, b);
    while rest != 0.0 && rest.is_finite() {
        env.purse.pay(1)?;
        (divisor, rest) = (rest, modulo_by_floor(divisor, rest));
    }
    let found = match name {
        "lcm" => (a * b / divisor).abs(),
        _ => divisor.abs(),
    };
    if found == *exact {
        return Ok(());
    }
    Err(unsupported(
        name,
        "numbers above 2^53, which are not exact; use bignumber",
    ))
}

/// A factor found for a number that is rounded itself would be wrong.
fn must_be_exact(name: &str, args: &[Value]) -> Result<()> {
    if args
        .iter()
        .any(|arg| matches!(arg, Value::Num(x) if x.abs() >= EXACT_MAX))
    {
        return Err(unsupported(
            name,
            "numbers above 2^53, which are not exact; use bignumber",
        ));
    }
    Ok(())
}

fn invmod(env: &mut Env, args: &[Value]) -> Result<Value> {
    let (a, modulus, back) = integers(env, "invmod", &args[0], &args[1])?;
    must_be_exact("invmod", args)?;
    if modulus.is_zero() {
        return Err(MathError::value("Divisor must be non zero"));
    }
    let extended = a.mod_floor(&modulus).extended_gcd(&modulus);
    if extended.gcd.abs() != BigInt::from(1) {
        return Ok(Value::Num(f64::NAN));
    }
    let inverse = extended.x.mod_floor(&modulus);
    Ok(back(if inverse.is_negative() {
        inverse + modulus
    } else {
        inverse
    }))
}
