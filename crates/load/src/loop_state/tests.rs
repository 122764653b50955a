//! The loop without threads: each call passes the time in and checks what comes out.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use plimsoll_core::clock::Clock;
use plimsoll_testkit::FakeClock;

use super::*;
use crate::drive::drive;
use crate::intervals::Intervals;
use crate::recorder::LiveCounts;
use crate::worker::Worker;

const US: u64 = 1000;
const BEGIN_NS: u64 = 1_000_000;

/// What a step's workers share, without a step.
struct World {
    control: Control,
    is_aborted: AtomicBool,
    finished_ns: AtomicU64,
    leaders: [AtomicU32; 1],
}

impl World {
    fn new() -> Self {
        Self {
            control: Control::default(),
            is_aborted: AtomicBool::new(false),
            finished_ns: AtomicU64::new(u64::MAX),
            leaders: [AtomicU32::new(1)],
        }
    }

    fn shared(&self) -> Shared<'_> {
        Shared {
            control: &self.control,
            retry: RetryPolicy::default(),
            may_fail: false,
            is_aborted: &self.is_aborted,
            finished_ns: &self.finished_ns,
            leaders: &self.leaders,
        }
    }
}

fn loop_state<'a>(
    shared: &'a Shared<'a>,
    arrival: Arrival,
    stop: Stop,
    warm_up_ns: u64,
) -> LoopState<'a> {
    let recorder = Recorder::new(
        0,
        &[0],
        arrival.is_open(),
        Arc::new(Intervals::new(1, 1)),
        [LiveCounts::default()].into(),
    );
    let assignment = Assignment {
        client: 1,
        arrival,
        stop,
        begin_ns: BEGIN_NS,
        start_ns: BEGIN_NS + warm_up_ns,
    };
    LoopState::new(assignment, recorder, shared)
}

/// Due each `interval_ns`.
fn even(interval_ns: u64) -> Arrival {
    Arrival::Even {
        operations: 1,
        period_ns: interval_ns,
        phase_ns: 0,
    }
}

fn done() -> Outcome {
    Outcome::Done { rows: 1 }
}

fn refused() -> Outcome {
    Outcome::Retry { class: "deadlock" }
}

fn lost() -> Outcome {
    Outcome::Lost {
        message: "gone".to_owned(),
    }
}

/// A state whose first operation was sent at [`BEGIN_NS`].
fn sent<'a>(shared: &'a Shared<'a>, arrival: Arrival, stop: Stop) -> LoopState<'a> {
    let mut state = loop_state(shared, arrival, stop, 0);
    assert_eq!(state.next(BEGIN_NS), Act::Prepare);
    state.prepared(0);
    assert_eq!(state.next(BEGIN_NS), Act::Send);
    state
}

#[test]
fn a_closed_loop_prepares_and_sends_until_its_operations_are_done() {
    let world = World::new();
    let shared = world.shared();
    let mut state = loop_state(&shared, Arrival::Closed, Stop::Operations(2), 0);
    assert_eq!(state.next(0), Act::SleepUntil(BEGIN_NS));
    let mut now_ns = BEGIN_NS;
    for _ in 0..2 {
        assert_eq!(state.next(now_ns), Act::Prepare);
        state.prepared(0);
        assert_eq!(state.next(now_ns + 10), Act::Send);
        state.executed(done(), now_ns + 500);
        now_ns += 500;
    }
    assert_eq!(state.next(now_ns), Act::End);
    assert_eq!(state.next(now_ns), Act::End);
    let parts = state.into_parts();
    assert_eq!(parts.result, Ok(Ending::ByRule));
    assert_eq!((parts.kinds[0].ok, parts.kinds[0].rows), (2, 2));
    assert_eq!(parts.kinds[0].seconds[0].service_sum_ns, 2 * 490);
}

#[test]
fn an_open_loop_sleeps_to_what_is_due_and_sends_at_once_when_late() {
    let world = World::new();
    let shared = world.shared();
    let mut state = sent(&shared, even(100 * US), Stop::Operations(3));
    state.executed(done(), BEGIN_NS + 250 * US);
    for due_at in [100 * US, 200 * US] {
        assert_eq!(state.next(BEGIN_NS + 250 * US), Act::Prepare);
        state.prepared(0);
        let sent_ns = BEGIN_NS + 250 * US;
        assert_eq!(state.next(sent_ns), Act::Send, "due at {due_at}");
        state.executed(done(), sent_ns);
    }
    // The schedule of three lasts to where a fourth would be due.
    let end_ns = BEGIN_NS + 300 * US;
    assert_eq!(state.next(BEGIN_NS + 250 * US), Act::SleepUntil(end_ns));
    assert_eq!(state.next(end_ns), Act::End);
    let parts = state.into_parts();
    let lag = parts.kinds[0].lag.as_ref().unwrap();
    assert_eq!((lag.len(), lag.max() / US), (3, 150));
    assert_eq!(parts.kinds[0].seconds[0].response_max_ns, 250 * US);
}

