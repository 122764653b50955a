//! A plan of RocksDB's benchmark: sizes checked, steps of the sequence, every error with its place.

use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use super::{KEY_BYTES, RocksdbBench, Sequence, StepProcess, VALUE_BYTES};
use crate::plan::document::{Document, Wait};
use crate::plan::keys::{DrainKeys, MOST_CLIENTS, MOST_ROWS};
use crate::plan::sizes::{Benchmark, Own, allow_failures, value};
use crate::plan::{Cell, Driver, Ends, PlanError, Rate, Step, WaitRule, Workload, WriteArrival};
use crate::source::{Source, span};
use crate::units::{GIB, MIB, SECOND_NS, format_bytes, format_grouped};
use crate::written::{ByteSize, Count, Duration, Share};

/// As the wrapper scripts pass it.
const BACKGROUND_BYTES_PER_S: u64 = 2 * MIB;
/// More than memory takes; a slip of the pen.
const MOST_BACKGROUND_BYTES_PER_S: u64 = 100 * GIB;
/// As the seed's command line has it.
const KEYS: u64 = 40_000_000;
const DURATION_NS: u64 = 3600 * SECOND_NS;
const WHAT: &str = "the benchmark of RocksDB";

/// `[sizes]` of RocksDB's benchmark.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::plan) struct Sizes {
    clients: Option<Spanned<u32>>,
    rows: Option<Spanned<Count>>,
    duration: Option<Spanned<Duration>>,
    warm_up: Option<Spanned<Duration>>,
    arrival: Option<Spanned<WriteArrival>>,
    background_rate: Option<Spanned<ByteSize>>,
    process: Option<Spanned<StepProcess>>,
    warm_cache: Option<Spanned<bool>>,
    /// Only single steps have one; it is here for a better error.
    rate: Option<Spanned<IgnoredAny>>,
}

/// `[step.NAME]` of RocksDB's benchmark.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::plan) struct Change {
    duration: Option<Spanned<Duration>>,
    wait: Option<Spanned<Wait>>,
    drain: Option<Spanned<bool>>,
    rate: Option<Spanned<u64>>,
    warm_up: Option<Spanned<Duration>>,
    max_failed: Option<Spanned<Share>>,
    /// They are a part of the step's name; they are here for a better error.
    clients: Option<Spanned<IgnoredAny>>,
}

impl Benchmark for RocksdbBench {
    type Sizes = Sizes;
    type Change = Change;
    const NAME: &'static str = WHAT;
    const STEP: &'static str = "a step of RocksDB";
}

