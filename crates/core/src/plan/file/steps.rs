//! The steps of a workload file with their facts.

use super::FileWork;
use crate::plan::{Effect, Ends, LoadMode, Operation, Rows, Step, Work};

pub(in crate::plan) fn fill(name: &str, tables: u32, rows: u64, load: LoadMode) -> Step {
    Step {
        ends: Ends::Rows,
        effect: Effect::MakesData {
            rows: Rows::InAll(rows),
            is_indexed: true,
        },
        clients: load.loaders(tables),
        ..Step::new(
            name,
            Operation::Insert,
            Work::File(FileWork::Fill { tables, rows, load }),
        )
    }
}

pub(in crate::plan) fn mix(
    name: &str,
    events: Vec<(String, u32)>,
    effect: Effect,
    ends: Ends,
) -> Step {
    Step {
        ends,
        effect,
        ..Step::new(name, Operation::Event, Work::File(FileWork::Mix { events }))
    }
}
