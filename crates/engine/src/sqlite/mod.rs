//! SQLite, embedded: the library this program was linked with, one database file, one connection
//! per session.

mod drain;
mod failure;
mod forms;
mod pragma;
mod server;
mod session;
mod text;
mod version;

pub use forms::SqliteForms;
use plimsoll_core::name::BuildName;
use rusqlite::Connection;

use crate::driver::{Driver, Open};
use crate::{BuildInfo, Engine, EngineError, Server, Settings, StartOptions};

/// Where the library comes from: it is compiled into this program.
const ORIGIN: &str = "bundled";

pub(crate) static DRIVER: Driver = Driver {
    open: Open::BuiltIn(|build| Ok(Box::new(Sqlite::new(build)?))),
    external: None,
    bytes_at_start: |_, _| 0,
    forms: Some(&SqliteForms),
};

/// The SQLite library inside this program.
#[derive(Clone, Debug)]
pub struct Sqlite {
    /// `pragma compile_options`, sorted.
    compile_options: Vec<String>,
}

impl Sqlite {
    /// The linked library, when it is what `build` asks for: no version or a leading part of the
    /// library's (`3`, `3.54`), and no source or `bundled`.
    pub fn new(build: &BuildName) -> Result<Self, EngineError> {
        version::check(build, rusqlite::version())?;
        let compile_options = compile_options()
            .map_err(|error| failure::engine_error("ask sqlite for its compile options", &error))?;
        Ok(Self { compile_options })
    }
}

fn compile_options() -> rusqlite::Result<Vec<String>> {
    let connection = Connection::open_in_memory()?;
    let mut statement = connection.prepare("PRAGMA compile_options")?;
    let mut options = statement
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<String>>>()?;
    options.sort();
    Ok(options)
}

impl Engine for Sqlite {
    fn build(&self) -> BuildInfo {
        BuildInfo {
            engine: "sqlite".to_owned(),
            version: rusqlite::version().to_owned(),
            origin: ORIGIN.to_owned(),
            options: self.compile_options.clone(),
        }
    }

    fn check_settings(&self, settings: &Settings) -> Result<(), EngineError> {
        pragma::check(settings)
    }

    fn start(&self, options: &StartOptions) -> Result<Box<dyn Server>, EngineError> {
        Ok(Box::new(server::SqliteServer::start(options)?))
    }

    fn is_embedded(&self) -> bool {
        true
    }
}
