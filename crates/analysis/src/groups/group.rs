//! The tests of one section of the microbenchmarks together.

use std::collections::BTreeMap;

use plimsoll_core::plan::TestGroup;
use plimsoll_stats::{
    FEWEST_STARTS, KnownVariance, OverStarts, Policy, StartRatio, StartsPrior, StartsVariance,
    Verdict, benjamini_hochberg, mean, over_starts,
};

use super::ratios::{Ratios, common, ratios, scale_of};
use crate::runs::cell_runs::CellRuns;
use crate::steps::step_view::StepView;
use crate::verdicts::{Basis, Estimate, Finding, Findings, LEAST, OfClass, Role};

/// The level of the intervals.
const LEVEL: f64 = 0.95;
/// Fewer tests than this are not a group.
const FEWEST_TESTS: usize = 2;
/// A campaign with one group needs as many tests in it to have a line on it.
const FEWEST_OF_ONE: usize = 4;

/// What the tests of a section report together about one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub section: TestGroup,
    /// Clients, where its tests are one level of a ramp.
    pub level: Option<u32>,
    /// Index into the view's cells.
    pub cell: usize,
    /// Index into the view's cells of what it is held against.
    pub base: usize,
    /// Throughput or CPU per operation.
    pub role: Role,
    pub basis: Basis,
    /// Its tests, in the order of the plan.
    pub tests: Vec<String>,
    /// Tests of the section without a verdict, or with fewer starts than a verdict needs: they are
    /// in no number here.
    pub left_out: Vec<String>,
    /// How many of its tests regressed.
    pub regressed: usize,
    /// How many of its tests improved.
    pub improved: usize,
    /// New / base: the geometric mean over tests in each start that all of them have, then the mean
    /// over starts. Its `pairs` are ratios of single tests. `None` if they have no start in common.
    pub estimate: Option<Estimate>,
    /// The p after correction over groups and cells.
    pub p_adjusted: Option<f64>,
    pub verdict: Verdict,
    /// New / base in each start or block that counts, by its number.
    pub by_start: Vec<(u32, f64)>,
}

/// What a group is made from.
pub(crate) struct Material {
    /// All but the numbers.
    pub group: Group,
    /// Whether less is better.
    pub is_cost: bool,
    /// By test.
    pub ratios: Vec<Ratios>,
    /// The level of the look that all its tests have reached.
    pub look_level: f64,
    /// How many times as large as they say errors are.
    pub scale: f64,
}

