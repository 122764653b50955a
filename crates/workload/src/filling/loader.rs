//! The connections that fill tables. A table that several load is cut into as many runs of rows;
//! each run is loaded in its order, so that trees are as full as after a load by one, and whoever
//! is done with the last row of a table finishes it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// The parts that a table of so many rows is loaded in when there are so many tables and
/// connections.
pub(crate) fn parts_of(
    load: LoadMode,
    forms: &dyn SqlForms,
    connections: u32,
    tables: usize,
    rows: u64,
) -> u64 {
    // sysbench loads a table by one connection, and an engine with one writer gains nothing from a
    // second.
    if load == LoadMode::Classic || has_one_writer(forms) {
        return 1;
    }
    u64::from(connections)
        .div_ceil(tables as u64)
        .min(rows)
        .max(1)
}

/// The workers that load these tables.
pub(crate) fn loading_tasks(
    (server, forms): (&SharedServer, &dyn SqlForms),
    seed: u64,
    load: LoadMode,
    connections: u32,
    tables: Vec<TableFill>,
) -> StepTasks {
    let count = tables.len();
    let mut parts: Vec<RowRange> = Vec::new();
    for table in tables {
        let of_table = parts_of(load, forms, connections, count, table.rows);
        let (table, parts_left) = (
            Arc::new(table),
            Arc::new(AtomicUsize::new(of_table as usize)),
        );
        let start =
            |part: u64| (u128::from(table.rows) * u128::from(part) / u128::from(of_table)) as u64;
        let cut = (0..of_table).map(|part| RowRange {
            table: table.clone(),
            rows: start(part)..start(part + 1),
            is_whole: of_table == 1,
            parts_left: parts_left.clone(),
        });
        parts.extend(cut);
    }
    let loaders = if has_one_writer(forms) {
        1
    } else {
        connections.min(parts.len() as u32)
    };
    let mut parts_of_loader: Vec<Vec<RowRange>> = (0..loaders).map(|_| Vec::new()).collect();
    // Parts of a table go to different connections, so that they load at the same time.
    for (at, part) in parts.into_iter().enumerate() {
        parts_of_loader[at % loaders as usize].push(part);
    }
    let task = |(client, parts): (usize, Vec<RowRange>)| {
        let worker = Box::new(Loader::new(
            Session::new(server.clone()),
            seed,
            LoadFormat::of(load, forms),
            parts,
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
        tasks: parts_of_loader.into_iter().enumerate().map(task).collect(),
        options: StepOptions {
            watchdog: None,
            retry,
            ..StepOptions::default()
        },
        counts: ExtraCounts(Counted::Nothing),
    }
}

/// A run of a table's rows.
struct RowRange {
    table: Arc<TableFill>,
    rows: Range<u64>,
    is_whole: bool,
    /// Parts of the table that are not loaded yet.
    parts_left: Arc<AtomicUsize>,
}

/// What comes next.
enum Work {
    Rows(u64),
    Finish(Finish),
}

/// Loads one part after the other.
struct Loader {
    session: Session,
    seed: u64,
    format: LoadFormat,
    /// Those that are left, the next one last.
    parts: Vec<RowRange>,
    /// The part that is loaded, and its rows.
    current: Option<(RowRange, Rows)>,
    /// What is left to do for a full table, the next one last.
    finish: Vec<Finish>,
    /// Rows of that table.
    full_rows: u64,
    work: Work,
    sql: String,
    lines: String,
}

impl Loader {
    fn new(session: Session, seed: u64, format: LoadFormat, mut parts: Vec<RowRange>) -> Self {
        parts.reverse();
        let (sql, lines) = (String::new(), String::new());
        Self {
            session,
            seed,
            format,
            parts,
            current: None,
            finish: Vec::new(),
            full_rows: 0,
            work: Work::Rows(0),
            sql,
            lines,
        }
    }

    /// The next part whose rows are not loaded yet, after what is left to do for a full table.
    fn begin_part(&mut self) -> bool {
        let Some(part) = self.parts.pop() else {
            return false;
        };
        let rows = Rows::new(
            part.table.clone(),
            self.seed,
            part.rows.clone(),
            !part.is_whole,
        );
        self.current = Some((part, rows));
        true
    }

    /// A part is loaded.
    fn end_part(&mut self, part: RowRange) {
        if part.parts_left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let of_parts = if part.is_whole {
                &[]
            } else {
                part.table.finish_of_parts.as_slice()
            };
            self.finish = of_parts
                .iter()
                .chain(&part.table.finish)
                .rev()
                .cloned()
                .collect();
            self.full_rows = part.table.rows;
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
                Some((part, rows)) if rows.is_empty() => self.end_part(part),
                Some(current) => {
                    self.current = Some(current);
                    break;
                }
                None if self.begin_part() => {}
                None => return Ok(Next::Finished),
            }
        }
        let Some((part, rows)) = &mut self.current else {
            return Ok(Next::Finished);
        };
        let table = &part.table;
        // The engine numbers rows in the order they come, which is theirs if they come through one
        // connection.
        let first = usize::from(table.is_numbered && part.is_whole);
        let columns: Vec<&str> = table.columns[first..]
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        let columns = columns.join(", ");
        self.sql.clear();
        self.work = Work::Rows(match self.format.form {
            RowForm::Tuples => {
                self.sql
                    .push_str(&format!("INSERT INTO {}({columns}) VALUES", table.name));
                rows.push(&mut self.sql, RowForm::Tuples, self.format.bytes)
            }
            RowForm::Lines => {
                self.sql
                    .push_str(&format!("COPY {}({columns}) FROM STDIN", table.name));
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
