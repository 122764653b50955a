//! PostgreSQL 9.6 to 19: a server of our own on a data directory of the trial.
//!
//! The server is our child (`postgres` itself, no `pg_ctl`), so its pid, exit status and process
//! tree are known. It trusts whoever reaches its socket, and the folder of the socket is closed to
//! everybody but its user and root.

mod drain;
mod external;
mod facts;
mod failure;
mod forms;
mod guest;
mod link;
mod maintenance;
mod options;
mod placeholder;
mod readback;
mod server;
mod session;
mod shared_memory;
mod start;
mod state;
mod text;
mod waits;
mod wire;

pub use forms::PostgresForms;
use options::{Config, Major};
pub use shared_memory::release_shared_memory;
#[cfg(fuzzing)]
pub use wire::fuzzing::answer as fuzz_answer;

use crate::driver::{Driver, Open};
use crate::{BuildInfo, Engine, EngineError, InstalledBuild, Server, Settings, StartOptions};

/// A new cluster with its first segments of WAL.
const BYTES_AT_START: u64 = 64 << 20;

pub(crate) static DRIVER: Driver = Driver {
    open: Open::Installed(|build| Box::new(Postgres::new(build))),
    external: Some(external::engine),
    guest: Some(guest::server),
    probe: None,
    bytes_at_start: |_, _| BYTES_AT_START,
    forms: Some(&PostgresForms),
};

/// A build of PostgreSQL.
///
/// Settings are the server's parameters, and `data_checksums` (`on`, the default, or `off`) for
/// `initdb`. A name may end in the versions it is for: `io_method@18` for 18 and newer, `foo@-12`
/// for 12 and older, `foo@9.6-15` for these and between.
#[derive(Clone, Debug)]
pub struct Postgres {
    build: InstalledBuild,
}

impl Postgres {
    /// The engine of an unpacked build.
    pub fn new(build: InstalledBuild) -> Self {
        Self { build }
    }

    fn major(&self) -> Result<Major, EngineError> {
        Major::of_version(&self.build.version).ok_or_else(|| {
            EngineError::new(format!(
                "build {} has version \"{}\", which is none of postgres; fetch it again with \
                `plimsoll build add`",
                self.build.name, self.build.version
            ))
        })
    }

    fn config(&self, settings: &Settings) -> Result<(Config, Major), EngineError> {
        let major = self.major()?;
        let config = Config::new(settings, major)?;
        start::check::check(&self.build, &config)?;
        Ok((config, major))
    }
}

impl Engine for Postgres {
    fn build(&self) -> BuildInfo {
        self.build.info()
    }

    /// Has the server itself read the settings, without a data directory: names and values it does
    /// not know are found here.
    fn check_settings(&self, settings: &Settings) -> Result<(), EngineError> {
        self.config(settings).map(drop)
    }

    fn start(&self, options: &StartOptions) -> Result<Box<dyn Server>, EngineError> {
        let (config, major) = self.config(&options.settings)?;
        Ok(Box::new(server::PostgresServer::start(
            &self.build,
            config,
            major,
            options,
        )?))
    }

    fn is_embedded(&self) -> bool {
        false
    }
}
