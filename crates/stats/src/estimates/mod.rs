//! How large an effect is, and how sure its size.

pub(crate) mod bootstrap;
pub(crate) mod clusters;
pub(crate) mod effective_sample;
pub(crate) mod estimate;

pub use bootstrap::{RESAMPLES, bca, median_ratio};
pub use clusters::{Clustered, clustered};
pub use effective_sample::effective_sample_size;
pub use estimate::{Interval, as_percent, hodges_lehmann, walsh_averages};
