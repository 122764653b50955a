//! The recorder against known truth, on a clock that jumps.

use std::sync::Arc;

use plimsoll_core::record::OperationRecord;
use plimsoll_core::units::SECOND_NS;
use plimsoll_load::{
    Arrival, Control, Ended, Failure, Next, Outcome, Progress, StepOptions, StepOutcome,
    StepOutputs, Stop, Task, Worker, no_series, run_step,
};
use plimsoll_testkit::{FakeClock, ScriptedWorker};

const MS: u64 = 1_000_000;

fn run(
    clock: &Arc<FakeClock>,
    worker: impl Worker + 'static,
    arrival: Arrival,
    stop: Stop,
) -> (StepOutcome, Vec<u8>) {
    let task = Task {
        client: 1,
        kinds: vec![0],
        arrival,
        stop,
        worker: Box::new(worker),
    };
    let mut log = Vec::new();
    let mut progress = |_: &Progress| {};
    let mut ok = 0;
    let outcome = run_step(
        clock,
        &["op"],
        vec![task],
        &Arc::new(Control::default()),
        &StepOptions::default(),
        StepOutputs {
            log: &mut log,
            progress: &mut progress,
            seconds: &mut |row| {
                ok += row.counts.ok;
                Ok(())
            },
        },
    )
    .unwrap();
    assert_eq!(ok, outcome.operations[0].ok, "the series has them all");
    (outcome, log)
}

fn done(ns: u64) -> (u64, Outcome) {
    (ns, Outcome::Done { rows: 1 })
}

fn assert_conserved(operation: &OperationRecord) {
    assert_eq!(
        operation.attempts,
        operation.ok + operation.retried + operation.failed
    );
    assert_eq!(operation.service.decode().unwrap().len(), operation.ok);
    let unsuccessful = operation
        .unsuccessful
        .as_ref()
        .map_or(0, |histogram| histogram.decode().unwrap().len());
    assert_eq!(unsuccessful, operation.retried + operation.failed);
    if let Some(response) = &operation.response {
        assert_eq!(response.decode().unwrap().len(), operation.ok);
    }
    assert_eq!(
        operation.errors.values().sum::<u64>(),
        operation.retried + operation.failed
    );
}

#[track_caller]
fn assert_near(found_ns: f64, wanted_ms: f64) {
    let found_ms = found_ns / 1e6;
    assert!(
        (found_ms / wanted_ms - 1.0).abs() < 0.02,
        "{found_ms} ms is not within 2 % of {wanted_ms} ms"
    );
}

/// 500 operations per second of 1 ms each for 30 s on one connection, and one stall of 2 s: 15,000
/// operations. By hand: the stall makes 1,000 operations late, the queue then drains 500 a second,
/// so 2,000 operations have a response time of up to 2 s.
#[test]
fn a_stall_shows_in_response_times_and_hides_in_service_times() {
    let clock = Arc::new(FakeClock::default());
    let mut stalled = false;
    let worker = ScriptedWorker::new(clock.clone(), move |_, now| {
        if !stalled && now >= 10 * SECOND_NS {
            stalled = true;
            return done(2 * SECOND_NS + MS);
        }
        done(MS)
    });
    let arrival = Arrival::Even {
        operations: 500,
        period_ns: SECOND_NS,
        phase_ns: 0,
    };
    let (outcome, _) = run(&clock, worker, arrival, Stop::Operations(15_000));
    assert_eq!(outcome.ended, Ended::Finished);
    let operation = &outcome.operations[0];
    assert_conserved(operation);
    assert_eq!(operation.ok, 15_000, "no slot is skipped");
    let service = operation.service.decode().unwrap();
    assert_near(service.mean(), 1.13);
    for quantile in [0.5, 0.9, 0.95, 0.99, 0.999] {
        assert_near(service.value_at_quantile(quantile) as f64, 1.0);
    }
    let response = operation.response.as_ref().unwrap().decode().unwrap();
    assert_near(response.mean(), 134.0);
    for (quantile, ms) in [
        (0.9, 502.0),
        (0.95, 1252.0),
        (0.99, 1852.0),
        (0.999, 1987.0),
    ] {
        assert_near(response.value_at_quantile(quantile) as f64, ms);
    }
    let pacing = operation.pacing.as_ref().unwrap();
    assert_eq!(
        (pacing.seconds, pacing.seconds_under, pacing.backlog),
        (30, 2, 0)
    );
    assert!(
        (pacing.achieved_per_s / pacing.target_per_s - 1.0).abs() < 1e-3,
        "made up for: {pacing:?}"
    );
}

