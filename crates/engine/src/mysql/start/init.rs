//! Making a data directory, in the way the build's version wants it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::log::{self, Rejected};
use crate::mysql::files::{Files, make_dir, write};
use crate::mysql::options::ServerConfig;
use crate::mysql::version::Version;
use crate::process::Program;
use crate::{DataInit, EngineError, InstalledBuild};

/// Making a data directory takes seconds; on a busy disk a minute.
const LIMIT: Duration = Duration::from_secs(600);

/// Makes the data directory, unless that was done before.
pub(in crate::mysql) fn make_data(
    build: &InstalledBuild,
    version: Version,
    config: &ServerConfig,
    files: &Files,
) -> Result<(), EngineError> {
    if files.made.exists() {
        return Ok(());
    }
    if files.data.exists() {
        return Err(EngineError::new(format!(
            "{} was there before and was not made to its end here; give the trial an empty data \
            directory",
            files.data.display()
        )));
    }
    make_dir(&files.data)?;
    make_dir(&files.tmp)?;
    let maker = Maker {
        build,
        version,
        files,
        cnf: files.dir.join("init.cnf"),
    };
    write(&maker.cnf, &config.init_cnf(&files.tmp))?;
    maker.make()?;
    if version.has_fixed_redo_size() {
        remove_redo(&files.data)?;
    }
    // Last: a directory without it was not made to its end.
    write(&files.made, &format!("{}\n", build.name))
}

/// What makes a data directory, by whichever program.
struct Maker<'a> {
    build: &'a InstalledBuild,
    version: Version,
    files: &'a Files,
    /// The option file of the programs.
    cnf: PathBuf,
}

impl Maker<'_> {
    fn make(&self) -> Result<(), EngineError> {
        match &self.build.init {
            DataInit::Initialize => {
                let initialize = self.server_program(&["--initialize-insecure"]);
                self.run(initialize, b"")
            }
            DataInit::Bootstrap { scripts } => {
                for database in ["mysql", "test"] {
                    make_dir(&self.files.data.join(database))?;
                }
                // Without a log: what is written now is not part of our load.
                let bootstrap = self.server_program(&["--bootstrap", "--skip-log-bin"]);
                self.run(bootstrap, &bootstrap_input(scripts)?)
            }
            DataInit::Copy { dir } => copy_dir(dir, &self.files.data),
            DataInit::InstallDb {
                script,
                has_auth_method,
            } => self.run(self.install_script(script, *has_auth_method), b""),
            other @ (DataInit::Initdb { .. } | DataInit::Library) => {
                Err(EngineError::new(format!(
                    "{} makes its data directory by {other:?}, which is not MySQL's way; check its \
                build.json",
                    self.build.name
                )))
            }
        }
    }

    fn defaults_file(&self) -> String {
        format!("--defaults-file={}", self.cnf.display())
    }

    fn data_dir(&self) -> String {
        format!("--datadir={}", self.files.data.display())
    }

    fn server_program(&self, arguments: &[&str]) -> Program {
        // The server takes the option file from its first argument alone.
        let mut all = vec![self.defaults_file()];
        all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        all.push(self.data_dir());
        all.extend(build_options(self.build));
        self.program(&self.build.server, all)
    }

    fn install_script(&self, script: &Path, has_auth_method: bool) -> Program {
        let mut arguments = vec![
            self.defaults_file(),
            // Without asking for the host's name, which may not resolve.
            "--force".to_owned(),
            format!("--basedir={}", self.build.basedir.display()),
            self.data_dir(),
        ];
        arguments.extend(as_root());
        if has_auth_method {
            // Otherwise root comes in by the system's account alone, and not over TCP.
            arguments.push("--auth-root-authentication-method=normal".to_owned());
        }
        self.program(script, arguments)
    }

    fn program(&self, path: &Path, arguments: Vec<String>) -> Program {
        Program {
            path: path.to_owned(),
            arguments,
            env: self.build.env.clone(),
            ..Program::default()
        }
    }

    fn run(&self, program: Program, input: &[u8]) -> Result<(), EngineError> {
        let log = &self.files.init_log;
        program
            .run(log, input, LIMIT)
            .map_err(|error| explain(self.build, self.version, log, &error))
    }
}

