//! Server processes: started with their log, watched, and ended by pid. Shared by the engines that
//! are servers.
//!
//! A `ServerProcess` dies with its value: whoever drops one kills what still runs. What a killed
//! owner leaves behind its guard ends, and where that was killed too, [`end_below`].

mod command;
mod identity;
mod leftovers;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::TcpListener;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

pub use command::{child_command, keep_from_children, output_within};
pub use identity::{ProcessGroup, ProcessIdentity, boot_id, end_children, is_asleep};
pub use leftovers::{MARK, end_below, end_marked, working_below};

use crate::{EngineError, Health};

/// The file in a log folder with the [`ProcessIdentity`] of what was started last: a program that
/// makes the data, then the server.
pub const IDENTITY_FILE: &str = "server-process.json";

/// Between two looks at a process.
const PAUSE: Duration = Duration::from_millis(5);
/// A killed process has this long to be gone; one that sleeps in the kernel needs some of it.
const KILL_LIMIT: Duration = Duration::from_secs(30);
/// What is shown of a log: its last lines, from its last bytes.
const TAIL_LINES: usize = 20;
const TAIL_BYTES: u64 = 16 << 10;

/// Whom a program runs as, when not as ourselves. Needs root; other groups are given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UserIds {
    pub uid: u32,
    pub gid: u32,
}

/// A program and all that decides how it starts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub path: PathBuf,
    pub arguments: Vec<String>,
    /// A command to run it under; empty for none.
    pub prefix: Vec<String>,
    /// Added to our own environment.
    pub env: BTreeMap<String, String>,
    pub user: Option<UserIds>,
    /// Where it starts; our own directory for `None`.
    pub working_dir: Option<PathBuf>,
}

impl Program {
    fn command(&self) -> Command {
        let mut command = match self.prefix.split_first() {
            Some((first, rest)) => {
                let mut command = child_command(first);
                command.args(rest).arg(&self.path);
                command
            }
            None => child_command(&self.path),
        };
        command.args(&self.arguments).envs(&self.env);
        if let Some(dir) = &self.working_dir {
            command.current_dir(dir);
        }
        if let Some(UserIds { uid, gid }) = self.user {
            command.uid(uid).gid(gid);
        }
        // A group of its own: Ctrl-C on the terminal is for us, and we stop the server in our own
        // time.
        command.process_group(0);
        command
    }

    /// Starts with both outputs appended to `log`, and writes its identity into the log's folder,
    /// so that whoever finds the file after our sudden end can end it.
    fn start(&self, log: &Path, stdin: Stdio) -> Result<(Child, ProcessIdentity), EngineError> {
        let unwritable = |error| {
            EngineError::new(format!(
                "write {}: {error}; check the folder's permissions",
                log.display()
            ))
        };
        let out = OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .map_err(unwritable)?;
        let err = out.try_clone().map_err(unwritable)?;
        let mut child = self
            .command()
            .stdin(stdin)
            .stdout(out)
            .stderr(err)
            .spawn()
            .map_err(|error| {
                let name = self.prefix.first().map_or_else(
                    || self.path.display().to_string(),
                    |first| format!("{first} (the config's prefix)"),
                );
                EngineError::new(format!(
                    "start {name}: {error}; check that it is there and can be run"
                ))
            })?;
        let written = ProcessIdentity::of(child.id())
            .ok_or_else(|| {
                EngineError::new(format!(
                    "read /proc/{}/stat; this needs Linux's /proc, of this process's own \
                     namespace",
                    child.id()
                ))
            })
            .and_then(|identity| identity.write(&identity_file(log)).map(|()| identity));
        match written {
            Ok(identity) => Ok((child, identity)),
            Err(error) => {
                // Nothing is known of what it has started by now, but the child itself is ours as
                // long as it was not waited for.
                let _ = child.kill();
                let _ = wait_for(&mut child, Instant::now() + KILL_LIMIT);
                Err(error)
            }
        }
    }

