//! Errors on their way out: one sentence and an exit code.

use std::fmt;

use plimsoll_analysis::AnalysisError;
use plimsoll_import::ImportError;
use plimsoll_lab::LabError;
use plimsoll_lab::builds::BuildError;
use plimsoll_store::StoreError;

/// Usage or plan error.
pub const USAGE: u8 = 2;
/// Finished, but something is invalid or left out.
pub const INCOMPLETE: u8 = 3;
/// No decision where one was demanded.
pub const INCONCLUSIVE: u8 = 4;
/// The machine is not ready.
pub const MACHINE: u8 = 5;
/// A defect of this program.
pub const BUG: u8 = 101;
/// Ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// What a verb ends with, by cli.md: 0, or another number that says how it went without being an
/// error.
pub type VerbResult = Result<u8, Failure>;

/// Why a verb could not do what it was asked to.
#[derive(Debug)]
pub struct Failure {
    message: String,
    exit_code: u8,
}

impl Failure {
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit_code: USAGE,
        }
    }

    pub fn bug(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit_code: BUG,
        }
    }

    pub fn interrupted(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit_code: INTERRUPTED,
        }
    }

    pub fn exit_code(&self) -> u8 {
        self.exit_code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Cancelled { .. } | BuildError::Stopped { .. } => {
                Self::interrupted(error.to_string())
            }
            error => LabError::from(error).into(),
        }
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        let exit_code = match &error {
            LabError::Machine(_) | LabError::Processes(_) => MACHINE,
            LabError::Io(_) => INCOMPLETE,
            LabError::Plan(_) | LabError::Usage(_) | LabError::Store(_) | LabError::Analysis(_) => {
                USAGE
            }
        };
        Self {
            message: error.to_string(),
            exit_code,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        Self::usage(format!("failed to {error}"))
    }
}

impl From<AnalysisError> for Failure {
    fn from(error: AnalysisError) -> Self {
        Self::usage(error.to_string())
    }
}
