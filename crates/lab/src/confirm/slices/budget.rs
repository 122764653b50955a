//! A campaign with a budget: which steps go on, and whether there is time for another start.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use plimsoll_analysis::{STARTS_TO_LEAVE, StepProgress, progress};
use plimsoll_core::plan::{Budget, Family, Step, Workload};
use plimsoll_core::units::format_duration_ns;
use plimsoll_stats::FEWEST_STARTS;
use plimsoll_store::CampaignDir;

use crate::confirm::stop_rule::Seen;

/// A start has at least so many times as long for turns as for what comes before them: with few
/// steps left each has more time.
const TURNS_TO_SETUP: f64 = 2.0;
/// But never more than so many times as much as it began with.
const MOST_TIMES: f64 = 8.0;
/// A step that writes has so many times as long as one that reads: what a server does behind its
/// writes comes in bursts, and in few turns there is one of them or none.
const WRITE_TIMES: f64 = 2.0;
/// What a step of the first start is taken to cost besides its turns, in seconds.
const FIRST_STEP_S: f64 = 1.5;
/// So many starts have their time before any has more turns: with fewer an interval over starts is
/// wide, however long each is.
const STARTS_FIRST: u32 = 8;
/// What a start that takes all that is left leaves of it: time goes by until it begins.
const LEAST_LEFT: Duration = Duration::from_secs(1);
/// What a step without a verdict counts in the choice of a start's steps, and one that will be as
/// narrow as asked within the budget.
const PREFERRED: f64 = 1.5;
/// Steps go on together if they gain this share of what the best gains.
const NEAR_THE_BEST: f64 = 0.6;

/// How long steps have turns in a start.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepTime {
    read: Duration,
    write: Duration,
}

impl StepTime {
    /// The same for all of them.
    pub fn of_all(time: Duration) -> Self {
        let (read, write) = (time, time);
        Self { read, write }
    }

    /// By the time of those that read.
    fn of_reads(read: Duration) -> Self {
        let write = read.mul_f64(WRITE_TIMES);
        Self { read, write }
    }

    pub fn of(&self, step: &Step) -> Duration {
        match step.is_writing() {
            true => self.write,
            false => self.read,
        }
    }
}

/// What has been used of a budget, and what for.
pub(super) struct BudgetWatch<'a> {
    budget: &'a Budget,
    /// How long a step that reads has turns in a start of all steps.
    time: Duration,
    /// The steps that write.
    writes: BTreeSet<String>,
    /// Starts at most.
    starts: u32,
    began: Instant,
    /// What earlier runs of the campaign took.
    before: Duration,
    /// What the last of their starts took, as long as none of this run is known.
    start_before: Option<Duration>,
    last: Option<Cost>,
    /// How many times as long as usual steps asked for in the last start that had them.
    longer: BTreeMap<String, f64>,
    /// What the load takes that the next start begins with.
    loading: Duration,
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

impl Cost {
    /// Of a start of these steps, turns included.
    fn of_start(&self, steps: &[Step], times: StepTime) -> Duration {
        let of_steps = steps.iter().map(|step| self.step + times.of(step));
        self.setup + of_steps.sum::<Duration>()
    }
}

impl<'a> BudgetWatch<'a> {
    /// `steps` are those of a start before any of them has left.
    pub fn new(budget: &'a Budget, time: Duration, starts: u32, steps: &[Step]) -> Self {
        let writes = steps.iter().filter(|step| step.is_writing());
        Self {
            budget,
            time,
            writes: writes.map(|step| step.name.clone()).collect(),
            starts,
            began: Instant::now(),
            before: Duration::ZERO,
            start_before: None,
            last: None,
            longer: BTreeMap::new(),
            loading: Duration::ZERO,
            booked: 0,
            seen: Seen::default(),
            left_out: BTreeSet::new(),
            is_done: false,
        }
    }

    /// Goes on with what earlier runs of the campaign left: they took `before` together, and each of
    /// their complete starts what `starts` has.
    pub fn go_on(self, before: Duration, starts: Vec<Duration>) -> Self {
        Self {
            before,
            start_before: starts.last().copied(),
            booked: starts.len() as u32,
            ..self
        }
    }

