//! perf as child processes alongside a step, with deadlines.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_core::readings::Reading;
use plimsoll_engine::process::{child_command, is_asleep, output_within};
use plimsoll_store::{Profile, ProfileAbout};
use rustix::process::{Pid, Signal, kill_process};

use super::counters::{self, EVENTS};
use super::fold::{Folded, fold};

/// Samples a second and CPU; not a divisor of anything that ticks.
const FREQUENCY_HZ: u32 = 499;
/// perf looks at all mappings of the server before it begins, and has this long for that.
const BEGIN_PATIENCE: Duration = Duration::from_secs(30);
/// perf has this long to write what it has when it is asked to end.
const END_PATIENCE: Duration = Duration::from_secs(30);
/// Names must be found by then.
const SCRIPT_LIMIT: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(20);
/// What a user can do about a kernel that says no.
const ALLOW: &str = "run as root, or allow it with `sysctl kernel.perf_event_paranoid=1`";
const NO_COUNTERS: &str =
    "this machine counts no events of the processor (virtual machines often have no PMU)";

/// A server that is being profiled.
pub(crate) struct Recorder {
    server_dir: PathBuf,
    step: String,
    event: &'static str,
    /// Or why there is none.
    record: Result<Child, String>,
    stat: Option<Child>,
}

impl Recorder {
    /// Starts to profile these processes, and waits until perf has begun: a short step was over
    /// before. That it cannot be done is reported at the end.
    pub fn start(server_dir: &Path, step: &str, pids: impl Fn() -> Vec<u32>) -> Self {
        let has_counters = counts_cycles();
        let event = if has_counters { "cycles" } else { "cpu-clock" };
        let mut recorder = Self {
            server_dir: server_dir.to_owned(),
            step: step.to_owned(),
            event,
            record: Err(String::new()),
            stat: None,
        };
        let deadline = Instant::now() + BEGIN_PATIENCE;
        let mut profiled = pids();
        loop {
            recorder.begin(&profiled, has_counters);
            if recorder.has_begun(deadline) {
                return recorder;
            }
            // One that has ended by now is enough for perf to give up: servers end workers and
            // start others at any time.
            let now = pids();
            if now == profiled || Instant::now() > deadline {
                return recorder;
            }
            recorder.give_up();
            profiled = now;
        }
    }

    fn begin(&mut self, pids: &[u32], has_counters: bool) {
        let pids = pids
            .iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join(",");
        let frequency = FREQUENCY_HZ.to_string();
        let mut command = child_command("perf");
        command
            .args([
                "record", "-e", self.event, "-F", &frequency, "-g", "-p", &pids, "-o",
            ])
            .arg(self.file("perf.data"));
        self.record = self.spawn(command, "perf.log");
        if has_counters && self.record.is_ok() {
            let mut command = child_command("perf");
            command
                .args(["stat", "-x,", "-e", &EVENTS.join(","), "-p", &pids, "-o"])
                .arg(self.file("perf.stat"));
            self.stat = self.spawn(command, "perf.stat.log").ok();
        }
    }

    /// Waits until perf has begun, and says whether it has: it writes the head of its file, then what
    /// the processes have mapped, and then sleeps while samples are taken. On a busy machine its file
    /// stops growing before that.
    fn has_begun(&mut self, deadline: Instant) -> bool {
        let data = self.file("perf.data");
        let mut before = 0;
        while let Ok(child) = &mut self.record {
            let now = length(&data);
            let has_begun = now > 0 && now == before && is_asleep(child.id());
            before = now;
            if !matches!(child.try_wait(), Ok(None)) {
                return false;
            }
            if has_begun || Instant::now() > deadline {
                return has_begun;
            }
            std::thread::sleep(POLL);
        }
        false
    }

    fn give_up(&mut self) {
        for child in self.record.as_mut().ok().into_iter().chain(&mut self.stat) {
            let _ = child.kill();
            let _ = child.wait();
        }
        // It would be taken for that of the next attempt.
        let _ = fs::remove_file(self.file("perf.data"));
    }

    fn file(&self, ending: &str) -> PathBuf {
        self.server_dir.join(format!("{}.{ending}", self.step))
    }

