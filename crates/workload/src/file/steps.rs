//! From the plan's steps to workers, and from what they counted to what the tables must hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::plan::{FileWork, FileWorkload, LoadMode, Step};
use plimsoll_core::record::TableCheck;
use plimsoll_core::seed::Draw;
use plimsoll_core::workload_file::{Effect, Table, WorkloadFile};
use plimsoll_engine::{EngineError, SqlForms};
use plimsoll_load::{StepOptions, StepOutcome, Stop, Task};

use super::compile::compile;
use super::tables::{create_table, table_fill};
use crate::check::check_table;
use crate::client::{Client, ClientIdentity, StepTotals};
use crate::elsewhere::RunState;
use crate::filling::loading_tasks;
use crate::index_scan::index_scans;
use crate::session::{Session, SharedServer};
use crate::step_tasks::{Counted, ExtraCounts, StepTasks};
use crate::timing::arrival;

/// A workload file on one data state.
pub struct FileRun {
    settings: FileWorkload,
    file: WorkloadFile,
    server: SharedServer,
    forms: &'static dyn SqlForms,
    seed: u64,
    /// Rows each table must hold; `None` for those of which statements do not say.
    expected_rows: Vec<Option<u64>>,
    /// Where sequences go on, by name.
    sequences: BTreeMap<String, i64>,
}

impl FileRun {
    /// Nothing is created yet: `load` does that.
    pub fn new(
        settings: FileWorkload,
        server: SharedServer,
        seed: u64,
    ) -> Result<Self, EngineError> {
        let file =
            WorkloadFile::parse(&settings.workload_file, &settings.text).map_err(|error| {
                EngineError::new(format!(
                    "the campaign's workload is not valid here: {error}"
                ))
            })?;
        let forms = server.sql()?.forms();
        let is_uncountable = |table: &str| {
            let effects = file
                .statements
                .iter()
                .map(|statement| &statement.text_on(forms.engine()).effect);
            effects.into_iter().any(|effect| match effect {
                Effect::Uncountable(of) => of.eq_ignore_ascii_case(table),
                _ => false,
            })
        };
        let expected_rows = file
            .tables
            .iter()
            .map(|table| (!is_uncountable(&table.name)).then_some(0))
            .collect();
        Ok(Self {
            settings,
            file,
            server,
            forms,
            seed,
            expected_rows,
            sequences: BTreeMap::new(),
        })
    }

    /// The names of the tables.
    pub fn table_names(&self) -> Vec<String> {
        self.file
            .tables
            .iter()
            .map(|table| table.name.clone())
            .collect()
    }

    /// Creates what the step needs and makes its workers.
    pub fn tasks(&self, step: &Step, work: &FileWork) -> Result<StepTasks, EngineError> {
        match work {
            FileWork::Fill { load, .. } => self.loaders(step, *load),
            FileWork::Mix { events } => Ok(self.clients(step, events)),
        }
    }

    fn loaders(&self, step: &Step, load: LoadMode) -> Result<StepTasks, EngineError> {
        let server = self.server.sql()?;
        let names = self.table_names();
        let mut session = server.connect()?;
        server.claim_tables(&names)?;
        let suffix = server.table_suffix();
        let mut fills = Vec::new();
        for table in &self.file.tables {
            session.define(&create_table(table, self.forms, &suffix))?;
            fills.push(table_fill(table, self.forms));
        }
        server.check_tables(&names)?;
        self.check_statements()?;
        Ok(loading_tasks(
            (&self.server, self.forms),
            self.seed,
            load,
            step.clients,
            fills,
        ))
    }

    /// Has the engine read every statement while the tables are empty: what it refuses would else
    /// be found after the load.
    fn check_statements(&self) -> Result<(), EngineError> {
        let mut session = self.server.connect()?;
        let events: Vec<(String, u32)> = self
            .file
            .events
            .iter()
            .map(|event| (event.name.clone(), 1))
            .collect();
        let (program, _) = compile(&self.file, &events, self.forms, &self.sequences);
        // All events together send all statements, in their order.
        for (statement, of_file) in program.statements.iter().zip(&self.file.statements) {
            session
                .prepare_as(&statement.sql(0), &statement.parameters)
                .map_err(|error| {
                    EngineError::new(format!(
                        "statement {} of {} is refused: {error}",
                        of_file.name, self.settings.workload_file
                    ))
                })?;
        }
        Ok(())
    }

    /// What its steps so far have left.
    pub(crate) fn state(&self) -> RunState {
        RunState {
            rows: self.expected_rows.clone(),
            sequences: self.sequences.clone(),
            ..RunState::default()
        }
    }

