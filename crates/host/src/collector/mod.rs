//! Watches the machine while a step runs.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_core::readings::{HostReading, Readings};
use rustix::process::{getpriority_process, setpriority_process};

use crate::processes::{Activity, thread_cpu_ns};
mod readings;
mod sampler;
mod series;

use self::readings::{Difference, share_of_window};
pub use self::sampler::{ChildUsage, child_usage};
use self::sampler::{Sample, Sampler};
use self::series::SeriesWriter;
use crate::space::directory_bytes;
use crate::{Answer, Proc};

/// What belongs to the engine under load.
#[derive(Clone, Debug)]
pub struct EngineUnderLoad<'a> {
    /// Its data directory. Disk counters are those of the device it is on.
    pub data_dir: &'a Path,
    /// Its processes; their descendants are found. Empty for an embedded engine.
    pub server_pids: Vec<u32>,
    /// True when the engine lives in this process.
    pub is_embedded: bool,
}

/// Counts what the machine does from `start` to `stop`, with a thread that looks once a
/// second, and gives the readings of [`HostReading`].
///
/// Dropped without `stop`, it ends its thread within a sample's time and gives nothing.
#[derive(Debug)]
pub struct Collector {
    watcher: Arc<Mutex<CollectorState>>,
    /// Its end tells the thread to end.
    stop: Sender<()>,
    /// CPU nanoseconds of the thread when it is joined.
    thread: Answer<JoinHandle<u64>>,
    data_dir: PathBuf,
}

/// A [`Collector`] that is about to begin under load.
#[derive(Debug)]
pub struct PreparedCollector {
    sampler: Sampler,
    data_dir: PathBuf,
}

/// When a [`Collector`] takes samples.
#[derive(Clone, Debug)]
pub enum Looks {
    /// At the beginning and at the end: what others do in between is not to be disturbed.
    AtEnds,
    /// Each second, too.
    EachSecond,
    /// Each second, and writes this `host.tsv`: a header, then a line for each second with the
    /// columns `second`, `cpu_busy_pct`, `cpu_user_pct`, `cpu_system_pct`, `steal_pct` (of all
    /// CPUs), `context_switches`, `read_kib`, `write_kib`, `reads`, `writes` (per second, of the
    /// host and of the data directory's device), `psi_io_pct`, `rss_mib`. An empty cell is
    /// unavailable.
    Series(PathBuf),
}

const INTERVAL: Duration = Duration::from_secs(1);

impl Collector {
    /// Takes the first sample before it returns: for a step whose work begins after that.
    pub fn start(proc_: Proc, watch: EngineUnderLoad, looks: Looks) -> Collector {
        let mut prepared = Self::prepare(proc_, watch);
        let activity = prepared.sampler.activity();
        let first = prepared.sampler.sample();
        prepared.begin((first, activity), None, looks)
    }

    /// Meets every process and every file for the first time; what that costs does not belong to
    /// the step. Best while nobody works.
    pub fn prepare(proc_: Proc, watch: EngineUnderLoad) -> PreparedCollector {
        let server_pids = (!watch.is_embedded).then_some(watch.server_pids);
        let mut sampler = Sampler::new(&proc_, watch.data_dir, server_pids);
        sampler.sample();
        PreparedCollector {
            sampler,
            data_dir: watch.data_dir.to_owned(),
        }
    }

    /// Takes the last sample at once: for the instant at which the work is over.
    /// [`stop`](Self::stop) takes no other then.
    pub fn look_last(&mut self) {
        lock(&self.watcher).look_last();
    }

    /// Takes the last sample at once and gives what was read. Never fails: each reading is a value
    /// or says why there is none.
    pub fn stop(self) -> Readings {
        self.stop_over(None)
    }