    fn spawn(&self, mut command: Command, log: &str) -> Result<Child, String> {
        let log = File::create(self.file(log))
            .map_err(|error| format!("failed to write a log for perf: {error}"))?;
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .env("LC_ALL", "C")
            .spawn()
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => {
                    "there is no program perf; install it (Debian: apt-get install linux-perf) and \
                    confirm with --perf again"
                        .to_owned()
                }
                _ => format!("failed to start perf: {error}"),
            })
    }

    /// Tells it to end, and does not wait for that: what the server does from now on is not the
    /// step's.
    pub fn stop(&mut self) {
        for child in self.record.as_mut().ok().into_iter().chain(&mut self.stat) {
            interrupt(child);
        }
    }

    /// Ends it and gives the profile, or in its place why there is none. The step has done so many
    /// operations, and the server used so much CPU for each.
    pub fn finish(
        mut self,
        cell: &str,
        operations: u64,
        server_cpu_us_per_op: Option<f64>,
    ) -> Profile {
        let counters = self.counters(operations);
        let folded = self.stacks();
        for ending in [
            "perf.data",
            "perf.log",
            "perf.stat",
            "perf.stat.log",
            "perf.txt",
            "perf.txt.log",
        ] {
            let _ = fs::remove_file(self.file(ending));
        }
        let (folded, unavailable) = match folded {
            Ok(folded) if folded.samples == 0 => (
                folded,
                Some("perf took no sample of the server: it was idle, or not there".to_owned()),
            ),
            Ok(folded) => (folded, None),
            Err(reason) => (Folded::default(), Some(reason)),
        };
        let about = ProfileAbout {
            format: 1,
            cell: cell.to_owned(),
            step: self.step.clone(),
            event: self.event.to_owned(),
            frequency_hz: FREQUENCY_HZ,
            samples: folded.samples,
            nameless_samples: folded.nameless,
            server_cpu_us_per_op,
            counters,
            unavailable,
        };
        Profile {
            about,
            pass: 1,
            stacks: folded.stacks,
        }
    }

    fn counters(&mut self, operations: u64) -> BTreeMap<String, Reading> {
        let Some(mut child) = self.stat.take() else {
            return counters::unavailable(NO_COUNTERS);
        };
        if let Err(reason) = end(&mut child) {
            return counters::unavailable(&reason);
        }
        let text = fs::read_to_string(self.file("perf.stat")).unwrap_or_default();
        counters::per_operation(&counters::read(&text), operations)
    }

    fn stacks(&mut self) -> Result<Folded, String> {
        match std::mem::replace(&mut self.record, Err(String::new())) {
            Ok(mut child) => end(&mut child)?,
            Err(reason) => return Err(reason),
        }
        let data = self.file("perf.data");
        if length(&data) == 0 {
            return Err(refusal(
                &fs::read_to_string(self.file("perf.log")).unwrap_or_default(),
            ));
        }
        let text = self.file("perf.txt");
        let output = File::create(&text)
            .map_err(|error| format!("failed to write {}: {error}", text.display()))?;
        let log = File::create(self.file("perf.txt.log"))
            .map_err(|error| format!("failed to write a log for perf: {error}"))?;
        let mut command = child_command("perf");
        command
            .args(["script", "--no-inline", "-F", "comm,ip,sym,dso", "-i"])
            .arg(&data);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(log)
            .env("LC_ALL", "C")
            .spawn()
            .map_err(|error| format!("failed to start perf: {error}"))?;
        wait(&mut child, SCRIPT_LIMIT).map_err(|()| {
            format!(
                "perf needed more than {} s to find names",
                SCRIPT_LIMIT.as_secs()
            )
        })?;
        let opened = File::open(&text)
            .map_err(|error| format!("failed to read {}: {error}", text.display()))?;
        fold(BufReader::new(opened))
            .map_err(|error| format!("failed to read {}: {error}", text.display()))
    }
}

impl Drop for Recorder {
    /// A step that fails is not profiled to its end.
    fn drop(&mut self) {
        self.give_up();
    }
}

/// `true` ends at once.
const COUNT_LIMIT: Duration = Duration::from_secs(30);

