//! What is known of each engine without starting it: data that plans, forecasts, build recipes and
//! reports read. Code that differs by engine is in the engine's own folder of `plimsoll-engine`.
//!
//! Nobody asks *which* engine it is to decide something: they ask for the fact that decides it.

mod counters;
mod mariadb;
mod mysql;
mod null;
mod postgres;
mod rocksdb;
mod sqlite;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use counters::{
    Companion, Counters, FrontCounter, Names, companions, front_counters, is_level,
};

macro_rules! engines {
    ($($name:ident => $facts:path,)*) => {
        /// The database engines this version can load.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum EngineName {
            $(#[doc = concat!("See [`", stringify!($facts), "`].")] $name,)*
        }

        /// Every engine, in the order they are listed to people.
        pub static ENGINES: &[&EngineFacts] = &[$(&$facts),*];

        impl EngineName {
            /// Every engine's name, in the order of [`ENGINES`].
            pub const ALL: [Self; [$(stringify!($name)),*].len()] = [$(Self::$name),*];

            /// What is known of it.
            pub fn facts(self) -> &'static EngineFacts {
                match self {
                    $(Self::$name => &$facts,)*
                }
            }
        }
    };
}

// The one line of an engine.
engines! {
    Sqlite => sqlite::FACTS,
    Mysql => mysql::FACTS,
    Mariadb => mariadb::FACTS,
    Postgres => postgres::FACTS,
    Rocksdb => rocksdb::FACTS,
    Null => null::FACTS,
}

/// One engine.
#[derive(Debug)]
pub struct EngineFacts {
    /// As the enum has it.
    pub name: EngineName,
    /// The name used in plans, files and folders.
    pub key: &'static str,
    /// The name people write.
    pub title: &'static str,
    pub lives: Lives,
    pub speaks: Speaks,
    /// Whether rows that were written can be counted afterwards.
    pub keeps_rows: bool,
    /// Whether only one connection can write at a time: more loaders gain nothing.
    pub has_one_writer: bool,
    /// Whether a config may choose the storage engine of the tables.
    pub has_storage_engines: bool,
    pub partitions: Partitioning,
    pub config: ConfigFile,
    /// The settings that say how large a cache is.
    pub caches: &'static [Cache],
    /// A cautious estimate of the bytes on disk per row, indexes and logs included: of the Insert
    /// Benchmark's table, or of RocksDB's keys and values.
    pub bytes_per_row: u64,
    pub rates: AssumedRates,
    pub counters: &'static Counters,
    pub log: &'static LogWords,
    /// How builds are recognised and started; `None` if there are none, because the engine is part
    /// of this program.
    pub builds: Option<BuildFacts>,
    /// How a plan names a server that somebody else runs; `None` if there are no servers.
    pub dsn: Option<Dsn>,
}

/// Where the engine's code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lives {
    /// Inside this program: nothing is fetched.
    BuiltIn,
    /// In a shared library that is loaded into the trial's process. One version may be part of this
    /// program.
    Library,
    /// In a process of its own.
    Server,
}

/// What workers send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// SQL. A workload file may give a statement a text of its own under this key.
    Sql { statement_key: Option<&'static str> },
    /// Calls that put and get.
    KeysAndValues,
}

/// Whether a table with a primary key can be partitioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partitioning {
    Never,
    Always,
    /// In this version and later ones.
    Since(&'static str),
}

/// The file that a config is.
#[derive(Debug)]
pub struct ConfigFile {
    /// The ending of its name, as the field names such files.
    pub ending: &'static str,
    pub syntax: ConfigSyntax,
    /// The shipped config that a new plan begins with.
    pub usual: &'static str,
    /// The unit that must follow `{ram*0.5}`, if the engine takes a bare number as something other
    /// than bytes.
    pub ram_unit: Option<&'static str>,
}

/// How a config's lines are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigSyntax {
    /// `name = value`.
    Lines,
    /// MySQL's option file: sections, names with dashes, `loose_`, options without a value.
    OptionFile,
    /// `name = value`, where a value may be a group `{name=value;...}`.
    Groups,
}

/// A setting that says how large a cache is.
#[derive(Debug)]
pub struct Cache {
    /// With underscores.
    pub setting: &'static str,
    /// If nothing is set.
    pub default_bytes: u64,
    /// What a bare number counts.
    pub unit_bytes: u64,
}

/// Rows, or keys, per second before anything has been measured: orders of magnitude, nothing more.
#[derive(Debug)]
pub struct AssumedRates {
    /// Loading the Insert Benchmark's table.
    pub load: f64,
    /// Filling other tables, or a key-value store.
    pub fill: f64,
    pub create_indexes: f64,
    /// Writing in transactions of fewer than [`SMALL_BATCH`] rows.
    pub small_writes: f64,
    pub writes: f64,
    pub reads: f64,
}

