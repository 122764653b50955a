//! MySQL, and FB MySQL with MyRocks.

use super::counters::Names::{Contains, EndsWith, Is, StartsWith};
use super::counters::{Counters, companion, front};
use super::{
    AssumedRates, BuildFacts, Cache, ConfigFile, ConfigSyntax, Dsn, EngineFacts, EngineName,
    Layout, Lives, LogWords, Partitioning, SocketPath, Speaks,
};

pub(super) static FACTS: EngineFacts = EngineFacts {
    name: EngineName::Mysql,
    key: "mysql",
    title: "MySQL",
    lives: Lives::Server,
    speaks: Speaks::Sql {
        statement_key: Some("mysql"),
    },
    keeps_rows: true,
    has_one_writer: false,
    has_storage_engines: true,
    partitions: Partitioning::Always,
    config: ConfigFile {
        ending: "cnf",
        syntax: ConfigSyntax::OptionFile,
        usual: "cz12a",
        ram_unit: None,
    },
    caches: &CACHES,
    bytes_per_row: BYTES_PER_ROW,
    rates: RATES,
    counters: &COUNTERS,
    log: &LOG,
    builds: Some(BuildFacts {
        inits: &["initialize", "bootstrap", "copy"],
        layout: Layout::Share,
        names_itself: None,
        version_arguments: Some(&VERSION_ARGUMENTS),
    }),
    dsn: Some(Dsn {
        schemes: &["mysql"],
        port: 3306,
        socket: SocketPath::File,
    }),
};

/// Of both storage engines; what is not loaded has no default.
pub(super) static CACHES: [Cache; 2] = [
    Cache {
        setting: "innodb_buffer_pool_size",
        default_bytes: 128 << 20,
        unit_bytes: 1,
    },
    Cache {
        setting: "rocksdb_block_cache_size",
        default_bytes: 0,
        unit_bytes: 1,
    },
];

/// InnoDB takes about 165 when the table is loaded in order and indexed, up to half more when
/// random inserts have split the pages; redo, undo and binary logs, and the sort files of the index
/// build, come on top.
pub(super) const BYTES_PER_ROW: u64 = 480;

pub(super) const RATES: AssumedRates = AssumedRates {
    load: 80_000.0,
    fill: 60_000.0,
    create_indexes: 150_000.0,
    small_writes: 3_000.0,
    writes: 10_000.0,
    reads: 1_000_000.0,
};

pub(super) static LOG: LogWords = LogWords {
    errors: &["[ERROR]", "got signal"],
    // That a server gives up or is ready says nothing.
    idle: &["Aborting", "ready for connections", "Version: '"],
};

/// The server must not read this machine's option files.
pub(super) static VERSION_ARGUMENTS: [&str; 2] = ["--no-defaults", "--version"];

