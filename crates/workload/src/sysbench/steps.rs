//! From the plan's steps to workers, and from what they counted to what the tables must hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::plan::{LoadMode, STATEMENT_NOTES, Step, StepKind, Sysbench, Test, TestKind, TestRate};
use plimsoll_core::record::TableCheck;
use plimsoll_core::seed::{Draw, derive};
use plimsoll_engine::{Dialect, EngineError};
use plimsoll_load::{Arrival, RetryPolicy, StepOptions, StepOutcome, Stop, Task};

use super::client::{Client, Shape};
use super::event::Event;
use super::load::{INDEX, INSERT, Loader};
use super::random::Ids;
use super::statements::{Statement, create_table, table_name};
use super::tally::Tally;
use crate::check::check_table;
use crate::run::{Facts, SharedServer, StepFacts, StepTasks};
use crate::session::Session;

/// Building an index may take hours.
const LOAD_DEADLINE_NS: u64 = 24 * 3600 * SECOND_NS;
const SECOND_NS: u64 = 1_000_000_000;

/// The benchmark on one data state.
pub struct SysbenchRun {
    settings: Sysbench,
    server: SharedServer,
    seed: u64,
    /// Rows each table must hold.
    expected_rows: Vec<u64>,
}

impl SysbenchRun {
    /// Nothing is created yet: `prepare` does that.
    pub fn new(settings: Sysbench, server: SharedServer, seed: u64) -> Self {
        let expected_rows = vec![0; settings.tables as usize];
        Self { settings, server, seed, expected_rows }
    }

    /// The names of the tables.
    pub fn table_names(&self) -> Vec<String> {
        (1..=self.settings.tables).map(table_name).collect()
    }

    /// Creates what the step needs and makes its workers.
    pub fn tasks(&self, step: &Step) -> Result<StepTasks, EngineError> {
        match step.kind {
            StepKind::Prepare { load, .. } => self.loaders(step, load),
            StepKind::Test(test) => Ok(self.clients(step, test)),
            _ => Err(EngineError::new(format!("{} is no step of sysbench; take another workload for it", step.name))),
        }
    }

    fn loaders(&self, step: &Step, load: LoadMode) -> Result<StepTasks, EngineError> {
        self.create_tables()?;
        let dialect = self.server.dialect();
        // An engine with one writer gains nothing from a second connection.
        let loaders = if dialect == Dialect::Sqlite { 1 } else { step.clients.min(self.settings.tables) };
        let task = |client: u32| {
            let tables = (client..=self.settings.tables).step_by(loaders as usize).collect();
            let session = Session::new(self.server.clone());
            let worker = Box::new(Loader::new(session, self.seed, load, dialect, tables, self.settings.rows));
            Task { client, kinds: vec![INDEX, INSERT], arrival: Arrival::Closed, stop: Stop::Worker { planned: 0, length_ns: 0 }, worker }
        };
        let retry = RetryPolicy { longest_pause_ns: 20_000_000, deadline_ns: LOAD_DEADLINE_NS, ..RetryPolicy::default() };
        let options = StepOptions { watchdog: None, retry, ..StepOptions::default() };
        Ok(StepTasks { kinds: &["insert", "index"], tasks: (1..=loaders).map(task).collect(), options, facts: StepFacts(Facts::Nothing) })
    }

    fn clients(&self, step: &Step, test: Test) -> StepTasks {
        let tally = Arc::new(Tally::default());
        let event = Event::of(test.kind, test.range);
        let ids = Ids::new(test.distribution, self.settings.rows);
        let shape = Shape {
            tables: self.settings.tables,
            rows: self.settings.rows,
            dialect: self.server.dialect(),
            is_prepared: self.settings.prepared,
        };
        let is_scan = test.kind == TestKind::Scan;
        let task = |client: u32| {
            let own_table = is_scan.then(|| (client - 1) as usize % self.settings.tables as usize);
            let draw = Draw::new(self.seed, &["sysbench test", &step.name, &client.to_string()]);
            let session = Session::new(self.server.clone());
            let arrival = test.rate.map_or(Arrival::Closed, |rate| self.arrival(step, rate, client));
            let worker = Client::new(session, shape.clone(), event.clone(), ids.clone(), draw, own_table, tally.clone());
            Task { client, kinds: vec![0], arrival, stop: Stop::Time(test.duration_ns), worker: Box::new(worker) }
        };
        let mut options = StepOptions { warm_up_ns: test.warm_up_ns, ..StepOptions::default() };
        if is_scan {
            // One scan may take minutes.
            options.watchdog = None;
        }
        StepTasks {
            kinds: if is_scan { &["scan"] } else { &["transaction"] },
            tasks: (1..=step.clients).map(task).collect(),
            options,
            facts: StepFacts(Facts::Sysbench(tally)),
        }
    }

