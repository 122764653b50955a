//! A campaign with a budget: which steps go on, and whether there is time for another start.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use plimsoll_analysis::{STARTS_TO_LEAVE, StepProgress, progress};
use plimsoll_core::plan::{Budget, Family, Step, Workload};
use plimsoll_core::units::format_duration_ns;
use plimsoll_store::CampaignDir;

use crate::confirm::stop_rule::Seen;

/// A start has at least so many times as long for turns as for what comes before them: with few
/// steps left each has more time.
const TURNS_TO_SETUP: f64 = 2.0;
/// But never more than so many times as much as it began with.
const MOST_TIMES: f64 = 4.0;
/// Nor less than such a part, where a budget is short.
const LEAST_TIMES: f64 = 0.5;
/// What a step of the first start is taken to cost besides its turns, in seconds.
const FIRST_STEP_S: f64 = 1.5;
/// So many starts have their time before any has more turns: with fewer an interval over starts is
/// wide, however long each is.
const STARTS_FIRST: u32 = 8;

/// What has been used of a budget, and what for.
pub(super) struct BudgetWatch<'a> {
    budget: &'a Budget,
    /// How long a step has turns in a start of all steps.
    time: Duration,
    /// Starts at most.
    starts: u32,
    began: Instant,
    /// What earlier runs of the campaign took.
    before: Duration,
    last: Option<Cost>,
    /// Starts that were noted.
    booked: u32,
    seen: Seen,
    /// Steps that are not in the next start: those that have been measured enough, and those that
    /// others come before.
    left_out: BTreeSet<String>,
    is_done: bool,
}

/// What a start takes, but for its turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Until its first step begins, the making of data left out.
    pub setup: Duration,
    /// Of each step.
    pub step: Duration,
}

impl<'a> BudgetWatch<'a> {
    pub fn new(budget: &'a Budget, time: Duration, starts: u32, before: Duration) -> Self {
        Self {
            budget,
            time,
            starts,
            began: Instant::now(),
            before,
            last: None,
            booked: 0,
            seen: Seen::default(),
            left_out: BTreeSet::new(),
            is_done: false,
        }
    }

    /// The steps of a workload that go on. One that writes leaves only if the steps behind it do
    /// not build on what it wrote.
    pub fn open_steps(&self, workload: &Workload) -> Vec<Step> {
        let may_leave = |step: &Step| workload.family() == Family::Sysbench || !step.is_writing();
        let is_open = |step: &&Step| !(self.left_out.contains(&step.name) && may_leave(step));
        workload.steps().iter().filter(is_open).cloned().collect()
    }

    /// How long each of so many steps has turns in the next start.
    pub fn time_of_step(&self, steps: usize) -> Duration {
        let steps = steps.max(1) as f64;
        let [least, greatest] = [LEAST_TIMES, MOST_TIMES].map(|times| self.time.mul_f64(times));
        let Some(last) = self.last else {
            let first = self.left().as_secs_f64() / f64::from(STARTS_FIRST) / steps;
            let wanted = (first - FIRST_STEP_S).max(0.0).min(self.time.as_secs_f64());
            return Duration::from_secs_f64(wanted).max(least);
        };
        let setup = last.setup.as_secs_f64();
        let wanted = (TURNS_TO_SETUP * setup / steps).max(self.time.as_secs_f64());
        let still = f64::from(STARTS_FIRST.saturating_sub(self.booked).max(1));
        let affordable = (self.left().as_secs_f64() / still - setup) / steps;
        let most = affordable - last.step.as_secs_f64();
        Duration::from_secs_f64(wanted.min(most).max(0.0)).clamp(least, greatest)
    }

    /// Notes what a start took.
    pub fn book(&mut self, cost: Cost) {
        self.last = Some(cost);
        self.booked += 1;
    }

