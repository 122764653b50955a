//! A client: one event after the other, drawn off the clock and performed on it.

use std::ops::Range;
use std::sync::Arc;

use plimsoll_core::seed::Draw;
use plimsoll_engine::{Argument, Counts, Dialect, ErrorClass, Parameter, Prepared, SqlError, SqlSession};
use plimsoll_load::{Failure, Next, Outcome, Worker};

use super::event::{Draws, Event, Part};
use super::random::Ids;
use super::statements::{Statement, begin, prepares_begin, table_name};
use super::tally::{Statements, Tally};
use super::text::{C_LENGTH, PAD_LENGTH, push_c, push_pad};
use crate::session::Session;

/// No statement with texts has more values.
const MOST_MIXED: usize = 16;
/// The first text of a statement is a `c`, the second a `pad`.
const TEXT_LENGTHS: [usize; 2] = [C_LENGTH, PAD_LENGTH];

/// The shape of the tables, and how statements go.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub tables: u32,
    pub rows: u64,
    pub dialect: Dialect,
    /// Prepared where sysbench prepares; else everything is text.
    pub is_prepared: bool,
}

/// A statement on one table of one session.
struct Handle {
    /// `None` where it goes as text.
    prepared: Option<Prepared>,
    /// The text between the placeholders, for those.
    pieces: Vec<String>,
}

/// A statement that is ready to be performed.
struct Call {
    statement: Statement,
    table: usize,
    prepared: Option<Prepared>,
    /// Of the client's arguments.
    arguments: Range<usize>,
    /// Of its texts: those of the arguments, or the statement itself.
    text: Range<usize>,
}

/// One connection of a test.
pub(super) struct Client {
    session: Session,
    shape: Shape,
    event: Event,
    ids: Ids,
    draw: Draw,
    /// The only table of a scan, from 0.
    own_table: Option<usize>,
    begin: Control,
    commit: Control,
    /// By part, then by table.
    handles: Vec<Vec<Handle>>,
    calls: Vec<Call>,
    arguments: Vec<Argument<'static>>,
    texts: String,
    number: itoa::Buffer,
    must_redraw: bool,
    statements: Statements,
    /// By table, over the worker's life.
    growth: Vec<i64>,
    tally: Arc<Tally>,
}

/// A statement that begins or ends a transaction.
struct Control {
    sql: &'static str,
    prepared: Option<Prepared>,
}

impl Control {
    fn perform(&self, session: &mut dyn SqlSession) -> Result<Counts, SqlError> {
        match self.prepared {
            Some(prepared) => session.perform_prepared(prepared, &[]),
            None => session.perform(self.sql),
        }
    }
}

impl Client {
    pub fn new(session: Session, shape: Shape, event: Event, ids: Ids, draw: Draw, own_table: Option<usize>, tally: Arc<Tally>) -> Self {
        let begin = Control { sql: begin(shape.dialect, event.is_writing()), prepared: None };
        let growth = vec![0; shape.tables as usize];
        Self {
            session,
            shape,
            event,
            ids,
            draw,
            own_table,
            begin,
            commit: Control { sql: "COMMIT", prepared: None },
            handles: Vec::new(),
            calls: Vec::new(),
            arguments: Vec::new(),
            texts: String::new(),
            number: itoa::Buffer::new(),
            must_redraw: false,
            statements: Statements::default(),
            growth,
            tally,
        }
    }

    /// Draws the event's tables and values.
    fn draw(&mut self) {
        self.calls.clear();
        self.arguments.clear();
        self.texts.clear();
        let (mut table, mut id) = (0, 0);
        for index in 0..self.event.parts.len() {
            let part = self.event.parts[index];
            if part.has_own_table {
                table = self.own_table.unwrap_or_else(|| self.draw.below(self.shape.tables.into()) as usize);
            }
            for _ in 0..part.times {
                let (arguments, texts) = (self.arguments.len(), self.texts.len());
                self.draw_values(part, &mut id);
                let handle = &self.handles[index][table];
                let call = Call {
                    statement: part.statement,
                    table,
                    prepared: handle.prepared,
                    arguments: arguments..self.arguments.len(),
                    text: texts..self.texts.len(),
                };
                let call = if call.prepared.is_some() { call } else { self.write_out(call, index) };
                self.calls.push(call);
            }
        }
    }

