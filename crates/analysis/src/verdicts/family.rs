//! From the findings of a family to verdicts.

use plimsoll_stats::{
    FEWEST_BLOCKS, FEWEST_STARTS, Looks, Policy, Verdict, benjamini_hochberg, blocks_needed,
    blocks_to_decide,
};

use super::finding::{Basis, Call, Estimate, Finding, LEAST, Modes};
use super::lines::count;
use super::measured::Role;

/// Corrects each family and gives the verdicts. A metric is a family: between releases CPU differs
/// nearly everywhere, and would lend its certainty to throughputs. All companions together have as
/// much of `alpha` as throughput has.
/// `looks` are those of the campaign.
pub(crate) fn decide(all: &mut [Finding], looks: &Looks, margin: f64, alpha: f64) {
    let mut families: Vec<(Role, &'static str)> = all
        .iter()
        .filter(|finding| finding.verdict().is_some())
        .map(|finding| (finding.role, finding.family()))
        .collect();
    families.sort_unstable_by_key(|(_, name)| *name);
    families.dedup();
    let is_companion = |family: &&(Role, &str)| family.0 == Role::Companion;
    let companions = families.iter().filter(is_companion).count();
    for (role, name) in &families {
        let share = match role {
            Role::Companion => 1.0 / companions as f64,
            Role::Throughput | Role::Cpu => 1.0,
        };
        let mut family: Vec<&mut Finding> = all
            .iter_mut()
            .filter(|finding| finding.family() == *name && finding.verdict().is_some())
            .collect();
        let p: Vec<f64> = family
            .iter()
            .map(|finding| finding.estimate.and_then(|estimate| estimate.p))
            .map(|p| p.unwrap_or(1.0))
            .collect();
        let of = Family {
            looks,
            size: family.len(),
            share,
            margin,
            alpha,
        };
        for (finding, p_adjusted) in family.iter_mut().zip(benjamini_hochberg(&p)) {
            of.decide(finding, p_adjusted);
        }
    }
}

/// What the findings of one family have in common.
struct Family<'a> {
    looks: &'a Looks,
    /// Findings in it.
    size: usize,
    /// The share of the look's level that this family has.
    share: f64,
    margin: f64,
    alpha: f64,
}

impl Family<'_> {
    fn decide(&self, finding: &mut Finding, p_adjusted: f64) {
        finding.p_adjusted = Some(p_adjusted);
        let Some(estimate) = finding.estimate else {
            return;
        };
        finding.needed = self.needed(finding, &estimate);
        if let Some(needed) = finding.needed
            && finding.basis == Basis::Blocks
            && finding.look_level == 0.0
        {
            finding.reason = format!(
                "{} so far: it cannot be judged before {needed} blocks",
                count(estimate.pairs, "block")
            );
            return;
        }
        let Some(shown) = estimate.log_interval() else {
            finding.reason = undecidable(finding);
            return;
        };
        if finding.basis == Basis::Slices && estimate.starts < FEWEST_STARTS {
            finding.reason = match estimate.starts {
                1 => format!(
                    "the interval holds within one start only, and starts differ: at least \
                    {FEWEST_STARTS} are needed, better 5"
                ),
                few => format!("{few} starts decide nothing: at least {FEWEST_STARTS} are needed"),
            };
            return;
        }
        let at_look = estimate.log_interval_at_look();
        let level = match at_look {
            Some(_) => self.share * finding.look_level,
            None => 0.0,
        };
        let direction = finding.metric.direction;
        let gain = direction.gain(estimate.ratio.ln());
        let interval = at_look.unwrap_or(shown);
        let interval = if direction.is_cost() {
            interval.negated()
        } else {
            interval
        };
        let policy = Policy {
            margin: self.margin.ln_1p(),
            least: LEAST,
            level,
        };
        let mut verdict = Verdict::of(gain, interval, p_adjusted, policy);
        if let Some(modes) = finding.modes.filter(are_on_both_sides)
            && verdict != Verdict::Equivalent
        {
            verdict = Verdict::Inconclusive;
            finding.reason = format!("starts fall into two groups: {}", modes.words());
        }
        finding.call = Call::Verdict(verdict);
        if verdict == Verdict::Inconclusive && finding.reason.is_empty() {
            finding.reason = undecided(finding, self);
        }
    }
}

