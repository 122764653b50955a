//! Clients on other hosts are those of home: the same schedules, and the same statements byte for
//! byte, whatever the hosts.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_core::plan::{Plan, Step, Workload};
use plimsoll_engine::{
    Argument, Counts, DrainAction, DrainLimits, EngineError, Parameter, Prepared, Server, Sessions,
    Settings, SqlError, SqlForms, SqlServer, SqlSession, postgres::PostgresForms,
};
use plimsoll_load::Next;
use plimsoll_workload::{RunState, SharedServer, WorkloadRun};

/// Statements that were sent, all sessions together.
type Sent = Arc<Mutex<Vec<String>>>;

/// A server without rows that writes down what it is sent.
struct Paper(Sent);

/// A session of it.
struct OnPaper(Sent, usize);

impl OnPaper {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }
}

impl SqlSession for OnPaper {
    fn write(&mut self, sql: &str, expected_rows: u64) -> Result<u64, SqlError> {
        self.note(sql.to_owned());
        Ok(expected_rows)
    }

    fn define(&mut self, sql: &str) -> Result<(), SqlError> {
        self.note(sql.to_owned());
        Ok(())
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared, SqlError> {
        self.note(format!("prepare {sql}"));
        self.1 += 1;
        Ok(Prepared(self.1 - 1))
    }

    fn query_prepared(&mut self, statement: Prepared, arguments: &[i64]) -> Result<u64, SqlError> {
        self.note(format!("{statement:?} {arguments:?}"));
        Ok(3)
    }

    fn write_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[i64],
        expected_rows: u64,
    ) -> Result<u64, SqlError> {
        self.note(format!("{statement:?} {arguments:?}"));
        Ok(expected_rows)
    }

    fn query(&mut self, sql: &str) -> Result<u64, SqlError> {
        self.note(sql.to_owned());
        Ok(3)
    }

    fn prepare_as(&mut self, sql: &str, parameters: &[Parameter]) -> Result<Prepared, SqlError> {
        self.note(format!("{parameters:?}"));
        self.prepare(sql)
    }

    fn perform(&mut self, sql: &str) -> Result<Counts, SqlError> {
        self.note(sql.to_owned());
        Ok(Counts {
            rows: 1,
            affected: 1,
        })
    }

    fn perform_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[Argument<'_>],
    ) -> Result<Counts, SqlError> {
        self.perform(&format!("{statement:?} {arguments:?}"))
    }

    fn query_integer(&mut self, sql: &str) -> Result<Option<i64>, SqlError> {
        self.note(sql.to_owned());
        Ok(Some(1))
    }

    fn for_each_row(&mut self, _: &str, _: &mut dyn FnMut(&[&str])) -> Result<(), SqlError> {
        Ok(())
    }
}

impl SqlServer for Paper {
    fn forms(&self) -> &'static dyn SqlForms {
        &PostgresForms
    }

    fn connect(&self) -> Result<Box<dyn SqlSession>, EngineError> {
        Ok(Box::new(OnPaper(self.0.clone(), 0)))
    }
}

impl Server for Paper {
    fn sessions(&self) -> Sessions<'_> {
        Sessions::Sql(self)
    }

    fn effective_settings(&self) -> Result<Settings, EngineError> {
        Ok(Settings::new())
    }

    fn counters(&self) -> Result<BTreeMap<String, i64>, EngineError> {
        Ok(BTreeMap::new())
    }

    fn save_state(&self, _: &Path, _: &str) -> Result<(), EngineError> {
        Ok(())
    }

    fn drain(&self, _: &[String], _: &DrainLimits<'_>) -> Result<Vec<DrainAction>, EngineError> {
        Ok(Vec::new())
    }

    fn database_bytes(&self) -> Result<u64, EngineError> {
        Ok(0)
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    fn stop(self: Box<Self>, _: Duration) -> Result<(), EngineError> {
        Ok(())
    }
}

/// So many operations of each worker are looked at.
const OPERATIONS: usize = 15;

