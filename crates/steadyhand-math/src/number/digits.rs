//! Decimal digits of a number, rounded and written in mathjs's notations.

/// `0.d₁d₂d₃… × 10^point`, with no zeros at either end; zero has no digits.
#[derive(Debug, Clone)]
pub(crate) struct Digits {
    pub(crate) negative: bool,
    pub(crate) digits: Vec<u8>,
    /// Where the decimal point stands: 2 for 12.5, 0 for 0.125.
    pub(crate) point: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notation {
    Auto,
    Fixed,
    Exponential,
    Engineering,
}

/// How to write a number: `format(x, {notation: …, precision: …, lowerExp: …, upperExp: …})`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) notation: Notation,
    pub(crate) precision: Option<usize>,
    /// Outside of these powers of ten `Auto` writes an exponent.
    pub(crate) lower_exponent: i64,
    pub(crate) upper_exponent: i64,
    /// Write fractions as decimals.
    pub(crate) decimal_fractions: bool,
}

impl Style {
    pub(crate) const EXACT: Self = Self {
        notation: Notation::Auto,
        precision: None,
        lower_exponent: -3,
        upper_exponent: 5,
        decimal_fractions: false,
    };
    pub(crate) const ANSWER: Self = Self::digits(14);
    /// As JavaScript and its big numbers write themselves.
    pub(crate) const JAVASCRIPT: Self = Self {
        lower_exponent: -6,
        upper_exponent: 21,
        ..Self::EXACT
    };

    pub(crate) const fn digits(precision: usize) -> Self {
        Self {
            precision: Some(precision),
            ..Self::EXACT
        }
    }
}

impl Digits {
    pub(crate) fn of(x: f64) -> Self {
        // Rust's `{:e}` writes the fewest digits that read back as the same number, as JavaScript does.
        Self::read(&format!("{x:e}"))
    }

    /// From plain or exponential notation.
    pub(crate) fn read(text: &str) -> Self {
        let negative = text.starts_with('-');
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let whole = whole.trim_start_matches(['-', '+']);
        let digits: Vec<u8> = whole
            .bytes()
            .chain(fraction.bytes())
            .map(|byte| byte.wrapping_sub(b'0'))
            .collect();
        let point =
            whole.len() as i64 + exponent.trim_start_matches('+').parse::<i64>().unwrap_or(0);
        Self {
            negative,
            digits,
            point,
        }
        .trimmed()
    }

    fn trimmed(mut self) -> Self {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        let zeros = self.digits.iter().take_while(|digit| **digit == 0).count();
        self.digits.drain(..zeros);
        self.point -= zeros as i64;
        if self.digits.is_empty() {
            self.point = 1;
        }
        self
    }

    /// The power of ten of the first digit.
    pub(crate) fn exponent(&self) -> i64 {
        self.point - 1
    }

    /// Keeps `count` digits, rounding half up.
    pub(crate) fn rounded(mut self, count: i64) -> Self {
        if count < 0 {
            return Self {
                digits: Vec::new(),
                ..self
            }
            .trimmed();
        }
        let count = count as usize;
        if count >= self.digits.len() {
            return self;
        }
        let up = self.digits[count] >= 5;
        self.digits.truncate(count);
        if up {
            let nines = self
                .digits
                .iter()
                .rev()
                .take_while(|digit| **digit == 9)
                .count();
            self.digits.truncate(count - nines);
            match self.digits.last_mut() {
                Some(last) => *last += 1,
                None => {
                    self.digits.push(1);
                    self.point += 1;
                }
            }
        }
        self.trimmed()
    }

    pub(crate) fn write(self, style: &Style) -> String {
        match style.notation {
            Notation::Fixed => {
                let decimals = style.precision.unwrap_or(0) as i64;
                let count = self.point + decimals;
                let rounded = self.rounded(count);
                rounded.fixed(style.precision.map_or(0, |precision| precision))
            }
            Notation::Exponential => match style.precision {
                Some(precision) => self.rounded(precision as i64).exponential(precision),
                None => self.exponential(0),
            },
            Notation::Engineering => self.engineering(style.precision),
            Notation::Auto => {
                let rounded = match style.precision {
                    Some(precision) if precision > 0 => self.rounded(precision as i64),
                    _ => self,
                };
                let exponent = rounded.exponent();
                if rounded.digits.is_empty()
                    || (style.lower_exponent <= exponent && exponent < style.upper_exponent)
                {
                    rounded.fixed(0)
                } else {
                    rounded.exponential(0)
                }
            }
        }
    }

    fn sign(&self) -> &'static str {
        if self.negative && !self.digits.is_empty() {
            "-"
        } else {
            ""
        }
    }

    fn digit(&self, at: i64) -> char {
        let digit = usize::try_from(at)
            .ok()
            .and_then(|at| self.digits.get(at))
            .copied()
            .unwrap_or(0);
        char::from(b'0' + digit)
    }

    /// Plain notation with at least `decimals` digits after the point.
    pub(crate) fn fixed(&self, decimals: usize) -> String {
        let mut text = String::from(self.sign());
        if self.point <= 0 || self.digits.is_empty() {
            text.push('0');
        }
        for at in 0..self.point.max(0) {
            if self.digits.is_empty() {
                break;
            }
            text.push(self.digit(at));
        }
        let wanted = (self.digits.len() as i64 - self.point).max(decimals as i64);
        let wanted = if self.digits.is_empty() {
            decimals as i64
        } else {
            wanted
        };
        if wanted > 0 {
            text.push('.');
            let start = if self.digits.is_empty() {
                0
            } else {
                self.point
            };
            text.extend((start..start + wanted).map(|at| self.digit(at)));
        }
        text
    }

    /// `d.ddde+x` with at least `digits` digits.
    pub(crate) fn exponential(&self, digits: usize) -> String {
        let mut text = String::from(self.sign());
        text.push(self.digit(0));
        let count = self.digits.len().max(digits);
        if count > 1 {
            text.push('.');
            text.extend((1..count as i64).map(|at| self.digit(at)));
        }
        let exponent = if self.digits.is_empty() {
            0
        } else {
            self.exponent()
        };
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{text}e{sign}{}", exponent.abs())
    }

    fn engineering(self, precision: Option<usize>) -> String {
        let rounded = match precision {
            Some(precision) if precision > 0 => self.rounded(precision as i64),
            _ => self,
        };
        let exponent = if rounded.digits.is_empty() {
            0
        } else {
            rounded.exponent().div_euclid(3) * 3
        };
        let shift = rounded.exponent() - exponent;
        let decimals = precision.map_or(0, |precision| (precision as i64 - shift - 1).max(0));
        let mantissa = Self {
            point: shift + 1,
            ..rounded
        }
        .fixed(decimals as usize);
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{mantissa}e{sign}{}", exponent.abs())
    }
}

/// A number the way mathjs writes it.
pub(crate) fn write_number(x: f64, style: &Style) -> String {
    if x.is_nan() {
        return "NaN".into();
    }
    if x.is_infinite() {
        return if x > 0.0 {
            "Infinity".into()
        } else {
            "-Infinity".into()
        };
    }
    Digits::of(x).write(style)
}

/// A number as JavaScript itself writes it: `String(x)`.
pub(crate) fn write_javascript(x: f64) -> String {
    if !x.is_finite() {
        return write_number(x, &Style::EXACT);
    }
    Digits::of(x).write(&Style::JAVASCRIPT)
}
