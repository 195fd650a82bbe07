//! Durations, sizes and rates as people write them: "1s", "64KiB", "10/s".

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};

/// A span of time such as `"250ms"`, `"30s"`, `"2m"`, `"7d"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

/// A number of bytes such as `"64KiB"` or `"512MiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

/// So many in a span of time, such as `"10/s"` or `"60/min"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many.
    pub count: u32,
    /// In which time.
    pub per: Duration,
}

/// A share such as `"50%"`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percent(pub f64);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Span, String> {
        humantime::parse_duration(text).map(Span).map_err(|_| {
            format!("\"{text}\" is no duration; write one such as \"500ms\", \"30s\" or \"2m\"")
        })
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        match text.parse::<bytesize::ByteSize>() {
            Ok(size) if size.as_u64() > 0 => Ok(Size(size.as_u64())),
            Ok(_) => Err(format!(
                "\"{text}\" leaves no room at all; write one such as \"64KiB\" or \"512MiB\""
            )),
            Err(_) => Err(format!(
                "\"{text}\" is no size; write one such as \"64KiB\" or \"512MiB\""
            )),
        }
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Rate, String> {
        let wrong = || format!("\"{text}\" is no rate; write one such as \"10/s\" or \"60/min\"");
        let (count, unit) = text.split_once('/').ok_or_else(wrong)?;
        let count: u32 = count.trim().parse().map_err(|_| wrong())?;
        let per = match unit.trim() {
            "s" | "sec" | "second" => Duration::from_secs(1),
            "m" | "min" | "minute" => Duration::from_secs(60),
            "h" | "hour" => Duration::from_secs(3600),
            _ => return Err(wrong()),
        };
        match count {
            0 => Err(wrong()),
            _ => Ok(Rate { count, per }),
        }
    }
}

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Percent, String> {
        let wrong = || format!("\"{text}\" is no share; write one such as \"50%\"");
        let number = text.strip_suffix('%').ok_or_else(wrong)?;
        let number: f64 = number.trim().parse().map_err(|_| wrong())?;
        match (0.0..=100.0).contains(&number) {
            true => Ok(Percent(number)),
            false => Err(wrong()),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.per.as_secs() {
            1 => "s",
            60 => "min",
            _ => "hour",
        };
        write!(f, "{}/{unit}", self.count)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

/// Says what is wrong with a text.
pub type Check = fn(&str) -> Result<(), String>;

/// The names of the formats in the JSON Schema, each with the check that gives its error text.
pub const FORMATS: [(&str, Check); 5] = [
    ("time-span", |text| text.parse::<Span>().map(drop)),
    (TIME_LIMIT, |text| match text.parse::<Span>()?.0.is_zero() {
        true => Err(format!(
            "\"{text}\" leaves no time at all; write one such as \"500ms\", \"30s\" or \"2m\""
        )),
        false => Ok(()),
    }),
    ("size", |text| text.parse::<Size>().map(drop)),
    ("rate", |text| text.parse::<Rate>().map(drop)),
    ("percent", |text| text.parse::<Percent>().map(drop)),
];

/// The format of a [`Span`] that must not be zero.
pub const TIME_LIMIT: &str = "time-limit";

/// The unit that a bare number of a format most likely has.
pub fn unit_of(format: &str) -> Option<&'static str> {
    match format {
        "time-span" | TIME_LIMIT => Some("s"),
        "size" => Some("B"),
        "rate" => Some("/s"),
        "percent" => Some("%"),
        _ => None,
    }
}

macro_rules! written_as_text {
    ($($type:ident $name:literal $example:literal;)*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                schemars::json_schema!({"type": "string", "format": $name, "examples": [$example]})
            }
        }
    )*};
}

written_as_text! {
    Span "time-span" "30s";
    Size "size" "64KiB";
    Rate "rate" "10/s";
    Percent "percent" "50%";
}