/// What each worker of a process is: its schedule, then its statements.
fn schedule(
    workload: &Workload,
    step: &Step,
    state: &RunState,
    clients: Option<&RangeInclusive<u32>>,
) -> Vec<String> {
    let sent = Sent::default();
    let server: SharedServer = Arc::new(Box::new(Paper(sent.clone())));
    let mut run = WorkloadRun::new(workload, server, 11).unwrap();
    run.restore(state.clone());
    let tasks = match clients {
        Some(clients) => run.tasks_of(step, clients),
        None => run.tasks(step),
    };
    sent.lock().unwrap().clear();
    let mut workers = Vec::new();
    for mut task in tasks.unwrap().tasks {
        let mut due = task.arrival.due();
        let instants: Vec<_> = (0..OPERATIONS).map(|_| due.next_ns()).collect();
        let head = format!(
            "{} {:?} {:?} {instants:?}",
            task.client, task.kinds, task.stop
        );
        task.worker.open().unwrap();
        workers.push((task, head));
    }
    // In turn, for a deleter waits for its inserter.
    let mut statements: Vec<Vec<String>> = vec![Vec::new(); workers.len()];
    for _ in 0..OPERATIONS {
        for ((task, _), own) in workers.iter_mut().zip(&mut statements) {
            sent.lock().unwrap().clear();
            if let Next::Operation(_) = task.worker.prepare().unwrap() {
                task.worker.execute();
            }
            own.append(&mut sent.lock().unwrap());
        }
    }
    workers
        .into_iter()
        .zip(statements)
        .map(|((_, head), statements)| format!("{head}\n{}", statements.join("\n")))
        .collect()
}

fn workload(text: &str) -> Workload {
    Plan::parse("t.toml", text).unwrap().cells[0]
        .workload
        .clone()
}

fn check(workload: &Workload, wanted: &[&str]) {
    let state: RunState = serde_json::from_value(serde_json::json!({
        "rows": [900, 900, 900, 900, 900], "clock_s": 77, "sequences": {"next": 5000},
    }))
    .unwrap();
    let steps: Vec<&Step> = workload
        .steps()
        .iter()
        .filter(|step| wanted.contains(&step.name.as_str()))
        .collect();
    assert_eq!(steps.len(), wanted.len());
    for step in steps {
        assert!(WorkloadRun::is_divisible(step), "{}", step.name);
        let home = schedule(workload, step, &state, None);
        let has_work = home.iter().filter(|of| of.lines().count() > 5).count();
        assert!(has_work >= 5, "{}: {home:?}", step.name);
        for hosts in [vec![1..=3, 4..=5], vec![1..=2, 3..=3, 4..=4, 5..=5]] {
            let parts = hosts
                .iter()
                .flat_map(|clients| schedule(workload, step, &state, Some(clients)));
            assert_eq!(
                parts.collect::<Vec<_>>(),
                home,
                "{} on {hosts:?}",
                step.name
            );
        }
    }
}

#[test]
fn schedules_of_the_insert_benchmark_are_those_of_home() {
    for arrival in ["even", "poisson"] {
        let text = format!(
            "name = \"t\"\nworkload = \"insert-benchmark\"\nbuilds = [\"postgres@18\"]\nconfigs = \
             [\"c\"]\ncomparable = false\n\n[config.c]\n[sizes]\narrival = \
             \"{arrival}\"\nclients = 5\nrows = \"5K\"\nwrite_rows = \"5K\"\nduration = \"20s\"\n"
        );
        check(&workload(&text), &["l.i0", "l.x", "l.i1", "qr100", "qp500"]);
    }
}

#[test]
fn schedules_of_sysbench_tests_are_those_of_home() {
    let text = "name = \"t\"\nworkload = \"sysbench-2025\"\nbuilds = [\"postgres@18\"]\nconfigs = \
                [\"c\"]\ncomparable = false\ntests = [\"point-query\", \"insert\", \"update-one\", \
                \"read-write_range=10\"]\n[config.c]\n[sizes]\ntables = 3\nclients = 5\nrows = \
                500\nduration = \"20s\"\nrate = 50\n";
    check(
        &workload(text),
        &["point-query", "insert", "update-one", "read-write_range=10"],
    );
}

#[test]
fn loads_with_shared_parts_stay_at_home() {
    let text = "name = \"t\"\nworkload = \"sysbench-2025\"\nbuilds = [\"postgres@18\"]\nconfigs = \
                [\"c\"]\ncomparable = false\ntests = [\"point-query\"]\n[config.c]\n[sizes]\nrows = \
                500\nduration = \"1s\"\n";
    let workload = workload(text);
    let prepare = &workload.steps()[0];
    assert!(!WorkloadRun::is_divisible(prepare));
    let server: SharedServer = Arc::new(Box::new(Paper(Sent::default())));
    let run = WorkloadRun::new(&workload, server, 1).unwrap();
    let error = run.tasks_of(prepare, &(1..=1)).err().unwrap().to_string();
    assert!(error.contains("run it without client hosts"), "{error}");
}
