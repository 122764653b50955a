//! The Insert Benchmark in words.

use super::{InsertBenchmark, InsertWork, QueryKind, TablePlacement, WriteArrival};
use crate::plan::words::length;
use crate::plan::{Effect, Ends, Rows, Step};
use crate::units::{count, format_count};

impl InsertBenchmark {
    pub(in crate::plan) fn description(&self) -> String {
        let tables = match (self.tables, self.clients) {
            (_, 1) => "1 table",
            (TablePlacement::PerClient, _) => "a table each",
            (TablePlacement::Shared, _) => "1 table for all",
        };
        let arrival = match self.arrival {
            WriteArrival::Even => "evenly spaced",
            WriteArrival::ClassicBurst => "in one burst a second",
            WriteArrival::Poisson => "with exponential gaps",
        };
        format!(
            "{}, {tables}, {} rows loaded per client, background writes {arrival}",
            count(self.clients, "client"),
            format_count(self.rows)
        )
    }
}

impl InsertWork {
    pub(in crate::plan) fn description(self, step: &Step) -> String {
        let deleted = if step.deletes {
            " and as many deleted"
        } else {
            ""
        };
        let batch = step.batch;
        let rows = match step.effect {
            Effect::MakesData {
                rows: Rows::PerClient(rows),
                ..
            } => format_count(rows),
            _ => String::new(),
        };
        match self {
            Self::Load { indexes_first } => {
                let first = if indexes_first {
                    "secondary indexes in place, then "
                } else {
                    ""
                };
                format!(
                    "{first}{rows} rows per client inserted in primary key order, {batch} per \
                    transaction"
                )
            }
            Self::CreateIndexes { .. } => {
                format!("the secondary indexes created, after {rows} rows per client inserted")
            }
            Self::Write => format!(
                "{rows} rows per client inserted{deleted} flat out, {batch} per transaction"
            ),
            Self::ReadWrite { query, rate } => {
                let query = match query {
                    QueryKind::Range => "range queries",
                    QueryKind::Point => "queries of ten primary keys",
                };
                let time = length(step.duration_ns().unwrap_or(0));
                let end = match step.ends {
                    Ends::RowsAtRate { .. } => format!("until the rows of {time} are inserted"),
                    _ => format!("for {time}"),
                };
                format!(
                    "{query} flat out (closed loop) with {rate} rows/s per client \
                    inserted{deleted}, {batch} per transaction, in the background (open loop), \
                    {end}"
                )
            }
            Self::Scan => "five scans of every table".to_owned(),
        }
    }

    /// What `workload show` has for it.
    pub(in crate::plan) fn summary(self, step: &Step) -> String {
        match self {
            Self::Load {
                indexes_first: false,
            } => "create tables, insert in primary key order".to_owned(),
            Self::Load {
                indexes_first: true,
            } => "create tables and indexes, insert".to_owned(),
            Self::CreateIndexes { .. } => {
                "insert one batch, create three secondary indexes".to_owned()
            }
            Self::Write if step.deletes => "insert, delete as many, as fast as possible".to_owned(),
            Self::Write => "insert as fast as possible".to_owned(),
            Self::ReadWrite { query, .. } => {
                let query = match query {
                    QueryKind::Range => "range",
                    QueryKind::Point => "point",
                };
                let background = if step.deletes {
                    "inserts and deletes"
                } else {
                    "inserts"
                };
                format!(
                    "{query} queries flat out with {background} at the rate, {}",
                    crate::units::format_duration_ns(step.duration_ns().unwrap_or(0))
                )
            }
            Self::Scan => "five scans that match no row".to_owned(),
        }
    }
}