    /// Appends a statement's arguments; its texts go behind the others, in their order and known lengths.
    fn draw_values(&mut self, part: Part, id: &mut i64) {
        let mut push = |value: i64| self.arguments.push(Argument::Integer(value));
        let draw = &mut self.draw;
        match part.statement {
            Statement::UpdateNonindex | Statement::UpdateList { .. } => {
                push_c(&mut self.texts, draw);
                self.arguments.push(Argument::Text(""));
                let mut push = |value: i64| self.arguments.push(Argument::Integer(value));
                match (part.draws, part.statement) {
                    (Draws::Ids, Statement::UpdateList { values }) => (0..values).for_each(|_| push(self.ids.draw(draw))),
                    (Draws::First, _) => push(1),
                    _ => push(self.ids.draw(draw)),
                }
            }
            Statement::InsertWithId | Statement::Insert => {
                if part.draws == Draws::SameId {
                    push(*id);
                }
                push(self.ids.draw(draw));
                push_c(&mut self.texts, draw);
                push_pad(&mut self.texts, draw);
                self.arguments.extend([Argument::Text(""); 2]);
            }
            Statement::List { values, .. } => match part.draws {
                Draws::Hot => (1..=i64::from(values)).for_each(|at| push(self.shape.rows as i64 / 2 + at)),
                _ => (0..values).for_each(|_| push(self.ids.draw(draw))),
            },
            _ => match part.draws {
                Draws::Span(width) => {
                    let first = self.ids.draw(draw);
                    push(first);
                    push(first + i64::from(width));
                }
                Draws::Nothing => {}
                _ => {
                    *id = self.ids.draw(draw);
                    push(*id);
                }
            },
        }
    }

    /// Writes a statement with its values behind the texts.
    fn write_out(&mut self, call: Call, part: usize) -> Call {
        let start = self.texts.len();
        let handle = &self.handles[part][call.table];
        let mut text = call.text.start;
        let mut lengths = TEXT_LENGTHS.iter();
        for (piece, argument) in handle.pieces.iter().zip(call.arguments.clone()) {
            self.texts.push_str(piece);
            match self.arguments[argument] {
                Argument::Integer(value) => self.texts.push_str(self.number.format(value)),
                Argument::Text(_) => {
                    let length = lengths.next().expect("no statement has more texts");
                    self.texts.push('\'');
                    self.texts.extend_from_within(text..text + length);
                    self.texts.push('\'');
                    text += length;
                }
            }
        }
        self.texts.push_str(handle.pieces.last().map_or("", String::as_str));
        Call { text: start..self.texts.len(), ..call }
    }

    /// Performs the drawn event. What it did to the tables takes effect with its end.
    fn perform(&mut self) -> Result<u64, Broken> {
        let session = self.session.get();
        let mut rows = 0;
        if self.event.is_transaction {
            self.begin.perform(session).map_err(Broken::harmless)?;
            self.statements.others += 1;
        }
        // Only one table of an event can grow or shrink.
        let (mut grown_table, mut growth) = (0, 0);
        for call in &self.calls {
            let counts = perform_call(session, call, &self.arguments, &self.texts);
            // A write alone is its own transaction: without an answer nobody knows whether it took place.
            let is_counted = !self.event.is_transaction && call.statement.growth(1) != 0;
            let counts = counts.map_err(|error| Broken { error, is_counted })?;
            if call.statement.is_read() {
                self.statements.reads += 1;
                rows += counts.rows;
            } else {
                if counts.affected > 0 {
                    self.statements.writes += 1
                } else {
                    self.statements.others += 1
                }
                rows += counts.affected;
                if call.statement.growth(1) != 0 {
                    grown_table = call.table;
                    growth += call.statement.growth(counts.affected);
                }
            }
        }
        if self.event.is_transaction {
            self.commit.perform(session).map_err(|error| Broken { error, is_counted: growth != 0 })?;
            self.statements.others += 1;
        }
        self.growth[grown_table] += growth;
        Ok(rows)
    }

