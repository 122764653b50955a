//! An engine's code. Each engine has a [`Driver`] in its folder; `lib.rs` has the one `match` over
//! engines.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_core::engines::EngineName;
use plimsoll_core::name::BuildName;
use serde::{Deserialize, Serialize};

use crate::{
    Engine, EngineError, External, GuestOrder, InstalledBuild, Settings, SqlForms, SqlServer,
    driver,
};

type Opened = Result<Box<dyn Engine>, EngineError>;

pub(crate) struct Driver {
    pub open: Open,
    /// The engine of a server that somebody else runs, if there are such servers.
    pub external: Option<fn(External) -> Opened>,
    /// How a client host reaches a server that a trial runs elsewhere, if there are such servers.
    pub guest: Option<Reach>,
    /// A library's first trial, in a process that may die of it, if builds are libraries.
    pub probe: Option<Probe>,
    /// Bytes that a new server of a build with these settings takes before it has a row.
    pub bytes_at_start: fn(&BuildName, &Settings) -> u64,
    /// Its SQL, if it has any, on its own storage engine.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "a test goes through all of them")
    )]
    pub forms: Option<&'static dyn SqlForms>,
}

/// How a client host reaches a server.
pub(crate) type Reach = fn(&GuestOrder) -> Result<Box<dyn SqlServer>, EngineError>;

/// The library, a folder with libraries that it needs and the machine may lack, an empty folder.
pub(crate) type Probe = fn(&Path, Option<&Path>, &Path) -> Result<Probed, EngineError>;

/// What a library says of itself after it was loaded and tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probed {
    /// `8.9.1`.
    pub version: String,
    /// What else it tells, by the names that toolchains have for it.
    pub toolchain: BTreeMap<String, String>,
}

/// How an engine is made of a build.
pub(crate) enum Open {
    /// It is part of this program.
    BuiltIn(fn(&BuildName) -> Opened),
    /// It is made of a build's unpacked files.
    Installed(fn(InstalledBuild) -> Box<dyn Engine>),
    /// One version is part of this program, the others are made of a build's unpacked files.
    Either {
        is_built_in: fn(&BuildName) -> bool,
        built_in: fn(&BuildName) -> Opened,
        installed: fn(InstalledBuild) -> Box<dyn Engine>,
    },
}

/// Whether a name means a part of this program: nothing is fetched for it.
pub fn is_built_in(build: &BuildName) -> bool {
    match driver(build.engine).open {
        Open::BuiltIn(_) => true,
        Open::Installed(_) => false,
        Open::Either { is_built_in, .. } => is_built_in(build),
    }
}

/// Loads a library of an engine into this process and tries it in `dir`, which is empty.
/// `companions` is a folder with libraries that it needs and the machine may lack.
///
/// # Errors
/// When it cannot be loaded or does not do what the engine needs. A library that crashes takes the
/// process with it.
pub fn probe(
    engine: EngineName,
    library: &Path,
    companions: Option<&Path>,
    dir: &Path,
) -> Result<Probed, EngineError> {
    match driver(engine).probe {
        Some(probe) => probe(library, companions, dir),
        None => Err(EngineError::new(format!(
            "{engine} is not a library; give the folder of its server"
        ))),
    }
}

/// The engine of a build. Engines that are not part of this program need `installed`, the build's
/// unpacked files.
pub fn engine(
    build: &BuildName,
    installed: Option<&InstalledBuild>,
) -> Result<Box<dyn Engine>, EngineError> {
    match (&driver(build.engine).open, installed) {
        (Open::BuiltIn(open), _) => open(build),
        (Open::Either { built_in, .. }, None) if is_built_in(build) => built_in(build),
        (Open::Installed(open), Some(build))
        | (
            Open::Either {
                installed: open, ..
            },
            Some(build),
        ) => Ok(open(build.clone())),
        (Open::Installed(_) | Open::Either { .. }, None) => Err(EngineError::new(format!(
            "{build} is not here; fetch it with `plimsoll build add {build}`"
        ))),
    }
}

/// The engine of an external server. Its build is known after the start.
pub fn external_engine(external: External) -> Result<Box<dyn Engine>, EngineError> {
    let server = &external.server;
    match driver(server.engine).external {
        Some(engine) => engine(external),
        None => Err(EngineError::new(format!(
            "{} has no servers; write a build in place of [server.{}]",
            server.engine, server.label
        ))),
    }
}

/// Bytes that a new server takes before it has a row: its own tables, and the redo logs that it
/// makes in advance.
pub fn bytes_at_start(build: &BuildName, settings: &Settings) -> u64 {
    (driver(build.engine).bytes_at_start)(build, settings)
}

#[cfg(test)]
mod tests {
    use plimsoll_core::engines::Lives;

    use super::*;

    #[test]
    fn drivers_are_what_the_facts_say() {
        for name in EngineName::ALL {
            let driver = driver(name);
            let facts = name.facts();
            let is_part = matches!(driver.open, Open::BuiltIn(_));
            assert_eq!(is_part, facts.lives == Lives::BuiltIn, "{name}");
            let is_library = facts.lives == Lives::Library;
            assert_eq!(driver.probe.is_some(), is_library, "{name}");
            assert_eq!(driver.external.is_some(), facts.dsn.is_some(), "{name}");
            assert_eq!(driver.guest.is_some(), facts.dsn.is_some(), "{name}");
        }
    }
}