impl Family<'_> {
    /// Blocks or starts before which nothing is called, if there are fewer: what any decision takes,
    /// and the next look of a campaign that is under way.
    fn needed(&self, finding: &Finding, estimate: &Estimate) -> Option<usize> {
        let (done, least) = match finding.basis {
            Basis::Slices => (estimate.starts, FEWEST_STARTS),
            Basis::Blocks | Basis::Screen => (estimate.pairs, FEWEST_BLOCKS),
        };
        let is_under_way = finding.look_level == 0.0;
        let next = self.looks.next(done + finding.left_out);
        let next = next.filter(|_| is_under_way).map_or(0, |look| look.blocks);
        Some(next.max(least)).filter(|needed| *needed > done)
    }
}

/// Whether one group is slower than the base and the other faster.
fn are_on_both_sides(modes: &Modes) -> bool {
    modes.ratios.0 < 1.0 && modes.ratios.1 > 1.0
}

impl Modes {
    /// `4 of 6 at -7.0 %, 2 of 6 at +35.0 %`.
    pub fn words(&self) -> String {
        let all = self.starts.0 + self.starts.1;
        let group = |count: usize, ratio: f64| {
            format!("{count} of {all} at {:+.1} %", 100.0 * (ratio - 1.0))
        };
        format!(
            "{}, {}",
            group(self.starts.0, self.ratios.0),
            group(self.starts.1, self.ratios.1)
        )
    }
}

/// What is reported if so few pairs have no interval.
fn undecidable(finding: &Finding) -> String {
    let pairs = finding.estimate.map_or(0, |estimate| estimate.pairs);
    match finding.basis {
        Basis::Slices => format!(
            "cannot be decided with {} of one start: at least {FEWEST_STARTS} starts are needed",
            count(pairs, "round")
        ),
        _ => format!(
            "cannot be decided with {}, {} needed",
            count(pairs, "block"),
            FEWEST_BLOCKS
        ),
    }
}

/// What would decide where nothing was shown.
fn undecided(finding: &Finding, of: &Family<'_>) -> String {
    let Some(estimate) = finding.estimate else {
        return String::new();
    };
    let Family {
        size: family,
        margin,
        alpha,
        ..
    } = *of;
    let level = finding.look_level;
    if finding.basis == Basis::Slices {
        return format!(
            "neither a difference nor less than {:.0} % was shown: more starts narrow the interval",
            100.0 * margin
        );
    }
    let floor = blocks_to_decide(family, alpha);
    let are_ranks = estimate.error.is_none();
    if are_ranks && estimate.pairs < floor && estimate.p.is_some_and(|p| p <= level) {
        return format!(
            "one of {family} questions cannot be decided with {} blocks, {floor} needed",
            estimate.pairs
        );
    }
    // The spread of the pairs from their interval, and from it the blocks for a difference as large
    // as the margin.
    let deviation = spread(&finding.dots);
    let needed =
        deviation.and_then(|deviation| blocks_needed(margin.ln_1p() / deviation, alpha, 0.8, 1));
    match needed.filter(|needed| *needed > estimate.pairs) {
        Some(needed) => format!(
            "neither a difference nor less than {:.0} % was shown with {} blocks; {needed} would \
            show {:.0} % in four of five campaigns",
            100.0 * margin,
            estimate.pairs,
            100.0 * margin
        ),
        None => format!(
            "neither a difference nor less than {:.0} % was shown with {} blocks",
            100.0 * margin,
            estimate.pairs
        ),
    }
}

/// The standard deviation of the log ratios.
fn spread(ratios: &[f64]) -> Option<f64> {
    let n = ratios.len() as f64;
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (n >= 2.0 && variance > 0.0).then(|| variance.sqrt())
}
