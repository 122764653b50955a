//! A plan of the sysbench microbenchmarks: tests by name, sizes checked, every error with its
//! place.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use super::{Sysbench, SysbenchPreset, Test, TestKind, TestName, steps};
use crate::distribution::{
    Distribution, DistributionName, MOST_ZIPFIAN_EXPONENT, PARETO_H, ZIPFIAN_EXPONENT,
};
use crate::plan::document::{Document, Tables, Wait};
use crate::plan::keys::{DrainKeys, MOST_CLIENTS};
use crate::plan::sizes::{Benchmark, Own, allow_failures, value};
use crate::plan::{Ends, LoadMode, PlanError, Rate, Step, TablePlacement, WaitRule, WriteArrival};
use crate::source::Source;
use crate::suggest;
use crate::units::{SECOND_NS, format_grouped};
use crate::written::{Count, Duration, Share};

/// Ids are an `INTEGER`.
const MOST_ROWS: u64 = i32::MAX as u64;
const MOST_TABLES: u64 = 1000;
/// Per table.
const ROWS: u64 = 10_000_000;
/// The step that makes the tables.
const PREPARE: &str = "prepare";
/// How long tests run whose published time is fixed.
const FIXED_NS: u64 = 60 * SECOND_NS;
const READ_NS: u64 = 600 * SECOND_NS;
const WRITE_NS: u64 = 900 * SECOND_NS;
const WARM_UP_NS: u64 = 5 * SECOND_NS;

/// `[sizes]` of sysbench.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::plan) struct Sizes {
    clients: Option<Spanned<u32>>,
    tables: Option<Spanned<Tables>>,
    rows: Option<Spanned<Count>>,
    duration: Option<Spanned<Duration>>,
    write_duration: Option<Spanned<Duration>>,
    warm_up: Option<Spanned<Duration>>,
    arrival: Option<Spanned<WriteArrival>>,
    rate: Option<Spanned<u64>>,
    ramp: Option<Spanned<Vec<u32>>>,
    prepared: Option<Spanned<bool>>,
    load: Option<Spanned<LoadMode>>,
    distribution: Option<Spanned<DistributionName>>,
    zipfian_exponent: Option<Spanned<f64>>,
    pareto_h: Option<Spanned<f64>>,
}

/// `[step.NAME]` of sysbench.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::plan) struct Change {
    clients: Option<Spanned<u32>>,
    duration: Option<Spanned<Duration>>,
    wait: Option<Spanned<Wait>>,
    drain: Option<Spanned<bool>>,
    rate: Option<Spanned<u64>>,
    warm_up: Option<Spanned<Duration>>,
    max_failed: Option<Spanned<Share>>,
}

impl Benchmark for Sysbench {
    type Sizes = Sizes;
    type Change = Change;
    const NAME: &'static str = "sysbench";
    const STEP: &'static str = "a test of sysbench";
}

/// What the plan says about every test.
struct Common {
    preset: SysbenchPreset,
    clients: u32,
    tables: u32,
    read_ns: u64,
    write_ns: u64,
    warm_up_ns: u64,
    distribution: Distribution,
    zipfian_exponent: f64,
    rate: Option<u64>,
    is_poisson: bool,
}

impl Sysbench {
    /// The load and the tests that the tables of a report show.
    pub(in crate::plan) fn reported(&self) -> Vec<String> {
        self.steps
            .iter()
            .filter(|step| step.is_reported)
            .map(|step| step.name.clone())
            .collect()
    }
}

