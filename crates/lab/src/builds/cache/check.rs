//! Whether the builds of a cache are what they were when they were added.

use plimsoll_core::name::BuildName;
use plimsoll_engine::InstalledBuild;

use super::BuildCache;
use crate::builds::error::BuildError;
use crate::builds::inspect::facts::StatedFacts;
use crate::builds::inspect::server_file::{real_program, sha256};
use crate::builds::manifest;
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
    /// The server or another file is another one, or the server does not run.
    Changed,
    /// The server's file, or the build, is not there.
    Missing,
}

impl BuildCache {
    /// Looks at builds again: the hashes of their files, and whether the server starts and states
    /// the same version. Without a name, at all.
    pub fn check(&self, name: Option<&BuildName>) -> Result<Vec<BuildCheck>, BuildError> {
        let records = self.records()?;
        let Some(name) = name else {
            return Ok(records
                .into_iter()
                .map(|(name, record)| self.check_one(name, record))
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
                Some((name, record)) => vec![self.check_one(name, record)],
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

    fn check_one(&self, name: String, record: Result<Record, BuildError>) -> BuildCheck {
        let root = self.dir.join(&name);
        let files = |record: &Record| {
            let wanted = record.provenance.files_sha256.as_deref()?;
            manifest::changed(&root, wanted).unwrap_or_else(|error| Some(error.to_string()))
        };
        let (state, finding) = match record {
            Err(error) => (CheckState::Changed, error.to_string()),
            Ok(record) => match (check_build(&record.build), files(&record)) {
                ((CheckState::Ok, _), Some(changed)) => (CheckState::Changed, changed),
                (checked, _) => checked,
            },
        };
        BuildCheck {
            name,
            state,
            finding,
        }
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
