//! Arithmetic: powers, roots, logarithms, divisors.

use num_traits::Signed;

use crate::broadcast::{both, each, keeping_zeros};
use crate::convert::{Pair, pair, simple, to_big, to_f64, whole, wrong_type};
use crate::error::{MathError, Result};
use crate::functions::statistics::flatten_args;
use crate::number::complex::Complex;
use crate::number::decimal::Decimal;
use crate::number::fraction::Fraction;
use crate::number::transcendental;
use crate::ops::arithmetic::{abs, add_scalar, multiply_scalar};
use crate::ops::power::pow_scalar;
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::{ANY_NUMBER, Builtin};
use crate::value::matrix::Matrix;

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("abs", 1..=1, |env, args| each(env, &args[0], abs)),
    Builtin::new("cbrt", 1..=2, cbrt),
    Builtin::new("cube", 1..=1, |env, args| each(env, &args[0], cube)),
    Builtin::new("exp", 1..=1, |env, args| each(env, &args[0], exp)),
    Builtin::new("expm1", 1..=1, |env, args| each(env, &args[0], expm1)),
    Builtin::new("hypot", 1..=ANY_NUMBER, hypot),
    Builtin::new("log", 1..=2, log),
    Builtin::new("log10", 1..=1, |env, args| {
        each(env, &args[0], |env, x| {
            log_scalar(env, "log10", x, f64::log10, Some(10))
        })
    }),
    Builtin::new("log2", 1..=1, |env, args| {
        each(env, &args[0], |env, x| {
            log_scalar(env, "log2", x, f64::log2, Some(2))
        })
    }),
    Builtin::new("log1p", 1..=2, log1p),
    Builtin::new("nthRoot", 1..=2, nth_root),
    Builtin::new("nthRoots", 1..=2, nth_roots),
    Builtin::new("sign", 1..=1, |env, args| each(env, &args[0], sign)),
    Builtin::new("sqrt", 1..=1, |env, args| each(env, &args[0], sqrt_scalar)),
    Builtin::new("square", 1..=1, |env, args| {
        each(env, &args[0], |env, x| match x {
            Value::Unit(unit) => unit.pow(env, &Value::Num(2.0)),
            x => multiply_scalar(env, x, x),
        })
    }),
];

fn cube(env: &mut Env, value: &Value) -> Result<Value> {
    if let Value::Unit(unit) = value {
        return unit.pow(env, &Value::Num(3.0));
    }
    let square = multiply_scalar(env, value, value)?;
    multiply_scalar(env, &square, value)
}

fn cbrt(env: &mut Env, args: &[Value]) -> Result<Value> {
    let all_roots = match args.get(1) {
        None => false,
        Some(Value::Bool(all)) => *all,
        Some(other) => return Err(wrong_type("cbrt", other, 1)),
    };
    each(env, &args[0], |env, value| match value {
        Value::Unit(unit) => unit
            .pow(env, &Value::Num(1.0 / 3.0))
            .and_then(|root| exact_cube_root(unit, root)),
        value => match simple("cbrt", value, 0)? {
            Value::Complex(z) => Ok(complex_cube_roots(z, all_roots)),
            Value::Num(x) if all_roots => Ok(complex_cube_roots(x.into(), true)),
            Value::Big(n) => {
                env.purse
                    .pay(transcendental::cost(env.settings.precision))?;
                let root = transcendental::root(&n.abs(), 3, env.settings.precision);
                Ok(Value::big(if n.is_negative() {
                    root.negated()
                } else {
                    root
                }))
            }
            value => Ok(Value::Num(to_f64(&value).cbrt())),
        },
    })
}

/// The power 1/3 is off by a rounding error where the cube root is not.
fn exact_cube_root(cube: &crate::value::unit::Unit, root: Value) -> Result<Value> {
    match (root, &cube.value) {
        (Value::Unit(unit), Some(value @ Value::Num(_))) => {
            let exact = Value::Num(to_f64(value).cbrt());
            Ok(Value::unit(unit.map(|_| Ok(exact))?))
        }
        (root, _) => Ok(root),
    }
}

