//! What is decided, when an experiment may stop, and how many blocks that takes.

pub(crate) mod looks;
pub(crate) mod power;
pub(crate) mod single_run;
pub(crate) mod verdict;

pub use looks::{FEWEST_BLOCKS, FEWEST_STARTS, LOOKS, Look, Looks, RANKED_BLOCKS};
pub use power::{blocks_needed, blocks_to_decide, minimum_detectable_effect, power};
pub use single_run::{PRIOR_SPREAD, Screen, Spread};
pub use verdict::{Policy, Verdict, paired_p};
