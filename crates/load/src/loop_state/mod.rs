//! The state of one worker's loop, as a value: schedule, warm-up, retries, reconnects, commands.
//!
//! [`LoopState`] reads no clock, never sleeps and never calls the worker. Whoever drives it passes
//! the time in, does what [`next`](LoopState::next) returns, and reports what came of it. Threads
//! drive one each today (`drive`); an event loop could drive many.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::arrival::{Arrival, Due};
use crate::control::{Command, Control};
use crate::recorder::{KindRecord, Recorder};
use crate::retry::{LOST, Outage, RetryPolicy};
use crate::worker::{Failure, Next, Outcome, Stop};
use plimsoll_core::planted::{self, Bug};
use plimsoll_core::units::SECOND_NS;

/// A sleeping worker looks at its commands at least this often.
const LONGEST_SLEEP_NS: u64 = 50_000_000;
/// The pause before a worker that must wait for another is asked again.
const LATER_NS: u64 = 20_000;

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
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Prepare an operation. Report with [`LoopState::prepared`] or [`LoopState::not_prepared`].
    Prepare,
    /// Tell the worker that its warm-up is over.
    BeginMeasuring,
    /// Sleep until this instant at the latest.
    SleepUntil(u64),
    /// Hold still until another command comes. Report with [`LoopState::unparked`].
    Park,
    /// Execute the operation now. Report with [`LoopState::executed`].
    Send,
    /// Nothing more.
    End,
}

/// How a worker came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// By its stop rule.
    ByRule,
    /// By a command, or because another worker failed.
    Interrupted,
}

/// What a worker is to do and when.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    /// From 1.
    pub client: u32,
    pub arrival: Arrival,
    pub stop: Stop,
    /// The instant at which all workers begin.
    pub begin_ns: u64,
    /// The instant from which operations count; what is done before it is warm-up.
    pub start_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the common beginning.
    Starting,
    /// The last operation has ended, or there has been none yet.
    Between,
    /// The worker is asked to prepare an operation.
    Preparing,
    /// The worker must wait for another before it can prepare.
    WaitingForOthers,
    /// The worker has no connection to prepare with and is asked again at this instant.
    ReconnectingToPrepare(u64),
    Prepared,
    /// The operation waits for the instant at which it is due.
    Scheduled,
    /// The next operation would be due after the worker's end.
    UntilEnd,
    /// All operations are done, and the schedule lasts until this instant.
    UntilScheduleEnd(u64),
    Sent,
    /// The operation met a lock and is sent again at this instant.
    Refused(u64),
    /// The pause after a refusal is over.
    PauseOver,
    /// The operation lost its connection and is sent again at this instant.
    Reconnecting(u64),
    Ended,
}

/// Where a wait stands.
enum Wait {
    Goes(Act),
    Over,
    Stopped,
}

/// The loop of one worker.
pub(crate) struct LoopState<'a> {
    assignment: Assignment,
    shared: &'a Shared<'a>,
    /// The worker ends when this is 0.
    leaders: Option<&'a AtomicU32>,
    /// The worker ends after this many operations.
    most: u64,
    /// A worker that ends by time ends here.
    end_ns: u64,
    is_open: bool,

    state: State,
    schedule: Due,
    /// The instant from which the schedule counts.
    schedule_from_ns: u64,
    is_warming: bool,
    operations: u64,
    recorder: Recorder,
    result: Result<Ending, Failure>,

    /// Of the operation in hand.
    kind: usize,
    due_ns: Option<u64>,
    first_sent_ns: u64,
    sent_ns: u64,
    /// The end of its last try; between operations that of the one before.
    done_ns: u64,
    pause_ns: u64,
    outage: Outage,
}

impl<'a> LoopState<'a> {
    pub fn new(assignment: Assignment, mut recorder: Recorder, shared: &'a Shared<'a>) -> Self {
        let Assignment {
            begin_ns, start_ns, ..
        } = assignment;
        let has_warm_up = begin_ns < start_ns && !planted::is(Bug::WarmUpCounted);
        recorder.start(start_ns, has_warm_up);
        let leaders = &shared.leaders[assignment.client as usize - 1];
        Self {
            shared,
            leaders: (assignment.stop == Stop::WithClient).then_some(leaders),
            most: match assignment.stop {
                Stop::Operations(most) => most,
                _ => u64::MAX,
            },
            end_ns: match assignment.stop {
                Stop::Time(length_ns) => start_ns + length_ns,
                _ => u64::MAX,
            },
            is_open: assignment.arrival.is_open(),
            state: State::Starting,
            schedule: assignment.arrival.due(),
            schedule_from_ns: begin_ns,
            is_warming: begin_ns < start_ns,
            operations: 0,
            recorder,
            result: Ok(Ending::Interrupted),
            kind: 0,
            due_ns: None,
            first_sent_ns: 0,
            sent_ns: 0,
            done_ns: begin_ns,
            pause_ns: 0,
            outage: Outage::none(&shared.retry),
            assignment,
        }
    }

