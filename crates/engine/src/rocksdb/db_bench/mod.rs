//! RocksDB's own benchmark program as the driver: its flags from a config's settings, and its
//! processes.

mod flags;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use flags::Job;

use super::options::{NOT_APPLIED, check};
use super::ram_bytes;
use super::server::read_back;
use crate::process::{Program, ServerProcess, child_command, output_within};
use crate::{EngineError, Health, InstalledBuild, Settings};

/// A look at what the program is and runs with is over in a moment.
const LOOK_LIMIT: Duration = Duration::from_secs(60);

pub struct DbBench {
    program: PathBuf,
    prefix: Vec<String>,
    env: BTreeMap<String, String>,
    /// The flags that this version has.
    flags: BTreeSet<String>,
}

/// What a process is started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// In their order.
    pub line: Vec<String>,
    /// Flags that this version does not have, and their values: left out.
    pub ignored: Settings,
}

/// A run of db_bench. Dropped before its end it is killed.
pub struct DbBenchProcess {
    process: ServerProcess,
}

/// How a run stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    Running,
    /// It has ended with status 0.
    Done,
    /// It has ended otherwise: how, and the end of its output.
    Failed(String, String),
}

impl DbBench {
    /// The program of a build, which is asked for its flags. `prefix` and `env` are those of the
    /// config.
    pub fn new(
        build: &InstalledBuild,
        prefix: &[String],
        env: &BTreeMap<String, String>,
    ) -> Result<Self, EngineError> {
        let program = build.db_bench.clone().ok_or_else(|| {
            EngineError::new(format!(
                "the build {} has no db_bench; take one that has (rocksdb@7.8+debian, or your own \
                folder with `plimsoll build add --basedir`), or leave out driver = \"db_bench\"",
                build.name
            ))
        })?;
        let env: BTreeMap<String, String> = build
            .env
            .iter()
            .chain(env)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        // Flags differ by version, and only the program itself tells which it has.
        let mut help = child_command(&program);
        help.arg("--help").envs(&env);
        let help = output_within(&mut help, LOOK_LIMIT).map_err(|error| {
            EngineError::new(format!(
                "start {}: {error}; check that it is there and can be run",
                program.display()
            ))
        })?;
        let text = String::from_utf8_lossy(&help.stdout);
        let flags: BTreeSet<String> = text
            .lines()
            .filter_map(flag_of_help)
            .map(str::to_owned)
            .collect();
        if !flags.contains("benchmarks") {
            let said = String::from_utf8_lossy(&help.stderr);
            let said = said.lines().next().unwrap_or("nothing");
            return Err(EngineError::new(format!(
                "ask {} for its flags: it names no --benchmarks and says: {said}; check that it is \
                a db_bench and finds its libraries",
                program.display()
            )));
        }
        Ok(Self {
            program,
            prefix: prefix.to_vec(),
            env,
            flags,
        })
    }

    /// The arguments of a run on `dir`.
    pub fn arguments(
        &self,
        settings: &Settings,
        job: &Job,
        dir: &Path,
    ) -> Result<Arguments, EngineError> {
        check(settings, ram_bytes())?;
        let (mut line, mut ignored) = (Vec::new(), Settings::new());
        for (name, value) in flags::flags(settings, job, dir)? {
            if self.flags.contains(name.as_str()) {
                line.push(format!("--{name}={value}"));
            } else {
                ignored.insert(name, value);
            }
        }
        Ok(Arguments { line, ignored })
    }

    /// Whether every setting has a flag.
    pub fn check(&self, settings: &Settings) -> Result<(), EngineError> {
        self.arguments(settings, &Job::look(), Path::new("."))
            .map(drop)
    }

    /// Starts a run; both its outputs go to `log`.
    pub fn start(&self, arguments: &Arguments, log: &Path) -> Result<DbBenchProcess, EngineError> {
        let program = Program {
            path: self.program.clone(),
            arguments: arguments.line.clone(),
            prefix: self.prefix.clone(),
            env: self.env.clone(),
            ..Program::default()
        };
        Ok(DbBenchProcess {
            process: ServerProcess::spawn(&program, log)?,
        })
    }

    /// What a database of this config runs with: one key is put into one in `dir`, which is gone
    /// afterwards. With the reason under `not applied: SETTING` for each flag that this version
    /// does not have. And what db_bench printed meanwhile.
    pub fn look(
        &self,
        settings: &Settings,
        dir: &Path,
        log: &Path,
    ) -> Result<(Settings, String), EngineError> {
        let arguments = self.arguments(settings, &Job::look(), dir)?;
        let io = |error: std::io::Error| {
            EngineError::new(format!(
                "use {}: {error}; check the folder's permissions",
                dir.display()
            ))
        };
        fs::create_dir_all(dir).map_err(io)?;
        let process = self.start(&arguments, log)?;
        process.process.wait_until_ended(LOOK_LIMIT)?;
        let mut effective = read_back(dir)?;
        for (flag, value) in arguments.ignored {
            let setting = flags::setting_of(settings, &flag).unwrap_or(&flag);
            effective.insert(
                format!("{NOT_APPLIED}{setting}"),
                format!("this db_bench has no --{flag}={value}"),
            );
        }
        fs::remove_dir_all(dir).map_err(io)?;
        let printed = fs::read_to_string(log).unwrap_or_default();
        Ok((effective, printed))
    }
}

impl DbBenchProcess {
    /// Its process, or the outermost wrapper's.
    pub fn pid(&self) -> u32 {
        self.process.main_pid()
    }

    /// How it stands. One system call.
    pub fn progress(&self) -> Progress {
        match (self.process.ended_well(), self.process.health()) {
            (Some(true), _) => Progress::Done,
            (_, Health::Running) => Progress::Running,
            (_, Health::Crashed { status, log_tail }) => Progress::Failed(status, log_tail),
        }
    }
}

/// `    -num (Number of key/values to place in database) type: int64 default: 1000000`.
fn flag_of_help(line: &str) -> Option<&str> {
    let name = line.strip_prefix("    -")?.split(' ').next()?;
    (!name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
        .then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_what_the_help_lists() {
        for (line, flag) in [
            (
                "    -num (Number of key/values to place in database) type: int64",
                Some("num"),
            ),
            (
                "    -cache_type (Type of block cache.) type: string default: \"lru_cache\"",
                Some("cache_type"),
            ),
            ("      -not_one, in the text of another", None),
            ("    --num=5", None),
            ("  Flags from ./db_bench.cc:", None),
        ] {
            assert_eq!(flag_of_help(line), flag, "{line}");
        }
    }
}
