//! Data that trials begin with: made once per cell by the plan's own steps, kept below the
//! campaign's data folder, copied for each trial.

mod copy;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use plimsoll_core::schedule::ScheduledTrial;
use plimsoll_engine::directory_bytes;

use self::copy::copy_to_disk;
use crate::error::LabError;
use crate::observer::{Notice, Observer};
use crate::places::remove_data_dir;
use crate::trial_process::{Runner, make_dir, make_new_dir};

/// Where the trials that make data keep their logs, in the campaign's folder.
pub(crate) const STATES_FOLDER: &str = "states";

/// The data states of a campaign.
pub(crate) struct States<'a> {
    runner: &'a Runner<'a>,
    folder: PathBuf,
    /// By cell: its data, or why there is none. The control has the base's.
    made: Vec<Option<Result<PathBuf, String>>>,
    /// How long making them took.
    making: Duration,
}

impl<'a> States<'a> {
    /// Nothing is made before it is needed.
    pub fn new(runner: &'a Runner<'a>, campaign_data: &Path) -> Self {
        let made = runner
            .campaign
            .header
            .plan
            .cells
            .iter()
            .map(|_| None)
            .collect();
        Self {
            runner,
            folder: campaign_data.to_owned(),
            made,
            making: Duration::ZERO,
        }
    }

    /// How long it took to make those that are made.
    pub fn making(&self) -> Duration {
        self.making
    }

    /// Puts a copy of the cell's data into a directory; nothing where trials begin without data.
    /// The inner error says why it cannot be had.
    pub fn restore(
        &mut self,
        cell: usize,
        into: &Path,
        observer: &mut dyn Observer,
    ) -> Result<Result<(), String>, LabError> {
        let Some(confirm) = &self.runner.campaign.header.confirm else {
            return Ok(Ok(()));
        };
        if confirm.before.get(cell).is_none_or(Vec::is_empty) {
            return Ok(Ok(()));
        }
        let own = &self.runner.cell(cell).label;
        let owner = if *own == confirm.control {
            self.position(&confirm.base)
        } else {
            cell
        };
        if self.made[owner].is_none() {
            let begin = Instant::now();
            self.made[owner] = Some(self.make(owner, observer)?);
            self.making += begin.elapsed();
        }
        let state = match &self.made[owner] {
            Some(Ok(state)) => state,
            Some(Err(reason)) => return Ok(Err(reason.clone())),
            None => return Ok(Ok(())),
        };
        let copied = remove_data_dir(into)
            .map_err(|error| error.to_string())
            .and_then(|()| {
                let parent = into.parent().unwrap_or(Path::new("/"));
                make_dir(parent).map_err(|error| error.to_string())?;
                let wanted = directory_bytes(state).map_err(|error| error.to_string())?;
                copy_to_disk(state, into).map_err(|error| error.to_string())?;
                let found = directory_bytes(into).map_err(|error| error.to_string())?;
                if found == wanted {
                    Ok(())
                } else {
                    Err(format!("{found} of {wanted} bytes arrived"))
                }
            });
        Ok(copied.map_err(|error| {
            format!(
                "the data could not be copied to {}: {error}; free space there and resume",
                into.display()
            )
        }))
    }

    fn position(&self, label: &str) -> usize {
        self.runner
            .campaign
            .header
            .plan
            .cells
            .iter()
            .position(|cell| cell.label == *label)
            .unwrap_or(0)
    }

    /// Runs the steps that make a cell's data, and stops the server cleanly.
    fn make(
        &self,
        cell: usize,
        observer: &mut dyn Observer,
    ) -> Result<Result<PathBuf, String>, LabError> {
        observer.notice(Notice::StateStart {
            cell: self.runner.cell(cell),
        });
        let state = self.folder.join(format!("state-{cell}"));
        let logs = self.runner.campaign.path.join(STATES_FOLDER);
        // A resumed campaign makes its data again, and keeps what was reported before.
        let attempt = (1..)
            .find(|attempt| !logs.join(format!("{cell}-a{attempt}")).exists())
            .unwrap_or(1);
        let dir = logs.join(format!("{cell}-a{attempt}"));
        make_new_dir(&dir)?;
        let scheduled = ScheduledTrial {
            number: 0,
            block: 0,
            cell,
        };
        let mut order = match self.runner.order(&scheduled, attempt, &dir, &state) {
            Ok(order) => order,
            Err(reason) => return Ok(Err(reason)),
        };
        order.cell.workload = order
            .cell
            .workload
            .with_steps(std::mem::take(&mut order.before));
        (
            order.makes_state,
            order.has_turns,
            order.has_canary,
            order.placement,
        ) = (true, false, false, None);
        let ended = self.runner.run(&order, observer)?;
        let is_stopped = observer.stop_requests().load(Ordering::SeqCst) > 0;
        Ok(ended.map(|()| state).map_err(|reason| {
            if is_stopped {
                reason
            } else {
                format!("the data that its trials begin with could not be made: {reason}")
            }
        }))
    }
}
