//! The tables of the microbenchmarks, in the published sections and order, and those of the ramp.

use plimsoll_core::plan::{Family, Operation, TestGroup};

use crate::classic::{Class, relative};
use crate::metrics::ratio::divide_measures;
use crate::metrics::value::at_least;
use crate::metrics::{self, Direction, Metric, sysbench};
use crate::runs::status::Status;
use crate::steps::classic_columns::{absolute_column, cell, relative_column};
use crate::steps::classic_table::ClassicCell;
use crate::steps::outcome::Outcome;
use crate::steps::step_view::StepView;
use crate::words::waiting;

/// Microbenchmarks, or steps of a workload file: a row per test, a column per cell, in the
/// published sections.
#[derive(Clone, Debug, PartialEq)]
pub struct TestTable {
    pub title: &'static str,
    /// What the numbers are.
    pub caption: String,
    /// What it is about.
    pub subject: TestSubject,
    /// The sections that have a row.
    pub sections: Vec<TestSection>,
}

/// What a table of microbenchmarks is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestSubject {
    /// Ratios of throughput to the base.
    Relative,
    Throughput,
    /// Response times of open loops, which is what these are run for.
    Response,
    /// What a statement costs.
    Cost,
}

/// A section of such a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TestSection {
    pub title: &'static str,
    /// The rows, in the published order.
    pub rows: Vec<TestRow>,
}

/// A test in such a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TestRow {
    pub step: String,
    /// One per cell of the view.
    pub cells: Vec<ClassicCell>,
}

/// A test over rising numbers of clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Ramp {
    /// The test, without its level.
    pub test: String,
    /// What the rate is.
    pub rate: &'static Metric,
    /// What `tps` counts: `transactions`, or `events` of a workload file.
    pub events: &'static str,
    /// The levels, rising.
    pub users: Vec<u32>,
    /// One per cell of the view.
    pub cells: Vec<RampCell>,
}

const EVENTS: &str = Operation::Event.plural();

/// A cell's part in a ramp.
#[derive(Clone, Debug, PartialEq)]
pub struct RampCell {
    /// One per level, in its order.
    pub levels: Vec<RampLevel>,
    /// The highest rate: its place in the levels.
    pub peak: Option<usize>,
    /// The first level with at least 90 % of the highest rate: more clients gain little.
    pub knee: Option<usize>,
}

/// A level of a ramp in a cell. Times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RampLevel {
    /// How the step ended.
    pub status: Status,
    pub rate: Option<f64>,
    /// Transactions per second.
    pub tps: Option<f64>,
    /// Service times: mean, 95th and 99th percentile, longest.
    pub service_us: [Option<f64>; 4],
    /// The 99th percentile of response times, where events were due at a rate.
    pub p99_response_us: Option<f64>,
    /// Seconds of waiting that the service times do not have, where it is more than next to
    /// nothing.
    pub excluded_wait_s: Option<f64>,
    /// That percentile is the least that it may be.
    pub is_lower_bound: bool,
}

impl Ramp {
    /// What a column of `tps` is called.
    pub fn events_heading(&self) -> &'static str {
        if self.events == EVENTS {
            "events/s"
        } else {
            "tps"
        }
    }

    /// Whether any level had a schedule, and so response times.
    pub fn is_open_loop(&self) -> bool {
        self.cells
            .iter()
            .flat_map(|cell| &cell.levels)
            .any(|level| level.p99_response_us.is_some())
    }
}

/// At this share of the highest rate a ramp has its knee.
const KNEE_SHARE: f64 = 0.9;

/// What an operation costs: metric, heading, caption, whether it is reported per statement.
const COSTS: [(&Metric, &str, &str, bool); 11] = [
    (
        metrics::SERVER_CPU_US_PER_OP,
        "Server CPU per statement",
        "microseconds of the server's processes",
        true,
    ),
    (
        metrics::PROCESS_CPU_US_PER_OP,
        "CPU per statement",
        "microseconds of engine and client, which share a process",
        true,
    ),
    (
        metrics::CLIENT_CPU_US_PER_OP,
        "Client CPU per statement",
        "microseconds of the program that makes the load",
        true,
    ),
    (
        metrics::CPUPQ,
        "Host CPU per statement",
        "microseconds of the whole host, whatever ran",
        true,
    ),
    (
        metrics::CSPQ,
        "Context switches per statement",
        "of the whole host: they grow with contention",
        true,
    ),
    (
        metrics::RPQ,
        "Storage reads per statement",
        "of the data directory's device",
        true,
    ),
    (
        metrics::RKBPQ,
        "KiB read per statement",
        "from storage",
        true,
    ),
    (
        sysbench::WKBPQ,
        "KiB written per statement",
        "to storage: write amplification shows here",
        true,
    ),
    (
        sysbench::P95_SERVICE_US,
        "95th percentile of service time",
        "microseconds",
        false,
    ),
    (
        metrics::P99_SERVICE_US,
        "99th percentile of service time",
        "microseconds",
        false,
    ),
    (
        sysbench::HIT_RATIO,
        "Deletes that found a row",
        "share: deletes empty the tables, and faster engines find fewer rows",
        false,
    ),
];

