//! Factorials and what is counted with them.

use crate::broadcast::each;
use crate::convert::{simple, to_f64, wrong_type};
use crate::error::{MathError, Result};
use crate::number::decimal::Decimal;
use crate::number::special;
use crate::ops::arithmetic::EXACT_MAX;
use crate::refusals::{is_not_finite, unsupported};
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::Builtin;

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("factorial", 1..=1, factorial),
    Builtin::new("gamma", 1..=1, |env, args| each(env, &args[0], gamma)),
    Builtin::new("lgamma", 1..=1, |env, args| each(env, &args[0], lgamma)),
    Builtin::new("combinations", 2..=2, |env, args| {
        combinations(env, &args[0], &args[1])
    }),
    Builtin::new("combinationsWithRep", 2..=2, |env, args| {
        combinations_with_rep(env, &args[0], &args[1])
    }),
    Builtin::new("permutations", 1..=2, permutations),
];

pub(crate) fn factorial(env: &mut Env, args: &[Value]) -> Result<Value> {
    each(env, &args[0], |env, value| {
        match simple("factorial", value, 0)? {
            Value::Num(n) if n < 0.0 => Err(MathError::value("Value must be non-negative")),
            Value::Num(n) => Ok(Value::Num(special::gamma(n + 1.0))),
            Value::Int(n) => {
                factorial_big(env, &Decimal::new((*n).clone(), 0)).map(|big| {
                    match big.to_bigint(usize::MAX) {
                        Some(n) => Value::int(n),
                        None => Value::Num(f64::INFINITY),
                    }
                })
            }
            Value::Big(n) => factorial_big(env, &n).map(Value::big),
            other => Err(wrong_type("factorial", &other, 0)),
        }
    })
}

/// Exact while it fits the precision, rounded beyond.
fn factorial_big(env: &mut Env, n: &Decimal) -> Result<Decimal> {
    if n.is_negative() {
        return Err(MathError::value("Value must be non-negative"));
    }
    let Some(n) = n.to_i64() else {
        return Err(MathError::value(
            "Integer BigNumber expected in function factorial",
        ));
    };
    let mut product = Decimal::integer(1);
    for factor in 2..=n {
        env.purse.pay(20)?;
        product = product.multiply(&Decimal::integer(factor), env.settings.precision + 16);
    }
    Ok(product.rounded(env.settings.precision))
}

fn gamma(env: &mut Env, value: &Value) -> Result<Value> {
    match simple("gamma", value, 0)? {
        Value::Complex(z) if z.im != 0.0 => {
            let value = Value::from(special::gamma_complex(z));
            if is_not_finite(&value) {
                return Err(unsupported("gamma", "complex numbers that large"));
            }
            Ok(value)
        }
        Value::Complex(z) => Ok(Value::Num(special::gamma(z.re))),
        Value::Big(n) if !n.is_finite() => Ok(Value::big(if n.is_negative() {
            Decimal::Nan
        } else {
            (*n).clone()
        })),
        Value::Big(n) if n.is_integer() => {
            if n.is_negative() || n.is_zero() {
                return Ok(Value::big(Decimal::Infinite { negative: false }));
            }
            let below = n.subtract(&Decimal::integer(1), env.settings.precision);
            factorial_big(env, &below).map(Value::big)
        }
        Value::Big(_) => Err(MathError::value("Integer BigNumber expected")),
        value => Ok(Value::Num(special::gamma(to_f64(&value)))),
    }
}

fn lgamma(_: &mut Env, value: &Value) -> Result<Value> {
    match simple("lgamma", value, 0)? {
        Value::Complex(z) => Ok(special::ln_gamma_complex(z).into()),
        Value::Big(_) => Err(MathError::unsupported(
            "mathjs doesn't yet provide an implementation of the algorithm lgamma for BigNumber",
        )),
        value => Ok(Value::Num(special::ln_gamma(to_f64(&value)))),
    }
}

/// Two counts, and whether they were given as big numbers: then so is the answer.
pub(crate) struct Counts {
    pub(crate) n: f64,
    pub(crate) k: f64,
    pub(crate) is_big: bool,
}

