//! What one event of each test is: statements in groups, each group on a table of its own.

use plimsoll_core::plan::{INLIST_IDS, POINT_SELECTS, Test, TestKind};
use plimsoll_engine::SqlForms;

use super::statements::{C_PATTERN, Column, Columns, PAD_PATTERN, Statement, table_name};
use crate::client::{self, Place, Program, Source};
use crate::values::{Ids, Text};

/// Places of the program's texts.
const C: usize = 0;
const PAD: usize = 1;

/// Where the integers of a statement come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Draws {
    /// A drawn id.
    Id,
    /// The id that the statement before has had.
    SameId,
    /// As many drawn ids as there are values.
    Ids,
    /// The ids behind the middle of the table, always the same.
    Hot,
    /// A drawn id, and the one so far above it.
    Span(u32),
    /// The id 1.
    First,
    /// Nothing but `k`, and texts.
    Row,
    /// Nothing.
    Nothing,
}

/// A statement, and how it gets its values. Texts are random wherever one is asked for, and so is
/// `k` of an inserted row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DrawnStatement {
    pub statement: Statement,
    pub draws: Draws,
    /// How often in a row, each time with new values.
    pub times: u32,
    /// Whether the table is drawn again before it.
    pub has_own_table: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Whether it is between `BEGIN` and `COMMIT`.
    pub is_transaction: bool,
    pub parts: Vec<DrawnStatement>,
}

fn part(statement: Statement, draws: Draws) -> DrawnStatement {
    DrawnStatement {
        statement,
        draws,
        times: 1,
        has_own_table: true,
    }
}

impl Event {
    pub fn of(kind: TestKind, range: u32) -> Self {
        use Statement as S;
        use TestKind as T;
        // The ranges of read-only transactions have as many ids as their size says, those of the
        // other tests one more.
        let inner = Draws::Span(range.saturating_sub(1));
        let list = |column, columns| {
            vec![part(
                S::List {
                    column,
                    columns,
                    values: range,
                },
                Draws::Ids,
            )]
        };
        let ranged = |column, columns| vec![part(S::Range { column, columns }, Draws::Span(range))];
        let points = || DrawnStatement {
            times: POINT_SELECTS,
            ..part(S::Point, Draws::Id)
        };
        let reads = |statements: &[Statement]| {
            let ranges = statements.iter().map(|statement| part(*statement, inner));
            std::iter::once(points()).chain(ranges).collect::<Vec<_>>()
        };
        let all_reads = || reads(&[S::SimpleRange, S::SumRange, S::OrderRange, S::DistinctRange]);
        let writes = || {
            let insert = DrawnStatement {
                has_own_table: false,
                ..part(S::InsertWithId, Draws::SameId)
            };
            vec![
                part(S::UpdateIndex, Draws::Id),
                part(S::UpdateNonindex, Draws::Id),
                part(S::Delete, Draws::Id),
                insert,
            ]
        };
        let parts = match kind {
            T::HotPoints => vec![part(
                S::List {
                    column: Column::Id,
                    columns: Columns::C,
                    values: range,
                },
                Draws::Hot,
            )],
            T::PointQuery => vec![part(S::Point, Draws::Id)],
            T::PointsCoveredPk => list(Column::Id, Columns::Covered),
            T::PointsCoveredSi => list(Column::K, Columns::Covered),
            T::PointsNotcoveredPk => list(Column::Id, Columns::Notcovered),
            T::PointsNotcoveredSi => list(Column::K, Columns::Notcovered),
            T::RandomPoints => list(Column::Id, Columns::C),
            T::RangeCoveredPk => ranged(Column::Id, Columns::Covered),
            T::RangeCoveredSi => ranged(Column::K, Columns::Covered),
            T::RangeNotcoveredPk => ranged(Column::Id, Columns::Notcovered),
            T::RangeNotcoveredSi => ranged(Column::K, Columns::Notcovered),
            T::Scan => vec![part(S::Scan, Draws::Nothing)],
            T::ReadOnlyCount => vec![part(S::CountRange, inner)],
            T::ReadOnlyDistinct => reads(&[S::DistinctRange]),
            T::ReadOnlyOrder => reads(&[S::OrderRange]),
            T::ReadOnlySimple => reads(&[S::SimpleRange]),
            T::ReadOnlySum => reads(&[S::SumRange]),
            T::ReadOnly => all_reads(),
            T::DistinctRanges => vec![part(S::DistinctRange, inner)],
            T::Delete => vec![part(S::Delete, Draws::Id)],
            T::Insert => vec![part(S::Insert, Draws::Row)],
            T::ReadWrite => all_reads().into_iter().chain(writes()).collect(),
            T::UpdateIndex => vec![part(S::UpdateIndex, Draws::Id)],
            T::UpdateInlist => vec![part(S::UpdateList { values: INLIST_IDS }, Draws::Ids)],
            T::UpdateNonindex | T::UpdateZipf => vec![part(S::UpdateNonindex, Draws::Id)],
            T::UpdateOne => vec![part(S::UpdateNonindex, Draws::First)],
            T::WriteOnly => writes(),
        };
        Self {
            is_transaction: kind.is_transaction(),
            parts,
        }
    }

    /// Whether it writes.
    pub fn is_writing(&self) -> bool {
        self.parts.iter().any(|part| !part.statement.is_read())
    }
}

