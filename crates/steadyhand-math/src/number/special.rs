//! Gamma, error and zeta functions.

use std::f64::consts::{LN_2, PI, TAU};

use super::complex::Complex;

const LANCZOS_G: f64 = 4.742_187_5;
/// Lanczos coefficients for that g: 15 digits of the gamma function.
const LANCZOS: [f64; 15] = [
    0.999_999_999_999_997_1,
    57.156_235_665_862_92,
    -59.597_960_355_475_49,
    14.136_097_974_741_746,
    -0.491_913_816_097_620_2,
    3.399_464_998_481_189e-5,
    4.652_362_892_704_858e-5,
    -9.837_447_530_487_956e-5,
    1.580_887_032_249_125e-4,
    -2.102_644_417_241_049e-4,
    2.174_396_181_152_126_5e-4,
    -1.643_181_065_367_639e-4,
    8.441_822_398_385_275e-5,
    -2.619_083_840_158_141e-5,
    3.689_918_265_953_162e-6,
];

pub(crate) fn gamma(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x.fract() == 0.0 {
        if x <= 0.0 {
            return if x.is_finite() {
                f64::INFINITY
            } else {
                f64::NAN
            };
        }
        if x > 171.0 {
            return f64::INFINITY;
        }
        return (2..x as u32).fold(1.0, |product, factor| product * f64::from(factor));
    }
    if x < 0.5 {
        return PI / ((PI * x).sin() * gamma(1.0 - x));
    }
    if x >= 171.35 {
        return f64::INFINITY;
    }
    if x > 85.0 {
        // Stirling's series, where Lanczos would overflow on the way.
        let (two, three) = (x * x, x * x * x);
        let (four, five) = (three * x, three * x * x);
        return (TAU / x).sqrt()
            * (x / std::f64::consts::E).powf(x)
            * (1.0 + 1.0 / (12.0 * x) + 1.0 / (288.0 * two)
                - 139.0 / (51_840.0 * three)
                - 571.0 / (2_488_320.0 * four)
                + 163_879.0 / (209_018_880.0 * five)
                + 5_246_819.0 / (75_246_796_800.0 * five * x));
    }
    let x = x - 1.0;
    let sum = LANCZOS
        .iter()
        .enumerate()
        .skip(1)
        .fold(LANCZOS[0], |sum, (k, c)| sum + c / (x + k as f64));
    let t = x + LANCZOS_G + 0.5;
    TAU.sqrt() * t.powf(x + 0.5) * (-t).exp() * sum
}

pub(crate) fn gamma_complex(z: Complex) -> Complex {
    if z.re < 0.5 {
        let sine = z.scale(PI).sin();
        return Complex::from(PI) / (sine * gamma_complex(Complex::from(1.0) - z));
    }
    let z = z - 1.0.into();
    let mut sum = Complex::from(LANCZOS[0]);
    for (k, c) in LANCZOS.iter().enumerate().skip(1) {
        sum = sum + Complex::from(*c) / (z + (k as f64).into());
    }
    let t = z + (LANCZOS_G + 0.5).into();
    (t.pow(z + 0.5.into()) * (-t).exp() * sum).scale(TAU.sqrt())
}