    /// The same for a window of this length, which began when the first sample was to be taken, or
    /// with the work after it. Without one it ends with the last sample.
    pub fn stop_over(self, window: Option<Duration>) -> Readings {
        let (mut readings, rss_max_bytes) = {
            let mut watcher = lock(&self.watcher);
            if watcher.last_activity.is_none() {
                watcher.look_last();
            }
            let begin = watcher.begin.unwrap_or(watcher.first.at);
            let window = window.unwrap_or_else(|| watcher.last.at.saturating_duration_since(begin));
            let difference = Difference::between(&watcher.first, &watcher.last);
            let seconds = window.as_secs_f64();
            let mut readings = difference.into_readings_of(&watcher.first, watcher.begin, seconds);
            watcher.put_activity(seconds, &mut readings);
            (readings, watcher.rss_max_bytes.clone())
        };
        drop(self.stop);
        let collector_cpu_ns = self.thread.and_then(|thread| {
            thread
                .join()
                .map_err(|_| String::from("the sampling thread panicked"))
        });
        let data_dir_bytes = directory_bytes(&self.data_dir)
            .map_err(|error| format!("cannot list the data directory: {error}"));
        let series = lock(&self.watcher).series.take().map(SeriesWriter::finish);
        readings.put(HostReading::RssMax, rss_max_bytes.map(|bytes| bytes as f64));
        readings.put(
            HostReading::DataDir,
            data_dir_bytes.map(|bytes| bytes as f64),
        );
        readings.put(
            HostReading::CollectorCpu,
            collector_cpu_ns.map(|ns| ns as f64 / 1e9),
        );
        if let Some(series) = series {
            readings.put(HostReading::SeriesRows, series);
        }
        readings
    }
}

/// Before other threads of the machine, as far as the kernel lets us: under root. Without that a
/// thread among a thousand that are ready to run comes to its turn seconds later.
fn urgently<T>(act: impl FnOnce() -> T) -> T {
    const HIGHEST: i32 = -20;
    let usual = getpriority_process(None);
    let is_raised = setpriority_process(None, HIGHEST).is_ok();
    let result = act();
    if let Ok(usual) = usual
        && is_raised
    {
        let _ = setpriority_process(None, usual);
    }
    result
}

impl PreparedCollector {
    /// Takes the first sample at `begin`, under load: of the processes that were there when it was
    /// prepared. It is never quite at the instant; readings are taken in proportion. `before` is
    /// what comes first and waits until then; with `None` from it there is nothing to look at.
    pub fn begin_at<T>(
        mut self,
        begin: Instant,
        looks: Looks,
        before: impl FnOnce() -> Option<T>,
    ) -> Option<(T, Collector)> {
        let (before, first) = urgently(|| {
            let before = before()?;
            std::thread::sleep(begin.saturating_duration_since(Instant::now()));
            let sample = self.sampler.sample_quickly();
            Some((before, (sample, self.sampler.activity())))
        })?;
        Some((before, self.begin(first, Some(begin), looks)))
    }

    fn begin(
        self,
        (first, first_activity): (Sample, Activity),
        begin: Option<Instant>,
        looks: Looks,
    ) -> Collector {
        let series = match &looks {
            Looks::Series(path) => Some(path),
            Looks::AtEnds | Looks::EachSecond => None,
        };
        let watcher = CollectorState {
            sampler: self.sampler,
            rss_max_bytes: first.rss_bytes.clone(),
            last: first.clone(),
            begin,
            first,
            first_activity,
            last_activity: None,
            last_second: 0,
            series: series.map(|path| SeriesWriter::create(path)),
        };
        let watcher = Arc::new(Mutex::new(watcher));
        let (stop, stopped) = channel();
        let sampling = {
            let watcher = Arc::clone(&watcher);
            move || watch_until(&watcher, &stopped)
        };
        let thread = match looks {
            Looks::AtEnds => Err(String::from("no thread samples: the step is in turns")),
            Looks::EachSecond | Looks::Series(_) => std::thread::Builder::new()
                .name(String::from("host-collector"))
                .spawn(sampling)
                .map_err(|error| format!("no thread to sample with: {error}")),
        };
        Collector {
            watcher,
            stop,
            thread,
            data_dir: self.data_dir,
        }
    }
}

/// The state shared by the thread and the caller of `stop`, so that each can look at the instant it
/// must.
#[derive(Debug)]
struct CollectorState {
    sampler: Sampler,
    first: Sample,
    /// When the first was to be taken, where that was under load.
    begin: Option<Instant>,
    last: Sample,
    first_activity: Activity,
    /// With the last sample.
    last_activity: Option<Activity>,
    last_second: u64,
    rss_max_bytes: Answer<u64>,
    series: Option<SeriesWriter>,
}

impl CollectorState {
    fn look_last(&mut self) {
        self.look();
        self.last_activity = Some(self.sampler.activity());
    }

    /// What the server did in a window of so many seconds.
    fn put_activity(&self, seconds: f64, readings: &mut Readings) {
        let Some(last) = &self.last_activity else {
            return;
        };
        let share = share_of_window(self.first_activity.at(), self.begin, seconds);
        last.put_since(&self.first_activity, &share, readings);
    }

