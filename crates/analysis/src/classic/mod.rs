//! The rules by which the field's own Insert Benchmark reports compute, round and colour their
//! tables.
//!
//! Every function here is pure. The rules were checked cell by cell against published reports: see
//! `tests/classic.rs`.

pub mod metrics_line;
pub mod relative;
pub mod response;
pub mod throughput;

/// How a cell of a classic table stands out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// It does not.
    #[default]
    Plain,
    /// In the worst quarter of its column, or a background rate below its target.
    Worst,
    /// In the best quarter of its column.
    Best,
    /// The background writers missed their rate.
    Missed,
    /// More than 1.05 times the base.
    AboveBase,
    /// Less than 0.95 times the base.
    BelowBase,
    /// The row of targets.
    Target,
}

impl Class {
    /// The colour of the published reports, `#rrggbb`.
    pub fn colour(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Worst => Some("#FF9A9A"),
            Self::Best => Some("#81FFA6"),
            Self::Missed | Self::Target => Some("#D7D7D7"),
            Self::AboveBase => Some("#81FFF9"),
            Self::BelowBase => Some("#FFDD81"),
        }
    }
}
