//! The connection that performs events.

use std::sync::Arc;

use plimsoll_core::seed::Draw;
use plimsoll_engine::{Argument, Counts, ErrorClass, Parameter, Prepared, SqlError, SqlSession};
use plimsoll_load::{Failure, Next, Outcome, Worker};

use super::program::{MOST_MIXED, Program};
use super::totals::{Statements, StepTotals};
use super::values::{Call, Draws, Handle, Values};
use crate::session::Session;

/// Statements with so few values are the rule.
const FEW_MIXED: usize = 16;

/// Who a client is among the others.
pub(crate) struct ClientIdentity {
    /// From 1.
    pub client: u32,
    pub clients: u32,
    pub draw: Draw,
    /// The only variant that it uses, from 0.
    pub own_variant: Option<usize>,
}

/// One connection of a step.
pub(crate) struct Client {
    session: Session,
    program: Arc<Program>,
    is_prepared: bool,
    draws: Draws,
    /// Beginnings of reading and of writing transactions.
    begin: [TransactionStatement; 2],
    commit: TransactionStatement,
    /// By statement, then by variant.
    handles: Vec<Vec<Handle>>,
    values: Values,
    must_redraw: bool,
    /// Of the events done, by event.
    statements: Vec<Statements>,
    /// Of tries that did not come to their end: all that they performed before.
    unfinished: Statements,
    /// Of the try that is under way.
    tried: Statements,
    /// By table, over the worker's life.
    growth: Vec<i64>,
    /// Of the transaction that is open.
    pending: Vec<(usize, i64)>,
    totals: Arc<StepTotals>,
}

/// A statement that begins or ends a transaction.
struct TransactionStatement {
    sql: &'static str,
    prepared: Option<Prepared>,
}

impl TransactionStatement {
    fn new(sql: &'static str) -> Self {
        Self {
            sql,
            prepared: None,
        }
    }

    fn perform(&self, session: &mut dyn SqlSession) -> Result<Counts, SqlError> {
        match self.prepared {
            Some(prepared) => session.perform_prepared(prepared, &[]),
            None => session.perform(self.sql),
        }
    }
}

impl Client {
    /// `tables` is how many of them rows are counted of.
    pub fn new(
        session: Session,
        program: Arc<Program>,
        is_prepared: bool,
        tables: usize,
        identity: ClientIdentity,
        totals: Arc<StepTotals>,
    ) -> Self {
        let ClientIdentity {
            client,
            clients,
            draw,
            own_variant,
        } = identity;
        let sequences = program
            .sequences
            .iter()
            .map(|sequence| sequence.start + i64::from(client - 1))
            .collect();
        Self {
            session,
            is_prepared,
            draws: Draws {
                draw,
                own_variant,
                sequences,
                stride: clients.into(),
            },
            begin: [false, true]
                .map(|is_writing| TransactionStatement::new(program.forms.begin(is_writing))),
            commit: TransactionStatement::new("COMMIT"),
            handles: Vec::new(),
            values: Values::default(),
            must_redraw: false,
            statements: vec![Statements::default(); program.events.len()],
            unfinished: Statements::default(),
            tried: Statements::default(),
            growth: vec![0; tables],
            pending: Vec::new(),
            program,
            totals,
        }
    }

    /// Performs the drawn event. What a transaction did to the tables takes effect with its end,
    /// and its statements count with it.
    fn perform(&mut self) -> Result<u64, FailedEvent> {
        let session = self.session.get();
        let event = &self.program.events[self.values.event];
        self.tried = Statements::default();
        let statements = &mut self.tried;
        let mut rows = 0;
        self.pending.clear();
        if event.is_transaction {
            self.begin[usize::from(event.is_writing)]
                .perform(session)
                .map_err(FailedEvent::harmless)?;
            statements.others += 1;
        }
        for call in &self.values.calls {
            let statement = &self.program.statements[call.statement];
            let counts = perform_call(session, call, &self.values);
            // A write alone is its own transaction: without an answer nobody knows whether it took
            // place.
            let is_counted = !event.is_transaction && statement.growth.is_some();
            let counts = counts.map_err(|error| FailedEvent { error, is_counted })?;
            let touched = if statement.returns_rows {
                counts.rows
            } else {
                counts.affected
            };
            rows += touched;
            if statement.is_read {
                statements.reads += 1;
                continue;
            }
            if touched > 0 {
                statements.writes += 1
            } else {
                statements.others += 1
            }
            if let Some(growth) = statement.growth {
                let table = growth.table.unwrap_or(call.variant);
                if event.is_transaction {
                    self.pending.push((table, growth.sign * touched as i64));
                } else {
                    self.growth[table] += growth.sign * touched as i64;
                }
            }
        }
        if event.is_transaction {
            self.commit.perform(session).map_err(|error| FailedEvent {
                error,
                is_counted: self.pending.iter().any(|(_, rows)| *rows != 0),
            })?;
            statements.others += 1;
        }
        for (table, rows) in &self.pending {
            self.growth[*table] += rows;
        }
        self.statements[self.values.event].add(*statements);
        Ok(rows)
    }

