//! What an open loop owes when it ends, against closed formulas, on a clock that jumps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_core::clock::Clock;
use plimsoll_core::record::{EncodedHistogram, OperationRecord};
use plimsoll_core::units::SECOND_NS;
use plimsoll_load::{
    Arrival, Command, Control, Ended, Failure, Next, Outcome, Progress, StepOptions, StepOutcome,
    StepOutputs, Stop, Task, TurnClock, TurnProgress, Worker, no_series, run_step,
};
use plimsoll_testkit::{FakeClock, ScriptedWorker};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
/// Operations per second of these steps.
const RATE: u64 = 1_000;
/// How long an operation takes outside of stalls.
const SERVICE_NS: u64 = 100 * US;

fn even() -> Arrival {
    Arrival::Even {
        operations: RATE,
        period_ns: SECOND_NS,
        phase_ns: 0,
    }
}

fn run(
    clock: &Arc<FakeClock>,
    control: &Arc<Control>,
    worker: impl Worker + 'static,
    stop: Stop,
    warm_up_ns: u64,
) -> StepOutcome {
    let task = Task {
        client: 1,
        kinds: vec![0],
        arrival: even(),
        stop,
        worker: Box::new(worker),
    };
    let options = StepOptions {
        warm_up_ns,
        max_failed: Some(0.5),
        ..StepOptions::default()
    };
    run_step(
        clock,
        &["op"],
        vec![task],
        control,
        &options,
        StepOutputs {
            log: &mut std::io::sink(),
            progress: &mut |_: &Progress| {},
            seconds: &mut no_series,
        },
    )
    .unwrap()
}

/// Quick operations, but the first one from `from_ns` after the first try on takes `length_ns`, at
/// whose end `then` happens.
fn stalling<T: Fn() -> Outcome + Send + 'static>(
    clock: &Arc<FakeClock>,
    from_ns: u64,
    length_ns: u64,
    then: T,
) -> impl Worker + use<T> {
    let (mut begin_ns, mut is_over) = (None, false);
    ScriptedWorker::new(clock.clone(), move |_, now_ns| {
        if !is_over && now_ns - *begin_ns.get_or_insert(now_ns) >= from_ns {
            is_over = true;
            return (length_ns, then());
        }
        (SERVICE_NS, Outcome::Done { rows: 1 })
    })
}

fn fine() -> Outcome {
    Outcome::Done { rows: 1 }
}

fn response_p99_s(operation: &OperationRecord) -> f64 {
    operation
        .response
        .as_ref()
        .unwrap()
        .decode()
        .unwrap()
        .value_at_quantile(0.99) as f64
        / 1e9
}

fn assert_conserved(operation: &OperationRecord) {
    let count = |histogram: &Option<EncodedHistogram>| {
        histogram
            .as_ref()
            .map_or(0, |histogram| histogram.decode().unwrap().len())
    };
    assert_eq!(operation.service.decode().unwrap().len(), operation.ok);
    assert_eq!(count(&operation.response), operation.ok + operation.unsent);
    assert_eq!(count(&operation.unsent_response), operation.unsent);
    assert_eq!(
        count(&operation.lag),
        operation.ok + operation.failed + operation.unsent
    );
}

/// 60 s of 1,000 operations a second, and a stall of 1.9 s. An operation that is due `x` after a
/// stall of `d` began waits `d - x`, and for those before it, each 0.1 ms: `d - 0.9 x`. The slowest
/// hundredth is due in the first 0.6 s of that. At the end nobody works off the queue, so that
/// `d - x` is the least that it may be.
#[test]
fn a_stall_moves_the_99th_percentile_wherever_it_is() {
    const STALL: u64 = 1900 * MS;
    for (name, from_ns, warm_up_ns, p99_s, unsent) in [
        ("start", 0, 0, 1.9 - 0.9 * 0.6, 0),
        ("middle", 30 * SECOND_NS, 0, 1.9 - 0.9 * 0.6, 0),
        ("end", 59 * SECOND_NS, 0, 1.9 - 0.6, 999),
        (
            "partly behind the end",
            59 * SECOND_NS + 800 * MS,
            0,
            0.000_1,
            199,
        ),
        // Of 1.9 s 0.9 s are left when the step begins; what the warm-up owes by then is forgiven.
        (
            "across the warm-up's edge",
            4 * SECOND_NS,
            5 * SECOND_NS,
            0.9 - 0.9 * 0.6,
            0,
        ),
        ("in the warm-up", SECOND_NS, 5 * SECOND_NS, 0.000_1, 0),
    ] {
        let (clock, control) = (Arc::new(FakeClock::default()), Arc::new(Control::default()));
        let outcome = run(
            &clock,
            &control,
            stalling(&clock, from_ns, STALL, fine),
            Stop::Time(60 * SECOND_NS),
            warm_up_ns,
        );
        let operation = &outcome.operations[0];
        assert_eq!(outcome.ended, Ended::Finished, "{name}");
        assert_conserved(operation);
        assert_eq!(
            (operation.unsent, operation.ok),
            (unsent, 60 * RATE - unsent),
            "{name}"
        );
        let found_s = response_p99_s(operation);
        assert!(
            (found_s - p99_s).abs() < 0.002 * p99_s.max(1.0),
            "{name}: {found_s} s and not {p99_s} s"
        );
        assert!(
            response_p99_s(&OperationRecord {
                response: Some(operation.service.clone()),
                ..operation.clone()
            }) < 0.000_2,
            "{name}"
        );
    }
}

