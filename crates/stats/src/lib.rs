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
//! | could it be chance? | [`SignedRank`], [`sign_flip`], [`page_trend`]; without pairs [`mann_whitney`] |
//! | how sure is the size? | [`signed_rank_interval`], [`bca`], [`studentised`], [`clustered`]; without pairs [`median_ratio`] |
//! | with so many questions at once? | [`benjamini_hochberg`], [`holm`] |
//! | is it the same? | [`tost`], [`Interval::is_within`] |
//! | what is the verdict, and when? | [`Policy`], [`Verdict`], [`Looks`] |
//! | how many blocks? | [`minimum_detectable_effect`], [`blocks_needed`], [`blocks_to_decide`] |
//! | is one run unusual? | [`Spread`], [`Screen`] |
//! | where in the series? | [`segment`], [`describe`], [`Bisection`] |
//! | what do seconds tell? | [`effective_sample_size`], [`warm_up`] |

mod bisection;
mod bootstrap;
mod clusters;
mod distribution;
mod effective_sample;
mod equivalence;
mod estimate;
mod family;
mod looks;
mod mann_whitney;
mod order;
mod permutation;
mod power;
mod random;
mod screen;
mod segments;
mod series_words;
mod signed_rank;
mod trend;
mod verdict;
mod warm_up;

pub use bisection::{Bisection, Evidence};
pub use bootstrap::{RESAMPLES, bca, median_ratio, studentised};
pub use clusters::{Clustered, clustered};
pub use distribution::{normal_cdf, normal_quantile, student_quantile, student_two_sided};
pub use effective_sample::effective_sample_size;
pub use equivalence::tost;
pub use estimate::{Interval, as_percent, hodges_lehmann, walsh_averages};
pub use family::{benjamini_hochberg, holm};
pub use looks::{LOOKS, Look, Looks};
pub use mann_whitney::{MannWhitney, mann_whitney};
pub use order::{mean, median, quantile, variance};
pub use permutation::sign_flip;
pub use power::{blocks_needed, blocks_to_decide, minimum_detectable_effect, power};
pub use random::{Stream, seed_of};
pub use screen::{PRIOR_SPREAD, Screen, Spread};
pub use segments::{Segment, penalty_from_blocks, penalty_from_spread, segment};
pub use series_words::describe;
pub use signed_rank::{EXACT_PAIRS, SignedRank, attainable_size, signed_rank_interval};
pub use trend::{Trend, page_trend};
pub use verdict::{Policy, Verdict, paired_p};
pub use warm_up::warm_up;
