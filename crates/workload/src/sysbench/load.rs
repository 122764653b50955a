//! Filling the tables: each by one connection in the order of its ids, so that its tree is as full as sysbench's, and indexed when it is
//! full.

use plimsoll_core::plan::LoadMode;
use plimsoll_engine::Dialect;
use plimsoll_load::{Next, Outcome, Worker};

use super::rows::{Form, Rows};
use super::statements::{create_index, table_name};
use crate::session::{Session, write_outcome};

/// The kinds of operations of the step.
pub(super) const INSERT: usize = 0;
pub(super) const INDEX: usize = 1;

/// sysbench's own buffer for a statement.
const STATEMENT_BYTES: usize = 512 << 10;
/// Of a fast load. Servers take statements of 4 MiB by default, the oldest of 1 MiB.
const LARGE_STATEMENT_BYTES: usize = (1 << 20) - (1 << 10);
/// Of one copy.
const COPY_BYTES: usize = 4 << 20;

/// How rows go to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    form: Form,
    bytes: usize,
}

impl Way {
    fn of(load: LoadMode, dialect: Dialect) -> Self {
        match (load, dialect) {
            (LoadMode::Classic, _) => Self { form: Form::Tuples, bytes: STATEMENT_BYTES },
            (LoadMode::Fast, Dialect::Postgres { .. }) => Self { form: Form::Lines, bytes: COPY_BYTES },
            (LoadMode::Fast, _) => Self { form: Form::Tuples, bytes: LARGE_STATEMENT_BYTES },
        }
    }
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Rows(u64),
    Index,
}

/// Loads one table after the other.
pub(super) struct Loader {
    session: Session,
    seed: u64,
    table_rows: u64,
    way: Way,
    /// Tables that are left, the next one last.
    tables: Vec<u32>,
    /// The table that is loaded, and its rows.
    current: Option<(u32, Rows)>,
    work: Work,
    sql: String,
    lines: String,
}

impl Loader {
    pub fn new(session: Session, seed: u64, load: LoadMode, dialect: Dialect, mut tables: Vec<u32>, table_rows: u64) -> Self {
        tables.reverse();
        let way = Way::of(load, dialect);
        let (sql, lines) = (String::new(), String::new());
        Self { session, seed, table_rows, way, tables, current: None, work: Work::Index, sql, lines }
    }
}

impl Worker for Loader {
    fn open(&mut self) -> Result<(), String> {
        self.session.open().map(|_| ())
    }

    fn prepare(&mut self) -> Result<Next, String> {
        let (table, rows) = match &mut self.current {
            Some(current) => current,
            None => match self.tables.pop() {
                Some(table) => self.current.insert((table, Rows::new(self.seed, table, self.table_rows))),
                None => return Ok(Next::Finished),
            },
        };
        self.sql.clear();
        if rows.is_empty() {
            self.sql.push_str(&create_index(*table));
            self.current = None;
            self.work = Work::Index;
            return Ok(Next::Operation(INDEX));
        }
        let name = table_name(*table);
        self.work = Work::Rows(match self.way.form {
            Form::Tuples => {
                self.sql.push_str(&format!("INSERT INTO {name}(k, c, pad) VALUES"));
                rows.push(&mut self.sql, Form::Tuples, self.way.bytes)
            }
            Form::Lines => {
                self.sql.push_str(&format!("COPY {name}(k, c, pad) FROM STDIN"));
                self.lines.clear();
                rows.push(&mut self.lines, Form::Lines, self.way.bytes)
            }
        });
        Ok(Next::Operation(INSERT))
    }

    fn execute(&mut self) -> Outcome {
        let session = self.session.get();
        match (self.work, self.way.form) {
            (Work::Index, _) => write_outcome(session.define(&self.sql).map(|()| self.table_rows), "an index", None),
            (Work::Rows(rows), Form::Tuples) => write_outcome(session.write(&self.sql, rows), "an insert", Some(rows)),
            (Work::Rows(rows), Form::Lines) => write_outcome(session.copy_in(&self.sql, self.lines.as_bytes()), "a copy", Some(rows)),
        }
    }

    fn close(&mut self) {
        self.session.close();
    }
}