pub(super) static COUNTERS: Counters = Counters {
    front: &[
        // InnoDB and the server above it.
        front("innodb_data_reads", "", "reads from files"),
        front("innodb_data_read", "B", "bytes read from files"),
        front("innodb_data_writes", "", "writes to files, logs included"),
        front(
            "innodb_data_written",
            "B",
            "bytes written to files, logs included",
        ),
        front("innodb_data_fsyncs", "", "fsyncs of files"),
        front("innodb_os_log_written", "B", "bytes of redo log"),
        front("innodb_os_log_fsyncs", "", "fsyncs of the redo log"),
        front(
            "innodb_log_waits",
            "",
            "waits because the log buffer was too small",
        ),
        front(
            "innodb_buffer_pool_read_requests",
            "",
            "page reads asked of the buffer pool: CPU, not I/O",
        ),
        front(
            "innodb_buffer_pool_reads",
            "",
            "pages that were not in the buffer pool",
        ),
        front(
            "innodb_buffer_pool_pages_flushed",
            "",
            "dirty pages written back",
        ),
        front("innodb_buffer_pool_wait_free", "", "waits for a free page"),
        front("innodb_rows_inserted", "", "rows inserted"),
        front("innodb_rows_deleted", "", "rows deleted"),
        front(
            "innodb_rows_read",
            "",
            "rows read, more than are returned when an index leads to more",
        ),
        front("innodb_row_lock_waits", "", "waits for a row's lock"),
        front("innodb_row_lock_time", "ms", "time in waits for row locks"),
        front("handler_read_key", "", "rows looked up by key"),
        front("handler_read_next", "", "next rows in index order"),
        front(
            "handler_read_rnd_next",
            "",
            "next rows in a scan of a table",
        ),
        front("handler_write", "", "rows handed to the storage engine"),
        front("created_tmp_disk_tables", "", "temporary tables on disk"),
        front("binlog_bytes_written", "B", "bytes of binary log"),
        // MyRocks.
        front("rocksdb_rows_inserted", "", "rows inserted"),
        front("rocksdb_rows_deleted", "", "rows deleted"),
        front("rocksdb_rows_read", "", "rows read"),
        front("rocksdb_bytes_written", "B", "bytes written by statements"),
        front("rocksdb_bytes_read", "B", "bytes read by statements"),
        front("rocksdb_wal_bytes", "B", "bytes of write-ahead log"),
        front("rocksdb_wal_synced", "", "syncs of the write-ahead log"),
        front(
            "rocksdb_flush_write_bytes",
            "B",
            "bytes flushed from memory",
        ),
        front(
            "rocksdb_compact_read_bytes",
            "B",
            "bytes that compaction read",
        ),
        front(
            "rocksdb_compact_write_bytes",
            "B",
            "bytes that compaction wrote",
        ),
        front("rocksdb_compactions", "", "compactions"),
        front("rocksdb_compaction_us", "us", "time of compaction threads"),
        front(
            "rocksdb_compaction_cpu_us",
            "us",
            "CPU of compaction threads",
        ),
        front(
            "rocksdb_stall_micros",
            "us",
            "time that writers were held back",
        ),
        front("rocksdb_block_cache_hit", "", "blocks found in the cache"),
        front(
            "rocksdb_block_cache_miss",
            "",
            "blocks that were not in the cache",
        ),
        front(
            "rocksdb_bloom_filter_useful",
            "",
            "reads that a bloom filter spared",
        ),
        front("rocksdb_number_keys_read", "", "keys read"),
        front("rocksdb_number_db_seek", "", "seeks"),
        front("rocksdb_number_db_next", "", "steps of iterators"),
    ],
    companions: &[
        companion("log bytes", "B", &["innodb_os_log_written"]),
        companion(
            "log fsyncs",
            "",
            &["innodb_os_log_fsyncs", "innodb_log_fsyncs"],
        ),
        companion("log writes", "", &["innodb_log_writes"]),
        companion("file fsyncs", "", &["innodb_data_fsyncs"]),
        companion("pages written", "", &["innodb_pages_written"]),
        companion("pages read", "", &["innodb_pages_read"]),
        companion(
            "page reads asked of the cache",
            "",
            &["innodb_buffer_pool_read_requests"],
        ),
        companion("page changes", "", &["innodb_buffer_pool_write_requests"]),
        companion("temporary tables", "", &["created_tmp_tables"]),
        companion("temporary tables on disk", "", &["created_tmp_disk_tables"]),
        companion("rows read", "", &["innodb_rows_read"]),
        companion("rows by key", "", &["handler_read_key"]),
        companion("next rows by index", "", &["handler_read_next"]),
        companion("next rows by scan", "", &["handler_read_rnd_next"]),
        companion("rows inserted", "", &["handler_write"]),
        companion("rows updated", "", &["handler_update"]),
        companion("rows deleted", "", &["handler_delete"]),
        companion("handler commits", "", &["handler_commit"]),
        companion("rows sorted", "", &["sort_rows"]),
        companion("bytes sent", "B", &["bytes_sent"]),
        companion("binlog bytes", "B", &["binlog_bytes_written"]),
        companion("LSM log bytes", "B", &["rocksdb_wal_bytes"]),
        companion("LSM log syncs", "", &["rocksdb_wal_synced"]),
        companion("LSM bytes flushed", "B", &["rocksdb_flush_write_bytes"]),
        companion("LSM bytes compacted", "B", &["rocksdb_compact_write_bytes"]),
    ],
    levels: &[
        Contains("_pending_"),
        Contains("_current_"),
        Contains("buffer_pool_bytes_"),
        Contains("buffer_pool_load_"),
        Contains("buffer_pool_resize_"),
        Contains("checkpoint_age"),
        Contains("history_list_length"),
        Contains("innodb_mem_"),
        Contains("innodb_undo_tablespaces"),
        Contains("memtable_"),
        Contains("memory_used"),
        Contains("page_size"),
        Contains("redo_log_capacity"),
        Contains("redo_log_logical_size"),
        Contains("redo_log_physical_size"),
        Contains("threads_"),
        Contains("uptime"),
        StartsWith("innodb_buffer_pool_pages_"),
        EndsWith("_avg"),
        EndsWith("_max"),
        EndsWith("_max_age"),
        EndsWith("_limit"),
        EndsWith("_longest_seen"),
        EndsWith("_iterators"),
        EndsWith("_size"),
        EndsWith("_lag"),
        Is("delayed_writes"),
        Is("innodb_num_open_files"),
        Is("key_blocks_not_flushed"),
        Is("key_blocks_unused"),
        Is("key_blocks_used"),
        Is("max_used_connections"),
        Is("open_files"),
        Is("open_streams"),
        Is("open_table_definitions"),
        Is("open_tables"),
        Is("prepared_stmt_count"),
        Is("qcache_free_blocks"),
        Is("qcache_free_memory"),
        Is("qcache_queries_in_cache"),
        Is("qcache_total_blocks"),
        Is("slave_open_temp_tables"),
        Is("tc_log_pages_used"),
    ],
    counted: &[
        Is("threads_created"),
        Is("innodb_buffer_pool_pages_flushed"),
        Is("innodb_buffer_pool_pages_lru_flushed"),
        StartsWith("innodb_buffer_pool_pages_made_"),
    ],
};
