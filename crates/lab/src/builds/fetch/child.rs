//! Package clients as child processes: each in a process group of its own, with a deadline,
//! watched, and ended when the user stops.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use plimsoll_engine::directory_bytes;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::builds::error::BuildError;
use crate::builds::progress::Watch;

/// A download may take this long; then something hangs.
const DEADLINE: Duration = Duration::from_secs(30 * 60);
/// A client that was told to end has this long before it is killed.
const END_PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(50);
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
const TAIL_LINES: usize = 12;

/// A client to run.
pub(crate) struct Client<'a> {
    /// With its arguments and working directory.
    pub command: Command,
    /// What to install when it is missing.
    pub needs: &'a str,
    /// The folder that grows while it downloads.
    pub grows: &'a Path,
    /// Takes all it prints.
    pub log: PathBuf,
}

/// The client ran and said no.
pub(crate) struct Refusal {
    /// All it printed.
    pub text: String,
    /// What it was and the end of what it printed, for people.
    pub summary: String,
}

impl Refusal {
    /// Whether it printed any of these words.
    pub fn has_any(&self, words: &[&str]) -> bool {
        words.iter().any(|words| self.text.contains(words))
    }

    /// The error for people: the package is gone, or something else is wrong.
    pub fn explain(&self, package: &str, is_gone: bool) -> BuildError {
        let summary = &self.summary;
        if is_gone {
            BuildError::Gone(format!("the registry has no {package} any more: {summary}"))
        } else {
            BuildError::Client(format!(
                "failed to fetch {package}: {summary}\n  check the network and the client's own \
                configuration"
            ))
        }
    }
}

impl Client<'_> {
    /// Runs it to its end. The outer error is ours (missing, too slow, interrupted), the inner one
    /// the client's own.
    pub fn run(mut self, watch: &mut Watch<'_>) -> Result<Result<(), Refusal>, BuildError> {
        let name = self.command.get_program().to_string_lossy().into_owned();
        let log = File::create(&self.log).map_err(BuildError::io("write", &self.log))?;
        let both = log
            .try_clone()
            .map_err(BuildError::io("write", &self.log))?;
        // A group of its own: Ctrl-C reaches us alone, and ending the group ends what the client
        // started.
        self.command
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(both)
            .process_group(0);
        let mut child = self.command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => BuildError::Client(format!(
                "{name} is not here; install {} and try again",
                self.needs
            )),
            _ => BuildError::Client(format!("failed to start {name}: {error}; try it by hand")),
        })?;
        let status = self.wait(&mut child, watch);
        if status.is_err() {
            end_group(&mut child);
        }
        if status?.success() {
            return Ok(Ok(()));
        }
        let text = std::fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default();
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n  ");
        Ok(Err(Refusal {
            summary: format!("{name} failed:\n  {tail}"),
            text,
        }))
    }

    fn wait(&self, child: &mut Child, watch: &mut Watch<'_>) -> Result<ExitStatus, BuildError> {
        let started = Instant::now();
        let mut told: Option<Instant> = None;
        loop {
            if let Some(status) = child.try_wait().map_err(|error| {
                BuildError::Client(format!("failed to wait for a package client: {error}"))
            })? {
                return Ok(status);
            }
            watch.check_cancelled()?;
            if started.elapsed() > DEADLINE {
                let minutes = DEADLINE.as_secs() / 60;
                let name = self.command.get_program().to_string_lossy();
                return Err(BuildError::Client(format!(
                    "{name} did not end within {minutes} minutes; try it by hand"
                )));
            }
            if told.is_none_or(|at| at.elapsed() >= PROGRESS_INTERVAL) {
                watch.report(directory_bytes(self.grows).unwrap_or(0));
                told = Some(Instant::now());
            }
            std::thread::sleep(POLL);
        }
    }
}

/// Asks the child's group to end, then ends it. Reaped last: until then its number cannot mean
/// another group.
pub(crate) fn end_group(child: &mut Child) {
    let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return;
    };
    let _ = kill_process_group(group, Signal::TERM);
    let asked = Instant::now();
    let without_reaping = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    while asked.elapsed() < END_PATIENCE
        && matches!(waitid(WaitId::Pid(group), without_reaping), Ok(None))
    {
        std::thread::sleep(POLL);
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::builds::progress::Stage;

    fn run(
        dir: &Path,
        command: &[&str],
        is_cancelled: &dyn Fn() -> bool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Result<(), Refusal>, BuildError> {
        let mut program = Command::new(command[0]);
        program.args(&command[1..]).current_dir(dir);
        let mut tell = |now: &crate::builds::FetchProgress| progress(now.bytes);
        let mut watch = Watch {
            progress: &mut tell,
            is_cancelled,
            name: "x".into(),
            stage: Stage::Fetching,
            started: Instant::now(),
        };
        Client {
            command: program,
            needs: "the missing thing",
            grows: dir,
            log: dir.join("log"),
        }
        .run(&mut watch)
    }

    #[test]
    fn the_end_of_a_client_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let quiet = |command: &[&str]| run(dir.path(), command, &|| false, &mut |_| {});
        assert!(matches!(quiet(&["true"]), Ok(Ok(()))));
        let refusal = quiet(&["sh", "-c", "echo first; echo; echo E404 >&2; exit 3"])
            .unwrap()
            .unwrap_err();
        assert_eq!(
            (refusal.text.as_str(), refusal.summary.as_str()),
            ("first\n\nE404\n", "sh failed:\n  first\n  E404")
        );
        let error = quiet(&["plimsoll-no-such-client"])
            .err()
            .unwrap()
            .to_string();
        assert_eq!(
            error,
            "plimsoll-no-such-client is not here; install the missing thing and try again"
        );
    }

    #[test]
    fn what_it_downloads_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let mut most = 0;
        // Ends when a second report has been made, which sees the file.
        let reports = Cell::new(0);
        let done = dir.path().join("done");
        let script = "head -c 5000 /dev/zero > part; while [ ! -e done ]; do sleep 0.05; done";
        let outcome = run(dir.path(), &["sh", "-c", script], &|| false, &mut |bytes| {
            most = bytes.max(most);
            reports.set(reports.get() + 1);
            if bytes >= 5000 || reports.get() > 50 {
                std::fs::write(&done, "").unwrap();
            }
        });
        assert!(matches!(outcome, Ok(Ok(()))));
        assert!(most >= 5000, "{most}");
    }

    #[test]
    fn stopping_ends_what_the_client_started_too() {
        let dir = tempfile::tempdir().unwrap();
        let pid_file = dir.path().join("pid");
        let script = "sleep 300 & echo $! > pid.new; mv pid.new pid; wait";
        let stopped = run(
            dir.path(),
            &["sh", "-c", script],
            &|| pid_file.exists(),
            &mut |_| {},
        );
        assert!(matches!(stopped, Err(BuildError::Cancelled { .. })));
        let pid = std::fs::read_to_string(&pid_file).unwrap();
        let stat = PathBuf::from(format!("/proc/{}/stat", pid.trim()));
        // Gone, or waiting for its new parent to look.
        let is_running = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        let deadline = Instant::now() + Duration::from_secs(20);
        while is_running() && Instant::now() < deadline {
            std::thread::sleep(POLL);
        }
        assert!(!is_running());
    }
}
