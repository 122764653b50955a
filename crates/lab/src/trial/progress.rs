//! From the load loop's counters to a line for people.

use plimsoll_core::plan::{Ends, Operation, Step};
use plimsoll_core::units::NS_PER_S;
use plimsoll_load::Progress;

use crate::message::StepProgress;

/// Seconds over which `rate_now` is taken.
const WINDOW_S: f64 = 1.0;

/// Turns the loop's progress into the step's.
pub(super) struct ProgressMeter {
    step: StepProgress,
    batch: f64,
    is_timed: bool,
    /// Its kinds are drawn events.
    is_mix: bool,
    /// Elapsed seconds and primary count at the beginning of the window.
    window: (f64, f64),
    last_sent_s: f64,
}

impl ProgressMeter {
    pub fn new(step: &Step, index: usize, steps: usize) -> Self {
        let mut progress = StepProgress {
            step: step.name.clone(),
            index: index + 1,
            steps,
            ..StepProgress::default()
        };
        let is_timed = step.can_take_turns();
        match step.ends {
            Ends::Time { ns, .. } | Ends::RowsAtRate { ns } => {
                progress.total = ns as f64 / NS_PER_S;
                progress.measure = "s".into();
                progress.rate_unit = format!("{}/s", step.operation.plural());
            }
            Ends::Operations { per_client } => {
                progress.total = (per_client * u64::from(step.clients)) as f64;
                progress.measure = "rows".into();
                progress.rate_unit = format!("{}/s", step.operation.plural());
            }
            Ends::Rows => {
                progress.total = step.all_inserted_rows() as f64;
                progress.measure = "rows".into();
                progress.rate_unit = "rows/s".into();
            }
            // One long operation: nothing to count while it runs, so nothing in all.
            Ends::Statements => {}
        }
        Self {
            step: progress,
            batch: f64::from(step.batch),
            is_timed,
            is_mix: step.operation == Operation::Event,
            window: (0.0, 0.0),
            last_sent_s: f64::NEG_INFINITY,
        }
    }

    /// The step's progress, at most four times a second.
    pub fn update(&mut self, progress: &Progress) -> Option<StepProgress> {
        if progress.elapsed_s - self.last_sent_s < 0.25 {
            return None;
        }
        self.last_sent_s = progress.elapsed_s;
        // Workers of several kinds are counted with the last one, and a timed step's kinds are all
        // of one sort.
        let first = progress.kinds.first().copied().unwrap_or_default();
        let (ok, rows) = if self.is_mix {
            progress
                .kinds
                .iter()
                .fold((0, 0), |sum, kind| (sum.0 + kind.0, sum.1 + kind.1))
        } else {
            first
        };
        let primary = if self.is_timed {
            ok as f64
        } else {
            (rows as f64).max(ok as f64 * self.batch.min(1.0))
        };
        let step = &mut self.step;
        step.elapsed_s = progress.elapsed_s;
        step.rate_mean = if progress.elapsed_s > 0.0 {
            primary / progress.elapsed_s
        } else {
            0.0
        };
        let (window_s, window_count) = self.window;
        let length = progress.elapsed_s - window_s;
        if length >= WINDOW_S || step.rate_now == 0.0 {
            step.rate_now = (primary - window_count) / length.max(1e-9);
            if length >= WINDOW_S {
                self.window = (progress.elapsed_s, primary);
            }
        }
        step.done = if self.is_timed {
            progress.elapsed_s.min(step.total)
        } else {
            primary
        };
        step.eta_s = if self.is_timed {
            Some((step.total - progress.elapsed_s).max(0.0))
        } else {
            (step.rate_mean > 0.0 && step.total > 0.0)
                .then(|| ((step.total - primary) / step.rate_mean).max(0.0))
        };
        step.p99_ns = progress.p99_ns;
        step.unsuccessful = progress.unsuccessful;
        Some(step.clone())
    }
}
