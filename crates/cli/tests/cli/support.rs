//! Runs the real binary in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Nothing in these tests may take longer.
pub const DEADLINE: Duration = Duration::from_secs(300);

/// What `confirm` ends with if no throughput has a verdict: always with fewer than three starts.
pub const UNDECIDED: i32 = 4;

/// Five steps in about three seconds.
pub const SMALL_PLAN: &str = r#"
name = "small"
workload = "insert-benchmark"
builds = ["sqlite"]
configs = ["wal_full", "wal_off"]
base = "sqlite.wal_full"
verify = "full"
wait = "100ms"
comparable = false
steps = ["l.i0", "l.x", "l.i1", "l.i2", "qr100"]
[sizes]
rows = "20K"
write_rows = "2K"
duration = "1s"
"#;

/// For a plan of slices whose starts must all count: other tests run at the same time.
pub const LIMITS: &str =
    "[limits]\nforeign = \"99.9%\"\nsteal = \"99.9%\"\nturn = \"99.9%\"\nleak = \"99.9%\"\n";

/// A folder with a plan, a store and a data folder.
pub struct Place {
    pub dir: TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    /// On a disk, where other temporary files may be in memory.
    pub fn on_disk() -> Self {
        Self::within(Path::new("/var/tmp"))
    }

    fn within(folder: &Path) -> Self {
        let dir = tempfile::tempdir_in(folder).unwrap();
        std::fs::write(dir.path().join("small.toml"), SMALL_PLAN).unwrap();
        Self { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        // As from a terminal, even if the tests run under nohup or behind a shell.
        let mut command = Command::new("env");
        command
            .args([
                "--default-signal=HUP,INT,QUIT",
                env!("CARGO_BIN_EXE_plimsoll"),
            ])
            .current_dir(self.dir.path())
            .args(arguments)
            .stdin(Stdio::null());
        if !arguments.contains(&"--data") {
            command.args(["--data", "data"]);
        }
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// The only campaign's folder.
    pub fn campaign(&self) -> PathBuf {
        let mut campaigns: Vec<_> = std::fs::read_dir(self.path("plimsoll-runs"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(campaigns.len(), 1, "{campaigns:?}");
        campaigns.remove(0)
    }

    /// All event files, in the order of their trials and attempts.
    pub fn event_files(&self) -> Vec<PathBuf> {
        let Ok(trials) = std::fs::read_dir(self.campaign().join("trials")) else {
            return Vec::new();
        };
        let mut files: Vec<_> = trials
            .map(|entry| entry.unwrap().path().join("events.jsonl"))
            .filter(|path| path.exists())
            .collect();
        files.sort();
        files
    }

    /// `(trial folder, step)` of every `step_done` that is on disk in full.
    pub fn steps_done(&self) -> Vec<(String, String)> {
        let mut steps = Vec::new();
        for file in self.event_files() {
            let folder = file
                .parent()
                .unwrap()
                .file_name()
                .unwrap()
                .to_string_lossy()
                .into_owned();
            let text = std::fs::read_to_string(&file).unwrap();
            for line in text
                .split_inclusive('\n')
                .filter(|line| line.ends_with('\n') && line.contains(r#""event":"step_done""#))
            {
                let event: serde_json::Value = serde_json::from_str(line).unwrap();
                steps.push((folder.clone(), event["step"].as_str().unwrap().to_owned()));
            }
        }
        steps
    }
}

/// A file system of its own, unmounted at the end.
pub struct Mount(pub PathBuf);

impl Mount {
    /// A new folder with so much room. None if we may not.
    pub fn new(dir: PathBuf, mib: u32) -> Option<Self> {
        std::fs::create_dir(&dir).unwrap();
        let size = format!("size={mib}m,mode=755");
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(&dir)
            .stderr(Stdio::null())
            .status();
        status
            .is_ok_and(|status| status.success())
            .then_some(Self(dir))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Waits for a child with a deadline.
pub fn wait(mut child: Child) -> Output {
    let deadline = Instant::now() + DEADLINE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("still running after {DEADLINE:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

/// Waits until something is true. To look takes CPU from what is waited for, and from other tests:
/// no more than a fifth of the time.
pub fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let began = Instant::now();
        if is_true() {
            return;
        }
        assert!(began < deadline, "still not after {DEADLINE:?}: {what}");
        std::thread::sleep((4 * began.elapsed()).max(Duration::from_millis(5)));
    }
}

/// No process works in a place, and nothing is left of its data.
pub fn assert_nothing_is_left(place: &Place) {
    assert_eq!(processes_in(place.dir.path()), Vec::<u32>::new());
    let left: Vec<_> = std::fs::read_dir(place.path("data"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, [".plimsoll-data"]);
}

/// Pids of the processes whose working directory is this folder: the program and the trials it
/// started.
pub fn processes_in(dir: &Path) -> Vec<u32> {
    let dir = dir.canonicalize().unwrap();
    let pids = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == dir))
        .collect()
}
