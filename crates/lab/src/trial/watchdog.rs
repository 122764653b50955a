//! What a trial cannot notice itself while it waits: that its server no longer answers, and that
//! its disk fills up.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plimsoll_core::units::{GIB, format_bytes};
use plimsoll_engine::SqlSession;
use plimsoll_host::{DiskSpace, disk_space};
use plimsoll_load::{Command, Control, Patience};
use rustix::process::{Signal, getpid, kill_process};

use super::spawn_vital;
use crate::leftovers::end_server;
use crate::message::{HUNG, HUNG_EXIT};

const LOOK: Duration = Duration::from_millis(100);
/// Between two looks at the disk.
const DISK_LOOK: Duration = Duration::from_secs(1);
/// Questions to the server within the limit: `select 1` every ten seconds by default, on a
/// connection of its own.
const QUESTIONS: u32 = 6;
/// Once its server is killed, a trial has this long to end. One that is still stuck is ended too.
const LAST_PATIENCE: Duration = Duration::from_secs(30);
/// The question in flight has this long to come back when the server is about to be stopped.
const ANSWER_PATIENCE: Duration = Duration::from_secs(2);

/// A step is stopped when less than this share of the disk, or less than this many bytes, is free.
const LEAST_SHARE: f64 = 0.05;
const LEAST_BYTES: u64 = 2 * GIB;
/// The same of the store, in which a trial writes some megabytes.
const LEAST_STORE_BYTES: u64 = 16 << 20;

/// Why a trial must end.
enum Verdict {
    /// Its server hangs.
    Hung(String),
    /// Its disk is nearly full.
    DiskFull(String),
}

#[derive(Default)]
struct Shared {
    verdict: OnceLock<Verdict>,
    /// How often the server answered or an operation was done.
    life: AtomicU64,
    is_asking: AtomicBool,
    /// The server is stopped, because it is not its turn: its silence means nothing.
    is_paused: AtomicBool,
    is_over: AtomicBool,
}

/// A thread that looks, and one that asks the server: its question may never come back.
pub(super) struct Watchdog {
    shared: Arc<Shared>,
    trial_dir: PathBuf,
    limit: Duration,
    looking: Option<JoinHandle<()>>,
    asking: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Watches the disk of `data_dir` from now on. `control` is stopped when it is nearly full.
    pub fn start(
        limit: Duration,
        trial_dir: &Path,
        data_dir: &Path,
        control: Arc<Control>,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let look = WatchThread {
            shared: shared.clone(),
            limit,
            trial_dir: trial_dir.to_owned(),
            data_dir: data_dir.to_owned(),
            control,
        };
        let looking = spawn_vital("watchdog", move || look.run())?;
        Ok(Self {
            shared,
            trial_dir: trial_dir.to_owned(),
            limit,
            looking: Some(looking),
            asking: None,
        })
    }

    /// Asks on this connection whether the server lives, and calls it hung when there is no answer
    /// and no operation within the limit.
    pub fn ask(&mut self, mut session: Box<dyn SqlSession>) -> std::io::Result<()> {
        self.note_life();
        self.shared.is_asking.store(true, Ordering::SeqCst);
        let (shared, pause) = (self.shared.clone(), self.limit / QUESTIONS);
        let ask = move || {
            while shared.is_asking.load(Ordering::SeqCst) {
                // An error is not an answer: a server that takes no connection any more does not
                // live.
                if !shared.is_paused() && session.query_integer("select 1").is_ok() {
                    shared.note_life();
                }
                let next = Instant::now() + pause;
                while shared.is_asking.load(Ordering::SeqCst) && Instant::now() < next {
                    thread::sleep(LOOK.min(pause));
                }
            }
        };
        self.asking = Some(spawn_vital("question", ask)?);
        Ok(())
    }

