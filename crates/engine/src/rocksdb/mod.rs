//! RocksDB: a library per version, loaded into the trial's process.

use crate::{BuildInfo, Engine, EngineError, InstalledBuild, Server, Settings, StartOptions};

/// Bytes on disk per key of 20 and value of 400 bytes, with twice its room for compaction.
pub const BYTES_PER_ROW: u64 = 1000;

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
        let build = &self.build;
        BuildInfo { engine: "rocksdb".into(), version: build.version.clone(), origin: build.origin.clone(), options: Vec::new() }
    }

    fn check_settings(&self, _settings: &Settings) -> Result<(), EngineError> {
        Ok(())
    }

    fn start(&self, _options: &StartOptions) -> Result<Box<dyn Server>, EngineError> {
        Err(EngineError::new("not built yet"))
    }

    fn is_embedded(&self) -> bool {
        true
    }
}