#[test]
fn a_closed_loop_has_no_response_time() {
    let clock = Arc::new(FakeClock::default());
    let worker = ScriptedWorker::new(clock.clone(), |_, _| done(3 * MS));
    let (outcome, _) = run(&clock, worker, Arrival::Closed, Stop::Time(3 * SECOND_NS));
    let operation = &outcome.operations[0];
    assert_conserved(operation);
    assert_eq!(
        (
            operation.ok,
            operation.response.is_none(),
            operation.pacing.is_none()
        ),
        (1000, true, true)
    );
    assert_eq!(outcome.elapsed_ns, 3 * SECOND_NS);
}

#[test]
fn retries_keep_the_due_instant_and_are_counted() {
    let clock = Arc::new(FakeClock::default());
    // Every second operation needs three tries of 1 ms.
    let worker = ScriptedWorker::new(clock.clone(), |attempt, _| match attempt % 4 {
        0 | 3 => done(MS),
        _ => (MS, Outcome::Retry { class: "busy" }),
    });
    let arrival = Arrival::Even {
        operations: 10,
        period_ns: SECOND_NS,
        phase_ns: 0,
    };
    let (outcome, _) = run(&clock, worker, arrival, Stop::Operations(20));
    let operation = &outcome.operations[0];
    assert_conserved(operation);
    assert_eq!(
        (
            operation.attempts,
            operation.ok,
            operation.retried,
            operation.failed
        ),
        (40, 20, 20, 0)
    );
    assert_eq!(operation.errors["busy"], 20);
    assert_eq!(
        operation.wait_ns,
        20 * MS + 10 * (50_000 + 100_000),
        "tries that met the lock and the pauses after them"
    );
    assert_near(operation.service.decode().unwrap().max() as f64, 1.0);
    assert_near(
        operation.response.as_ref().unwrap().decode().unwrap().max() as f64,
        3.15,
    );
}

#[test]
fn an_operation_that_stays_locked_out_fails_at_its_deadline() {
    let clock = Arc::new(FakeClock::default());
    let worker = ScriptedWorker::new(clock.clone(), |_, _| (MS, Outcome::Retry { class: "busy" }));
    let (outcome, _) = run(&clock, worker, Arrival::Closed, Stop::Operations(1));
    let Ended::Failed(failure) = &outcome.ended else {
        panic!("{:?}", outcome.ended)
    };
    assert_eq!(
        failure.message,
        "the operation was still refused (busy) after 60 s of retries"
    );
    assert_conserved(&outcome.operations[0]);
    assert_eq!(
        (outcome.operations[0].ok, outcome.operations[0].failed),
        (0, 1)
    );
}

fn lost(ns: u64) -> (u64, Outcome) {
    (
        ns,
        Outcome::Lost {
            message: "the server is away in: select 1".into(),
        },
    )
}

