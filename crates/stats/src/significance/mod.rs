//! Whether an effect could be chance, also with many questions at once.

pub(crate) mod family;
pub(crate) mod mann_whitney;
pub(crate) mod scales;
pub(crate) mod sign_flip;
pub(crate) mod signed_rank;
pub(crate) mod trend;

pub use family::{benjamini_hochberg, holm};
pub use mann_whitney::{MannWhitney, mann_whitney};
pub use scales::{error_scales, scaled_p, score};
pub use sign_flip::sign_flip;
pub use signed_rank::{EXACT_PAIRS, SignedRank, attainable_size, signed_rank_interval};
pub use trend::{Trend, page_trend};
