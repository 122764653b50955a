//! MariaDB, with or without its RocksDB plugin.

use super::mysql::{BYTES_PER_ROW, CACHES, COUNTERS, LOG, RATES, VERSION_ARGUMENTS};
use super::{
    BuildFacts, ConfigFile, ConfigSyntax, Dsn, EngineFacts, EngineName, Layout, Lives,
    Partitioning, SocketPath, Speaks,
};

pub(super) static FACTS: EngineFacts = EngineFacts {
    name: EngineName::Mariadb,
    key: "mariadb",
    title: "MariaDB",
    lives: Lives::Server,
    // Workload files have one text for both.
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
        inits: &["install_db"],
        layout: Layout::Share,
        names_itself: Some("MariaDB"),
        version_arguments: Some(&VERSION_ARGUMENTS),
    }),
    dsn: Some(Dsn {
        schemes: &["mariadb"],
        port: 3306,
        socket: SocketPath::File,
    }),
};