impl Source<'_> {
    pub(in crate::plan) fn sysbench(
        &self,
        document: &Document,
        own: &Own<Sysbench>,
        sizes: &Sizes,
        preset: SysbenchPreset,
    ) -> Result<Sysbench, PlanError> {
        self.refuse_list(
            &document.steps,
            "sysbench has no \"steps\": name its tests in \"tests\"",
        )?;
        let common = self.common(sizes, preset)?;
        let rows = self.rows_per_table(sizes.rows.as_ref())?;
        let load = value(&sizes.load).unwrap_or(LoadMode::Fast);
        let names = self.test_names(document, preset)?;
        self.check_ranges(
            document,
            &names,
            rows,
            sizes.rows.as_ref().map(Spanned::span),
        )?;
        let mut steps = vec![steps::prepare(PREPARE, common.tables, rows, load)];
        let tests = names.iter().map(|name| common.step(*name));
        match self.ramp(sizes.ramp.as_ref(), sizes.clients.as_ref())? {
            None => steps.extend(tests),
            Some(ramp) => steps.extend(
                tests.flat_map(|step| ramp.iter().map(move |&clients| step.at_clients(clients))),
            ),
        }
        // A ramp makes several steps of a test: the wait comes after the last of them.
        place_drains(&mut steps);
        for (name, change) in &own.step {
            let step = self.find_step(&mut steps, name)?;
            // Such a step is named after its clients: with others its name would be wrong.
            if let (Some(_), Some(clients), false) =
                (&sizes.ramp, &change.clients, step.makes_data())
            {
                let message = format!(
                    "{} has the clients that the ramp gives it: leave this out, or change \"ramp\"",
                    name.get_ref()
                );
                return Err(self.error(Some(clients.span()), message));
            }
            self.change_test(step, change, common.is_poisson)?;
        }
        if let Some(share) = &document.max_failed {
            allow_failures(&mut steps, share.get_ref().0);
        }
        let is_left_out = |name: &&&str| !names.iter().any(|chosen| chosen.text() == **name);
        Ok(Sysbench {
            sysbench: preset,
            clients: common.clients,
            tables: common.tables,
            rows,
            prepared: value(&sizes.prepared).unwrap_or(true),
            wait: document
                .wait
                .as_ref()
                .map_or(WaitRule::Classic, |wait| wait.get_ref().rule()),
            left_out: preset
                .order()
                .iter()
                .filter(is_left_out)
                .map(|name| (*name).to_owned())
                .collect(),
            steps,
        })
    }

    /// What the sizes say about every test.
    fn common(&self, sizes: &Sizes, preset: SysbenchPreset) -> Result<Common, PlanError> {
        let read_ns = self.test_duration(sizes.duration.as_ref(), READ_NS)?;
        // One duration is that of all tests.
        let write_ns = sizes.duration.as_ref().map_or(WRITE_NS, |_| read_ns);
        let zipfian_exponent = self.number(
            sizes.zipfian_exponent.as_ref(),
            ZIPFIAN_EXPONENT,
            0.0..MOST_ZIPFIAN_EXPONENT,
            "zipfian_exponent",
        )?;
        let pareto_h = self.number(
            sizes.pareto_h.as_ref(),
            PARETO_H,
            f64::MIN_POSITIVE..1.0,
            "pareto_h",
        )?;
        let distribution = value(&sizes.distribution).unwrap_or_default();
        Ok(Common {
            preset,
            clients: self.ranged(sizes.clients.as_ref(), 1, MOST_CLIENTS, "clients")?,
            tables: self.table_count(sizes.tables.as_ref())?,
            read_ns,
            write_ns: self.test_duration(sizes.write_duration.as_ref(), write_ns)?,
            warm_up_ns: value(&sizes.warm_up).map_or(WARM_UP_NS, |warm_up| warm_up.0),
            rate: sizes
                .rate
                .as_ref()
                .map(|rate| self.rate(rate))
                .transpose()?,
            is_poisson: self.is_poisson(sizes.arrival.as_ref(), "sysbench")?,
            distribution: distribution.with(zipfian_exponent, pareto_h),
            zipfian_exponent,
        })
    }

    fn rows_per_table(&self, rows: Option<&Spanned<Count>>) -> Result<u64, PlanError> {
        match rows {
            None => Ok(ROWS),
            Some(rows) if (1..=MOST_ROWS).contains(&rows.get_ref().0) => Ok(rows.get_ref().0),
            Some(rows) => Err(self.error(
                Some(rows.span()),
                format!("rows must be 1 to {} per table", format_grouped(MOST_ROWS)),
            )),
        }
    }

    fn table_count(&self, tables: Option<&Spanned<Tables>>) -> Result<u32, PlanError> {
        match tables.map(|tables| (tables, *tables.get_ref())) {
            None => Ok(1),
            Some((_, Tables::Count(count @ 1..=MOST_TABLES))) => Ok(count as u32),
            Some((_, Tables::Placement(TablePlacement::Shared))) => Ok(1),
            Some((tables, _)) => Err(self.error(
                Some(tables.span()),
                format!(
                    "tables must be a number from 1 to {}",
                    format_grouped(MOST_TABLES)
                ),
            )),
        }
    }

    /// The tests of the plan, in the order they run.
    fn test_names<'d>(
        &self,
        document: &'d Document,
        preset: SysbenchPreset,
    ) -> Result<Vec<TestName<'d>>, PlanError> {
        let order = preset.order();
        let Some(tests) = &document.tests else {
            return Ok(order
                .iter()
                .map(|name| TestName::parse(name).expect("a preset's tests are tests"))
                .collect());
        };
        let mut names: Vec<TestName<'_>> = Vec::new();
        for test in tests {
            let text = test.get_ref();
            let Some(name) = TestName::parse(text) else {
                let known = || order.iter().copied().chain(["distinct-ranges"]);
                let hint = suggest::hint(text, known());
                let preset = document.workload.get_ref().text();
                let message = format!(
                    "there is no test \"{text}\"{hint}; `plimsoll workload show {preset}` lists \
                    them"
                );
                return Err(self.error(Some(test.span()), message));
            };
            if names.contains(&name) {
                return Err(self.error(
                    Some(test.span()),
                    format!("the test \"{text}\" is named twice"),
                ));
            }
            names.push(name);
        }
        if names.is_empty() {
            return Err(self.error(
                Some(document.name.span()),
                "\"tests\" is empty: name at least one, or leave it out",
            ));
        }
        names.sort_by_key(|name| preset.position(*name));
        Ok(names)
    }

    /// A range that is larger than the table would be another test.
    fn check_ranges(
        &self,
        document: &Document,
        names: &[TestName<'_>],
        rows: u64,
        rows_span: Option<Range<usize>>,
    ) -> Result<(), PlanError> {
        let too_large =
            |name: &&TestName<'_>| name.kind.has_range() && u64::from(name.range) > rows;
        let Some(name) = names.iter().find(too_large) else {
            return Ok(());
        };
        let written = document
            .tests
            .iter()
            .flatten()
            .find(|test| TestName::parse(test.get_ref()) == Some(*name));
        let message = format!(
            "{} reads {} rows of tables of {} rows: raise rows, or leave it out of \"tests\"",
            name.text(),
            format_grouped(name.range.into()),
            format_grouped(rows)
        );
        Err(self.error(written.map(Spanned::span).or(rows_span), message))
    }

    fn change_test(
        &self,
        step: &mut Step,
        change: &Change,
        is_poisson: bool,
    ) -> Result<(), PlanError> {
        self.refuse_of_prepare(step, change)?;
        if let Some(rate) = &change.rate {
            step.arrival = Some(Rate {
                per_s: self.rate(rate)?,
                is_poisson,
            });
        }
        if let Some(clients) = &change.clients {
            let what = format!("clients of {}", step.name);
            step.clients = self.ranged(Some(clients), 1, MOST_CLIENTS, &what)?;
        }
        if let Some(ns) = step.duration_ns() {
            let ns = self.test_duration(change.duration.as_ref(), ns)?;
            step.set_duration(ns, value(&change.warm_up).map(|warm_up| warm_up.0));
        }
        if let Some(share) = &change.max_failed {
            step.max_failed = Some(share.get_ref().0);
        }
        self.override_drain(
            step,
            DrainKeys {
                wait: change.wait.as_ref(),
                drain: change.drain.as_ref(),
            },
        )
    }

    /// What a test may have and the load may not.
    fn refuse_of_prepare(&self, step: &Step, change: &Change) -> Result<(), PlanError> {
        if !step.makes_data() {
            return Ok(());
        }
        let rate = change.rate.as_ref().map(Spanned::span);
        let duration = change.duration.as_ref().map(Spanned::span);
        let warm_up = change.warm_up.as_ref().map(Spanned::span);
        let max_failed = change.max_failed.as_ref().map(Spanned::span);
        for (place, message) in [
            (rate, "prepare loads as fast as it can: it has no rate"),
            (
                duration,
                "prepare ends when its rows are there: it has no duration; set \"rows\"",
            ),
            (
                warm_up,
                "prepare is measured from its start: it has no warm_up",
            ),
            (max_failed, "prepare loads every row: it has no max_failed"),
        ] {
            if place.is_some() {
                return Err(self.error(place, message));
            }
        }
        Ok(())
    }
}