    /// Looks at what is there, and chooses the steps of the next start. The sentence reports how
    /// far the campaign is. `settled` are the steps that need no more starts, if widths do not say
    /// it.
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
        let chosen = self.chosen(start, &progress);
        self.left_out = progress
            .iter()
            .map(|of| of.step.clone())
            .filter(|step| !chosen.contains(step.as_str()))
            .collect();
        self.is_done = progress.iter().all(|of| of.done.is_some());
        Some(summary(
            start,
            &progress,
            self.starts_that_fit(chosen.len()),
        ))
    }

    /// Whether nothing is left to measure.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// The steps of the start behind this one. All of them, until it is known how far starts lie
    /// apart. Then those without a verdict before those that have one, and those that need few
    /// starts before those that need many, as long as there is time for all the starts that they
    /// need. What time that leaves goes to the others.
    fn chosen<'p>(&self, start: u32, progress: &'p [StepProgress]) -> BTreeSet<&'p str> {
        let most = f64::from(self.starts.saturating_sub(start).max(1));
        let needed = |of: &StepProgress| {
            let more = of.starts_needed().map(|needed| needed - of.starts as f64);
            more.map_or(1.0, |more| more.ceil().clamp(1.0, most))
        };
        let mut open: Vec<(bool, f64, &str)> = progress
            .iter()
            .filter(|of| of.done.is_none())
            .map(|of| (of.is_decided, needed(of), of.step.as_str()))
            .collect();
        open.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let all = || open.iter().map(|(_, _, step)| *step).collect();
        let is_early = (start as usize) < STARTS_TO_LEAVE;
        let Some(last) = self.last.filter(|_| !is_early) else {
            return all();
        };
        let left = self.left().as_secs_f64();
        let of_step = (self.time + last.step).as_secs_f64();
        let mut spent = 0.0;
        let mut starts: f64 = 0.0;
        let mut chosen = BTreeSet::new();
        for (_, needed, step) in &open {
            let more = (needed - starts).max(0.0) * last.setup.as_secs_f64() + needed * of_step;
            if spent + more <= left {
                spent += more;
                starts = starts.max(*needed);
                chosen.insert(*step);
            }
        }
        if chosen.is_empty() {
            return all();
        }
        for (_, _, step) in &open {
            if !chosen.contains(step) && spent + starts * of_step <= left {
                spent += starts * of_step;
                chosen.insert(*step);
            }
        }
        chosen
    }

    /// Why no other start may begin; `None` if it may.
    pub fn why_no_time(&self, steps: usize) -> Option<String> {
        let next = self.next_start(steps)?;
        (self.spent() + next > self.time_in_all()).then(|| {
            format!(
                "the budget of {} has no room for another start of about {}",
                format_duration_ns(self.budget.time_ns),
                format_duration_ns(next.as_secs() * 1_000_000_000)
            )
        })
    }

    pub fn left(&self) -> Duration {
        self.time_in_all().saturating_sub(self.spent())
    }

    fn time_in_all(&self) -> Duration {
        Duration::from_nanos(self.budget.time_ns)
    }

    fn spent(&self) -> Duration {
        self.before + self.began.elapsed()
    }

    /// What the next start takes; none before the first.
    fn next_start(&self, steps: usize) -> Option<Duration> {
        let last = self.last?;
        Some(last.setup + (last.step + self.time_of_step(steps)) * steps as u32)
    }

    fn starts_that_fit(&self, steps: usize) -> Option<f64> {
        let next = self.next_start(steps)?.as_secs_f64();
        (next > 0.0).then(|| (self.left().as_secs_f64() / next).floor())
    }
}