    /// A client's share of the rate; clients are out of phase.
    fn arrival(&self, step: &Step, rate: TestRate, client: u32) -> Arrival {
        let (operations, clients) = (rate.per_s, u64::from(step.clients));
        let period_ns = clients * SECOND_NS;
        if rate.is_poisson {
            let seed = derive(self.seed, &["sysbench arrival", &step.name, &client.to_string()]);
            return Arrival::Poisson { operations, period_ns, seed };
        }
        Arrival::Even { operations, period_ns, phase_ns: u64::from(client - 1) * SECOND_NS / operations }
    }

    fn create_tables(&self) -> Result<(), EngineError> {
        let mut session = self.server.connect()?;
        let names = self.table_names();
        self.server.claim_tables(&names)?;
        for name in &names {
            session.define(&create_table(name, self.server.dialect(), &self.server.table_suffix()))?;
        }
        self.server.check_tables(&names)
    }

    /// Books a finished step: what the tables must hold now.
    pub fn book(&mut self, step: &Step, facts: &StepFacts) {
        self.assume(step);
        if let Facts::Sysbench(tally) = &facts.0 {
            for (table, growth) in tally.growth() {
                self.expected_rows[table] = self.expected_rows[table].saturating_add_signed(growth);
            }
        }
    }

    /// Books a step that another trial has done.
    pub fn assume(&mut self, step: &Step) {
        if let StepKind::Prepare { rows, .. } = step.kind {
            self.expected_rows.fill(rows);
        }
    }

    /// Reads every table once.
    pub fn whole_scans(&self) -> Vec<String> {
        self.table_names().iter().map(|table| Statement::Scan.sql(table, self.server.dialect())).collect()
    }

    /// Facts of a step that no histogram holds.
    pub fn notes(&self, step: &Step, facts: &StepFacts, outcome: &StepOutcome) -> BTreeMap<String, f64> {
        let mut notes = BTreeMap::new();
        let (Facts::Sysbench(tally), StepKind::Test(test)) = (&facts.0, &step.kind) else { return notes };
        let statements = tally.statements();
        let counts = [statements.reads, statements.writes, statements.others];
        notes.extend(STATEMENT_NOTES.into_iter().zip(counts).map(|(note, count)| (note.to_owned(), count as f64)));
        let Some(events) = outcome.operations.iter().find(|operation| operation.ok > 0) else { return notes };
        match test.kind {
            TestKind::Scan => {
                notes.insert("rows_per_scan".to_owned(), self.settings.rows as f64);
            }
            TestKind::Delete => {
                notes.insert("delete_hit_ratio".to_owned(), events.rows as f64 / events.ok as f64);
            }
            _ => {
                notes.insert("rows_per_transaction".to_owned(), events.rows as f64 / events.ok as f64);
            }
        }
        notes
    }

    /// Counts the rows of all tables. An error or a difference is for the caller to judge.
    pub fn verify(&self, with_checksum: bool) -> Result<Vec<TableCheck>, EngineError> {
        let mut session = self.server.connect()?;
        let tables = self.table_names().into_iter().zip(&self.expected_rows);
        let check = |(table, expected): (String, &u64)| {
            let rows = format!("select id, k, c, pad from {table} order by id");
            check_table(&mut *session, &table, &format!("select count(*) from {table}"), &rows, *expected, with_checksum)
        };
        tables.map(check).collect()
    }
}
