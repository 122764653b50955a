//! How random ids are drawn.

use serde::{Deserialize, Serialize};

/// How random ids are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Each id as often as any other.
    #[default]
    Uniform,
    /// The lowest ids most often: rank r with weight 1/r^exponent.
    Zipfian {
        /// sysbench's `--rand-zipfian-exp`.
        exponent: f64,
    },
    /// The lowest ids most often: 1 - h of the draws in the lowest h of the ids.
    Pareto {
        /// sysbench's `--rand-pareto-h`.
        h: f64,
    },
    /// Around the middle: the mean of twelve uniform draws.
    Gaussian,
    /// The default of sysbench 1.0: 75 % of the draws in the central 1 % of the ids, the others
    /// gaussian.
    Special,
}

/// sysbench's `--rand-zipfian-exp` by default.
pub const ZIPFIAN_EXPONENT: f64 = 0.8;
/// Exponents are below this: beyond, nearly every draw is the first row.
pub const MOST_ZIPFIAN_EXPONENT: f64 = 10.0;
/// sysbench's `--rand-pareto-h` by default.
pub const PARETO_H: f64 = 0.2;

/// A distribution without its parameter, which has a key of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DistributionName {
    #[default]
    Uniform,
    Zipfian,
    Pareto,
    Gaussian,
    Special,
}

impl DistributionName {
    /// The distribution with these parameters, of which each has one at most.
    pub(crate) fn with(self, exponent: f64, h: f64) -> Distribution {
        match self {
            Self::Uniform => Distribution::Uniform,
            Self::Zipfian => Distribution::Zipfian { exponent },
            Self::Pareto => Distribution::Pareto { h },
            Self::Gaussian => Distribution::Gaussian,
            Self::Special => Distribution::Special,
        }
    }
}