    /// The steps of a workload that go on. One that writes leaves only if the steps behind it do
    /// not build on what it wrote.
    pub fn open_steps(&self, workload: &Workload) -> Vec<Step> {
        let steps = workload.steps();
        let is_left_out = |step: &Step| self.left_out.contains(&step.name);
        let behind = steps.iter().rposition(|step| !is_left_out(step));
        let is_needed = |at: usize, step: &Step| {
            let is_built_on = workload.family() != Family::Sysbench && step.changes_data();
            is_built_on && behind.is_some_and(|behind| at < behind)
        };
        let open = steps.iter().enumerate();
        open.filter(|(at, step)| !is_left_out(step) || is_needed(*at, step))
            .map(|(_, step)| step.clone())
            .collect()
    }

    /// How long each of these steps has turns in a start whose data is there. All have the same if
    /// more for those that write would cost starts.
    pub fn times(&self, steps: &[Step]) -> StepTime {
        self.times_within(self.left(), steps)
    }

    /// The same in the next start, whose data may have to be made.
    fn next_times(&self, steps: &[Step]) -> StepTime {
        self.times_within(self.left_behind_load(), steps)
    }

    fn times_within(&self, left: Duration, steps: &[Step]) -> StepTime {
        let writes = steps.iter().filter(|step| step.is_writing()).count();
        self.times_of(left, steps.len() - writes, writes)
    }

    fn times_of(&self, left: Duration, reads: usize, writes: usize) -> StepTime {
        let left = left.saturating_sub(LEAST_LEFT).as_secs_f64();
        let count = (reads + writes).max(1) as f64;
        let usual = self.time.as_secs_f64();
        let still = f64::from(self.starts_to_come());
        // Before the first start it is not known what one costs.
        let (setup, step, wanted) = match self.last {
            Some(last) => {
                let (setup, step) = (last.setup.as_secs_f64(), last.step.as_secs_f64());
                // Starts that are all there may be use all that is left.
                let at_most = f64::from(self.starts.saturating_sub(self.booked).max(1));
                let share = left / at_most - setup - step * count;
                (setup, step, share.max(TURNS_TO_SETUP * setup))
            }
            None => (0.0, FIRST_STEP_S, 0.0),
        };
        let affordable = left / still - setup - step * count;
        let among = |shares: f64| {
            let wanted = (wanted / shares).max(usual);
            let time = wanted.min(affordable / shares);
            Duration::from_secs_f64(time.clamp(usual, MOST_TIMES * usual))
        };
        let shares = (reads as f64 + WRITE_TIMES * writes as f64).max(1.0);
        match affordable / shares >= usual {
            true => StepTime::of_reads(among(shares)),
            false => StepTime::of_all(among(count)),
        }
    }

    /// What these steps do not need of the next start's share of the budget, of which the first
    /// [`STARTS_FIRST`] have one each. None before it is known what a start costs.
    pub fn spare(&self, steps: &[Step]) -> Duration {
        let Some(last) = self.last else {
            return Duration::ZERO;
        };
        let share = self.left() / self.starts_to_come();
        share.saturating_sub(last.of_start(steps, self.times(steps)))
    }

    /// How many starts the budget that is left is for.
    fn starts_to_come(&self) -> u32 {
        STARTS_FIRST.saturating_sub(self.booked).max(1)
    }

    /// Notes what a start took.
    pub fn book(&mut self, cost: Cost) {
        self.last = Some(cost);
        self.booked += 1;
    }

    /// Notes how many times as long as usual steps asked for in a start because of their operations.
    pub fn note_longer(&mut self, longer: BTreeMap<String, f64>) {
        self.longer.extend(longer);
    }

    /// The load that the next start begins with takes this long.
    pub fn expect_load(&mut self, loading: Duration) {
        self.loading = loading;
    }