    #[cold]
    fn outcome_of(&mut self, broken: FailedEvent) -> Outcome {
        let FailedEvent { error, is_counted } = broken;
        self.unfinished.add(self.tried);
        let class = error.class;
        let event = &self.program.events[self.values.event];
        if class.is_disconnected() {
            if class == ErrorClass::Lost && is_counted {
                let message = format!(
                    "the connection was lost while a write was in flight, and nobody knows whether \
                    it took place: {error}"
                );
                return Outcome::Failed(Failure {
                    class: class.as_str(),
                    message,
                });
            }
            self.must_redraw = true;
            return Outcome::Lost {
                message: error.to_string(),
            };
        }
        if event.is_transaction {
            // Some errors have ended the transaction already, and then there is nothing to take
            // back.
            let _ = self.session.get().perform("ROLLBACK");
        }
        // Two clients that delete and insert the same row meet: one of them finds it there.
        let is_meeting = class == ErrorClass::Duplicate && event.retries_duplicates;
        if class.is_retryable() || is_meeting {
            self.must_redraw = true;
            return Outcome::Retry {
                class: class.as_str(),
            };
        }
        Outcome::Failed(Failure {
            class: class.as_str(),
            message: error.to_string(),
        })
    }
}

/// An event that did not come to its end.
struct FailedEvent {
    error: SqlError,
    /// The tables' rows depend on whether the statement took place.
    is_counted: bool,
}

impl FailedEvent {
    fn harmless(error: SqlError) -> Self {
        Self {
            error,
            is_counted: false,
        }
    }
}

fn perform_call(
    session: &mut dyn SqlSession,
    call: &Call,
    values: &Values,
) -> Result<Counts, SqlError> {
    let Some(prepared) = call.prepared else {
        return session.perform(&values.texts[call.sql.clone()]);
    };
    if call.spans.is_empty() {
        return session.perform_prepared(prepared, &values.arguments[call.arguments.clone()]);
    }
    if call.arguments.len() <= FEW_MIXED {
        perform_mixed::<FEW_MIXED>(session, prepared, call, values)
    } else {
        perform_mixed::<MOST_MIXED>(session, prepared, call, values)
    }
}

/// The arguments with their texts filled in, in an array on the stack.
fn perform_mixed<const MOST: usize>(
    session: &mut dyn SqlSession,
    prepared: Prepared,
    call: &Call,
    values: &Values,
) -> Result<Counts, SqlError> {
    let mut filled = [Argument::Integer(0); MOST];
    let arguments = &values.arguments[call.arguments.clone()];
    let filled = &mut filled[..arguments.len()];
    let mut spans = values.spans[call.spans.clone()].iter();
    for (place, argument) in filled.iter_mut().zip(arguments) {
        *place = match argument {
            Argument::Integer(_) => *argument,
            Argument::Text(_) => {
                let (from, to) = *spans.next().expect("every text has its span");
                Argument::Text(&values.texts[from..to])
            }
        };
    }
    session.perform_prepared(prepared, filled)
}

impl Worker for Client {
    fn open(&mut self) -> Result<(), String> {
        let session = self.session.open()?;
        let prepare = |session: &mut dyn SqlSession, sql: &str, parameters: &[Parameter]| {
            session
                .prepare_as(sql, parameters)
                .map_err(|error| error.to_string())
        };
        let program = &self.program;
        if self.is_prepared && program.events.iter().any(|event| event.is_transaction) {
            if program.forms.prepares_begin() {
                let is_needed = |writes: bool| {
                    program
                        .events
                        .iter()
                        .any(|event| event.is_transaction && event.is_writing == writes)
                };
                for (begin, is_writing) in self.begin.iter_mut().zip([false, true]) {
                    if is_needed(is_writing) {
                        begin.prepared = Some(prepare(session, begin.sql, &[])?);
                    }
                }
            }
            self.commit.prepared = Some(prepare(session, self.commit.sql, &[])?);
        }
        for statement in &program.statements {
            let mut handles = Vec::with_capacity(program.variants);
            for variant in 0..program.variants {
                let is_prepared = self.is_prepared && statement.is_prepared;
                let prepared = if is_prepared {
                    Some(prepare(
                        session,
                        &statement.sql(variant),
                        &statement.parameters,
                    )?)
                } else {
                    None
                };
                handles.push(Handle { prepared });
            }
            self.handles.push(handles);
        }
        Ok(())
    }

    fn prepare(&mut self) -> Result<Next, String> {
        self.values
            .draw(&self.program, &self.handles, &mut self.draws);
        Ok(Next::Operation(self.values.event))
    }

    fn begin_measuring(&mut self) {
        self.statements.fill(Statements::default());
        self.unfinished = Statements::default();
    }

    fn execute(&mut self) -> Outcome {
        // As in sysbench, an event that is tried again has new values.
        if std::mem::take(&mut self.must_redraw) {
            self.values
                .draw_again(&self.program, &self.handles, &mut self.draws);
        }
        match self.perform() {
            Ok(rows) => Outcome::Done { rows },
            Err(broken) => self.outcome_of(broken),
        }
    }

    fn close(&mut self) {
        self.totals.add(
            &self.statements,
            self.unfinished,
            &self.growth,
            &self.draws.sequences,
        );
        self.statements.fill(Statements::default());
        self.unfinished = Statements::default();
        self.growth.fill(0);
    }
}
