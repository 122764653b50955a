//! What the trials of a campaign have in common while it runs, whatever its design.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use plimsoll_core::schedule::ScheduledTrial;
use plimsoll_store::{Reserve, seal};

use crate::confirm::StopRule;
use crate::error::LabError;
use crate::message::TrialOrder;
use crate::states::States;
use crate::trial_process::{Runner, remove_data_after, write_trial_failed};

/// A campaign that runs.
pub(crate) struct CampaignRun<'a, 'o> {
    pub runner: &'a Runner<'a>,
    pub states: States<'a>,
    /// The campaign's data directories are below it.
    pub data_dir: &'a Path,
    pub observer: &'o mut dyn StopRule,
}

impl CampaignRun<'_, '_> {
    /// Whether the user has asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.observer.stop_requests().load(Ordering::SeqCst) > 0
    }

    pub fn trial_data_dir(&self, scheduled: &ScheduledTrial, attempt: u32) -> PathBuf {
        self.data_dir
            .join(format!("{}-a{attempt}", scheduled.number))
    }

    /// Runs an attempt at a trial from its data to its sealed folder, `dir`, and removes the data.
    /// The inner error says why it is not complete.
    pub fn run_trial(
        &mut self,
        scheduled: &ScheduledTrial,
        attempt: u32,
        dir: &Path,
    ) -> Result<Result<(), String>, LabError> {
        // The room of the trial before may be used up.
        let _reserve = Reserve::take(&self.runner.campaign.path);
        let data_dir = self.trial_data_dir(scheduled, attempt);
        let end = self.run_with_data(scheduled, attempt, dir, &data_dir);
        remove_data_after(&end, &data_dir, self.observer);
        LabError::costs_one_trial(end)
    }

    fn run_with_data(
        &mut self,
        scheduled: &ScheduledTrial,
        attempt: u32,
        dir: &Path,
        data_dir: &Path,
    ) -> Result<Result<(), String>, LabError> {
        let load = self.states.load_of(scheduled.block);
        let restored = self
            .states
            .restore(scheduled.cell, load, data_dir, self.observer)?;
        match restored.and_then(|()| self.runner.order(scheduled, attempt, dir, data_dir)) {
            Ok(order) => {
                let order = TrialOrder { load, ..order };
                self.runner.run(&order, self.observer)
            }
            Err(reason) => {
                write_trial_failed(dir, &reason, self.is_stopped())?;
                seal(dir)?;
                Ok(Err(reason))
            }
        }
    }
}