    #[cold]
    fn outcome_of(&mut self, broken: Broken) -> Outcome {
        let Broken { error, is_counted } = broken;
        let class = error.class;
        if class.is_disconnected() {
            if class == ErrorClass::Lost && is_counted {
                let message =
                    format!("the connection was lost while a write was in flight, and nobody knows whether it took place: {error}");
                return Outcome::Failed(Failure { class: class.as_str(), message });
            }
            self.must_redraw = true;
            return Outcome::Lost { message: error.to_string() };
        }
        if self.event.is_transaction {
            // Some errors have ended the transaction already, and then there is nothing to take back.
            let _ = self.session.get().perform("ROLLBACK");
        }
        // Two clients that delete and insert the same row meet: one of them finds it there.
        let is_meeting = class == ErrorClass::Duplicate && self.event.is_transaction;
        if class.is_retryable() || is_meeting {
            self.must_redraw = true;
            return Outcome::Retry { class: class.as_str() };
        }
        Outcome::Failed(Failure { class: class.as_str(), message: error.to_string() })
    }
}

/// An event that did not come to its end.
struct Broken {
    error: SqlError,
    /// The tables' rows depend on whether the statement took place.
    is_counted: bool,
}

impl Broken {
    fn harmless(error: SqlError) -> Self {
        Self { error, is_counted: false }
    }
}

fn perform_call(session: &mut dyn SqlSession, call: &Call, arguments: &[Argument<'static>], texts: &str) -> Result<Counts, SqlError> {
    let arguments = &arguments[call.arguments.clone()];
    let Some(prepared) = call.prepared else { return session.perform(&texts[call.text.clone()]) };
    if call.text.is_empty() {
        return session.perform_prepared(prepared, arguments);
    }
    let mut filled = [Argument::Integer(0); MOST_MIXED];
    let filled = &mut filled[..arguments.len()];
    let mut text = call.text.start;
    let mut lengths = TEXT_LENGTHS.iter();
    for (place, argument) in filled.iter_mut().zip(arguments) {
        *place = match argument {
            Argument::Integer(_) => *argument,
            Argument::Text(_) => {
                let length = lengths.next().expect("no statement has more texts");
                text += length;
                Argument::Text(&texts[text - length..text])
            }
        };
    }
    session.perform_prepared(prepared, filled)
}

impl Worker for Client {
    fn open(&mut self) -> Result<(), String> {
        let session = self.session.open()?;
        let prepare = |session: &mut dyn SqlSession, sql: &str, parameters: &[Parameter]| {
            session.prepare_as(sql, parameters).map_err(|error| error.to_string())
        };
        if self.event.is_transaction && self.shape.is_prepared {
            if prepares_begin(self.shape.dialect) {
                self.begin.prepared = Some(prepare(session, self.begin.sql, &[])?);
            }
            self.commit.prepared = Some(prepare(session, self.commit.sql, &[])?);
        }
        for part in &self.event.parts {
            let mut handles = Vec::with_capacity(self.shape.tables as usize);
            for table in 1..=self.shape.tables {
                let sql = part.statement.sql(&table_name(table), self.shape.dialect);
                let is_text = !self.shape.is_prepared || part.statement.is_text();
                handles.push(if is_text {
                    Handle { prepared: None, pieces: sql.split('?').map(str::to_owned).collect() }
                } else {
                    Handle { prepared: Some(prepare(session, &sql, &part.statement.parameters())?), pieces: Vec::new() }
                });
            }
            self.handles.push(handles);
        }
        Ok(())
    }

    fn prepare(&mut self) -> Result<Next, String> {
        self.draw();
        Ok(Next::Operation(0))
    }

    fn begin_measuring(&mut self) {
        self.statements = Statements::default();
    }

    fn execute(&mut self) -> Outcome {
        // As in sysbench, an event that is tried again has new values.
        if std::mem::take(&mut self.must_redraw) {
            self.draw();
        }
        match self.perform() {
            Ok(rows) => Outcome::Done { rows },
            Err(broken) => self.outcome_of(broken),
        }
    }

    fn close(&mut self) {
        self.tally.add(std::mem::take(&mut self.statements), &self.growth);
        self.growth.fill(0);
        self.session.close();
    }
}