/// Transactions of fewer rows are small: their cost is the commit's.
pub const SMALL_BATCH: u32 = 20;

/// How builds are recognised and started.
#[derive(Debug)]
pub struct BuildFacts {
    /// How a recipe may say that a data directory is made.
    pub inits: &'static [&'static str],
    pub layout: Layout,
    /// The word in its version that tells it from other engines of the same layout.
    pub names_itself: Option<&'static str>,
    /// What makes the program print its version; `None` if it has to be loaded for that.
    pub version_arguments: Option<&'static [&'static str]>,
}

/// What an installation is, by which a folder is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A server program and `initdb` in `bin`.
    Initdb,
    /// A server program, and a folder of error messages (`share`) that it needs.
    Share,
    /// A shared library.
    Library {
        /// What its file's name begins with.
        file: &'static str,
        /// The oldest version that the tests have run with.
        oldest_tested: &'static str,
    },
}

/// What lines of a server's log tell.
#[derive(Debug)]
pub struct LogWords {
    /// In lines that say why the server ended.
    pub errors: &'static [&'static str],
    /// In lines that say nothing, though they come last.
    pub idle: &'static [&'static str],
}

/// Of an engine in the trial's process, whose log is the trial's.
pub(crate) static NO_LOG: LogWords = LogWords {
    errors: &[],
    idle: &[],
};

/// How a plan names a server that somebody else runs.
#[derive(Debug)]
pub struct Dsn {
    /// The first is the one to write.
    pub schemes: &'static [&'static str],
    pub port: u16,
    pub socket: SocketPath,
}

/// What a plan gives of a unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketPath {
    /// The file.
    File,
    /// Its folder; the file's name is this and the port.
    Folder { file: &'static str },
}

impl EngineName {
    /// The name used in plans and files.
    pub fn as_str(self) -> &'static str {
        self.facts().key
    }

    /// The engines that hold data: the one that does nothing measures Plimsoll itself.
    pub fn for_people() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|engine| *engine != Self::Null)
    }

    /// Whether the engine shares its client's process.
    pub fn is_embedded(self) -> bool {
        self.facts().lives != Lives::Server
    }

    /// Whether workers send SQL.
    pub fn has_sql(self) -> bool {
        matches!(self.facts().speaks, Speaks::Sql { .. })
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The keys under which a workload file may give a statement's text, each once.
pub fn statement_keys() -> impl Iterator<Item = &'static str> {
    let keys = ENGINES.iter().filter_map(|facts| facts.statement_key());
    let mut seen = Vec::new();
    keys.filter(move |key| {
        let is_new = !seen.contains(key);
        seen.push(*key);
        is_new
    })
}

impl EngineFacts {
    /// The key of its own texts in a workload file.
    pub fn statement_key(&self) -> Option<&'static str> {
        match self.speaks {
            Speaks::Sql { statement_key } => statement_key,
            Speaks::KeysAndValues => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_is_described_whole() {
        for (facts, name) in ENGINES.iter().zip(EngineName::ALL) {
            assert_eq!(facts.name, name, "the table's line names another engine");
            let stored = toml::Value::try_from(name).unwrap();
            assert_eq!(stored.as_str(), Some(facts.key), "as files have it");
            assert!(!facts.title.is_empty() && !facts.config.ending.is_empty());
            let AssumedRates {
                load,
                fill,
                create_indexes,
                small_writes,
                writes,
                reads,
            } = facts.rates;
            for rate in [load, fill, create_indexes, small_writes, writes, reads] {
                assert!(rate >= 1000.0, "{name}: a forecast divides by {rate}");
            }
            assert_eq!(facts.keeps_rows, facts.bytes_per_row > 0, "{name}");
            assert!(
                !facts.keeps_rows || !facts.caches.is_empty(),
                "{name}: without a cache it would count as 0 bytes"
            );
            let is_part = facts.lives == Lives::BuiltIn;
            assert_eq!(facts.builds.is_none(), is_part, "{name}");
            assert!(
                facts.dsn.is_none() || facts.lives == Lives::Server,
                "{name}"
            );
            let layout = facts.builds.as_ref().map(|builds| builds.layout);
            assert_eq!(
                matches!(layout, Some(Layout::Library { .. })),
                facts.lives == Lives::Library,
                "{name}"
            );
        }
    }

    #[test]
    fn no_two_engines_share_a_name_or_a_scheme() {
        let mut seen = std::collections::BTreeSet::new();
        for facts in ENGINES {
            assert!(seen.insert(facts.key), "{}", facts.key);
            for scheme in facts.dsn.iter().flat_map(|dsn| dsn.schemes) {
                assert!(*scheme == facts.key || seen.insert(scheme), "{scheme}");
            }
        }
        let keys: Vec<&str> = statement_keys().collect();
        assert_eq!(keys, ["sqlite", "mysql", "postgres"]);
    }
}