fn complex_cube_roots(z: Complex, all: bool) -> Value {
    let roots = z.roots(3);
    if !all {
        return roots[0].into();
    }
    let order = [roots[0], roots[1], roots[2]];
    Matrix::vector(order.into_iter().map(Value::Complex).collect()).into()
}

pub(crate) fn exp(env: &mut Env, value: &Value) -> Result<Value> {
    Ok(match simple("exp", value, 0)? {
        Value::Complex(z) => z.exp().into(),
        Value::Big(n) => {
            env.purse
                .pay(transcendental::cost(env.settings.precision))?;
            Value::big(transcendental::exp(&n, env.settings.precision))
        }
        value => Value::Num(to_f64(&value).exp()),
    })
}

fn expm1(env: &mut Env, value: &Value) -> Result<Value> {
    Ok(match simple("expm1", value, 0)? {
        Value::Complex(z) => {
            let half = (z.im / 2.0).sin();
            let below_cosine = -2.0 * half * half;
            let re = z.re.exp_m1() * z.im.cos() + below_cosine;
            Complex::new(re, z.re.exp() * z.im.sin()).into()
        }
        Value::Big(n) => {
            env.purse
                .pay(transcendental::cost(env.settings.precision))?;
            let precision = env.settings.precision;
            let zeros = (-n.magnitude()).max(0) as usize;
            if zeros > precision {
                // x + x²/2, as far as any digit can tell.
                let half = n.divide(&Decimal::integer(2), precision);
                let share = Decimal::integer(1).add(&half, 2 * precision);
                return Ok(Value::big(n.multiply(&share, precision)));
            }
            // A small power is near one: as many digits more as it has leading zeros.
            Value::big(
                transcendental::exp(&n, precision + 20 + zeros)
                    .subtract(&Decimal::integer(1), precision),
            )
        }
        value => Value::Num(to_f64(&value).exp_m1()),
    })
}

pub(crate) fn sqrt_scalar(env: &mut Env, value: &Value) -> Result<Value> {
    if let Value::Num(x) = value {
        return Ok(sqrt_number(*x));
    }
    if let Value::Unit(unit) = value {
        return unit.pow(env, &Value::Num(0.5));
    }
    Ok(match simple("sqrt", value, 0)? {
        Value::Complex(z) => z.sqrt().into(),
        Value::Big(n) if n.is_negative() => Complex::from(n.to_f64()).sqrt().into(),
        Value::Big(n) => {
            env.purse.pay_digits(env.settings.precision as u64 * 2)?;
            Value::big(n.sqrt(env.settings.precision))
        }
        value => sqrt_number(to_f64(&value)),
    })
}

fn sqrt_number(x: f64) -> Value {
    if x >= 0.0 || x.is_nan() {
        Value::Num(x.sqrt())
    } else {
        Complex::new(0.0, (-x).sqrt()).into()
    }
}

#[allow(
    clippy::only_used_in_recursion,
    reason = "every scalar function has this signature"
)]
fn sign(env: &mut Env, value: &Value) -> Result<Value> {
    Ok(match value {
        Value::Unit(unit) => match &unit.value {
            Some(value) => sign(env, value)?,
            None => return Err(wrong_type("sign", value, 0)),
        },
        value => match simple("sign", value, 0)? {
            Value::Complex(z) if z.is_zero() => Value::Complex(z),
            Value::Complex(z) => z.scale(1.0 / z.abs()).into(),
            Value::Int(n) => Value::int(n.signum()),
            Value::Big(n) if matches!(*n, Decimal::Nan) => Value::Big(n),
            Value::Big(n) => Value::big(Decimal::integer(if n.is_zero() {
                0
            } else if n.is_negative() {
                -1
            } else {
                1
            })),
            Value::Frac(n) => Value::frac(Fraction::integer(n.numerator.signum())),
            value => {
                let x = to_f64(&value);
                Value::Num(if x == 0.0 || x.is_nan() {
                    x.abs()
                } else {
                    x.signum()
                })
            }
        },
    })
}

