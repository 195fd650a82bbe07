//! Roots, logarithms and angles of big numbers, to any precision: series on fixed-point integers.

use num_bigint::BigInt;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::decimal::{Decimal, digit_count, ten_to};

/// Digits beyond those asked for, so that the last one is right.
const GUARD: usize = 12;

/// What one function costs, in steps.
pub(crate) fn cost(precision: usize) -> u64 {
    64 + (precision as u64 * precision as u64) / 16
}

/// Fixed point: the number times ten to the scale.
fn fixed(x: &Decimal, scale: usize) -> BigInt {
    match x.round(scale as i64) {
        Decimal::Finite { mantissa, exponent } => {
            mantissa * ten_to((exponent + scale as i64).max(0) as u64)
        }
        _ => BigInt::zero(),
    }
}

fn float(n: BigInt, scale: usize, precision: usize) -> Decimal {
    Decimal::new(n, -(scale as i64)).rounded(precision)
}

/// The sum of a series whose term shrinks by `next` until it vanishes.
fn series(first: BigInt, mut next: impl FnMut(BigInt, u64) -> BigInt) -> BigInt {
    let (mut sum, mut term) = (first.clone(), first);
    for n in 1..100_000 {
        term = next(term, n);
        if term.is_zero() {
            break;
        }
        sum += &term;
    }
    sum
}

/// atan(1/n), the building block of π.
fn arctan_inverse(n: u32, scale: &BigInt) -> BigInt {
    let (mut power, mut sum, mut k, square) = (scale / n, BigInt::zero(), 1u32, n * n);
    let mut positive = true;
    while !power.is_zero() {
        let term = &power / k;
        if positive {
            sum += term;
        } else {
            sum -= term;
        }
        power /= square;
        k += 2;
        positive = !positive;
    }
    sum
}

fn pi_fixed(scale: usize) -> BigInt {
    let one = ten_to(scale as u64 + 6);
    (arctan_inverse(5, &one) * 16 - arctan_inverse(239, &one) * 4) / ten_to(6)
}

pub(crate) fn pi(precision: usize) -> Decimal {
    let scale = precision + GUARD;
    float(pi_fixed(scale), scale, precision)
}

pub(crate) fn e(precision: usize) -> Decimal {
    exp(&Decimal::integer(1), precision)
}

pub(crate) fn exp(x: &Decimal, precision: usize) -> Decimal {
    match x {
        Decimal::Nan => return Decimal::Nan,
        Decimal::Infinite { negative: true } => return Decimal::zero(),
        Decimal::Infinite { negative: false } => return x.clone(),
        Decimal::Finite { .. } if x.is_zero() => return Decimal::integer(1),
        Decimal::Finite { .. } => {}
    }
    if x.magnitude() > 15 {
        return if x.is_negative() {
            Decimal::zero()
        } else {
            Decimal::Infinite { negative: false }
        };
    }
    let size = x.magnitude().max(0) as usize;
    let scale = precision + GUARD + size;
    let ln10 = ln10_fixed(scale);
    let fixed_x = fixed(x, scale);
    // x = k·ln 10 + rest: the power of ten is exact, the rest is small.
    let k = num_integer::Integer::div_floor(&fixed_x, &ln10);
    let rest = fixed_x - &k * ln10;
    // Halve it a few times; squaring undoes that at the end.
    let halvings = 8;
    let scale_factor = ten_to(scale as u64);
    let small: BigInt = rest >> halvings;
    let mut sum = series(scale_factor.clone(), |term, n| {
        term * &small / &scale_factor / n
    });
    for _ in 0..halvings {
        sum = &sum * &sum / &scale_factor;
    }
    let exponent = k.to_i64().unwrap_or(0) - scale as i64;
    Decimal::new(sum, exponent).rounded(precision)
}

fn ln10_fixed(scale: usize) -> BigInt {
    // ln 10 = 46 artanh(1/31) + 34 artanh(1/49) + 20 artanh(1/161)
    let one = ten_to(scale as u64 + 6);
    let artanh = |n: u32| {
        let (mut power, mut sum, mut k) = (&one / n, BigInt::zero(), 1u32);
        while !power.is_zero() {
            sum += &power / k;
            power /= n * n;
            k += 2;
        }
        sum
    };
    (artanh(31) * 46 + artanh(49) * 34 + artanh(161) * 20) / ten_to(6)
}

