//! Real servers for the tests: builds from the cache, started in folders that vanish.

// Each test binary uses a part of this.
#![allow(dead_code)]

// Twice in a test of both families.
#[allow(clippy::duplicate_mod)]
#[path = "../builds_support/mod.rs"]
mod builds_support;

use std::time::{Duration, Instant};

use plimsoll_engine::mysql::Mysql;
use plimsoll_engine::{Engine, InstalledBuild, Server, Settings, SqlSession, StartOptions};
use tempfile::TempDir;

/// Generous: no test waits this long unless it fails.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Builds by the beginning of their name: an old and a new MySQL, and MariaDB with RocksDB.
pub const MYSQL_OLD: &str = "mysql@5.7";
pub const MYSQL_NEW: &str = "mysql@9";
pub const MARIADB: &str = "mariadb@10.11";
pub const ALL: [&str; 3] = [MYSQL_OLD, MYSQL_NEW, MARIADB];

/// The newest build in the cache whose name begins so; of MariaDB one with RocksDB. Without one the
/// test is skipped.
pub fn build(test: &str, wanted: &str) -> Option<InstalledBuild> {
    let is_fit = |build: &InstalledBuild| {
        build.name.starts_with(wanted)
            && (wanted != MARIADB || build.storage_plugins.contains_key("rocksdb"))
    };
    let found = builds_support::in_cache().into_iter().rfind(is_fit);
    if found.is_none() {
        builds_support::skip(test, wanted);
    }
    found
}

/// The builds of the family that a test goes through: the listed ones, or all in the cache with
/// `PLIMSOLL_ALL_BUILDS` set.
pub fn builds(test: &str) -> Vec<InstalledBuild> {
    builds_support::to_go_through(test, &["mysql", "mariadb"])
}

pub fn settings(pairs: &[(&str, &str)]) -> Settings {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// Small and quick.
pub const QUICK: &[(&str, &str)] = &[
    ("innodb_buffer_pool_size", "64M"),
    ("innodb_flush_log_at_trx_commit", "0"),
    ("performance_schema", "0"),
    ("max_connections", "40"),
];

/// The folders of one server.
pub struct Folders {
    pub data: TempDir,
    pub logs: TempDir,
}

impl Folders {
    pub fn new() -> Self {
        Self {
            data: tempfile::tempdir().unwrap(),
            logs: tempfile::tempdir().unwrap(),
        }
    }

    pub fn options(&self, pairs: &[(&str, &str)]) -> StartOptions {
        let all: Vec<_> = QUICK.iter().chain(pairs).copied().collect();
        StartOptions {
            log_dir: self.logs.path().to_owned(),
            ..StartOptions::new(self.data.path(), settings(&all))
        }
    }
}

pub fn start(build: &InstalledBuild, options: &StartOptions) -> Result<Box<dyn Server>, String> {
    Mysql::new(build.clone())
        .start(options)
        .map_err(|error| error.message)
}

/// A small server in folders of its own.
pub fn server(build: &InstalledBuild, pairs: &[(&str, &str)]) -> (Folders, Box<dyn Server>) {
    let all: Vec<_> = QUICK.iter().chain(pairs).copied().collect();
    server_with(build, &all)
}

/// A server with these settings and no others.
pub fn server_with(build: &InstalledBuild, pairs: &[(&str, &str)]) -> (Folders, Box<dyn Server>) {
    let folders = Folders::new();
    let options = StartOptions {
        settings: settings(pairs),
        ..folders.options(&[])
    };
    let server = start(build, &options).unwrap_or_else(|error| panic!("{}: {error}", build.name));
    (folders, server)
}

/// The Insert Benchmark's table in the server's storage engine, with its three indexes.
pub fn create_table(server: &dyn Server, session: &mut dyn SqlSession, table: &str) {
    let suffix = server.sql().unwrap().table_suffix();
    session
        .define(&format!(
            "create table {table} ( transactionid bigint not null auto_increment, dateandtime \
            datetime, cashregisterid int not null, customerid int not null, productid int not \
            null, price int not null, data varchar(4000), primary key (transactionid) ){suffix}"
        ))
        .unwrap();
    session
        .define(&format!(
            "alter table {table} add index {table}_marketsegment (productid, customerid, price), \
            add index {table}_registersegment (cashregisterid, customerid, price), add index \
            {table}_pdc (price, dateandtime, customerid)"
        ))
        .unwrap();
}

/// One batch of `rows` rows.
pub fn insert_text(table: &str, rows: u64) -> String {
    let tuples: Vec<String> = (0..rows)
        .map(|n| {
            format!(
                "('2026-06-17 01:23:08',{},{},{},{}.00,'{}')",
                n % 1000,
                n * 7 % 100_000,
                n * 13 % 10_000,
                n % 500,
                "a".repeat(15)
            )
        })
        .collect();
    format!(
        "insert into {table} (dateandtime,cashregisterid,customerid,productid,price,data) \
        values\n{}",
        tuples.join(",\n")
    )
}

/// Waits until `is_so`, and panics when it never is.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