    /// Runs to the end and asks for status 0. Both outputs are appended to `log`, and `input` is
    /// what it reads. It is killed when `limit` is over.
    pub(crate) fn run(&self, log: &Path, input: &[u8], limit: Duration) -> Result<(), EngineError> {
        let deadline = Instant::now() + limit;
        let (mut child, identity) = self.start(log, stdin(input)?)?;
        let status = wait_for(&mut child, deadline);
        let problem = match status {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => format!(
                "{} ended with {}",
                self.path.display(),
                describe_status(status)
            ),
            Ok(None) => {
                kill(&mut child, &identity);
                format!(
                    "{} was not done within {limit:?} and was killed",
                    self.path.display()
                )
            }
            Err(error) => {
                kill(&mut child, &identity);
                format!("wait for {}: {error}", self.path.display())
            }
        };
        Err(EngineError::new(format!(
            "{problem}; see {}, which ends with:\n{}",
            log.display(),
            log_tail(log)
        )))
    }
}

/// What a program reads, as a file without a name: with a pipe, one that does not read would hold
/// up whoever writes.
fn stdin(input: &[u8]) -> Result<Stdio, EngineError> {
    if input.is_empty() {
        return Ok(Stdio::null());
    }
    let file = tempfile::tempfile().and_then(|mut file| {
        file.write_all(input)?;
        file.rewind()?;
        Ok(file)
    });
    file.map(Stdio::from).map_err(|error| {
        EngineError::new(format!(
            "write a file in {}: {error}; check the disk",
            std::env::temp_dir().display()
        ))
    })
}

