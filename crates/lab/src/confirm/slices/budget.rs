//! A campaign with a budget: which steps go on, and whether there is time for another start.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use plimsoll_analysis::{StepProgress, progress};
use plimsoll_core::plan::{Family, Step, Workload};
use plimsoll_core::units::format_duration_ns;
use plimsoll_store::{Budget, CampaignDir};

use crate::confirm::stop_rule::Seen;

/// What has been used of a budget, and what for.
pub(super) struct BudgetWatch<'a> {
    budget: &'a Budget,
    began: Instant,
    /// What earlier runs of the campaign took.
    before: Duration,
    /// How long the last start took, and how many steps it had.
    last: Option<(Duration, usize)>,
    seen: Seen,
    /// Steps that have been measured enough.
    done: BTreeSet<String>,
}

impl<'a> BudgetWatch<'a> {
    pub fn new(budget: &'a Budget, before: Duration) -> Self {
        Self {
            budget,
            began: Instant::now(),
            before,
            last: None,
            seen: Seen::default(),
            done: BTreeSet::new(),
        }
    }

    /// The steps of a workload that go on. One that writes leaves only if the steps behind it do
    /// not build on what it wrote.
    pub fn open_steps(&self, workload: &Workload) -> Vec<Step> {
        let may_leave = |step: &Step| workload.family() == Family::Sysbench || !step.is_writing();
        let is_open = |step: &&Step| !(self.done.contains(&step.name) && may_leave(step));
        workload.steps().iter().filter(is_open).cloned().collect()
    }

    /// Notes how long a start took.
    pub fn book(&mut self, length: Duration, steps: usize) {
        self.last = Some((length, steps));
    }

    /// Looks at what is there. The sentence reports how far the campaign is. `settled` are the steps
    /// that need no more starts, if widths and verdicts do not say it.
    pub fn look(
        &mut self,
        campaign: &CampaignDir,
        start: u32,
        settled: Option<&BTreeSet<String>>,
    ) -> Option<String> {
        let mut progress = progress(self.seen.look(campaign)?, self.budget);
        if let Some(settled) = settled {
            progress.iter_mut().for_each(|of| of.settle(settled));
        }
        let is_done = |of: &&StepProgress| of.done.is_some();
        self.done = progress
            .iter()
            .filter(is_done)
            .map(|of| of.step.clone())
            .collect();
        let fits = self.starts_that_fit(progress.len() - self.done.len());
        Some(summary(start, &progress, fits))
    }

    /// Whether nothing is left to measure.
    pub fn is_done(&self, steps: &[String]) -> bool {
        steps.iter().all(|step| self.done.contains(step))
    }

    /// Why no other start may begin; `None` if it may.
    pub fn why_no_time(&self, steps: usize) -> Option<String> {
        let next = self.next_start(steps)?;
        (self.spent() + next > self.time()).then(|| {
            format!(
                "the budget of {} has no room for another start of about {}",
                format_duration_ns(self.budget.time_ns),
                format_duration_ns(next.as_secs() * 1_000_000_000)
            )
        })
    }

    pub fn left(&self) -> Duration {
        self.time().saturating_sub(self.spent())
    }

    fn time(&self) -> Duration {
        Duration::from_nanos(self.budget.time_ns)
    }

    fn spent(&self) -> Duration {
        self.before + self.began.elapsed()
    }

    /// The next start is as long as the last one, for fewer steps; none before the first.
    fn next_start(&self, steps: usize) -> Option<Duration> {
        let (length, of) = self.last?;
        Some(length.mul_f64(steps as f64 / of.max(1) as f64))
    }

    fn starts_that_fit(&self, steps: usize) -> Option<f64> {
        let next = self.next_start(steps)?.as_secs_f64();
        (next > 0.0).then(|| (self.left().as_secs_f64() / next).floor())
    }
}

/// `after start 4: 20 of 32 steps are done; about 6 more starts fit; 3 steps need more than that`.
fn summary(start: u32, progress: &[StepProgress], fits: Option<f64>) -> String {
    let done = progress.iter().filter(|of| of.done.is_some()).count();
    let mut parts = vec![format!(
        "after start {start}: {done} of {} steps are done",
        progress.len()
    )];
    let open = || progress.iter().filter(|of| of.done.is_none());
    if let Some(fits) = fits.filter(|_| open().next().is_some()) {
        let noun = if fits == 1.0 { "start" } else { "starts" };
        parts.push(format!("about {fits:.0} more {noun} fit into the budget"));
        let needs_more = |of: &&StepProgress| {
            let needed = of.starts_needed().map(|needed| needed - of.starts as f64);
            needed.is_some_and(|needed| needed > fits)
        };
        let names: Vec<&str> = open()
            .filter(needs_more)
            .map(|of| of.step.as_str())
            .collect();
        match names.as_slice() {
            [] => {}
            few if few.len() <= 3 => {
                parts.push(format!("{} will stay wider than asked for", few.join(", ")))
            }
            many => parts.push(format!(
                "{} steps will stay wider than asked for",
                many.len()
            )),
        }
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use plimsoll_analysis::StepDone;

    use super::*;

    fn of(step: &str, starts: usize, half_width: f64, done: Option<StepDone>) -> StepProgress {
        StepProgress {
            step: step.to_owned(),
            starts,
            half_width: Some(half_width),
            goal: 0.01,
            done,
        }
    }

    #[test]
    fn what_will_not_be_known_is_named_in_time() {
        let progress = [
            of("read", 4, 0.008, Some(StepDone::Narrow)),
            of("wide", 4, 0.03, None),
            of("near", 4, 0.012, None),
        ];
        assert_eq!(
            summary(4, &progress, Some(6.0)),
            "after start 4: 1 of 3 steps are done; about 6 more starts fit into the budget; wide \
            will stay wider than asked for"
        );
        assert_eq!(
            summary(4, &progress[..1], Some(6.0)),
            "after start 4: 1 of 1 steps are done"
        );
    }

    #[test]
    fn time_is_given_to_starts_that_end_within_it() {
        let budget = Budget {
            time_ns: 100_000_000_000,
            reads: 0.01,
            writes: 0.04,
        };
        let mut watch = BudgetWatch::new(&budget, Duration::from_secs(40));
        assert_eq!(
            watch.why_no_time(8),
            None,
            "nobody knows how long it will take"
        );
        watch.book(Duration::from_secs(80), 8);
        assert!(watch.why_no_time(8).unwrap().contains("about 80.0s"));
        assert_eq!(watch.why_no_time(4), None, "half of the steps are done");
    }
}