    /// Looks at what is there, and chooses the steps of the next start. The sentence reports how
    /// far the campaign is. `settled` are the steps that need no more starts, if widths do not say
    /// it.
    pub fn look(
        &mut self,
        campaign: &CampaignDir,
        workload: &Workload,
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
            self.starts_that_fit(&self.open_steps(workload), start),
        ))
    }

    /// Whether nothing is left to measure.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// The steps of the start behind this one. All of them, until it is known how far starts lie
    /// apart. Then those whose intervals narrow most per second, as far as there is time for them:
    /// the best and all that come near it, because a start of few steps is mostly preparation.
    fn chosen<'p>(&self, start: u32, progress: &'p [StepProgress]) -> BTreeSet<&'p str> {
        let open: Vec<&StepProgress> = progress.iter().filter(|of| of.done.is_none()).collect();
        let all = || open.iter().map(|of| of.step.as_str()).collect();
        let is_early = (start as usize) < STARTS_TO_LEAVE;
        let Some(last) = self.last.filter(|_| !is_early) else {
            return all();
        };
        let is_write = |of: &StepProgress| self.writes.contains(&of.step);
        let writes = open.iter().filter(|of| is_write(of)).count();
        let left = self.left_behind_load();
        let times = self.times_of(left, open.len() - writes, writes);
        let seconds = |of: &StepProgress| {
            let turns = if is_write(of) {
                times.write
            } else {
                times.read
            };
            (turns + last.step).as_secs_f64()
        };
        let left = left.saturating_sub(last.setup).as_secs_f64();
        let of_all: f64 = open.iter().map(|of| seconds(of)).sum();
        let fit = f64::from(self.starts.saturating_sub(start)).min(left / of_all);
        let mut by_gain: Vec<(f64, f64, &str)> = open
            .iter()
            .map(|of| {
                let seconds = seconds(of);
                (gain(of, fit) / seconds, seconds, of.step.as_str())
            })
            .collect();
        by_gain.sort_by(|a, b| b.0.total_cmp(&a.0));
        let enough = by_gain.first().map_or(0.0, |best| best.0 * NEAR_THE_BEST);
        let mut spent = 0.0;
        let chosen: BTreeSet<&str> = by_gain
            .into_iter()
            .filter(|(gain, seconds, _)| {
                let is_in = *gain >= enough && spent + seconds <= left;
                spent += if is_in { *seconds } else { 0.0 };
                is_in
            })
            .map(|(_, _, step)| step)
            .collect();
        if chosen.is_empty() { all() } else { chosen }
    }

    /// Why no other start may begin behind this one; `None` if it may. As long as it is not known
    /// what a start takes, one may begin whenever there is time left.
    pub fn why_no_time(&self, steps: &[Step], start: u32) -> Option<String> {
        let budget = format_duration_ns(self.budget.time_ns);
        let Some(next) = self.next_start(steps) else {
            return self
                .left()
                .is_zero()
                .then(|| format!("the budget of {budget} is used up"));
        };
        (self.spent().saturating_add(next) > self.time_in_all()).then(|| {
            let words =
                |time: Duration| format_duration_ns(time.as_secs().saturating_mul(1_000_000_000));
            let missing = (FEWEST_STARTS as u32).saturating_sub(start);
            let all = (self.spent() + Duration::from_secs(1)).saturating_add(next * missing);
            let enough = match missing {
                0 => String::new(),
                _ => format!(
                    "; a verdict needs {FEWEST_STARTS} starts, so a budget of {} or more",
                    words(all)
                ),
            };
            format!(
                "the budget of {budget} has no room for another start of about {}{enough}",
                words(next)
            )
        })
    }

    pub fn left(&self) -> Duration {
        self.time_in_all().saturating_sub(self.spent())
    }

    /// What is left when the next start's load is there.
    fn left_behind_load(&self) -> Duration {
        self.left().saturating_sub(self.loading)
    }

    fn time_in_all(&self) -> Duration {
        Duration::from_nanos(self.budget.time_ns)
    }

    fn spent(&self) -> Duration {
        self.before + self.began.elapsed()
    }

    /// What the next start takes; none before the first.
    fn next_start(&self, steps: &[Step]) -> Option<Duration> {
        let Some(last) = self.last else {
            return self.start_before.map(|start| self.loading + start);
        };
        Some(self.loading + last.of_start(steps, self.next_times(steps)))
    }

    /// How many more starts there are time for behind this one, at most those that there may be.
    fn starts_that_fit(&self, steps: &[Step], start: u32) -> Option<f64> {
        let times = self.next_times(steps);
        let more = |step: &Step| {
            let asked = self.longer.get(&step.name).copied().unwrap_or(1.0);
            times.of(step).mul_f64(asked - 1.0)
        };
        let more: Duration = steps.iter().map(more).sum();
        let next = self.next_start(steps)? + more.min(self.spare(steps));
        let next = next.as_secs_f64();
        let fit = (next > 0.0).then(|| (self.left().as_secs_f64() / next).floor())?;
        Some(fit.min(f64::from(self.starts.saturating_sub(start))))
    }
}