    fn look(&mut self) {
        let sample = self.sampler.sample();
        self.rss_max_bytes = match (&self.rss_max_bytes, &sample.rss_bytes) {
            (Ok(max), Ok(now)) => Ok(*max.max(now)),
            (Ok(max), Err(_)) => Ok(*max),
            (Err(_), now) => now.clone(),
        };
        // A last look soon after a whole second has no line of its own; one after half a second
        // has.
        let second = sample
            .at
            .duration_since(self.first.at)
            .as_secs_f64()
            .round() as u64;
        if second > self.last_second {
            if let Some(series) = &mut self.series {
                series.add(
                    second,
                    &Difference::between(&self.last, &sample),
                    &sample.rss_bytes,
                );
            }
            self.last_second = second;
        }
        self.last = sample;
    }
}

fn lock(watcher: &Mutex<CollectorState>) -> MutexGuard<'_, CollectorState> {
    watcher.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks at each whole second after the start; returns this thread's CPU nanoseconds.
fn watch_until(watcher: &Mutex<CollectorState>, stopped: &Receiver<()>) -> u64 {
    let start = lock(watcher).first.at;
    let mut due = start + INTERVAL;
    while stopped.recv_timeout(due.saturating_duration_since(Instant::now()))
        == Err(RecvTimeoutError::Timeout)
    {
        let mut watcher = lock(watcher);
        if watcher.last_activity.is_none() {
            watcher.look();
        }
        drop(watcher);
        // A late look skips the seconds it missed instead of looking twice in a row.
        while due <= Instant::now() {
            due += INTERVAL;
        }
    }
    thread_cpu_ns()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use plimsoll_core::readings::Reading;

    use super::*;
    use crate::processes::{burn_cpu, tick_ns};

    fn embedded(data_dir: &Path) -> EngineUnderLoad<'_> {
        EngineUnderLoad {
            data_dir,
            server_pids: Vec::new(),
            is_embedded: true,
        }
    }

    #[test]
    fn a_real_machine_gives_what_it_has() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("table"), [0; 5000]).unwrap();
        let collector = Collector::start(Proc::new(), embedded(dir.path()), Looks::EachSecond);
        burn_cpu(50_000_000);
        std::thread::sleep(Duration::from_millis(1));
        let readings = collector.stop();
        let value = |name: HostReading| {
            readings[name]
                .value()
                .unwrap_or_else(|| panic!("{name:?}: {:?}", readings[name]))
        };
        assert!(value(HostReading::ProcessCpu) >= 0.05);
        assert!(
            value(HostReading::ContextSwitches) > 0.0
                && value(HostReading::VoluntarySwitches) > 0.0
        );
        assert!(value(HostReading::ServerVoluntarySwitches) > 0.0);
        assert!(value(HostReading::ServerReadCalls) > 0.0);
        assert!(
            value(HostReading::Cpus) >= 1.0
                && value(HostReading::Seconds) > 0.0
                && value(HostReading::RssMax) > 0.0
        );
        assert_eq!(value(HostReading::DataDir), 5000.0);
        assert!(value(HostReading::CollectorCpu) < value(HostReading::Seconds));
        assert!(!readings.contains(HostReading::SeriesRows));
        for (name, reading) in &readings {
            match reading {
                Reading::Ok(value) => {
                    assert!(value.is_finite() && *value >= 0.0, "{name:?} = {value}")
                }
                Reading::Unavailable(reason) => {
                    assert!(
                        !reason.is_empty() && !reason.contains(dir.path().to_str().unwrap()),
                        "{name:?}: {reason}"
                    )
                }
            }
        }
        let parts = [
            HostReading::CpuUser,
            HostReading::CpuSystem,
            HostReading::CpuIowait,
            HostReading::CpuSteal,
            HostReading::CpuIdle,
        ]
        .map(value)
        .iter()
        .sum::<f64>();
        assert!((parts - value(HostReading::CpuTotal)).abs() < 1e-6);
    }

    #[test]
    fn a_server_is_told_from_its_client() {
        let dir = tempfile::tempdir().unwrap();
        let mut server = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let watch = EngineUnderLoad {
            data_dir: dir.path(),
            server_pids: vec![server.id()],
            is_embedded: false,
        };
        let collector = Collector::start(Proc::new(), watch, Looks::EachSecond);
        burn_cpu(100_000_000);
        let readings = collector.stop();
        server.kill().unwrap();
        server.wait().unwrap();
        let (client_s, server_s) = (
            readings[HostReading::ClientCpu].value().unwrap(),
            readings[HostReading::ServerCpu].value().unwrap(),
        );
        assert!(
            client_s >= 0.1 && server_s < 0.1,
            "client {client_s} s, server {server_s} s"
        );
        assert!(readings[HostReading::RssMax].value().unwrap() > 0.0);
        assert_eq!(readings[HostReading::ProcessCpu].value(), None);
    }

    /// A server that works before the window, in it, and is gone before it is asked about: no
    /// process uses more CPU than time passes.
    #[test]
    fn a_window_under_load_has_its_own_cpu_and_outlives_the_server() {
        let dir = tempfile::tempdir().unwrap();
        let mut server = std::process::Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let watch = EngineUnderLoad {
            data_dir: dir.path(),
            server_pids: vec![server.id()],
            is_embedded: false,
        };
        let prepared = Collector::prepare(Proc::new(), watch);
        let begin = Instant::now() + Duration::from_millis(400);
        let ((), mut collector) = prepared
            .begin_at(begin, Looks::EachSecond, || Some(()))
            .unwrap();
        std::thread::sleep(Duration::from_millis(200));
        collector.look_last();
        let window = begin.elapsed();
        server.kill().unwrap();
        server.wait().unwrap();
        let readings = collector.stop_over(Some(window));
        let server_s = readings[HostReading::ServerCpu].value().unwrap();
        assert!(
            server_s > 0.0 && server_s <= window.as_secs_f64() * 1.001,
            "{server_s} s of {window:?}"
        );
        assert_eq!(
            readings[HostReading::Seconds].value(),
            Some(window.as_secs_f64())
        );
    }

    #[test]
    fn in_turns_nobody_looks_in_between() {
        let dir = tempfile::tempdir().unwrap();
        let collector = Collector::start(Proc::new(), embedded(dir.path()), Looks::AtEnds);
        std::thread::sleep(Duration::from_millis(10));
        assert_eq!(lock(&collector.watcher).last_second, 0);
        let readings = collector.stop();
        assert!(readings[HostReading::ProcessCpu].value().is_some());
        assert!(readings[HostReading::CollectorCpu].value().is_none());
        assert!(!readings.contains(HostReading::SeriesRows));
    }

    #[test]
    fn an_empty_proc_makes_reasons_not_errors() {
        let dir = tempfile::tempdir().unwrap();
        let watch = EngineUnderLoad {
            data_dir: &dir.path().join("gone"),
            server_pids: vec![7],
            is_embedded: false,
        };
        let readings = Collector::start(
            Proc::at(dir.path()),
            watch,
            Looks::Series(dir.path().join("no/host.tsv")),
        )
        .stop();
        // Nor does a quick look.
        let watch = EngineUnderLoad {
            data_dir: dir.path(),
            server_pids: vec![7],
            is_embedded: false,
        };
        let quick = Collector::prepare(Proc::at(dir.path()), watch)
            .begin_at(Instant::now(), Looks::EachSecond, || Some(()))
            .unwrap()
            .1;
        let quick = quick.stop_over(Some(Duration::from_secs(9)));
        assert!(
            quick[HostReading::ServerCpu].value().is_none()
                && quick[HostReading::ClientCpu].value().is_some()
        );
        for name in [
            HostReading::Cpus,
            HostReading::CpuUser,
            HostReading::CpuTotal,
            HostReading::ContextSwitches,
            HostReading::DiskReads,
            HostReading::DiskWriteBytes,
            HostReading::PsiCpuSome,
            HostReading::PsiIoSome,
            HostReading::PsiMemorySome,
            HostReading::ServerCpu,
            HostReading::ProcessCpu,
            HostReading::RssMax,
            HostReading::DataDir,
            HostReading::SeriesRows,
        ]
        .into_iter()
        .chain(HostReading::OF_SERVER_PROCESSES)
        {
            assert!(
                matches!(&readings[name], Reading::Unavailable(reason) if !reason.is_empty()),
                "{name:?}: {:?}",
                readings[name]
            );
        }
        assert!(
            readings[HostReading::ClientCpu].value().is_some()
                && readings[HostReading::Seconds].value().is_some()
        );
    }

    /// A machine whose counters all stand at `count`.
    fn write_proc(root: &Path, data_dir: &Path, count: u64) {
        let device = data_dir.metadata().unwrap().dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        std::fs::create_dir_all(root.join("pressure")).unwrap();
        std::fs::create_dir_all(root.join("50/task/50")).unwrap();
        for (name, text) in [
            (
                "stat",
                format!(
                    "cpu {count} 0 {count} {count} 0 0 0 {count} 0 0\ncpu0 0\ncpu1 0\nctxt {}\n",
                    7 * count
                ),
            ),
            (
                "diskstats",
                format!(
                    "{major} {minor} disk {count} 0 {} 0 {count} 0 {} 0\n",
                    2 * count,
                    4 * count
                ),
            ),
            (
                "pressure/cpu",
                format!(
                    "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\n",
                    1000 * count
                ),
            ),
            (
                "50/stat",
                format!(
                    "50 (db) S 1 1 1 0 -1 0 0 0 0 0 {count} {count} {count} 0 20 0 1 0 5 0 0\n"
                ),
            ),
            (
                "50/task/50/status",
                format!(
                    "voluntary_ctxt_switches:\t{}\nnonvoluntary_ctxt_switches:\t{count}\n",
                    3 * count
                ),
            ),
            (
                "50/io",
                format!(
                    "syscr: {count}\nsyscw: {}\nread_bytes: {}\nwrite_bytes: {}\n",
                    2 * count,
                    512 * count,
                    4096 * count
                ),
            ),
            (
                "50/status",
                format!(
                    "RssAnon: {} kB\nRssFile: 300 kB\nRssShmem: 700 kB\n",
                    1000 - count
                ),
            ),
        ] {
            std::fs::write(root.join(name), text).unwrap();
        }
    }

    #[test]
    fn start_and_stop_sample_at_once_and_the_maximum_is_over_all() {
        let (dir, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write_proc(dir.path(), data.path(), 100);
        let watch = EngineUnderLoad {
            data_dir: data.path(),
            server_pids: vec![50],
            is_embedded: false,
        };
        let collector = Collector::start(Proc::at(dir.path()), watch, Looks::EachSecond);
        write_proc(dir.path(), data.path(), 130);
        let readings = collector.stop();
        write_proc(dir.path(), data.path(), 500);
        let ticks_s = 30.0 * tick_ns() as f64 / 1e9;
        for (name, expected) in [
            (HostReading::CpuUser, ticks_s),
            (HostReading::CpuTotal, 4.0 * ticks_s),
            (HostReading::ContextSwitches, 210.0),
            (HostReading::DiskReads, 30.0),
            (HostReading::DiskReadBytes, 60.0 * 512.0),
            (HostReading::DiskWriteBytes, 120.0 * 512.0),
            (HostReading::PsiCpuSome, 0.03),
            (HostReading::ServerCpu, 3.0 * ticks_s),
            (HostReading::RssMax, 1900.0 * 1024.0),
            (HostReading::ServerVoluntarySwitches, 90.0),
            (HostReading::ServerInvoluntarySwitches, 30.0),
            (HostReading::ServerReadCalls, 30.0),
            (HostReading::ServerWriteCalls, 60.0),
            (HostReading::ServerReadBytes, 30.0 * 512.0),
            (HostReading::ServerWriteBytes, 30.0 * 4096.0),
        ] {
            let value = readings[name]
                .value()
                .unwrap_or_else(|| panic!("{name:?}: {:?}", readings[name]));
            assert!(
                (value - expected).abs() < 1e-9,
                "{name:?}: {value} instead of {expected}"
            );
        }
        assert!(
            matches!(&readings[HostReading::PsiIoSome], Reading::Unavailable(reason) if reason.contains("/proc/pressure/io"))
        );
    }

    #[test]
    fn the_series_has_a_line_a_second() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("host.tsv");
        let collector = Collector::start(
            Proc::new(),
            embedded(dir.path()),
            Looks::Series(path.clone()),
        );
        // Until the thread has looked once: however late it is, the next look comes.
        let deadline = Instant::now() + Duration::from_secs(30);
        while lock(&collector.watcher).last_second == 0 {
            assert!(Instant::now() < deadline, "no sample after 30 s");
            std::thread::sleep(Duration::from_millis(20));
        }
        let readings = collector.stop();
        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split('\t').collect())
            .collect();
        assert_eq!(
            readings[HostReading::SeriesRows],
            Reading::Ok((lines.len() - 1) as f64)
        );
        assert_eq!(lines[0][..3], ["second", "cpu_busy_pct", "cpu_user_pct"]);
        assert!(
            lines.len() >= 2 && lines.iter().all(|line| line.len() == 12),
            "{text}"
        );
        assert!(
            lines[1][0].parse::<u64>().unwrap() >= 1 && lines[1][5].parse::<u64>().unwrap() > 0,
            "{text}"
        );
    }
}