impl Source<'_> {
    pub(in crate::plan) fn rocksdb(
        &self,
        document: &Document,
        own: &Own<RocksdbBench>,
        sizes: &Sizes,
    ) -> Result<RocksdbBench, PlanError> {
        if let Some(rate) = &sizes.rate {
            let message = format!(
                "{WHAT} has no \"rate\" for all steps: name one in its table, \
                [step.readwhilewriting] rate = ..."
            );
            return Err(self.error(Some(rate.span()), message));
        }
        self.refuse_list(
            &document.tests,
            &format!("{WHAT} has no \"tests\": name its steps in \"steps\""),
        )?;
        let sequence = Sequence {
            keys: self.keys(sizes.rows.as_ref())?,
            clients: self.ranged(sizes.clients.as_ref(), 1, MOST_CLIENTS, "clients")?,
            timed: Ends::Time {
                ns: self.test_duration(sizes.duration.as_ref(), DURATION_NS)?,
                warm_up_ns: value(&sizes.warm_up).map_or(0, |warm_up| warm_up.0),
            },
            background_bytes_per_s: self.background_rate(sizes.background_rate.as_ref())?,
        };
        let mut steps = sequence.steps();
        let is_poisson = self.is_poisson(sizes.arrival.as_ref(), WHAT)?;
        for (name, change) in &own.step {
            let step = self.find_step(&mut steps, name)?;
            self.change_kv(step, change, is_poisson)?;
        }
        if let Some(share) = &document.max_failed {
            allow_failures(&mut steps, share.get_ref().0);
        }
        if let Some(wanted) = &document.steps {
            // What changes nothing in the tree is not missed by the steps after it.
            let is_optional = |step: &Step| !step.is_writing() && step.background.is_none();
            steps = self.select_steps(steps, wanted, is_optional, "steps that only read")?;
        }
        Ok(RocksdbBench {
            keys: sequence.keys,
            clients: sequence.clients,
            process: value(&sizes.process).unwrap_or_default(),
            warm_cache: value(&sizes.warm_cache).unwrap_or(false),
            wait: self.shortest_wait(document)?,
            steps,
        })
    }

    fn keys(&self, rows: Option<&Spanned<Count>>) -> Result<u64, PlanError> {
        match rows {
            None => Ok(KEYS),
            Some(rows) if (1..=MOST_ROWS).contains(&rows.get_ref().0) => Ok(rows.get_ref().0),
            Some(rows) => Err(self.error(
                Some(rows.span()),
                format!("rows must be 1 to {} keys", format_grouped(MOST_ROWS)),
            )),
        }
    }

    fn shortest_wait(&self, document: &Document) -> Result<WaitRule, PlanError> {
        let Some(wait) = &document.wait else {
            return Ok(WaitRule::Fixed { ns: 0 });
        };
        match wait.get_ref() {
            Wait::Ns(ns) => Ok(WaitRule::Fixed { ns: *ns }),
            Wait::Classic | Wait::ClassicMax => {
                let message = format!(
                    "{WHAT} waits until no compaction is left to do: leave \"wait\" out, or write \
                    the shortest wait, such as \"300s\""
                );
                Err(self.error(Some(wait.span()), message))
            }
        }
    }

    fn background_rate(&self, rate: Option<&Spanned<ByteSize>>) -> Result<u64, PlanError> {
        let least = u64::from(KEY_BYTES + VALUE_BYTES);
        match rate.map(|rate| (rate.span(), rate.get_ref().0)) {
            None => Ok(BACKGROUND_BYTES_PER_S),
            Some((_, bytes)) if (least..=MOST_BACKGROUND_BYTES_PER_S).contains(&bytes) => Ok(bytes),
            Some((span, _)) => {
                let most = format_bytes(MOST_BACKGROUND_BYTES_PER_S);
                Err(self.error(
                    Some(span),
                    format!(
                        "background_rate must be at least one write of {least} bytes and at most \
                        {most} per second"
                    ),
                ))
            }
        }
    }

    fn change_kv(
        &self,
        step: &mut Step,
        change: &Change,
        is_poisson: bool,
    ) -> Result<(), PlanError> {
        if let Some(clients) = &change.clients {
            let message = format!(
                "the clients of {} are a part of its name: set clients in [sizes] or in a shape",
                step.name
            );
            return Err(self.error(Some(clients.span()), message));
        }
        if step.makes_data() {
            let keys = [
                ("duration", span(&change.duration)),
                ("rate", span(&change.rate)),
                ("warm_up", span(&change.warm_up)),
                ("max_failed", span(&change.max_failed)),
            ];
            self.refuse(
                &keys,
                &format!("{}, which ends when its keys are written,", step.name),
            )?;
        }
        if let Some(rate) = &change.rate {
            step.arrival = Some(Rate {
                per_s: self.rate(rate)?,
                is_poisson,
            });
        }
        if let Some(ns) = step.duration_ns() {
            let ns = self.test_duration(change.duration.as_ref(), ns)?;
            step.set_duration(ns, value(&change.warm_up).map(|warm_up| warm_up.0));
        }
        step.max_failed = change.max_failed.as_ref().map(|share| share.get_ref().0);
        self.override_drain(
            step,
            DrainKeys {
                wait: change.wait.as_ref(),
                drain: change.drain.as_ref(),
            },
        )
    }

    /// What db_bench cannot do is not part of a cell that it drives.
    pub(in crate::plan) fn check_db_bench(
        &self,
        driver: &Spanned<Driver>,
        cell: &Cell,
    ) -> Result<(), PlanError> {
        let Workload::Rocksdb(bench) = &cell.workload else {
            let message = format!(
                "cell {}: db_bench drives the workload rocksdb alone: leave out \"driver\"",
                cell.label
            );
            return Err(self.error(Some(driver.span()), message));
        };
        let has = |what: &dyn Fn(&Step) -> bool| bench.steps.iter().any(what);
        let problem = if bench.warm_cache {
            "begins each step with cold caches: leave out warm_cache"
        } else if bench.process == StepProcess::Trial {
            "has a process for each step: leave out process"
        } else if has(&|step| step.arrival.is_some()) {
            "has no rate of operations: leave out rate"
        } else if has(&|step| step.ends.warm_up_ns() > 0) {
            "has no warm-up: leave out warm_up"
        } else if has(&|step| step.max_failed.is_some()) {
            "ends with the first operation that fails: leave out max_failed"
        } else {
            return Ok(());
        };
        Err(self.error(
            Some(driver.span()),
            format!(
                "cell {}: db_bench {problem}, or driver = \"db_bench\"",
                cell.label
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{KvStep, KvWork, Plan, StepProcess, Work};

    const PLAN: &str =
        "name = \"t\"\nworkload = \"rocksdb\"\nbuilds = [\"rocksdb@8.9.1\"]\nconfigs = [\"lc\"]\n";

    const DB_BENCH: &str = "[config.lc]\ndriver = \"db_bench\"\n";

    fn parse(text: &str) -> RocksdbBench {
        Plan::parse("t.toml", text).unwrap().cells[0]
            .workload
            .rocksdb()
            .unwrap()
            .clone()
    }

    fn step<'a>(bench: &'a RocksdbBench, name: &str) -> &'a Step {
        let step = bench.steps.iter().find(|step| step.is_called(name));
        step.unwrap_or_else(|| panic!("no {name}"))
    }

    #[test]
    fn the_preset_has_the_published_sequence() {
        let bench = parse(&format!("{PLAN}[sizes]\nclients = 24\n"));
        let names: Vec<&str> = bench.steps.iter().map(|step| step.name.as_str()).collect();
        let expected = [
            "fillseq.wal_disabled.v400",
            "readrandom.t24",
            "fwdrange.t24",
            "multireadrandom.t24",
            "overwritesome.t24.s0",
            "revrangewhilewriting.t24",
            "fwdrangewhilewriting.t24",
            "readwhilewriting.t24",
            "overwriteandwait.t24.s0",
        ];
        assert_eq!(names, expected);
        assert_eq!(
            (bench.keys, bench.process, bench.warm_cache),
            (40_000_000, StepProcess::Step, false)
        );
        let end = |name| step(&bench, name).ends;
        assert_eq!(
            (end("fillseq"), end("overwritesome")),
            (
                Ends::Operations {
                    per_client: 40_000_000
                },
                Ends::Operations {
                    per_client: 166_667
                }
            )
        );
        let hour = Ends::Time {
            ns: 3600 * SECOND_NS,
            warm_up_ns: 0,
        };
        assert_eq!(end("readrandom"), hour);
        let beside: Vec<&str> = bench
            .steps
            .iter()
            .filter(|step| step.rate_per_s().is_some())
            .map(|step| step.name.as_str())
            .collect();
        assert_eq!(beside, expected[5..8]);
        assert_eq!(step(&bench, "readwhilewriting").rate_per_s(), Some(4993));
        let drained: Vec<&str> = bench
            .steps
            .iter()
            .filter(|step| step.drain_after)
            .map(|step| step.name.as_str())
            .collect();
        assert_eq!(drained, [expected[0], expected[4]]);
        let backward: Vec<&str> = bench
            .steps
            .iter()
            .filter(|step| {
                matches!(
                    step.work,
                    Work::Rocksdb(KvStep {
                        work: KvWork::Range { is_backward: true },
                        ..
                    })
                )
            })
            .map(|step| step.name.as_str())
            .collect();
        assert_eq!(backward, [expected[5]]);
        assert_eq!(bench.steps[0].clients, 1);
        let waiting: Vec<usize> = (0..9).filter(|&index| bench.steps[index].waits()).collect();
        assert_eq!(waiting, [8]);
    }

    #[test]
    fn what_a_plan_stores_is_read_back() {
        let plan = Plan::parse(
            "t.toml",
            &format!("{PLAN}[sizes]\nprocess = \"trial\"\n[step.readwhilewriting]\nrate = 9\n"),
        )
        .unwrap();
        let text = toml::to_string(&plan).unwrap();
        assert_eq!(toml::from_str::<Plan>(&text).unwrap(), plan);
    }

    #[test]
    fn single_steps_may_differ() {
        let text = format!(
            "{PLAN}max_failed = \"1%\"\nsteps = [\"fillseq\", \"fwdrange.t2\", \"overwritesome\", \
            \"revrangewhilewriting\"]\n\
             report = [\"revrangewhilewriting\"]\n[sizes]\nclients = 2\nrows = \"1M\"\nduration = \
            \"10s\"\nbackground_rate = \"4MiB\"\narrival = \"poisson\"\n\
             warm_cache = true\n[step.\"revrangewhilewriting.t2\"]\nrate = 5000\nduration = \
            \"20s\"\nwarm_up = \"1s\"\n[step.overwritesome]\ndrain = false\n"
        );
        let plan = Plan::parse("t.toml", &text).unwrap();
        assert_eq!(plan.report, ["revrangewhilewriting.t2"]);
        let bench = plan.cells[0].workload.rocksdb().unwrap();
        let backward = step(bench, "revrangewhilewriting");
        assert_eq!(
            (backward.arrival, backward.ends, backward.max_failed),
            (
                Some(Rate {
                    per_s: 5000,
                    is_poisson: true
                }),
                Ends::Time {
                    ns: 20 * SECOND_NS,
                    warm_up_ns: SECOND_NS
                },
                Some(0.01)
            )
        );
        assert_eq!(
            backward.background.map(|background| background.amount),
            Some(4 << 20)
        );
        assert_eq!(
            (backward.rate_per_s(), bench.warm_cache, bench.steps.len()),
            (Some(5000), true, 4)
        );
        let some = step(bench, "overwritesome");
        assert_eq!(
            (some.ends, some.drain_after, some.max_failed),
            (Ends::Operations { per_client: 50_000 }, false, None)
        );
    }

    #[test]
    fn a_step_may_be_called_without_its_threads() {
        let of = |sizes: &str| Plan::parse("t.toml", &format!("{PLAN}{sizes}")).unwrap();
        let one = of("[sizes]\nclients = 2\n");
        for (text, name) in [
            ("readrandom", "readrandom.t2"),
            ("fillseq", "fillseq.wal_disabled.v400"),
            ("readrandom.t2", "readrandom.t2"),
            ("readrandom.t3", "readrandom.t3"),
            ("read", "read"),
        ] {
            assert_eq!(one.step_name(text), name);
        }
        let two = of("[shapes.a]\nclients = 2\n[shapes.b]\nclients = 4\n");
        assert_eq!(
            two.step_name("readrandom"),
            "readrandom",
            "it is another step in each shape"
        );
        assert_eq!(two.step_name("fillseq"), "fillseq.wal_disabled.v400");
    }

    #[test]
    fn bad_plans_say_where_and_what_to_do() {
        let cases = [
            (
                "[sizes]\nrows = 0",
                "t.toml:6:8: rows must be 1 to 1,000,000,000,000 keys",
            ),
            (
                "[sizes]\nclients = 0",
                "t.toml:6:11: clients must be 1 to 4,096, not 0",
            ),
            (
                "[sizes]\nduration = \"10ms\"",
                "t.toml:6:12: the duration of a test or step must be at least 100ms",
            ),
            (
                "[sizes]\nbackground_rate = \"0MiB\"",
                "t.toml:6:19: background_rate must be at least one write of 420 bytes",
            ),
            (
                "[sizes]\nbackground_rate = \"200GiB\"",
                "at most 100 GiB per second",
            ),
            (
                "[sizes]\nbackground_rate = \"2M\"",
                "\"2M\" is not a size in MiB or GiB such as \"2MiB\"",
            ),
            (
                "[sizes]\nbackground_rate = 2097152",
                "expected a size in MiB or GiB such as \"2MiB\"",
            ),
            (
                "[sizes]\nbackground_rate = \"512KiB\"",
                "is not a size in MiB or GiB",
            ),
            (
                "[sizes]\nprocess = \"steps\"",
                "unknown value \"steps\" (did you mean \"step\"?)",
            ),
            (
                "[sizes]\ntables = 4",
                "t.toml:6:1: the benchmark of RocksDB has no \"tables\": leave it out",
            ),
            (
                "[sizes]\nrate = 4",
                "t.toml:6:8: the benchmark of RocksDB has no \"rate\" for all steps: name one in \
                its table",
            ),
            (
                "[sizes]\narrival = \"classic-burst\"",
                "the benchmark of RocksDB has no bursts",
            ),
            (
                "tests = [\"scan\"]",
                "the benchmark of RocksDB has no \"tests\": name its steps in \"steps\"",
            ),
            (
                "wait = \"classic\"",
                "t.toml:5:8: the benchmark of RocksDB waits until no compaction is left to do",
            ),
            (
                "steps = [\"readrandom\"]",
                "t.toml:5:10: steps run in the order fillseq.wal_disabled.v400, readrandom.t1",
            ),
            (
                "steps = [\"fillseq\", \"readwhilewriting\"]",
                "\"readwhilewriting\" needs \"overwritesome.t1.s0\" before it; only steps that \
                only read",
            ),
            (
                "steps = [\"fillseq\", \"redrandom\"]",
                "this plan runs no step \"redrandom\"",
            ),
            (
                "[step.\"readrandom.t2\"]\nrate = 5",
                "t.toml:5:7: this plan runs no step \"readrandom.t2\" (did you mean \
                \"readrandom.t1\"?)",
            ),
            (
                "[step.readrandom]\nclients = 5",
                "the clients of readrandom.t1 are a part of its name",
            ),
            (
                "[step.fillseq]\nduration = \"5s\"",
                "fillseq.wal_disabled.v400, which ends when its keys are written, has no \
                \"duration\"",
            ),
            ("[step.overwritesome]\nrate = 5", "has no \"rate\""),
            (
                "[step.readrandom]\nrate = 0",
                "rate must be 1 to 100,000,000 per second",
            ),
            (
                "[step.readrandom]\nmix = \"x\"",
                "a step of RocksDB has no \"mix\"",
            ),
            (
                "report = [\"readrandm\"]",
                "this plan runs no step \"readrandm\"",
            ),
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
        let other = PLAN.replace("\"rocksdb\"", "\"sysbench-2025\"");
        for (text, wanted) in [
            (
                other.clone(),
                "t.toml:3:11: cell rocksdb@8.9.1.lc: rocksdb has no SQL: set workload = \"rocksdb\"",
            ),
            (
                PLAN.replace("rocksdb@8.9.1", "sqlite"),
                "t.toml:3:11: cell sqlite.lc: the workload rocksdb is keys and values, which \
                sqlite has not",
            ),
            (PLAN.replace("rocksdb@8.9.1", "null"), "which null has not"),
            (
                format!("{PLAN}{DB_BENCH}[sizes]\nwarm_cache = true\n"),
                "t.toml:6:10: cell rocksdb@8.9.1.lc: db_bench begins each step with cold caches",
            ),
            (
                format!("{PLAN}{DB_BENCH}[sizes]\nprocess = \"trial\"\n"),
                "db_bench has a process for each step: leave out process",
            ),
            (
                format!("{PLAN}{DB_BENCH}[sizes]\nwarm_up = \"1s\"\n"),
                "db_bench has no warm-up",
            ),
            (
                format!("{PLAN}{DB_BENCH}[step.readrandom]\nrate = 9\n"),
                "db_bench has no rate of operations",
            ),
            (
                format!("{PLAN}max_failed = \"1%\"\n{DB_BENCH}"),
                "db_bench ends with the first operation that fails",
            ),
            (
                format!("{PLAN}[config.lc]\ndriver = \"dbbench\"\n"),
                "unknown value \"dbbench\" (did you mean \"db_bench\"?)",
            ),
            (
                format!("{}{DB_BENCH}", other.replace("rocksdb@8.9.1", "sqlite")),
                "t.toml:6:10: cell sqlite.lc: db_bench drives the workload rocksdb alone: leave \
                out \"driver\"",
            ),
            (
                other.replace("rocksdb@8.9.1", "sqlite") + "[sizes]\nwarm_cache = true\n",
                "t.toml:6:1: sysbench has no \"warm_cache\": leave it out",
            ),
        ] {
            let found = Plan::parse("t.toml", &text).unwrap_err().to_string();
            assert!(
                found.contains(wanted),
                "{text}: wanted {wanted:?}\nfound  {found:?}"
            );
        }
    }
}