/// The words of tests and of steps of workload files.
struct Words {
    has_tests: bool,
    has_files: bool,
}

impl Words {
    fn of(steps: &[&StepView]) -> Self {
        let is_of_file = |step: &&StepView| step.family == Some(Family::File);
        Self {
            has_tests: !steps.iter().all(is_of_file),
            has_files: steps.iter().any(is_of_file),
        }
    }

    fn event(&self) -> &'static str {
        match (self.has_tests, self.has_files) {
            (true, true) => "a transaction or event",
            (false, true) => "an event",
            _ => "a transaction",
        }
    }

    /// What is added for scans, which only sysbench has.
    fn scan<'a>(&self, words: &'a str) -> &'a str {
        if self.has_tests { words } else { "" }
    }
}

/// Relative throughput first, then throughput, the response times of open loops, and the ratios of
/// what a statement costs. Ratios of a lone cell to itself say nothing.
pub(crate) fn test_tables(steps: &[&StepView]) -> Vec<TestTable> {
    let steps: Vec<&StepView> = steps
        .iter()
        .copied()
        .filter(|step| step.test.is_some_and(|test| test.level.is_none()))
        .collect();
    if steps.is_empty() {
        return Vec::new();
    }
    // Campaigns of sysbench and of a workload file may be shown together: captions fit both.
    let words = Words::of(&steps);
    let mut tables = Vec::new();
    if steps[0].outcomes.len() > 1 {
        let caption = "value / base: above 1 is faster than the base".to_owned();
        tables.push(table(
            "Relative throughput",
            caption,
            TestSubject::Relative,
            &steps,
            relative_column,
        ));
    }
    let caption = format!(
        "statements per second of all clients, BEGIN and COMMIT included{}",
        words.scan("; scan: thousands of rows per second of one client")
    );
    tables.push(table(
        "Throughput",
        caption,
        TestSubject::Throughput,
        &steps,
        absolute_column,
    ));
    let with = |metric: &Metric| -> Vec<&StepView> {
        let has_value = |step: &&StepView| {
            step.outcomes
                .iter()
                .any(|outcome| outcome.number(metric).is_some_and(|value| value > 0.0))
        };
        steps.iter().copied().filter(has_value).collect()
    };
    let open = with(P99_RESPONSE);
    if !open.is_empty() {
        let caption = format!(
            "microseconds of {} from the instant it was due; steps with a rate only",
            words.event()
        );
        tables.push(table(
            "99th percentile of response time",
            caption,
            TestSubject::Response,
            &open,
            |step| cost_column(step, P99_RESPONSE),
        ));
    }
    for (metric, title, caption, is_per_statement) in COSTS {
        if with(metric).is_empty() {
            continue;
        }
        let is_time = [sysbench::P95_SERVICE_US, metrics::P99_SERVICE_US].contains(&metric);
        let caption = if is_time {
            format!("{caption} of {}", words.event())
        } else if is_per_statement {
            format!("{caption}{}", words.scan("; scan: per 1000 rows"))
        } else {
            caption.to_owned()
        };
        tables.push(table(title, caption, TestSubject::Cost, &steps, |step| {
            cost_column(step, metric)
        }));
    }
    tables
}

/// What the callers of an open loop see.
const P99_RESPONSE: &Metric = metrics::P99_RESPONSE_US;

fn table(
    title: &'static str,
    caption: String,
    subject: TestSubject,
    steps: &[&StepView],
    column: impl Fn(&StepView) -> Vec<ClassicCell>,
) -> TestTable {
    let section = |group: Option<TestGroup>| {
        let mut of_group: Vec<_> = steps
            .iter()
            .filter_map(|step| {
                step.test
                    .filter(|test| test.group == group)
                    .map(|test| (test.position, *step))
            })
            .collect();
        of_group.sort_by_key(|(position, _)| *position);
        let rows = of_group.into_iter().map(|(_, step)| TestRow {
            step: step.name.clone(),
            cells: column(step),
        });
        TestSection {
            title: group.map_or("steps of the workload", TestGroup::title),
            rows: rows.collect(),
        }
    };
    let sections = TestGroup::ALL
        .into_iter()
        .map(Some)
        .chain([None])
        .map(section)
        .filter(|section| !section.rows.is_empty())
        .collect();
    TestTable {
        title,
        caption,
        subject,
        sections,
    }
}

