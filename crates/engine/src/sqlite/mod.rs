//! SQLite, embedded: the library that is compiled into this program, or a version's shared library
//! that is loaded into the trial's process. One database file, one connection per session.

mod drain;
mod failure;
mod forms;
mod library;
mod pragma;
mod probe;
mod query;
mod server;
mod session;
mod text;
mod version;

use std::path::Path;
use std::sync::OnceLock;

pub use forms::SqliteForms;
use plimsoll_core::name::BuildName;

use self::library::{Connection, Library};
use crate::driver::{Driver, Open};
use crate::{BuildInfo, Engine, EngineError, InstalledBuild, Server, Settings, StartOptions};

/// Where the library comes from that is compiled into this program.
const ORIGIN: &str = "bundled";

pub(crate) static DRIVER: Driver = Driver {
    open: Open::Either {
        is_built_in: version::is_bundled,
        built_in: |build| Ok(Box::new(Sqlite::bundled(build)?)),
        installed: |build| Box::new(Sqlite::installed(build)),
    },
    external: None,
    guest: None,
    probe: Some(probe::probe),
    bytes_at_start: |_, _| 0,
    forms: Some(&SqliteForms),
};

/// A version of SQLite.
#[derive(Debug)]
pub struct Sqlite {
    source: Source,
    /// What the library says of itself, once it is loaded.
    facts: OnceLock<Facts>,
}

#[derive(Debug)]
enum Source {
    Bundled,
    Installed(Box<InstalledBuild>),
}

/// What a library says of itself.
#[derive(Clone, Debug)]
struct Facts {
    version: String,
    /// The check-in that it was made of.
    source_id: String,
    /// `pragma compile_options`, sorted.
    compile_options: Vec<String>,
}

impl Sqlite {
    /// The library in this program, when it is what `build` asks for: no version or a leading part
    /// of the library's (`3`, `3.54`), and no source or `bundled`.
    pub fn bundled(build: &BuildName) -> Result<Self, EngineError> {
        let facts = Facts::ask(Library::bundled())?;
        version::check(build, &facts.version)?;
        Ok(Self {
            source: Source::Bundled,
            facts: OnceLock::from(facts),
        })
    }

    /// The engine of an installed library. It is loaded by the first start.
    pub fn installed(build: InstalledBuild) -> Self {
        Self {
            source: Source::Installed(Box::new(build)),
            facts: OnceLock::new(),
        }
    }

    /// The library, loaded, if it is the one that the build was.
    fn library(&self) -> Result<&'static Library, EngineError> {
        let Source::Installed(build) = &self.source else {
            return Ok(Library::bundled());
        };
        let library = Library::load(&build.server)?;
        let facts = Facts::ask(library)?;
        if facts.version != build.version {
            return Err(EngineError::new(format!(
                "{} is version {}, and {} is recorded as {}; add or make the build again",
                build.server.display(),
                facts.version,
                build.name,
                build.version
            )));
        }
        self.facts.get_or_init(|| facts);
        Ok(library)
    }
}

impl Facts {
    fn ask(library: &'static Library) -> Result<Self, EngineError> {
        let ask = || {
            let connection = Connection::open(library, Path::new(":memory:"), true)?;
            let mut options = query::texts(&connection, "PRAGMA compile_options")?;
            options.sort();
            let of_sql = query::texts(&connection, "SELECT sqlite_version()")?.concat();
            Ok((options, of_sql))
        };
        let (compile_options, of_sql) = ask()
            .map_err(|error| failure::engine_error("ask sqlite for its compile options", &error))?;
        let version = library.version();
        if version != of_sql {
            return Err(EngineError::new(format!(
                "ask sqlite for its version: the library is {version}, and what it calls is \
                {of_sql}, another one of this process; link it with -Wl,-Bsymbolic"
            )));
        }
        Ok(Self {
            version,
            source_id: library.source_id(),
            compile_options,
        })
    }
}

impl Engine for Sqlite {
    /// Of an installed library, what its record says; once it is loaded, what it says itself.
    fn build(&self) -> BuildInfo {
        let mut info = match &self.source {
            Source::Bundled => BuildInfo {
                engine: "sqlite".to_owned(),
                version: String::new(),
                origin: ORIGIN.to_owned(),
                options: Vec::new(),
            },
            Source::Installed(build) => build.info(),
        };
        if let Some(facts) = self.facts.get() {
            info.version.clone_from(&facts.version);
            if let Source::Installed(_) = self.source {
                // In place of what its record has of its first trial.
                let is_recorded = |option: &String| {
                    [probe::SOURCE_ID, probe::COMPILE_OPTIONS]
                        .iter()
                        .any(|name| option.starts_with(&format!("{name}: ")))
                };
                info.options.retain(|option| !is_recorded(option));
                let source_id = format!("{}: {}", probe::SOURCE_ID, facts.source_id);
                info.options.push(source_id);
            }
            info.options.extend(facts.compile_options.iter().cloned());
        }
        info
    }

    fn check_settings(&self, settings: &Settings) -> Result<(), EngineError> {
        pragma::check(settings)
    }

    fn start(&self, options: &StartOptions) -> Result<Box<dyn Server>, EngineError> {
        let library = self.library()?;
        Ok(Box::new(server::SqliteServer::start(library, options)?))
    }

    fn is_embedded(&self) -> bool {
        true
    }
}
