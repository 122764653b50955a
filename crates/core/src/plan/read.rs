//! From the document to the plan: names resolved, presets filled in, sizes checked, every error
//! with its place.

use toml::Spanned;

use super::document::{Document, WorkloadName};
use super::file::ReadFile;
use super::sizes::Shapes;
use super::{
    Cell, Definition, FileWorkload, InsertBenchmark, Plan, PlanError, RocksdbBench, Step, Sysbench,
    Verify, Workload, presets,
};
use crate::name::check_plan_name;
use crate::source::{Source, explain_toml_error};
use crate::suggest;
use crate::units::SECOND_NS;

const MOST_BLOCKS: u32 = 1000;

/// What the plan runs.
enum Chosen {
    Preset(Definition),
    File(ReadFile),
}

pub(super) fn check(
    file: &str,
    text: &str,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Plan, PlanError> {
    let source = Source::new(file, text);
    let document: Document = toml::from_str(text).map_err(|error| match is_workload(text) {
        true => source.error(
            None,
            format!(
                "this is a workload, not a plan: `plimsoll workload check` reads it, and a plan \
                runs it by workload = {{ file = \"{file}\" }}"
            ),
        ),
        false => explain_toml_error(&source, &error, &[]),
    })?;
    source.plan(&document, read)
}

/// Whether this is a workload file and no plan.
fn is_workload(text: &str) -> bool {
    let table: toml::Table = toml::from_str(text).unwrap_or_default();
    let has = |key: &&str| table.contains_key(*key);
    ["event", "statement"].iter().any(has) && !["builds", "workload"].iter().any(has)
}

impl Source<'_> {
    fn plan(
        &self,
        document: &Document,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Plan, PlanError> {
        let name = document.name.get_ref();
        check_plan_name(name).map_err(|e| self.error(Some(document.name.span()), e.to_string()))?;
        let chosen = match document.workload.get_ref() {
            WorkloadName::Preset(name) => Chosen::Preset(self.preset(document, name)?),
            WorkloadName::File(path) => Chosen::File(self.read_workload(document, path, read)?),
        };
        let blocks = self.ranged(document.blocks.as_ref(), 1, MOST_BLOCKS, "blocks")?;
        let shapes = self.shapes(document, &chosen)?;
        let cells = self.cells(document, &shapes)?;
        self.check_engines(document, &cells)?;
        let base = self.base(document, &cells)?;
        let verify = self.verify(document, &cells)?;
        self.check_partitions(&cells)?;
        let report = self.reported_steps(document, &cells[base].workload)?;
        let verdicts = self.verdicts(document, &cells)?;
        let split = self.split(document, &cells, verdicts)?;
        Ok(Plan {
            name: name.clone(),
            description: document.description.clone(),
            comparable: document.comparable,
            cells,
            base,
            blocks,
            verify,
            seed: document.seed,
            watchdog_ns: self.watchdog_ns(document)?,
            idle_cpus: document.idle_cpus,
            limits: document.limits.all(),
            report,
            verdicts,
            split,
        })
    }

    /// The cell that relative tables divide by.
    fn base(&self, document: &Document, cells: &[Cell]) -> Result<usize, PlanError> {
        let Some(base) = &document.base else {
            return Ok(0);
        };
        let position = cells.iter().position(|cell| &cell.label == base.get_ref());
        position.ok_or_else(|| {
            let labels: Vec<&str> = cells.iter().map(|cell| cell.label.as_str()).collect();
            let hint = suggest::hint(base.get_ref(), labels.iter().copied());
            let message = format!(
                "base \"{}\" is not a cell{hint}; cells: {}",
                base.get_ref(),
                labels.join(", ")
            );
            self.error(Some(base.span()), message)
        })
    }

    fn verify(&self, document: &Document, cells: &[Cell]) -> Result<Verify, PlanError> {
        let verify = document
            .verify
            .as_ref()
            .map_or(Verify::End, |verify| *verify.get_ref());
        let keeps_none = |cell: &Cell| !cell.build.engine.facts().keeps_rows;
        if verify == Verify::Counters || !cells.iter().any(keeps_none) {
            return Ok(verify);
        }
        let place = document.verify.as_ref().map(Spanned::span);
        Err(self.error(
            place.or(Some(document.name.span())),
            "the null engine keeps no rows to count: set verify = \"counters\"",
        ))
    }

    /// What each shape of the plan runs.
    fn shapes(&self, document: &Document, chosen: &Chosen) -> Result<Shapes, PlanError> {
        match chosen {
            Chosen::Preset(Definition::InsertBenchmark(era)) => self
                .workloads::<InsertBenchmark, _>(|own, sizes| {
                    let workload = self.insert_benchmark(document, own, sizes, *era)?;
                    Ok(Workload::InsertBenchmark(workload))
                }),
            Chosen::Preset(Definition::Sysbench(preset)) => {
                self.workloads::<Sysbench, _>(|own, sizes| {
                    let workload = self.sysbench(document, own, sizes, *preset)?;
                    Ok(Workload::Sysbench(workload))
                })
            }
            Chosen::Preset(Definition::Rocksdb) => {
                self.workloads::<RocksdbBench, _>(|own, sizes| {
                    Ok(Workload::Rocksdb(self.rocksdb(document, own, sizes)?))
                })
            }
            Chosen::File(file) => self.workloads::<FileWorkload, _>(|own, sizes| {
                let workload = self.file_workload(document, own, sizes, file)?;
                Ok(Workload::File(workload))
            }),
        }
    }

    fn watchdog_ns(&self, document: &Document) -> Result<u64, PlanError> {
        match &document.watchdog {
            None => Ok(super::default_watchdog_ns()),
            Some(limit) if limit.get_ref().0 >= SECOND_NS => Ok(limit.get_ref().0),
            Some(limit) => Err(self.error(
                Some(limit.span()),
                "watchdog must be at least 1s: a server that is only busy answers later",
            )),
        }
    }

    fn preset(&self, document: &Document, name: &str) -> Result<Definition, PlanError> {
        presets()
            .iter()
            .find(|known| known.name == name)
            .map(|known| known.definition)
            .ok_or_else(|| {
                let known: Vec<&str> = presets().iter().map(|preset| preset.name).collect();
                let hint = match suggest::hint(name, known.iter().copied()) {
                    _ if name.ends_with(".toml") => {
                        format!(" (a file is named as workload = {{ file = \"{name}\" }})")
                    }
                    hint => hint,
                };
                let message = format!(
                    "unknown workload \"{name}\"{hint}; `plimsoll workload list` shows: {}",
                    known.join(", ")
                );
                self.error(Some(document.workload.span()), message)
            })
    }

    /// The steps a plan is about, in the order they run.
    fn reported_steps(
        &self,
        document: &Document,
        workload: &Workload,
    ) -> Result<Vec<String>, PlanError> {
        let known: Vec<&str> = workload
            .steps()
            .iter()
            .map(|step| step.name.as_str())
            .collect();
        for name in &document.report {
            if !workload
                .steps()
                .iter()
                .any(|step| step.is_called(name.get_ref()))
            {
                return Err(self.no_step(name, known.iter().copied()));
            }
        }
        if let (Workload::Sysbench(sysbench), true) = (workload, document.report.is_empty()) {
            return Ok(sysbench.reported());
        }
        let is_wanted = |step: &&Step| {
            document
                .report
                .iter()
                .any(|wanted| step.is_called(wanted.get_ref()))
        };
        Ok(workload
            .steps()
            .iter()
            .filter(is_wanted)
            .map(|step| step.name.clone())
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Partitions, WaitRule};

    const QUICK: &str = r#"
name = "t"
workload = "insert-benchmark"
builds = ["sqlite"]
configs = ["wal_full", "wal_off"]
base = "sqlite.wal_full"
"#;

    fn insert_benchmark(plan: &Plan) -> &InsertBenchmark {
        plan.cells[0].workload.insert_benchmark().unwrap()
    }

    fn error(text: &str) -> String {
        Plan::parse("t.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn the_preset_has_the_published_sizes() {
        let plan = Plan::parse("t.toml", QUICK).unwrap();
        assert_eq!(
            plan.cells
                .iter()
                .map(|c| c.label.as_str())
                .collect::<Vec<_>>(),
            ["sqlite.wal_full", "sqlite.wal_off"]
        );
        let workload = insert_benchmark(&plan);
        let steps: Vec<_> = workload
            .steps
            .iter()
            .map(|s| (s.name.as_str(), s.inserted_rows(), s.batch))
            .collect();
        assert_eq!(
            steps,
            [
                ("l.i0", 20_000_000, 100),
                ("l.x", 100, 100),
                ("l.i1", 40_000_000, 50),
                ("l.i2", 10_000_000, 5),
                ("qr100", 180_000, 50),
                ("qp100", 180_000, 50),
                ("qr500", 900_000, 50),
                ("qp500", 900_000, 50),
                ("qr1000", 1_800_000, 50),
                ("qp1000", 1_800_000, 50),
            ]
        );
        assert_eq!(workload.wait.ns(480_000_000), 540 * SECOND_NS);
        assert_eq!(workload.wait.ns(4_000_000_000), 1200 * SECOND_NS);
        assert_eq!(plan.cells[0].workload.connections(), 3);
    }

    #[test]
    fn flags_are_an_axis_of_builds_from_source() {
        let text = QUICK
            .replace(
                "[\"sqlite\"]",
                "[\"postgres@17+source\", \"postgres@18+source\"]",
            )
            .replace(
                "[\"wal_full\", \"wal_off\"]",
                "[\"a\"]\nflags = [\"o2nofp\", \"o3\"]",
            )
            .replace("base = \"sqlite.wal_full\"\n", "");
        let plan = Plan::parse("t.toml", &text).unwrap();
        let labels: Vec<&str> = plan.cells.iter().map(|cell| cell.label.as_str()).collect();
        assert_eq!(
            labels,
            [
                "postgres@17+source-o2nofp.a",
                "postgres@17+source-o3.a",
                "postgres@18+source-o2nofp.a",
                "postgres@18+source-o3.a",
            ]
        );
        for (old, new, wanted) in [
            (
                "18+source",
                "18",
                "postgres@18 is none: write it as postgres@VERSION+source",
            ),
            ("18+source", "18+source-o2", "postgres@18+source-o2 is none"),
            ("\"o3\"", "\"o.3\"", "\"o.3\" is not a flag set"),
        ] {
            let error = error(&text.replace(old, new));
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn older_presets() {
        let plan = Plan::parse(
            "t.toml",
            &QUICK.replace("insert-benchmark", "insert-benchmark-2023-05"),
        )
        .unwrap();
        let names: Vec<_> = plan.cells[0]
            .workload
            .steps()
            .iter()
            .map(|s| s.name.clone())
            .collect();
        assert_eq!(names, ["l.i0", "l.x", "l.i1", "q100", "q500", "q1000"]);
        let plan = Plan::parse(
            "t.toml",
            &QUICK.replace("insert-benchmark", "insert-benchmark-2017"),
        )
        .unwrap();
        let steps: Vec<_> = plan.cells[0]
            .workload
            .steps()
            .iter()
            .map(|s| (s.name.as_str(), s.inserted_rows()))
            .collect();
        assert_eq!(
            steps,
            [
                ("l", 31_250_000),
                ("scan", 0),
                ("q1000", 5_000_000),
                ("q100", 500_000)
            ]
        );
    }

    /// The error was about the first key that plans do not have.
    #[test]
    fn a_workload_file_is_called_a_workload() {
        let workload = "name = \"app\"\n[event.get]\ndo = [\"get\"]\n";
        let error = Plan::parse("app.toml", workload).unwrap_err().to_string();
        assert!(
            error
                .starts_with("app.toml: this is a workload, not a plan: `plimsoll workload check`")
                && error.contains("workload = { file = \"app.toml\" }"),
            "{error}"
        );
        let error = Plan::parse("t.toml", &format!("{QUICK}[event.get]\n")).unwrap_err();
        assert!(
            error.to_string().contains("unknown key \"event\""),
            "{error}"
        );
    }

    #[test]
    fn errors_name_the_place_and_the_way_out() {
        let cases = [
            (
                QUICK.replace("builds", "bulids"),
                "t.toml:4:1: unknown key \"bulids\" (did you mean \"builds\"?",
            ),
            (
                QUICK.replace("\"sqlite\"]", "\"sqlit\"]"),
                "t.toml:4:11: unknown engine \"sqlit\"",
            ),
            (
                QUICK.replace("insert-benchmark", "insert-bench"),
                "t.toml:3:12: unknown workload \"insert-bench\"",
            ),
            (
                format!("{QUICK}[sizes]\nclients = 0\n"),
                "t.toml:8:11: clients must be 1 to 4,096, not 0",
            ),
            (
                format!("{QUICK}[sizes]\nclients = 0\n[shapes.a]\nrows = \"1K\"\n"),
                "t.toml:8:11: clients must be 1 to 4,096, not 0",
            ),
            (
                format!("{QUICK}[sizes]\nclinets = 1\n[shapes.a]\n"),
                "t.toml:8:1: the Insert Benchmark has no \"clinets\" (did you mean \"clients\"?",
            ),
            (
                format!("{QUICK}[sizes]\nclients = 1\n[shapes]\na = 1\n"),
                "t.toml:10:5: expected keys and values, as in { key = 1 }, not 1",
            ),
            (
                format!("{QUICK}[sizes]\nrows = \"20 X\"\n"),
                "t.toml:8:8: \"20 X\" is not a number of rows",
            ),
            (
                format!("{QUICK}[sizes]\nrows = 100\n"),
                "t.toml:8:8: l.i1 deletes in transactions of 50 rows",
            ),
            (
                format!("{QUICK}[sizes]\nrows = \"10K\"\nwrite_rows = \"50M\"\n"),
                "l.i1 would delete 40,000,000 rows from a table of 10,000 rows",
            ),
            (
                format!("{QUICK}[sizes]\ntables = \"shared\"\nclients = 2\ndeletes = true\n"),
                "clients that share one table cannot delete per insert",
            ),
            (
                format!("{QUICK}[sizes]\narrival = \"evn\"\n"),
                "unknown value \"evn\" (did you mean \"even\"?",
            ),
            (
                QUICK.replace("sqlite.wal_full", "sqlite.wal"),
                "t.toml:6:8: base \"sqlite.wal\" is not a cell (did you mean",
            ),
            (
                format!("{QUICK}[step.qr10]\nduration = \"2s\"\n"),
                "this plan runs no step \"qr10\" (did you mean one of qr100, qr1000?",
            ),
            (
                format!("{QUICK}[step.\"l.i0\"]\nduration = \"2s\"\n"),
                "it has no duration",
            ),
            (
                format!("{QUICK}[step.\"l.i2\"]\nwait = \"2s\"\ndrain = false\n"),
                "a wait is a part of the drain",
            ),
            (
                QUICK.replace("base", "watchdog = \"900ms\"\nbase"),
                "t.toml:6:12: watchdog must be at least 1s",
            ),
            (
                QUICK.replace("base", "blocks = 0\nbase"),
                "blocks must be 1 to 1,000, not 0",
            ),
            (
                QUICK.replace("base", "steps = [\"qr100\"]\nbase"),
                "steps run in the order",
            ),
            (
                QUICK.replace("base", "exclude = [\"x\"]\nbase"),
                "exclude \"x\" is not a cell",
            ),
            (
                QUICK
                    .replace("[\"sqlite\"]", "[\"null\"]")
                    .replace("sqlite.", "null."),
                "set verify = \"counters\"",
            ),
            (
                format!("{QUICK}[sizes]\npartitions = 4\n"),
                "t.toml:8:14: cell sqlite.wal_full: sqlite has no partitioned tables; leave out",
            ),
            (
                format!(
                    "{}[sizes]\npartitions = 4\n",
                    QUICK
                        .replace("[\"sqlite\"]", "[\"postgres@10\"]")
                        .replace("sqlite.", "postgres@10.")
                ),
                "cell postgres@10.wal_full: PostgreSQL partitions tables with a primary key since \
                version 11",
            ),
            (
                QUICK.replace("base", "report = [\"l.y\"]\nbase"),
                "this plan runs no step \"l.y\" (did you mean \"l.x\"?",
            ),
            (
                format!("{QUICK}[config.wal_off]\nfile = \"a\"\nfrom = \"wal_full\"\n"),
                "[config.wal_off] has \"file\" and \"from\"",
            ),
            (
                "name = 3".to_owned(),
                "t.toml:1:8: expected a text in quotes, not 3",
            ),
            (
                "name = \"x\"\n".to_owned(),
                "the key \"workload\" is missing",
            ),
        ];
        for (text, wanted) in cases {
            let found = error(&text);
            assert!(
                found.contains(wanted),
                "wanted {wanted:?}\nfound  {found:?}"
            );
        }
    }

    #[test]
    fn the_line_of_a_password_is_not_shown() {
        for table in ["sizes", "shapes.a", "step.\"l.i0\"", "config.wal_off"] {
            let found = error(&format!("{QUICK}[{table}]\npassword = \"hunter2\"\n"));
            assert!(
                found.contains("name a password_file") && !found.contains("hunter2"),
                "{table}: {found}"
            );
        }
    }

    #[test]
    fn settings_are_texts_numbers_and_switches() {
        let config =
            |settings: &str| format!("{QUICK}[config.wal_off]\nsettings = {{ {settings} }}\n");
        let plan = Plan::parse("t.toml", &config("a = \"x\", b = 8, c = true, d = false")).unwrap();
        let settings: Vec<(&str, &str)> = plan.cells[1]
            .config
            .settings
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            settings,
            [("a", "x"), ("b", "8"), ("c", "true"), ("d", "false")]
        );
        let found = error(&config("a = [1]"));
        assert!(
            found.contains("expected a string, an integer, true or false, not a list"),
            "{found}"
        );
    }

    #[test]
    fn partitions_share_all_rows_a_table_is_ever_given() {
        let mysql = QUICK
            .replace("[\"sqlite\"]", "[\"mysql\"]")
            .replace("sqlite.", "mysql.");
        let rows = |sizes: &str| {
            Plan::parse("t.toml", &format!("{mysql}[sizes]\n{sizes}"))
                .unwrap()
                .cells[0]
                .workload
                .insert_benchmark()
                .unwrap()
                .partitions
        };
        // 20M + 50M + 100 + (100 + 100 + 500 + 500 + 1000 + 1000) x 1800
        assert_eq!(
            rows("partitions = 8\n"),
            Some(Partitions {
                count: 8,
                rows: 75_760_100 / 8
            })
        );
        assert_eq!(
            rows("partitions = 8\nclients = 4\n"),
            Some(Partitions {
                count: 8,
                rows: (75_760_000 * 4 + 100) / 8 / 4
            })
        );
        assert_eq!(rows("clients = 4\n"), None);
    }

    #[test]
    fn a_plan_may_be_about_some_of_its_steps() {
        let text = format!("{QUICK}[step.\"l.i2\"]\ndrain = false\n[step.\"l.x\"]\ndrain = true\n");
        let steps = Plan::parse("t.toml", &text).unwrap().cells[0]
            .workload
            .steps()
            .to_vec();
        let drained: Vec<&str> = steps
            .iter()
            .filter(|step| step.drain_after)
            .map(|step| step.name.as_str())
            .collect();
        assert_eq!(drained, ["l.x"]);
        let text = QUICK.replace("base", "report = [\"qp100\", \"l.x\"]\nbase");
        assert_eq!(
            Plan::parse("t.toml", &text).unwrap().report,
            ["l.x", "qp100"]
        );
        assert!(Plan::parse("t.toml", QUICK).unwrap().report.is_empty());
    }

    #[test]
    fn the_wait_is_a_minimum_unless_the_plan_wants_the_other_reading() {
        let wait = |text: &str| {
            let plan = Plan::parse(
                "t.toml",
                &QUICK.replace("base", &format!("wait = \"{text}\"\nbase")),
            )
            .unwrap();
            insert_benchmark(&plan).wait
        };
        let seconds = |rule: WaitRule, rows: u64| rule.ns(rows) / SECOND_NS;
        for (rows, least, most) in [
            (0, 60, 1200),
            (20_000_000, 80, 1200),
            (4_800_000_000, 1200, 4860),
        ] {
            assert_eq!(
                (
                    seconds(wait("classic"), rows),
                    seconds(wait("classic-max"), rows),
                    seconds(wait("7s"), rows)
                ),
                (least, most, 7)
            );
        }
    }

    #[test]
    fn partial_matrix_and_shapes() {
        let text = r#"
name = "t"
workload = "insert-benchmark"
cells = ["sqlite@3.50.4.wal_full.one", "sqlite@3.50.4.wal_full.four"]
base = "sqlite@3.50.4.wal_full.one"
[sizes]
rows = "1M"
[shapes.one]
clients = 1
[shapes.four]
clients = 4
tables = "shared"
"#;
        let plan = Plan::parse("t.toml", text).unwrap();
        assert_eq!(plan.cells.len(), 2);
        assert_eq!(plan.cells[1].label, "sqlite@3.50.4.wal_full.four");
        let four = plan.cells[1].workload.insert_benchmark().unwrap();
        assert_eq!((four.clients, four.table_count()), (4, 1));
        assert_eq!(
            four.steps[2].connections(),
            4,
            "a shared table has no deletes"
        );
    }
}
