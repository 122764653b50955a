//! Estimates, exact tests, intervals and verdicts.
//!
//! Everything here is pure: numbers in, numbers out, and what draws at random takes a seed. Effects
//! are natural logarithms of ratios (`d = ln(new / base)`) unless an item says otherwise, because
//! ratios multiply and their logarithms add; [`as_percent`] turns one into what people read. A pair
//! is a block, or a round of a start.
//!
//! | question | item |
//! |---|---|
//! | how large is it? | [`hodges_lehmann`], [`Interval`] |
//! | could it be chance? | [`SignedRank`], [`sign_flip`], [`page_trend`] |
//! | how sure is the size? | [`signed_rank_interval`], [`bca`], [`clustered`] |
//! | and both without pairs? | [`mann_whitney`], [`median_ratio`] |
//! | with so many questions at once? | [`benjamini_hochberg`], [`holm`] |
//! | is it the same? | [`Interval::is_within`] |
//! | what is the verdict, and when? | [`Policy`], [`Verdict`], [`Looks`] |
//! | how many blocks? | [`minimum_detectable_effect`], [`blocks_needed`], [`blocks_to_decide`] |
//! | is one run unusual? | [`Spread`], [`Screen`] |
//! | where in the series? | [`segment`], [`describe`], [`Bisection`] |
//! | how much at once, how much per row? | [`LineParts`] |
//! | what do seconds say? | [`effective_sample_size`], [`warm_up`] |

mod decisions;
mod estimates;
mod numbers;
mod series;
mod significance;

pub use decisions::{
    FEWEST_BLOCKS, FEWEST_STARTS, LOOKS, Look, Looks, PRIOR_SPREAD, Policy, RANKED_BLOCKS, Screen,
    Spread, Verdict, blocks_needed, blocks_to_decide, minimum_detectable_effect, paired_p, power,
};
pub use estimates::{
    Clustered, Group, Groups, Interval, KnownVariance, LOADS_AS_UNITS, LineParts, LoadsVariance,
    OverStarts, RESAMPLES, StartRatio, StartsPrior, StartsVariance, TwoModes, VariancePrior,
    as_percent, bca, clustered, compare_groups, effective_sample_size, hodges_lehmann,
    median_ratio, of_batches, over_starts, two_modes, variance_prior, walsh_averages,
};
pub use numbers::{
    Stream, mean, median, normal_cdf, normal_quantile, quantile, seed_of, student_quantile,
    student_two_sided, variance,
};
pub use series::{
    Bisection, Evidence, Level, Measured, Segment, Step, describe, penalty_from_blocks,
    penalty_from_spread, segment, warm_up,
};
pub use significance::{
    EXACT_PAIRS, MannWhitney, SignedRank, Trend, attainable_size, benjamini_hochberg, error_scales,
    holm, mann_whitney, page_trend, scaled_p, score, sign_flip, signed_rank_interval,
};