/// 10 operations per second; from the 11th on there is no connection for two seconds, then there is
/// one again.
#[test]
fn an_outage_is_response_time_of_the_operations_that_were_due() {
    let clock = Arc::new(FakeClock::default());
    let back_at = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let worker = ScriptedWorker::new(clock.clone(), {
        let back_at = back_at.clone();
        move |attempt, now| {
            if attempt == 10 {
                back_at.store(now + 2 * SECOND_NS, std::sync::atomic::Ordering::Relaxed);
            }
            if now < back_at.load(std::sync::atomic::Ordering::Relaxed) {
                lost(MS)
            } else {
                done(MS)
            }
        }
    });
    let arrival = Arrival::Even {
        operations: 10,
        period_ns: SECOND_NS,
        phase_ns: 0,
    };
    let (outcome, _) = run(&clock, worker, arrival, Stop::Operations(50));
    assert_eq!(outcome.ended, Ended::Finished);
    let operation = &outcome.operations[0];
    assert_conserved(operation);
    assert_eq!(
        (operation.ok, operation.failed),
        (50, 0),
        "no slot is skipped"
    );
    assert_eq!(operation.errors.keys().collect::<Vec<_>>(), ["lost"]);
    // Pauses double up to a quarter of a second: about a dozen and the rest of two seconds by four.
    assert!(
        (10..30).contains(&operation.retried),
        "{}",
        operation.retried
    );
    let response = operation.response.as_ref().unwrap().decode().unwrap();
    let longest = response.max();
    assert!(
        (2 * SECOND_NS..=2 * SECOND_NS + 260 * MS).contains(&longest),
        "{longest}"
    );
    let late =
        (response.len() as f64 * (1.0 - response.percentile_below(100 * MS) / 100.0)).round();
    assert!(
        (18.0..=23.0).contains(&late),
        "two seconds of ten operations were late, not {late}"
    );
    assert_near(operation.service.decode().unwrap().max() as f64, 1.0);
}

/// A closed loop has no response times: what its service times do not have is in its wait alone.
#[test]
fn an_outage_of_a_closed_loop_is_waiting_to_the_nanosecond() {
    let clock = Arc::new(FakeClock::default());
    // After ten operations of 1 ms nothing answers for so many tries.
    const TRIES: u64 = 30;
    let worker = ScriptedWorker::new(clock.clone(), |attempt, _| match attempt {
        10..40 => lost(MS),
        _ => done(MS),
    });
    let (outcome, _) = run(&clock, worker, Arrival::Closed, Stop::Operations(20));
    let operation = &outcome.operations[0];
    assert_conserved(operation);
    assert_eq!(
        (
            operation.ok,
            operation.retried,
            operation.failed,
            operation.response.is_none()
        ),
        (20, TRIES, 0, true)
    );
    assert_near(operation.service.decode().unwrap().max() as f64, 1.0);
    assert_eq!(
        operation.wait_ns,
        outcome.elapsed_ns - 20 * MS,
        "all that is not an operation's service time"
    );
    assert!(operation.wait_ns > 4 * SECOND_NS, "{}", operation.wait_ns);
}

#[test]
fn an_outage_without_end_fails_the_operation_at_its_deadline() {
    let clock = Arc::new(FakeClock::default());
    let worker = ScriptedWorker::new(clock.clone(), |_, _| lost(MS));
    let (outcome, _) = run(&clock, worker, Arrival::Closed, Stop::Operations(1));
    let Ended::Failed(failure) = &outcome.ended else {
        panic!("{:?}", outcome.ended)
    };
    assert_eq!(failure.class, "lost");
    assert_eq!(
        failure.message,
        "the connection was lost and did not come back in 30 s: the server is away in: select 1"
    );
    assert_conserved(&outcome.operations[0]);
    assert_eq!(
        (outcome.operations[0].ok, outcome.operations[0].failed),
        (0, 1)
    );
    assert!(
        (30 * SECOND_NS..31 * SECOND_NS).contains(&outcome.elapsed_ns),
        "{}",
        outcome.elapsed_ns
    );
}

