//! What can stop a campaign, sorted by who has to act next.

use plimsoll_analysis::AnalysisError;
use plimsoll_core::plan::PlanError;
use plimsoll_store::StoreError;
use thiserror::Error;

/// A campaign could not be made, run or resumed.
#[derive(Debug, Error)]
pub enum LabError {
    /// The plan is wrong.
    #[error("{0}")]
    Plan(#[from] PlanError),
    /// What was asked for is impossible: a missing file, a folder that is not ours, an unknown
    /// build.
    #[error("{0}")]
    Usage(String),
    /// The machine cannot run it: the disk is too small.
    #[error("{0}")]
    Machine(String),
    /// Processes run on that work with the campaign's data, and could not be ended.
    #[error("{0}")]
    Processes(String),
    /// The store could not be read or written.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// What was measured could not be analysed.
    #[error("{0}")]
    Analysis(#[from] AnalysisError),
    /// The orchestrator itself failed.
    #[error("{0}")]
    Io(String),
}

impl LabError {
    /// The reason of a trial, if the error is about that trial and others can run: the disk did not
    /// take its folder, or its process could not be started.
    pub(crate) fn of_one_trial(self) -> Result<String, Self> {
        match self {
            Self::Store(error) if error.costs_one_trial() => Ok(format!("failed to {error}")),
            Self::Io(reason) => Ok(reason),
            other => Err(other),
        }
    }

    /// [`Self::of_one_trial`] of what a trial, or a part of it, ended with.
    pub(crate) fn costs_one_trial<T>(
        ended: Result<Result<T, String>, Self>,
    ) -> Result<Result<T, String>, Self> {
        ended.or_else(|error| Ok(Err(error.of_one_trial()?)))
    }

    pub(crate) fn io(what: impl std::fmt::Display, error: impl std::fmt::Display) -> Self {
        Self::Io(format!("{what}: {error}"))
    }
}
