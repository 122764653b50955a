//! From the plan's steps to workers, and from their results to what the tables must hold.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_core::plan::{
    Ends, InsertBenchmark, InsertWork, Operation, QueryKind, Step, TablePlacement, Work,
    WriteArrival,
};
use plimsoll_core::record::TableCheck;
use plimsoll_core::seed::{Draw, derive};
use plimsoll_core::units::SECOND_NS;
use plimsoll_engine::{EngineError, Settings};
use plimsoll_load::{Arrival, RetryPolicy, StepOptions, StepOutcome, Stop, Task, Worker};

use super::data::{NOMINAL_ROWS_PER_S, RandomText, Rows};
use super::delete::{Deleter, Deletes, MinIdCost};
use super::index::{self, Indexer};
use super::insert::{Inserter, longest_insert};
use super::pairing::Pairing;
use super::query::Reader;
use super::scan::Scanner;
use super::statements::Statements;
use crate::check::check_table;
use crate::elsewhere::RunState;
use crate::session::Session;
use crate::session::SharedServer;
use crate::step_tasks::{Counted, ExtraCounts, StepTasks};

/// The setting by which MySQL and MariaDB limit a statement; what has a statement in it must be
/// shorter, and it has one byte more.
const LONGEST_PACKET: &str = "max_allowed_packet";
/// Building an index may take hours, and so may waiting for another client's on an engine with one
/// writer.
const INDEX_DEADLINE_NS: u64 = 24 * 3600 * SECOND_NS;

/// The benchmark on one data state.
pub struct InsertBenchmarkRun {
    settings: InsertBenchmark,
    server: SharedServer,
    seed: u64,
    text: Arc<RandomText>,
    tables: Vec<Statements>,
    /// Rows each table must hold.
    expected_rows: Vec<u64>,
    /// Seconds of the data's own clock.
    clock_s: u64,
}

impl InsertBenchmarkRun {
    /// Nothing is created yet: the load step does that.
    pub fn new(
        settings: InsertBenchmark,
        server: SharedServer,
        seed: u64,
    ) -> Result<Self, EngineError> {
        let sql = server.sql()?;
        let tables: Vec<Statements> = (1..=settings.table_count())
            .map(|number| {
                Statements::new(
                    format!("pi{number}"),
                    settings.era,
                    sql.forms(),
                    sql.table_suffix(),
                    settings.partitions,
                )
            })
            .collect();
        let expected_rows = vec![0; tables.len()];
        Ok(Self {
            settings,
            server,
            seed,
            text: RandomText::new(seed),
            tables,
            expected_rows,
            clock_s: 0,
        })
    }

    /// The names of the tables that hold rows: of partitioned ones, where partitions are tables of
    /// their own, theirs.
    pub fn table_names(&self) -> Vec<String> {
        self.tables
            .iter()
            .flat_map(Statements::storage_tables)
            .collect()
    }

    /// Checks that a server with these effective settings takes the longest statement of every
    /// step. It would refuse it hours later.
    pub fn check_statements(&self, settings: &Settings) -> Result<(), EngineError> {
        let Some(limit) = settings
            .get(LONGEST_PACKET)
            .and_then(|limit| limit.parse::<usize>().ok())
        else {
            return Ok(());
        };
        let inserts = self
            .settings
            .steps
            .iter()
            .filter(|step| step.inserted_rows() > 0);
        // The first of the largest.
        let Some((step, table)) = inserts
            .rev()
            .max_by_key(|step| step.batch)
            .zip(self.tables.last())
        else {
            return Ok(());
        };
        let longest = longest_insert(table, step.batch);
        let needed = longest + 2;
        if needed <= limit {
            return Ok(());
        }
        Err(EngineError::new(format!(
            "the inserts of {} have up to {longest} bytes ({} rows), and the server takes no \
            packet of {limit} bytes or more ({LONGEST_PACKET}); raise {LONGEST_PACKET} to {needed} \
            or more",
            step.name, step.batch
        )))
    }

    fn table_index(&self, client: u32) -> usize {
        match self.settings.tables {
            TablePlacement::PerClient => client as usize - 1,
            TablePlacement::Shared => 0,
        }
    }

    fn session(&self) -> Session {
        Session::new(self.server.clone())
    }

    fn rows(&self, client: u32, step: &Step) -> Rows {
        let draw = Draw::new(self.seed, &["rows", &client.to_string(), &step.name]);
        Rows::new(
            draw,
            self.text.clone(),
            self.settings.era,
            self.clock_s,
            rows_per_s(step),
        )
    }