/// What one more start is worth to a step, if there is time for `fit` of all: a width falls with
/// the root of the number of starts, so the share of it that goes is half of one over their number.
fn gain(of: &StepProgress, fit: f64) -> f64 {
    let starts = of.starts.max(1) as f64;
    let needed = of.starts_needed().map(|needed| needed - of.starts as f64);
    let is_within_reach = needed.is_some_and(|needed| needed <= fit);
    let preferred = |applies| if applies { PREFERRED } else { 1.0 };
    preferred(!of.is_decided) * preferred(is_within_reach) / (2.0 * starts)
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
        1 => parts[0].push_str(", 1 more has a verdict and may get narrower"),
        many => parts[0].push_str(&format!(", {many} more have verdicts and may get narrower")),
    }
    if let Some(fits) = fits.filter(|_| open().next().is_some()) {
        parts.push(match fits.round() as u64 {
            0 => "no other start fits into the budget".to_owned(),
            1 => "about 1 more start fits into the budget".to_owned(),
            many => format!("about {many} more starts fit into the budget"),
        });
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
    use plimsoll_core::plan::Plan;

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

    /// `point-query` and so on, and as many that write.
    fn steps(reads: usize, writes: usize) -> Vec<Step> {
        let tests = "tests = [\"point-query\", \"update-index\"]";
        let plan = format!(
            "name = \"t\"\nworkload = \"sysbench-2025\"\ncomparable = false\nbuilds = \
            [\"postgres@18\"]\nconfigs = [\"cx10b\"]\n{tests}\n[sizes]\nclients = 1\ntables = 1\n\
            rows = \"2K\"\nduration = \"1s\"\n"
        );
        let plan = Plan::parse("t.toml", &plan).unwrap();
        let all = plan.cells[0].workload.steps();
        let of = |writes: bool, count: usize| {
            let is_one = |step: &&Step| step.is_writing() == writes && step.name != "prepare";
            let one = all.iter().find(is_one).unwrap();
            (0..count).map(move |at| Step {
                name: format!("{}{at}", one.name),
                ..one.clone()
            })
        };
        of(false, reads).chain(of(true, writes)).collect()
    }

    /// Of 32 starts, after so much of the budget.
    fn after<'b>(
        budget: &'b Budget,
        time: Duration,
        spent: Duration,
        steps: &[Step],
    ) -> BudgetWatch<'b> {
        BudgetWatch::new(budget, time, 32, steps).go_on(spent, Vec::new())
    }

    /// With 60 s left, 10 s before the first step of a start, and 1 s for each step.
    fn watch() -> BudgetWatch<'static> {
        let mut watch = after(&BUDGET, SECOND, 40 * SECOND, &[]);
        watch.book(Cost {
            setup: 10 * SECOND,
            step: SECOND,
        });
        watch
    }

    const SECOND: Duration = Duration::from_secs(1);

    /// Seconds of one that reads among such steps.
    fn seconds(watch: &BudgetWatch<'_>, reads: usize, writes: usize) -> f64 {
        watch.times(&steps(reads, writes)).read.as_secs_f64()
    }

    #[test]
    fn writes_have_more_time_where_it_costs_no_start() {
        let mut watch = watch();
        watch.booked = 5;
        for (reads, writes, wanted) in [(1, 1, [2.556, 5.111]), (2, 4, [1.0, 1.0])] {
            let times = watch.times(&steps(reads, writes));
            for (time, wanted) in [times.read, times.write].iter().zip(wanted) {
                assert!((time.as_secs_f64() - wanted).abs() < 0.01, "{times:?}");
            }
        }
    }

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
            "after start 4: 1 of 3 steps are done, 1 more has a verdict and may get narrower; about 6 more starts \
            fit into the budget; wide will stay wider than asked for"
        );
        assert_eq!(
            summary(4, &progress[..1], Some(6.0)),
            "after start 4: 1 of 1 steps are done"
        );
        for (fits, said) in [
            (0.3, "; no other start fits into the budget; "),
            (1.2, "; about 1 more start fits into the budget; "),
        ] {
            assert!(summary(4, &progress, Some(fits)).contains(said));
        }
    }

    #[test]
    fn time_is_given_to_starts_that_end_within_it() {
        let mut watch = after(&BUDGET, SECOND, 40 * SECOND, &[]);
        assert_eq!(
            watch.why_no_time(&steps(8, 0), 3),
            None,
            "nobody knows how long it will take"
        );
        watch.book(Cost {
            setup: 12 * SECOND,
            step: 6 * SECOND,
        });
        assert!(
            watch
                .why_no_time(&steps(8, 0), 3)
                .unwrap()
                .contains("about 68.0s")
        );
        assert_eq!(
            watch.why_no_time(&steps(4, 0), 3),
            None,
            "half of the steps are done"
        );
    }

    /// A budget of 40 s ended in "not judged", and nobody had been warned.
    #[test]
    fn a_budget_for_too_few_starts_says_what_a_verdict_needs() {
        let budget = Budget {
            time_ns: 40_000_000_000,
            ..BUDGET
        };
        let mut watch = after(&budget, SECOND, 25 * SECOND, &[]);
        watch.book(Cost {
            setup: 12 * SECOND,
            step: 6 * SECOND,
        });
        let after = |start| watch.why_no_time(&steps(1, 0), start).unwrap();
        // 25 s were spent, and a start takes 19 s.
        assert_eq!(
            after(1),
            "the budget of 40.0s has no room for another start of about 19.0s; a verdict needs 3 \
            starts, so a budget of 64.0s or more"
        );
        assert!(after(3).ends_with("about 19.0s"));
    }

    #[test]
    fn few_steps_have_more_time_each() {
        let mut watch = watch();
        watch.booked = STARTS_FIRST;
        let found = [(1, 0), (5, 0), (10, 0), (20, 0), (4, 2)]
            .map(|(reads, writes)| seconds(&watch, reads, writes));
        assert_eq!(found, [8.0, 4.0, 2.0, 1.0, 2.5]);
    }

    #[test]
    fn a_short_budget_has_starts_of_the_usual_time() {
        let mut watch = watch();
        watch.booked = 5;
        // Three more starts of 20 s each, of which ten go before the first step.
        for (reads, writes, wanted) in [
            (1, 0, 8.0),
            (4, 0, 1.417),
            (6, 0, 1.0),
            (40, 0, 1.0),
            (1, 1, 2.556),
        ] {
            let found = seconds(&watch, reads, writes);
            assert!(
                (found - wanted).abs() < 0.01,
                "{reads} and {writes} steps: {found}"
            );
        }
    }

    #[test]
    fn the_first_start_has_the_usual_time_in_each_budget() {
        for (of_budget, reads) in [(2700, 32), (120, 8)] {
            let budget = Budget {
                time_ns: of_budget * 1_000_000_000,
                ..BUDGET
            };
            let watch = after(&budget, SECOND, Duration::ZERO, &[]);
            assert_eq!(seconds(&watch, reads, 0), 1.0, "{of_budget} s for {reads}");
        }
    }

    #[test]
    fn what_gains_most_comes_first() {
        let watch = watch();
        let chosen = |progress: &[StepProgress]| -> Vec<String> {
            let chosen = watch.chosen(4, progress);
            chosen.into_iter().map(str::to_owned).collect()
        };
        let near = of("near", 4, 0.012, None);
        let far = of("far", 4, 0.1, None);
        assert_eq!(
            chosen(&[near.clone(), far.clone()]),
            ["far", "near"],
            "a start of one step is mostly preparation"
        );
        let known = StepProgress {
            is_decided: true,
            ..of("known", 9, 0.012, None)
        };
        assert_eq!(chosen(&[near, known.clone()]), ["near"]);
        assert_eq!(chosen(std::slice::from_ref(&known)), ["known"]);
        // 50 s are left for steps of 2 s.
        let many: Vec<StepProgress> = (0..40)
            .map(|at| of(&format!("m{at:02}"), 4, 0.1, None))
            .collect();
        assert_eq!(chosen(&many).len(), 24, "as many as there is time for");
        assert_eq!(watch.chosen(3, &many).len(), many.len(), "too early to say");
    }

    /// Of 45 minutes 18 went to starts of few steps that could not be known, while 16 of 22 steps
    /// that read stayed at four starts.
    #[test]
    fn steps_that_cannot_be_known_do_not_keep_the_others_waiting() {
        let budget = Budget {
            time_ns: 2_700_000_000_000,
            ..BUDGET
        };
        let all = steps(22, 10);
        let mut watch = after(&budget, 4 * SECOND, 1362 * SECOND, &all);
        let setup = 25 * SECOND;
        let cost = Cost {
            setup,
            step: SECOND,
        };
        (0..4).for_each(|_| watch.book(cost));
        let mut progress: Vec<StepProgress> = all
            .iter()
            .map(|step| {
                let (half_width, goal) = match step.is_writing() {
                    true => (0.1, 0.04),
                    false => (0.021, 0.01),
                };
                let is_decided = !step.is_writing();
                StepProgress {
                    is_decided,
                    goal,
                    ..of(&step.name, 4, half_width, None)
                }
            })
            .collect();
        for start in 4.. {
            let chosen = watch.chosen(start, &progress);
            let chosen: Vec<String> = chosen.into_iter().map(str::to_owned).collect();
            let of_start: Vec<Step> = all
                .iter()
                .filter(|step| chosen.contains(&step.name))
                .cloned()
                .collect();
            if watch.why_no_time(&of_start, 3).is_some() {
                break;
            }
            watch.before += watch.next_start(&of_start).unwrap();
            watch.book(cost);
            for of in &mut progress {
                if chosen.contains(&of.step) {
                    let n = of.starts as f64;
                    of.half_width = of.half_width.map(|width| width * (n / (n + 1.0)).sqrt());
                    of.starts += 1;
                }
            }
        }
        let starts = |writes: bool| -> Vec<usize> {
            let found = progress.iter().zip(&all);
            let of_kind = found.filter(|(_, step)| step.is_writing() == writes);
            of_kind.map(|(of, _)| of.starts).collect()
        };
        let (reads, writes) = (starts(false), starts(true));
        assert!(reads.iter().all(|&starts| starts >= 9), "{reads:?}");
        assert!(writes.iter().all(|&starts| starts >= 5), "{writes:?}");
        let unused = watch.left();
        assert!(unused < 60 * SECOND, "{unused:?}");
    }

    /// A minute for one step whose operations take four turns: it had three times more in each
    /// start, and fewer starts.
    #[test]
    fn long_operations_cost_no_start_of_the_first() {
        let one = steps(1, 0);
        let budget = Budget {
            time_ns: 60_000_000_000,
            ..BUDGET
        };
        let (setup, step) = (3 * SECOND, SECOND);
        let usual = Duration::from_millis(2400);
        let starts = |times_more: u32| {
            let mut watch = after(&budget, usual, Duration::ZERO, &one);
            let mut starts = 0;
            while watch.why_no_time(&one, starts).is_none() {
                let (time, spare) = (watch.times(&one).read, watch.spare(&one));
                watch.before += setup + step + time + (times_more * time).min(spare);
                watch.book(Cost { setup, step });
                starts += 1;
            }
            assert!(watch.spent() <= 61 * SECOND, "{:?}", watch.spent());
            starts
        };
        assert!(starts(3) >= 7, "{}", starts(3));
        assert_eq!(starts(3), starts(0));
        // In three quarters of an hour there is time for it.
        let all = steps(22, 10);
        let budget = Budget {
            time_ns: 45 * 60_000_000_000,
            ..BUDGET
        };
        let mut watch = after(&budget, SECOND, 60 * SECOND, &all);
        assert_eq!(
            watch.spare(&all),
            Duration::ZERO,
            "what a start costs is not known"
        );
        watch.book(Cost {
            setup: 20 * SECOND,
            step: SECOND / 2,
        });
        assert!(watch.spare(&all) > 30 * SECOND, "{:?}", watch.spare(&all));
    }

    /// `about 12 more starts fit` into a budget whose `scan` had four times as long in each.
    #[test]
    fn starts_that_fit_have_the_time_of_long_operations() {
        let one = steps(1, 0);
        let mut watch = after(&BUDGET, SECOND, 40 * SECOND, &one);
        let (setup, step) = (SECOND, SECOND / 2);
        (0..STARTS_FIRST).for_each(|_| watch.book(Cost { setup, step }));
        let fit = |watch: &BudgetWatch<'_>, start| watch.starts_that_fit(&one, start);
        assert_eq!(fit(&watch, 8), Some(17.0), "3.5 s each of 60 s");
        assert_eq!(fit(&watch, 29), Some(3.0), "of 32 starts");
        watch.note_longer([(one[0].name.clone(), 4.0)].into());
        assert_eq!(fit(&watch, 8), Some(6.0), "9.5 s each of 60 s");
    }

    /// Of 45 minutes 18 were not used: 64 starts of ten reads took 25 s each.
    #[test]
    fn as_many_starts_as_there_may_be_use_the_whole_budget() {
        let all = steps(10, 0);
        let budget = Budget {
            time_ns: 2_700_000_000_000,
            ..BUDGET
        };
        let mut watch = BudgetWatch::new(&budget, Duration::from_millis(1200), 64, &all);
        let cost = Cost {
            setup: 5 * SECOND,
            step: Duration::from_millis(800),
        };
        let mut starts = 0;
        while starts < 64 && watch.why_no_time(&all, starts).is_none() {
            watch.before += match watch.last {
                Some(_) => watch.next_start(&all).unwrap(),
                None => 25 * SECOND,
            };
            watch.book(cost);
            starts += 1;
        }
        assert!(watch.left() < 60 * SECOND, "{:?}", watch.left());
        assert!(starts > 60, "{starts}");
    }

    /// It was to take exactly what was left, of which some microseconds had gone when it was asked
    /// whether it fits; and what its load takes was not in it.
    #[test]
    fn a_start_that_takes_all_that_is_left_begins() {
        let no_time = |spent: u32, reads: usize, loading: Duration| {
            let mut watch = after(&BUDGET, SECOND, spent * SECOND, &[]);
            let (setup, step) = (10 * SECOND, SECOND);
            (0..STARTS_FIRST).for_each(|_| watch.book(Cost { setup, step }));
            watch.expect_load(loading);
            watch.why_no_time(&steps(reads, 0), STARTS_FIRST)
        };
        assert_eq!(no_time(70, 4, Duration::ZERO), None);
        assert_eq!(no_time(40, 12, 20 * SECOND), None);
        assert!(no_time(83, 4, Duration::ZERO).is_some(), "18 s are needed");
    }

    /// All steps have the same time in a budget of a few minutes: a step that writes costs
    /// what one that reads costs: it is not given up for more.
    #[test]
    fn a_write_that_has_the_time_of_a_read_costs_no_more() {
        let writes = steps(0, 4);
        let mut watch = after(&BUDGET, SECOND, 40 * SECOND, &writes);
        for _ in 0..4 {
            watch.book(Cost {
                setup: 10 * SECOND,
                step: SECOND,
            });
        }
        // All have the same time, and three more starts of all four take 3 * (10 + 4 * (1 + 1)) = 54 of
        // 60 s at most; each step needs three more.
        let times = watch.times(&writes);
        assert_eq!(times.read, times.write, "{times:?}");
        let next = watch.next_start(&writes).unwrap();
        let progress: Vec<StepProgress> = writes
            .iter()
            .map(|step| of(&step.name, 4, 0.0125, None))
            .collect();
        let needed: Vec<_> = progress.iter().map(|of| of.starts_needed()).collect();
        let chosen = watch.chosen(4, &progress);
        assert_eq!(
            chosen.len(),
            4,
            "only {chosen:?}: a start takes {next:?} of {:?}, needed {needed:?}",
            watch.left()
        );
    }

    /// Starts that broke before a step was over were begun again and again, however long ago the
    /// budget had been used up.
    #[test]
    fn a_budget_that_is_used_up_ends_whether_a_start_is_known_or_not() {
        let watch = after(&BUDGET, SECOND, 4000 * SECOND, &[]);
        assert_eq!(
            watch.why_no_time(&steps(8, 0), 7).unwrap(),
            "the budget of 100.0s is used up"
        );
    }

    /// Each time that a campaign went on it ran one more start, whatever was left, and with turns of
    /// an eighth of what was left.
    #[test]
    fn a_campaign_that_goes_on_knows_what_its_starts_take() {
        let going_on = |spent: u32| {
            BudgetWatch::new(&BUDGET, SECOND, 32, &[])
                .go_on(spent * SECOND, vec![30 * SECOND, 20 * SECOND])
        };
        let no_time = going_on(85).why_no_time(&steps(1, 0), 7);
        assert_eq!(
            no_time.unwrap(),
            "the budget of 100.0s has no room for another start of about 20.0s"
        );
        assert_eq!(going_on(70).why_no_time(&steps(1, 0), 7), None);
        assert_eq!(going_on(70).booked, 2);
    }

    #[test]
    fn times_of_damaged_events_overflow_nothing() {
        let mut watch = after(&BUDGET, SECOND, Duration::from_nanos(u64::MAX), &[]);
        watch.book(Cost {
            setup: SECOND,
            step: SECOND,
        });
        assert!(watch.why_no_time(&steps(1, 0), 1).is_some());
    }

    /// Steps of the Insert Benchmark that are done went on to the end of the campaign, for nobody.
    #[test]
    fn steps_behind_the_last_open_one_leave() {
        let plan = "name = \"t\"\nworkload = \"insert-benchmark\"\nbuilds = [\"sqlite\"]\nconfigs = \
                    [\"wal_off\"]\ncomparable = false\n[sizes]\nclients = 1\nduration = \"200ms\"\nrows \
                    = \"5K\"\nwrite_rows = \"1K\"\n";
        let plan = Plan::parse("t.toml", plan).unwrap();
        let all = &plan.cells[0].workload;
        let has_writers = |step: &&Step| step.background.is_some();
        let steps: Vec<Step> = all
            .steps()
            .iter()
            .filter(has_writers)
            .take(3)
            .cloned()
            .collect();
        let names: Vec<String> = steps.iter().map(|step| step.name.clone()).collect();
        let mut watch = after(&BUDGET, Duration::from_secs(1), Duration::ZERO, &steps);
        watch.left_out = BTreeSet::from([names[0].clone(), names[2].clone()]);
        let open = watch.open_steps(&all.with_steps(steps));
        let open: Vec<&String> = open.iter().map(|step| &step.name).collect();
        // The second reads what the first wrote. Nothing that is open is behind the third.
        assert_eq!(open, [&names[0], &names[1]]);
    }
}
