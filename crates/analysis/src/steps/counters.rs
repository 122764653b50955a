//! What engines counted during a step: per operation, with what matters in front.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::engines::{front_counters, is_level};
use plimsoll_store::event::StepDone;

use crate::metrics::facts::counts_rows;
use crate::runs::attempts::Run;

/// Where a counter belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CounterKind {
    /// The field looks at it, or it changes most between the cells.
    Front,
    Other,
    /// It goes up and down: what was recorded is how much it changed, and that is not a cost of an
    /// operation.
    Level,
}

/// A counter of the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// The engine's name for it.
    pub name: String,
    pub kind: CounterKind,
    /// Its unit, where it is known: `B`, `us`.
    pub unit: &'static str,
    /// What it tells, where that is known.
    pub meaning: &'static str,
    /// Growth during the step, one per cell of the view.
    pub values: Vec<Option<i64>>,
    /// The same by the operations of the step; `None` for levels.
    pub per_operation: Vec<Option<f64>>,
}

/// Of the counters that the field does not name, so many with the largest changes stand in front
/// too.
const MOST_CHANGED: usize = 8;
/// A change by less than this factor is not remarkable.
const LEAST_FACTOR: f64 = 1.2;
/// What happens less often than once in a thousand operations, or less often than this in a whole
/// step, changes by chance.
pub(crate) const LEAST_PER_OPERATION: f64 = 0.001;
pub(crate) const LEAST_COUNT: i64 = 100;