    fn inserter(
        &self,
        client: u32,
        step: &Step,
        kind: usize,
        pairing: Option<Arc<Pairing>>,
    ) -> Inserter {
        Inserter::new(
            self.session(),
            &self.tables[self.table_index(client)],
            self.rows(client, step),
            step.batch,
            kind,
            pairing,
        )
    }

    /// Creates what the step needs and makes its workers.
    pub fn tasks(&self, step: &Step, work: InsertWork) -> Result<StepTasks, EngineError> {
        if let InsertWork::Load { indexes_first } = work {
            self.create_tables(indexes_first)?;
        }
        Ok(self.workers(step, work))
    }

    /// Makes the workers of a step whose tables are there.
    pub(crate) fn workers(&self, step: &Step, work: InsertWork) -> StepTasks {
        let cost = Arc::new(MinIdCost::default());
        let mut options = StepOptions::default();
        let (kinds, tasks): (&[Operation], Vec<Task>) = match work {
            InsertWork::Load { .. } => (&[Operation::Insert], self.write_tasks(step, &cost)),
            InsertWork::CreateIndexes { rows } => {
                options.watchdog = None;
                options.retry = RetryPolicy {
                    longest_pause_ns: 20_000_000,
                    deadline_ns: INDEX_DEADLINE_NS,
                    ..options.retry
                };
                let kinds = &[Operation::Index, Operation::Insert];
                (kinds, self.index_tasks(step, rows))
            }
            InsertWork::Write => (
                &[Operation::Insert, Operation::Delete],
                self.write_tasks(step, &cost),
            ),
            InsertWork::ReadWrite { query, rate } => (
                &[Operation::Query, Operation::Insert, Operation::Delete],
                self.read_write_tasks(step, query, rate, &cost),
            ),
            InsertWork::Scan => {
                // One scan may take minutes.
                options.watchdog = None;
                (&[Operation::Scan], self.scan_tasks(step))
            }
        };
        StepTasks {
            kinds: kinds.iter().map(|&kind| kind.into()).collect(),
            tasks,
            options,
            counts: ExtraCounts(Counted::MinId(cost)),
        }
    }

    /// What its steps so far have left.
    pub(crate) fn state(&self) -> RunState {
        RunState {
            rows: self.expected_rows.iter().copied().map(Some).collect(),
            clock_s: self.clock_s,
            ..RunState::default()
        }
    }

    /// Goes on behind steps that another process has booked.
    pub(crate) fn restore(&mut self, state: RunState) {
        let rows = state.rows.into_iter().map(Option::unwrap_or_default);
        self.expected_rows
            .iter_mut()
            .zip(rows)
            .for_each(|(of, rows)| *of = rows);
        self.clock_s = state.clock_s;
    }

    /// Batches that an inserter writes where the plan fixes them.
    fn batches(step: &Step) -> u64 {
        step.inserted_rows() / u64::from(step.batch)
    }

    /// An inserter for each client, and a deleter if the step deletes.
    fn write_tasks(&self, step: &Step, cost: &Arc<MinIdCost>) -> Vec<Task> {
        let batches = Self::batches(step);
        let mut tasks = Vec::new();
        for client in 1..=step.clients {
            let pairing = step.deletes.then(|| Arc::new(Pairing::new(Some(batches))));
            let worker = Box::new(self.inserter(client, step, 0, pairing.clone()));
            tasks.push(Task {
                client,
                kinds: vec![0],
                arrival: Arrival::Closed,
                stop: Stop::Operations(batches),
                worker,
            });
            if let Some(pairing) = pairing {
                let deletes = Deletes {
                    batch: step.batch,
                    kind: 1,
                    pairing,
                    cost: cost.clone(),
                };
                let worker = self.deleter(client, deletes);
                // It ends with its inserter.
                tasks.push(by_worker(client, vec![1], worker));
            }
        }
        tasks
    }

    fn index_tasks(&self, step: &Step, rows: u64) -> Vec<Task> {
        let task = |(table, statements): (usize, &Statements)| {
            let client = table as u32 + 1;
            let inserter = self.inserter(client, step, index::INSERT, None);
            let table_rows =
                self.expected_rows[table] + rows.next_multiple_of(u64::from(step.batch));
            let worker = Indexer::new(inserter, Self::batches(step), statements, table_rows);
            by_worker(client, vec![index::INSERT, index::INDEX], Box::new(worker))
        };
        self.tables.iter().enumerate().map(task).collect()
    }

