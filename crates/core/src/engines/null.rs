//! No database: every statement succeeds at once. Shows what the client itself can do.

use super::counters::NO_COUNTERS;
use super::{
    AssumedRates, ConfigFile, ConfigSyntax, EngineFacts, EngineName, Lives, NO_LOG, Partitioning,
    Speaks,
};

pub(super) static FACTS: EngineFacts = EngineFacts {
    name: EngineName::Null,
    key: "null",
    title: "null",
    lives: Lives::BuiltIn,
    speaks: Speaks::Sql {
        statement_key: None,
    },
    keeps_rows: false,
    // It has none; a load by one shows what one loader can do.
    has_one_writer: true,
    has_storage_engines: false,
    partitions: Partitioning::Never,
    config: ConfigFile {
        ending: "conf",
        syntax: ConfigSyntax::Lines,
        usual: "none",
        ram_unit: None,
    },
    caches: &[],
    bytes_per_row: 0,
    rates: AssumedRates {
        load: 2_000_000.0,
        fill: 2_000_000.0,
        create_indexes: 2_000_000.0,
        small_writes: 2_000_000.0,
        writes: 2_000_000.0,
        reads: 2_000_000.0,
    },
    counters: &NO_COUNTERS,
    log: &NO_LOG,
    builds: None,
    dsn: None,
};