    /// What to do at `now_ns`. Reports come before the next call.
    #[inline]
    pub fn next(&mut self, now_ns: u64) -> Act {
        match self.state {
            State::Between => self.begin_operation(now_ns),
            State::Prepared => self.schedule_operation(now_ns),
            State::Scheduled => self.send_when_due(now_ns),
            _ => self.go_on(now_ns),
        }
    }

    /// The worker has an operation of this kind ready.
    #[inline]
    pub fn prepared(&mut self, kind: usize) {
        self.kind = kind;
        self.state = State::Prepared;
    }

    /// The worker has no operation ready.
    #[cold]
    pub fn not_prepared(&mut self, next: Result<Next, String>, now_ns: u64) {
        match next {
            Ok(Next::Operation(kind)) => self.prepared(kind),
            Ok(Next::Finished) => drop(self.end(Ending::ByRule)),
            Ok(Next::Later) => self.state = State::WaitingForOthers,
            Ok(Next::Lost { message }) => {
                match self
                    .outage
                    .next_try_ns(now_ns, &message, &self.shared.retry)
                {
                    Ok(next_ns) => self.state = State::ReconnectingToPrepare(next_ns),
                    Err(failure) => self.fail(failure),
                }
            }
            Err(message) => self.fail(Failure {
                class: "prepare",
                message,
            }),
        }
    }

    /// Another command has come: a turn may have begun.
    pub fn unparked(&mut self) {
        self.recorder.begin_turn();
    }

    /// The operation was tried, and the try ended at `done_ns`.
    #[inline]
    pub fn executed(&mut self, outcome: Outcome, done_ns: u64) {
        self.done_ns = done_ns;
        if let Outcome::Done { rows } = outcome {
            let due_ns = self.due_ns.unwrap_or(self.first_sent_ns);
            self.recorder
                .done(self.kind, due_ns, self.sent_ns, done_ns, rows);
            self.end_operation();
        } else {
            self.not_done(outcome);
        }
    }

    /// Ends a warm-up that outlasted the worker: nothing of what it did counts. True if
    /// the worker does not know yet.
    pub fn end_warm_up(&mut self) -> bool {
        let was_warming = self.is_warming;
        if was_warming {
            self.restart_schedule();
        }
        was_warming
    }

    /// Notes the instant of the end, if it was a finish that ended the worker.
    pub fn note_end(&self, now_ns: u64) {
        if matches!(self.assignment.stop, Stop::Time(_))
            && self.shared.control.command() == Command::Finish
        {
            self.shared.finished_ns.fetch_min(now_ns, Ordering::Relaxed);
        }
    }

    /// The worker cannot go on.
    #[cold]
    pub fn fail(&mut self, failure: Failure) {
        self.state = State::Ended;
        self.result = Err(failure);
    }

    pub fn has_failed(&self) -> bool {
        self.result.is_err()
    }

    /// What all workers of the step share.
    pub fn shared(&self) -> &'a Shared<'a> {
        self.shared
    }

    /// How it ended, where the schedule stands, what was recorded, and the first failure of those
    /// that may be.
    pub fn into_parts(mut self) -> LoopResult {
        LoopResult {
            result: self.result,
            schedule: self.schedule,
            first_failure: self.recorder.take_first_failure(),
            kinds: self.recorder.finish(),
        }
    }

    #[inline]
    fn begin_operation(&mut self, now_ns: u64) -> Act {
        if self.is_parked() {
            return Act::Park;
        }
        if self.done_ns >= self.end_ns || self.is_finished() {
            return self.end(Ending::ByRule);
        }
        if self.shared.must_stop() {
            return self.end(Ending::Interrupted);
        }
        if self.operations >= self.most {
            // The schedule of an open loop ends an interval after its last operation.
            let length_ns = self.assignment.arrival.length_ns(self.most);
            self.state = State::UntilScheduleEnd(self.schedule_from_ns + length_ns);
            return self.go_on(now_ns);
        }
        if self
            .leaders
            .is_some_and(|leaders| leaders.load(Ordering::Acquire) == 0)
        {
            return self.end(Ending::ByRule);
        }
        self.pause_ns = self.shared.retry.first_pause_ns;
        self.outage = Outage::none(&self.shared.retry);
        self.state = State::Preparing;
        Act::Prepare
    }