/// The connection is lost by what a worker asks between its operations.
#[test]
fn an_outage_between_operations_is_waited_for_too() {
    struct LookUp(u32);
    impl Worker for LookUp {
        fn open(&mut self) -> Result<(), String> {
            Ok(())
        }
        fn prepare(&mut self) -> Result<Next, String> {
            self.0 += 1;
            Ok(if self.0.is_multiple_of(5) {
                Next::Operation(0)
            } else {
                Next::Lost {
                    message: "away".into(),
                }
            })
        }
        fn execute(&mut self) -> Outcome {
            Outcome::Done { rows: 1 }
        }
    }
    let clock = Arc::new(FakeClock::default());
    let (outcome, _) = run(&clock, LookUp(0), Arrival::Closed, Stop::Operations(3));
    assert_eq!(
        (
            outcome.ended,
            outcome.operations[0].ok,
            outcome.operations[0].attempts
        ),
        (Ended::Finished, 3, 3)
    );
    assert_eq!(outcome.elapsed_ns, 3 * (50 + 100 + 200 + 400) * 1000);
    assert_eq!(
        outcome.operations[0].wait_ns, outcome.elapsed_ns,
        "what reports say that percentiles exclude"
    );
    struct Never;
    impl Worker for Never {
        fn open(&mut self) -> Result<(), String> {
            Ok(())
        }
        fn prepare(&mut self) -> Result<Next, String> {
            Ok(Next::Lost {
                message: "away".into(),
            })
        }
        fn execute(&mut self) -> Outcome {
            unreachable!()
        }
    }
    let (outcome, _) = run(&clock, Never, Arrival::Closed, Stop::Operations(3));
    assert!(
        matches!(&outcome.ended, Ended::Failed(failure) if failure.message.ends_with("did not come \
            back in 30 s: away"))
    );
}

#[test]
fn a_failed_operation_is_counted_as_failed_and_ends_the_step() {
    let clock = Arc::new(FakeClock::default());
    let failure = Failure {
        class: "statement",
        message: "no such table in: insert into nowhere".into(),
    };
    let reported = failure.clone();
    let worker = ScriptedWorker::new(clock.clone(), move |attempt, _| match attempt {
        0..10 => done(MS),
        _ => (MS, Outcome::Failed(reported.clone())),
    });
    let (outcome, _) = run(&clock, worker, Arrival::Closed, Stop::Operations(100));
    assert_eq!(outcome.ended, Ended::Failed(failure));
    assert_conserved(&outcome.operations[0]);
    assert_eq!(
        (outcome.operations[0].ok, outcome.operations[0].failed),
        (10, 1)
    );
}

#[test]
fn a_panic_in_a_worker_ends_the_step() {
    let clock = Arc::new(FakeClock::default());
    let worker = ScriptedWorker::new(clock.clone(), |attempt, _| {
        if attempt < 3 {
            done(MS)
        } else {
            panic!("planted")
        }
    });
    let (outcome, _) = run(&clock, worker, Arrival::Closed, Stop::Operations(100));
    assert!(
        matches!(&outcome.ended, Ended::Failed(failure) if failure.class == "panic"),
        "{:?}",
        outcome.ended
    );
}