/// `after start 4: 20 of 32 steps are as narrow as asked for, 5 others have a verdict; about 6 more
/// starts fit into the budget; 3 steps will stay wider`.
fn summary(start: u32, progress: &[StepProgress], fits: Option<f64>) -> String {
    let done = progress.iter().filter(|of| of.done.is_some()).count();
    let open = || progress.iter().filter(|of| of.done.is_none());
    let decided = open().filter(|of| of.is_decided).count();
    let mut parts = vec![format!(
        "after start {start}: {done} of {} steps are done",
        progress.len()
    )];
    match decided {
        0 => {}
        1 => parts[0].push_str(", another one has verdicts"),
        many => parts[0].push_str(&format!(", {many} others have verdicts")),
    }
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
            is_decided: done.is_some(),
            done,
        }
    }

    const BUDGET: Budget = Budget {
        time_ns: 100_000_000_000,
        reads: 0.01,
        writes: 0.04,
    };

    /// With 60 s left, 10 s before the first step of a start, and 2 s for each step.
    fn watch() -> BudgetWatch<'static> {
        let mut watch = BudgetWatch::new(&BUDGET, SECOND, 32, 40 * SECOND);
        watch.book(Cost {
            setup: 10 * SECOND,
            step: SECOND,
        });
        watch
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_will_not_be_known_is_named_in_time() {
        let progress = [
            of("read", 4, 0.008, Some(StepDone::Narrow)),
            of("wide", 4, 0.03, None),
            StepProgress {
                is_decided: true,
                ..of("near", 4, 0.012, None)
            },
        ];
        assert_eq!(
            summary(4, &progress, Some(6.0)),
            "after start 4: 1 of 3 steps are done, another one has verdicts; about 6 more starts \
            fit into the budget; wide will stay wider than asked for"
        );
        assert_eq!(
            summary(4, &progress[..1], Some(6.0)),
            "after start 4: 1 of 1 steps are done"
        );
    }

    #[test]
    fn time_is_given_to_starts_that_end_within_it() {
        let mut watch = BudgetWatch::new(&BUDGET, SECOND, 32, 40 * SECOND);
        assert_eq!(
            watch.why_no_time(8),
            None,
            "nobody knows how long it will take"
        );
        watch.book(Cost {
            setup: 12 * SECOND,
            step: 6 * SECOND,
        });
        assert!(watch.why_no_time(8).unwrap().contains("about 64.0s"));
        assert_eq!(watch.why_no_time(4), None, "half of the steps are done");
    }

    #[test]
    fn few_steps_have_more_time_each() {
        let mut watch = watch();
        watch.booked = STARTS_FIRST;
        let seconds = |steps| watch.time_of_step(steps).as_secs_f64();
        assert_eq!([1, 5, 10, 20].map(seconds), [4.0, 4.0, 2.0, 1.0]);
    }

    #[test]
    fn a_short_budget_has_short_starts() {
        let mut watch = watch();
        watch.booked = 5;
        let seconds = |steps| watch.time_of_step(steps).as_secs_f64();
        // Three more starts of 20 s each, of which ten go before the first step.
        for (steps, wanted) in [(1, 4.0), (4, 1.5), (6, 0.666), (8, 0.5), (40, 0.5)] {
            let found = seconds(steps);
            assert!((found - wanted).abs() < 0.01, "{steps} steps: {found}");
        }
    }

    #[test]
    fn the_first_start_of_a_short_budget_is_short() {
        for (seconds, steps, wanted) in [
            (2700, 32, 1.0),
            (120, 8, 0.5),
            (160, 8, 1.0),
            (144, 8, 0.75),
        ] {
            let budget = Budget {
                time_ns: seconds * 1_000_000_000,
                ..BUDGET
            };
            let watch = BudgetWatch::new(&budget, SECOND, 32, Duration::ZERO);
            let found = watch.time_of_step(steps).as_secs_f64();
            assert!(
                (found - wanted).abs() < 0.01,
                "{seconds} s for {steps}: {found}"
            );
        }
    }

    #[test]
    fn what_can_be_finished_comes_first() {
        let watch = watch();
        let chosen = |progress: &[StepProgress]| -> Vec<String> {
            let chosen = watch.chosen(4, progress);
            chosen.into_iter().map(str::to_owned).collect()
        };
        // Two more starts, 24 s; nine more would take 108 s.
        let near = of("near", 4, 0.012, None);
        let wide = of("wide", 4, 0.018, None);
        assert_eq!(
            chosen(&[near.clone(), wide.clone()]),
            ["near", "wide"],
            "what is left goes to others"
        );
        let many: Vec<StepProgress> = (0..30)
            .map(|at| StepProgress {
                is_decided: true,
                ..of(&format!("d{at:02}"), 4, 0.012, None)
            })
            .collect();
        let all: Vec<StepProgress> = [vec![wide.clone()], many, vec![near]].concat();
        let found = chosen(&all);
        assert!(found.contains(&"near".to_owned()), "{found:?}");
        assert!(!found.contains(&"wide".to_owned()), "{found:?}");
        assert!(found.len() < 12, "{found:?}");
        assert_eq!(watch.chosen(3, &all).len(), all.len(), "too early to say");
        assert_eq!(
            chosen(&[wide]),
            ["wide"],
            "hopeless, and nothing else to do"
        );
    }
}