/// The natural logarithm of a positive number.
pub(crate) fn ln(x: &Decimal, precision: usize) -> Decimal {
    match x {
        Decimal::Nan | Decimal::Infinite { negative: true } => return Decimal::Nan,
        Decimal::Infinite { negative: false } => return x.clone(),
        Decimal::Finite { mantissa, .. } if mantissa.is_negative() => return Decimal::Nan,
        Decimal::Finite { .. } if x.is_zero() => return Decimal::Infinite { negative: true },
        Decimal::Finite { .. } => {}
    }
    // Near one the logarithm is small: as many digits more as the distance to one has leading zeros.
    let distance = x.subtract(&Decimal::integer(1), precision);
    if distance.is_zero() && x.compare(&Decimal::integer(1)) == Some(std::cmp::Ordering::Equal) {
        return Decimal::zero();
    }
    let near = (-distance.magnitude()).max(0) as usize;
    if near > precision {
        // ln(1 + d) = d − d²/2, as far as any digit can tell.
        let half = distance.divide(&Decimal::integer(2), precision + GUARD);
        let share = Decimal::integer(1).subtract(&half, 2 * precision + GUARD);
        return distance.multiply(&share, precision);
    }
    let scale = precision + GUARD + 20 + near;
    let one = ten_to(scale as u64);
    // x = m × 10^k with m near one.
    let k = x.magnitude();
    let Decimal::Finite { mantissa, .. } = x else {
        return Decimal::Nan;
    };
    let m = Decimal::new(mantissa.clone(), 1 - digit_count(mantissa) as i64);
    let (m, k) = if m.to_f64() > 3.0 {
        (m.divide(&Decimal::integer(10), scale + 5), k + 1)
    } else {
        (m, k)
    };
    let m = fixed(&m, scale);
    // ln m = 2 artanh((m − 1)/(m + 1)), after square roots that bring m closer to one.
    let (mut m, mut roots) = (m, 0);
    while (&m - &one).abs() > &one / 50 && roots < 12 {
        m = (m * &one).sqrt();
        roots += 1;
    }
    let z = (&m - &one) * &one / (&m + &one);
    let square = &z * &z / &one;
    let (mut power, mut sum, mut n) = (z, BigInt::zero(), 1u32);
    while !power.is_zero() {
        sum += &power / n;
        power = power * &square / &one;
        n += 2;
    }
    let ln_m = sum << (1 + roots);
    float(ln_m + ln10_fixed(scale) * k, scale, precision)
}

pub(crate) fn power(a: &Decimal, b: &Decimal, precision: usize) -> Decimal {
    if a.is_zero() {
        return if b.is_negative() {
            Decimal::Infinite { negative: false }
        } else {
            Decimal::zero()
        };
    }
    let working = precision + GUARD + b.magnitude().clamp(0, 40) as usize;
    exp(&ln(a, working).multiply(b, working), precision)
}

/// Sine and cosine together, of an angle reduced to the first half turn.
fn sin_cos_fixed(x: &Decimal, scale: usize) -> (BigInt, BigInt) {
    let one = ten_to(scale as u64);
    let size = x.magnitude().clamp(0, 400) as usize;
    let wide = scale + size;
    let two_pi = pi_fixed(wide) * 2;
    let turned = num_integer::Integer::mod_floor(&fixed(x, wide), &two_pi) / ten_to(size as u64);
    let angle = turned >> 3;
    let square = &angle * &angle / &one;
    let mut sin = series(angle, |term, n| {
        -(term * &square / &one) / ((2 * n) * (2 * n + 1))
    });
    let mut cos = series(one.clone(), |term, n| {
        -(term * &square / &one) / ((2 * n - 1) * (2 * n))
    });
    for _ in 0..3 {
        let double_sin = &sin * &cos * 2 / &one;
        cos = (&cos * &cos - &sin * &sin) / &one;
        sin = double_sin;
    }
    (sin, cos)
}

/// How many zeros a small number has before its first digit, which a fixed-point sum needs more digits for; `None` where
/// the number is so small that its sine, tangent and their inverses are the number itself.
fn leading_zeros(x: &Decimal, precision: usize) -> Option<usize> {
    if x.is_zero() {
        return Some(0);
    }
    let zeros = (-x.magnitude()).max(0) as usize;
    (zeros <= precision / 2 + GUARD).then_some(zeros)
}

pub(crate) fn sin(x: &Decimal, precision: usize) -> Decimal {
    if !x.is_finite() || x.magnitude() > 400 {
        return Decimal::Nan;
    }
    let Some(zeros) = leading_zeros(x, precision) else {
        return x.clone().rounded(precision);
    };
    let scale = precision + GUARD + zeros;
    float(sin_cos_fixed(x, scale).0, scale, precision)
}

pub(crate) fn cos(x: &Decimal, precision: usize) -> Decimal {
    if !x.is_finite() || x.magnitude() > 400 {
        return Decimal::Nan;
    }
    let scale = precision + GUARD;
    float(sin_cos_fixed(x, scale).1, scale, precision)
}

pub(crate) fn tan(x: &Decimal, precision: usize) -> Decimal {
    sin(x, precision + GUARD).divide(&cos(x, precision + GUARD), precision)
}