/// 10 ms each; a try that is refused in the warm-up and one after it. 5 s of warm-up and 2 s of
/// step: 200 operations, and no more.
#[test]
fn a_warm_up_is_performed_and_not_recorded() {
    struct Warming<W>(W, Arc<std::sync::atomic::AtomicU64>, u64);
    impl<W: Worker> Worker for Warming<W> {
        fn open(&mut self) -> Result<(), String> {
            self.0.open()
        }
        fn prepare(&mut self) -> Result<Next, String> {
            self.2 += 1;
            self.0.prepare()
        }
        fn begin_measuring(&mut self) {
            self.1.store(self.2, std::sync::atomic::Ordering::Relaxed);
        }
        fn execute(&mut self) -> Outcome {
            self.0.execute()
        }
    }
    let clock = Arc::new(FakeClock::default());
    let mut refusals = [SECOND_NS, 6 * SECOND_NS].into_iter().peekable();
    let worker = ScriptedWorker::new(clock.clone(), move |_, now| {
        if refusals.next_if(|at| now >= *at).is_some() {
            (10 * MS, Outcome::Retry { class: "busy" })
        } else {
            done(10 * MS)
        }
    });
    let first_measured = Arc::new(std::sync::atomic::AtomicU64::default());
    let worker = Warming(worker, first_measured.clone(), 0);
    let task = Task {
        client: 1,
        kinds: vec![0],
        arrival: Arrival::Closed,
        stop: Stop::Time(2 * SECOND_NS),
        worker: Box::new(worker),
    };
    let options = StepOptions {
        warm_up_ns: 5 * SECOND_NS,
        ..StepOptions::default()
    };
    let mut progress = |_: &Progress| {};
    let control = Arc::new(Control::default());
    let mut seconds = Vec::new();
    let outcome = run_step(
        &clock,
        &["op"],
        vec![task],
        &control,
        &options,
        StepOutputs {
            log: &mut std::io::sink(),
            progress: &mut progress,
            seconds: &mut |row| {
                seconds.push(row.counts.ok);
                Ok(())
            },
        },
    )
    .unwrap();
    assert_eq!(outcome.ended, Ended::Finished);
    let operation = &outcome.operations[0];
    assert_conserved(operation);
    assert_eq!(operation.retried, 1);
    assert!((198..=200).contains(&operation.ok), "{}", operation.ok);
    assert!(
        (499..=501).contains(&first_measured.load(std::sync::atomic::Ordering::Relaxed)),
        "{first_measured:?}"
    );
    let client = &outcome.clients[0];
    assert_eq!(client.ok, operation.ok);
    assert!(
        (2 * SECOND_NS..2 * SECOND_NS + 20 * MS).contains(&client.to_ns),
        "{}",
        client.to_ns
    );
    assert_eq!(seconds.iter().sum::<u64>(), operation.ok);
    assert_eq!(seconds.len(), 3);
}

