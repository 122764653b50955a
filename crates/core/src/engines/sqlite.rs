//! SQLite, embedded: one version is part of this program, others are libraries that are loaded into
//! the trial's process.

use super::counters::Counters;
use super::counters::Names::Is;
use super::{
    AssumedRates, BuildFacts, Cache, ConfigFile, ConfigSyntax, EngineFacts, EngineName, Layout,
    Lives, NO_LOG, Partitioning, Speaks,
};

pub(super) static FACTS: EngineFacts = EngineFacts {
    name: EngineName::Sqlite,
    key: "sqlite",
    title: "SQLite",
    lives: Lives::Library,
    speaks: Speaks::Sql {
        statement_key: Some("sqlite"),
    },
    keeps_rows: true,
    has_one_writer: true,
    has_storage_engines: false,
    partitions: Partitioning::Never,
    config: ConfigFile {
        ending: "conf",
        syntax: ConfigSyntax::Lines,
        usual: "wal_full",
        ram_unit: None,
    },
    caches: &[Cache {
        setting: "mmap_size",
        default_bytes: 64 << 20,
        unit_bytes: 1,
    }],
    // Loaded in order and indexed once a row takes about 125 bytes, 140 and more when random
    // inserts have split the index pages; the transaction that builds an index has it in the log a
    // second time; and while readers never pause, the log has grown to twice the size of the table
    // before a checkpoint could start it again.
    bytes_per_row: 480,
    rates: AssumedRates {
        load: 200_000.0,
        fill: 60_000.0,
        create_indexes: 200_000.0,
        small_writes: 4_000.0,
        writes: 8_000.0,
        reads: 1_000_000.0,
    },
    counters: &Counters {
        front: &[],
        companions: &[],
        levels: &[Is("freelist_count"), Is("page_count"), Is("wal_bytes")],
        counted: &[],
    },
    log: &NO_LOG,
    builds: Some(BuildFacts {
        inits: &["library"],
        layout: Layout::Library {
            file: "libsqlite3",
            oldest_tested: "3.13",
        },
        names_itself: None,
        version_arguments: None,
    }),
    dsn: None,
};
