//! What is measured alongside a step's operations: the engine's counters, the host, a profile. All
//! of them begin and end with the operations.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plimsoll_core::readings::Readings;
use plimsoll_engine::EngineError;
use plimsoll_host::{Collector, EngineUnderLoad, Looks, PreparedCollector, Proc, tree_pids};
use plimsoll_load::Phase;
use plimsoll_workload::SharedServer;

use crate::perf::Recorder;

/// A server has its counters together in about this long.
const ANSWER: Duration = Duration::from_millis(10);
/// Nobody waits longer for a thread that begins.
const READY: Duration = Duration::from_secs(1);

/// What to measure.
#[derive(Clone)]
pub(super) struct MeasuringOptions {
    pub server: SharedServer,
    pub data_dir: PathBuf,
    pub is_embedded: bool,
    /// When the host is looked at.
    pub looks: Looks,
    /// Where the server's files of the trial are, and the step, when it is profiled.
    pub profile: Option<(PathBuf, String)>,
    /// The step's host readings end with what comes after its operations.
    pub has_wait: bool,
}

/// Measures by a step's phases.
///
/// Without a warm-up everything is read while all are connected and nobody works. With one it is
/// read by a thread of its own at the warm-up's end, under load: the counters just before, so that
/// asking for them is not the step's. At the end the last sample comes before connections are
/// closed, because some servers' processes end with them.
pub(super) struct Measuring {
    what: MeasuringOptions,
    has_warm_up: bool,
    state: State,
}

enum State {
    NotBegun,
    /// Everything was met while nobody worked.
    Prepared(Box<PreparedCollector>),
    /// Under way, until the channel ends.
    Beginning(
        JoinHandle<Result<Option<RunningReaders>, EngineError>>,
        Sender<()>,
    ),
    /// Nothing when the step was over before.
    Begun(Result<Option<RunningReaders>, EngineError>),
}

struct RunningReaders {
    /// The engine's counters at the beginning.
    counters: BTreeMap<String, i64>,
    collector: Collector,
    recorder: Option<Recorder>,
}

/// What was measured.
#[derive(Default)]
pub(super) struct Measured {
    /// The engine's counters at the beginning.
    pub counters: BTreeMap<String, i64>,
    pub host: Readings,
    pub recorder: Option<Recorder>,
}

impl Measuring {
    pub fn new(what: MeasuringOptions, has_warm_up: bool) -> Self {
        Self {
            what,
            has_warm_up,
            state: State::NotBegun,
        }
    }

    /// To be called in every phase.
    pub fn observe(&mut self, phase: Phase) {
        match (phase, &self.state) {
            (Phase::Connected, _) if !self.has_warm_up => {
                self.state = State::Begun(self.what.begin().map(Some))
            }
            (Phase::Connected, _) => {
                self.state =
                    State::Prepared(Box::new(Collector::prepare(Proc::new(), self.what.watch())))
            }
            (Phase::WarmingUp { left }, State::Prepared(_)) => {
                let State::Prepared(collector) =
                    std::mem::replace(&mut self.state, State::NotBegun)
                else {
                    return;
                };
                let (what, begin) = (self.what.clone(), Instant::now() + left);
                let (goes_on, is_over) = channel();
                let (ready, is_ready) = channel();
                let thread = thread::Builder::new()
                    .name("measuring".to_owned())
                    .spawn(move || what.begin_at(*collector, begin, (&ready, &is_over)));
                self.state = match thread {
                    Ok(thread) => {
                        // As long as nobody works it comes to its turn at once.
                        let _ = is_ready.recv_timeout(READY);
                        State::Beginning(thread, goes_on)
                    }
                    Err(error) => State::Begun(Err(EngineError::new(format!(
                        "failed to start a thread that measures: {error}"
                    )))),
                };
            }
            (Phase::Ended, _) => {
                self.join();
                if let State::Begun(Ok(Some(begun))) = &mut self.state {
                    if !self.what.has_wait {
                        begun.collector.look_last();
                    }
                    if let Some(recorder) = &mut begun.recorder {
                        recorder.stop();
                    }
                }
            }
            _ => {}
        }
    }

    fn join(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::NotBegun) {
            State::Beginning(thread, goes_on) => {
                drop(goes_on);
                let panicked = || {
                    Err(EngineError::new(
                        "the thread that measures panicked: see the trial's log",
                    ))
                };
                State::Begun(thread.join().unwrap_or_else(|_| panicked()))
            }
            state => state,
        };
    }

    /// What was measured while the operations took `elapsed`; nothing when they never began.
    pub fn finish(mut self, elapsed: Option<Duration>) -> Result<Option<Measured>, EngineError> {
        self.join();
        let State::Begun(begun) = self.state else {
            return Ok(None);
        };
        let Some(RunningReaders {
            counters,
            collector,
            recorder,
        }) = begun?
        else {
            return Ok(None);
        };
        let window = elapsed.filter(|_| !self.what.has_wait);
        Ok(Some(Measured {
            counters,
            host: collector.stop_over(window),
            recorder,
        }))
    }
}

impl MeasuringOptions {
    fn watch(&self) -> EngineUnderLoad<'_> {
        EngineUnderLoad {
            data_dir: &self.data_dir,
            server_pids: self.server.processes(),
            is_embedded: self.is_embedded,
        }
    }

    fn record(&self) -> Option<Recorder> {
        let (folder, step) = self.profile.as_ref()?;
        let roots = self.server.processes();
        // Connected workers have their processes by now.
        let pids = || tree_pids(&Proc::new(), &roots).unwrap_or_else(|_| roots.clone());
        Some(Recorder::start(folder, step, pids))
    }

    /// While nobody works.
    fn begin(&self) -> Result<RunningReaders, EngineError> {
        let counters = self.server.counters()?;
        let recorder = self.record();
        Ok(RunningReaders {
            counters,
            collector: Collector::start(Proc::new(), self.watch(), self.looks.clone()),
            recorder,
        })
    }

    /// At this instant, under load; nothing when the step is over before. The counters are asked
    /// for a little earlier, and the sample does not wait for their answer.
    fn begin_at(
        &self,
        collector: PreparedCollector,
        begin: Instant,
        (ready, is_over): (&Sender<()>, &Receiver<()>),
    ) -> Result<Option<RunningReaders>, EngineError> {
        let (counters, collector) = thread::scope(|scope| {
            let ask = || {
                let _ = ready.send(());
                let rest = begin
                    .saturating_duration_since(Instant::now())
                    .saturating_sub(ANSWER);
                let goes_on = is_over.recv_timeout(rest) != Err(RecvTimeoutError::Disconnected);
                goes_on.then(|| scope.spawn(|| self.server.counters()))
            };
            let (asked, collector) = collector.begin_at(begin, self.looks.clone(), ask)?;
            Some((asked.join(), collector))
        })
        .unzip();
        let (Some(counters), Some(collector)) = (counters, collector) else {
            return Ok(None);
        };
        let counters = counters.unwrap_or_else(|_| {
            Err(EngineError::new(
                "asking for counters panicked: see the trial's log",
            ))
        })?;
        Ok(Some(RunningReaders {
            counters,
            collector,
            recorder: self.record(),
        }))
    }
}