    /// Goes on behind steps that another process has booked.
    pub(crate) fn restore(&mut self, state: RunState) {
        self.expected_rows
            .iter_mut()
            .zip(state.rows)
            .for_each(|(of, rows)| *of = rows);
        self.sequences = state.sequences;
    }

    /// The workers of a step whose tables are there.
    pub(crate) fn clients(&self, step: &Step, events: &[(String, u32)]) -> StepTasks {
        let totals = Arc::new(StepTotals::default());
        let (program, _) = compile(&self.file, events, self.forms, &self.sequences);
        let program = Arc::new(program);
        let task = |client: u32| {
            let draw = Draw::new(self.seed, &["file step", &step.name, &client.to_string()]);
            let identity = ClientIdentity {
                client,
                clients: step.clients,
                draw,
                own_variant: None,
            };
            let session = Session::new(self.server.clone());
            let worker = Client::new(
                session,
                program.clone(),
                self.settings.prepared,
                self.file.tables.len(),
                identity,
                totals.clone(),
            );
            let arrival = arrival(self.seed, "file arrival", step, client);
            let kinds = (0..events.len()).collect();
            Task {
                client,
                kinds,
                arrival,
                stop: Stop::Time(step.duration_ns().unwrap_or(0)),
                worker: Box::new(worker),
            }
        };
        StepTasks {
            kinds: events.iter().map(|(event, _)| event.clone()).collect(),
            tasks: (1..=step.clients).map(task).collect(),
            options: StepOptions {
                warm_up_ns: step.ends.warm_up_ns(),
                max_failed: step.max_failed,
                ..StepOptions::default()
            },
            counts: ExtraCounts(Counted::Clients(totals)),
        }
    }

    /// Books a finished step: what the tables must hold now, and where sequences go on.
    pub fn book(&mut self, step: &Step, counts: &ExtraCounts) {
        self.assume(step);
        let (Counted::Clients(totals), false) = (&counts.0, step.makes_data()) else {
            return;
        };
        for (table, growth) in totals.growth() {
            self.expected_rows[table] =
                self.expected_rows[table].map(|rows| rows.saturating_add_signed(growth));
        }
        let (_, names) = compile(&self.file, step.events(), self.forms, &self.sequences);
        self.sequences.extend(
            names
                .into_iter()
                .zip(totals.sequences())
                .filter(|(_, next)| *next > i64::MIN),
        );
    }

    /// Books a step that another trial has done.
    pub fn assume(&mut self, step: &Step) {
        if step.makes_data() {
            for (expected, table) in self.expected_rows.iter_mut().zip(&self.file.tables) {
                *expected = expected.map(|_| table.rows);
            }
        }
    }

    /// Reads every table and its secondary indexes once.
    pub fn whole_scans(&self) -> Vec<String> {
        let scan = |table: &Table| {
            let columns: Vec<String> = table
                .columns
                .iter()
                .map(|column| format!("max({})", column.name))
                .collect();
            format!("select {} from {}", columns.join(", "), table.name)
        };
        let tables = &self.file.tables;
        let indexes = tables.iter().flat_map(|table| {
            table
                .indexes
                .iter()
                .map(|index| [&table.name, &index.name, &index.columns[0]])
        });
        tables
            .iter()
            .map(scan)
            .chain(index_scans(indexes, self.forms))
            .collect()
    }

    /// Facts of a step that no histogram holds.
    pub fn notes(&self, counts: &ExtraCounts, outcome: &StepOutcome) -> BTreeMap<String, f64> {
        let Counted::Clients(totals) = &counts.0 else {
            return BTreeMap::new();
        };
        let mut notes = totals.notes();
        let (ok, rows) = outcome
            .operations
            .iter()
            .fold((0, 0), |(ok, rows), operation| {
                (ok + operation.ok, rows + operation.rows)
            });
        if ok > 0 {
            notes.insert("rows_per_event".to_owned(), rows as f64 / ok as f64);
        }
        notes
    }

    /// Counts the rows of all tables whose number of rows is known. An error or a difference is for
    /// the caller to judge.
    pub fn verify(&self, with_checksum: bool) -> Result<Vec<TableCheck>, EngineError> {
        let mut session = self.server.connect()?;
        let tables = self.file.tables.iter().zip(&self.expected_rows);
        tables
            .filter_map(|(table, expected)| Some((table, (*expected)?)))
            .map(|(table, expected)| {
                let name = &table.name;
                let columns: Vec<&str> = table
                    .columns
                    .iter()
                    .map(|column| column.name.as_str())
                    .collect();
                let rows = format!(
                    "select {} from {name} order by {}",
                    columns.join(", "),
                    table.primary_key.join(", ")
                );
                check_table(
                    &mut *session,
                    name,
                    &format!("select count(*) from {name}"),
                    &rows,
                    expected,
                    with_checksum,
                )
            })
            .collect()
    }
}
