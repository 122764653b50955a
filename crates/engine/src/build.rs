//! A build's unpacked files: what a recipe or a user's own basedir leaves, and what an engine needs
//! to start it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use plimsoll_core::engines::EngineName;
use serde::{Deserialize, Serialize};

use crate::BuildInfo;

/// How a build makes a new data directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataInit {
    /// `mysqld --initialize-insecure` (MySQL 5.7 and newer).
    Initialize,
    /// The system tables' scripts piped into `mysqld --bootstrap` (MySQL 5.5 and 5.6), in this
    /// order.
    Bootstrap {
        scripts: Vec<PathBuf>,
    },
    /// A ready-made data directory is copied.
    Copy {
        dir: PathBuf,
    },
    InstallDb {
        /// `mariadb-install-db` or `mysql_install_db`.
        script: PathBuf,
        /// Whether it knows `--auth-root-authentication-method=normal`.
        has_auth_method: bool,
    },
    Initdb {
        program: PathBuf,
    },
    /// Nothing: the build is a library, and its databases make themselves.
    Library,
}

impl DataInit {
    /// As recipes write it, and [`EngineFacts`](plimsoll_core::engines::EngineFacts) list it.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Bootstrap { .. } => "bootstrap",
            Self::Copy { .. } => "copy",
            Self::InstallDb { .. } => "install_db",
            Self::Initdb { .. } => "initdb",
            Self::Library => "library",
        }
    }
}

/// A build on this machine. Stored as `build.json` beside its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledBuild {
    /// The name plans use: `mysql@8.0.33`, or a user's label.
    pub name: String,
    pub engine: EngineName,
    /// The version the binary itself states, e.g. `8.0.33`, `10.11.19-MariaDB`, `16.4`.
    pub version: String,
    /// The package or folder it comes from.
    pub origin: String,
    /// What must be equal for builds to be strictly comparable: packager, compiler major,
    /// optimisation flags; `unknown` parts say so.
    pub toolchain: BTreeMap<String, String>,
    /// sha256 of the server binary (the real one behind a wrapper).
    pub server_sha256: String,
    /// The server program, or the wrapper that starts it with its own loader; of RocksDB the
    /// library.
    pub server: PathBuf,
    /// `--basedir` of MySQL and MariaDB; the installation folder of PostgreSQL.
    pub basedir: PathBuf,
    /// `--lc-messages-dir` of MySQL and MariaDB.
    pub share_dir: Option<PathBuf>,
    /// `--plugin-dir`, where it differs from the compiled-in one.
    pub plugin_dir: Option<PathBuf>,
    /// How a data directory is made.
    pub init: DataInit,
    /// Environment variables its programs need (`LD_LIBRARY_PATH`).
    pub env: BTreeMap<String, String>,
    /// Server options this build cannot start without (`--secure-file-priv=NULL`, `--mysqlx=OFF`,
    /// `--skip-ssl`).
    pub server_options: Vec<String>,
    /// Storage engines that need a plugin, by the option that loads it (`rocksdb` ->
    /// `--plugin-load-add=ha_rocksdb.so`).
    pub storage_plugins: BTreeMap<String, String>,
    /// RocksDB's own benchmark program of the same version, where the build has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub db_bench: Option<PathBuf>,
    /// The server linked several times, each with its functions in another order; the first is
    /// `server`. Empty of a build that was linked once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
}

/// The name of the file of a server's link, from 2: the first link is the server itself.
pub fn link_name(number: u32, server: &str) -> String {
    format!("link{number}-{server}")
}

/// Whether a file is called as a server, or as a link of it by [`link_name`].
pub(crate) fn is_server_or_link(name: &str, server: &str) -> bool {
    let link = name.strip_prefix("link").and_then(|of| of.split_once('-'));
    match link {
        Some((number, of)) => number.parse::<u32>().is_ok() && of == server,
        None => name == server,
    }
}

/// One link of a build's objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The server program or library.
    pub server: PathBuf,
    pub sha256: String,
}

impl InstalledBuild {
    /// The number of the link, from 1, that goes with a load of the data, from 1: one after the
    /// other. `None` of a build that was linked once.
    pub fn link_of(&self, load: Option<u32>) -> Option<u32> {
        let links = self.links.len() as u32;
        let turn = load.unwrap_or(1).saturating_sub(1);
        (links > 0).then(|| turn % links + 1)
    }

    /// The build whose server is this link, from 1; unchanged without one.
    pub fn at_link(&self, number: Option<u32>) -> Self {
        let link = number.and_then(|number| self.links.get(number.saturating_sub(1) as usize));
        match link {
            Some(link) => Self {
                server: link.server.clone(),
                server_sha256: link.sha256.clone(),
                ..self.clone()
            },
            None => self.clone(),
        }
    }

    /// What the engine that is made of it says it is.
    pub(crate) fn info(&self) -> BuildInfo {
        let option = |(name, value): (&String, &String)| format!("{name}: {value}");
        BuildInfo {
            engine: self.engine.to_string(),
            version: self.version.clone(),
            origin: self.origin.clone(),
            options: self.toolchain.iter().map(option).collect(),
        }
    }
}