/// Waits for the end of a child; `None` when the deadline came first.
fn wait_for(child: &mut Child, deadline: Instant) -> std::io::Result<Option<ExitStatus>> {
    loop {
        let status = child.try_wait()?;
        if status.is_some() || Instant::now() >= deadline {
            return Ok(status);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Where the identity of what writes `log` is.
fn identity_file(log: &Path) -> PathBuf {
    log.with_file_name(IDENTITY_FILE)
}

/// Kills a child and all it has started, and waits for its end, within reason.
fn kill(child: &mut Child, identity: &ProcessIdentity) {
    identity.kill_group();
    let _ = wait_for(child, Instant::now() + KILL_LIMIT);
}

pub(crate) struct ServerProcess {
    watched: Mutex<Watched>,
    log: PathBuf,
    /// `oom_kill` of `/proc/vmstat` when it started.
    oom_kills: Option<u64>,
}

struct Watched {
    /// What was started: the server, or the outermost wrapper above it.
    child: Child,
    /// The server's; the child's as long as nothing else is known.
    identity: ProcessIdentity,
    ended: Option<ExitStatus>,
}

impl Watched {
    fn status(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// Signals the server, and in its absence a wrapper that is still there. The number of a child
    /// that was not waited for cannot mean another process.
    fn signal(&mut self, signal: Signal) {
        let is_waited_for = self.status().is_some();
        let pid = match self.identity.is_there() {
            true => self.identity.pid,
            false if is_waited_for => return,
            false => self.child.id(),
        };
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            // Fails only when it has just ended.
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills what still runs, a server whose wrapper has ended before it included.
    fn kill(&mut self) {
        self.identity.kill_group();
        self.wait(Instant::now() + KILL_LIMIT);
    }

    fn wait(&mut self, deadline: Instant) -> Option<ExitStatus> {
        while self.status().is_none() && Instant::now() < deadline {
            std::thread::sleep(PAUSE);
        }
        self.ended
    }
}

impl ServerProcess {
    /// Starts a server. `log` gets its standard outputs and is where its last words are looked for;
    /// beside it is [`IDENTITY_FILE`].
    pub(crate) fn spawn(program: &Program, log: &Path) -> Result<Self, EngineError> {
        let oom_kills = oom_kills();
        let (child, identity) = program.start(log, Stdio::null())?;
        Ok(Self {
            watched: Mutex::new(Watched {
                child,
                identity,
                ended: None,
            }),
            log: log.to_owned(),
            oom_kills,
        })
    }

    /// Finds the server below a wrapper by the process id that it wrote down, which is its own
    /// word: in a namespace of process ids it means somebody else here. Signals go to it from now
    /// on, and the identity file names it: a wrapper ends with its server, and not the other way
    /// round. When it is not below what was started, that stays the one.
    pub(crate) fn set_main(&self, number: u32) {
        let mut watched = self.watched();
        if let Some(main) = watched.identity.find(number) {
            // Should that fail, the file names the wrapper still.
            let _ = main.write(&identity_file(&self.log));
            watched.identity = main;
        }
    }

    /// Signals the server, if it is there.
    pub(crate) fn signal(&self, signal: Signal) {
        self.watched().signal(signal);
    }

    /// The server's process id.
    pub(crate) fn main_pid(&self) -> u32 {
        self.watched().identity.pid
    }

    /// Whether it runs. One system call.
    pub(crate) fn health(&self) -> Health {
        match self.watched().status() {
            None => Health::Running,
            Some(status) => Health::Crashed {
                status: self.describe_end(status),
                log_tail: log_tail(&self.log),
            },
        }
    }

    /// The end in words. The kernel kills because memory ran out with SIGKILL: the server itself,
    /// below a wrapper that ends with 128 + 9, or one of its processes, which its log tells.
    fn describe_end(&self, status: ExitStatus) -> String {
        let text = describe_status(status);
        let killed = Signal::KILL.as_raw();
        let is_killed = status.signal() == Some(killed)
            || status.code() == Some(128 + killed)
            || log_tail(&self.log).contains("terminated by signal 9");
        if is_killed && oom_kills() > self.oom_kills {
            format!(
                "{text}, possibly out of memory: the kernel has killed a process for that since \
                the server started"
            )
        } else {
            text
        }
    }

    /// Whether it has ended with status 0; none while it runs.
    pub(crate) fn ended_well(&self) -> Option<bool> {
        self.watched().status().map(|status| status.success())
    }

    /// Waits for a process that ends by itself, with status 0. It is killed when `limit` is over.
    pub(crate) fn wait_until_ended(&self, limit: Duration) -> Result<(), EngineError> {
        let deadline = Instant::now() + limit;
        while self.ended_well().is_none() && Instant::now() < deadline {
            std::thread::sleep(PAUSE);
        }
        let problem = match self.health() {
            Health::Crashed { .. } if self.ended_well() == Some(true) => return Ok(()),
            Health::Crashed { status, .. } => format!("it ended with {status}"),
            Health::Running => {
                self.watched().kill();
                format!("it was not done within {limit:?} and was killed")
            }
        };
        Err(EngineError::new(format!(
            "run a program: {problem}; see {}, which ends with:\n{}",
            self.log.display(),
            log_tail(&self.log)
        )))
    }

    /// Asks `is_ready` until it says yes. An early end of the process and the end of `limit` are
    /// errors with the log's tail.
    pub(crate) fn wait_until_ready(
        &self,
        limit: Duration,
        mut is_ready: impl FnMut() -> Result<bool, EngineError>,
    ) -> Result<(), EngineError> {
        let deadline = Instant::now() + limit;
        loop {
            if let Health::Crashed { status, log_tail } = self.health() {
                return Err(EngineError::new(format!(
                    "the server ended before it was ready ({status}); see {}, which ends \
                    with:\n{log_tail}",
                    self.log.display()
                )));
            }
            if is_ready()? {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(EngineError::new(format!(
                    "the server was not ready within {limit:?}; see {}, which ends with:\n{}",
                    self.log.display(),
                    log_tail(&self.log)
                )));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Signals the server, waits for its end, and kills it when `timeout` is over. An end that is
    /// not clean is an error.
    pub(crate) fn stop(&self, signal: Signal, timeout: Duration) -> Result<(), EngineError> {
        let mut watched = self.watched();
        let was_running = watched.status().is_none();
        watched.signal(signal);
        let status = watched.wait(Instant::now() + timeout);
        let problem = match status {
            Some(status) if status.success() => return Ok(()),
            Some(status) if was_running => format!("it ended with {}", self.describe_end(status)),
            Some(status) => format!("it had ended before with {}", self.describe_end(status)),
            None => format!("it did not end within {timeout:?} and was killed"),
        };
        watched.kill();
        Err(EngineError::new(format!(
            "stop the server: {problem}; see {}, which ends with:\n{}",
            self.log.display(),
            log_tail(&self.log)
        )))
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.watched().kill();
    }
}

/// An exit status in words: `exit status 1`, or `signal 9, SIGKILL`.
pub fn describe_status(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => match signal_name(signal) {
            Some(name) => format!("signal {signal}, {name}"),
            None => format!("signal {signal}"),
        },
        (None, None) => status.to_string(),
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    const NAMES: [(Signal, &str); 9] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::ILL, "SIGILL"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::TERM, "SIGTERM"),
    ];
    NAMES
        .iter()
        .find(|(known, _)| known.as_raw() == signal)
        .map(|(_, name)| *name)
}

/// How often the kernel has killed a process because memory ran out; `None` where it does not say.
fn oom_kills() -> Option<u64> {
    let text = fs::read_to_string("/proc/vmstat").ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix("oom_kill "))?
        .trim()
        .parse()
        .ok()
}

/// The last lines of a log; what is wrong with it when it cannot be read.
pub fn log_tail(log: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
        }
        Err(error) => format!("({} cannot be read: {error})", log.display()),
    }
}

/// A port of the loopback interface that was free a moment ago.
pub(crate) fn free_loopback_port() -> Result<u16, EngineError> {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| {
            EngineError::new(format!(
                "find a free port on 127.0.0.1: {error}; check that the loopback interface is up"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        Program {
            path: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            ..Program::default()
        }
    }

    fn spawn(script: &str, dir: &Path) -> ServerProcess {
        ServerProcess::spawn(&shell(script), &dir.join("log")).unwrap()
    }

    fn identity(process: &ServerProcess) -> ProcessIdentity {
        process.watched().identity.clone()
    }

    /// What the identity file says.
    fn written(dir: &Path) -> ProcessIdentity {
        serde_json::from_str(&fs::read_to_string(dir.join(IDENTITY_FILE)).unwrap()).unwrap()
    }

    const SOON: Duration = Duration::from_secs(30);

    /// Waits until the script has said so: only then are its traps set.
    fn wait_for_word(process: &ServerProcess, dir: &Path, word: &str) {
        let log = dir.join("log");
        process
            .wait_until_ready(SOON, || {
                Ok(fs::read_to_string(&log).unwrap_or_default().contains(word))
            })
            .unwrap();
    }

    #[test]
    fn a_program_runs_to_its_end_with_input_environment_and_log() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let mut program = shell("cat; echo $WORD >&2; pwd");
        program
            .env
            .insert("WORD".into(), "from the environment".into());
        program.working_dir = Some("/".into());
        let input = "x".repeat(1 << 20);
        program.run(&log, input.as_bytes(), SOON).unwrap();
        let text = fs::read_to_string(&log).unwrap();
        assert!(
            text.starts_with(&input) && text.ends_with("from the environment\n/\n"),
            "{} bytes",
            text.len()
        );

        let message = shell("echo last words; exit 3")
            .run(&log, b"", SOON)
            .unwrap_err()
            .message;
        assert!(
            message.contains("exit status 3") && message.ends_with("last words"),
            "{message}"
        );
        let message = shell("sleep 60")
            .run(&log, input.as_bytes(), Duration::from_millis(50))
            .unwrap_err()
            .message;
        assert!(
            message.contains("was not done within 50ms and was killed"),
            "{message}"
        );
        let missing = Program {
            path: "/does/not/exist".into(),
            ..Program::default()
        };
        assert!(
            missing
                .run(&log, b"", SOON)
                .unwrap_err()
                .message
                .starts_with("start /does/not/exist: ")
        );
    }

    #[test]
    fn an_early_end_and_a_deadline_show_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let process = spawn("echo no disk; exit 7", dir.path());
        let message = process
            .wait_until_ready(SOON, || Ok(false))
            .unwrap_err()
            .message;
        assert!(
            message.contains("before it was ready (exit status 7)") && message.contains("no disk"),
            "{message}"
        );

        let dir = tempfile::tempdir().unwrap();
        let process = spawn("sleep 60", dir.path());
        let message = process
            .wait_until_ready(Duration::from_millis(30), || Ok(false))
            .unwrap_err()
            .message;
        assert!(message.contains("was not ready within 30ms"), "{message}");
    }

    #[test]
    fn a_killed_server_is_a_crash_and_its_signal_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let process = spawn("echo up; exec sleep 60", dir.path());
        assert_eq!(process.health(), Health::Running);
        let written = written(dir.path());
        assert_eq!(written, identity(&process));
        kill_process(Pid::from_raw(written.pid as i32).unwrap(), Signal::SEGV).unwrap();
        let deadline = Instant::now() + SOON;
        while process.health() == Health::Running {
            assert!(Instant::now() < deadline);
            std::thread::sleep(PAUSE);
        }
        let Health::Crashed { status, .. } = process.health() else {
            panic!()
        };
        assert_eq!(status, "signal 11, SIGSEGV");
        assert!(!written.is_there());
        assert!(
            process
                .stop(Signal::TERM, SOON)
                .unwrap_err()
                .message
                .contains("it had ended before with signal 11")
        );
    }

    #[test]
    fn an_end_for_want_of_memory_is_told_where_the_kernel_counts() {
        if oom_kills().is_none() {
            return plimsoll_testkit::skip(
                "engine::process",
                "this kernel does not count oom_kill in /proc/vmstat",
            );
        }
        for (script, is_killed) in [
            ("kill -9 $$", true),
            // A wrapper's word for it, and PostgreSQL's for one of its sessions.
            ("exit 137", true),
            (
                "echo 'LOG:  server process (PID 7) was terminated by signal 9: Killed'; exit 1",
                true,
            ),
            (
                "echo 'LOG:  server process (PID 7) was terminated by signal 11: Segmentation \
                fault'; exit 1",
                false,
            ),
            ("kill -11 $$", false),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let mut process = spawn(script, dir.path());
            // As if one had been counted since.
            process.oom_kills = None;
            let deadline = Instant::now() + SOON;
            while process.health() == Health::Running {
                assert!(Instant::now() < deadline);
                std::thread::sleep(PAUSE);
            }
            let Health::Crashed { status, .. } = process.health() else {
                panic!()
            };
            assert_eq!(
                status.contains("possibly out of memory"),
                is_killed,
                "{script}: {status}"
            );
        }
    }

    #[test]
    fn stopping_is_clean_or_says_what_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let process = spawn(
            "trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done",
            dir.path(),
        );
        wait_for_word(&process, dir.path(), "up");
        process.stop(Signal::TERM, SOON).unwrap();

        let dir = tempfile::tempdir().unwrap();
        let process = spawn(
            "trap '' TERM; echo up; while :; do sleep 0.01; done",
            dir.path(),
        );
        wait_for_word(&process, dir.path(), "up");
        let message = process
            .stop(Signal::TERM, Duration::from_millis(50))
            .unwrap_err()
            .message;
        assert!(
            message.contains("did not end within 50ms and was killed"),
            "{message}"
        );
        assert!(!identity(&process).is_there());
    }

    #[test]
    fn under_a_wrapper_the_server_itself_is_signalled() {
        let dir = tempfile::tempdir().unwrap();
        // The wrapper ignores the signal and ends with its child's status.
        let mut program = shell("trap 'exit 0' TERM; echo pid $$ up; while :; do sleep 0.01; done");
        program.prefix = [
            "/bin/sh",
            "-c",
            "trap '' TERM; (trap - TERM; exec \"$@\"); exit $?",
            "wrapper",
        ]
        .map(str::to_owned)
        .to_vec();
        let process = ServerProcess::spawn(&program, &dir.path().join("log")).unwrap();
        wait_for_word(&process, dir.path(), "up");
        let log = fs::read_to_string(dir.path().join("log")).unwrap();
        let pid: u32 = log.split_whitespace().nth(1).unwrap().parse().unwrap();
        let wrapper = identity(&process);
        assert_ne!(pid, wrapper.pid);
        process.set_main(pid);
        assert_eq!(process.main_pid(), pid);
        let written = written(dir.path());
        assert!(written.pid == pid && written.is_there(), "{written:?}");
        assert_eq!(written.group.unwrap().id, wrapper.pid);
        process.stop(Signal::TERM, SOON).unwrap();
        assert_eq!(ProcessIdentity::of(pid), None);
    }

    #[test]
    fn a_number_of_somebody_elses_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let process = spawn("echo up; exec sleep 60", dir.path());
        wait_for_word(&process, dir.path(), "up");
        let ours = identity(&process);
        let mut stranger = Command::new("sleep").arg("60").spawn().unwrap();
        for number in [1, stranger.id()] {
            process.set_main(number);
            assert_eq!(
                (process.main_pid(), identity(&process), written(dir.path())),
                (ours.pid, ours.clone(), ours.clone()),
                "{number}"
            );
        }
        drop(process);
        assert!(!ours.is_there());
        assert_eq!(stranger.try_wait().unwrap(), None, "a stranger was killed");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }

    #[test]
    fn a_server_in_a_namespace_of_process_ids_is_found_by_its_own_number() {
        const WAYS: [&[&str]; 2] = [
            &["unshare", "--pid", "--fork"],
            &["unshare", "--user", "--map-root-user", "--pid", "--fork"],
        ];
        let works = |way: &&&[&str]| {
            let tried = Command::new(way[0])
                .args(&way[1..])
                .arg("true")
                .stderr(Stdio::null())
                .status();
            tried.is_ok_and(|status| status.success())
        };
        let Some(way) = WAYS.iter().find(works) else {
            return plimsoll_testkit::skip(
                "engine::process",
                "unshare may make no namespace of process ids here",
            );
        };
        let dir = tempfile::tempdir().unwrap();
        let mut program = shell("trap 'exit 0' TERM; echo pid $$ up; while :; do sleep 0.01; done");
        program.prefix = way.iter().map(|word| (*word).to_owned()).collect();
        let process = ServerProcess::spawn(&program, &dir.path().join("log")).unwrap();
        wait_for_word(&process, dir.path(), "up");
        assert!(
            fs::read_to_string(dir.path().join("log"))
                .unwrap()
                .contains("pid 1 up")
        );
        let wrapper = identity(&process);
        process.set_main(1);
        let server = identity(&process);
        assert!(
            server.pid != 1 && server.pid != wrapper.pid && server.is_running(),
            "{server:?}"
        );
        assert_eq!(written(dir.path()), server);
        process.stop(Signal::TERM, SOON).unwrap();
        assert!(!server.is_there());
    }

    #[test]
    fn what_makes_the_data_can_be_ended_after_our_sudden_end() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let (program, path) = (shell("echo up; sleep 60"), log.clone());
        let running = std::thread::spawn(move || program.run(&path, b"", SOON * 4));
        let deadline = Instant::now() + SOON;
        while !fs::read_to_string(&log).unwrap_or_default().contains("up")
            || !dir.path().join(IDENTITY_FILE).exists()
        {
            assert!(Instant::now() < deadline);
            std::thread::sleep(PAUSE);
        }
        assert!(written(dir.path()).kill_group());
        let message = running.join().unwrap().unwrap_err().message;
        assert!(
            message.contains("ended with signal 9, SIGKILL"),
            "{message}"
        );
    }

    #[test]
    fn a_server_that_outlives_its_wrapper_is_gone_with_its_value() {
        let dir = tempfile::tempdir().unwrap();
        let mut program = shell("echo pid $$ up; exec sleep 60");
        // The wrapper starts the server, and ends as soon as it is told to.
        program.prefix = [
            "/bin/sh",
            "-c",
            "trap 'exit 3' TERM; \"$@\" & while :; do sleep 0.01; done",
            "wrapper",
        ]
        .map(str::to_owned)
        .to_vec();
        let process = ServerProcess::spawn(&program, &dir.path().join("log")).unwrap();
        wait_for_word(&process, dir.path(), "up");
        let log = fs::read_to_string(dir.path().join("log")).unwrap();
        let server =
            ProcessIdentity::of(log.split_whitespace().nth(1).unwrap().parse().unwrap()).unwrap();
        process.set_main(server.pid);
        kill_process(
            Pid::from_raw(process.watched().child.id() as i32).unwrap(),
            Signal::TERM,
        )
        .unwrap();
        let deadline = Instant::now() + SOON;
        while process.health() == Health::Running {
            assert!(Instant::now() < deadline);
            std::thread::sleep(PAUSE);
        }
        let Health::Crashed { status, .. } = process.health() else {
            panic!()
        };
        assert_eq!(status, "exit status 3");
        assert!(server.is_running());
        drop(process);
        assert!(!server.is_running());
    }

    #[test]
    fn a_dropped_server_takes_its_group_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let process = spawn("sleep 60 & echo pid $! up; wait", dir.path());
        wait_for_word(&process, dir.path(), "up");
        let log = fs::read_to_string(dir.path().join("log")).unwrap();
        let helper =
            ProcessIdentity::of(log.split_whitespace().nth(1).unwrap().parse().unwrap()).unwrap();
        assert!(helper.is_running());
        drop(process);
        let deadline = Instant::now() + SOON;
        while helper.is_running() {
            assert!(Instant::now() < deadline, "the group was left behind");
            std::thread::sleep(PAUSE);
        }
    }

    #[test]
    fn a_dropped_server_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let process = spawn("exec sleep 60", dir.path());
        let identity = identity(&process);
        drop(process);
        assert!(!identity.is_there());
    }

    #[test]
    fn a_tail_is_short_and_whole_lines_of_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        fs::write(
            &log,
            (0..10_000)
                .map(|n| format!("line {n}\n"))
                .collect::<String>(),
        )
        .unwrap();
        let tail = log_tail(&log);
        assert_eq!(
            (tail.lines().next(), tail.lines().count()),
            (Some("line 9980"), TAIL_LINES)
        );
        assert!(log_tail(Path::new("/does/not/exist")).contains("cannot be read"));
    }
}
