//! Starting a server and waiting until it answers.

use std::fs;
use std::time::Duration;

use mysql::{Conn, Opts, OptsBuilder};

use super::init;
use crate::guest::free_port;
use crate::mysql::failure;
use crate::mysql::files::{Files, make_dir, write};
use crate::mysql::guest;
use crate::mysql::options::ServerConfig;
use crate::mysql::version::Version;
use crate::process::{Program, ServerProcess, free_loopback_port};
use crate::{EngineError, InstalledBuild, StartOptions, Transport};

/// A start on new data takes seconds; one that makes gigabytes of redo log first, minutes.
const READY_LIMIT: Duration = Duration::from_secs(900);
/// A server that takes a connection answers its greeting within this.
const GREETING_LIMIT: Duration = Duration::from_secs(30);
/// A port that was free a moment ago may be taken now.
const PORT_TRIES: usize = 3;

/// A server that answers.
pub(in crate::mysql) struct Launched {
    pub process: ServerProcess,
    /// How to reach it, without a database.
    pub opts: Opts,
    /// Where client hosts reach it.
    pub guest_port: Option<u16>,
}

/// Starts a server on a data directory that is made.
pub(in crate::mysql) fn launch(
    build: &InstalledBuild,
    version: Version,
    config: &ServerConfig,
    files: &Files,
    options: &StartOptions,
) -> Result<Launched, EngineError> {
    make_dir(&files.tmp)?;
    let cnf = config.cnf();
    write(&files.cnf, &cnf)?;
    write(&files.kept_cnf, &cnf)?;
    let mut tries = 0;
    loop {
        tries += 1;
        let log_start = fs::metadata(&files.log).map_or(0, |log| log.len());
        match launch_once(build, config, files, options) {
            Ok(launched) => return Ok(launched),
            Err(error) => {
                let log = fs::read(&files.log).unwrap_or_default();
                let log = String::from_utf8_lossy(
                    &log[usize::try_from(log_start).unwrap_or(0).min(log.len())..],
                );
                let has_port = options.transport == Transport::Tcp || options.guests.is_some();
                let is_port_taken = has_port && log.contains("Address already in use");
                if !is_port_taken || tries >= PORT_TRIES {
                    return Err(init::explain_text(build, version, &log, &error));
                }
            }
        }
    }
}

fn launch_once(
    build: &InstalledBuild,
    config: &ServerConfig,
    files: &Files,
    options: &StartOptions,
) -> Result<Launched, EngineError> {
    let socket = OptsBuilder::new()
        .user(Some("root"))
        .prefer_socket(false)
        .stmt_cache_size(0);
    let socket = socket.init(session_init(&config.charset));
    let guest_port = match &options.guests {
        Some(guests) => Some(free_port(&guests.listen)?),
        None => None,
    };
    let by_socket = |socket: OptsBuilder| socket.socket(Some(files.socket.display().to_string()));
    let (listen, opts) = match (options.transport, &options.guests, guest_port) {
        (_, Some(guests), Some(port)) => (guest::listen(guests, port)?, by_socket(socket)),
        (Transport::Socket, ..) => (vec!["--skip-networking".to_owned()], by_socket(socket)),
        (Transport::Tcp, ..) => {
            let port = free_loopback_port()?;
            (
                vec![
                    "--bind-address=127.0.0.1".to_owned(),
                    format!("--port={port}"),
                ],
                socket.ip_or_hostname(Some("127.0.0.1")).tcp_port(port),
            )
        }
    };
    let mut arguments = vec![
        format!("--defaults-file={}", files.cnf.display()),
        format!("--datadir={}", files.data.display()),
        format!("--tmpdir={}", files.tmp.display()),
        format!("--socket={}", files.socket.display()),
        format!("--pid-file={}", files.pid.display()),
    ];
    // On the command line, so that they win over the option file.
    arguments.extend(init::build_options(build));
    arguments.extend(listen);
    arguments.extend(build.server_options.iter().cloned());
    arguments.extend(storage_plugin(build, config));
    let mut env = build.env.clone();
    env.extend(options.env.clone());
    let program = Program {
        path: build.server.clone(),
        arguments,
        prefix: options.prefix.clone(),
        env,
        ..Program::default()
    };
    // A server that ended suddenly left it; who waits for the new one must not read the old number.
    let _ = fs::remove_file(&files.pid);
    let process = ServerProcess::spawn(&program, &files.log)?;
    process.wait_until_ready(READY_LIMIT, || answers(&opts))?;
    // Under a wrapper that stays above the server, the process that was started is not the
    // server's.
    let pid = fs::read_to_string(&files.pid).unwrap_or_default();
    let pid = pid.trim().parse().map_err(|_| {
        EngineError::new(format!(
            "find the server's process id in {}",
            files.pid.display()
        ))
    })?;
    process.set_main(pid);
    Ok(Launched {
        process,
        opts: opts.into(),
        guest_port,
    })
}

/// What every session begins with. Without the mode, 5.5 and 5.6 make an InnoDB table where they
/// lack the engine that was asked for.
pub(in crate::mysql) fn session_init(charset: &str) -> Vec<String> {
    vec![
        format!("set names {charset}"),
        "set session sql_mode = concat(@@session.sql_mode, ',NO_ENGINE_SUBSTITUTION')".to_owned(),
    ]
}

fn storage_plugin(build: &InstalledBuild, config: &ServerConfig) -> Option<String> {
    let plugins = &build.storage_plugins;
    plugins
        .iter()
        .find(|(engine, _)| engine.eq_ignore_ascii_case(&config.storage_engine))
        .map(|(_, option)| option.clone())
}

/// Whether the server takes a connection. That it is not there yet is not an error, that it refuses
/// us is.
fn answers(opts: &OptsBuilder) -> Result<bool, EngineError> {
    let hasty = opts
        .clone()
        .read_timeout(Some(GREETING_LIMIT))
        .tcp_connect_timeout(Some(GREETING_LIMIT));
    match Conn::new(hasty) {
        Ok(_) => Ok(true),
        Err(error @ mysql::Error::MySqlError(_)) => {
            Err(failure::engine_error("connect to the new server", &error))
        }
        Err(_) => Ok(false),
    }
}
