//! Whether the builds of a cache are what they were when they were added.

use plimsoll_core::name::BuildName;
use plimsoll_engine::InstalledBuild;

use super::BuildCache;
use crate::builds::error::BuildError;
use crate::builds::inspect::facts::StatedFacts;
use crate::builds::inspect::server_file::{real_program, sha256};
use crate::builds::record::Record;

/// What a check of a build found.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BuildCheck {
    pub name: String,
    /// What it is like.
    pub state: CheckState,
    /// What differs, or the version.
    pub finding: String,
}

/// What a build is like after it was installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckState {
    /// As it was.
    Ok,
    /// The server is another one, or does not run.
    Changed,
    /// The server's file, or the build, is not there.
    Missing,
}

impl BuildCache {
    /// Looks at builds again: the hash of the server, and whether it starts and states the same
    /// version. Without a name, at all.
    pub fn check(&self, name: Option<&BuildName>) -> Result<Vec<BuildCheck>, BuildError> {
        let records = self.records()?;
        let Some(name) = name else {
            return Ok(records
                .into_iter()
                .map(|(name, record)| check(name, record))
                .collect());
        };
        let exact = name.to_string();
        let wanted = if records.iter().any(|(known, _)| *known == exact) {
            exact
        } else {
            self.resolve(name)?.name
        };
        Ok(
            match records.into_iter().find(|(known, _)| *known == wanted) {
                Some((name, record)) => vec![check(name, record)],
                None => {
                    let finding = format!("not here; fetch it with `plimsoll build add {wanted}`");
                    vec![BuildCheck {
                        name: wanted,
                        state: CheckState::Missing,
                        finding,
                    }]
                }
            },
        )
    }
}

fn check(name: String, record: Result<Record, BuildError>) -> BuildCheck {
    let (state, finding) = match record {
        Err(error) => (CheckState::Changed, error.to_string()),
        Ok(record) => check_build(&record.build),
    };
    BuildCheck {
        name,
        state,
        finding,
    }
}

fn check_build(build: &InstalledBuild) -> (CheckState, String) {
    let real = real_program(&build.server);
    if !real.is_file() || !build.server.is_file() {
        return (
            CheckState::Missing,
            format!("{} is not there", build.server.display()),
        );
    }
    match sha256(&real) {
        Err(error) => return (CheckState::Changed, error.to_string()),
        Ok(hash) if hash != build.server_sha256 => {
            return (
                CheckState::Changed,
                format!(
                    "{} has sha256 {hash}, recorded is {}",
                    real.display(),
                    build.server_sha256
                ),
            );
        }
        Ok(_) => {}
    }
    match StatedFacts::ask(build.engine, &build.server, &build.env) {
        Err(error) => (CheckState::Changed, error.to_string()),
        Ok(StatedFacts { version, .. }) if version != build.version => (
            CheckState::Changed,
            format!("it says {version}, recorded is {}", build.version),
        ),
        Ok(StatedFacts { version, .. }) => (CheckState::Ok, version),
    }
}