#[test]
fn pauses_after_refusals_double_up_to_the_longest_and_end_with_the_deadline() {
    let world = World::new();
    let shared = world.shared();
    let mut state = sent(&shared, Arrival::Closed, Stop::Operations(1));
    let mut now_ns = BEGIN_NS;
    for pause_us in [50, 100, 200, 400, 800, 1000, 1000] {
        state.executed(refused(), now_ns);
        now_ns += pause_us * US;
        assert_eq!(
            state.next(now_ns - pause_us * US),
            Act::SleepUntil(now_ns),
            "{pause_us}"
        );
        assert_eq!(state.next(now_ns), Act::Send);
    }
    state.executed(refused(), BEGIN_NS + shared.retry.deadline_ns);
    assert_eq!(state.next(BEGIN_NS + shared.retry.deadline_ns), Act::End);
    let parts = state.into_parts();
    let failure = parts.result.unwrap_err();
    assert_eq!(failure.class, "deadlock");
    assert_eq!((parts.kinds[0].retried, parts.kinds[0].failed), (7, 1));
    assert_eq!(parts.kinds[0].wait_ns, 3550 * US);
}

#[test]
fn a_lost_connection_is_waited_for_until_its_deadline() {
    let world = World::new();
    let shared = world.shared();
    let deadline_ns = BEGIN_NS + shared.retry.reconnect_deadline_ns;
    // Lost by the operation itself.
    let mut state = sent(&shared, Arrival::Closed, Stop::Operations(1));
    state.executed(lost(), BEGIN_NS);
    let first_ns = BEGIN_NS + 50 * US;
    assert_eq!(state.next(BEGIN_NS), Act::SleepUntil(first_ns));
    assert_eq!(state.next(first_ns), Act::Send);
    state.executed(lost(), deadline_ns);
    assert_eq!(state.next(deadline_ns), Act::End);
    assert_eq!(state.into_parts().result.unwrap_err().class, LOST);
    // Lost before it: what is prepared then has waited.
    let mut state = loop_state(&shared, Arrival::Closed, Stop::Operations(1), 0);
    assert_eq!(state.next(BEGIN_NS), Act::Prepare);
    let gone = || {
        Ok(Next::Lost {
            message: "gone".to_owned(),
        })
    };
    state.not_prepared(gone(), BEGIN_NS);
    assert_eq!(state.next(BEGIN_NS), Act::SleepUntil(first_ns));
    assert_eq!(state.next(first_ns), Act::Prepare);
    state.prepared(0);
    assert_eq!(state.next(first_ns), Act::Send);
    state.executed(done(), first_ns);
    assert_eq!(state.next(first_ns), Act::End);
    assert_eq!(state.into_parts().kinds[0].wait_ns, 50 * US);
}

#[test]
fn what_is_late_enough_is_the_first_that_is_measured() {
    let world = World::new();
    let shared = world.shared();
    for (arrival, sent_ns) in [
        (Arrival::Closed, BEGIN_NS + 300 * US),
        // Due once more at the start, by a schedule that begins there.
        (even(150 * US), BEGIN_NS + 300 * US),
    ] {
        let start_ns = BEGIN_NS + 250 * US;
        let mut state = loop_state(&shared, arrival, Stop::Time(400 * US), 250 * US);
        assert_eq!(state.next(BEGIN_NS), Act::Prepare);
        state.prepared(0);
        assert_eq!(state.next(BEGIN_NS), Act::Send);
        state.executed(done(), sent_ns);
        assert_eq!(state.next(sent_ns), Act::Prepare);
        state.prepared(0);
        assert_eq!(state.next(sent_ns), Act::BeginMeasuring);
        assert_eq!(state.next(sent_ns), Act::Send);
        state.executed(done(), sent_ns + US);
        assert!(!state.end_warm_up(), "it has ended already");
        let is_open = state.is_open;
        let parts = state.into_parts();
        assert_eq!(parts.kinds[0].ok, 1, "the one before was warm-up");
        if is_open {
            let response_ns = sent_ns + US - start_ns;
            assert_eq!(parts.kinds[0].seconds[0].response_max_ns, response_ns);
        }
    }
    let mut state = loop_state(&shared, Arrival::Closed, Stop::Time(US), US);
    assert!(state.end_warm_up(), "nothing of it counted");
}

