//! PostgreSQL.

use super::counters::Names::Is;
use super::counters::{Counters, companion, front};
use super::{
    AssumedRates, BuildFacts, Cache, ConfigFile, ConfigSyntax, Dsn, EngineFacts, EngineName,
    Layout, Lives, LogWords, Partitioning, SocketPath, Speaks,
};

pub(super) static FACTS: EngineFacts = EngineFacts {
    name: EngineName::Postgres,
    key: "postgres",
    title: "PostgreSQL",
    lives: Lives::Server,
    speaks: Speaks::Sql {
        statement_key: Some("postgres"),
    },
    keeps_rows: true,
    has_one_writer: false,
    has_storage_engines: false,
    partitions: Partitioning::Since("11"),
    config: ConfigFile {
        ending: "conf",
        syntax: ConfigSyntax::Lines,
        usual: "cx10b",
        ram_unit: Some("B"),
    },
    caches: &[Cache {
        setting: "shared_buffers",
        default_bytes: 128 << 20,
        unit_bytes: 8192,
    }],
    // Loaded in order a row takes 103, indexed 206, and 380 after random inserts and deletes that
    // vacuum did not keep up with; the log comes on top, up to `max_wal_size`.
    bytes_per_row: 600,
    rates: AssumedRates {
        load: 80_000.0,
        fill: 60_000.0,
        create_indexes: 150_000.0,
        small_writes: 3_000.0,
        writes: 10_000.0,
        reads: 1_000_000.0,
    },
    counters: &COUNTERS,
    log: &LogWords {
        errors: &["PANIC:", "FATAL:"],
        idle: &[],
    },
    builds: Some(BuildFacts {
        inits: &["initdb"],
        layout: Layout::Initdb,
        names_itself: None,
        version_arguments: Some(&["--version"]),
    }),
    dsn: Some(Dsn {
        schemes: &["postgres", "postgresql"],
        port: 5432,
        socket: SocketPath::Folder { file: ".s.PGSQL." },
    }),
};

static COUNTERS: Counters = Counters {
    front: &[
        front(
            "pg_stat_database.blks_read",
            "",
            "blocks that were not in shared buffers",
        ),
        front(
            "pg_stat_database.blks_hit",
            "",
            "blocks found in shared buffers",
        ),
        front(
            "pg_stat_database.tup_returned",
            "",
            "rows that scans went over",
        ),
        front(
            "pg_stat_database.tup_fetched",
            "",
            "rows fetched by index scans",
        ),
        front("pg_stat_database.tup_inserted", "", "rows inserted"),
        front("pg_stat_database.tup_deleted", "", "rows deleted"),
        front("pg_stat_database.xact_commit", "", "transactions committed"),
        front(
            "pg_stat_database.temp_bytes",
            "B",
            "bytes of temporary files",
        ),
        front(
            "wal_lsn_bytes",
            "B",
            "bytes of write-ahead log, all versions alike",
        ),
        front("pg_stat_wal.wal_bytes", "B", "bytes of write-ahead log"),
        front("pg_stat_wal.wal_records", "", "records of write-ahead log"),
        front(
            "pg_stat_wal.wal_fpi",
            "",
            "full pages in the write-ahead log",
        ),
        front(
            "pg_stat_wal.wal_buffers_full",
            "",
            "writes because the log's buffers were full",
        ),
        front(
            "pg_stat_bgwriter.checkpoints_timed",
            "",
            "checkpoints by the clock",
        ),
        front(
            "pg_stat_bgwriter.checkpoints_req",
            "",
            "checkpoints asked for, by log size or by hand",
        ),
        front(
            "pg_stat_checkpointer.num_timed",
            "",
            "checkpoints by the clock",
        ),
        front(
            "pg_stat_checkpointer.num_requested",
            "",
            "checkpoints asked for, by log size or by hand",
        ),
        front(
            "pg_stat_bgwriter.buffers_checkpoint",
            "",
            "blocks that checkpoints wrote",
        ),
        front(
            "pg_stat_checkpointer.buffers_written",
            "",
            "blocks that checkpoints wrote",
        ),
        front(
            "pg_stat_bgwriter.buffers_clean",
            "",
            "blocks that the background writer wrote",
        ),
        front(
            "pg_stat_bgwriter.buffers_backend",
            "",
            "blocks that sessions had to write themselves",
        ),
        front(
            "pg_stat_io.relation.reads",
            "",
            "reads of tables and indexes",
        ),
        front(
            "pg_stat_io.relation.writes",
            "",
            "writes of tables and indexes",
        ),
        front(
            "pg_stat_io.relation.extends",
            "",
            "extensions of tables and indexes",
        ),
        front(
            "pg_stat_user_tables.autovacuum_count",
            "",
            "runs of autovacuum",
        ),
        front(
            "pg_stat_user_tables.n_tup_hot_upd",
            "",
            "updates that touched no index",
        ),
        front(
            "pg_statio_user_tables.heap_blks_read",
            "",
            "table blocks that were not in shared buffers",
        ),
        front(
            "pg_statio_user_tables.idx_blks_read",
            "",
            "index blocks that were not in shared buffers",
        ),
    ],
    companions: &[
        companion("log bytes", "B", &["wal_lsn_bytes"]),
        companion("log records", "", &["pg_stat_wal.wal_records"]),
        companion("full pages in the log", "", &["pg_stat_wal.wal_fpi"]),
        companion(
            "log fsyncs",
            "",
            &["pg_stat_io.wal.fsyncs", "pg_stat_wal.wal_sync"],
        ),
        companion(
            "log writes",
            "",
            &["pg_stat_io.wal.writes", "pg_stat_wal.wal_write"],
        ),
        companion(
            "pages written by checkpoints",
            "",
            &[
                "pg_stat_checkpointer.buffers_written",
                "pg_stat_bgwriter.buffers_checkpoint",
            ],
        ),
        companion("pages read", "", &["pg_stat_database.blks_read"]),
        companion(
            "page reads asked of the cache",
            "",
            &["pg_stat_database.blks_hit"],
        ),
        companion("temporary files", "", &["pg_stat_database.temp_files"]),
        companion("temporary bytes", "B", &["pg_stat_database.temp_bytes"]),
        companion("rows scanned", "", &["pg_stat_database.tup_returned"]),
        companion("rows by index", "", &["pg_stat_database.tup_fetched"]),
        companion("rows inserted", "", &["pg_stat_database.tup_inserted"]),
        companion("rows updated", "", &["pg_stat_database.tup_updated"]),
        companion(
            "updates that touch no index",
            "",
            &["pg_stat_user_tables.n_tup_hot_upd"],
        ),
        companion("rows deleted", "", &["pg_stat_database.tup_deleted"]),
        companion("commits", "", &["pg_stat_database.xact_commit"]),
    ],
    levels: &[
        Is("pg_stat_user_tables.n_dead_tup"),
        Is("pg_stat_user_tables.n_ins_since_vacuum"),
        Is("pg_stat_user_tables.n_live_tup"),
        Is("pg_stat_user_tables.n_mod_since_analyze"),
    ],
    counted: &[],
};
