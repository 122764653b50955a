//! What engines counted during a step: per operation, with what matters in front.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::plan::ALL_EVENTS;
use plimsoll_store::event::StepDone;

use crate::metrics::facts::counts_rows;
use crate::runs::attempts::Run;

/// Where a counter belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CounterKind {
    /// The field looks at it, or it changes most between the cells.
    Front,
    /// Any other.
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
    /// Where it belongs.
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

/// What the field looks at: name, unit, meaning. In the order of the table.
const FRONT: &[(&str, &str, &str)] = &[
    // InnoDB and the server above it.
    ("innodb_data_reads", "", "reads from files"),
    ("innodb_data_read", "B", "bytes read from files"),
    ("innodb_data_writes", "", "writes to files, logs included"),
    (
        "innodb_data_written",
        "B",
        "bytes written to files, logs included",
    ),
    ("innodb_data_fsyncs", "", "fsyncs of files"),
    ("innodb_os_log_written", "B", "bytes of redo log"),
    ("innodb_os_log_fsyncs", "", "fsyncs of the redo log"),
    (
        "innodb_log_waits",
        "",
        "waits because the log buffer was too small",
    ),
    (
        "innodb_buffer_pool_read_requests",
        "",
        "page reads asked of the buffer pool: CPU, not I/O",
    ),
    (
        "innodb_buffer_pool_reads",
        "",
        "pages that were not in the buffer pool",
    ),
    (
        "innodb_buffer_pool_pages_flushed",
        "",
        "dirty pages written back",
    ),
    ("innodb_buffer_pool_wait_free", "", "waits for a free page"),
    ("innodb_rows_inserted", "", "rows inserted"),
    ("innodb_rows_deleted", "", "rows deleted"),
    (
        "innodb_rows_read",
        "",
        "rows read, more than are returned when an index leads to more",
    ),
    ("innodb_row_lock_waits", "", "waits for a row's lock"),
    ("innodb_row_lock_time", "ms", "time in waits for row locks"),
    ("handler_read_key", "", "rows looked up by key"),
    ("handler_read_next", "", "next rows in index order"),
    (
        "handler_read_rnd_next",
        "",
        "next rows in a scan of a table",
    ),
    ("handler_write", "", "rows handed to the storage engine"),
    ("created_tmp_disk_tables", "", "temporary tables on disk"),
    ("binlog_bytes_written", "B", "bytes of binary log"),
    // MyRocks.
    ("rocksdb_rows_inserted", "", "rows inserted"),
    ("rocksdb_rows_deleted", "", "rows deleted"),
    ("rocksdb_rows_read", "", "rows read"),
    ("rocksdb_bytes_written", "B", "bytes written by statements"),
    ("rocksdb_bytes_read", "B", "bytes read by statements"),
    ("rocksdb_wal_bytes", "B", "bytes of write-ahead log"),
    ("rocksdb_wal_synced", "", "syncs of the write-ahead log"),
    (
        "rocksdb_flush_write_bytes",
        "B",
        "bytes flushed from memory",
    ),
    (
        "rocksdb_compact_read_bytes",
        "B",
        "bytes that compaction read",
    ),
    (
        "rocksdb_compact_write_bytes",
        "B",
        "bytes that compaction wrote",
    ),
    ("rocksdb_compactions", "", "compactions"),
    ("rocksdb_compaction_us", "us", "time of compaction threads"),
    (
        "rocksdb_compaction_cpu_us",
        "us",
        "CPU of compaction threads",
    ),
    (
        "rocksdb_stall_micros",
        "us",
        "time that writers were held back",
    ),
    ("rocksdb_block_cache_hit", "", "blocks found in the cache"),
    (
        "rocksdb_block_cache_miss",
        "",
        "blocks that were not in the cache",
    ),
    (
        "rocksdb_bloom_filter_useful",
        "",
        "reads that a bloom filter spared",
    ),
    ("rocksdb_number_keys_read", "", "keys read"),
    ("rocksdb_number_db_seek", "", "seeks"),
    ("rocksdb_number_db_next", "", "steps of iterators"),
    // PostgreSQL.
    (
        "pg_stat_database.blks_read",
        "",
        "blocks that were not in shared buffers",
    ),
    (
        "pg_stat_database.blks_hit",
        "",
        "blocks found in shared buffers",
    ),
    (
        "pg_stat_database.tup_returned",
        "",
        "rows that scans went over",
    ),
    (
        "pg_stat_database.tup_fetched",
        "",
        "rows fetched by index scans",
    ),
    ("pg_stat_database.tup_inserted", "", "rows inserted"),
    ("pg_stat_database.tup_deleted", "", "rows deleted"),
    ("pg_stat_database.xact_commit", "", "transactions committed"),
    (
        "pg_stat_database.temp_bytes",
        "B",
        "bytes of temporary files",
    ),
    (
        "wal_lsn_bytes",
        "B",
        "bytes of write-ahead log, all versions alike",
    ),
    ("pg_stat_wal.wal_bytes", "B", "bytes of write-ahead log"),
    ("pg_stat_wal.wal_records", "", "records of write-ahead log"),
    (
        "pg_stat_wal.wal_fpi",
        "",
        "full pages in the write-ahead log",
    ),
    (
        "pg_stat_wal.wal_buffers_full",
        "",
        "writes because the log's buffers were full",
    ),
    (
        "pg_stat_bgwriter.checkpoints_timed",
        "",
        "checkpoints by the clock",
    ),
    (
        "pg_stat_bgwriter.checkpoints_req",
        "",
        "checkpoints asked for, by log size or by hand",
    ),
    (
        "pg_stat_checkpointer.num_timed",
        "",
        "checkpoints by the clock",
    ),
    (
        "pg_stat_checkpointer.num_requested",
        "",
        "checkpoints asked for, by log size or by hand",
    ),
    (
        "pg_stat_bgwriter.buffers_checkpoint",
        "",
        "blocks that checkpoints wrote",
    ),
    (
        "pg_stat_checkpointer.buffers_written",
        "",
        "blocks that checkpoints wrote",
    ),
    (
        "pg_stat_bgwriter.buffers_clean",
        "",
        "blocks that the background writer wrote",
    ),
    (
        "pg_stat_bgwriter.buffers_backend",
        "",
        "blocks that sessions had to write themselves",
    ),
    (
        "pg_stat_io.relation.reads",
        "",
        "reads of tables and indexes",
    ),
    (
        "pg_stat_io.relation.writes",
        "",
        "writes of tables and indexes",
    ),
    (
        "pg_stat_io.relation.extends",
        "",
        "extensions of tables and indexes",
    ),
    (
        "pg_stat_user_tables.autovacuum_count",
        "",
        "runs of autovacuum",
    ),
    (
        "pg_stat_user_tables.n_tup_hot_upd",
        "",
        "updates that touched no index",
    ),
    (
        "pg_statio_user_tables.heap_blks_read",
        "",
        "table blocks that were not in shared buffers",
    ),
    (
        "pg_statio_user_tables.idx_blks_read",
        "",
        "index blocks that were not in shared buffers",
    ),
];

