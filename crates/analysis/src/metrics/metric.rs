//! What a metric is: its name, its words, and the formula that computes it.

use super::facts::Facts;
use super::value::Answer;
use crate::latencies::Clock;

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// More is better (throughput).
    Higher,
    /// Less is better (latency, CPU per operation).
    Lower,
    /// Neither: it explains, it does not judge.
    Neutral,
}

impl Direction {
    /// Whether less is better.
    pub fn is_cost(self) -> bool {
        self == Self::Lower
    }

    /// A difference on the log scale, seen so that more is better.
    pub fn gain(self, log_ratio: f64) -> f64 {
        if self.is_cost() {
            -log_ratio
        } else {
            log_ratio
        }
    }

    /// What a rise and what a fall is called.
    pub fn rise_and_fall(self) -> (&'static str, &'static str) {
        match self {
            Self::Higher => ("gain", "loss"),
            Self::Lower => ("loss", "gain"),
            Self::Neutral => ("rise", "fall"),
        }
    }
}

/// One metric of one kind of benchmark. Tables, tooltips, documentation and tests all read it.
#[derive(Debug)]
pub struct Metric {
    pub name: &'static str,
    /// The unit of the value.
    pub unit: &'static str,
    pub direction: Direction,
    /// Decimals in tables.
    pub decimals: usize,
    /// The formula in words.
    pub formula: &'static str,
    /// Where the raw numbers come from.
    pub source: &'static str,
    /// One line for people.
    pub meaning: &'static str,
    pub(crate) of: Formula,
}

/// How a value follows from what a step recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Formula {
    Computed(fn(&Facts<'_>) -> Answer),
    /// Microseconds at this quantile of a histogram; 1 is the maximum.
    Quantile(Clock, f64),
    /// Native steps do not have it.
    ImportedOnly,
}

/// Kinds of benchmarks have entries of their own under one name, so the name alone is not enough.
impl PartialEq for Metric {
    fn eq(&self, other: &Self) -> bool {
        (self.name, self.unit, self.meaning) == (other.name, other.unit, other.meaning)
    }
}

impl Eq for Metric {}

/// The metrics of one kind of benchmark, as constants and as a set in the order of its tables.
///
/// An entry defines a metric, or is the name alone of one that is defined elsewhere. `own` has
/// those that are defined here.
macro_rules! metric_set {
    (set $set:ident $(, own $own:ident)?; $($name:ident $(= $text:literal, $unit:literal,
        $direction:ident, $decimals:literal, $formula:literal, $source:literal, $meaning:literal,
        $of:expr)?;)*) => {
        $($(
            #[doc = $meaning]
            pub const $name: &$crate::metrics::Metric = &$crate::metrics::Metric {
                name: $text,
                unit: $unit,
                direction: $crate::metrics::Direction::$direction,
                decimals: $decimals,
                formula: $formula,
                source: $source,
                meaning: $meaning,
                of: $of,
            };
        )?)*

        /// All of them, in the order of the tables.
        pub const $set: &[&$crate::metrics::Metric] = &[$($name),*];

        $crate::metrics::metric::own_set!($($own)?; $($($name $text,)?)*);
    };
}

macro_rules! own_set {
    ($own:ident; $($name:ident $text:literal,)*) => {
        /// Those that are defined here.
        pub const $own: &[&$crate::metrics::Metric] = &[$($name),*];
    };
    (; $($name:ident $text:literal,)*) => {};
}

pub(super) use {metric_set, own_set};
