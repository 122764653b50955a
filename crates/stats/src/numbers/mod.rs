//! What every estimate is computed from: order statistics, distributions, random streams.

pub(crate) mod distribution;
pub(crate) mod order;
pub(crate) mod random;

pub use distribution::{normal_cdf, normal_quantile, student_quantile, student_two_sided};
pub use order::{mean, median, quantile, variance};
pub use random::{Stream, seed_of};
