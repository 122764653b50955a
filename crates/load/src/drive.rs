//! The one load loop.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use plimsoll_core::clock::Clock;

use crate::control::{Command, Control};
use crate::recorder::Recorder;
use crate::worker::{Failure, Next, Outcome, Stop, Task};

/// How long a sleeping worker may not look at its commands.
const LONGEST_SLEEP_NS: u64 = 50_000_000;
/// The pause before a worker that must wait for another asks again.
const LATER_NS: u64 = 20_000;

/// The class of operations that had no connection.
const LOST: &str = "lost";

/// What to do when an operation meets a lock or loses its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The first pause; each further one is twice as long.
    pub first_pause_ns: u64,
    /// The longest pause.
    pub longest_pause_ns: u64,
    /// An operation that has been tried for this long has failed.
    pub deadline_ns: u64,
    /// The longest pause between two tries to get a new connection.
    pub longest_reconnect_pause_ns: u64,
    /// A worker that has been without a connection for this long has failed.
    pub reconnect_deadline_ns: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            first_pause_ns: 50_000,
            longest_pause_ns: 1_000_000,
            deadline_ns: 60_000_000_000,
            longest_reconnect_pause_ns: 250_000_000,
            reconnect_deadline_ns: 30_000_000_000,
        }
    }
}

/// The time for which a worker has had no connection.
struct Outage {
    since_ns: Option<u64>,
    pause_ns: u64,
}

impl Outage {
    fn none(policy: &RetryPolicy) -> Self {
        Self { since_ns: None, pause_ns: policy.first_pause_ns }
    }

    /// The instant of the next try after one that ended at `now_ns`; a failure when there have been enough.
    fn next_try_ns(&mut self, now_ns: u64, message: &str, policy: &RetryPolicy) -> Result<u64, Failure> {
        if now_ns - *self.since_ns.get_or_insert(now_ns) >= policy.reconnect_deadline_ns {
            let seconds = policy.reconnect_deadline_ns / 1_000_000_000;
            return Err(Failure {
                class: LOST,
                message: format!("the connection was lost and did not come back in {seconds} s: {message}"),
            });
        }
        let pause_ns = self.pause_ns;
        self.pause_ns = (pause_ns * 2).min(policy.longest_reconnect_pause_ns);
        Ok(now_ns + pause_ns)
    }
}

/// What all workers of a step share.
#[derive(Debug)]
pub(crate) struct Shared<'a> {
    pub control: &'a Control,
    pub retry: RetryPolicy,
    /// An operation that fails is counted, and the worker goes on.
    pub may_fail: bool,
    /// Set when a worker failed: the step is lost, the others end.
    pub is_aborted: &'a AtomicBool,
    /// Workers by client, from 0, whose end ends the client's followers.
    pub leaders: &'a [AtomicU32],
}

impl Shared<'_> {
    #[inline]
    fn must_stop(&self) -> bool {
        self.control.command() == Command::Stop || self.is_aborted.load(Ordering::Relaxed)
    }

    /// Holds still while workers are parked.
    #[inline]
    fn park(&self, recorder: &mut Recorder) {
        if self.control.command() == Command::Park {
            self.control.wait_while_parked();
            recorder.begin_turn();
        }
    }

    /// Whether a worker that ends by time is over before its time.
    #[inline]
    fn is_over(&self, stop: Stop) -> bool {
        matches!(stop, Stop::Time(_)) && self.control.command() == Command::Finish
    }
}

/// Runs a task from `begin_ns` until its stop rule, a command or a failure ends it. What it does before `start_ns` is its warm-up.
///
/// A function of its own in the binary: what is counted inside it is what an operation costs.
#[inline(never)]
pub(crate) fn drive<C: Clock>(
    clock: &C,
    task: &mut Task,
    (begin_ns, start_ns): (u64, u64),
    recorder: &mut Recorder,
    shared: &Shared<'_>,
) -> Result<(), Failure> {
    let mut is_warming = begin_ns < start_ns;
    let result = perform(clock, task, (begin_ns, start_ns), &mut is_warming, recorder, shared);
    if is_warming {
        // All it did was warm-up, and nothing of that counts.
        task.worker.begin_measuring();
    }
    result
}