    /// Asks no more, and closes the connection: the server is about to be stopped.
    pub fn stop_asking(&mut self) {
        self.shared.is_asking.store(false, Ordering::SeqCst);
        let deadline = Instant::now() + ANSWER_PATIENCE;
        if let Some(asking) = self.asking.take() {
            while !asking.is_finished() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// An operation was done: the server lives.
    pub fn note_life(&self) {
        self.shared.note_life();
    }

    /// Sleeps while the server is stopped between its turns. To be called before it is.
    pub fn pause(&self) {
        self.shared.is_paused.store(true, Ordering::SeqCst);
    }

    /// Watches again: the server goes on.
    pub fn go_on(&self) {
        self.note_life();
        self.shared.is_paused.store(false, Ordering::SeqCst);
    }

    /// Ends the server of a trial whose worker waits for it in vain, though it may answer others:
    /// the worker comes back once it is dead.
    pub fn end_hung_server(&self, reason: &str) {
        let _ = self.shared.verdict.set(Verdict::Hung(reason.to_owned()));
        end_server(&self.trial_dir);
    }

    /// Why the trial must end, if it must.
    pub fn verdict(&self) -> Option<&str> {
        self.shared.verdict.get().map(|verdict| match verdict {
            Verdict::Hung(reason) | Verdict::DiskFull(reason) => reason.as_str(),
        })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.stop_asking();
        self.shared.is_over.store(true, Ordering::SeqCst);
        if let Some(looking) = self.looking.take() {
            let _ = looking.join();
        }
    }
}

impl Shared {
    fn note_life(&self) {
        self.life.fetch_add(1, Ordering::Relaxed);
    }

    fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::SeqCst)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}

/// A disk that may fill up.
struct Disk<'a> {
    dir: &'a Path,
    /// The step is stopped when less than this is free.
    least_bytes: u64,
    remedy: &'static str,
}

impl<'a> Disk<'a> {
    /// A filesystem that does not report its space is not watched.
    fn new(dir: &'a Path, least_bytes: fn(DiskSpace) -> u64, remedy: &'static str) -> Self {
        Self {
            dir,
            least_bytes: disk_space(dir).map_or(0, least_bytes),
            remedy,
        }
    }

    /// Why the step has to end.
    fn trouble(&self) -> Option<String> {
        let DiskSpace { free_bytes, .. } = disk_space(self.dir).ok()?;
        (free_bytes < self.least_bytes).then(|| {
            format!(
                "the disk of {} is nearly full: {} are free, and the step ends below {}; {}",
                self.dir.display(),
                format_bytes(free_bytes),
                format_bytes(self.least_bytes),
                self.remedy
            )
        })
    }
}

/// The thread that looks.
struct WatchThread {
    shared: Arc<Shared>,
    limit: Duration,
    trial_dir: PathBuf,
    data_dir: PathBuf,
    control: Arc<Control>,
}

impl WatchThread {
    fn run(self) {
        let disks = [
            Disk::new(
                &self.data_dir,
                least_free_bytes,
                "free space there, choose another disk with --data DIR or lower rows",
            ),
            Disk::new(
                &self.trial_dir,
                |at_start| LEAST_STORE_BYTES.min(at_start.free_bytes / 2),
                "free space there, then `plimsoll resume` runs the trial again",
            ),
        ];
        let mut next_disk_look = Instant::now();
        // Counted in looks: a freeze of the machine is not silence of the server.
        let mut patience = Patience::new(self.limit);
        let mut life = 0;
        while !self.shared.is_over() {
            if Instant::now() >= next_disk_look {
                next_disk_look = Instant::now() + DISK_LOOK;
                self.look_at(&disks);
            }
            let is_waiting =
                self.shared.is_asking.load(Ordering::SeqCst) && !self.shared.is_paused();
            let is_alive =
                std::mem::replace(&mut life, self.shared.life.load(Ordering::Relaxed)) != life;
            if !is_waiting || is_alive {
                patience.renew();
            } else if patience.is_over() {
                return self.end_hung_trial();
            }
            thread::sleep(LOOK);
        }
    }

