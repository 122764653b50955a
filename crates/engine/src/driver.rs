//! An engine's code. Each engine has a [`Driver`] in its folder; `lib.rs` has the one `match` over
//! engines.

use plimsoll_core::name::BuildName;

use crate::{Engine, EngineError, External, InstalledBuild, Settings, SqlForms, driver};

type Opened = Result<Box<dyn Engine>, EngineError>;

pub(crate) struct Driver {
    pub open: Open,
    /// The engine of a server that somebody else runs, if there are such servers.
    pub external: Option<fn(External) -> Opened>,
    /// Bytes that a new server of a build with these settings takes before it has a row.
    pub bytes_at_start: fn(&BuildName, &Settings) -> u64,
    /// Its SQL, if it has any, on its own storage engine.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "a test goes through all of them")
    )]
    pub forms: Option<&'static dyn SqlForms>,
}

/// How an engine is made of a build.
pub(crate) enum Open {
    /// It is part of this program.
    BuiltIn(fn(&BuildName) -> Opened),
    /// It is made of a build's unpacked files.
    Installed(fn(InstalledBuild) -> Box<dyn Engine>),
}

/// The engine of a build. Engines that are not part of this program need `installed`, the build's
/// unpacked files.
pub fn engine(
    build: &BuildName,
    installed: Option<&InstalledBuild>,
) -> Result<Box<dyn Engine>, EngineError> {
    match (&driver(build.engine).open, installed) {
        (Open::BuiltIn(open), _) => open(build),
        (Open::Installed(open), Some(installed)) => Ok(open(installed.clone())),
        (Open::Installed(_), None) => Err(EngineError::new(format!(
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
    use plimsoll_core::engines::EngineName;

    use super::*;

    #[test]
    fn drivers_are_what_the_facts_say() {
        for name in EngineName::ALL {
            let driver = driver(name);
            let facts = name.facts();
            assert_eq!(
                matches!(driver.open, Open::BuiltIn(_)),
                name.is_built_in(),
                "{name}"
            );
            assert_eq!(driver.external.is_some(), facts.dsn.is_some(), "{name}");
        }
    }
}
