//! Numbers as people write them in plans and workload files.

use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use toml::Spanned;

use crate::source::{PlanError, Source};
use crate::units::{self, format_grouped};

/// A number of rows: an integer, or text such as `"20M"`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Count(pub u64);

/// A duration such as `"30s"`, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Duration(pub u64);

/// A number of bytes such as `"2MiB"`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByteSize(pub u64);

/// A share such as `"0.1%"`, from 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share(pub f64);

/// A frequency such as `"10Hz"`, in whole hertz.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frequency(pub u32);

/// Reads a text, and where it may be one an integer.
pub(crate) struct Text<T> {
    pub expecting: &'static str,
    pub text: fn(&str) -> Result<T, String>,
    pub integer: Option<fn(i64) -> Result<T, String>>,
}

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.text)(text).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        match self.integer {
            Some(integer) => integer(value).map_err(E::custom),
            None => Err(E::custom(format!("expected {}", self.expecting))),
        }
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text {
            expecting: "a number of rows such as 800, \"50K\" or \"20M\"",
            text: |text| {
                units::parse_count(text)
                    .map(Count)
                    .map_err(|e| e.to_string())
            },
            integer: Some(|n| {
                u64::try_from(n)
                    .map(Count)
                    .map_err(|_| format!("{n} rows are impossible"))
            }),
        })
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text {
            expecting: "a share in percent such as \"0.1%\"",
            text: |text| {
                let percent = text
                    .strip_suffix('%')
                    .and_then(|number| number.trim().parse::<f64>().ok());
                let share = percent
                    .filter(|percent| (0.0..100.0).contains(percent))
                    .map(|percent| Share(percent / 100.0));
                share.ok_or_else(|| {
                    format!(
                        "\"{text}\" is not a share: write a percentage below 100, such as \"0.1%\""
                    )
                })
            },
            integer: None,
        })
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text {
            expecting: "a duration such as \"250ms\", \"30s\" or \"2h\"",
            text: |text| {
                units::parse_duration_ns(text)
                    .map(Duration)
                    .map_err(|e| e.to_string())
            },
            integer: None,
        })
    }
}

impl<'de> Deserialize<'de> for Frequency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text {
            expecting: "a frequency such as \"10Hz\"",
            text: |text| units::parse_frequency_hz(text).map(Frequency),
            integer: None,
        })
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text {
            expecting: "a size in MiB or GiB such as \"2MiB\"",
            text: |text| match units::SizeSyntax::PLAN.parse(text) {
                Some(bytes) if text.ends_with("MiB") || text.ends_with("GiB") => {
                    Ok(ByteSize(bytes))
                }
                _ => Err(format!(
                    "\"{text}\" is not a size in MiB or GiB such as \"2MiB\""
                )),
            },
            integer: None,
        })
    }
}

impl Source<'_> {
    /// A number from 1 on, or what is meant without one.
    pub(crate) fn ranged(
        &self,
        value: Option<&Spanned<u32>>,
        default: u32,
        most: u32,
        what: &str,
    ) -> Result<u32, PlanError> {
        match value {
            None => Ok(default),
            Some(value) if (1..=most).contains(value.get_ref()) => Ok(*value.get_ref()),
            Some(value) => Err(self.error(
                Some(value.span()),
                format!(
                    "{what} must be 1 to {}, not {}",
                    format_grouped(most.into()),
                    value.get_ref()
                ),
            )),
        }
    }

    /// A number within a range, or what is meant without one.
    pub(crate) fn number(
        &self,
        value: Option<&Spanned<f64>>,
        default: f64,
        range: Range<f64>,
        key: &str,
    ) -> Result<f64, PlanError> {
        match value {
            None => Ok(default),
            Some(value) if range.contains(value.get_ref()) => Ok(*value.get_ref()),
            Some(value) => {
                let least = if range.start > 0.0 {
                    "above 0".to_owned()
                } else {
                    format!("at least {}", range.start)
                };
                let message = format!(
                    "{key} must be {least} and below {}, not {}",
                    range.end,
                    value.get_ref()
                );
                Err(self.error(Some(value.span()), message))
            }
        }
    }
}
