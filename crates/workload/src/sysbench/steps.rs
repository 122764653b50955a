//! From the plan's steps to workers, and from what they counted to what the tables must hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::plan::{LoadMode, Step, Sysbench, SysbenchWork, Test, TestKind, Work};
use plimsoll_core::record::TableCheck;
use plimsoll_core::seed::Draw;
use plimsoll_engine::{EngineError, SqlForms};
use plimsoll_load::{StepOptions, StepOutcome, Stop, Task};

use super::event::program;
use super::statements::{Statement, create_table, index_name, table_fill, table_name};
use crate::check::check_table;
use crate::client::{Client, ClientIdentity, StepTotals};
use crate::filling::{Finish, loading_tasks};
use crate::index_scan::index_scans;
use crate::session::{Session, SharedServer};
use crate::step_tasks::{Counted, ExtraCounts, StepTasks};
use crate::timing::arrival;

/// The benchmark on one data state.
pub struct SysbenchRun {
    settings: Sysbench,
    server: SharedServer,
    forms: &'static dyn SqlForms,
    seed: u64,
    /// Rows each table must hold.
    expected_rows: Vec<u64>,
}

impl SysbenchRun {
    /// Nothing is created yet: `prepare` does that.
    pub fn new(settings: Sysbench, server: SharedServer, seed: u64) -> Result<Self, EngineError> {
        let expected_rows = vec![0; settings.tables as usize];
        Ok(Self {
            settings,
            forms: server.sql()?.forms(),
            server,
            seed,
            expected_rows,
        })
    }

    /// The names of the tables.
    pub fn table_names(&self) -> Vec<String> {
        (1..=self.settings.tables).map(table_name).collect()
    }

    /// Creates what the step needs and makes its workers.
    pub fn tasks(&self, step: &Step, work: &SysbenchWork) -> Result<StepTasks, EngineError> {
        match *work {
            SysbenchWork::Prepare { load, .. } => self.loaders(step, load),
            SysbenchWork::Test(test) => Ok(self.clients(step, test)),
        }
    }

    fn loaders(&self, step: &Step, load: LoadMode) -> Result<StepTasks, EngineError> {
        self.create_tables()?;
        let rows = self.settings.rows;
        let fill = |table| {
            let mut fill = table_fill(table, rows);
            let go_on = self.forms.continue_auto_values(&fill.name, "id", rows);
            fill.finish.splice(0..0, go_on.map(Finish::Query));
            fill
        };
        let fills = (1..=self.settings.tables).map(fill).collect();
        Ok(loading_tasks(
            (&self.server, self.forms),
            self.seed,
            load,
            step.clients,
            fills,
        ))
    }

    /// The workers of a test.
    pub(crate) fn clients(&self, step: &Step, test: Test) -> StepTasks {
        let totals = Arc::new(StepTotals::default());
        let tables = self.settings.tables as usize;
        let program = Arc::new(program(
            test,
            self.settings.tables,
            self.settings.rows,
            self.forms,
        ));
        let is_scan = test.kind == TestKind::Scan;
        let task = |client: u32| {
            // Each client scans one table over and over; other tests draw a table for each event.
            let own_variant = is_scan.then(|| (client - 1) as usize % tables);
            let draw = Draw::new(
                self.seed,
                &["sysbench test", &step.name, &client.to_string()],
            );
            let identity = ClientIdentity {
                client,
                clients: step.clients,
                draw,
                own_variant,
            };
            let session = Session::new(self.server.clone());
            let worker = Client::new(
                session,
                program.clone(),
                self.settings.prepared,
                tables,
                identity,
                totals.clone(),
            );
            let arrival = arrival(self.seed, "sysbench arrival", step, client);
            Task {
                client,
                kinds: vec![0],
                arrival,
                stop: Stop::Time(step.duration_ns().unwrap_or(0)),
                worker: Box::new(worker),
            }
        };
        let mut options = StepOptions {
            warm_up_ns: step.ends.warm_up_ns(),
            max_failed: step.max_failed,
            ..StepOptions::default()
        };
        if is_scan {
            // One scan may take minutes.
            options.watchdog = None;
        }
        StepTasks {
            kinds: vec![step.operation.into()],
            tasks: (1..=step.clients).map(task).collect(),
            options,
            counts: ExtraCounts(Counted::Clients(totals)),
        }
    }

    fn create_tables(&self) -> Result<(), EngineError> {
        let server = self.server.sql()?;
        let mut session = server.connect()?;
        let names = self.table_names();
        server.claim_tables(&names)?;
        let suffix = server.table_suffix();
        for name in &names {
            session.define(&create_table(name, self.forms, &suffix))?;
        }
        server.check_tables(&names)
    }

    /// Books a finished step: what the tables must hold now.
    pub fn book(&mut self, step: &Step, counts: &ExtraCounts) {
        self.assume(step);
        if let Counted::Clients(totals) = &counts.0 {
            for (table, growth) in totals.growth() {
                self.expected_rows[table] = self.expected_rows[table].saturating_add_signed(growth);
            }
        }
    }

    /// Books a step that another trial has done.
    pub fn assume(&mut self, step: &Step) {
        if let Work::Sysbench(SysbenchWork::Prepare { rows, .. }) = step.work {
            self.expected_rows.fill(rows);
        }
    }

    /// Reads every table and its secondary index once.
    pub fn whole_scans(&self) -> Vec<String> {
        let tables = self
            .table_names()
            .into_iter()
            .map(|table| Statement::Scan.sql(&table, self.forms));
        let indexes = (1..=self.settings.tables)
            .map(|number| [table_name(number), index_name(number), "k".to_owned()]);
        tables.chain(index_scans(indexes, self.forms)).collect()
    }

    /// Facts of a step that no histogram holds.
    pub fn notes(
        &self,
        step: &Step,
        counts: &ExtraCounts,
        outcome: &StepOutcome,
    ) -> BTreeMap<String, f64> {
        let (Counted::Clients(totals), Work::Sysbench(SysbenchWork::Test(test))) =
            (&counts.0, &step.work)
        else {
            return BTreeMap::new();
        };
        let mut notes = totals.notes();
        let Some(events) = outcome.operations.iter().find(|operation| operation.ok > 0) else {
            return notes;
        };
        match test.kind {
            TestKind::Scan => {
                notes.insert("rows_per_scan".to_owned(), self.settings.rows as f64);
            }
            TestKind::Delete => {
                notes.insert(
                    "delete_hit_ratio".to_owned(),
                    events.rows as f64 / events.ok as f64,
                );
            }
            _ => {
                notes.insert(
                    "rows_per_transaction".to_owned(),
                    events.rows as f64 / events.ok as f64,
                );
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
            check_table(
                &mut *session,
                &table,
                &format!("select count(*) from {table}"),
                &rows,
                *expected,
                with_checksum,
            )
        };
        tables.map(check).collect()
    }
}