impl Common {
    fn step(&self, name: TestName<'_>) -> Step {
        let is_warming = name.variant.starts_with("warm");
        // The runner has fixed times for some, and gives write-only the time of reads.
        let duration_ns = match name.kind {
            TestKind::Scan if is_warming => self.read_ns.min(FIXED_NS),
            TestKind::WriteOnly => self.read_ns,
            kind if kind.is_write() => self.write_ns,
            _ => self.read_ns,
        };
        let distribution = match name.kind {
            TestKind::UpdateZipf => Distribution::Zipfian {
                exponent: self.zipfian_exponent,
            },
            _ => self.distribution,
        };
        let test = Test {
            kind: name.kind,
            range: name.range,
            distribution,
        };
        let ends = Ends::Time {
            ns: duration_ns,
            warm_up_ns: self.warm_up_ns,
        };
        // The first run warms up with a client for each table.
        let clients = if name.kind == TestKind::PointQuery && is_warming {
            self.tables
        } else {
            self.clients
        };
        Step {
            clients,
            arrival: self.rate.map(|per_s| Rate {
                per_s,
                is_poisson: self.is_poisson,
            }),
            is_reported: self.preset.reports(name.variant),
            ..steps::test(name.text(), test, ends)
        }
    }
}

/// Debt is worked off after the load, and after the last of the writes that come before the reads.
/// Deletes and inserts are the end.
fn place_drains(steps: &mut [Step]) {
    let is_load = |step: &Step| step.name == PREPARE || step.name == "point-query.warm";
    let last_load = steps
        .iter()
        .take_while(|step| is_load(step))
        .count()
        .checked_sub(1);
    let last_write = steps.iter().rposition(Step::is_early_write);
    for last in [last_load, last_write].into_iter().flatten() {
        steps[last].drain_after = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Plan, SysbenchWork, Work};

    const PLAN: &str = "name = \"t\"\nworkload = \"sysbench-2025\"\nbuilds = [\"sqlite\"]\nconfigs \
                       = [\"wal_full\"]\n";

    fn parse(text: &str) -> Sysbench {
        Plan::parse("t.toml", text).unwrap().cells[0]
            .workload
            .sysbench()
            .unwrap()
            .clone()
    }

    fn step<'a>(sysbench: &'a Sysbench, name: &str) -> &'a Step {
        let step = sysbench.steps.iter().find(|step| step.name == name);
        step.unwrap_or_else(|| panic!("no {name}"))
    }

    fn test(sysbench: &Sysbench, name: &str) -> (Test, u32) {
        let step = step(sysbench, name);
        let Work::Sysbench(SysbenchWork::Test(test)) = step.work else {
            panic!("{name} is no test")
        };
        (test, step.clients)
    }

    #[test]
    fn the_preset_has_the_published_sizes() {
        let sysbench = parse(&format!("{PLAN}[sizes]\ntables = 8\nclients = 16\n"));
        assert_eq!(
            (
                sysbench.rows,
                sysbench.tables,
                sysbench.steps.len(),
                sysbench.left_out.len()
            ),
            (10_000_000, 8, 39, 0)
        );
        let seconds = |name| step(&sysbench, name).duration_ns().unwrap() / SECOND_NS;
        assert_eq!(
            [
                "point-query",
                "write-only",
                "update-one",
                "scan.warm",
                "insert"
            ]
            .map(seconds),
            [600, 600, 900, 60, 900]
        );
        assert_eq!(
            ["point-query.warm", "point-query.pre", "delete"].map(|name| test(&sysbench, name).1),
            [8, 16, 16]
        );
        assert_eq!(
            test(&sysbench, "update-zipf").0.distribution,
            Distribution::Zipfian { exponent: 0.8 }
        );
        assert_eq!(
            test(&sysbench, "update-index").0.distribution,
            Distribution::Uniform
        );
        let drained: Vec<&str> = sysbench
            .steps
            .iter()
            .filter(|step| step.drain_after)
            .map(|step| step.name.as_str())
            .collect();
        assert_eq!(drained, ["point-query.warm", "read-write_range=100"]);
        let plan = Plan::parse("t.toml", PLAN).unwrap();
        assert_eq!(plan.report.len(), 1 + 32);
        assert_eq!(
            (
                plan.cells[0].workload.loaded_rows(),
                plan.cells[0].workload.connections()
            ),
            (10_000_000, 1)
        );
        assert_eq!(sysbench.wait.ns(80_000_000) / SECOND_NS, 140);
    }

    #[test]
    fn a_subset_keeps_the_order_and_says_what_it_left_out() {
        let sysbench = parse(&format!(
            "{PLAN}tests = [\"insert\", \"update-one\", \"distinct-ranges\", \"point-query\"]\n"
        ));
        let names: Vec<&str> = sysbench
            .steps
            .iter()
            .map(|step| step.name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "prepare",
                "update-one",
                "distinct-ranges",
                "point-query",
                "insert"
            ]
        );
        assert_eq!(sysbench.left_out.len(), 35);
        let drained: Vec<bool> = sysbench.steps.iter().map(|step| step.drain_after).collect();
        assert_eq!(drained, [true, true, false, false, false]);
    }

    #[test]
    fn a_ramp_runs_each_test_at_every_level() {
        let sysbench = parse(&format!(
            "{PLAN}tests = [\"point-query\", \"distinct-ranges\"]\n[sizes]\nramp = [1, 2, 64]\n"
        ));
        let names: Vec<(&str, u32)> = sysbench.steps[1..]
            .iter()
            .map(|step| (step.name.as_str(), step.clients))
            .collect();
        let expected = [
            ("distinct-ranges@1", 1),
            ("distinct-ranges@2", 2),
            ("distinct-ranges@64", 64),
            ("point-query@1", 1),
            ("point-query@2", 2),
        ];
        assert_eq!(names[..5], expected);
    }

    #[test]
    fn the_ramp_of_one_shape_leaves_the_others_their_clients() {
        let text = format!(
            "{PLAN}tests = [\"scan\"]\n[sizes]\nclients = 3\n[shapes.flat]\n[shapes.ramp]\nramp = \
            [1, 2]\n"
        );
        let plan = Plan::parse("t.toml", &text).unwrap();
        let clients = |cell: usize| {
            plan.cells[cell].workload.steps()[1..]
                .iter()
                .map(|step| step.clients)
                .collect::<Vec<_>>()
        };
        assert_eq!((clients(0), clients(1)), (vec![3], vec![1, 2]));
    }

    #[test]
    fn tests_may_have_a_rate() {
        let sysbench = parse(&format!(
            "{PLAN}[sizes]\narrival = \"poisson\"\n[step.point-query]\nrate = 500\n"
        ));
        assert_eq!(
            step(&sysbench, "point-query").arrival,
            Some(Rate {
                per_s: 500,
                is_poisson: true
            })
        );
        assert_eq!(step(&sysbench, "hot-points").arrival, None);
        assert_eq!(
            step(&parse(&format!("{PLAN}[sizes]\nrate = 7\n")), "scan").arrival,
            Some(Rate {
                per_s: 7,
                is_poisson: false
            })
        );
    }

    #[test]
    fn distributions_have_their_parameters() {
        let distribution = |text: &str| {
            test(&parse(&format!("{PLAN}[sizes]\n{text}\n")), "point-query")
                .0
                .distribution
        };
        assert_eq!(
            distribution("distribution = \"zipfian\"\nzipfian_exponent = 1.5"),
            Distribution::Zipfian { exponent: 1.5 }
        );
        assert_eq!(
            distribution("distribution = \"pareto\""),
            Distribution::Pareto { h: 0.2 }
        );
        assert_eq!(
            distribution("distribution = \"special\""),
            Distribution::Special
        );
    }

    #[test]
    fn bad_plans_say_where_and_what_to_do() {
        let cases = [
            (
                "tests = [\"point-qurey\"]",
                "t.toml:5:10: there is no test \"point-qurey\" (did you mean \"point-query\"?)",
            ),
            (
                "tests = [\"insert\", \"insert\"]",
                "t.toml:5:20: the test \"insert\" is named twice",
            ),
            ("tests = []", "\"tests\" is empty"),
            (
                "steps = [\"l.i0\"]",
                "t.toml:5:10: sysbench has no \"steps\": name its tests in \"tests\"",
            ),
            (
                "[sizes]\nrows = 0",
                "t.toml:6:8: rows must be 1 to 2,147,483,647 per table",
            ),
            (
                "[sizes]\nrows = 9999",
                "t.toml:6:8: read-only_range=10000 reads 10,000 rows of tables of 9,999 rows: \
                raise rows",
            ),
            (
                "tests = [\"random-points_range=51\"]\n[sizes]\nrows = 50",
                "t.toml:5:10: random-points_range=51 reads 51 rows of tables of 50",
            ),
            (
                "[sizes]\ntables = 0",
                "t.toml:6:10: tables must be a number from 1 to 1,000",
            ),
            (
                "[sizes]\ntables = \"per-client\"",
                "tables must be a number",
            ),
            (
                "[sizes]\nzipfian_exponent = -0.5",
                "t.toml:6:20: zipfian_exponent must be at least 0 and below 10, not -0.5",
            ),
            (
                "[sizes]\nzipfian_exponent = nan",
                "zipfian_exponent must be at least 0",
            ),
            (
                "[sizes]\npareto_h = 1.0",
                "pareto_h must be above 0 and below 1, not 1",
            ),
            (
                "[sizes]\nduration = \"10ms\"",
                "the duration of a test or step must be at least 100ms",
            ),
            (
                "[sizes]\nwrite_rows = 5",
                "t.toml:6:1: sysbench has no \"write_rows\": leave it out",
            ),
            (
                "[sizes]\nrate = 0",
                "rate must be 1 to 100,000,000 per second",
            ),
            (
                "[sizes]\narrival = \"classic-burst\"",
                "sysbench has no bursts",
            ),
            (
                "[step.prepare]\nrate = 5",
                "prepare loads as fast as it can: it has no rate",
            ),
            (
                "[sizes]\nramp = [4, 2]",
                "ramp must be rising numbers of clients",
            ),
            (
                "[sizes]\nclients = 3\nramp = [1, 2]",
                "t.toml:6:11: clients and ramp (line 7) exclude each other",
            ),
            (
                "tests = [\"scan\"]\n[sizes]\nramp = [1, 2]\n[shapes.a]\nclients = 4",
                "t.toml:9:11: clients and ramp (line 7) exclude each other",
            ),
            (
                "[sizes]\nramp = [1, 2]\n[step.\"scan@2\"]\nclients = 3",
                "t.toml:8:11: scan@2 has the clients that the ramp gives it",
            ),
            (
                "tests = [\"read-write\"]",
                "there is no test \"read-write\" (did you mean one of read-write_range=10, \
                read-write_range=100?); `plimsoll workload show sysbench-2025` lists them",
            ),
            (
                "[sizes]\nload = \"fats\"",
                "unknown value \"fats\" (did you mean \"fast\"?)",
            ),
            (
                "[step.prepare]\nduration = \"5s\"",
                "prepare ends when its rows are there",
            ),
            (
                "[step.scam]\nclients = 5",
                "this plan runs no step \"scam\" (did you mean \"scan\"?)",
            ),
            ("report = [\"scam\"]", "this plan runs no step \"scam\""),
        ];
        for (text, wanted) in cases {
            let found = Plan::parse("t.toml", &format!("{PLAN}{text}\n"))
                .unwrap_err()
                .to_string();
            assert!(
                found.contains(wanted),
                "{text}: wanted {wanted:?}\nfound  {found:?}"
            );
        }
        let other = PLAN.replace("sysbench-2025", "insert-benchmark");
        for (text, wanted) in [
            (
                "tests = [\"scan\"]",
                "the Insert Benchmark has no \"tests\": name its steps in \"steps\"",
            ),
            (
                "[step.\"l.i0\"]\nrate = 5",
                "a step of the Insert Benchmark has no \"rate\"",
            ),
            (
                "[sizes]\nprepared = true",
                "t.toml:6:1: the Insert Benchmark has no \"prepared\": leave it out",
            ),
            (
                "[sizes]\ntables = 4",
                "the Insert Benchmark has a table per client or one for all",
            ),
        ] {
            let found = Plan::parse("t.toml", &format!("{other}{text}\n"))
                .unwrap_err()
                .to_string();
            assert!(
                found.contains(wanted),
                "{text}: wanted {wanted:?}\nfound  {found:?}"
            );
        }
    }
}
