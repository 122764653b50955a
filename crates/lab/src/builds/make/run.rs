//! One command of a recipe: under a guard, with a log, progress, and the line of the log that tells
//! why it failed.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_engine::process::child_command;

use crate::builds::error::BuildError;
use crate::builds::fetch::child::end_group;
use crate::builds::progress::{MakeProgress, Watch};
use crate::guard::guarded;

/// A command may take this long; then something hangs.
const DEADLINE: Duration = Duration::from_secs(8 * 3600);
const POLL: Duration = Duration::from_millis(50);
/// Object files are counted this often.
const COUNT_INTERVAL: Duration = Duration::from_secs(2);
/// A rate of fewer objects says nothing about the time that is left.
const FEWEST_OBJECTS: u64 = 20;
/// What is searched of a log for the telling line.
const SEARCHED_BYTES: u64 = 4 << 20;

/// Of the environment of this program: where compilers are, and where they put what they need for
/// a moment.
const KEPT: [&str; 2] = ["PATH", "TMPDIR"];

/// Beginnings and parts of lines that say why a build failed, the most telling first.
const TELLING: [&str; 13] = [
    "No space left on device",
    "Disk quota exceeded",
    "Killed signal terminated",
    "configure: error:",
    "CMake Error",
    "fatal error:",
    "undefined reference",
    " error: ",
    "command not found",
    "Permission denied",
    ": not found",
    "ERROR:",
    "*** ",
];

/// A command and what surrounds it.
pub(crate) struct Run<'a> {
    /// The step's name, for people.
    pub name: &'a str,
    pub arguments: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Where it runs.
    pub folder: &'a Path,
    /// What goes before the command: another user.
    pub prefix: &'static [&'static str],
    /// This program's binary, if commands run under a guard.
    pub guard: Option<&'a Path>,
    /// Takes what it prints, behind what is in it.
    pub log: &'a Path,
    /// Where objects are counted.
    pub objects: &'a Path,
    /// How many there will be in the end.
    pub wanted_objects: u64,
}

impl Run<'_> {
    /// Runs it to its end.
    pub fn run(self, watch: &mut Watch<'_>) -> Result<(), BuildError> {
        let from = self.begin_log()?;
        let mut command = self.command();
        let open = || OpenOptions::new().append(true).open(self.log);
        let log = || open().map_err(BuildError::io("write", self.log));
        command
            .current_dir(self.folder)
            .stdin(Stdio::null())
            .stdout(log()?)
            .stderr(log()?);
        let mut child = command.spawn().map_err(|error| {
            BuildError::Client(format!(
                "failed to start {}: {error}; check that it is installed",
                self.arguments[0]
            ))
        })?;
        let status = self.wait(&mut child, watch);
        if status.is_err() {
            end_group(&mut child);
        }
        match status? {
            true => Ok(()),
            false => Err(BuildError::Failed {
                step: self.name.to_owned(),
                line: telling_line(self.log, from)?,
                log: self.log.to_owned(),
            }),
        }
    }

    /// Writes what will be run; returns where its output begins.
    fn begin_log(&self) -> Result<u64, BuildError> {
        let io = || BuildError::io("write", self.log);
        let mut log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log)
            .map_err(io())?;
        for (name, value) in &self.env {
            writeln!(log, "# {name}={value}").map_err(io())?;
        }
        writeln!(log, "$ {}", self.arguments.join(" ")).map_err(io())?;
        log.seek(SeekFrom::End(0)).map_err(io())
    }

    fn command(&self) -> Command {
        let words = self.prefix.iter().map(|word| (*word).to_owned());
        let words: Vec<OsString> = words
            .chain(self.arguments.iter().cloned())
            .map(OsString::from)
            .collect();
        let mut command = match self.guard {
            Some(program) => guarded(program, &words),
            None => {
                let mut command = child_command(&words[0]);
                command.args(&words[1..]).process_group(0);
                command
            }
        };
        // Variables change what compilers and makefiles do (CPATH, COPT), and hold secrets.
        command.env_clear();
        for name in KEPT {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command
            .env("LC_ALL", "C")
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Whether it ended well.
    fn wait(
        &self,
        child: &mut std::process::Child,
        watch: &mut Watch<'_>,
    ) -> Result<bool, BuildError> {
        let started = Instant::now();
        let mut pace = None;
        let mut told: Option<Instant> = None;
        loop {
            let status = child.try_wait().map_err(|error| {
                BuildError::Client(format!("failed to wait for {}: {error}", self.name))
            })?;
            if let Some(status) = status {
                return Ok(status.success());
            }
            watch.check_cancelled()?;
            if started.elapsed() > DEADLINE {
                let hours = DEADLINE.as_secs() / 3600;
                return Err(BuildError::Client(format!(
                    "{} did not end within {hours} hours; look into {}",
                    self.name,
                    self.log.display()
                )));
            }
            if told.is_none_or(|at| at.elapsed() >= COUNT_INTERVAL) {
                let done = count_objects(self.objects);
                let pace = pace.get_or_insert_with(|| Pace::new(done));
                watch.report_step(MakeProgress {
                    step: self.name.to_owned(),
                    done,
                    wanted: self.wanted_objects.max(done),
                    left: pace.left(done, self.wanted_objects, started.elapsed()),
                });
                told = Some(Instant::now());
            }
            std::thread::sleep(POLL);
        }
    }
}

/// How fast objects are made, by when how many were there. Of MySQL the last fifth takes longer than
/// all the others: what is slower of all so far and of the last objects counts.
struct Pace {
    first: (Duration, u64),
    /// A twentieth of all objects ago, or two.
    before: (Duration, u64),
    last: (Duration, u64),
}

impl Pace {
    fn new(done: u64) -> Self {
        let now = (Duration::ZERO, done);
        Self {
            first: now,
            before: now,
            last: now,
        }
    }

    /// How long the rest takes.
    fn left(&mut self, done: u64, wanted: u64, elapsed: Duration) -> Option<Duration> {
        if done >= self.last.1 + wanted / 20 {
            self.before = std::mem::replace(&mut self.last, (elapsed, done));
        }
        let rest = wanted.checked_sub(done).filter(|rest| *rest > 0)?;
        let since = |(at, there): (Duration, u64)| {
            let made = done.checked_sub(there);
            let made = made.filter(|made| *made >= FEWEST_OBJECTS)?;
            Some((elapsed - at).mul_f64(rest as f64 / made as f64))
        };
        since(self.first).max(since(self.before))
    }
}

/// Object files below a folder.
pub(crate) fn count_objects(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let count = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => count_objects(&entry.path()),
        Ok(_) => u64::from(entry.path().extension().is_some_and(|ending| ending == "o")),
        Err(_) => 0,
    };
    entries.flatten().map(count).sum()
}