    /// A reader for each client beside an inserter that keeps the rate, and a deleter if the step
    /// deletes.
    fn read_write_tasks(
        &self,
        step: &Step,
        query: QueryKind,
        rate: u64,
        cost: &Arc<MinIdCost>,
    ) -> Vec<Task> {
        let batches = Self::batches(step);
        let fixed_time = fixed_time_ns(step);
        let mut tasks = Vec::new();
        for client in 1..=step.clients {
            let planned = fixed_time.is_none().then_some(batches);
            let pairing = Arc::new(Pairing::new(planned));
            let arrival = self.arrival(step, rate, client);
            tasks.push(self.read_task(client, step, query, &pairing));
            // Without a deleter an inserter waits for nobody.
            let shared = step.deletes.then(|| pairing.clone());
            tasks.push(Task {
                client,
                kinds: vec![1],
                arrival: arrival.clone(),
                stop: fixed_time.map_or(Stop::Operations(batches), Stop::Time),
                worker: Box::new(self.inserter(client, step, 1, shared)),
            });
            if step.deletes {
                let (planned, length_ns) = match fixed_time {
                    None => (batches, arrival.length_ns(batches)),
                    Some(ns) => (arrival.count_before(ns), ns),
                };
                let deletes = Deletes {
                    batch: step.batch,
                    kind: 2,
                    pairing,
                    cost: cost.clone(),
                };
                tasks.push(Task {
                    client,
                    kinds: vec![2],
                    arrival,
                    stop: Stop::Worker { planned, length_ns },
                    worker: self.deleter(client, deletes),
                });
            }
        }
        tasks
    }

    fn scan_tasks(&self, step: &Step) -> Vec<Task> {
        let task = |client: u32| {
            let table = self.table_index(client);
            let statements = &self.tables[table];
            let worker = Scanner::new(self.session(), statements, self.expected_rows[table]);
            by_worker(client, vec![0], Box::new(worker))
        };
        (1..=step.clients.min(self.tables.len() as u32))
            .map(task)
            .collect()
    }

    fn read_task(
        &self,
        client: u32,
        step: &Step,
        query: QueryKind,
        pairing: &Arc<Pairing>,
    ) -> Task {
        let draw = Draw::new(self.seed, &["queries", &client.to_string(), &step.name]);
        let statements = self.tables[self.table_index(client)].clone();
        let worker = Box::new(Reader::new(
            self.session(),
            statements,
            self.settings.era,
            query,
            draw,
            Some(pairing.clone()),
        ));
        Task {
            client,
            kinds: vec![0],
            arrival: Arrival::Closed,
            stop: Stop::WithClient,
            worker,
        }
    }

    fn deleter(&self, client: u32, deletes: Deletes) -> Box<dyn Worker> {
        let statements = self.tables[self.table_index(client)].clone();
        Box::new(Deleter::new(
            self.session(),
            statements,
            self.settings.era,
            deletes,
        ))
    }

    fn arrival(&self, step: &Step, rate: u64, client: u32) -> Arrival {
        let period_ns = u64::from(step.batch) * SECOND_NS;
        match self.settings.arrival {
            WriteArrival::Even => {
                // Clients out of phase, spread over one interval.
                let interval_ns = period_ns / rate;
                let phase_ns = interval_ns * u64::from(client - 1) / u64::from(step.clients);
                Arrival::Even {
                    operations: rate,
                    period_ns,
                    phase_ns,
                }
            }
            WriteArrival::ClassicBurst => Arrival::ClassicBurst {
                burst: rate.div_ceil(u64::from(step.batch)),
            },
            WriteArrival::Poisson => {
                let seed = derive(self.seed, &["arrival", &client.to_string(), &step.name]);
                Arrival::Poisson {
                    operations: rate,
                    period_ns,
                    seed,
                }
            }
        }
    }

    fn create_tables(&self, with_indexes: bool) -> Result<(), EngineError> {
        let server = self.server.sql()?;
        let mut session = server.connect()?;
        let storage_tables = self.table_names();
        let all: Vec<String> = self
            .tables
            .iter()
            .map(|table| table.table.clone())
            .chain(storage_tables.clone())
            .collect();
        server.claim_tables(&all)?;
        for table in &self.tables {
            for statement in table.create_table() {
                session.define(&statement)?;
            }
            if with_indexes {
                for index in table.create_indexes() {
                    session.define(&index)?;
                }
            }
        }
        server.check_tables(&storage_tables)
    }