/// Whether the processor's own events are counted here.
fn counts_cycles() -> bool {
    let mut command = child_command("perf");
    command
        .args(["stat", "-x,", "-e", "cycles", "--", "true"])
        .env("LC_ALL", "C");
    output_within(&mut command, COUNT_LIMIT).is_ok_and(|output| {
        let counts = counters::read(&String::from_utf8_lossy(&output.stderr));
        counts
            .get("cycles")
            .is_some_and(|cycles| cycles.as_ref().is_ok_and(|cycles| *cycles > 0.0))
    })
}

fn length(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |about| about.len())
}

/// Tells perf to end as Ctrl-C does: it writes what it has.
fn interrupt(child: &mut Child) {
    if let Some(pid) = Pid::from_raw(child.id() as i32)
        && matches!(child.try_wait(), Ok(None))
    {
        let _ = kill_process(pid, Signal::INT);
    }
}

fn end(child: &mut Child) -> Result<(), String> {
    interrupt(child);
    wait(child, END_PATIENCE)
        .map_err(|()| format!("perf did not end within {} s", END_PATIENCE.as_secs()))
}

/// Waits for a child; one that takes too long is killed.
fn wait(child: &mut Child, limit: Duration) -> Result<(), ()> {
    let deadline = Instant::now() + limit;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return Err(());
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// Why perf has recorded nothing, and what to do.
fn refusal(log: &str) -> String {
    let is_forbidden = ["ermission", "aranoid", "not permitted", "CAP_PERFMON"]
        .iter()
        .any(|word| log.contains(word));
    let Some(line) = log.lines().map(str::trim).find(|line| !line.is_empty()) else {
        return format!(
            "perf recorded nothing: it had not begun after {} s; something else keeps this machine \
             busy",
            BEGIN_PATIENCE.as_secs()
        );
    };
    if is_forbidden {
        format!("perf may not look at the server ({line}); {ALLOW}, and confirm with --perf again")
    } else {
        format!("perf recorded nothing: {line}")
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_refusal_says_what_to_do() {
        let log = "Error:\nAccess to performance monitoring and observability operations is \
                  limited.\nConsider adjusting /proc/sys/kernel/perf_event_paranoid setting\n";
        assert!(
            refusal(log).contains("perf may not look at the server")
                && refusal(log).contains("sysctl kernel.perf_event_paranoid=1")
        );
        assert_eq!(
            refusal("\nfailed to mmap\n"),
            "perf recorded nothing: failed to mmap"
        );
        assert!(refusal("").contains("it had not begun after 30 s"));
    }

    #[test]
    fn a_process_that_is_not_there_is_no_profile_and_no_failure() {
        let dir = tempfile::tempdir().unwrap();
        let profile =
            Recorder::start(dir.path(), "qr100", || vec![u32::MAX >> 2]).finish("cell", 0, None);
        assert!(
            profile
                .about
                .unavailable
                .is_some_and(|reason| !reason.is_empty()),
            "with perf or without"
        );
        assert_eq!((profile.about.samples, profile.stacks.len()), (0, 0));
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            0,
            "nothing of perf is left"
        );
    }

    /// Servers end workers at any time, and perf gives up for one that is gone.
    #[test]
    fn perf_begins_again_without_a_process_that_has_ended_meanwhile() {
        const TEST: &str = "lab::perf_begins_again_without_a_process_that_has_ended_meanwhile";
        let dir = tempfile::tempdir().unwrap();
        let mut busy = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let asked = Cell::new(0);
        let pids = || {
            asked.set(asked.get() + 1);
            let gone = (asked.get() == 1).then_some(u32::MAX >> 2);
            gone.into_iter().chain([busy.id()]).collect()
        };
        let recorder = Recorder::start(dir.path(), "qr100", pids);
        std::thread::sleep(Duration::from_millis(500));
        let profile = recorder.finish("cell", 1000, Some(1.0));
        busy.kill().unwrap();
        busy.wait().unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let reason = profile.about.unavailable.unwrap_or_default();
        if ["no program perf", "perf may not"]
            .iter()
            .any(|known| reason.contains(known))
        {
            return plimsoll_testkit::skip(TEST, &reason);
        }
        assert_eq!((reason.as_str(), asked.get()), ("", 2));
        assert!(profile.about.samples > 0);
    }
}