fn perform<C: Clock>(
    clock: &C,
    task: &mut Task,
    (begin_ns, start_ns): (u64, u64),
    is_warming: &mut bool,
    recorder: &mut Recorder,
    shared: &Shared<'_>,
) -> Result<(), Failure> {
    let client = task.client as usize - 1;
    let end_ns = match task.stop {
        Stop::Time(length_ns) => start_ns + length_ns,
        _ => u64::MAX,
    };
    let is_open = task.arrival.is_open();
    let (mut schedule, mut schedule_start_ns) = (task.arrival.due(), begin_ns);
    let mut operations = 0;
    let mut done_ns = begin_ns;
    sleep(clock, begin_ns, shared, recorder);
    loop {
        shared.park(recorder);
        if shared.must_stop() || done_ns >= end_ns || shared.is_over(task.stop) {
            return Ok(());
        }
        match task.stop {
            Stop::Operations(most) if operations >= most => {
                // The schedule of an open loop ends an interval after its last operation.
                sleep(clock, schedule_start_ns + task.arrival.length_ns(most), shared, recorder);
                return Ok(());
            }
            Stop::WithClient if shared.leaders[client].load(Ordering::Acquire) == 0 => return Ok(()),
            _ => {}
        }
        let mut outage = Outage::none(&shared.retry);
        let kind = loop {
            match task.worker.prepare().map_err(|message| Failure { class: "prepare", message })? {
                Next::Operation(kind) => break kind,
                Next::Finished => return Ok(()),
                Next::Later => {
                    if shared.must_stop() || clock.now_ns() >= end_ns || shared.is_over(task.stop) {
                        return Ok(());
                    }
                    shared.park(recorder);
                    clock.sleep_until_ns(clock.now_ns() + LATER_NS);
                }
                Next::Lost { message } => {
                    let next_ns = outage.next_try_ns(clock.now_ns(), &message, &shared.retry)?;
                    if !sleep(clock, next_ns, shared, recorder) {
                        return Ok(());
                    }
                }
            }
        };
        let mut due_ns = schedule.next_ns().map(|offset_ns| schedule_start_ns + offset_ns);
        if *is_warming && due_ns.is_some_and(|due_ns| due_ns.max(clock.now_ns()) >= start_ns) {
            // The schedule begins anew: what the warm-up still owes is forgiven.
            (schedule, schedule_start_ns) = (task.arrival.due(), start_ns);
            due_ns = schedule.next_ns().map(|offset_ns| schedule_start_ns + offset_ns);
            begin_measuring(task, is_warming, recorder);
        }
        if let Some(due_ns) = due_ns {
            if due_ns >= end_ns {
                sleep(clock, end_ns, shared, recorder);
                return Ok(());
            }
            if !sleep_unless(clock, due_ns, shared, recorder, || shared.is_over(task.stop)) {
                return Ok(());
            }
        }
        let first_sent_ns = clock.now_ns();
        let due_ns = due_ns.unwrap_or(first_sent_ns);
        if *is_warming && first_sent_ns >= start_ns {
            begin_measuring(task, is_warming, recorder);
        }
        if is_open {
            recorder.lag(kind, due_ns, first_sent_ns);
        }
        let mut sent_ns = first_sent_ns;
        let mut pause_ns = shared.retry.first_pause_ns;
        let mut outage = Outage::none(&shared.retry);
        loop {
            let outcome = task.worker.execute();
            done_ns = clock.now_ns();
            match outcome {
                Outcome::Done { rows } => {
                    recorder.done(kind, due_ns, sent_ns, done_ns, rows);
                    break;
                }
                Outcome::Retry { class } => {
                    outage = Outage::none(&shared.retry);
                    let is_final = done_ns - first_sent_ns >= shared.retry.deadline_ns;
                    recorder.unsuccessful(kind, sent_ns, done_ns, class, is_final);
                    if is_final {
                        let seconds = shared.retry.deadline_ns / 1_000_000_000;
                        let message = format!("the operation was still refused ({class}) after {seconds} s of retries");
                        forgive(Failure { class, message }, recorder, shared)?;
                        break;
                    }
                    if shared.must_stop() {
                        return Ok(());
                    }
                    clock.sleep_until_ns(done_ns + pause_ns);
                    sent_ns = clock.now_ns();
                    recorder.paused(kind, sent_ns - done_ns);
                    pause_ns = (pause_ns * 2).min(shared.retry.longest_pause_ns);
                }
                Outcome::Lost { message } => {
                    let next_ns = outage.next_try_ns(done_ns, &message, &shared.retry);
                    recorder.unsuccessful(kind, sent_ns, done_ns, LOST, next_ns.is_err());
                    if !sleep(clock, next_ns?, shared, recorder) {
                        return Ok(());
                    }
                    sent_ns = clock.now_ns();
                    recorder.paused(kind, sent_ns - done_ns);
                }
                Outcome::Failed(failure) => {
                    recorder.unsuccessful(kind, sent_ns, done_ns, failure.class, true);
                    forgive(failure, recorder, shared)?;
                    break;
                }
            }
        }
        operations += 1;
    }
}

/// Lets a failure pass where operations may fail. One that leaves the state of the tables unknown never passes.
#[cold]
fn forgive(failure: Failure, recorder: &mut Recorder, shared: &Shared<'_>) -> Result<(), Failure> {
    if !shared.may_fail || failure.is_uncertain() {
        return Err(failure);
    }
    recorder.note_failure(failure);
    Ok(())
}

fn begin_measuring(task: &mut Task, is_warming: &mut bool, recorder: &mut Recorder) {
    *is_warming = false;
    recorder.resume();
    task.worker.begin_measuring();
}

/// Sleeps to an instant; false when a command or a failure came first.
#[inline]
fn sleep<C: Clock>(clock: &C, until_ns: u64, shared: &Shared<'_>, recorder: &mut Recorder) -> bool {
    sleep_unless(clock, until_ns, shared, recorder, || false)
}

/// The same, and false when the worker is over.
#[inline]
fn sleep_unless<C: Clock>(clock: &C, until_ns: u64, shared: &Shared<'_>, recorder: &mut Recorder, is_over: impl Fn() -> bool) -> bool {
    loop {
        shared.park(recorder);
        let now_ns = clock.now_ns();
        if now_ns >= until_ns {
            return true;
        }
        if shared.must_stop() || is_over() {
            return false;
        }
        clock.sleep_until_ns(until_ns.min(now_ns + LONGEST_SLEEP_NS));
    }
}