/// What the clients of a test perform, on so many tables of so many rows.
pub(super) fn program(test: Test, tables: u32, rows: u64, forms: &'static dyn SqlForms) -> Program {
    let event = Event::of(test.kind, test.range);
    let part = |(statement, part): (usize, &DrawnStatement)| client::EventStatement {
        statement,
        sources: part.sources(rows).into(),
        times: part.times,
        draws_variant: part.has_own_table,
    };
    let parts = event.parts.iter().enumerate().map(part).collect();
    let (is_transaction, is_writing) = (event.is_transaction, event.is_writing());
    Program {
        forms,
        variants: tables as usize,
        statements: event
            .parts
            .iter()
            .map(|part| part.statement.of_tables(tables, forms))
            .collect(),
        ids: vec![Ids::new(test.distribution, rows)],
        texts: vec![Text::pattern(&C_PATTERN), Text::pattern(&PAD_PATTERN)],
        sequences: Vec::new(),
        // Two clients of a test meet at a row that one deletes and inserts again.
        events: vec![client::Event {
            is_transaction,
            is_writing,
            retries_duplicates: is_transaction,
            parts,
        }],
        weights: Vec::new(),
    }
}

impl DrawnStatement {
    /// In the order of the placeholders.
    fn sources(self, rows: u64) -> Vec<Source> {
        let ids = |count: u32| Source::Integers {
            ids: 0,
            count,
            add: 0,
        };
        let drawn = match self.draws {
            Draws::Id => vec![ids(1)],
            Draws::SameId => vec![Source::Integer(Place::Back(1), 0), ids(1)],
            Draws::Ids => vec![ids(self.statement.list_length())],
            Draws::Hot => (1..=i64::from(self.statement.list_length()))
                .map(|at| Source::Constant(rows as i64 / 2 + at))
                .collect(),
            Draws::Span(width) => vec![ids(1), Source::Integer(Place::Back(1), width.into())],
            Draws::First => vec![Source::Constant(1)],
            Draws::Row => vec![ids(1)],
            Draws::Nothing => vec![],
        };
        match self.statement {
            Statement::UpdateNonindex | Statement::UpdateList { .. } => {
                std::iter::once(Source::Text(C)).chain(drawn).collect()
            }
            Statement::InsertWithId | Statement::Insert => drawn
                .into_iter()
                .chain([Source::Text(C), Source::Text(PAD)])
                .collect(),
            _ => drawn,
        }
    }
}

impl Statement {
    /// Values of its list.
    fn list_length(self) -> u32 {
        match self {
            Self::List { values, .. } | Self::UpdateList { values } => values,
            _ => 0,
        }
    }

    fn of_tables(self, tables: u32, forms: &dyn SqlForms) -> client::Statement {
        let pieces = |table: u32| {
            self.sql(&table_name(table), forms)
                .split('?')
                .map(str::to_owned)
                .collect()
        };
        let growth = self.growth();
        client::Statement {
            pieces: (1..=tables).map(pieces).collect(),
            parameters: self.parameters(),
            is_prepared: !self.is_text(),
            is_read: self.is_read(),
            returns_rows: self.is_read(),
            growth: (growth != 0).then_some(client::Growth {
                sign: growth,
                table: None,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::plan::{SysbenchPreset, TestName};

    #[test]
    fn every_event_has_the_published_statements() {
        let orders = [
            SysbenchPreset::Year2025.order(),
            SysbenchPreset::Year2023.order(),
        ]
        .concat();
        for name in orders.into_iter().chain(["distinct-ranges"]) {
            let test = TestName::parse(name).unwrap();
            let event = Event::of(test.kind, test.range);
            let count = |is_read| {
                event
                    .parts
                    .iter()
                    .filter(|part| part.statement.is_read() == is_read)
                    .map(|part| part.times)
                    .sum::<u32>()
            };
            let mix = test.kind.statements();
            assert_eq!(
                (
                    count(true),
                    count(false),
                    2 * u32::from(event.is_transaction)
                ),
                (mix.reads, mix.writes, mix.others),
                "{name}"
            );
            assert_eq!(event.is_writing(), test.kind.is_write(), "{name}");
        }
    }

    #[test]
    fn groups_have_tables_of_their_own() {
        let event = Event::of(TestKind::ReadWrite, 100);
        // Ten point queries share one; so do the delete and the insert. At most eight tables.
        assert_eq!(
            event.parts.iter().filter(|part| part.has_own_table).count(),
            8
        );
        assert_eq!(event.parts[0].times, 10);
        assert_eq!(event.parts[1].draws, Draws::Span(99));
        assert_eq!(
            Event::of(TestKind::RangeCoveredPk, 100).parts[0].draws,
            Draws::Span(100)
        );
        // An insert has the id of the delete before it.
        let insert = event.parts.last().unwrap().sources(1000);
        let drawn = Source::Integers {
            ids: 0,
            count: 1,
            add: 0,
        };
        assert_eq!(
            insert,
            [
                Source::Integer(Place::Back(1), 0),
                drawn,
                Source::Text(C),
                Source::Text(PAD)
            ]
        );
        for part in &event.parts {
            assert_eq!(
                part.sources(1000).len(),
                part.statement.parameters().len(),
                "{part:?}"
            );
        }
    }
}