#[test]
fn commands_are_obeyed_wherever_a_worker_waits() {
    let hour = Stop::Time(3_600_000_000_000);
    let (run, finish, stop) = (Command::Run, Command::Finish, Command::Stop);
    let ends = |ending| Some(Ok(ending));
    // Before the first instant that is due, after a lost connection, after a refusal.
    let due_later = Arrival::Even {
        operations: 1,
        period_ns: US,
        phase_ns: US,
    };
    for (command, before_due, without_connection, refused_once) in [
        (run, None, None, None),
        (finish, ends(Ending::ByRule), None, None),
        (
            stop,
            ends(Ending::Interrupted),
            ends(Ending::Interrupted),
            ends(Ending::Interrupted),
        ),
    ] {
        let mut results = Vec::new();
        for case in 0..3 {
            let world = World::new();
            let shared = world.shared();
            let mut state = if case == 0 {
                let mut state = loop_state(&shared, due_later.clone(), hour, 0);
                assert_eq!(state.next(BEGIN_NS), Act::Prepare);
                state.prepared(0);
                state
            } else {
                let mut state = sent(&shared, Arrival::Closed, hour);
                let outcome = if case == 1 { lost() } else { refused() };
                state.executed(outcome, BEGIN_NS);
                state
            };
            if case < 2 {
                world.control.give(Command::Park);
                assert_eq!(state.next(BEGIN_NS), Act::Park, "{case}");
            }
            world.control.give(command);
            state.unparked();
            let act = state.next(BEGIN_NS);
            if act == Act::End {
                assert_eq!(state.next(BEGIN_NS), Act::End, "it stays so");
            }
            results.push((act == Act::End).then(|| state.into_parts().result));
        }
        assert_eq!(
            results,
            [before_due, without_connection, refused_once],
            "{command:?}"
        );
    }
}

#[test]
fn a_failure_elsewhere_and_the_end_of_the_leaders_end_a_worker() {
    let world = World::new();
    let shared = world.shared();
    let mut state = sent(&shared, Arrival::Closed, Stop::WithClient);
    state.executed(done(), BEGIN_NS + US);
    world.leaders[0].store(0, Ordering::Release);
    assert_eq!(state.next(BEGIN_NS + US), Act::End);
    assert_eq!(state.into_parts().result, Ok(Ending::ByRule));

    let mut state = sent(&shared, Arrival::Closed, Stop::Operations(2));
    state.executed(done(), BEGIN_NS + US);
    world.is_aborted.store(true, Ordering::Relaxed);
    assert_eq!(state.next(BEGIN_NS + US), Act::End);
    assert_eq!(state.into_parts().result, Ok(Ending::Interrupted));
}

/// How long the operation takes that is sent as number `tried`, and how it ends.
fn scripted(worker: u64, tried: u64) -> (u64, Outcome) {
    let length_ns = (worker * 37 + tried * 101) % 400 * US;
    let outcome = match (worker + tried) % 11 {
        3 => refused(),
        7 => lost(),
        _ => done(),
    };
    (length_ns, outcome)
}

struct Scripted {
    clock: Arc<FakeClock>,
    worker: u64,
    tried: u64,
}

