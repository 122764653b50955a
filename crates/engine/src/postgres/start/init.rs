//! The data directory: where its parts are, making it, and the files that the server reads.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::account::Account;
use crate::foreign_folder::ForeignFolder;
use crate::guest::{Guests, free_port};
use crate::postgres::guest::{RULES_FILE, listened, with_guests};
use crate::postgres::link::{Address, SOCKET_PORT, SUPERUSER};
use crate::postgres::options::{Config, Major, file_text};
use crate::postgres::readback::FILE_NAME;
use crate::process::Program;
use crate::{DataInit, EngineError, InstalledBuild, StartOptions, Transport};

/// `initdb` takes a second or two; a slow disk more.
const INIT_LIMIT: Duration = Duration::from_secs(300);

/// PostgreSQL's own folder, and its file of parameters.
const DATA: &str = "pgdata";
const MAIN_FILE: &str = "postgresql.conf";

/// A unix socket's path has so many bytes at most.
const SOCKET_PATH_BYTES: usize = 107;

/// What the server of a trial keeps where. The folder of the trial holds the unix socket, and below
/// it is PostgreSQL's own.
#[derive(Clone, Debug)]
pub(in crate::postgres) struct Cluster {
    /// The trial's data directory, absolute and free of symbolic links.
    folder: PathBuf,
    account: Account,
    /// Names the socket's file; client hosts connect to it.
    port: u16,
    guests: Option<Guests>,
}

impl Cluster {
    /// The data directory of these options, made and handed to the server's user when it was not
    /// there.
    pub fn prepare(
        options: &StartOptions,
        build: &InstalledBuild,
        account: Account,
    ) -> Result<Self, EngineError> {
        let unusable = |path: &Path, error| {
            EngineError::new(format!(
                "use {}: {error}; choose another data folder with --data DIR",
                path.display()
            ))
        };
        fs::create_dir_all(&options.data_dir)
            .map_err(|error| unusable(&options.data_dir, error))?;
        let folder = options
            .data_dir
            .canonicalize()
            .map_err(|error| unusable(&options.data_dir, error))?;
        let guests = options.guests.clone();
        let cluster = Self {
            folder,
            account,
            port: match &guests {
                Some(guests) => free_port(&guests.listen)?,
                None => SOCKET_PORT,
            },
            guests,
        };

        // The folder itself is handed over below; those above it are not ours to open.
        account.check_reach(
            &cluster.folder,
            "choose a data folder that everybody may enter with --data DIR",
        )?;
        for program in [&build.server, init_program(build)?] {
            let program = program.canonicalize().map_err(|error| {
                EngineError::new(format!(
                    "find {}: {error}; fetch the build again with `plimsoll build add {}`",
                    program.display(),
                    build.name
                ))
            })?;
            account.check_reach(
                &program,
                "keep the builds in a folder that everybody may enter with --cache DIR",
            )?;
        }
        if options.transport == Transport::Socket || cluster.guests.is_some() {
            cluster.check_socket_path()?;
        }
        account.give(&cluster.folder, 0o700)?;
        Ok(cluster)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn data_dir(&self) -> PathBuf {
        self.folder.join(DATA)
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.join(format!(".s.PGSQL.{}", self.port))
    }

    /// Where this machine's own connections go.
    pub fn address(&self) -> Address<'_> {
        Address::Socket(&self.folder, self.port)
    }

    /// Where those of client hosts go.
    pub fn guest_port(&self) -> Option<u16> {
        self.guests.is_some().then_some(self.port)
    }

    fn check_socket_path(&self) -> Result<(), EngineError> {
        let socket = self.socket();
        let bytes = socket.as_os_str().len();
        if bytes > SOCKET_PATH_BYTES {
            return Err(EngineError::new(format!(
                "the path of the unix socket, {}, has {bytes} bytes and {SOCKET_PATH_BYTES} are \
                possible; choose a data folder with a shorter path with --data DIR, or connect by \
                TCP",
                socket.display()
            )));
        }
        // It is written into a list within quotes.
        match socket.to_str() {
            Some(path) if !path.contains(['"', '\n']) => Ok(()),
            _ => Err(EngineError::new(format!(
                "the path of the unix socket, {}, holds a quote or is not UTF-8; choose another \
                data folder with --data DIR",
                socket.display()
            ))),
        }
    }

