//! Models of how workers, turns and the watching thread meet.
//!
//! A scheduler chooses at each lock, wait and shared number who goes on, and tries thousands of such
//! orders. No wait times out in a model: what needs its timeout to go on is found as a deadlock. A
//! failure prints the order that repeats it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64 as Count, Ordering};
use std::time::Duration;

use plimsoll_core::clock::Clock;
use shuttle::thread;

use crate::arrival::Arrival;
use crate::control::{Command, Control};
use crate::drive::drive;
use crate::intervals::{HandOver, Intervals, ServiceAndResponse};
use crate::loop_state::{Assignment, Ending, LoopState, Shared};
use crate::recorder::{LiveCounts, Recorder, Second};
use crate::retry::RetryPolicy;
use crate::sync::AtomicU64;
use crate::turns::{PrimaryWorker, TurnClock, TurnProgress};
use crate::worker::{Next, Outcome, Stop, Worker};

/// Orders that are tried at random, and as many that put off one thread for long at three places.
const ORDERS: usize = 2_000;
const WORKERS: usize = 2;
/// No model waits this long.
const NEVER: Duration = Duration::from_secs(86_400);
/// A worker that ends by time, and not by this one.
const NO_END: Stop = Stop::Time(1 << 60);

fn in_many_orders(model: fn()) {
    shuttle::check_random(model, ORDERS);
    shuttle::check_pct(model, ORDERS, 3);
}

/// A machine's clock that goes on by a microsecond with each look.
#[derive(Debug)]
struct Ticks(AtomicU64);

impl Clock for Ticks {
    fn now_ns(&self) -> u64 {
        self.0.fetch_add(1_000, Ordering::SeqCst)
    }

    fn sleep_until_ns(&self, deadline_ns: u64) {
        while self.now_ns() < deadline_ns {
            thread::yield_now();
        }
    }
}

/// A step of two workers in closed loops, as `run_step` puts it together, without its threads.
struct Step {
    control: Arc<Control>,
    clock: TurnClock<Ticks>,
    intervals: Arc<Intervals>,
    live: Arc<[LiveCounts]>,
    progress: TurnProgress,
    finished_ns: Count,
    /// What each worker knows to have done.
    done: [Count; WORKERS],
}

/// An operation is counted by the worker itself before the loop hears of it. After `most` of them
/// the worker says that there are no more: it may do so while the others park.
struct Counting<'a> {
    done: &'a Count,
    most: u64,
}

impl Worker for Counting<'_> {
    fn open(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn prepare(&mut self) -> Result<Next, String> {
        Ok(match self.done.load(Ordering::SeqCst) < self.most {
            true => Next::Operation(0),
            false => Next::Finished,
        })
    }

    fn execute(&mut self) -> Outcome {
        thread::yield_now();
        self.done.fetch_add(1, Ordering::SeqCst);
        Outcome::Done { rows: 1 }
    }
}

impl Step {
    fn new() -> Arc<Self> {
        let control = Arc::new(Control::default());
        let intervals = Arc::new(Intervals::new(1, WORKERS));
        let live: Arc<[LiveCounts]> = (0..WORKERS).map(|_| LiveCounts::default()).collect();
        let progress = TurnProgress::default();
        let primary = |index| PrimaryWorker {
            index,
            client: index as u32 + 1,
            is_open: false,
        };
        control.expect(WORKERS);
        progress.add_workers(
            live.clone(),
            intervals.clone(),
            (0..WORKERS).map(primary).collect(),
        );
        Arc::new(Self {
            clock: TurnClock::of(Ticks(AtomicU64::new(1_000)), control.clone()),
            control,
            intervals,
            live,
            progress,
            finished_ns: Count::new(u64::MAX),
            done: [const { Count::new(0) }; WORKERS],
        })
    }

