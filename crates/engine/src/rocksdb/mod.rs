//! RocksDB, embedded: a version's shared library, loaded into the trial's process, and one database
//! with one column family.

pub mod db_bench;
mod failure;
mod library;
mod options;
mod probe;
mod readback;
mod server;
mod session;
mod wait;

use std::path::Path;

pub use options::flatten;

use crate::driver::{Driver, Open};
use crate::{BuildInfo, Engine, EngineError, InstalledBuild, Server, Settings, StartOptions};

pub(crate) static DRIVER: Driver = Driver {
    open: Open::Installed(|build| Box::new(Rocksdb::new(build))),
    external: None,
    guest: None,
    probe: Some(probe::probe),
    bytes_at_start: |_, _| 0,
    forms: None,
};

/// Where a build keeps libraries that its own one needs, in the environment it asks for.
pub const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// A version of RocksDB.
pub struct Rocksdb {
    build: InstalledBuild,
}

impl Rocksdb {
    /// The engine of an installed library.
    pub fn new(build: InstalledBuild) -> Self {
        Self { build }
    }
}

impl Engine for Rocksdb {
    fn build(&self) -> BuildInfo {
        self.build.info()
    }

    /// Loads no library: values that only RocksDB can judge are judged when the database is opened.
    fn check_settings(&self, settings: &Settings) -> Result<(), EngineError> {
        options::check(settings, ram_bytes()).map(drop)
    }

    fn start(&self, start: &StartOptions) -> Result<Box<dyn Server>, EngineError> {
        let checked = options::check(&start.settings, ram_bytes())?;
        let companions = self.build.env.get(LIBRARY_PATH).map(Path::new);
        let library = library::Library::load(&self.build.server, companions)?;
        Ok(Box::new(server::RocksdbServer::start(
            library, checked, start,
        )?))
    }

    fn is_embedded(&self) -> bool {
        true
    }
}

/// The machine's memory, if the kernel reports it.
fn ram_bytes() -> Option<u64> {
    let system = rustix::system::sysinfo();
    let bytes = system.totalram.checked_mul(system.mem_unit.into())?;
    (bytes > 0).then_some(bytes)
}