    /// Runs `initdb` where there is no data yet. Data of another major version is refused.
    pub fn init(
        &self,
        options: &StartOptions,
        build: &InstalledBuild,
        config: &Config,
        major: Major,
    ) -> Result<(), EngineError> {
        match fs::read_to_string(self.data_dir().join("PG_VERSION")) {
            Ok(found) if found.trim() == major.to_string() => return Ok(()),
            Ok(found) => {
                return Err(EngineError::new(format!(
                    "{} holds data of postgres {}, and {} is {major}; give it an empty data \
                    directory",
                    self.data_dir().display(),
                    found.trim(),
                    build.name
                )));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(EngineError::new(format!(
                    "read {}: {error}; check its permissions",
                    self.data_dir().display()
                )));
            }
        }
        let program = Program {
            path: init_program(build)?.clone(),
            arguments: self.init_arguments(config, major)?,
            env: build.env.clone(),
            user: self.account.user(),
            working_dir: Some(self.folder.clone()),
            ..Program::default()
        };
        program.run(&options.log_dir.join("init.log"), b"", INIT_LIMIT)
    }

    fn init_arguments(&self, config: &Config, major: Major) -> Result<Vec<String>, EngineError> {
        let data_dir = text(&self.data_dir())?;
        let mut arguments = [
            "-D",
            &data_dir,
            "-U",
            SUPERUSER,
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
        ]
        .map(str::to_owned)
        .to_vec();
        if config.has_data_checksums {
            arguments.push("--data-checksums".to_owned());
        } else if Major::of_version("18").is_some_and(|first| major >= first) {
            // From 18 on they are there unless one says so.
            arguments.push("--no-data-checksums".to_owned());
        }
        Ok(arguments)
    }

    /// Writes the parameters into their file, and makes the server read it last. A copy is kept in
    /// `log_dir`. Client hosts are let in with SCRAM or, where the server does not know it, MD5.
    pub fn write_config(
        &self,
        config: &Config,
        address: Address<'_>,
        log_dir: &Path,
        is_scram: bool,
    ) -> Result<(), EngineError> {
        let (Address::Socket(_, port) | Address::Tcp(port)) = address;
        let (listen, folder) = match address {
            Address::Socket(folder, _) => (
                self.guests.as_ref().map_or_else(String::new, listened),
                format!("\"{}\"", text(folder)?),
            ),
            Address::Tcp(_) => ("127.0.0.1".to_owned(), String::new()),
        };
        let port = port.to_string();
        let owned = file_text([
            ("listen_addresses", listen.as_str()),
            ("port", port.as_str()),
            ("unix_socket_directories", folder.as_str()),
            ("log_destination", "stderr"),
            ("logging_collector", "off"),
            // A crash of one session's process is a crash: the server ends, and nobody takes its
            // pause for slowness.
            ("restart_after_crash", "off"),
        ]);
        let path = self.data_dir().join(FILE_NAME);
        let include = format!("include '{FILE_NAME}'\n");
        let parameters = owned + &config.file_text();
        let owner = self.account.user();
        let write = || -> std::io::Result<()> {
            let data_dir = ForeignFolder::open(&self.folder)?.folder(DATA)?;
            data_dir.replace(FILE_NAME, &parameters, owner)?;
            if let Some(guests) = &self.guests {
                let rules = with_guests(&data_dir.read(RULES_FILE)?, guests, is_scram);
                data_dir.replace(RULES_FILE, &rules, owner)?;
            }
            let text = data_dir.read(MAIN_FILE)?;
            if text.ends_with(&include) {
                Ok(())
            } else {
                data_dir.replace(MAIN_FILE, &(text + "\n" + &include), owner)
            }
        };
        write().map_err(|error| {
            EngineError::new(format!(
                "write {}: {error}; check the data folder's permissions and space",
                path.display()
            ))
        })?;
        let kept = log_dir.join(FILE_NAME);
        fs::write(&kept, &parameters).map_err(|error| {
            EngineError::new(format!(
                "write {}: {error}; check the folder's permissions",
                kept.display()
            ))
        })
    }
}

impl Cluster {
    /// Puts parameters behind those that [`write_config`](Self::write_config) wrote, until it writes
    /// them again. The server has to be asked to read them.
    pub fn add_parameters(&self, text: &str) -> Result<(), EngineError> {
        let add = || -> std::io::Result<()> {
            let data_dir = ForeignFolder::open(&self.folder)?.folder(DATA)?;
            let before = data_dir.read(FILE_NAME)?;
            data_dir.replace(FILE_NAME, &(before + text), self.account.user())
        };
        add().map_err(|error| {
            EngineError::new(format!(
                "write {}: {error}; check the data folder's permissions and space",
                self.data_dir().join(FILE_NAME).display()
            ))
        })
    }
}

fn init_program(build: &InstalledBuild) -> Result<&PathBuf, EngineError> {
    match &build.init {
        DataInit::Initdb { program } => Ok(program),
        other => Err(EngineError::new(format!(
            "build {} makes data directories by {other:?}, which is not postgres's way; fetch it \
            again with `plimsoll build add`",
            build.name
        ))),
    }
}

/// A path as text, which the server's files and arguments here need.
pub(in crate::postgres) fn text(path: &Path) -> Result<String, EngineError> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        EngineError::new(format!(
            "{} is not UTF-8; choose another data folder with --data DIR",
            path.display()
        ))
    })
}