    fn look_at(&self, disks: &[Disk<'_>]) {
        if self.shared.verdict.get().is_some() {
            return;
        }
        if let Some(reason) = disks.iter().find_map(Disk::trouble) {
            let _ = self.shared.verdict.set(Verdict::DiskFull(reason));
            self.control.give(Command::Stop);
        }
    }

    /// The trial's other threads may all wait for the server: they come back once it is dead.
    fn end_hung_trial(&self) {
        let reason = format!(
            "hung: the server has not answered for {} s, and no operation was done",
            self.limit.as_secs()
        );
        let _ = self.shared.verdict.set(Verdict::Hung(reason.clone()));
        end_server(&self.trial_dir);
        // Nobody is to wait for the server to come back.
        self.control.give(Command::Stop);
        let mut patience = Patience::new(LAST_PATIENCE);
        while !self.shared.is_over() {
            if patience.is_over() {
                eprintln!("{reason}");
                std::process::exit(HUNG_EXIT);
            }
            thread::sleep(LOOK);
        }
    }
}

/// Below this a step is stopped. On a disk that had less than twice as much at the start, half of
/// what was free then: a small or rather full disk is good enough for a small plan.
fn least_free_bytes(at_start: DiskSpace) -> u64 {
    LEAST_BYTES
        .max((at_start.total_bytes as f64 * LEAST_SHARE) as u64)
        .min(at_start.free_bytes / 2)
}

/// Ends this process if something takes too long: nobody else can end what a library inside of it
/// waits for, or a single connection that is silent.
#[derive(Default)]
pub(super) struct Deadline {
    is_over: Arc<AtomicBool>,
}

impl Deadline {
    /// Allows this long from now on, unless this is dropped before. `what` has not happened by then.
    pub fn limit(&self, limit: Duration, what: &'static str) {
        self.limit_by(limit, move || {
            eprintln!("{HUNG}: {what} for {} s", limit.as_secs());
            // Not by an exit, which would wait for the library again.
            let _ = kill_process(getpid(), Signal::KILL);
        });
    }

    fn limit_by(&self, limit: Duration, end: impl FnOnce() + Send + 'static) {
        let is_over = self.is_over.clone();
        let look = move || {
            let mut patience = Patience::new(limit);
            while !is_over.load(Ordering::SeqCst) {
                if patience.is_over() {
                    return end();
                }
                thread::sleep(LOOK);
            }
        };
        // Without the thread it may hang, as everything may that has no limit.
        let _ = thread::Builder::new().name("deadline".into()).spawn(look);
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn an_engine_that_does_not_close_is_ended_and_one_that_does_is_not() {
        let (sender, ended) = channel();
        let deadline = Deadline::default();
        deadline.limit_by(Duration::from_millis(50), move || sender.send(()).unwrap());
        ended.recv_timeout(Duration::from_secs(60)).unwrap();

        let (sender, ended) = channel();
        let deadline = Deadline::default();
        deadline.limit_by(Duration::from_secs(600), move || sender.send(()).unwrap());
        drop(deadline);
        // The thread ends, and its end of the channel with it.
        ended.recv_timeout(Duration::from_secs(60)).unwrap_err();
    }

    #[test]
    fn a_server_that_hangs_in_a_turn_is_the_reason_and_no_crash() {
        let dir = tempfile::tempdir().unwrap();
        let watchdog = Watchdog::start(
            Duration::from_secs(60),
            dir.path(),
            dir.path(),
            Arc::new(Control::default()),
        )
        .unwrap();
        assert_eq!(watchdog.verdict(), None);
        watchdog.end_hung_server("hung: a worker is still in an operation 60 s after its turn");
        assert_eq!(
            watchdog.verdict(),
            Some("hung: a worker is still in an operation 60 s after its turn")
        );
    }

    #[test]
    fn the_bound_suits_the_disk() {
        for (total_gib, free_gib, least_bytes) in [
            (1000, 900, 50 * GIB),
            (20, 15, 2 * GIB),
            (1000, 60, 30 * GIB),
            (1, 1, GIB / 2),
            (100, 0, 0),
        ] {
            let space = DiskSpace {
                free_bytes: free_gib * GIB,
                total_bytes: total_gib * GIB,
            };
            assert_eq!(least_free_bytes(space), least_bytes, "{space:?}");
        }
    }
}