fn log_scalar(
    env: &mut Env,
    name: &str,
    value: &Value,
    of_number: fn(f64) -> f64,
    base: Option<i64>,
) -> Result<Value> {
    let divisor = base.map_or(1.0, |base| (base as f64).ln());
    let complex = |z: Complex| match base {
        None => Value::from(z.ln()),
        Some(10) => Value::from(z.ln() / divisor.into()),
        Some(_) => Value::from(z.ln().scale(1.0 / divisor)),
    };
    Ok(match simple(name, value, 0)? {
        Value::Complex(z) => complex(z),
        Value::Big(n) if n.is_negative() => complex(n.to_f64().into()),
        Value::Big(n) => {
            env.purse
                .pay(2 * transcendental::cost(env.settings.precision))?;
            let precision = env.settings.precision;
            match base {
                None => Value::big(transcendental::ln(&n, precision)),
                Some(base) => {
                    let base = transcendental::ln(&Decimal::integer(base), precision + 10);
                    Value::big(transcendental::ln(&n, precision + 10).divide(&base, precision))
                }
            }
        }
        Value::Int(n) if n.is_positive() => {
            // Its length in bits counts where the number itself is beyond f64.
            let shift = n.bits().saturating_sub(1000);
            let rest = to_f64(&Value::int(&*n >> shift));
            Value::Num((rest.ln() + shift as f64 * std::f64::consts::LN_2) / divisor)
        }
        value => {
            let x = to_f64(&value);
            if x >= 0.0 {
                Value::Num(of_number(x))
            } else {
                complex(x.into())
            }
        }
    })
}

pub(crate) fn natural_log(env: &mut Env, value: &Value) -> Result<Value> {
    log_scalar(env, "log", value, f64::ln, None)
}

fn log(env: &mut Env, args: &[Value]) -> Result<Value> {
    let Some(base) = args.get(1) else {
        return each(env, &args[0], natural_log);
    };
    for arg in args {
        if matches!(arg, Value::Matrix(_)) {
            return Err(wrong_type("log", arg, 0));
        }
    }
    both(env, &args[0], base, |env, value, base| {
        if let (Value::Frac(value), Value::Frac(base)) = (value, base) {
            // Factors are looked for one by one.
            env.purse.pay(4000)?;
            if let Some(log) = value.log(base) {
                return Ok(Value::frac(log));
            }
        }
        if let (Value::Num(value), Value::Num(base)) = (value, base)
            && *value >= 0.0
        {
            if *base == 2.0 {
                return Ok(Value::Num(value.log2()));
            }
            if *base == 10.0 {
                return Ok(Value::Num(value.log10()));
            }
        }
        let (above, below) = (natural_log(env, value)?, natural_log(env, base)?);
        crate::ops::arithmetic::divide_scalar(env, &above, &below)
    })
}

fn log1p(env: &mut Env, args: &[Value]) -> Result<Value> {
    let logs = each(env, &args[0], |env, value| {
        match simple("log1p", value, 0)? {
            Value::Num(x) if x >= -1.0 => Ok(Value::Num(x.ln_1p())),
            value => {
                let plus_one = add_scalar(env, &value, &Value::Num(1.0))?;
                natural_log(env, &plus_one)
            }
        }
    })?;
    match args.get(1) {
        Some(base) => {
            let base = natural_log(env, base)?;
            crate::ops::arithmetic::divide_scalar(env, &logs, &base)
        }
        None => Ok(logs),
    }
}

fn nth_root(env: &mut Env, args: &[Value]) -> Result<Value> {
    let two = Value::Num(2.0);
    keeping_zeros(
        env,
        "nthRoot",
        &args[0],
        args.get(1).unwrap_or(&two),
        |env, value, order| match pair(env, "nthRoot", value, order)? {
            Pair::Num(a, root) => nth_root_number(a, root).map(Value::Num),
            Pair::Complex(..) => Err(MathError::arguments(
                "Complex number not supported in function nthRoot. Use nthRoots instead.",
            )),
            Pair::Big(a, root) => {
                env.purse
                    .pay(transcendental::cost(env.settings.precision))?;
                let order = root
                    .to_i64()
                    .filter(|order| *order != 0 && order.unsigned_abs() <= 1000);
                let order = order
                    .ok_or_else(|| MathError::value("Root must be a small non-zero integer"))?;
                if a.is_negative() && order % 2 == 0 {
                    return Err(MathError::value("Root must be odd when a is negative."));
                }
                // mathjs has a plain zero here.
                if a.is_zero() && order > 0 {
                    return Ok(Value::Num(0.0));
                }
                let size = transcendental::root(
                    &a.abs(),
                    order.unsigned_abs() as u32,
                    env.settings.precision,
                );
                let size = if order < 0 {
                    Decimal::integer(1).divide(&size, env.settings.precision)
                } else {
                    size
                };
                Ok(Value::big(if a.is_negative() {
                    size.negated()
                } else {
                    size
                }))
            }
            _ => nth_root_number(to_f64(value), to_f64(order)).map(Value::Num),
        },
    )
}

