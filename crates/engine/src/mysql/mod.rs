//! MySQL 5.5 to 9.x, MariaDB 10.1 to 11.x and FB MySQL with MyRocks: the same server in many
//! versions, on any of its storage engines.
//!
//! A start makes a data directory when there is none, writes the config as the server's option
//! file, waits until the server answers, and compares what it runs with to what the config wanted.
//! A server is owned: it ends with its [`crate::Server`] value.

mod admin;
mod drain;
mod external;
mod facts;
mod failure;
mod files;
mod forms;
mod guest;
mod options;
mod readback;
mod server;
mod session;
mod start;
mod state;
mod text;
mod version;
mod waits;
mod wire;

use plimsoll_core::engines::EngineName;
use plimsoll_core::name::BuildName;
use plimsoll_core::units::SizeSyntax;

use self::external::MysqlEntrance;
pub use self::forms::MysqlForms;
use self::options::ServerConfig;
use self::version::{Flavor, Version};
#[cfg(fuzzing)]
pub use self::wire::fuzzing::answer as fuzz_answer;
use crate::driver::{Driver, Open};
use crate::external::ExternalEngine;
use crate::{BuildInfo, Engine, EngineError, InstalledBuild, Server, Settings, StartOptions};

pub(crate) static DRIVER: Driver = Driver {
    open: Open::Installed(|build| Box::new(Mysql::new(build))),
    external: Some(|external| Ok(Box::new(ExternalEngine::new(external, MysqlEntrance)))),
    guest: Some(guest::server),
    probe: None,
    bytes_at_start,
    forms: Some(&MysqlForms::INNODB),
};

/// System tables, undo and temporary tablespaces, the doublewrite buffer.
const OWN_BYTES: u64 = 256 << 20;

/// What a new server takes: its own tables, and InnoDB's redo log at its full size, by whichever
/// option a version knows. MariaDB has one log file since 10.5.
fn bytes_at_start(build: &BuildName, settings: &Settings) -> u64 {
    let size = |name: &str| {
        settings
            .get(name)
            .or_else(|| settings.get(&format!("loose_{name}")))
            .and_then(|value| SizeSyntax::MYSQL.parse(value))
    };
    let is_mariadb = build.engine == EngineName::Mariadb;
    let version = build.version.as_deref();
    let has_one_log = version
        .and_then(|text| Version::parse(text, is_mariadb))
        .is_some_and(|version| version.flavor == Flavor::Mariadb && version.numbers >= (10, 5, 0));
    let files = match size("innodb_log_files_in_group") {
        _ if has_one_log => 1,
        files => files.unwrap_or(2),
    };
    let redo = size("innodb_redo_log_capacity").unwrap_or(0).max(
        size("innodb_log_file_size")
            .unwrap_or(0)
            .saturating_mul(files),
    );
    OWN_BYTES.saturating_add(redo)
}

/// A build of MySQL or MariaDB.
#[derive(Clone, Debug)]
pub struct Mysql {
    build: InstalledBuild,
}

impl Mysql {
    /// The engine of an unpacked build. Nothing is looked at before the start.
    pub fn new(build: InstalledBuild) -> Self {
        Self { build }
    }
}

impl Engine for Mysql {
    fn build(&self) -> BuildInfo {
        self.build.info()
    }

    /// Checks names and values as far as that goes without a server. An option that the version
    /// does not know fails the start, with the option and the version in the error.
    ///
    /// The settings are a my.cnf's, with `-` or `_`, and `storage_engine`, the engine that tables
    /// are made with (default `innodb`). A name with `loose_` in front may be unknown. Without
    /// `log_bin` there is no binary log, and the character set is latin1 unless
    /// `character_set_server` is set: both are the same for all versions.
    fn check_settings(&self, settings: &Settings) -> Result<(), EngineError> {
        ServerConfig::parse(settings).map(drop)
    }

    fn start(&self, options: &StartOptions) -> Result<Box<dyn Server>, EngineError> {
        let is_mariadb = self.build.engine == EngineName::Mariadb;
        let version = Version::parse(&self.build.version, is_mariadb).ok_or_else(|| {
            EngineError::new(format!(
                "{} states \"{}\" as its version, which has no numbers; check its build.json",
                self.build.name, self.build.version
            ))
        })?;
        Ok(Box::new(server::MysqlServer::start(
            &self.build,
            version,
            options,
        )?))
    }

    fn is_embedded(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_takes_its_redo_logs_at_once() {
        let taken = |build: &str, settings: &[(&str, &str)]| {
            let settings = settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            bytes_at_start(&build.parse().unwrap(), &settings) - OWN_BYTES
        };
        for (settings, expected) in [
            (&[][..], 0),
            (
                &[
                    ("loose_innodb_redo_log_capacity", "2G"),
                    ("innodb_log_file_size", "256m"),
                ],
                2 << 30,
            ),
            (
                &[
                    ("innodb_log_file_size", "1G"),
                    ("innodb_log_files_in_group", "3"),
                ],
                3 << 30,
            ),
            (&[("innodb_log_file_size", "1048576")], 2 << 20),
            (&[("innodb_log_file_size", "a lot")], 0),
        ] {
            assert_eq!(taken("mysql@8.0.33", settings), expected, "{settings:?}");
        }
        let two = [
            ("innodb_log_file_size", "2G"),
            ("innodb_log_files_in_group", "2"),
        ];
        for (build, expected) in [
            ("mariadb@10.4.34", 4 << 30),
            ("mariadb", 4 << 30),
            ("mariadb@10.5.1", 2 << 30),
            ("mariadb@11.8", 2 << 30),
        ] {
            assert_eq!(taken(build, &two), expected, "{build}");
        }
    }
}
