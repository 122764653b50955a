//! The steps of sysbench with their facts.

use super::{SysbenchWork, Test, TestKind};
use crate::plan::{Effect, Ends, LoadMode, Operation, Rows, Step, Work};

/// Connections that fill tables at the same time, where the mode allows more than one.
const MOST_LOADERS: u32 = 4;

impl LoadMode {
    /// Connections that fill so many tables: each fills one alone.
    pub(in crate::plan) fn loaders(self, tables: u32) -> u32 {
        match self {
            Self::Fast => tables.clamp(1, MOST_LOADERS),
            Self::Classic => 1,
        }
    }
}

pub(in crate::plan) fn prepare(name: &str, tables: u32, rows: u64, load: LoadMode) -> Step {
    Step {
        ends: Ends::Rows,
        effect: Effect::MakesData {
            rows: Rows::InAll(rows.saturating_mul(tables.into())),
            is_indexed: true,
        },
        clients: load.loaders(tables),
        ..Step::new(
            name,
            Operation::Insert,
            Work::Sysbench(SysbenchWork::Prepare { tables, rows, load }),
        )
    }
}

pub(in crate::plan) fn test(name: impl Into<String>, test: Test, ends: Ends) -> Step {
    let operation = match test.kind {
        TestKind::Scan => Operation::Scan,
        _ => Operation::Transaction,
    };
    Step {
        ends,
        effect: if test.kind.is_write() {
            Effect::Writes
        } else {
            Effect::Reads
        },
        ..Step::new(name, operation, Work::Sysbench(SysbenchWork::Test(test)))
    }
}