/// The options by which a build's server finds its own files.
pub(super) fn build_options(build: &InstalledBuild) -> Vec<String> {
    let mut options = vec![format!("--basedir={}", build.basedir.display())];
    options.extend(as_root());
    if let Some(share) = &build.share_dir {
        options.push(format!("--lc-messages-dir={}", share.display()));
        let charsets = share.join("charsets");
        if charsets.is_dir() {
            options.push(format!("--character-sets-dir={}", charsets.display()));
        }
    }
    if let Some(plugins) = &build.plugin_dir {
        options.push(format!("--plugin-dir={}", plugins.display()));
    }
    options
}

/// The option without which the server does not run for root.
pub(in crate::mysql) fn as_root() -> Option<String> {
    rustix::process::geteuid()
        .is_root()
        .then(|| "--user=root".to_owned())
}

/// The error of a server that did not do what it should, with the option that it does not take when
/// that is why.
pub(in crate::mysql) fn explain(
    build: &InstalledBuild,
    version: Version,
    log: &Path,
    error: &EngineError,
) -> EngineError {
    explain_text(
        build,
        version,
        &fs::read_to_string(log).unwrap_or_default(),
        error,
    )
}

/// As [`explain`], for a part of a log.
pub(in crate::mysql) fn explain_text(
    build: &InstalledBuild,
    version: Version,
    log: &str,
    error: &EngineError,
) -> EngineError {
    match log::rejected_option(log) {
        Some(Rejected::Unknown(option)) => EngineError::new(format!(
            "{} ({version}) does not know the option {option}; take it out of the config, or write \
            loose_{option} when only some versions know it\n{error}",
            build.name
        )),
        Some(Rejected::Ambiguous(option)) => EngineError::new(format!(
            "{} ({version}) knows more than one option that begins with {option}; write the whole \
            name\n{error}",
            build.name
        )),
        Some(Rejected::Value { option, value }) => EngineError::new(format!(
            "{} ({version}) does not take the value {value} for {option}; change it\n{error}",
            build.name
        )),
        None => match log::errors(log, 3).as_slice() {
            [] => EngineError::new(format!("{} ({version}): {error}", build.name)),
            errors => EngineError::new(format!(
                "{} ({version}) says: {}\n{error}",
                build.name,
                errors.join("; ")
            )),
        },
    }
}

fn bootstrap_input(scripts: &[PathBuf]) -> Result<Vec<u8>, EngineError> {
    let mut input = b"use mysql;\n".to_vec();
    for script in scripts {
        let text = fs::read(script).map_err(|error| unreadable(script, &error))?;
        input.extend(text);
        input.push(b'\n');
    }
    Ok(input)
}

/// A copy would otherwise have the number of the server it was copied from.
const NOT_COPIED: &str = "auto.cnf";

fn copy_dir(from: &Path, to: &Path) -> Result<(), EngineError> {
    for entry in fs::read_dir(from).map_err(|error| unreadable(from, &error))? {
        let entry = entry.map_err(|error| unreadable(from, &error))?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            make_dir(&target)?;
            copy_dir(&entry.path(), &target)?;
        } else if entry.file_name() != NOT_COPIED {
            fs::copy(entry.path(), &target).map_err(|error| {
                EngineError::new(format!(
                    "copy {} to {}: {error}; check the disk",
                    entry.path().display(),
                    target.display()
                ))
            })?;
        }
    }
    Ok(())
}

/// After a clean shutdown the files can go; the server makes new ones with the config's size.
fn remove_redo(data: &Path) -> Result<(), EngineError> {
    for entry in fs::read_dir(data)
        .map_err(|error| unreadable(data, &error))?
        .flatten()
    {
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with("ib_logfile")
        {
            fs::remove_file(entry.path()).map_err(|error| {
                EngineError::new(format!("remove {}: {error}", entry.path().display()))
            })?;
        }
    }
    Ok(())
}

fn unreadable(path: &Path, error: &std::io::Error) -> EngineError {
    EngineError::new(format!(
        "read {}: {error}; the build may be damaged: fetch it again",
        path.display()
    ))
}
