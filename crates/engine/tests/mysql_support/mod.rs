//! Real servers for the tests: builds from the cache, started in folders that vanish.

// Each test binary uses a part of this.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plimsoll_engine::mysql::Mysql;
use plimsoll_engine::{Engine, InstalledBuild, Server, Settings, SqlSession, StartOptions};
use plimsoll_testkit::skip;
use tempfile::TempDir;

/// Generous: no test waits this long unless it fails.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Builds by the beginning of their name: an old and a new MySQL, and MariaDB with RocksDB.
pub const MYSQL_OLD: &str = "mysql@5.7";
pub const MYSQL_NEW: &str = "mysql@9";
pub const MARIADB: &str = "mariadb@10.11";
pub const ALL: [&str; 3] = [MYSQL_OLD, MYSQL_NEW, MARIADB];

/// The installed build whose name begins so; of MariaDB one with RocksDB. Without one the test is skipped. `PLIMSOLL_CACHE` names the folder of the builds' folder,
/// else it is where `plimsoll build add` puts them.
pub fn build(test: &str, wanted: &str) -> Option<InstalledBuild> {
    let is_fit =
        |build: &InstalledBuild| build.name.starts_with(wanted) && (wanted != MARIADB || build.storage_plugins.contains_key("rocksdb"));
    let found = builds().into_iter().filter(is_fit).max_by(|one, other| one.name.cmp(&other.name));
    if found.is_none() {
        skip(&format!("engine::{test}"), &format!("no build of {wanted} in the cache; fetch it with `plimsoll build add {wanted}`"));
    }
    found
}

/// All builds of the family in the cache.
pub fn builds() -> Vec<InstalledBuild> {
    let cache = std::env::var_os("PLIMSOLL_CACHE").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| home.map(|home| home.join(".cache")));
        cache.map(|cache| cache.join("plimsoll"))
    });
    let folders = cache.and_then(|cache| std::fs::read_dir(cache.join("builds")).ok());
    let builds = folders.into_iter().flatten().flatten().filter_map(|folder| installed(&folder.path()));
    builds.filter(|build| ["mysql", "mariadb"].contains(&build.engine.as_str())).collect()
}

/// Paths below a build's folder are kept as `{build}/...`.
fn installed(folder: &Path) -> Option<InstalledBuild> {
    let text = std::fs::read_to_string(folder.join("build.json")).ok()?;
    serde_json::from_str(&text.replace("{build}", &folder.display().to_string())).ok()
}

pub fn settings(pairs: &[(&str, &str)]) -> Settings {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Small and quick.
pub const QUICK: &[(&str, &str)] =
    &[("innodb_buffer_pool_size", "64M"), ("innodb_flush_log_at_trx_commit", "0"), ("performance_schema", "0"), ("max_connections", "40")];

/// The folders of one server.
pub struct Folders {
    pub data: TempDir,
    pub logs: TempDir,
}

impl Folders {
    pub fn new() -> Self {
        Self { data: tempfile::tempdir().unwrap(), logs: tempfile::tempdir().unwrap() }
    }

    pub fn options(&self, pairs: &[(&str, &str)]) -> StartOptions {
        let all: Vec<_> = QUICK.iter().chain(pairs).copied().collect();
        StartOptions { log_dir: self.logs.path().to_owned(), ..StartOptions::new(self.data.path(), settings(&all)) }
    }
}

pub fn start(build: &InstalledBuild, options: &StartOptions) -> Result<Box<dyn Server>, String> {
    Mysql::new(build.clone()).start(options).map_err(|error| error.message)
}

/// A small server in folders of its own.
pub fn server(build: &InstalledBuild, pairs: &[(&str, &str)]) -> (Folders, Box<dyn Server>) {
    let all: Vec<_> = QUICK.iter().chain(pairs).copied().collect();
    server_with(build, &all)
}

/// A server with these settings and no others.
pub fn server_with(build: &InstalledBuild, pairs: &[(&str, &str)]) -> (Folders, Box<dyn Server>) {
    let folders = Folders::new();
    let options = StartOptions { settings: settings(pairs), ..folders.options(&[]) };
    let server = start(build, &options).unwrap_or_else(|error| panic!("{}: {error}", build.name));
    (folders, server)
}

/// The Insert Benchmark's table in the server's storage engine, with its three indexes.
pub fn create_table(server: &dyn Server, session: &mut dyn SqlSession, table: &str) {
    let suffix = server.table_suffix();
    session
        .define(&format!(
            "create table {table} ( transactionid bigint not null auto_increment, dateandtime datetime, cashregisterid int not null, \
             customerid int not null, productid int not null, price int not null, data varchar(4000), primary key (transactionid) ){suffix}"
        ))
        .unwrap();
    session
        .define(&format!(
            "alter table {table} add index {table}_marketsegment (productid, customerid, price), \
             add index {table}_registersegment (cashregisterid, customerid, price), add index {table}_pdc (price, dateandtime, customerid)"
        ))
        .unwrap();
}

/// One batch of `rows` rows.
pub fn insert_text(table: &str, rows: u64) -> String {
    let tuples: Vec<String> = (0..rows)
        .map(|n| {
            format!("('2026-06-17 01:23:08',{},{},{},{}.00,'{}')", n % 1000, n * 7 % 100_000, n * 13 % 10_000, n % 500, "a".repeat(15))
        })
        .collect();
    format!("insert into {table} (dateandtime,cashregisterid,customerid,productid,price,data) values\n{}", tuples.join(",\n"))
}

/// Waits until `is_so`, and panics when it never is.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