/// The value, and behind it the ratio to the base.
fn cost_column(step: &StepView, metric: &Metric) -> Vec<ClassicCell> {
    let decimals = metric.decimals;
    let is_judged = metric.direction != Direction::Neutral || metric.name.ends_with("_us_per_op");
    let base = step.outcomes[0].number(metric);
    let of_outcome = |(i, outcome): (usize, &Outcome)| {
        let value = outcome.number(metric);
        let at_least = at_least(
            outcome
                .measure(metric)
                .is_some_and(|measure| measure.value.is_lower_bound),
        );
        let number = value.map(|value| {
            match divide_measures(outcome.measure(metric), step.outcomes[0].measure(metric)) {
                Ok(ratio) if i > 0 => format!("{at_least}{value:.decimals$} ({ratio})"),
                _ => format!("{at_least}{value:.decimals$}"),
            }
        });
        let class = match (value, base) {
            // Less is better: coloured by the inverse.
            (Some(value), Some(base)) if i > 0 && value > 0.0 && base > 0.0 && is_judged => {
                relative::classify(base, value)
            }
            _ => Class::Plain,
        };
        cell(outcome, number, class)
    };
    step.outcomes.iter().enumerate().map(of_outcome).collect()
}

/// A ramp for each test that has levels.
pub(crate) fn ramps(steps: &[&StepView]) -> Vec<Ramp> {
    let mut ramps: Vec<(String, Vec<(u32, &StepView)>)> = Vec::new();
    for step in steps {
        let (Some(level), Some((test, _))) = (
            step.test.and_then(|test| test.level),
            step.name.split_once('@'),
        ) else {
            continue;
        };
        match ramps.iter_mut().find(|(known, _)| known == test) {
            Some((_, levels)) => levels.push((level, step)),
            None => ramps.push((test.to_owned(), vec![(level, step)])),
        }
    }
    let ramp = |(test, mut levels): (String, Vec<(u32, &StepView)>)| {
        levels.sort_by_key(|(level, _)| *level);
        let rate = levels[0].1.rate;
        let cells = (0..levels[0].1.outcomes.len()).map(|cell| {
            let levels: Vec<RampLevel> = levels
                .iter()
                .map(|(_, step)| ramp_level(step, cell))
                .collect();
            let peak = peak(&levels);
            RampCell {
                knee: knee(&levels, peak),
                peak,
                levels,
            }
        });
        let events = if levels[0].1.family == Some(Family::File) {
            EVENTS
        } else {
            "transactions"
        };
        Ramp {
            test,
            rate,
            events,
            users: levels.iter().map(|(level, _)| *level).collect(),
            cells: cells.collect(),
        }
    };
    ramps.into_iter().map(ramp).collect()
}

/// What a step is as a level of a ramp in a cell.
pub(crate) fn ramp_level(step: &StepView, cell: usize) -> RampLevel {
    let outcome = &step.outcomes[cell];
    let times = [
        sysbench::MEAN_SERVICE_US,
        sysbench::P95_SERVICE_US,
        metrics::P99_SERVICE_US,
        metrics::MAX_SERVICE_US,
    ];
    RampLevel {
        status: outcome.status,
        rate: outcome.number(step.rate),
        tps: outcome.number(sysbench::TPS),
        service_us: times.map(|metric| outcome.number(metric)),
        p99_response_us: outcome.number(P99_RESPONSE),
        excluded_wait_s: outcome
            .number(metrics::EXCLUDED_WAIT_S)
            .and_then(waiting::worth_telling),
        is_lower_bound: outcome
            .measure(P99_RESPONSE)
            .is_some_and(|measure| measure.value.is_lower_bound),
    }
}

fn peak(levels: &[RampLevel]) -> Option<usize> {
    let rates = levels
        .iter()
        .enumerate()
        .filter_map(|(i, level)| Some((i, level.rate?)));
    // Of equal ones the first.
    rates
        .fold(None, |best: Option<(usize, f64)>, (i, rate)| match best {
            Some((_, highest)) if highest >= rate => best,
            _ => Some((i, rate)),
        })
        .map(|(i, _)| i)
}

fn knee(levels: &[RampLevel], peak: Option<usize>) -> Option<usize> {
    let highest = levels[peak?].rate?;
    levels
        .iter()
        .position(|level| level.rate.is_some_and(|rate| rate >= highest * KNEE_SHARE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::status::Status;

    #[test]
    fn a_ramp_has_its_peak_and_before_it_its_knee() {
        let levels = |rates: &[f64]| -> Vec<RampLevel> {
            rates
                .iter()
                .map(|rate| RampLevel {
                    status: Status::Ok,
                    rate: (*rate > 0.0).then_some(*rate),
                    tps: None,
                    service_us: [None; 4],
                    p99_response_us: None,
                    excluded_wait_s: None,
                    is_lower_bound: false,
                })
                .collect()
        };
        for (rates, found) in [
            (&[10.0, 19.0, 33.0, 36.0, 35.0][..], (Some(3), Some(2))),
            (&[10.0, 20.0, 40.0], (Some(2), Some(2))),
            (&[0.0, 5.0, 5.0], (Some(1), Some(1))),
            (&[0.0], (None, None)),
        ] {
            let levels = levels(rates);
            let peak = peak(&levels);
            assert_eq!((peak, knee(&levels, peak)), found, "{rates:?}");
        }
    }
}