/// A line per section and cell of the view; empty for a survey, and if the campaign has one section
/// with few tests.
pub(crate) fn groups(
    findings: &Findings,
    steps: &[StepView],
    cells: &[CellRuns<'_>],
) -> Vec<Group> {
    let mut sections: Vec<(TestGroup, Option<u32>)> = steps.iter().filter_map(section_of).collect();
    sections.sort_unstable();
    sections.dedup();
    let mut all = Vec::new();
    for role in [Role::Throughput, Role::Cpu] {
        for section in &sections {
            for cell in 0..cells.len() {
                let of_section = |finding: &&Finding| {
                    let mut steps = steps.iter();
                    finding.role == role
                        && finding.cell == cell
                        && steps
                            .find(|step| step.name == finding.step)
                            .and_then(section_of)
                            == Some(*section)
                };
                let tests: Vec<&Finding> = findings.all.iter().filter(of_section).collect();
                all.extend(material(*section, &tests, cells));
            }
        }
    }
    if !is_worth_lines(&all) {
        return Vec::new();
    }
    judged(all, findings.margin)
}

fn section_of(step: &StepView) -> Option<(TestGroup, Option<u32>)> {
    let place = step.test?;
    Some((place.group?, place.level))
}

/// Two groups, or one of several tests: lines on less would repeat the verdicts.
fn is_worth_lines(all: &[Material]) -> bool {
    let most = all.iter().map(|of| of.group.tests.len()).max().unwrap_or(0);
    let mut sections: Vec<_> = all
        .iter()
        .map(|of| (of.group.section, of.group.level))
        .collect();
    sections.sort_unstable();
    sections.dedup();
    sections.len() >= 2 || most >= FEWEST_OF_ONE
}

fn material(
    (section, level): (TestGroup, Option<u32>),
    findings: &[&Finding],
    cells: &[CellRuns<'_>],
) -> Option<Material> {
    let first = findings.first()?;
    let read: Vec<(&Finding, Ratios)> = findings
        .iter()
        .map(|finding| {
            let has_verdict = finding.verdict().is_some();
            let ratios = has_verdict.then(|| ratios(finding, cells));
            (*finding, ratios.unwrap_or_default())
        })
        .collect();
    // One test with few starts must not take the others' from the group.
    let most = read.iter().map(|(_, ratios)| ratios.len()).max()?;
    let needed = most.clamp(1, FEWEST_STARTS);
    let (used, out): (Vec<_>, Vec<_>) = read
        .into_iter()
        .partition(|(_, ratios)| ratios.len() >= needed);
    if used.len() < FEWEST_TESTS {
        return None;
    }
    let names = |of: &[(&Finding, Ratios)]| of.iter().map(|of| of.0.step.clone()).collect();
    let called = |verdict| {
        let is_called = |of: &&(&Finding, Ratios)| of.0.verdict() == Some(verdict);
        used.iter().filter(is_called).count()
    };
    let scales = used.iter().filter_map(|(finding, _)| finding.estimate);
    let look_levels = used.iter().map(|(finding, _)| finding.look_level);
    Some(Material {
        is_cost: first.metric.direction.is_cost(),
        scale: scale_of(scales.map(|estimate| estimate.scale)),
        look_level: look_levels.fold(1.0, f64::min),
        group: Group {
            section,
            level,
            cell: first.cell,
            base: first.base,
            role: first.role,
            basis: first.basis,
            tests: names(&used),
            left_out: names(&out),
            regressed: called(Verdict::Regression),
            improved: called(Verdict::Improvement),
            estimate: None,
            p_adjusted: None,
            verdict: Verdict::Inconclusive,
            by_start: Vec::new(),
        },
        ratios: used.into_iter().map(|(_, ratios)| ratios).collect(),
    })
}

/// The groups with their numbers. A role is a family, and so is a class of variances, together with
/// whether tests write; a section whose loads the others contradict has a variance of its own.
pub(crate) fn judged(all: Vec<Material>, margin: f64) -> Vec<Group> {
    let starts: Vec<Vec<(u32, StartRatio)>> = all.iter().map(|of| means(&of.ratios)).collect();
    let class = |of: &Material| (of.group.role, of.group.section == TestGroup::Write);
    let section = |of: &Material| (of.group.section, of.group.level);
    let mut known: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (of, starts) in all.iter().zip(&starts) {
        let variance = StartsVariance::of(&plain(starts)).map(|variance| (section(of), variance));
        known.entry(class(of)).or_default().extend(variance);
    }
    let classes: BTreeMap<_, OfClass<_>> = known
        .into_iter()
        .filter_map(|(class, known)| Some((class, OfClass::new(&known)?)))
        .collect();
    let mut groups: Vec<(Group, Material)> = all
        .into_iter()
        .zip(&starts)
        .map(|(of, starts)| {
            let of_class = classes.get(&class(&of));
            let prior = of_class.map(|known| known.of_step(&section(&of)));
            let group = Group {
                estimate: estimate(&of, starts, prior),
                by_start: starts
                    .iter()
                    .map(|(start, of)| (*start, of.ratio.exp()))
                    .collect(),
                ..of.group.clone()
            };
            (group, of)
        })
        .collect();
    for role in [Role::Throughput, Role::Cpu] {
        let family = groups.iter_mut().filter(|(group, _)| group.role == role);
        call(family.collect(), margin);
    }
    groups.into_iter().map(|(group, _)| group).collect()
}

fn plain(starts: &[(u32, StartRatio)]) -> Vec<StartRatio> {
    starts.iter().map(|(_, of)| *of).collect()
}

/// The mean over tests in each start that all of them have, with the error of that mean.
pub(super) fn means(tests: &[Ratios]) -> Vec<(u32, StartRatio)> {
    let of_start = |start: u32| {
        let of: Vec<StartRatio> = tests.iter().map(|ratios| ratios[&start]).collect();
        let ratios: Vec<f64> = of.iter().map(|of| of.ratio).collect();
        let squares = of.iter().filter_map(|of| of.within);
        let mean = StartRatio {
            ratio: mean(&ratios),
            within: KnownVariance::mean(squares)
                .map(|of_tests| of_tests.times(1.0 / of.len() as f64)),
            load: of.first().map_or(1, |of| of.load),
        };
        (start, mean)
    };
    common(tests).into_iter().map(of_start).collect()
}

/// One start alone has a ratio and no interval: how far starts lie apart is not known.
fn estimate(
    of: &Material,
    starts: &[(u32, StartRatio)],
    prior: Option<StartsPrior>,
) -> Option<Estimate> {
    let starts = plain(starts);
    let ratios: Vec<f64> = starts.iter().map(|start| start.ratio).collect();
    let known: Option<OverStarts> = match starts.len() {
        0 => return None,
        1 => None,
        _ => over_starts(&starts, prior),
    };
    let ends = |level: f64| {
        let interval = known?.interval(level);
        Some((interval.low.exp(), interval.high.exp()))
    };
    let estimate = Estimate {
        // From several loads on they count once, and not each start.
        ratio: known
            .map_or_else(|| mean(&ratios), |known| known.estimate)
            .exp(),
        interval: ends(LEVEL),
        level: LEVEL,
        starts: starts.len(),
        pairs: starts.len() * of.ratios.len(),
        p: known.map(|known| known.p),
        at_look: match of.look_level > 0.0 {
            true => ends(1.0 - of.look_level),
            false => None,
        },
        error: known.map(|known| (known.error, known.degrees)),
        typical: None,
        scale: 1.0,
    };
    Some(estimate.with_errors_times(of.scale))
}

/// The verdicts of one family.
fn call(mut family: Vec<&mut (Group, Material)>, margin: f64) {
    let p = |of: &(Group, Material)| of.0.estimate.and_then(|estimate| estimate.p).unwrap_or(1.0);
    let all: Vec<f64> = family.iter().map(|of| p(of)).collect();
    for ((group, of), p_adjusted) in family
        .iter_mut()
        .map(|of| &mut **of)
        .zip(benjamini_hochberg(&all))
    {
        let Some(estimate) = group.estimate.filter(|of| of.starts >= FEWEST_STARTS) else {
            continue;
        };
        let Some(interval) = estimate.log_interval_at_look() else {
            continue;
        };
        group.p_adjusted = Some(p_adjusted);
        let policy = Policy {
            margin: margin.ln_1p(),
            least: LEAST,
            level: of.look_level,
        };
        let log = estimate.ratio.ln();
        group.verdict = match of.is_cost {
            true => Verdict::of(-log, interval.negated(), p_adjusted, policy),
            false => Verdict::of(log, interval, p_adjusted, policy),
        };
    }
}
