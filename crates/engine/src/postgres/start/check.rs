//! Has a build read the settings of a config, before anything is made or started.

use std::fs;
use std::path::Path;
use std::time::Duration;

use plimsoll_core::suggest;

use super::init::text;
use crate::postgres::options::Config;
use crate::process::Program;
use crate::{EngineError, InstalledBuild};

/// Reading a configuration takes a few hundredths of a second.
const LIMIT: Duration = Duration::from_secs(60);

/// Asks the server for one parameter's value, for which it reads the whole configuration and ends.
/// It needs no data directory and runs as anybody, root too.
pub(in crate::postgres) fn check(
    build: &InstalledBuild,
    config: &Config,
) -> Result<(), EngineError> {
    let unwritable = |error| {
        EngineError::new(format!(
            "write a temporary file: {error}; check the folder for temporary files (TMPDIR)"
        ))
    };
    let dir = tempfile::tempdir().map_err(unwritable)?;
    let file = dir.path().join("check.conf");
    fs::write(&file, config.file_text()).map_err(unwritable)?;
    let log = dir.path().join("check.log");
    let arguments = [
        "-C",
        "max_connections",
        "-D",
        &text(dir.path())?,
        "-c",
        &format!("config_file={}", text(&file)?),
    ]
    .map(str::to_owned);
    if program(build, arguments.to_vec(), dir.path())
        .run(&log, b"", LIMIT)
        .is_ok()
    {
        return Ok(());
    }
    let said = fs::read_to_string(&log).unwrap_or_default();
    Err(EngineError::new(match refused(&said) {
        Some(Refused::Unknown(name)) => format!(
            "postgres {} does not know the parameter {name}{}; remove it, or say which versions it \
            is for, as in {name}@18",
            build.version,
            suggest::hint(&name, known(build, dir.path()).iter().map(String::as_str))
        ),
        Some(Refused::Value(reason)) => format!(
            "postgres {} refuses the config: {reason}; set what this version can do",
            build.version
        ),
        None => format!(
            "postgres {} cannot read the config; it says:\n{}\ncheck that {} runs here",
            build.version,
            said.trim_end(),
            build.server.display()
        ),
    }))
}

fn program(build: &InstalledBuild, arguments: Vec<String>, dir: &Path) -> Program {
    Program {
        path: build.server.clone(),
        arguments,
        env: build.env.clone(),
        working_dir: Some(dir.to_owned()),
        ..Program::default()
    }
}

/// What the server did not like.
#[derive(Debug, PartialEq, Eq)]
enum Refused {
    /// A parameter's name.
    Unknown(String),
    /// A value; in the server's words.
    Value(String),
}

/// The first complaint in what the server said.
fn refused(said: &str) -> Option<Refused> {
    said.lines().find_map(|line| {
        // The severity and what stands before it end at the first such mark.
        let message = ["LOG:  ", "FATAL:  "]
            .iter()
            .find_map(|severity| line.split_once(severity))?
            .1;
        if let Some(rest) = message.strip_prefix("unrecognized configuration parameter \"") {
            return Some(Refused::Unknown(rest.split('"').next()?.to_owned()));
        }
        let is_value = ["invalid value for parameter", "parameter \"", "invalid "]
            .iter()
            .any(|start| message.starts_with(start))
            || message.contains(" is outside the valid range for parameter ")
            || message.contains(" must be ");
        is_value.then(|| Refused::Value(message.to_owned()))
    })
}

/// Parameters that this build describes: most of them, for a suggestion.
fn known(build: &InstalledBuild, dir: &Path) -> Vec<String> {
    let log = dir.join("known.log");
    if program(build, vec!["--describe-config".to_owned()], dir)
        .run(&log, b"", LIMIT)
        .is_err()
    {
        return Vec::new();
    }
    let text = fs::read_to_string(&log).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split('\t').next())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_complaint_is_found() {
        let skipping = "2026-11-21 10:08:28 GMT [1] LOG:  skipping missing configuration file \
                       \"postgresql.auto.conf\"\n";
        for (said, expected) in [
            (
                "LOG:  unrecognized configuration parameter \"io_method\" in file \"x.conf\" line \
                1\nFATAL:  configuration file \"x.conf\" contains errors\n",
                Some(Refused::Unknown("io_method".into())),
            ),
            (
                "2026-11-21 GMT [1] LOG:  invalid value for parameter \"jit\": \"maybe\"\n",
                Some(Refused::Value(
                    "invalid value for parameter \"jit\": \"maybe\"".into(),
                )),
            ),
            (
                "FATAL:  8 is outside the valid range for parameter \"work_mem\" (64 .. \
                2147483647)\n",
                Some(Refused::Value(
                    "8 is outside the valid range for parameter \"work_mem\" (64 .. 2147483647)"
                        .into(),
                )),
            ),
            ("", None),
            ("sh: not found\n", None),
        ] {
            assert_eq!(refused(&format!("{skipping}{said}")), expected, "{said}");
        }
    }
}