pub(crate) fn counts(name: &str, n: &Value, k: &Value) -> Result<Counts> {
    let is_big = matches!(n, Value::Big(_)) || matches!(k, Value::Big(_));
    Ok(Counts {
        n: count(name, n, 0)?,
        k: count(name, k, 1)?,
        is_big,
    })
}

/// A whole number that is not negative.
pub(crate) fn count(name: &str, value: &Value, index: usize) -> Result<f64> {
    let x = match simple(name, value, index)? {
        Value::Complex(z) => return Err(wrong_type(name, &Value::Complex(z), index)),
        value => to_f64(&value),
    };
    if x < 0.0 || x.fract() != 0.0 || !x.is_finite() {
        return Err(MathError::value(format!(
            "Non-negative integer value expected in function {name}"
        )));
    }
    must_be_exact(name, x)?;
    Ok(x)
}

fn must_be_exact(name: &str, count: f64) -> Result<()> {
    if count > EXACT_MAX {
        return Err(unsupported(
            name,
            "numbers above 2^53, which are not counted exactly",
        ));
    }
    Ok(())
}

pub(crate) fn choose(env: &mut Env, n: f64, k: f64) -> Result<f64> {
    let k = k.min(n - k);
    let mut result = 1.0;
    let mut i = 1.0;
    while i <= k {
        env.purse.pay(1)?;
        // Multiply first: each intermediate value is itself a whole binomial coefficient.
        result = result * (n - k + i) / i;
        if result == f64::INFINITY {
            break;
        }
        i += 1.0;
    }
    Ok(if result < 9e15 {
        result.round()
    } else {
        result
    })
}

/// n over k, in the kind of number that was counted with.
pub(crate) fn binomial(env: &mut Env, n: f64, k: f64, is_big: bool) -> Result<Value> {
    if !is_big {
        return choose(env, n, k).map(Value::Num);
    }
    let mut result = Decimal::integer(1);
    let smaller = k.min(n - k);
    let precision = env.settings.precision + 16;
    let mut i = 1.0;
    while i <= smaller {
        env.purse.pay(8)?;
        result = result
            .multiply(&Decimal::from_f64(n - smaller + i), precision)
            .divide(&Decimal::from_f64(i), precision);
        i += 1.0;
    }
    Ok(Value::big(result.rounded(env.settings.precision)))
}

fn combinations(env: &mut Env, n: &Value, k: &Value) -> Result<Value> {
    let Counts { n, k, is_big } = counts("combinations", n, k)?;
    if k > n {
        return Err(MathError::value("k must be less than or equal to n"));
    }
    binomial(env, n, k, is_big)
}

fn combinations_with_rep(env: &mut Env, n: &Value, k: &Value) -> Result<Value> {
    let Counts { n, k, is_big } = counts("combinationsWithRep", n, k)?;
    if n < 1.0 {
        return Err(MathError::value(
            "k must be less than or equal to n + k - 1",
        ));
    }
    must_be_exact("combinationsWithRep", n + k)?;
    binomial(env, n + k - 1.0, k, is_big)
}

fn permutations(env: &mut Env, args: &[Value]) -> Result<Value> {
    let Some(k) = args.get(1) else {
        return factorial(env, args);
    };
    let Counts { n, k, is_big } = counts("permutations", &args[0], k)?;
    if k > n {
        return Err(MathError::value(
            "second argument k must be less than or equal to first argument n",
        ));
    }
    let precision = env.settings.precision;
    let (mut product, mut big) = (1.0, Decimal::integer(1));
    let mut factor = n - k + 1.0;
    while factor <= n && product < f64::INFINITY {
        env.purse.pay(if is_big { 8 } else { 1 })?;
        if is_big {
            big = big.multiply(&Decimal::from_f64(factor), precision + 16);
        } else {
            product *= factor;
        }
        factor += 1.0;
    }
    Ok(if is_big {
        Value::big(big.rounded(precision))
    } else {
        Value::Num(product)
    })
}