/// One operation that lasts from the warm-up to behind the end: nothing is recorded, and the worker
/// is notified once.
#[test]
fn a_worker_that_never_gets_warm_has_done_nothing() {
    struct Told<W>(W, Arc<std::sync::atomic::AtomicU64>);
    impl<W: Worker> Worker for Told<W> {
        fn open(&mut self) -> Result<(), String> {
            self.0.open()
        }
        fn prepare(&mut self) -> Result<Next, String> {
            self.0.prepare()
        }
        fn begin_measuring(&mut self) {
            self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        fn execute(&mut self) -> Outcome {
            self.0.execute()
        }
    }
    let clock = Arc::new(FakeClock::default());
    let told = Arc::new(std::sync::atomic::AtomicU64::default());
    let worker = Told(
        ScriptedWorker::new(clock.clone(), |_, _| done(10 * SECOND_NS)),
        told.clone(),
    );
    let task = Task {
        client: 1,
        kinds: vec![0],
        arrival: Arrival::Closed,
        stop: Stop::Time(2 * SECOND_NS),
        worker: Box::new(worker),
    };
    let options = StepOptions {
        warm_up_ns: 5 * SECOND_NS,
        ..StepOptions::default()
    };
    let mut progress = |_: &Progress| {};
    let control = Arc::new(Control::default());
    let outcome = run_step(
        &clock,
        &["op"],
        vec![task],
        &control,
        &options,
        StepOutputs {
            log: &mut std::io::sink(),
            progress: &mut progress,
            seconds: &mut no_series,
        },
    )
    .unwrap();
    assert_eq!(
        (
            outcome.operations[0].ok,
            told.load(std::sync::atomic::Ordering::Relaxed)
        ),
        (0, 1)
    );
}

/// 100 a second of 25 ms each: the warm-up falls behind by 3 s in 5 s, and what it owes is
/// forgiven. Then operations are quick, and none is late.
#[test]
fn a_schedule_begins_anew_after_the_warm_up() {
    let clock = Arc::new(FakeClock::default());
    let worker = ScriptedWorker::new(clock.clone(), |_, now| {
        done(if now < 5 * SECOND_NS { 25 * MS } else { 2 * MS })
    });
    let arrival = Arrival::Even {
        operations: 100,
        period_ns: SECOND_NS,
        phase_ns: 0,
    };
    let task = Task {
        client: 1,
        kinds: vec![0],
        arrival,
        stop: Stop::Time(4 * SECOND_NS),
        worker: Box::new(worker),
    };
    let options = StepOptions {
        warm_up_ns: 5 * SECOND_NS,
        ..StepOptions::default()
    };
    let mut progress = |_: &Progress| {};
    let control = Arc::new(Control::default());
    let outcome = run_step(
        &clock,
        &["op"],
        vec![task],
        &control,
        &options,
        StepOutputs {
            log: &mut std::io::sink(),
            progress: &mut progress,
            seconds: &mut no_series,
        },
    )
    .unwrap();
    let operation = &outcome.operations[0];
    assert_conserved(operation);
    assert_eq!(operation.ok, 400);
    let pacing = operation.pacing.as_ref().unwrap();
    assert_eq!(
        (pacing.seconds, pacing.seconds_under, pacing.backlog),
        (4, 0, 0)
    );
    // At the very start the last operation of the warm-up is still under way.
    assert!(operation.response.as_ref().unwrap().decode().unwrap().max() < 60 * MS);
}

/// Of a thousand operations every hundredth is refused for good: 1 % of them.
fn failing_run(max_failed: Option<f64>, class: &'static str, arrival: Arrival) -> StepOutcome {
    let clock = Arc::new(FakeClock::default());
    let mut operation = 0;
    let worker = ScriptedWorker::new(clock.clone(), move |_, _| {
        operation += 1;
        if operation % 100 == 50 {
            (
                3 * MS,
                Outcome::Failed(Failure {
                    class,
                    message: "no".into(),
                }),
            )
        } else {
            done(MS)
        }
    });
    let task = Task {
        client: 1,
        kinds: vec![0],
        arrival,
        stop: Stop::Operations(1000),
        worker: Box::new(worker),
    };
    let options = StepOptions {
        max_failed,
        ..StepOptions::default()
    };
    let mut progress = |_: &Progress| {};
    run_step(
        &clock,
        &["op"],
        vec![task],
        &Arc::new(Control::default()),
        &options,
        StepOutputs {
            log: &mut std::io::sink(),
            progress: &mut progress,
            seconds: &mut no_series,
        },
    )
    .unwrap()
}

#[test]
fn a_share_of_the_operations_may_fail() {
    let even = Arrival::Even {
        operations: 500,
        period_ns: SECOND_NS,
        phase_ns: 0,
    };
    for arrival in [Arrival::Closed, even] {
        let outcome = failing_run(Some(0.01), "statement", arrival.clone());
        let operation = &outcome.operations[0];
        assert_eq!(outcome.ended, Ended::Finished);
        assert_conserved(operation);
        assert_eq!(
            (operation.attempts, operation.ok, operation.failed),
            (1000, 990, 10)
        );
        // They have a histogram of their own.
        assert_near(
            operation
                .unsuccessful
                .as_ref()
                .unwrap()
                .decode()
                .unwrap()
                .max() as f64,
            3.0,
        );
        assert_near(operation.service.decode().unwrap().max() as f64, 1.0);

        let outcome = failing_run(Some(0.0099), "statement", arrival);
        assert_conserved(&outcome.operations[0]);
        assert_eq!(
            outcome.operations[0].attempts, 1000,
            "the step is judged at its end"
        );
        let Ended::Failed(failure) = outcome.ended else {
            panic!("{:?}", outcome.ended)
        };
        assert_eq!(
            failure.message,
            "10 of 1000 operations failed, 1.000 %, and 0.99 % may; the first: no"
        );
    }
}

#[test]
fn without_a_share_or_with_an_uncertain_failure_the_first_one_is_the_end() {
    for (max_failed, class) in [
        (None, "statement"),
        (Some(0.5), "lost"),
        (Some(0.5), "rows"),
    ] {
        let outcome = failing_run(max_failed, class, Arrival::Closed);
        assert!(
            matches!(&outcome.ended, Ended::Failed(failure) if failure.class == class),
            "{class}"
        );
        assert_eq!(outcome.operations[0].attempts, 50);
    }
}

/// The client is done with 10 s of 100 operations a second; then one is refused until its deadline.
/// It took 70 s, and not 10.
#[test]
fn a_window_ends_with_the_last_try_and_not_with_the_last_success() {
    for stop in [Stop::Time(60 * SECOND_NS), Stop::Operations(1001)] {
        let clock = Arc::new(FakeClock::default());
        let worker = ScriptedWorker::new(clock.clone(), |attempt, _| match attempt {
            0..1000 => done(10 * MS),
            _ => (10 * MS, Outcome::Retry { class: "busy" }),
        });
        let task = Task {
            client: 1,
            kinds: vec![0],
            arrival: Arrival::Closed,
            stop,
            worker: Box::new(worker),
        };
        let options = StepOptions {
            max_failed: Some(0.5),
            ..StepOptions::default()
        };
        let mut progress = |_: &Progress| {};
        let control = Arc::new(Control::default());
        let outcome = run_step(
            &clock,
            &["op"],
            vec![task],
            &control,
            &options,
            StepOutputs {
                log: &mut std::io::sink(),
                progress: &mut progress,
                seconds: &mut no_series,
            },
        )
        .unwrap();
        assert_eq!(
            (
                outcome.ended,
                outcome.operations[0].ok,
                outcome.operations[0].failed
            ),
            (Ended::Finished, 1000, 1)
        );
        let client = &outcome.clients[0];
        assert!(
            (70 * SECOND_NS..71 * SECOND_NS).contains(&client.to_ns),
            "{client:?}"
        );
    }
}

/// Whoever waits for another at the end was at it until then.
#[test]
fn a_window_by_time_lasts_to_the_end_of_the_time() {
    struct Waits<W>(W, Arc<FakeClock>);
    impl<W: Worker> Worker for Waits<W> {
        fn open(&mut self) -> Result<(), String> {
            Ok(())
        }
        fn prepare(&mut self) -> Result<Next, String> {
            use plimsoll_core::clock::Clock;
            if self.1.now_ns() > 2 * SECOND_NS {
                Ok(Next::Later)
            } else {
                self.0.prepare()
            }
        }
        fn execute(&mut self) -> Outcome {
            self.0.execute()
        }
    }
    let clock = Arc::new(FakeClock::default());
    let worker = Waits(
        ScriptedWorker::new(clock.clone(), |_, _| done(MS)),
        clock.clone(),
    );
    let (outcome, _) = run(&clock, worker, Arrival::Closed, Stop::Time(3 * SECOND_NS));
    assert!(
        (3 * SECOND_NS..3 * SECOND_NS + MS).contains(&outcome.clients[0].to_ns),
        "{:?}",
        outcome.clients
    );
}

/// Index creation comes after the inserts, and first meets a lock.
#[test]
fn a_kind_that_comes_later_begins_with_its_first_try() {
    struct Later<W>(W, u64);
    impl<W: Worker> Worker for Later<W> {
        fn open(&mut self) -> Result<(), String> {
            Ok(())
        }
        fn prepare(&mut self) -> Result<Next, String> {
            self.1 += 1;
            Ok(if self.1 > 3 {
                Next::Finished
            } else {
                Next::Operation(usize::from(self.1 > 1))
            })
        }
        fn execute(&mut self) -> Outcome {
            self.0.execute()
        }
    }
    let clock = Arc::new(FakeClock::default());
    let worker = ScriptedWorker::new(clock.clone(), |attempt, _| match attempt {
        1..=20 => (SECOND_NS, Outcome::Retry { class: "busy" }),
        _ => done(SECOND_NS),
    });
    let stop = Stop::Worker {
        planned: 0,
        length_ns: 0,
    };
    let task = Task {
        client: 1,
        kinds: vec![0, 1],
        arrival: Arrival::Closed,
        stop,
        worker: Box::new(Later(worker, 0)),
    };
    let mut progress = |_: &Progress| {};
    let control = Arc::new(Control::default());
    let options = StepOptions::default();
    let outcome = run_step(
        &clock,
        &["insert", "index"],
        vec![task],
        &control,
        &options,
        StepOutputs {
            log: &mut std::io::sink(),
            progress: &mut progress,
            seconds: &mut no_series,
        },
    )
    .unwrap();
    let index = outcome
        .clients
        .iter()
        .find(|client| client.kind == "index")
        .unwrap();
    assert_eq!(index.from_ns, SECOND_NS, "{index:?}");
}

/// Two kinds in turn on one worker: their rates have one window, and the schedule is accounted for
/// once.
#[test]
fn kinds_in_turn_share_a_window_and_a_schedule() {
    struct Turns<F>(ScriptedWorker<F>, u64);
    impl<F: FnMut(u64, u64) -> (u64, Outcome) + Send> Worker for Turns<F> {
        fn open(&mut self) -> Result<(), String> {
            Ok(())
        }
        fn prepare(&mut self) -> Result<Next, String> {
            self.1 += 1;
            self.0.prepare()?;
            Ok(Next::Operation(usize::from(self.1.is_multiple_of(100))))
        }
        fn execute(&mut self) -> Outcome {
            self.0.execute()
        }
    }
    let clock = Arc::new(FakeClock::default());
    let worker = Turns(ScriptedWorker::new(clock.clone(), |_, _| done(MS)), 0);
    let arrival = Arrival::Even {
        operations: 100,
        period_ns: SECOND_NS,
        phase_ns: 0,
    };
    let task = Task {
        client: 1,
        kinds: vec![0, 1],
        arrival,
        stop: Stop::Time(4 * SECOND_NS + SECOND_NS / 2),
        worker: Box::new(worker),
    };
    let mut log = Vec::new();
    let mut progress = |_: &Progress| {};
    let control = Arc::new(Control::default());
    let outcome = run_step(
        &clock,
        &["many", "few"],
        vec![task],
        &control,
        &StepOptions::default(),
        StepOutputs {
            log: &mut log,
            progress: &mut progress,
            seconds: &mut no_series,
        },
    )
    .unwrap();
    assert_eq!(
        outcome
            .operations
            .iter()
            .map(|operation| operation.ok)
            .collect::<Vec<_>>(),
        [446, 4]
    );
    assert!(
        outcome
            .clients
            .iter()
            .all(|client| client.from_ns == 0 && client.to_ns == outcome.clients[0].to_ns),
        "{:?}",
        outcome.clients
    );
    let pacing = outcome.operations[0].pacing.as_ref().unwrap();
    assert_eq!(
        (
            pacing.seconds_under,
            pacing.backlog,
            outcome.operations[1].pacing.is_some()
        ),
        (0, 0, false)
    );
    assert!((pacing.achieved_per_s - 100.0).abs() < 1.0, "{pacing:?}");
    // The last interval of the log is as long as it was.
    let log = String::from_utf8(log).unwrap();
    let last = log
        .lines()
        .rfind(|line| line.starts_with("Tag=many.service,"))
        .unwrap();
    let length: f64 = last.split(',').nth(2).unwrap().parse().unwrap();
    assert!((0.4..0.6).contains(&length), "{last}");
}
