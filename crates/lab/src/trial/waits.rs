//! Looks at what the server's sessions wait for while the workers work.
//!
//! A thread looks at random moments, so that turns and whatever else comes at even intervals are
//! neither met nor missed. A moment at which nobody works passes without a look: it is dropped, not
//! late.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plimsoll_engine::{EngineError, WaitSampler};
use plimsoll_load::Phase;
use plimsoll_stats::Stream;
use plimsoll_store::series::WaitProfile;
use plimsoll_workload::SharedServer;

/// A look that is under way when a turn ends has this long to come back.
const LOOK_LIMIT: Duration = Duration::from_millis(100);
/// The same at the end of the step, when the server has nothing else to do.
const END_LIMIT: Duration = Duration::from_secs(2);

/// The looks at one step.
pub(super) struct WaitSampling {
    shared: Arc<Shared>,
    has_warm_up: bool,
    /// The thread that looks; or why there is none.
    looking: Result<JoinHandle<()>, String>,
    source: &'static str,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Looks count from then on, while workers work.
    from: Option<Instant>,
    /// How often that was over. A look that began before does not count.
    pauses: u64,
    is_looking: bool,
    is_over: bool,
    active: Duration,
    looks: u64,
    sessions: BTreeMap<String, u64>,
    /// Why there are no more looks.
    problem: Option<String>,
}

impl WaitSampling {
    /// Opens a connection and looks `hz` times a second on average, as soon as workers work.
    pub fn start(server: &SharedServer, hz: u32, has_warm_up: bool) -> Self {
        let shared = Arc::new(Shared::default());
        let started = sampler(server).and_then(|sampler| {
            let (source, shared) = (sampler.source(), shared.clone());
            let interval = Duration::from_secs(1) / hz;
            let looking = thread::Builder::new()
                .name("waits".to_owned())
                .spawn(move || shared.look(sampler, interval));
            Ok((source, looking.map_err(|error| error.to_string())?))
        });
        let (source, looking) = match started {
            Ok((source, looking)) => (source, Ok(looking)),
            Err(reason) => ("", Err(reason)),
        };
        Self {
            shared,
            has_warm_up,
            looking,
            source,
        }
    }

    /// Follows a step that is not in turns.
    pub fn observe(&self, phase: Phase) {
        match phase {
            Phase::Connected if !self.has_warm_up => self.begin_at(Instant::now()),
            Phase::WarmingUp { left } => self.begin_at(Instant::now() + left),
            Phase::Ended => self.pause(),
            _ => {}
        }
    }

    /// Looks count from this instant on. The first of several calls is meant.
    pub fn begin_at(&self, at: Instant) {
        self.shared.lock().from.get_or_insert(at);
    }

    /// The workers are idle, and the server may be stopped after this.
    pub fn pause(&self) {
        let mut state = self.shared.lock();
        if let Some(from) = state.from.take() {
            state.active += from.elapsed();
            state.pauses += 1;
        }
        let is_looking = |state: &mut State| state.is_looking;
        drop(
            self.shared
                .changed
                .wait_timeout_while(state, LOOK_LIMIT, is_looking),
        );
    }

    /// Closes the connection. What was seen; operations are for others to count.
    pub fn end(mut self) -> WaitProfile {
        self.pause();
        self.shared.end();
        let looking = match std::mem::replace(&mut self.looking, Err(String::new())) {
            Ok(looking) => looking,
            Err(reason) => return WaitProfile::unavailable(reason),
        };
        let deadline = Instant::now() + END_LIMIT;
        while !looking.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        let mut state = self.shared.lock();
        if let Some(problem) = state.problem.take() {
            return WaitProfile::unavailable(problem);
        }
        WaitProfile {
            source: Ok(self.source.to_owned()),
            looks: state.looks,
            active_ns: state.active.as_nanos() as u64,
            operations: 0,
            sessions: std::mem::take(&mut state.sessions),
        }
    }
}

impl Drop for WaitSampling {
    fn drop(&mut self) {
        self.shared.end();
    }
}

/// Looks on a connection of its own; or why nobody can.
fn sampler(server: &SharedServer) -> Result<Box<dyn WaitSampler>, String> {
    let words = |error: EngineError| error.to_string();
    let sql = server.sql().map_err(words)?;
    let session = sql.connect().map_err(words)?;
    let sampler = sql.forms().wait_sampler(session);
    let sampler = sampler.map_err(|error| error.to_string())?;
    sampler.ok_or_else(|| {
        let engine = sql.forms().engine().facts().title;
        format!("{engine} does not report what its sessions wait for")
    })
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    /// The body of the thread.
    fn look(&self, mut sampler: Box<dyn WaitSampler>, interval: Duration) {
        let mut random = Stream::new(u64::from(std::process::id()));
        let mut seen = Vec::new();
        loop {
            // From a half to one and a half intervals.
            let pause = interval.mul_f64(0.5 + random.unit());
            let Some(pauses) = self.wait_for_turn(pause) else {
                return;
            };
            let Some(pauses) = pauses else {
                continue;
            };
            seen.clear();
            let looked = sampler.sample(&mut |event| seen.push(event.to_owned()));
            let mut state = self.lock();
            state.is_looking = false;
            self.changed.notify_all();
            if let Err(error) = looked {
                state.problem = Some(error.to_string());
                return;
            }
            if state.pauses == pauses {
                state.looks += 1;
                for event in seen.drain(..) {
                    *state.sessions.entry(event).or_default() += 1;
                }
            }
        }
    }

    /// Waits for this pause. Nothing if the step is over; within, how often there was a pause, if
    /// workers work now.
    fn wait_for_turn(&self, pause: Duration) -> Option<Option<u64>> {
        let due = Instant::now() + pause;
        let mut state = self.lock();
        while !state.is_over {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let is_due = state.from.is_some_and(|from| from <= Instant::now());
                state.is_looking = is_due;
                return Some(is_due.then_some(state.pauses));
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_engine::SqlError;

    use super::*;

    /// Sees one session each time.
    struct Seeing;

    impl WaitSampler for Seeing {
        fn source(&self) -> &'static str {
            "a test"
        }

        fn sample(&mut self, seen: &mut dyn FnMut(&str)) -> Result<(), SqlError> {
            seen("lock");
            Ok(())
        }
    }

    fn sampling() -> WaitSampling {
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        let look = move || of_thread.look(Box::new(Seeing), Duration::from_millis(1));
        WaitSampling {
            shared,
            has_warm_up: false,
            looking: Ok(thread::spawn(look)),
            source: "a test",
        }
    }

    fn wait_until(is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_so() {
            assert!(Instant::now() < deadline, "waited in vain");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn looks_count_while_workers_work_and_at_no_other_time() {
        let sampling = sampling();
        let looks = || sampling.shared.lock().looks;
        // Moments pass, and nobody works.
        thread::sleep(Duration::from_millis(20));
        assert_eq!(looks(), 0);
        sampling.begin_at(Instant::now());
        wait_until(|| looks() >= 3);
        sampling.pause();
        let before = looks();
        thread::sleep(Duration::from_millis(20));
        assert_eq!(looks(), before, "the server is stopped");
        sampling.begin_at(Instant::now() + Duration::from_secs(3600));
        thread::sleep(Duration::from_millis(20));
        assert_eq!(looks(), before, "it begins later");
        let profile = sampling.end();
        assert_eq!(profile.source, Ok("a test".to_owned()));
        assert_eq!(profile.sessions, [("lock".to_owned(), before)].into());
        assert!(profile.active_ns > 0 && profile.active_ns < 60_000_000_000);
    }
}