    /// Takes the operation's place in the schedule.
    #[inline]
    fn schedule_operation(&mut self, now_ns: u64) -> Act {
        if let Some(since_ns) = self.outage.since_ns {
            // What had to be looked up first waited for a connection.
            self.recorder.paused(self.kind, now_ns - since_ns);
            self.outage = Outage::none(&self.shared.retry);
        }
        self.take_due();
        self.state = State::Scheduled;
        if self.is_warming
            && self
                .due_ns
                .is_some_and(|due| due >= self.assignment.start_ns)
        {
            return self.begin_measuring();
        }
        self.send_when_due(now_ns)
    }

    #[inline]
    fn send_when_due(&mut self, now_ns: u64) -> Act {
        if let Some(due_ns) = self.due_ns {
            if due_ns >= self.end_ns {
                self.state = State::UntilEnd;
                return self.go_on(now_ns);
            }
            if now_ns < due_ns && self.is_finished() {
                return self.end(Ending::ByRule);
            }
            match self.wait(now_ns, due_ns) {
                Wait::Goes(act) => return act,
                Wait::Stopped => return self.end(Ending::Interrupted),
                Wait::Over => {}
            }
        }
        if self.is_warming && now_ns >= self.assignment.start_ns {
            // Late enough to be the first that is measured: an open loop's is due by the schedule
            // that begins with the step.
            return self.begin_measuring();
        }
        if self.is_open {
            self.recorder
                .lag(self.kind, self.due_ns.unwrap_or(now_ns), now_ns);
        }
        self.first_sent_ns = now_ns;
        self.send(now_ns)
    }

    #[inline]
    fn send(&mut self, now_ns: u64) -> Act {
        self.sent_ns = now_ns;
        self.state = State::Sent;
        Act::Send
    }

    /// Goes on in one of the states that are not those of every operation.
    #[cold]
    fn go_on(&mut self, now_ns: u64) -> Act {
        match self.state {
            State::Starting => match self.wait(now_ns, self.assignment.begin_ns) {
                Wait::Goes(act) => act,
                Wait::Over | Wait::Stopped => self.begin_operation(now_ns),
            },
            State::WaitingForOthers => self.wait_for_others(now_ns),
            State::ReconnectingToPrepare(until_ns) => match self.wait(now_ns, until_ns) {
                Wait::Goes(act) => act,
                Wait::Over => self.prepare_again(),
                Wait::Stopped => self.end(Ending::Interrupted),
            },
            State::UntilEnd => match self.wait(now_ns, self.end_ns) {
                _ if self.is_finished() => self.end(Ending::ByRule),
                Wait::Goes(act) => act,
                Wait::Over => self.end(Ending::ByRule),
                Wait::Stopped => self.end(Ending::Interrupted),
            },
            State::UntilScheduleEnd(until_ns) => match self.wait(now_ns, until_ns) {
                Wait::Goes(act) => act,
                // Its operations are done: a stop takes nothing away.
                Wait::Over | Wait::Stopped => self.end(Ending::ByRule),
            },
            State::Refused(_) if self.shared.must_stop() => self.end(Ending::Interrupted),
            State::Refused(until_ns) => {
                self.state = State::PauseOver;
                Act::SleepUntil(until_ns)
            }
            State::PauseOver => self.send_again(now_ns),
            State::Reconnecting(until_ns) => match self.wait(now_ns, until_ns) {
                Wait::Goes(act) => act,
                Wait::Over => self.send_again(now_ns),
                Wait::Stopped => self.end(Ending::Interrupted),
            },
            State::Preparing => Act::Prepare,
            State::Sent => Act::Send,
            State::Between => self.begin_operation(now_ns),
            State::Prepared => self.schedule_operation(now_ns),
            State::Scheduled => self.send_when_due(now_ns),
            State::Ended => Act::End,
        }
    }

    fn wait_for_others(&mut self, now_ns: u64) -> Act {
        if now_ns >= self.end_ns || self.is_finished() {
            return self.end(Ending::ByRule);
        }
        if self.shared.must_stop() {
            return self.end(Ending::Interrupted);
        }
        if self.is_parked() {
            return Act::Park;
        }
        self.state = State::Preparing;
        Act::SleepUntil(now_ns + LATER_NS)
    }