    /// A worker's thread until the loop ends.
    fn work(&self, index: usize, most: u64) -> Ending {
        let _presence = self.control.presence();
        let leaders = [AtomicU32::new(1)];
        let shared = Shared {
            control: &self.control,
            retry: RetryPolicy::default(),
            may_fail: false,
            is_aborted: &AtomicBool::new(false),
            finished_ns: &self.finished_ns,
            leaders: &leaders,
        };
        let assignment = Assignment {
            client: 1,
            arrival: Arrival::Closed,
            stop: NO_END,
            begin_ns: 0,
            start_ns: 0,
        };
        let (intervals, live) = (self.intervals.clone(), self.live.clone());
        let recorder = Recorder::new(index, &[0], false, intervals, live);
        let mut state = LoopState::new(assignment, recorder, &shared);
        let done = &self.done[index];
        drive(&self.clock, &mut Counting { done, most }, &mut state);
        let parts = state.into_parts();
        assert_eq!(
            parts.kinds[0].ok,
            done.load(Ordering::SeqCst),
            "the recorder has what the worker did"
        );
        parts.result.expect("no operation fails")
    }

    fn start(self: &Arc<Self>, most: u64) -> Vec<thread::JoinHandle<Ending>> {
        let spawn = |index| {
            let step = self.clone();
            thread::spawn(move || step.work(index, most))
        };
        (0..WORKERS).map(spawn).collect()
    }

    fn done(&self) -> Vec<u64> {
        let counts = self.done.iter();
        counts.map(|count| count.load(Ordering::SeqCst)).collect()
    }

    fn park(&self) {
        self.control.give(Command::Park);
        assert!(self.control.wait_until_parked(NEVER), "nobody ran out");
    }
}

/// Others get to run, or do not.
fn let_others_go_on() {
    (0..6).for_each(|_| thread::yield_now());
}

fn ends(workers: Vec<thread::JoinHandle<Ending>>) -> Vec<Ending> {
    let join = |worker: thread::JoinHandle<Ending>| worker.join().expect("no worker panics");
    workers.into_iter().map(join).collect()
}

/// One turn, from parked to parked, with what must be true of it.
fn turn(step: &Step) {
    let before = step.done();
    let from_ns = step.clock.now_ns();
    step.progress.begin_turn(from_ns);
    step.clock.resume();
    step.control.give(Command::Run);
    let_others_go_on();
    for worker in step.progress.of_workers() {
        assert!(
            worker.ok == 0 || worker.last_done_ns > 0,
            "whoever sees an operation counted sees when it was done"
        );
    }
    step.park();
    step.clock.pause();
    let after = step.done();
    let stands_ns = step.clock.now_ns();
    let_others_go_on();
    assert_eq!(step.done(), after, "nobody works between two turns");
    assert_eq!(step.clock.now_ns(), stands_ns, "and no time passes");
    for (index, worker) in step.progress.of_workers().iter().enumerate() {
        assert_eq!(worker.ok, after[index], "all that was done is counted");
        if after[index] > before[index] {
            assert_eq!(
                worker.turn_start.ok,
                before[index] + 1,
                "the turn counts behind its first operation"
            );
            let start_ns = worker.turn_start.done_ns;
            assert!((from_ns..=worker.last_done_ns).contains(&start_ns));
        }
    }
}

/// Whoever sees two turns sees all that was done in them, and nothing is done between them.
pub fn a_turn_holds_what_was_done_in_it_and_nothing_else() {
    in_many_orders(|| {
        let step = Step::new();
        step.control.give(Command::Park);
        let workers = step.start(u64::MAX);
        step.park();
        step.clock.pause();
        turn(&step);
        turn(&step);
        step.clock.resume();
        step.control.give(Command::Finish);
        assert_eq!(ends(workers), [Ending::ByRule; WORKERS]);
        let finished_ns = step.finished_ns.load(Ordering::SeqCst);
        assert!(finished_ns < u64::MAX, "it is known when they finished");
    });
}