/// The line of a log that says why a command failed; else its last line.
pub(crate) fn telling_line(log: &Path, from: u64) -> Result<String, BuildError> {
    let io = || BuildError::io("read", log);
    let mut file = fs::File::open(log).map_err(io())?;
    let length = file.metadata().map_err(io())?.len();
    let from = from.max(length.saturating_sub(SEARCHED_BYTES));
    file.seek(SeekFrom::Start(from)).map_err(io())?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(io())?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let first = |part: &&str| lines.iter().position(|line| line.contains(part));
    let Some(at) = TELLING.iter().find_map(first) else {
        let last = lines.iter().rfind(|line| !line.trim().is_empty());
        return Ok(last
            .map_or("it printed nothing", |line| line.trim())
            .to_owned());
    };
    // CMake says on the next lines what its error is.
    let is_headline = lines[at].trim_end().ends_with(':');
    let more = lines[at + 1..].iter().find(|line| !line.trim().is_empty());
    Ok(match more.filter(|_| is_headline) {
        Some(more) => format!("{} {}", lines[at].trim(), more.trim()),
        None => lines[at].trim().to_owned(),
    })
}

/// Where a workshop keeps its log.
pub(crate) fn log_of(shop: &Path) -> PathBuf {
    shop.join("build.log")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_telling_line_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        for (text, wanted) in [
            (
                "gcc -c a.c\na.c:3:1: error: expected ';'\na.c:9:1: error: more\nmake: *** [a.o] \
                Error 1\n",
                "a.c:3:1: error: expected ';'",
            ),
            (
                "CMake Error at CMakeLists.txt:3 (message):\n\n  Cannot find zlib\n\n-- bad\n",
                "CMake Error at CMakeLists.txt:3 (message): Cannot find zlib",
            ),
            (
                "a.c:1:1: error: x\n/tmp/x.s: No space left on device\n",
                "/tmp/x.s: No space left on device",
            ),
            ("one\ntwo\n\n", "two"),
            ("", "it printed nothing"),
        ] {
            fs::write(&log, format!("an earlier error: \n{text}")).unwrap();
            let from = "an earlier error: \n".len() as u64;
            assert_eq!(telling_line(&log, from).unwrap(), wanted);
        }
    }

    #[test]
    fn the_time_left_follows_the_rate() {
        let minute = Duration::from_secs(60);
        let left = |first, done, wanted| Pace::new(first).left(done, wanted, minute);
        assert_eq!(left(0, 100, 300), Some(2 * minute));
        // What an earlier try made says nothing about the rate.
        assert_eq!(left(100, 200, 300), Some(minute));
        assert_eq!(left(0, 3, 300), None);
        assert_eq!(left(0, 400, 300), None);
    }

    /// MySQL had 17 minutes to go after two minutes, and 16 after 74.
    #[test]
    fn large_objects_at_the_end_are_seen_in_the_time_left() {
        let minute = Duration::from_secs(60);
        let mut pace = Pace::new(0);
        for done in (0..=800).step_by(10) {
            pace.left(done, 1000, minute.mul_f64(done as f64 / 100.0));
        }
        // Ten times as slow from here on.
        for done in (810..=900).step_by(10) {
            pace.left(done, 1000, minute.mul_f64(8.0 + (done - 800) as f64 / 10.0));
        }
        assert_eq!(pace.left(900, 1000, 18 * minute), Some(10 * minute));
        // As fast as ever again: all so far is the slower one.
        for done in (910..=980).step_by(10) {
            pace.left(
                done,
                1000,
                minute.mul_f64(18.0 + (done - 900) as f64 / 100.0),
            );
        }
        let left = pace.left(980, 1000, minute.mul_f64(18.8)).unwrap();
        assert_eq!(left.as_secs(), 23, "18.8 minutes for 980");
    }
}
