//! What can go wrong before there is a report.

use crate::metrics;
use thiserror::Error;

/// Why there is no report: fragments that fit after "failed to ". Missing and failed trials are no
/// errors: the report shows them.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AnalysisError {
    /// No campaign was given.
    #[error("report on a campaign: none was given; start one with `plimsoll run`")]
    NoCampaign,
    /// Native and imported campaigns together.
    #[error(
        "report on native and imported campaigns together: they are measured in different ways; \
        give campaigns of one kind, or use `plimsoll compare`"
    )]
    Mixed,
    /// The campaign could not be read.
    #[error("{0}")]
    Store(String),
    /// A name stands for no cell.
    #[error(
        "find \"{name}\": it is neither a cell nor a build of the campaign{hint}; cells: \
            {known}"
    )]
    UnknownCell {
        /// What was asked for.
        name: String,
        /// A suggestion, or nothing.
        hint: String,
        /// The cells there are.
        known: String,
    },
    /// A name stands for no step.
    #[error("find step \"{name}\": the campaign has no such step{hint}; steps: {known}")]
    UnknownStep {
        /// What was asked for.
        name: String,
        /// A suggestion, or nothing.
        hint: String,
        /// The steps there are.
        known: String,
    },
    /// A pattern that is none.
    #[error("choose steps by \"{pattern}\": {reason}; write a name with *, ? or [abc] in it")]
    StepPattern {
        /// What was asked for.
        pattern: String,
        reason: String,
    },
    /// All steps are excluded.
    #[error("judge any step: --exclude leaves none; leave fewer out")]
    NoStepLeft,
    /// The candidate's name stands for no cell besides the base, or for several.
    #[error(
        "choose the candidate: \"{name}\" must stand for one cell besides the base; it stands for: \
        {cells}"
    )]
    AmbiguousCandidate {
        /// What was asked for.
        name: String,
        /// The cells it stands for.
        cells: String,
    },
    /// The candidate's name stands for nothing but the base.
    #[error(
        "choose the candidate: \"{name}\" is nothing but the base, {base}; name another cell with \
        --candidate, or another base with --base"
    )]
    CandidateIsBase {
        /// What was asked for.
        name: String,
        base: String,
    },
    /// What was imported has no pairs.
    #[error(
        "gate {campaign}: it is imported, and a gate needs runs that took turns or were repeated; \
        `plimsoll compare` has its ratios; to gate, run both builds: `plimsoll gate PLAN \
        --candidate BUILD`"
    )]
    GateOfImport {
        /// Its id.
        campaign: String,
    },
    /// What was imported has one run of each cell, and no counters.
    #[error(
        "explain {step}: {campaign} is imported, and has neither repeats nor the server's counters \
        to explain with; `plimsoll compare` has its ratios"
    )]
    ExplainOfImport {
        step: String,
        /// Its id.
        campaign: String,
    },
    /// A name stands for no metric.
    #[error(
        "find metric \"{name}\": it is not in the catalogue{hint}; `plimsoll show --json` has \
        every metric of a result"
    )]
    UnknownMetric {
        /// What was asked for.
        name: String,
        /// A suggestion, or nothing.
        hint: String,
    },
    /// One side has no runs of its own.
    #[error(
        "explain {step}: the campaign has no second cell with runs of it; name two cells of a \
        native campaign"
    )]
    NothingToExplain { step: String },
    /// The base's name stands for several cells.
    #[error("choose the base: \"{name}\" stands for several cells; name one of {cells}")]
    AmbiguousBase {
        /// What was asked for.
        name: String,
        /// The cells it stands for.
        cells: String,
    },
}

impl AnalysisError {
    pub(crate) fn unknown_metric(name: &str) -> Self {
        let known = metrics::native().map(|metric| metric.name);
        let hint = plimsoll_core::suggest::hint(name, known);
        Self::UnknownMetric {
            name: name.to_owned(),
            hint,
        }
    }

    pub(crate) fn unknown_step<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Self {
        let known: Vec<&str> = known.collect();
        let hint = plimsoll_core::suggest::hint(name, known.iter().copied());
        Self::UnknownStep {
            name: name.to_owned(),
            hint,
            known: known.join(", "),
        }
    }
}