    fn prepare_again(&mut self) -> Act {
        self.state = State::Preparing;
        Act::Prepare
    }

    /// Sends the operation once more, under the instant at which it was due first.
    fn send_again(&mut self, now_ns: u64) -> Act {
        self.recorder.paused(self.kind, now_ns - self.done_ns);
        self.send(now_ns)
    }

    /// The last try did not succeed.
    #[cold]
    fn not_done(&mut self, outcome: Outcome) {
        let policy = &self.shared.retry;
        let (kind, sent_ns, done_ns) = (self.kind, self.sent_ns, self.done_ns);
        match outcome {
            Outcome::Done { .. } => unreachable!("the caller has recorded it"),
            Outcome::Retry { class } => {
                self.outage = Outage::none(policy);
                let is_final = done_ns - self.first_sent_ns >= policy.deadline_ns;
                self.recorder
                    .unsuccessful(kind, sent_ns, done_ns, class, is_final);
                if is_final {
                    let seconds = policy.deadline_ns / SECOND_NS;
                    let message = format!(
                        "the operation was still refused ({class}) after {seconds} s of retries"
                    );
                    return self.operation_failed(Failure { class, message });
                }
                self.state = State::Refused(done_ns + self.pause_ns);
                self.pause_ns = (self.pause_ns * 2).min(policy.longest_pause_ns);
            }
            Outcome::Lost { message } => {
                let next_ns = self.outage.next_try_ns(done_ns, &message, policy);
                self.recorder
                    .unsuccessful(kind, sent_ns, done_ns, LOST, next_ns.is_err());
                match next_ns {
                    Ok(next_ns) => self.state = State::Reconnecting(next_ns),
                    // Even where operations may fail: nothing else would succeed either.
                    Err(failure) => self.fail(failure),
                }
            }
            Outcome::Failed(failure) => {
                self.recorder
                    .unsuccessful(kind, sent_ns, done_ns, failure.class, true);
                self.operation_failed(failure);
            }
        }
    }

    /// The operation has failed for good. The worker goes on where operations may fail, but never
    /// after one that leaves the state of the tables unknown.
    fn operation_failed(&mut self, failure: Failure) {
        if !self.shared.may_fail || failure.is_uncertain() {
            return self.fail(failure);
        }
        self.recorder.note_failure(failure);
        self.end_operation();
    }

    #[inline]
    fn end_operation(&mut self) {
        self.operations += 1;
        self.state = State::Between;
    }

    #[cold]
    fn end(&mut self, ending: Ending) -> Act {
        self.state = State::Ended;
        self.result = Ok(ending);
        Act::End
    }

    /// Where a wait until `until_ns` stands.
    #[inline]
    fn wait(&self, now_ns: u64, until_ns: u64) -> Wait {
        if self.is_parked() {
            Wait::Goes(Act::Park)
        } else if now_ns >= until_ns {
            Wait::Over
        } else if self.shared.must_stop() {
            Wait::Stopped
        } else {
            Wait::Goes(Act::SleepUntil(until_ns.min(now_ns + LONGEST_SLEEP_NS)))
        }
    }

    #[inline]
    fn is_parked(&self) -> bool {
        self.shared.control.command() == Command::Park
    }

    /// Whether a worker that ends by time is to end before its time.
    #[inline]
    fn is_finished(&self) -> bool {
        matches!(self.assignment.stop, Stop::Time(_))
            && self.shared.control.command() == Command::Finish
    }

    #[inline]
    fn take_due(&mut self) {
        if planted::is(Bug::DueInstantSkipped) && self.schedule.count() == 9 {
            self.schedule.next_ns();
        }
        let offset_ns = self.schedule.next_ns();
        self.due_ns = offset_ns.map(|offset_ns| self.schedule_from_ns + offset_ns);
    }

    /// The operation in hand is the first that counts.
    #[cold]
    fn begin_measuring(&mut self) -> Act {
        self.restart_schedule();
        self.take_due();
        Act::BeginMeasuring
    }

    /// The warm-up is over: what it still owes is forgiven.
    fn restart_schedule(&mut self) {
        self.schedule = self.assignment.arrival.due();
        self.schedule_from_ns = self.assignment.start_ns;
        self.is_warming = false;
        self.recorder.resume();
    }
}

/// What a loop leaves.
pub(crate) struct LoopResult {
    pub result: Result<Ending, Failure>,
    /// Where the schedule stands.
    pub schedule: Due,
    pub kinds: Vec<KindRecord>,
    /// The first failure of an operation that may fail.
    pub first_failure: Option<Failure>,
}
