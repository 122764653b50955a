//! RocksDB, a library that is loaded into the trial's process.

use super::counters::Counters;
use super::counters::Names::StartsWith;
use super::{
    AssumedRates, BuildFacts, Cache, ConfigFile, ConfigSyntax, EngineFacts, EngineName, Layout,
    Lives, NO_LOG, Partitioning, Speaks,
};

pub(super) static FACTS: EngineFacts = EngineFacts {
    name: EngineName::Rocksdb,
    key: "rocksdb",
    title: "RocksDB",
    lives: Lives::Library,
    speaks: Speaks::KeysAndValues,
    keeps_rows: true,
    has_one_writer: false,
    has_storage_engines: false,
    partitions: Partitioning::Never,
    config: ConfigFile {
        ending: "options",
        syntax: ConfigSyntax::Groups,
        usual: "lc_byrx_small",
        ram_unit: None,
    },
    caches: &[Cache {
        setting: "block_cache_bytes",
        default_bytes: 32 << 20,
        unit_bytes: 1,
    }],
    // A key of 20 and a value of 400 bytes, with twice their room for compaction.
    bytes_per_row: 1000,
    rates: AssumedRates {
        load: 100_000.0,
        // Without the log, one by one and in order; random keys come with it.
        fill: 300_000.0,
        create_indexes: 100_000.0,
        small_writes: 100_000.0,
        writes: 100_000.0,
        reads: 100_000.0,
    },
    counters: &Counters {
        front: &[],
        companions: &[],
        // Properties of RocksDB itself, not MyRocks' counters of it.
        levels: &[StartsWith("rocksdb.")],
        counted: &[],
    },
    log: &NO_LOG,
    builds: Some(BuildFacts {
        inits: &["library"],
        layout: Layout::Library {
            file: "librocksdb",
            oldest_tested: "6.29.5",
        },
        names_itself: None,
        version_arguments: None,
    }),
    dsn: None,
};
