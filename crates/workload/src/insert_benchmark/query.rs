//! The reader: one query after the other, all rows fetched.

use std::sync::Arc;

use plimsoll_core::plan::{Era, QueryKind};
use plimsoll_core::seed::Draw;
use plimsoll_load::{Next, Outcome, Worker};

use super::bound::BoundStatement;
use super::data::{CASHREGISTERS, CUSTOMERS, MAX_PRICE, PRODUCTS, float_price_cents, push_price};
use super::pairing::Pairing;
use super::statements::{RANGES, ROWS_PER_QUERY, Range, Statements};
use crate::session::{Session, look_up, query_outcome};

/// The largest id is looked up at the start and again after this many point queries.
const MAX_ID_QUERIES: u64 = 100;

/// Range queries with an index drawn for each, or point queries of ten ids.
pub(super) struct Reader {
    session: Session,
    statements: Statements,
    era: Era,
    query: QueryKind,
    draw: Draw,
    pairing: Option<Arc<Pairing>>,
    /// One for each range, or the one of point queries.
    requests: Vec<BoundStatement>,
    /// The one that is bound.
    current: usize,
    number: itoa::Buffer,
    queries: u64,
    max_id: i64,
}

impl Reader {
    pub fn new(
        session: Session,
        statements: Statements,
        era: Era,
        query: QueryKind,
        draw: Draw,
        pairing: Option<Arc<Pairing>>,
    ) -> Self {
        Self {
            session,
            statements,
            era,
            query,
            draw,
            pairing,
            requests: Vec::new(),
            current: 0,
            number: itoa::Buffer::new(),
            queries: 0,
            max_id: 0,
        }
    }

    fn draw_range(&mut self) {
        let choice = self.draw.below(RANGES.len() as u64) as usize;
        let range = RANGES[choice];
        self.current = choice;
        if self.era != Era::Current && range != Range::Register {
            // Float bounds: text, as the original sent it.
            let customer = self.draw.below(CUSTOMERS);
            let cents = float_price_cents(&mut self.draw, customer);
            let mut bound = String::with_capacity(16);
            push_price(&mut bound, cents, &mut self.number);
            self.requests[choice].bind_text(self.statements.range(range, &bound));
            return;
        }
        let bound = match range {
            Range::Market => PRODUCTS,
            Range::Register => CASHREGISTERS,
            Range::Pdc => MAX_PRICE,
        };
        let start = self.draw.below(bound) as i64;
        self.requests[choice].bind(&[start]);
    }

    /// What comes before the query when looking up the largest id must be asked again.
    fn draw_point(&mut self) -> Result<Option<Next>, String> {
        if self.queries.is_multiple_of(MAX_ID_QUERIES) {
            match look_up(self.session.get(), &self.statements.max_id())? {
                Ok(found) => self.max_id = found.unwrap_or(0),
                Err(next) => return Ok(Some(next)),
            }
        }
        // Ids above the deleter's mark; some may be gone or not yet there, and such a query fetches
        // fewer rows.
        let oldest = self
            .pairing
            .as_ref()
            .map_or(0, |pairing| pairing.oldest_id());
        let span = (self.max_id - oldest).max(1) as u64;
        let mut ids = [0; ROWS_PER_QUERY as usize];
        for id in &mut ids {
            *id = oldest + self.draw.below(span) as i64;
        }
        self.requests[0].bind(&ids);
        Ok(None)
    }
}

impl Worker for Reader {
    fn open(&mut self) -> Result<(), String> {
        let session = self.session.open()?;
        let (statements, values) = match self.query {
            QueryKind::Point => (vec![self.statements.point()], ROWS_PER_QUERY as usize),
            QueryKind::Range => (
                RANGES
                    .map(|range| self.statements.range(range, "?"))
                    .to_vec(),
                1,
            ),
        };
        let is_text = self.statements.has_text_queries();
        let requests = statements
            .iter()
            .map(|sql| BoundStatement::open(session, sql, values, is_text));
        self.requests = requests.collect::<Result<_, _>>()?;
        Ok(())
    }

    fn prepare(&mut self) -> Result<Next, String> {
        match self.query {
            QueryKind::Range => self.draw_range(),
            QueryKind::Point => {
                if let Some(next) = self.draw_point()? {
                    return Ok(next);
                }
            }
        }
        self.queries += 1;
        Ok(Next::Operation(0))
    }

    fn execute(&mut self) -> Outcome {
        query_outcome(self.requests[self.current].query(self.session.get()))
    }
}