pub(crate) fn atan(x: &Decimal, precision: usize) -> Decimal {
    let half_pi = |negative: bool| {
        let half = pi(precision + 2).divide(&Decimal::integer(2), precision);
        if negative { half.negated() } else { half }
    };
    match x {
        Decimal::Nan => return Decimal::Nan,
        Decimal::Infinite { negative } => return half_pi(*negative),
        Decimal::Finite { .. } => {}
    }
    if x.is_negative() {
        return atan(&x.negated(), precision).negated();
    }
    if x.magnitude() >= 0 && x.to_f64() > 1.0 {
        let rest = atan(
            &Decimal::integer(1).divide(x, precision + GUARD),
            precision + GUARD,
        );
        return half_pi_wide(precision).subtract(&rest, precision);
    }
    let Some(zeros) = leading_zeros(x, precision) else {
        return x.clone().rounded(precision);
    };
    let scale = precision + GUARD + zeros;
    let one = ten_to(scale as u64);
    let mut z = fixed(x, scale);
    // atan z = 2 atan(z / (1 + √(1 + z²))): three times makes it small.
    for _ in 0..3 {
        let root = (&one * &one + &z * &z).sqrt();
        z = &z * &one / (&one + root);
    }
    let square = &z * &z / &one;
    let (mut power, mut sum, mut n, mut positive) = (z, BigInt::zero(), 1u32, true);
    while !power.is_zero() {
        if positive {
            sum += &power / n;
        } else {
            sum -= &power / n;
        }
        power = power * &square / &one;
        n += 2;
        positive = !positive;
    }
    float(sum << 3, scale, precision)
}

/// The angle of the point (x, y), between −π and π.
pub(crate) fn atan2(y: &Decimal, x: &Decimal, precision: usize) -> Decimal {
    if matches!(x, Decimal::Nan) || matches!(y, Decimal::Nan) {
        return Decimal::Nan;
    }
    let turned = |angle: Decimal| {
        if y.is_negative() {
            angle.negated()
        } else {
            angle
        }
    };
    let working = precision + GUARD;
    let angle = match (x.is_finite(), y.is_finite()) {
        (false, false) => {
            let quarter = pi(working).divide(&Decimal::integer(4), working);
            if x.is_negative() {
                quarter.multiply(&Decimal::integer(3), precision)
            } else {
                quarter
            }
        }
        (_, false) => half_pi_wide(precision),
        (false, _) if x.is_negative() => pi(precision),
        (false, _) => Decimal::zero(),
        (true, true) if y.is_zero() => {
            if x.is_negative() {
                pi(precision)
            } else {
                Decimal::zero()
            }
        }
        (true, true) if x.is_zero() => half_pi_wide(precision),
        (true, true) => {
            let slope = atan(&y.abs().divide(&x.abs(), working), working);
            if x.is_negative() {
                pi(working).subtract(&slope, working)
            } else {
                slope
            }
        }
    };
    turned(angle.rounded(precision))
}

fn half_pi_wide(precision: usize) -> Decimal {
    pi(precision + GUARD).divide(&Decimal::integer(2), precision + GUARD)
}

/// For −1 ≤ x ≤ 1.
pub(crate) fn asin(x: &Decimal, precision: usize) -> Decimal {
    let working = precision + GUARD;
    let one = Decimal::integer(1);
    let root = one
        .subtract(&x.multiply(x, 2 * working), working)
        .sqrt(working);
    if root.is_zero() {
        let half = half_pi_wide(precision).rounded(precision);
        return if x.is_negative() {
            half.negated()
        } else {
            half
        };
    }
    atan(&x.divide(&root, working), precision)
}

pub(crate) fn acos(x: &Decimal, precision: usize) -> Decimal {
    half_pi_wide(precision).subtract(&asin(x, precision + GUARD), precision)
}

pub(crate) fn sinh(x: &Decimal, precision: usize) -> Decimal {
    // Small arguments cancel: as many digits more as the argument has leading zeros.
    let working = precision + GUARD + (-x.magnitude()).clamp(0, 200) as usize;
    let (up, down) = (exp(x, working), exp(&x.negated(), working));
    up.subtract(&down, working)
        .divide(&Decimal::integer(2), precision)
}

pub(crate) fn cosh(x: &Decimal, precision: usize) -> Decimal {
    let working = precision + GUARD;
    exp(x, working)
        .add(&exp(&x.negated(), working), working)
        .divide(&Decimal::integer(2), precision)
}

pub(crate) fn tanh(x: &Decimal, precision: usize) -> Decimal {
    if let Decimal::Infinite { negative } = x {
        return Decimal::integer(if *negative { -1 } else { 1 });
    }
    let working = precision + GUARD;
    sinh(x, working).divide(&cosh(x, working), precision)
}

/// A whole root of a positive number.
pub(crate) fn root(x: &Decimal, order: u32, precision: usize) -> Decimal {
    if x.is_zero() {
        return Decimal::zero();
    }
    let Decimal::Finite { mantissa, exponent } = x else {
        return x.clone();
    };
    let order_wide = i64::from(order);
    let mut shift = (precision as i64 + 4) * order_wide - digit_count(mantissa) as i64;
    shift = shift.max(0);
    shift += (exponent - shift).rem_euclid(order_wide);
    let scaled = mantissa * ten_to(shift as u64);
    let root = scaled.nth_root(order);
    let exact = num_traits::pow(root.clone(), order as usize) == scaled;
    let sticky = if exact { BigInt::zero() } else { BigInt::one() };
    Decimal::new(root * 10 + sticky, (exponent - shift) / order_wide - 1).rounded(precision)
}
