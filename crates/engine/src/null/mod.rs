//! An engine that does nothing, at once: it shows the client's own ceiling.

mod forms;

use std::collections::BTreeMap;
use std::time::Duration;

pub use forms::NullForms;
use plimsoll_core::name::BuildName;

use crate::driver::{Driver, Open};
use crate::{
    Argument, BuildInfo, Counts, DrainAction, DrainLimits, Engine, EngineError, Parameter,
    Prepared, Server, Sessions, Settings, SqlError, SqlForms, SqlServer, SqlSession, StartOptions,
};

pub(crate) static DRIVER: Driver = Driver {
    open: Open::BuiltIn(|build| Ok(Box::new(Null::new(build)?))),
    external: None,
    guest: None,
    probe: None,
    bytes_at_start: |_, _| 0,
    forms: Some(&NullForms),
};

/// Rows every query claims to have fetched: as many as a query of the Insert Benchmark asks for.
const QUERY_ROWS: u64 = 10;

/// What every statement claims that may be a query or not.
const PERFORMED: Counts = Counts {
    rows: QUERY_ROWS,
    affected: 1,
};

/// The engine without a database. Nothing is stored, so nothing can be counted or checked
/// afterwards.
#[derive(Clone, Copy, Debug)]
pub struct Null;

impl Null {
    /// The null engine, unless the build asks for a version or a source: there are none to choose
    /// from.
    pub fn new(build: &BuildName) -> Result<Self, EngineError> {
        match (&build.version, &build.source) {
            (None, None) => Ok(Self),
            _ => Err(EngineError::new(format!(
                "the null engine has neither versions nor sources, but the build is \"{build}\": \
                write \"null\""
            ))),
        }
    }
}

impl Engine for Null {
    fn build(&self) -> BuildInfo {
        BuildInfo {
            engine: "null".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            origin: "built in".to_owned(),
            options: Vec::new(),
        }
    }

    fn check_settings(&self, settings: &Settings) -> Result<(), EngineError> {
        match settings.keys().next() {
            None => Ok(()),
            Some(name) => Err(EngineError::new(format!(
                "the null engine has no settings, but the config sets \"{name}\": take it out"
            ))),
        }
    }

    fn start(&self, options: &StartOptions) -> Result<Box<dyn Server>, EngineError> {
        self.check_settings(&options.settings)?;
        Ok(Box::new(NullServer {
            settings: options.settings.clone(),
        }))
    }

    fn is_embedded(&self) -> bool {
        true
    }
}

struct NullServer {
    settings: Settings,
}

impl SqlServer for NullServer {
    fn forms(&self) -> &'static dyn SqlForms {
        &NullForms
    }

    fn connect(&self) -> Result<Box<dyn SqlSession>, EngineError> {
        Ok(Box::new(NullSession))
    }
}

impl Server for NullServer {
    fn sessions(&self) -> Sessions<'_> {
        Sessions::Sql(self)
    }

    fn effective_settings(&self) -> Result<Settings, EngineError> {
        Ok(self.settings.clone())
    }

    fn counters(&self) -> Result<BTreeMap<String, i64>, EngineError> {
        Ok(BTreeMap::new())
    }

    fn drain(
        &self,
        _tables: &[String],
        _limits: &DrainLimits<'_>,
    ) -> Result<Vec<DrainAction>, EngineError> {
        Ok(vec![DrainAction {
            action: "nothing".to_owned(),
            seconds: 0.0,
            result: "the null engine has no debt".to_owned(),
        }])
    }

    fn database_bytes(&self) -> Result<u64, EngineError> {
        Ok(0)
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    fn stop(self: Box<Self>, _timeout: Duration) -> Result<(), EngineError> {
        Ok(())
    }
}

struct NullSession;

impl SqlSession for NullSession {
    fn write(&mut self, _sql: &str, expected_rows: u64) -> Result<u64, SqlError> {
        Ok(expected_rows)
    }

    fn define(&mut self, _sql: &str) -> Result<(), SqlError> {
        Ok(())
    }

    fn prepare(&mut self, _sql: &str) -> Result<Prepared, SqlError> {
        Ok(Prepared(0))
    }

    fn query_prepared(
        &mut self,
        _statement: Prepared,
        _arguments: &[i64],
    ) -> Result<u64, SqlError> {
        Ok(QUERY_ROWS)
    }

    fn write_prepared(
        &mut self,
        _statement: Prepared,
        _arguments: &[i64],
        expected_rows: u64,
    ) -> Result<u64, SqlError> {
        Ok(expected_rows)
    }

    fn query(&mut self, _sql: &str) -> Result<u64, SqlError> {
        Ok(QUERY_ROWS)
    }

    fn prepare_as(&mut self, _sql: &str, _parameters: &[Parameter]) -> Result<Prepared, SqlError> {
        Ok(Prepared(0))
    }

    fn perform(&mut self, _sql: &str) -> Result<Counts, SqlError> {
        Ok(PERFORMED)
    }

    fn perform_prepared(
        &mut self,
        _statement: Prepared,
        _arguments: &[Argument<'_>],
    ) -> Result<Counts, SqlError> {
        Ok(PERFORMED)
    }

    /// Always 1: a workload that looks for a smallest or largest id must be able to go on.
    fn query_integer(&mut self, _sql: &str) -> Result<Option<i64>, SqlError> {
        Ok(Some(1))
    }

    fn for_each_row(&mut self, _sql: &str, _row: &mut dyn FnMut(&[&str])) -> Result<(), SqlError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn every_statement_succeeds_and_nothing_is_kept() {
        let server = Null
            .start(&StartOptions::new("does/not/exist", Settings::new()))
            .unwrap();
        let mut session = server.connect().unwrap();
        let statement = session.prepare("select 1").unwrap();
        assert_eq!(session.write("insert into t values (1)", 50).unwrap(), 50);
        assert_eq!(session.write_prepared(statement, &[1], 5).unwrap(), 5);
        assert_eq!(session.query_prepared(statement, &[1]).unwrap(), 10);
        assert_eq!(
            session.query_integer("select min(id) from t").unwrap(),
            Some(1)
        );
        session
            .for_each_row("select 1", &mut |_| panic!("the null engine has no rows"))
            .unwrap();
        assert_eq!(
            server
                .drain(
                    &["t".to_owned()],
                    &DrainLimits::new(Instant::now(), Instant::now(), &|| false)
                )
                .unwrap()
                .len(),
            1
        );
        assert_eq!(
            (
                server.database_bytes().unwrap(),
                server.counters().unwrap().len()
            ),
            (0, 0)
        );
        server.stop(Duration::ZERO).unwrap();
    }

    #[test]
    fn settings_versions_and_sources_are_refused_by_name() {
        let settings = Settings::from([("journal_mode".to_owned(), "wal".to_owned())]);
        assert!(
            Null.check_settings(&settings)
                .unwrap_err()
                .message
                .contains("\"journal_mode\"")
        );
        assert!(Null.start(&StartOptions::new(".", settings)).is_err());
        for (name, is_there) in [("null", true), ("null@1", false), ("null+bundled", false)] {
            assert_eq!(
                Null::new(&name.parse().unwrap()).is_ok(),
                is_there,
                "{name}"
            );
        }
    }
}