impl Worker for Scripted {
    fn open(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn prepare(&mut self) -> Result<Next, String> {
        Ok(Next::Operation(0))
    }

    fn execute(&mut self) -> Outcome {
        let (length_ns, outcome) = scripted(self.worker, self.tried);
        self.tried += 1;
        self.clock.advance(length_ns);
        outcome
    }
}

fn arrival_of(worker: u64) -> Arrival {
    match worker % 3 {
        0 => Arrival::Closed,
        1 => even(300 * US),
        _ => Arrival::Poisson {
            operations: 4000,
            period_ns: 1_000_000_000,
            seed: worker,
        },
    }
}

/// What one worker leaves, for comparison.
fn summary(parts: &LoopResult) -> String {
    let kind = &parts.kinds[0];
    format!(
        "{:?} {} {} {} {} {:?} {:?}",
        parts.result,
        kind.ok,
        kind.retried,
        kind.wait_ns,
        parts.schedule.count(),
        kind.seconds,
        kind.lag
            .as_ref()
            .map(|lag| (lag.len(), lag.max(), lag.mean()))
    )
}

/// One thread with a queue of instants drives fifty workers at once, and each leaves what it leaves
/// when a thread of its own drives it.
#[test]
fn an_event_loop_can_drive_many_workers() {
    let world = World::new();
    let shared = world.shared();
    let stop = Stop::Time(500_000 * US);
    let mut alone = Vec::new();
    for worker in 0..50 {
        let clock = Arc::new(FakeClock::default());
        clock.sleep_until_ns(BEGIN_NS - 1);
        let mut scripted = Scripted {
            clock: clock.clone(),
            worker,
            tried: 0,
        };
        let mut state = loop_state(&shared, arrival_of(worker), stop, 500 * US);
        drive(&*clock, &mut scripted, &mut state);
        alone.push(summary(&state.into_parts()));
    }

    let mut states: Vec<_> = (0..50)
        .map(|worker| loop_state(&shared, arrival_of(worker), stop, 500 * US))
        .collect();
    let mut tried = [0; 50];
    // An instant, a worker, and the outcome of what it has sent, if that is why it comes.
    let mut queue: BinaryHeap<_> = (0..50).map(|at| Reverse((BEGIN_NS, at, false))).collect();
    let mut outcomes: Vec<Option<Outcome>> = vec![None; 50];
    while let Some(Reverse((now_ns, at, has_answer))) = queue.pop() {
        let state = &mut states[at];
        if has_answer {
            let outcome = outcomes[at].take().expect("it was sent");
            state.executed(outcome, now_ns);
        }
        match state.next(now_ns) {
            Act::Prepare => {
                state.prepared(0);
                queue.push(Reverse((now_ns, at, false)));
            }
            Act::BeginMeasuring => queue.push(Reverse((now_ns, at, false))),
            Act::SleepUntil(until_ns) => queue.push(Reverse((until_ns, at, false))),
            Act::Send => {
                let (length_ns, outcome) = scripted(at as u64, tried[at]);
                tried[at] += 1;
                outcomes[at] = Some(outcome);
                queue.push(Reverse((now_ns + length_ns, at, true)));
            }
            Act::Park => unreachable!("nobody parks them"),
            Act::End => {}
        }
    }
    for (worker, (state, alone)) in states.into_iter().zip(alone).enumerate() {
        let parts = state.into_parts();
        assert!(parts.kinds[0].ok > 200, "worker {worker}");
        assert_eq!(summary(&parts), alone, "worker {worker}");
    }
}

/// A try that is sent again has not ended its operation: no turn counts from it, and none ends with
/// it.
#[test]
fn a_refused_try_marks_no_turn() {
    let world = World::new();
    let shared = world.shared();
    let live: Arc<[LiveCounts]> = [LiveCounts::default()].into();
    let intervals = Arc::new(Intervals::new(1, 1));
    let recorder = Recorder::new(0, &[0], false, intervals, live.clone());
    let assignment = Assignment {
        client: 1,
        arrival: Arrival::Closed,
        stop: Stop::Operations(2),
        begin_ns: BEGIN_NS,
        start_ns: BEGIN_NS,
    };
    let mut state = LoopState::new(assignment, recorder, &shared);
    live[0].turn_from_ns.store(BEGIN_NS + 1, Ordering::Release);
    state.unparked();
    let marks = || {
        (
            live[0].turn_start_done_ns.load(Ordering::Acquire),
            live[0].last_done_ns.load(Ordering::Acquire),
        )
    };
    assert_eq!(state.next(BEGIN_NS), Act::Prepare);
    state.prepared(0);
    assert_eq!(state.next(BEGIN_NS), Act::Send);
    state.executed(refused(), BEGIN_NS + 10);
    assert_eq!(marks(), (0, 0));
    let again_ns = BEGIN_NS + 10 + 50 * US;
    assert_eq!(state.next(BEGIN_NS + 10), Act::SleepUntil(again_ns));
    assert_eq!(state.next(again_ns), Act::Send);
    state.executed(done(), again_ns + 10);
    assert_eq!(marks(), (again_ns + 10, again_ns + 10));
}
