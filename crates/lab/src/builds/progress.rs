//! What fetching tells whoever watches it, and how it is stopped.

use std::time::{Duration, Instant};

use crate::builds::error::BuildError;

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Another process fetches the same build.
    Waiting,
    /// A package client downloads.
    Fetching,
    /// Archives are unpacked.
    Unpacking,
    /// The server is hashed and asked for its version.
    Checking,
    /// A source is compiled.
    Making,
}

/// How far a command that makes a build is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MakeProgress {
    /// The step of the recipe: `configure`, `compile`, ...
    pub step: String,
    /// Object files that are there.
    pub done: u64,
    /// About how many there will be.
    pub wanted: u64,
    /// How long the rest takes at the rate of this step; `None` before there is one.
    pub left: Option<Duration>,
}

/// How far fetching a build is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchProgress {
    /// The build.
    pub name: String,
    /// What is being done.
    pub stage: Stage,
    /// Bytes this stage has written so far.
    pub bytes: u64,
    /// Since the fetch began.
    pub elapsed: Duration,
    /// Of a build that is being made.
    pub make: Option<MakeProgress>,
}

/// Tells progress and asks whether to go on.
pub(crate) struct Watch<'a> {
    pub progress: &'a mut dyn FnMut(&FetchProgress),
    pub is_cancelled: &'a dyn Fn() -> bool,
    pub name: String,
    pub stage: Stage,
    pub started: Instant,
}

impl Watch<'_> {
    /// A new stage begins.
    pub fn begin(&mut self, stage: Stage) -> Result<(), BuildError> {
        self.stage = stage;
        self.report(0);
        self.check_cancelled()
    }

    pub fn report(&mut self, bytes: u64) {
        self.tell(bytes, None);
    }

    pub fn report_step(&mut self, make: MakeProgress) {
        self.tell(0, Some(make));
    }

    fn tell(&mut self, bytes: u64, make: Option<MakeProgress>) {
        let now = FetchProgress {
            name: self.name.clone(),
            stage: self.stage,
            bytes,
            elapsed: self.started.elapsed(),
            make,
        };
        (self.progress)(&now);
    }

    pub fn check_cancelled(&self) -> Result<(), BuildError> {
        let name = || self.name.clone();
        match (self.is_cancelled)() {
            false => Ok(()),
            true if self.stage == Stage::Making => Err(BuildError::Stopped { name: name() }),
            true => Err(BuildError::Cancelled { name: name() }),
        }
    }
}