fn nth_root_number(a: f64, root: f64) -> Result<f64> {
    let (root, inverse) = (root.abs(), root < 0.0);
    if root == 0.0 {
        return Err(MathError::value("Root must be non-zero"));
    }
    if a < 0.0 && root % 2.0 != 1.0 {
        return Err(MathError::value("Root must be odd when a is negative."));
    }
    if a == 0.0 {
        return Ok(if inverse { f64::INFINITY } else { 0.0 });
    }
    if !a.is_finite() {
        return Ok(if inverse { 0.0 } else { a });
    }
    let size = a.abs().powf(1.0 / root);
    let x = if a < 0.0 { -size } else { size };
    Ok(if inverse { 1.0 / x } else { x })
}

fn nth_roots(env: &mut Env, args: &[Value]) -> Result<Value> {
    let order = args
        .get(1)
        .map_or(Ok(2), |order| whole("nthRoots", order))?;
    let order = u32::try_from(order)
        .ok()
        .filter(|order| *order > 0)
        .ok_or_else(|| MathError::value("Root must be greater than zero"))?;
    env.purse.pay_cells(order as usize)?;
    let z = crate::convert::to_complex(&simple("nthRoots", &args[0], 0)?);
    if z.is_zero() {
        return Ok(Matrix::array(vec![Complex::from(0.0).into()]).into());
    }
    let roots = (0..order).map(|k| exact_root(z, order, k).into()).collect();
    Ok(Matrix::array(roots).into())
}

/// Roots that lie on an axis lie on it exactly.
fn exact_root(z: Complex, order: u32, k: u32) -> Complex {
    let radius = z.abs().powf(1.0 / f64::from(order));
    let quarter = (z.re == 0.0 || z.im == 0.0).then(|| {
        let start = if z.re > 0.0 {
            0
        } else if z.im > 0.0 {
            1
        } else if z.re < 0.0 {
            2
        } else {
            3
        };
        let turns = 4 * k + start;
        turns.is_multiple_of(order).then(|| turns / order % 4)
    });
    match quarter.flatten() {
        Some(0) => Complex::new(radius, 0.0),
        Some(1) => Complex::new(0.0, radius),
        Some(2) => Complex::new(-radius, 0.0),
        Some(_) => Complex::new(0.0, -radius),
        None => Complex::polar(
            radius,
            (z.arg() + std::f64::consts::TAU * f64::from(k)) / f64::from(order),
        ),
    }
}

fn hypot(env: &mut Env, args: &[Value]) -> Result<Value> {
    let values = flatten_args(env, args)?;
    if values.iter().any(|value| matches!(value, Value::Big(_))) {
        let mut sum = Decimal::zero();
        for value in &values {
            let big = to_big(&simple("hypot", value, 0)?);
            sum = sum.add(
                &big.multiply(&big, env.settings.precision),
                env.settings.precision,
            );
        }
        return Ok(Value::big(sum.sqrt(env.settings.precision)));
    }
    let mut result = 0f64;
    for value in &values {
        let scalar = simple("hypot", value, 0)?;
        if matches!(scalar, Value::Complex(_)) {
            return Err(wrong_type("hypot", value, 0));
        }
        result = result.hypot(to_f64(&scalar));
    }
    Ok(Value::Num(result))
}

pub(crate) fn power(env: &mut Env, base: &Value, exponent: f64) -> Result<Value> {
    pow_scalar(env, base, &Value::Num(exponent))
}
