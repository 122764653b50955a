//! Tests that differ only in their size: microseconds per statement and per row.
//!
//! `time = a + b x rows`, so that a difference in what a statement costs is told from one in what
//! its rows cost.

use std::collections::BTreeMap;

use plimsoll_core::plan::TestName;
use plimsoll_stats::{KnownVariance, LineParts, OverStarts, StartRatio, mean, over_starts};

use super::ratios::{Ratios, common, ratios, scale_of};
use crate::metrics::{Direction, Metric};
use crate::runs::attempts::Run;
use crate::runs::cell_runs::CellRuns;
use crate::steps::step_view::StepView;
use crate::verdicts::pairs::value;
use crate::verdicts::{Basis, Finding, Findings, Role};

/// Fewer sizes than this have no line: two are always on one.
const FEWEST_SIZES: usize = 3;
/// The level of the intervals.
const LEVEL: f64 = 0.95;

/// What a statement of one test costs in a cell and in the base, apart from its rows, and what a
/// row costs. All in microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct RowCost {
    /// The test without its range: `read-only`, `random-points.pre@8`.
    pub test: String,
    /// Index into the view's cells.
    pub cell: usize,
    /// Index into the view's cells of what it is held against.
    pub base: usize,
    /// Throughput for the time of a statement (clients / rate), or CPU.
    pub role: Role,
    /// The metric that it follows from.
    pub metric: &'static Metric,
    /// By rising size.
    pub sizes: Vec<SizeCost>,
    /// The line's value without rows.
    pub per_statement: CostPart,
    /// Its slope.
    pub per_row: CostPart,
    /// Starts or blocks behind it, which all sizes have.
    pub starts: usize,
    /// How many times as large as starts say errors are, because the base differs from itself.
    pub scale: f64,
    /// The largest distance of a size from the line, in the base or in the cell, as a share of its
    /// cost: where it is large, cost is not a straight line over rows.
    pub misfit: f64,
}

/// One size of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeCost {
    pub step: String,
    /// Rows per statement.
    pub rows: f64,
    /// Microseconds per statement.
    pub base_us: f64,
    pub cell_us: f64,
}

/// One coefficient of both lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostPart {
    pub base_us: f64,
    /// cell - base.
    pub difference_us: f64,
    /// The 95 % interval of the difference, over starts; `None` with fewer than two.
    pub interval: Option<(f64, f64)>,
}

impl CostPart {
    pub fn cell_us(&self) -> f64 {
        self.base_us + self.difference_us
    }

    /// Whether 0 is outside of the interval.
    pub fn is_clear(&self) -> bool {
        self.interval
            .is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }
}

/// A size before the fit.
pub(crate) struct Size {
    pub step: String,
    /// Rows per statement.
    pub rows: f64,
    /// Log ratios of the cost, cell / base.
    pub ratios: Ratios,
    /// Microseconds per statement of the base, by start.
    pub base_us: BTreeMap<u32, f64>,
    /// How many times as large as they say errors are.
    pub scale: f64,
}

/// A fit before its place is known.
pub(crate) struct Fitted {
    pub sizes: Vec<SizeCost>,
    pub per_statement: CostPart,
    pub per_row: CostPart,
    pub starts: usize,
    pub scale: f64,
    pub misfit: f64,
}

