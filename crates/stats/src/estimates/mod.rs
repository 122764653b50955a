//! How large an effect is, and how sure its size.

pub(crate) mod bootstrap;
pub(crate) mod clusters;
pub(crate) mod effective_sample;
pub(crate) mod estimate;
pub(crate) mod groups;
pub(crate) mod line;
pub(crate) mod moderated;
pub(crate) mod modes;
pub(crate) mod over_starts;

pub use bootstrap::{RESAMPLES, bca, median_ratio};
pub use clusters::{Clustered, clustered};
pub use effective_sample::{effective_sample_size, of_batches};
pub use estimate::{Interval, as_percent, hodges_lehmann, walsh_averages};
pub use groups::{Group, Groups, compare_groups};
pub use line::LineParts;
pub use moderated::{KnownVariance, VariancePrior, variance_prior};
pub use modes::{TwoModes, two_modes};
pub use over_starts::{
    LOADS_AS_UNITS, LoadsVariance, OverStarts, StartRatio, StartsPrior, StartsVariance, over_starts,
};