/// A stop stands, whatever another thread says at the same time.
pub fn a_stop_is_final_whoever_says_what_at_the_same_time() {
    in_many_orders(|| {
        let step = Step::new();
        let workers = step.start(u64::MAX);
        let other = step.clone();
        let director = thread::spawn(move || {
            other.control.give(Command::Park);
            other.control.give(Command::Run);
            other.control.give(Command::Park);
        });
        step.control.give(Command::Stop);
        director.join().expect("it does not panic");
        assert_eq!(step.control.command(), Command::Stop);
        assert_eq!(ends(workers), [Ending::Interrupted; WORKERS]);
    });
}

/// Whoever ended by the rule of the step is not waited for when the others park.
pub fn workers_that_end_by_their_rule_are_not_waited_for() {
    in_many_orders(|| {
        let step = Step::new();
        let workers = step.start(2);
        // The first is about to end, and may do so before it hears that it is to park.
        while step.done()[0] < 2 {
            thread::yield_now();
        }
        step.park();
        let after = step.done();
        let_others_go_on();
        assert_eq!(step.done(), after, "all are parked, or have ended");
        step.control.give(Command::Run);
        assert_eq!(ends(workers), [Ending::ByRule; WORKERS]);
        assert_eq!(step.done(), [2; WORKERS]);
        step.park();
        assert_eq!(step.control.parked(), 0);
    });
}

/// A wait for parked workers ends with a stop.
pub fn a_director_that_waits_for_the_parked_hears_a_stop() {
    in_many_orders(|| {
        let step = Step::new();
        // The second of the workers that are expected never comes.
        let (here, other) = (step.clone(), step.clone());
        let worker = thread::spawn(move || here.work(0, u64::MAX));
        step.control.give(Command::Park);
        let stopper = thread::spawn(move || other.control.give(Command::Stop));
        assert!(!step.control.wait_until_parked(NEVER));
        stopper.join().expect("it does not panic");
        assert_eq!(
            worker.join().expect("it does not panic"),
            Ending::Interrupted
        );
    });
}

/// A worker's part of an interval: one value, and its second.
fn hand_over(intervals: &Intervals, worker: usize, interval: u64, next: u64) {
    let mut times = ServiceAndResponse::new(false);
    times.service.saturating_record(interval + 1);
    let one = Second {
        ok: 1,
        ..Second::default()
    };
    let mut seconds = vec![one];
    let of_kind = HandOver {
        kind: 0,
        times: &mut times,
        first_second: interval,
        seconds: seconds.drain(..),
    };
    intervals.add(worker, interval, next, [of_kind].into_iter());
}

/// Each interval is written once, with the parts of all workers, and no second is lost.
pub fn intervals_lose_nothing_and_come_in_the_order_of_time() {
    const INTERVALS: u64 = 2;
    in_many_orders(|| {
        let intervals = Arc::new(Intervals::new(1, WORKERS));
        let hand_all_over = |worker| {
            let intervals = intervals.clone();
            thread::spawn(move || {
                for interval in 0..INTERVALS {
                    let is_last = interval + 1 == INTERVALS;
                    let next = if is_last { u64::MAX } else { interval + 1 };
                    hand_over(&intervals, worker, interval, next);
                }
            })
        };
        let workers: Vec<_> = (0..WORKERS).map(hand_all_over).collect();
        let (mut written, mut seconds) = (Vec::new(), Vec::new());
        let mut take = || {
            while let Some((interval, pairs)) = intervals.next_complete().interval {
                written.push((interval, pairs[&0].service.len()));
            }
            seconds.extend(intervals.take_seconds());
        };
        for _ in 0..3 {
            take();
            thread::yield_now();
        }
        for worker in workers {
            worker.join().expect("it does not panic");
        }
        take();
        let whole: Vec<(u64, u64)> = (0..INTERVALS).map(|at| (at, WORKERS as u64)).collect();
        assert_eq!(written, whole, "each interval once, with the parts of all");
        for worker in 0..WORKERS {
            let of_worker = seconds.iter().filter(|second| second.worker == worker);
            let of_worker: Vec<u64> = of_worker.map(|second| second.second).collect();
            assert_eq!(of_worker, (0..INTERVALS).collect::<Vec<_>>());
        }
    });
}