/// Every test of the campaign with three sizes or more, for each cell; where blocks are in parts, in
/// one of them. `control` is the base's second instance: a ratio by slices is to the mean of both.
pub(crate) fn row_costs(
    findings: &Findings,
    steps: &[StepView],
    cells: &[CellRuns<'_>],
    control: Option<&CellRuns<'_>>,
) -> Vec<RowCost> {
    let mut all = Vec::new();
    let mut tests: Vec<String> = Vec::new();
    for step in steps {
        let test = test_of(&step.name).map(|(test, _)| test);
        tests.extend(test.filter(|test| !tests.contains(test)));
    }
    for test in &tests {
        for cell in 0..cells.len() {
            for role in [Role::Throughput, Role::Cpu] {
                let is_of_it = |finding: &&Finding| {
                    let is_asked = (finding.cell, finding.role) == (cell, role);
                    let of = test_of(&finding.step).map(|(test, _)| test);
                    is_asked && finding.verdict().is_some() && of.as_ref() == Some(test)
                };
                let of_test: Vec<&Finding> = findings.all.iter().filter(is_of_it).collect();
                let Some(first) = of_test.first() else {
                    continue;
                };
                let mut of_parts: BTreeMap<Option<u32>, Vec<Size>> = BTreeMap::new();
                for finding in &of_test {
                    let part = part_of(&cells[finding.base], &finding.step);
                    let size = size(finding, steps, cells, control);
                    of_parts.entry(part).or_default().extend(size);
                }
                let most = of_parts.into_values().rev().max_by_key(Vec::len);
                let fitted = most.and_then(fitted);
                all.extend(fitted.map(|fitted| placed(test, first, fitted)));
            }
        }
    }
    all
}

/// The part of its blocks that a test runs in. Costs of two parts are not on one line: they may be
/// those of two machines, and are those of tables that other tests have worked on.
fn part_of(cell: &CellRuns<'_>, step: &str) -> Option<u32> {
    cell.used(step).find_map(|run| run.unit.part)
}

fn placed(test: &str, first: &Finding, fitted: Fitted) -> RowCost {
    RowCost {
        test: test.to_owned(),
        cell: first.cell,
        base: first.base,
        role: first.role,
        metric: first.metric,
        sizes: fitted.sizes,
        per_statement: fitted.per_statement,
        per_row: fitted.per_row,
        starts: fitted.starts,
        scale: fitted.scale,
        misfit: fitted.misfit,
    }
}

/// A step's test without its range, and the rows of a statement; `None` where a size has no effect.
pub(crate) fn test_of(step: &str) -> Option<(String, f64)> {
    let (name, level) = match step.split_once('@') {
        Some((name, level)) => (name, format!("@{level}")),
        None => (step, String::new()),
    };
    let test = TestName::parse(name)?;
    let rows = test.kind.rows(test.range)? as f64;
    let statements = f64::from(test.kind.statements().all());
    Some((
        format!("{}{level}", test.without_range()),
        rows / statements,
    ))
}

fn size(
    finding: &Finding,
    steps: &[StepView],
    cells: &[CellRuns<'_>],
    control: Option<&CellRuns<'_>>,
) -> Option<Size> {
    let (_, rows) = test_of(&finding.step)?;
    let step = steps.iter().find(|step| step.name == finding.step)?;
    let is_rate = finding.metric.direction == Direction::Higher;
    let base = &cells[finding.base];
    // Only by slices is the second instance a part of the base.
    let again = control.filter(|_| finding.basis == Basis::Slices);
    let mut logs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for instance in [base].into_iter().chain(again) {
        // By blocks the pairs below say which count.
        let counts = |run: &&Run<'_>| finding.basis == Basis::Blocks || !run.is_void;
        for run in instance.used(&step.name).filter(counts) {
            let cost = value(run, finding.metric.name).map(|value| match is_rate {
                true => f64::from(step.clients) * 1e6 / value,
                false => value,
            });
            logs.entry(run.unit.block)
                .or_default()
                .extend(cost.map(f64::ln));
        }
    }
    let known = logs.into_iter().filter(|(_, logs)| !logs.is_empty());
    let ratios = ratios(finding, cells).into_iter().map(|(start, of)| {
        let sign = if is_rate { -1.0 } else { 1.0 };
        let ratio = sign * of.ratio;
        (start, StartRatio { ratio, ..of })
    });
    Some(Size {
        step: step.name.clone(),
        rows,
        ratios: ratios.collect(),
        base_us: known
            .map(|(start, logs)| (start, mean(&logs).exp()))
            .collect(),
        scale: finding.estimate.map_or(1.0, |estimate| estimate.scale),
    })
}

/// The line through the base's costs and through the differences. Each size weighs by one over the
/// square of its cost: what is known of each is its ratio. All starts have the same weights, so the
/// line of a difference is the difference of two lines. `None` with too few sizes, or without a
/// start that all of them have.
pub(crate) fn fitted(mut sizes: Vec<Size>) -> Option<Fitted> {
    sizes.sort_by(|a, b| a.rows.total_cmp(&b.rows));
    sizes.dedup_by(|a, b| a.rows == b.rows);
    if sizes.len() < FEWEST_SIZES {
        return None;
    }
    let starts: Vec<u32> = common(sizes.iter().map(|size| &size.ratios))
        .into_iter()
        .filter(|start| sizes.iter().all(|size| size.base_us.contains_key(start)))
        .collect();
    if starts.is_empty() {
        return None;
    }
    let over = |of: &dyn Fn(&Size, u32) -> f64| -> Vec<f64> {
        let of_size = |size: &Size| {
            let all: Vec<f64> = starts.iter().map(|start| of(size, *start)).collect();
            mean(&all)
        };
        sizes.iter().map(of_size).collect()
    };
    let base_us = over(&|size, start| size.base_us[&start]);
    let change_us = over(&change_us);
    let rows: Vec<f64> = sizes.iter().map(|size| size.rows).collect();
    let weights: Vec<f64> = base_us.iter().map(|us| 1.0 / (us * us)).collect();
    let parts = LineParts::new(&rows, &weights)?;
    let scale = scale_of(sizes.iter().map(|size| size.scale));
    let (per_statement, per_row) = per_start(&parts, &sizes, &starts);
    let base = parts.line(&base_us);
    let costs: Vec<SizeCost> = sizes
        .iter()
        .zip(base_us.iter().zip(&change_us))
        .map(|(size, (base_us, change_us))| SizeCost {
            step: size.step.clone(),
            rows: size.rows,
            base_us: *base_us,
            cell_us: base_us + change_us,
        })
        .collect();
    Some(Fitted {
        per_statement: part(base.0, &per_statement, scale),
        per_row: part(base.1, &per_row, scale),
        starts: starts.len(),
        scale,
        misfit: misfit(&parts, &costs),
        sizes: costs,
    })
}

/// Microseconds that a statement of the cell takes more than the base's.
fn change_us(size: &Size, start: u32) -> f64 {
    size.base_us[&start] * size.ratios[&start].ratio.exp_m1()
}

/// Both coefficients of the line through the differences, start by start, with their errors.
fn per_start(
    parts: &LineParts,
    sizes: &[Size],
    starts: &[u32],
) -> (Vec<StartRatio>, Vec<StartRatio>) {
    let of_start = |start: &u32| {
        let changes: Vec<f64> = sizes.iter().map(|size| change_us(size, *start)).collect();
        let known: Option<Vec<KnownVariance>> = sizes
            .iter()
            .map(|size| {
                let of = size.ratios[start];
                let us = size.base_us[start] * of.ratio.exp();
                Some(of.within?.times(us * us))
            })
            .collect();
        let (at_zero, slope) = parts.line(&changes);
        let within = known.map(|known| {
            let errors: Vec<f64> = known.iter().map(|of| of.variance.sqrt()).collect();
            let degrees = known
                .iter()
                .map(|of| of.degrees)
                .fold(f64::INFINITY, f64::min);
            let (at_zero, slope) = parts.errors(&errors);
            [at_zero, slope].map(|error| KnownVariance::of_error(error, degrees))
        });
        let load = sizes.first().map_or(1, |size| size.ratios[start].load);
        let of = |ratio, within| StartRatio {
            ratio,
            within,
            load,
        };
        (
            of(at_zero, within.map(|[at_zero, _]| at_zero)),
            of(slope, within.map(|[_, slope]| slope)),
        )
    };
    starts.iter().map(of_start).unzip()
}

/// What starts say of a difference: it is microseconds here, not a log ratio.
fn part(base_us: f64, starts: &[StartRatio], scale: f64) -> CostPart {
    let differences: Vec<f64> = starts.iter().map(|start| start.ratio).collect();
    let known = match starts.len() {
        0 | 1 => None,
        _ => over_starts(starts, None),
    };
    let interval = known.map(|known| {
        let error = scale * known.error;
        OverStarts { error, ..known }.interval(LEVEL)
    });
    CostPart {
        base_us,
        difference_us: known.map_or_else(|| mean(&differences), |known| known.estimate),
        interval: interval.map(|interval| (interval.low, interval.high)),
    }
}

/// How far the sizes lie from the lines through them, as a share.
fn misfit(parts: &LineParts, costs: &[SizeCost]) -> f64 {
    let sides: [fn(&SizeCost) -> f64; 2] = [|of| of.base_us, |of| of.cell_us];
    let of_side = |of: fn(&SizeCost) -> f64| {
        let values: Vec<f64> = costs.iter().map(of).collect();
        let (at_zero, slope) = parts.line(&values);
        costs.iter().map(move |cost| {
            let value = of(cost);
            ((at_zero + slope * cost.rows - value) / value).abs()
        })
    };
    sides.into_iter().flat_map(of_side).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_stats::Stream;

    /// read-only transactions of 16 statements.
    const ROWS: [f64; 3] = [3.125, 25.625, 2500.625];
    const START_SD: f64 = 0.006;
    const WITHIN_SD: f64 = 0.004;

    /// Sizes of a base that costs 60 us and 0.2 us a row, and of a cell that costs `a` and `b`
    /// more.
    fn sizes(starts: u32, (a, b): (f64, f64), sd: f64, stream: &mut Stream) -> Vec<Size> {
        let size = |rows: f64| {
            let (base, cell) = (60.0 + 0.2 * rows, 60.0 + a + (0.2 + b) * rows);
            let mut ratios = Ratios::new();
            let mut base_us = BTreeMap::new();
            for start in 1..=starts {
                let of_base = sd * stream.normal();
                let ratio = (cell / base).ln() + sd * stream.normal() - of_base;
                let within = (sd > 0.0).then(|| KnownVariance::of_error(WITHIN_SD, 5.0));
                ratios.insert(
                    start,
                    StartRatio {
                        ratio,
                        within,
                        load: 1,
                    },
                );
                base_us.insert(start, base * of_base.exp());
            }
            Size {
                step: format!("rows {rows}"),
                rows,
                ratios,
                base_us,
                scale: 1.0,
            }
        };
        ROWS.map(size).into()
    }

    #[test]
    fn without_noise_the_truth_is_given_back() {
        let mut stream = Stream::new(1);
        let mut all = sizes(3, (7.1, 0.021), 0.0, &mut stream);
        all.reverse();
        let found = fitted(all).unwrap();
        let (a, b) = (found.per_statement, found.per_row);
        assert!((a.base_us - 60.0).abs() < 1e-9 && (a.difference_us - 7.1).abs() < 1e-9);
        assert!((b.base_us - 0.2).abs() < 1e-12 && (b.difference_us - 0.021).abs() < 1e-12);
        assert!((a.cell_us() - 67.1).abs() < 1e-9 && a.is_clear() && found.misfit < 1e-9);
        assert_eq!((found.starts, found.sizes[2].rows), (3, ROWS[2]));
    }

    #[test]
    fn a_curve_is_said_to_be_none() {
        let mut all = sizes(3, (0.0, 0.0), 0.0, &mut Stream::new(1));
        for us in all[1].base_us.values_mut() {
            *us *= 1.5;
        }
        assert!(fitted(all).unwrap().misfit > 0.1);
    }

    #[test]
    fn too_few_sizes_or_starts_have_no_line() {
        let mut stream = Stream::new(1);
        let mut all = sizes(3, (0.0, 0.0), START_SD, &mut stream);
        all.pop();
        assert!(fitted(all).is_none(), "two sizes");
        let mut all = sizes(3, (0.0, 0.0), START_SD, &mut stream);
        all[0].ratios.retain(|start, _| *start > 3);
        assert!(fitted(all).is_none(), "no start in common");
        let one = fitted(sizes(1, (5.0, 0.0), START_SD, &mut stream)).unwrap();
        assert_eq!((one.starts, one.per_statement.interval), (1, None));
        assert!(!one.per_statement.is_clear());
    }

    #[test]
    fn intervals_hold_the_truth_and_widen_with_the_control() {
        const TIMES: usize = 2000;
        let mut stream = Stream::new(2);
        let mut held = [0, 0];
        for _ in 0..TIMES {
            let found = fitted(sizes(5, (7.1, 0.021), START_SD, &mut stream)).unwrap();
            let parts = [(found.per_statement, 7.1), (found.per_row, 0.021)];
            for (held, (part, truth)) in held.iter_mut().zip(parts) {
                let (low, high) = part.interval.unwrap();
                *held += usize::from(low <= truth && truth <= high);
            }
        }
        // 95 % of 2,000 are 1,900, with a standard deviation of 10; starts that agree by chance are
        // as sure as their turns are, which holds a little more.
        assert!(
            held.iter().all(|held| (1880..=1940).contains(held)),
            "{held:?}"
        );
        let mut all = sizes(5, (7.1, 0.021), START_SD, &mut Stream::new(3));
        let plain = fitted(sizes(5, (7.1, 0.021), START_SD, &mut Stream::new(3))).unwrap();
        all.iter_mut().for_each(|size| size.scale = 2.0);
        let width = |of: &Fitted| of.per_row.interval.map(|(low, high)| high - low).unwrap();
        assert!((width(&fitted(all).unwrap()) / width(&plain) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn rows_are_those_of_a_statement() {
        let of = |step: &str| test_of(step).unwrap();
        assert_eq!(
            of("random-points_range=10"),
            ("random-points".to_owned(), 10.0)
        );
        assert_eq!(
            of("read-only.pre_range=100"),
            ("read-only.pre".to_owned(), 410.0 / 16.0)
        );
        assert_eq!(
            of("read-write_range=10@8"),
            ("read-write@8".to_owned(), 54.0 / 20.0)
        );
        assert_eq!(
            of("range-covered-pk"),
            ("range-covered-pk".to_owned(), 101.0)
        );
        assert_eq!(of("read-only-sum").1, 1010.0 / 13.0);
        for none in ["point-query", "scan", "l.i1", "write-only"] {
            assert_eq!(test_of(none), None, "{none}");
        }
    }

    /// Five starts of one load, and one of each of three others.
    #[test]
    fn the_difference_of_a_cost_is_that_of_its_interval() {
        let starts: Vec<StartRatio> = (1..=8)
            .map(|start| StartRatio {
                ratio: if start <= 5 { 2.0 } else { 0.0 },
                within: Some(KnownVariance::of_error(0.1, 3.0)),
                load: if start <= 5 { 1 } else { start },
            })
            .collect();
        let part = part(60.0, &starts, 1.0);
        let (low, high) = part.interval.unwrap();
        let middle = (low + high) / 2.0;
        assert!((part.difference_us - middle).abs() < 1e-9, "{part:?}");
    }
}