/// Counters of one step from one run per cell; index 0 is the base.
pub(crate) fn counters(runs: &[Option<&Run<'_>>]) -> Vec<Counter> {
    let done: Vec<Option<&StepDone>> = runs
        .iter()
        .map(|run| run.and_then(|run| run.done))
        .collect();
    let operations: Vec<Option<f64>> = done.iter().map(|done| done.and_then(operations)).collect();
    let counted: Vec<Option<&BTreeMap<String, i64>>> = done
        .iter()
        .map(|done| done.map(|done| &done.engine_counters))
        .collect();
    let names: BTreeSet<&String> = counted
        .iter()
        .flatten()
        .flat_map(|counters| counters.keys())
        .collect();
    let mut counters: Vec<Counter> = names
        .into_iter()
        .map(|name| {
            let values: Vec<Option<i64>> = counted
                .iter()
                .map(|counters| counters.and_then(|counters| counters.get(name).copied()))
                .collect();
            counter(name, values, &operations)
        })
        .filter(|counter| counter.values.iter().flatten().any(|value| *value != 0))
        .collect();
    promote(&mut counters);
    let place = |name: &str| front_counters().position(|known| known.name == name);
    counters.sort_by_key(|counter| (counter.kind, place(&counter.name).unwrap_or(usize::MAX)));
    counters
}

/// Operations of the step's own kind, as its rates count them; of a workload file's step events of
/// any kind.
pub(crate) fn operations(done: &StepDone) -> Option<f64> {
    let own = done
        .operations
        .iter()
        .filter(|operation| done.primary.counts(&operation.kind));
    // Of a sysbench test: per transaction, so that its statements can be seen.
    let count: u64 = own
        .map(|operation| {
            if counts_rows(&operation.kind) {
                operation.rows
            } else {
                operation.ok
            }
        })
        .sum();
    (count > 0).then_some(count as f64)
}

fn counter(name: &str, values: Vec<Option<i64>>, operations: &[Option<f64>]) -> Counter {
    let known = front_counters().find(|known| known.name == name);
    // What falls is not a counter, whatever it is called.
    let kind = if is_level(name) || values.iter().flatten().any(|value| *value < 0) {
        CounterKind::Level
    } else if known.is_some() {
        CounterKind::Front
    } else {
        CounterKind::Other
    };
    let per_operation = match kind {
        CounterKind::Level => vec![None; values.len()],
        _ => values
            .iter()
            .zip(operations)
            .map(|(value, operations)| Some((*value)? as f64 / (*operations)?))
            .collect(),
    };
    let (unit, meaning) = known.map_or(("", ""), |known| (known.unit, known.meaning));
    Counter {
        name: name.to_owned(),
        kind,
        unit,
        meaning,
        values,
        per_operation,
    }
}

/// Puts the counters in front that changed most against the base.
fn promote(counters: &mut [Counter]) {
    let mut changed: Vec<(Reverse<u64>, usize)> = counters
        .iter()
        .enumerate()
        .filter(|(_, counter)| counter.kind == CounterKind::Other)
        .filter_map(|(index, counter)| {
            Some((Reverse((largest_change(counter)? * 1e6) as u64), index))
        })
        .collect();
    changed.sort_unstable();
    for (_, index) in changed.into_iter().take(MOST_CHANGED) {
        counters[index].kind = CounterKind::Front;
    }
}

/// The largest factor between a cell and the base, either way; `None` when it is not remarkable or
/// cannot be reported.
fn largest_change(counter: &Counter) -> Option<f64> {
    let base = (*counter.per_operation.first()?)?;
    let base_count = counter.values[0]?;
    let others = counter.per_operation.iter().zip(&counter.values).skip(1);
    let factors = others.filter_map(|(per_operation, count)| {
        let (per_operation, count) = ((*per_operation)?, (*count)?);
        let is_frequent =
            per_operation.max(base) >= LEAST_PER_OPERATION && count.max(base_count) >= LEAST_COUNT;
        is_frequent
            .then(|| per_operation.max(base) / per_operation.min(base).max(LEAST_PER_OPERATION))
    });
    factors
        .reduce(f64::max)
        .filter(|factor| *factor >= LEAST_FACTOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_told_from_counters() {
        for (name, expected) in [
            ("innodb_buffer_pool_pages_dirty", true),
            ("innodb_buffer_pool_pages_flushed", false),
            ("innodb_buffer_pool_bytes_data", true),
            ("innodb_buffer_pool_reads", false),
            ("innodb_data_pending_reads", true),
            ("innodb_row_lock_current_waits", true),
            ("innodb_row_lock_time", false),
            ("innodb_row_lock_time_avg", true),
            ("threads_running", true),
            ("threads_created", false),
            ("open_tables", true),
            ("opened_tables", false),
            ("uptime_since_flush_status", true),
            ("pg_stat_user_tables.n_dead_tup", true),
            ("pg_stat_user_tables.n_tup_del", false),
            ("pg_stat_wal.wal_bytes", false),
            ("wal_bytes", true),
            ("rocksdb_memtable_total", true),
            ("rocksdb.cur-size-active-mem-table", true),
            ("rocksdb_compaction_cpu_us", false),
        ] {
            assert_eq!(is_level(name), expected, "{name}");
        }
    }

    #[test]
    fn what_falls_is_a_level_and_is_not_divided() {
        let operations = [Some(10.0), Some(20.0)];
        let falling = counter("anything", vec![Some(-1), Some(7)], &operations);
        assert_eq!(
            (falling.kind, falling.per_operation),
            (CounterKind::Level, vec![None, None])
        );
        let growing = counter("handler_write", vec![Some(20), Some(7)], &operations);
        assert_eq!(
            (growing.kind, growing.per_operation),
            (CounterKind::Front, vec![Some(2.0), Some(0.35)])
        );
        let without = counter("handler_write", vec![Some(20), None], &[None, Some(1.0)]);
        assert_eq!(without.per_operation, [None, None]);
    }

    #[test]
    fn the_largest_changes_come_in_front() {
        let operations = [Some(1000.0), Some(1000.0), Some(1000.0)];
        let mut counters: Vec<Counter> = (0..20)
            .map(|i| {
                counter(
                    &format!("other{i:02}"),
                    vec![Some(1000), Some(1000 + i * 100), Some(1000)],
                    &operations,
                )
            })
            .chain([
                counter("rare", vec![Some(1), Some(90), Some(1)], &operations),
                counter("absent", vec![None, Some(90_000), Some(1)], &operations),
            ])
            .collect();
        promote(&mut counters);
        let front: Vec<&str> = counters
            .iter()
            .filter(|counter| counter.kind == CounterKind::Front)
            .map(|c| c.name.as_str())
            .collect();
        assert_eq!(
            front,
            [
                "other12", "other13", "other14", "other15", "other16", "other17", "other18",
                "other19"
            ]
        );
    }

    #[test]
    fn counters_of_a_workload_files_step_are_divided_by_its_events() {
        use plimsoll_core::plan::Operation;
        use plimsoll_core::record::OperationRecord;
        let kind = |kind: &str, ok| OperationRecord {
            kind: kind.to_owned(),
            ok,
            rows: ok,
            ..OperationRecord::default()
        };
        let done = StepDone {
            primary: Operation::Event,
            operations: vec![kind("look", 30), kind("insert", 10)],
            ..StepDone::default()
        };
        assert_eq!(operations(&done), Some(40.0));
        assert_eq!(
            operations(&StepDone {
                primary: Operation::Insert,
                ..done
            }),
            Some(10.0)
        );
    }
}
