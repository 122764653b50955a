//! MySQL, and FB MySQL with MyRocks.

use super::{
    AssumedRates, BuildFacts, Cache, ConfigFile, ConfigSyntax, Dsn, EngineFacts, EngineName, Lives,
    Partitioning, SocketPath, Speaks,
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
        ram_unit: None,
    },
    caches: &CACHES,
    bytes_per_row: BYTES_PER_ROW,
    rates: RATES,
    builds: Some(BuildFacts {
        inits: &["initialize", "bootstrap", "copy"],
        needs_share: true,
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

/// The server must not read this machine's option files.
pub(super) static VERSION_ARGUMENTS: [&str; 2] = ["--no-defaults", "--version"];