/// The warm-up's last operation lasts to beyond the step: nothing is sent in the step, and
/// everything was due.
#[test]
fn a_step_that_is_never_reached_owes_all_of_it() {
    let (clock, control) = (Arc::new(FakeClock::default()), Arc::new(Control::default()));
    let outcome = run(
        &clock,
        &control,
        stalling(&clock, 4 * SECOND_NS, 62 * SECOND_NS, fine),
        Stop::Time(60 * SECOND_NS),
        5 * SECOND_NS,
    );
    let operation = &outcome.operations[0];
    assert_conserved(operation);
    assert_eq!((operation.ok, operation.unsent), (0, 60 * RATE));
    assert!((response_p99_s(operation) - (61.0 - 0.6)).abs() < 0.1);
    assert_eq!(operation.pacing.as_ref().unwrap().backlog, 60 * RATE);
}

/// Three times what it can do: of 60,000 operations 40,000 are never sent, in the time of a test.
#[test]
fn hundreds_of_thousands_that_are_owed_are_counted() {
    let (clock, control) = (Arc::new(FakeClock::default()), Arc::new(Control::default()));
    let worker = ScriptedWorker::new(clock.clone(), |_, _| (3 * MS, fine()));
    let outcome = run(&clock, &control, worker, Stop::Time(600 * SECOND_NS), 0);
    let operation = &outcome.operations[0];
    assert_conserved(operation);
    assert_eq!((operation.ok, operation.unsent), (200_000, 400_000));
    // What is known of them is uniform over the 400 s that the last one sent was late.
    let response = operation.response.as_ref().unwrap().decode().unwrap();
    assert!((response.value_at_quantile(0.5) as f64 / 200e9 - 1.0).abs() < 0.01);
}

#[test]
fn a_finish_ends_the_schedule_and_forgets_nothing() {
    let (clock, control) = (Arc::new(FakeClock::default()), Arc::new(Control::default()));
    let commands = control.clone();
    let finish = move || {
        commands.give(Command::Finish);
        fine()
    };
    let outcome = run(
        &clock,
        &control,
        stalling(&clock, 9 * SECOND_NS, 1900 * MS, finish),
        Stop::Time(24 * 3600 * SECOND_NS),
        0,
    );
    let operation = &outcome.operations[0];
    assert_conserved(operation);
    assert_eq!(
        (outcome.ended, operation.ok, operation.unsent),
        (Ended::Finished, 9001, 1899)
    );
    assert_eq!(outcome.clients[0].to_ns, 10_900 * MS);
    let pacing = operation.pacing.as_ref().unwrap();
    assert_eq!(
        (pacing.target_per_s, pacing.seconds, pacing.backlog),
        (RATE as f64, 10, 1899)
    );
}

/// Nobody owes what was due when somebody else ended the step.
#[test]
fn a_step_that_is_stopped_or_fails_owes_nothing() {
    for is_failure in [false, true] {
        let (clock, control) = (Arc::new(FakeClock::default()), Arc::new(Control::default()));
        let commands = control.clone();
        let end = move || {
            if is_failure {
                return Outcome::Failed(Failure {
                    class: "lost",
                    message: "no answer".into(),
                });
            }
            commands.give(Command::Stop);
            fine()
        };
        let outcome = run(
            &clock,
            &control,
            stalling(&clock, 9 * SECOND_NS, 1900 * MS, end),
            Stop::Time(60 * SECOND_NS),
            0,
        );
        let operation = &outcome.operations[0];
        assert_conserved(operation);
        assert_eq!(
            (operation.unsent, operation.ok),
            (0, 9000 + u64::from(!is_failure))
        );
        // Its schedule is cut where it was.
        assert_eq!(operation.pacing.as_ref().unwrap().target_per_s, RATE as f64);
    }
}

