//! PostgreSQL.

use super::{
    AssumedRates, BuildFacts, Cache, ConfigFile, ConfigSyntax, Dsn, EngineFacts, EngineName, Lives,
    Partitioning, SocketPath, Speaks,
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
    builds: Some(BuildFacts {
        inits: &["initdb"],
        needs_share: false,
        version_arguments: Some(&["--version"]),
    }),
    dsn: Some(Dsn {
        schemes: &["postgres", "postgresql"],
        port: 5432,
        socket: SocketPath::Folder { file: ".s.PGSQL." },
    }),
};
