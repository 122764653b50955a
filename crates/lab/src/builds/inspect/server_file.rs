//! The server program itself: its hash, and the version it states.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_core::engines::EngineName;
use plimsoll_engine::process::{child_command, output_within};
use sha2::{Digest, Sha256};

use crate::builds::error::BuildError;

/// A server states its version at once; a cold disk needs some of this.
const DEADLINE: Duration = Duration::from_secs(60);

/// The program behind our wrapper, or the program.
pub(crate) fn real_program(server: &Path) -> PathBuf {
    let mut real = server.as_os_str().to_owned();
    real.push(".real");
    let real = PathBuf::from(real);
    if real.is_file() {
        real
    } else {
        server.to_owned()
    }
}

/// sha256 of a file, in hexadecimal digits.
pub(crate) fn sha256(path: &Path) -> Result<String, BuildError> {
    let mut hash = Sha256::new();
    feed(path, &mut hash, &|| Ok(()))?;
    Ok(hexadecimal(hash))
}

/// Adds a file's bytes to a hash. `go_on` is asked before each MiB: a large file takes a while.
pub(crate) fn feed(
    path: &Path,
    hash: &mut Sha256,
    go_on: &dyn Fn() -> Result<(), BuildError>,
) -> Result<(), BuildError> {
    let mut file = File::open(path).map_err(BuildError::io("open", path))?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        go_on()?;
        let read = file
            .read(&mut buffer)
            .map_err(BuildError::io("read", path))?;
        if read == 0 {
            return Ok(());
        }
        hash.update(&buffer[..read]);
    }
}

/// The digits of a finished hash.
pub(crate) fn hexadecimal(hash: Sha256) -> String {
    let bytes = hash.finalize();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Asks a server program for its version.
pub(crate) fn ask_version(
    engine: EngineName,
    server: &Path,
    env: &BTreeMap<String, String>,
) -> Result<String, BuildError> {
    let facts = engine.facts().builds.as_ref();
    let arguments = facts
        .and_then(|facts| facts.version_arguments)
        .unwrap_or(&["--version"]);
    let text = ask(server, arguments, env)?;
    parse_version(&text).ok_or_else(|| {
        BuildError::Unfit(format!(
            "{} {} states no version: \"{}\"",
            server.display(),
            arguments.join(" "),
            text.trim()
        ))
    })
}

/// What a program prints, within a deadline.
pub(crate) fn ask(
    program: &Path,
    arguments: &[&str],
    env: &BTreeMap<String, String>,
) -> Result<String, BuildError> {
    run(program, arguments, env).map_err(|problem| {
        BuildError::Unfit(format!(
            "{} does not run here: {problem}; try `{} {}`",
            program.display(),
            program.display(),
            arguments.join(" ")
        ))
    })
}

/// What a program prints; or how it ended and what it complained of.
pub(crate) fn run(
    program: &Path,
    arguments: &[&str],
    env: &BTreeMap<String, String>,
) -> Result<String, String> {
    let mut command = child_command(program);
    command.args(arguments).envs(env).env("LC_ALL", "C");
    let said = output_within(&mut command, DEADLINE).map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if said.status.success() {
        Ok(text(&said.stdout))
    } else {
        Err(format!("{}: {}", said.status, text(&said.stderr).trim()))
    }
}

/// `8.0.33` of `mysqld  Ver 8.0.33 for Linux on x86_64 (...)`, `10.11.19-MariaDB` of
/// `mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for ...`, `16.4` of `postgres (PostgreSQL) 16.4`.
fn parse_version(text: &str) -> Option<String> {
    let rest = text
        .split_once(" Ver ")
        .or_else(|| text.split_once("(PostgreSQL) "))?
        .1;
    let stated = rest.split_whitespace().next()?.trim_end_matches(',');
    let version = match stated.split_once("-MariaDB") {
        Some((version, _)) => format!("{version}-MariaDB"),
        None => stated.to_owned(),
    };
    version
        .starts_with(|c: char| c.is_ascii_digit())
        .then_some(version)
}

/// The part that names and recipes use: `10.11.19` of `10.11.19-MariaDB`, `9.7.4` of `9.7.4-2`,
/// `19rc1` of itself.
pub(crate) fn short_version(stated: &str) -> &str {
    stated.split('-').next().unwrap_or(stated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_servers_print() {
        for (text, stated, short) in [
            (
                "mysqld  Ver 5.7.22 for linux-glibc2.12 on x86_64 (MySQL Community Server (GPL))",
                "5.7.22",
                "5.7.22",
            ),
            (
                "/a b/bin/mysqld  Ver 8.0.33 for Linux on x86_64 (MySQL Community Server - GPL)",
                "8.0.33",
                "8.0.33",
            ),
            (
                "mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian \
                12)",
                "10.11.19-MariaDB",
                "10.11.19",
            ),
            (
                "postgres (PostgreSQL) 15.20 (Debian 15.20-0+deb12u1)\n",
                "15.20",
                "15.20",
            ),
            (
                "postgres (PostgreSQL) 19rc1 (Debian 19~rc1-1)\n",
                "19rc1",
                "19rc1",
            ),
            (
                "mysqld  Ver 8.0.32-24.fb for Linux on x86_64",
                "8.0.32-24.fb",
                "8.0.32",
            ),
        ] {
            let version = parse_version(text).unwrap();
            assert_eq!((version.as_str(), short_version(&version)), (stated, short));
        }
        for text in ["", "mysqld", "mysqld  Ver ", "bash, version 5.2"] {
            assert_eq!(parse_version(text), None);
        }
    }
}