pub(crate) fn ln_gamma(x: f64) -> f64 {
    if x.is_nan() || x == f64::INFINITY {
        return x;
    }
    if x == 0.0 {
        return f64::INFINITY;
    }
    // The gamma function changes its sign there: mathjs knows no logarithm of it.
    if x < 0.0 {
        return f64::NAN;
    }
    if x < 0.5 {
        return (PI / (PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    // Lanczos with g = 5, in logarithms.
    const SMALL: [f64; 7] = [
        1.000_000_000_190_015,
        76.180_091_729_471_46,
        -86.505_320_329_416_77,
        24.014_098_240_830_91,
        -1.231_739_572_450_155,
        0.120_865_097_386_617_9e-2,
        -0.539_523_938_495_3e-5,
    ];
    let base = x + 5.5;
    let sum = (1..7)
        .rev()
        .fold(SMALL[0], |sum, k| sum + SMALL[k] / (x + k as f64));
    0.918_938_533_204_672_8 + (x + 0.5) * base.ln() - base + sum.ln()
}

/// Along the continuous branch, by Stirling's series far from zero.
pub(crate) fn ln_gamma_complex(z: Complex) -> Complex {
    if z.is_zero() || (z.im == 0.0 && z.re.is_nan()) {
        return Complex::from(if z.is_zero() { f64::INFINITY } else { f64::NAN });
    }
    if z.im == 0.0 {
        return Complex::from(ln_gamma(z.re));
    }
    if z.re >= 7.0 || z.im.abs() >= 7.0 {
        return stirling(z);
    }
    if z.re > -50.0 {
        // Climb with Γ(z + 1) = zΓ(z); the logarithms of the factors are summed, so the branch is kept.
        let (mut z, mut sum) = (z, Complex::from(0.0));
        while z.re < 7.0 {
            sum = sum + z.ln();
            z = z + 1.0.into();
        }
        return stirling(z) - sum;
    }
    // By reflection, on the branch that continues the one right of zero.
    let reflected = ln_gamma_complex(Complex::from(1.0) - z);
    let sine = z.scale(PI).sin().ln();
    let turns = TAU.copysign(z.im) * (0.5 * z.re + 0.25).floor();
    Complex::new(PI.ln(), turns) - sine - reflected
}

fn stirling(z: Complex) -> Complex {
    const SERIES: [f64; 8] = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
        -3617.0 / 122_400.0,
    ];
    let main = (z - 0.5.into()) * z.ln() - z + (0.5 * TAU.ln()).into();
    let inverse = Complex::from(1.0) / z;
    let square = inverse * inverse;
    let (mut power, mut sum) = (inverse, main);
    for coefficient in SERIES {
        sum = sum + power.scale(coefficient);
        power = power * square;
    }
    sum
}

/// The error function: its series near zero, a continued fraction far out.
pub(crate) fn erf(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let size = x.abs();
    if size > 6.0 {
        return x.signum();
    }
    let value = if size < 2.5 {
        let (mut term, mut sum, mut n) = (size, size, 0.0);
        while term.abs() > 1e-18 * sum.abs() && n < 200.0 {
            n += 1.0;
            term *= -size * size / n;
            sum += term / (2.0 * n + 1.0);
        }
        sum * 2.0 / PI.sqrt()
    } else {
        let mut fraction = 0.0;
        for k in (1..=120).rev() {
            fraction = 0.5 * f64::from(k) / (size + fraction);
        }
        1.0 - (-size * size).exp() / (PI.sqrt() * (size + fraction))
    };
    value.copysign(x)
}

/// Riemann's zeta function of a complex number; `None` where its imaginary part is too far out for these sums.
pub(crate) fn zeta_complex(s: Complex) -> Option<Complex> {
    if s.im == 0.0 {
        return Some(zeta(s.re).into());
    }
    if !s.re.is_finite() || s.im.abs() > 300.0 {
        return None;
    }
    if s.re < 0.0 {
        let mirrored = Complex::from(1.0) - s;
        let size = Complex::from(2.0).pow(s) * Complex::from(PI).pow(s - 1.0.into());
        let angle = s.scale(PI / 2.0).sin();
        return Some(size * angle * gamma_complex(mirrored) * zeta_complex(mirrored)?);
    }
    // Borwein's sums need more terms further out.
    let terms = 26 + (0.9 * s.im.abs()) as usize;
    let weights = borwein_weights(terms);
    let total = weights[terms];
    let mut sum = Complex::from(0.0);
    for (k, weight) in weights[..terms].iter().enumerate() {
        let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
        let power = Complex::from((k + 1) as f64).pow(s);
        sum = sum + Complex::from(sign * (weight / total - 1.0)) / power;
    }
    let factor = Complex::from(1.0) - Complex::from(2.0).pow(Complex::from(1.0) - s);
    Some(-sum / factor)
}

fn borwein_weights(terms: usize) -> Vec<f64> {
    let (mut term, mut sum) = (1.0, 0.0);
    (0..=terms)
        .map(|k| {
            sum += term;
            let (n, k) = (terms as f64, k as f64);
            term *= (n + k) * (n - k) * 4.0 / ((2.0 * k + 1.0) * (2.0 * k + 2.0));
            sum
        })
        .collect()
}

/// Riemann's zeta function, by Borwein's alternating sums; left of zero by reflection.
pub(crate) fn zeta(s: f64) -> f64 {
    if s == 0.0 {
        return -0.5;
    }
    if s == 1.0 {
        return f64::NAN;
    }
    if s == f64::INFINITY {
        return 1.0;
    }
    if !s.is_finite() {
        return f64::NAN;
    }
    if s < 0.0 {
        if s % 2.0 == 0.0 {
            return 0.0;
        }
        let reflected =
            2f64.powf(s) * PI.powf(s - 1.0) * (PI / 2.0 * s).sin() * gamma(1.0 - s) * zeta(1.0 - s);
        return reflected;
    }
    const N: usize = 24;
    let weights = borwein_weights(N);
    let total = weights[N];
    let alternating: f64 = (0..N)
        .map(|k| {
            let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
            sign * (weights[k] - total) / ((k + 1) as f64).powf(s)
        })
        .sum();
    -alternating / (total * (1.0 - ((1.0 - s) * LN_2).exp()))
}