/// The stall is interrupted by a turn of somebody else; the clock stands still meanwhile.
#[test]
fn a_stall_across_a_turn_is_as_long_as_in_one() {
    let (clock, control) = (Arc::new(FakeClock::default()), Arc::new(Control::default()));
    let commands = control.clone();
    let park = move || {
        commands.give(Command::Park);
        fine()
    };
    let worker = stalling(&clock, 30 * SECOND_NS, 1900 * MS, park);
    let has_ended = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !has_ended.load(Ordering::SeqCst) {
                if control.command() == Command::Park
                    && control.wait_until_parked(Duration::from_secs(60))
                {
                    control.give(Command::Run);
                }
                std::thread::yield_now();
            }
        });
        let outcome = run(&clock, &control, worker, Stop::Time(60 * SECOND_NS), 0);
        has_ended.store(true, Ordering::SeqCst);
        outcome
    });
    let operation = &outcome.operations[0];
    assert_conserved(operation);
    assert_eq!((operation.ok, operation.unsent), (60 * RATE, 0));
    assert!((response_p99_s(operation) - (1.9 - 0.9 * 0.6)).abs() < 0.002);
}

/// On the clock of turns: an operation stalls until its turn is over, and the step finishes behind
/// it. What was due in active time is all that is owed. No duration decides: the sums are held
/// against the step's own clock.
#[test]
fn what_is_due_in_turns_is_done_or_owed() {
    struct Held(Arc<AtomicBool>, u64);
    impl Worker for Held {
        fn open(&mut self) -> Result<(), String> {
            Ok(())
        }
        fn prepare(&mut self) -> Result<Next, String> {
            self.1 += 1;
            Ok(Next::Operation(0))
        }
        fn execute(&mut self) -> Outcome {
            while self.1 == 20 && !self.0.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            fine()
        }
    }
    let control = Arc::new(Control::default());
    control.give(Command::Park);
    let clock = Arc::new(TurnClock::new(control.clone()));
    let (progress, is_free) = (
        Arc::new(TurnProgress::default()),
        Arc::new(AtomicBool::new(false)),
    );
    let worker = Held(is_free.clone(), 0);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            while progress.of_workers().is_empty() {
                std::thread::yield_now();
            }
            assert!(control.wait_until_parked(Duration::from_secs(60)));
            clock.pause();
            clock.resume();
            control.give(Command::Run);
            let from_ns = clock.now_ns();
            while clock.now_ns() < from_ns + 100 * MS {
                std::thread::sleep(Duration::from_millis(1));
            }
            control.give(Command::Park);
            is_free.store(true, Ordering::SeqCst);
            assert!(control.wait_until_parked(Duration::from_secs(60)));
            clock.pause();
            std::thread::sleep(Duration::from_millis(50));
            clock.resume();
            control.give(Command::Finish);
        });
        let task = Task {
            client: 1,
            kinds: vec![0],
            arrival: even(),
            stop: Stop::Time(24 * 3600 * SECOND_NS),
            worker: Box::new(worker),
        };
        let options = StepOptions {
            turn_progress: Some(progress.clone()),
            ..StepOptions::default()
        };
        run_step(
            &clock,
            &["op"],
            vec![task],
            &control,
            &options,
            StepOutputs {
                log: &mut std::io::sink(),
                progress: &mut |_: &Progress| {},
                seconds: &mut no_series,
            },
        )
        .unwrap()
    });
    let operation = &outcome.operations[0];
    assert_conserved(operation);
    assert_eq!(
        (outcome.ended, operation.ok),
        (Ended::Finished, 20),
        "parked behind the operation that was held, and then finished"
    );
    let pacing = operation.pacing.as_ref().unwrap();
    let due = (pacing.target_per_s * outcome.clients[0].to_ns as f64 / 1e9).round() as u64;
    assert!(
        operation.unsent >= 50,
        "80 ms of the turn at least: {}",
        operation.unsent
    );
    assert_eq!(operation.ok + operation.unsent, due);
}
