//! The connections that fill tables. One loads a table alone, in the order of its rows, as
//! sysbench's do: with several it was a matter of time which pages the same rows came to lie on.

use plimsoll_core::plan::LoadMode;
use plimsoll_core::units::SECOND_NS;
use plimsoll_engine::SqlForms;
use plimsoll_load::{Arrival, Next, Outcome, RetryPolicy, StepOptions, Stop, Task, Worker};

use super::rows::{RowForm, Rows};
use super::table::{Finish, TableFill};
use crate::session::SharedServer;
use crate::session::{Session, query_outcome, write_outcome};
use crate::step_tasks::{Counted, ExtraCounts, StepTasks};

/// The kinds of operations of the step.
const INSERT: usize = 0;
const INDEX: usize = 1;

/// sysbench's own buffer for a statement.
const STATEMENT_BYTES: usize = 512 << 10;
/// Of a fast load. Servers take statements of 4 MiB by default, the oldest of 1 MiB.
const LARGE_STATEMENT_BYTES: usize = (1 << 20) - (1 << 10);
/// Of one copy.
const COPY_BYTES: usize = 4 << 20;
/// Building an index may take hours.
const LOAD_DEADLINE_NS: u64 = 24 * 3600 * SECOND_NS;

/// How rows go to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LoadFormat {
    form: RowForm,
    bytes: usize,
}

impl LoadFormat {
    fn of(load: LoadMode, forms: &dyn SqlForms) -> Self {
        let (form, bytes) = match load {
            LoadMode::Classic => (RowForm::Tuples, STATEMENT_BYTES),
            LoadMode::Fast if forms.copies_rows() => (RowForm::Lines, COPY_BYTES),
            LoadMode::Fast => (RowForm::Tuples, LARGE_STATEMENT_BYTES),
        };
        Self { form, bytes }
    }
}

/// Whether more connections than one cannot write at the same time.
fn has_one_writer(forms: &dyn SqlForms) -> bool {
    forms.engine().facts().has_one_writer
}

/// The workers that load these tables, each alone: so the engine lays the same rows out alike in
/// every load.
pub(crate) fn loading_tasks(
    (server, forms): (&SharedServer, &dyn SqlForms),
    seed: u64,
    load: LoadMode,
    connections: u32,
    tables: Vec<TableFill>,
) -> StepTasks {
    let loaders = if has_one_writer(forms) {
        1
    } else {
        tables.len().min(connections as usize)
    };
    let mut tables_of_loader: Vec<Vec<TableFill>> = (0..loaders).map(|_| Vec::new()).collect();
    for (at, table) in tables.into_iter().enumerate() {
        tables_of_loader[at % loaders].push(table);
    }
    let task = |(client, tables): (usize, Vec<TableFill>)| {
        let worker = Box::new(Loader::new(
            Session::new(server.clone()),
            seed,
            LoadFormat::of(load, forms),
            tables,
        ));
        let stop = Stop::Worker {
            planned: 0,
            length_ns: 0,
        };
        Task {
            client: client as u32 + 1,
            kinds: vec![INDEX, INSERT],
            arrival: Arrival::Closed,
            stop,
            worker,
        }
    };
    let retry = RetryPolicy {
        longest_pause_ns: 20_000_000,
        deadline_ns: LOAD_DEADLINE_NS,
        ..RetryPolicy::default()
    };
    StepTasks {
        kinds: vec!["insert".to_owned(), "index".to_owned()],
        tasks: tables_of_loader.into_iter().enumerate().map(task).collect(),
        options: StepOptions {
            watchdog: None,
            retry,
            ..StepOptions::default()
        },
        counts: ExtraCounts(Counted::Nothing),
    }
}

/// What comes next.
enum Work {
    Rows(u64),
    Finish(Finish),
}

/// Loads one table after the other.
struct Loader {
    session: Session,
    seed: u64,
    format: LoadFormat,
    /// Those that are left, the next one last.
    tables: Vec<TableFill>,
    /// The rows of the table that is loaded.
    current: Option<Rows>,
    /// What is left to do for a full table, the next one last.
    finish: Vec<Finish>,
    /// Rows of that table.
    full_rows: u64,
    work: Work,
    sql: String,
    lines: String,
}

impl Loader {
    fn new(session: Session, seed: u64, format: LoadFormat, mut tables: Vec<TableFill>) -> Self {
        tables.reverse();
        let (sql, lines) = (String::new(), String::new());
        Self {
            session,
            seed,
            format,
            tables,
            current: None,
            finish: Vec::new(),
            full_rows: 0,
            work: Work::Rows(0),
            sql,
            lines,
        }
    }
}

impl Worker for Loader {
    fn open(&mut self) -> Result<(), String> {
        self.session.open().map(|_| ())
    }

    fn prepare(&mut self) -> Result<Next, String> {
        loop {
            if let Some(finish) = self.finish.pop() {
                self.work = Work::Finish(finish);
                return Ok(Next::Operation(INDEX));
            }
            match self.current.take() {
                Some(rows) if rows.is_empty() => {
                    let table = rows.into_table();
                    self.full_rows = table.rows;
                    self.finish = table.finish.into_iter().rev().collect();
                }
                Some(rows) => {
                    self.current = Some(rows);
                    break;
                }
                None => match self.tables.pop() {
                    Some(table) => self.current = Some(Rows::new(table, self.seed)),
                    None => return Ok(Next::Finished),
                },
            }
        }
        let Some(rows) = &mut self.current else {
            return Ok(Next::Finished);
        };
        let table = rows.table();
        let columns: Vec<&str> = table.columns.iter().map(|(name, _)| &**name).collect();
        let (name, columns) = (&table.name, columns.join(", "));
        self.sql.clear();
        self.work = Work::Rows(match self.format.form {
            RowForm::Tuples => {
                self.sql
                    .push_str(&format!("INSERT INTO {name}({columns}) VALUES"));
                rows.push(&mut self.sql, RowForm::Tuples, self.format.bytes)
            }
            RowForm::Lines => {
                self.sql
                    .push_str(&format!("COPY {name}({columns}) FROM STDIN"));
                self.lines.clear();
                rows.push(&mut self.lines, RowForm::Lines, self.format.bytes)
            }
        });
        Ok(Next::Operation(INSERT))
    }

    fn execute(&mut self) -> Outcome {
        let session = self.session.get();
        match (&self.work, self.format.form) {
            (Work::Finish(Finish::Define(sql)), _) => write_outcome(
                session.define(sql).map(|()| self.full_rows),
                "an index",
                None,
            ),
            (Work::Finish(Finish::Query(sql)), _) => query_outcome(session.query(sql)),
            (Work::Rows(rows), RowForm::Tuples) => {
                write_outcome(session.write(&self.sql, *rows), "an insert", Some(*rows))
            }
            (Work::Rows(rows), RowForm::Lines) => write_outcome(
                session.copy_in(&self.sql, self.lines.as_bytes()),
                "a copy",
                Some(*rows),
            ),
        }
    }
}