    /// Books a finished step: what the tables must hold now, and the time on the data's clock.
    pub fn book(&mut self, step: &Step, outcome: &StepOutcome) {
        for client in &outcome.clients {
            let table = self.table_index(client.client);
            match client.kind.as_str() {
                // A step of fixed rows must have inserted them all; a step of fixed time, what was
                // counted.
                "insert" if fixed_time_ns(step).is_none() => {
                    self.expected_rows[table] += step.inserted_rows()
                }
                "insert" => self.expected_rows[table] += client.rows,
                "delete" if fixed_time_ns(step).is_none() => {
                    self.expected_rows[table] -= step.inserted_rows()
                }
                "delete" => self.expected_rows[table] -= client.rows,
                _ => {}
            }
        }
        let rows = outcome
            .clients
            .iter()
            .filter(|client| client.kind == "insert")
            .map(|client| client.rows)
            .max()
            .unwrap_or(0);
        let planned = if fixed_time_ns(step).is_some() {
            rows
        } else {
            step.inserted_rows()
        };
        self.clock_s += planned.div_ceil(rows_per_s(step));
    }

    /// Books a step that another trial has done: one that inserts, and deletes, a number of rows
    /// that the plan fixes.
    pub fn assume(&mut self, step: &Step) {
        let inserters = if step.operation == Operation::Index {
            self.tables.len() as u32
        } else {
            step.clients
        };
        if !step.deletes {
            for client in 1..=inserters {
                let table = self.table_index(client);
                self.expected_rows[table] += step.inserted_rows();
            }
        }
        self.clock_s += step.inserted_rows().div_ceil(rows_per_s(step));
    }

    /// Reads every table once.
    pub fn whole_scans(&self) -> Vec<String> {
        self.tables.iter().flat_map(Statements::scans).collect()
    }

    /// Facts of a step that no histogram holds.
    pub fn notes(&self, counts: &ExtraCounts, outcome: &StepOutcome) -> BTreeMap<String, f64> {
        let mut notes = BTreeMap::new();
        if let Some(query) = outcome
            .operations
            .iter()
            .find(|operation| operation.kind == "query" && operation.ok > 0)
        {
            notes.insert(
                "rows_fetched_per_query".to_owned(),
                query.rows as f64 / query.ok as f64,
            );
        }
        let Counted::MinId(cost) = &counts.0 else {
            return notes;
        };
        let lookups = cost.lookups.load(Ordering::Relaxed);
        if lookups > 0 {
            let seconds = |ns: u64| Duration::from_nanos(ns).as_secs_f64();
            notes.insert("min_id_lookups".to_owned(), lookups as f64);
            notes.insert(
                "min_id_seconds".to_owned(),
                seconds(cost.ns.load(Ordering::Relaxed)),
            );
            notes.insert(
                "min_id_longest_seconds".to_owned(),
                seconds(cost.longest_ns.load(Ordering::Relaxed)),
            );
        }
        notes
    }

    /// Counts the rows of all tables. An error or a difference is for the caller to judge.
    pub fn verify(&self, with_checksum: bool) -> Result<Vec<TableCheck>, EngineError> {
        let mut session = self.server.connect()?;
        let tables = self.tables.iter().zip(&self.expected_rows);
        tables
            .map(|(table, &expected)| {
                check_table(
                    &mut *session,
                    &table.table,
                    &table.count(),
                    &table.all_rows(),
                    expected,
                    with_checksum,
                )
            })
            .collect()
    }
}

/// A worker that ends by itself.
fn by_worker(client: u32, kinds: Vec<usize>, worker: Box<dyn Worker>) -> Task {
    Task {
        client,
        kinds,
        arrival: Arrival::Closed,
        stop: Stop::Worker {
            planned: 0,
            length_ns: 0,
        },
        worker,
    }
}

/// The time of a step that inserts for a time, and not a number of rows.
fn fixed_time_ns(step: &Step) -> Option<u64> {
    match step.ends {
        Ends::Time { ns, .. } => Some(ns),
        _ => None,
    }
}

fn rows_per_s(step: &Step) -> u64 {
    match step.work {
        Work::InsertBenchmark(InsertWork::ReadWrite { rate, .. }) => rate,
        _ => NOMINAL_ROWS_PER_S,
    }
}
