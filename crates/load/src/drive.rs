//! The one load loop.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use plimsoll_core::clock::Clock;

use crate::arrival::Due;
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
        Self {
            since_ns: None,
            pause_ns: policy.first_pause_ns,
        }
    }

    /// The instant of the next try after one that ended at `now_ns`; a failure when there have been
    /// enough.
    fn next_try_ns(
        &mut self,
        now_ns: u64,
        message: &str,
        policy: &RetryPolicy,
    ) -> Result<u64, Failure> {
        if now_ns - *self.since_ns.get_or_insert(now_ns) >= policy.reconnect_deadline_ns {
            let seconds = policy.reconnect_deadline_ns / 1_000_000_000;
            return Err(Failure {
                class: LOST,
                message: format!(
                    "the connection was lost and did not come back in {seconds} s: {message}"
                ),
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
    /// The first instant at which a worker that ends by time obeyed a finish; `u64::MAX` before.
    pub finished_ns: &'a AtomicU64,
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

/// A worker's schedule, and whether the instants of it are those of the warm-up.
struct Agenda {
    schedule: Due,
    /// The instant from which its instants count.
    from_ns: u64,
    is_warming: bool,
}

impl Agenda {
    #[inline]
    fn next_ns(&mut self) -> Option<u64> {
        self.schedule
            .next_ns()
            .map(|offset_ns| self.from_ns + offset_ns)
    }

    /// The warm-up is over: what it still owes is forgiven.
    #[cold]
    fn begin_measuring(&mut self, task: &mut Task, start_ns: u64, recorder: &mut Recorder) {
        *self = Self {
            schedule: task.arrival.due(),
            from_ns: start_ns,
            is_warming: false,
        };
        recorder.resume();
        task.worker.begin_measuring();
    }
}

/// Runs a task from `begin_ns` until its stop rule, a command or a failure ends it. What it does
/// before `start_ns` is its warm-up. Gives where its schedule stands then, and whether a command to
/// stop or a failure elsewhere came before its rule.
///
/// A function of its own in the binary: what is counted inside it is what an operation costs.
#[inline(never)]
pub(crate) fn drive<C: Clock>(
    clock: &C,
    task: &mut Task,
    (begin_ns, start_ns): (u64, u64),
    recorder: &mut Recorder,
    shared: &Shared<'_>,
) -> Result<(Due, bool), Failure> {
    let mut agenda = Agenda {
        schedule: task.arrival.due(),
        from_ns: begin_ns,
        is_warming: begin_ns < start_ns,
    };
    let result = perform(
        clock,
        task,
        (begin_ns, start_ns),
        &mut agenda,
        recorder,
        shared,
    );
    if agenda.is_warming {
        // All it did was warm-up, and nothing of that counts.
        agenda.begin_measuring(task, start_ns, recorder);
    }
    if matches!(task.stop, Stop::Time(_)) && shared.control.command() == Command::Finish {
        shared
            .finished_ns
            .fetch_min(clock.now_ns(), Ordering::Relaxed);
    }
    let is_cut = result? == Way::Cut;
    Ok((agenda.schedule, is_cut))
}

/// How a worker came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By its rule.
    Over,
    /// Before.
    Cut,
}

fn perform<C: Clock>(
    clock: &C,
    task: &mut Task,
    (begin_ns, start_ns): (u64, u64),
    agenda: &mut Agenda,
    recorder: &mut Recorder,
    shared: &Shared<'_>,
) -> Result<Way, Failure> {
    let client = task.client as usize - 1;
    let end_ns = match task.stop {
        Stop::Time(length_ns) => start_ns + length_ns,
        _ => u64::MAX,
    };
    let is_open = task.arrival.is_open();
    let mut operations = 0;
    let mut done_ns = begin_ns;
    sleep(clock, begin_ns, shared, recorder);
    loop {
        shared.park(recorder);
        if done_ns >= end_ns || shared.is_over(task.stop) {
            return Ok(Way::Over);
        }
        if shared.must_stop() {
            return Ok(Way::Cut);
        }
        match task.stop {
            Stop::Operations(most) if operations >= most => {
                // The schedule of an open loop ends an interval after its last operation.
                sleep(
                    clock,
                    agenda.from_ns + task.arrival.length_ns(most),
                    shared,
                    recorder,
                );
                return Ok(Way::Over);
            }
            Stop::WithClient if shared.leaders[client].load(Ordering::Acquire) == 0 => {
                return Ok(Way::Over);
            }
            _ => {}
        }
        let mut outage = Outage::none(&shared.retry);
        let kind = loop {
            match task.worker.prepare().map_err(|message| Failure {
                class: "prepare",
                message,
            })? {
                Next::Operation(kind) => break kind,
                Next::Finished => return Ok(Way::Over),
                Next::Later => {
                    if clock.now_ns() >= end_ns || shared.is_over(task.stop) {
                        return Ok(Way::Over);
                    }
                    if shared.must_stop() {
                        return Ok(Way::Cut);
                    }
                    shared.park(recorder);
                    clock.sleep_until_ns(clock.now_ns() + LATER_NS);
                }
                Next::Lost { message } => {
                    let next_ns = outage.next_try_ns(clock.now_ns(), &message, &shared.retry)?;
                    if !sleep(clock, next_ns, shared, recorder) {
                        return Ok(Way::Cut);
                    }
                }
            }
        };
        if let Some(since_ns) = outage.since_ns {
            // What had to be looked up first waited for a connection.
            recorder.paused(kind, clock.now_ns() - since_ns);
        }
        let mut due_ns = agenda.next_ns();
        if agenda.is_warming && due_ns.is_some_and(|due_ns| due_ns >= start_ns) {
            agenda.begin_measuring(task, start_ns, recorder);
            due_ns = agenda.next_ns();
        }
        let first_sent_ns = loop {
            if let Some(due_ns) = due_ns {
                if due_ns >= end_ns {
                    let is_there = sleep_unless(clock, end_ns, shared, recorder, || {
                        shared.is_over(task.stop)
                    });
                    return Ok(if is_there || shared.is_over(task.stop) {
                        Way::Over
                    } else {
                        Way::Cut
                    });
                }
                if !sleep_unless(clock, due_ns, shared, recorder, || {
                    shared.is_over(task.stop)
                }) {
                    return Ok(if shared.is_over(task.stop) {
                        Way::Over
                    } else {
                        Way::Cut
                    });
                }
            }
            let now_ns = clock.now_ns();
            if !agenda.is_warming || now_ns < start_ns {
                break now_ns;
            }
            // Late enough to be the first that is measured: an open loop's is due by the schedule
            // that begins with the step.
            agenda.begin_measuring(task, start_ns, recorder);
            due_ns = agenda.next_ns();
            if due_ns.is_none() {
                break now_ns;
            }
        };
        let due_ns = due_ns.unwrap_or(first_sent_ns);
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
                        let message = format!(
                            "the operation was still refused ({class}) after {seconds} s of retries"
                        );
                        forgive(Failure { class, message }, recorder, shared)?;
                        break;
                    }
                    if shared.must_stop() {
                        return Ok(Way::Cut);
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
                        return Ok(Way::Cut);
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

/// Lets a failure pass where operations may fail. One that leaves the state of the tables unknown
/// never passes.
#[cold]
fn forgive(failure: Failure, recorder: &mut Recorder, shared: &Shared<'_>) -> Result<(), Failure> {
    if !shared.may_fail || failure.is_uncertain() {
        return Err(failure);
    }
    recorder.note_failure(failure);
    Ok(())
}

/// Sleeps to an instant; false when a command or a failure came first.
#[inline]
fn sleep<C: Clock>(clock: &C, until_ns: u64, shared: &Shared<'_>, recorder: &mut Recorder) -> bool {
    sleep_unless(clock, until_ns, shared, recorder, || false)
}

/// The same, and false when the worker is over.
#[inline]
fn sleep_unless<C: Clock>(
    clock: &C,
    until_ns: u64,
    shared: &Shared<'_>,
    recorder: &mut Recorder,
    is_over: impl Fn() -> bool,
) -> bool {
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