/// Parts of the names of what engines report beside their counters and that goes up and down.
const LEVEL_PARTS: &[&str] = &[
    "_pending_",
    "_current_",
    "buffer_pool_bytes_",
    "buffer_pool_load_",
    "buffer_pool_resize_",
    "checkpoint_age",
    "history_list_length",
    "innodb_mem_",
    "innodb_undo_tablespaces",
    "memtable_",
    "memory_used",
    "page_size",
    "redo_log_capacity",
    "redo_log_logical_size",
    "redo_log_physical_size",
    "threads_",
    "uptime",
];

/// Ends of such names.
const LEVEL_ENDS: &[&str] = &[
    "_avg",
    "_max",
    "_max_age",
    "_limit",
    "_longest_seen",
    "_iterators",
    "_size",
    "_lag",
];

/// Such names in full.
const LEVEL_NAMES: &[&str] = &[
    "delayed_writes",
    "freelist_count",
    "innodb_num_open_files",
    "key_blocks_not_flushed",
    "key_blocks_unused",
    "key_blocks_used",
    "max_used_connections",
    "open_files",
    "open_streams",
    "open_table_definitions",
    "open_tables",
    "page_count",
    "pg_stat_user_tables.n_dead_tup",
    "pg_stat_user_tables.n_ins_since_vacuum",
    "pg_stat_user_tables.n_live_tup",
    "pg_stat_user_tables.n_mod_since_analyze",
    "prepared_stmt_count",
    "qcache_free_blocks",
    "qcache_free_memory",
    "qcache_queries_in_cache",
    "qcache_total_blocks",
    "slave_open_temp_tables",
    "tc_log_pages_used",
    "wal_bytes",
];

/// Counts that begin like levels.
const COUNTED_ALL_THE_SAME: &[&str] = &[
    "threads_created",
    "innodb_buffer_pool_pages_flushed",
    "innodb_buffer_pool_pages_lru_flushed",
];

/// Whether an engine reports it beside its counters though it goes up and down.
pub(crate) fn is_level(name: &str) -> bool {
    !COUNTED_ALL_THE_SAME.contains(&name)
        && (LEVEL_NAMES.contains(&name)
            // Properties of RocksDB itself, not MyRocks' counters of it.
            || name.starts_with("rocksdb.")
            || name.starts_with("innodb_buffer_pool_pages_") && !name.contains("_made_")
            || LEVEL_PARTS.iter().any(|part| name.contains(part))
            || LEVEL_ENDS.iter().any(|end| name.ends_with(end)))
}

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
    let place = |name: &str| {
        FRONT
            .iter()
            .position(|(known, ..)| *known == name)
            .unwrap_or(FRONT.len())
    };
    counters.sort_by_key(|counter| (counter.kind, place(&counter.name)));
    counters
}

/// Operations of the step's own kind, as its rates count them; of a workload file's step events of
/// any kind.
pub(crate) fn operations(done: &StepDone) -> Option<f64> {
    let own = done
        .operations
        .iter()
        .filter(|operation| [operation.kind.as_str(), ALL_EVENTS].contains(&done.primary.as_str()));
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
    let known = FRONT.iter().find(|(known, ..)| *known == name);
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
    let (unit, meaning) = known.map_or(("", ""), |(_, unit, meaning)| (*unit, *meaning));
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
        assert!(FRONT.iter().all(|(name, ..)| !is_level(name)));
        let names: BTreeSet<&str> = FRONT.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names.len(), FRONT.len(), "each once");
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
}
