//! Workers that get turns: they hold still between them, and their clock does too. No timing
//! decides: every wait is for a state.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_core::clock::Clock;
use plimsoll_core::units::SECOND_NS;
use plimsoll_load::{
    Arrival, Command, Control, Ended, Failure, MonotonicClock, Next, Outcome, Progress,
    StepOptions, StepOutcome, StepOutputs, Stop, Task, TurnClock, TurnProgress, Worker, no_series,
    run_step,
};

const MS: u64 = 1_000_000;
const DAY_NS: u64 = 24 * 3600 * 1000 * MS;
const LIMIT: Duration = Duration::from_secs(60);

/// Counts operations that take a tenth of a millisecond.
struct Count(Arc<AtomicU64>);

impl Worker for Count {
    fn open(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn prepare(&mut self) -> Result<Next, String> {
        Ok(Next::Operation(0))
    }

    fn execute(&mut self) -> Outcome {
        thread::sleep(Duration::from_micros(100));
        self.0.fetch_add(1, Ordering::SeqCst);
        Outcome::Done { rows: 1 }
    }
}

struct Stage {
    control: Arc<Control>,
    clock: Arc<TurnClock>,
    progress: Arc<TurnProgress>,
    count: Arc<AtomicU64>,
}

impl Stage {
    fn new() -> Self {
        let control = Arc::new(Control::default());
        control.give(Command::Park);
        Self {
            clock: Arc::new(TurnClock::new(control.clone())),
            control,
            progress: Arc::default(),
            count: Arc::default(),
        }
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    fn settle(&self) {
        self.control.give(Command::Park);
        assert!(self.control.wait_until_parked(LIMIT));
        self.clock.pause();
    }

    /// Lets the workers work until the clock has gone on by so much.
    fn turn(&self, length_ns: u64) {
        let until_ns = self.clock.now_ns() + length_ns;
        self.clock.resume();
        self.control.give(Command::Run);
        while self.clock.now_ns() < until_ns {
            thread::sleep(Duration::from_micros(200));
        }
        self.settle();
    }

    fn finish(&self) {
        self.clock.resume();
        self.control.give(Command::Finish);
    }

    /// Runs a step whose turns `direct` hands out.
    fn run(&self, tasks: Vec<Task>, direct: impl FnOnce(&Self) + Send) -> StepOutcome {
        self.run_with(StepOptions::default(), tasks, direct)
    }

    fn run_with(
        &self,
        options: StepOptions,
        tasks: Vec<Task>,
        direct: impl FnOnce(&Self) + Send,
    ) -> StepOutcome {
        thread::scope(|scope| {
            scope.spawn(|| {
                while self.progress.of_workers().is_empty() {
                    thread::yield_now();
                }
                // A test that fails here leaves no worker parked for ever.
                let failed = catch_unwind(AssertUnwindSafe(|| direct(self))).err();
                if let Some(failed) = failed {
                    self.clock.resume();
                    self.control.give(Command::Stop);
                    resume_unwind(failed);
                }
            });
            let options = StepOptions {
                turn_progress: Some(self.progress.clone()),
                ..options
            };
            let mut progress = |_: &Progress| {};
            run_step(
                &self.clock,
                &["op"],
                tasks,
                &self.control,
                &options,
                StepOutputs {
                    log: &mut std::io::sink(),
                    progress: &mut progress,
                    seconds: &mut no_series,
                },
            )
            .unwrap()
        })
    }

    fn task(&self, client: u32, arrival: Arrival, stop: Stop) -> Task {
        Task {
            client,
            kinds: vec![0],
            arrival,
            stop,
            worker: Box::new(Count(self.count.clone())),
        }
    }
}

#[test]
fn nothing_is_done_between_turns_and_the_progress_shows_what_was() {
    let stage = Stage::new();
    let tasks = (1..=3)
        .map(|client| stage.task(client, Arrival::Closed, Stop::Time(DAY_NS)))
        .collect();
    let outcome = stage.run(tasks, |stage| {
        stage.settle();
        assert_eq!(stage.count(), 0, "nobody works before the first turn");
        for turn in 1..=5 {
            let (before, stood_at) = (stage.count(), stage.clock.now_ns());
            stage.turn(10 * MS);
            let done = stage.count();
            assert!(done > before, "turn {turn}");
            let of_workers = stage.progress.of_workers();
            assert_eq!(
                of_workers.iter().map(|of_worker| of_worker.ok).sum::<u64>(),
                done
            );
            let now_ns = stage.clock.now_ns();
            assert!(
                of_workers
                    .iter()
                    .all(|of_worker| of_worker.last_done_ns > stood_at
                        && of_worker.last_done_ns <= now_ns),
                "{of_workers:?} {now_ns}"
            );
            thread::sleep(Duration::from_millis(20));
            assert_eq!(
                (stage.count(), stage.clock.now_ns()),
                (done, now_ns),
                "all hold still, the clock too"
            );
        }
        stage.finish();
    });
    assert_eq!(outcome.ended, Ended::Finished);
    assert_eq!(outcome.operations[0].ok, stage.count());
}

/// A cold server's first half second was a quarter of all operations that p99 was taken of, and its
/// first operation of a turn more than one of a hundred.
#[test]
fn times_of_warming_up_are_in_no_histogram() {
    let stage = Stage::new();
    let tasks = [Arrival::Closed, even_ms(10)]
        .into_iter()
        .zip(1..)
        .map(|(arrival, client)| stage.task(client, arrival, Stop::Time(DAY_NS)))
        .collect();
    let noted = Arc::new(AtomicU64::new(0));
    let warm_up_operations = noted.clone();
    let outcome = stage.run(tasks, move |stage| {
        stage.settle();
        // Longer than a second: some of it is handed over, and written, before it is left out.
        for _ in 0..3 {
            stage.turn(700 * MS);
        }
        noted.store(stage.count(), Ordering::SeqCst);
        stage.progress.leave_out_times();
        for _ in 0..4 {
            let before = stage.count();
            stage.progress.discard_times(true);
            stage.turn(100 * MS);
            noted.fetch_add(stage.count() - before, Ordering::SeqCst);
            stage.progress.discard_times(false);
            stage.turn(300 * MS);
        }
        stage.finish();
    });
    let operation = &outcome.operations[0];
    let service = operation.service.decode().unwrap();
    let warm_up = warm_up_operations.load(Ordering::SeqCst);
    assert!(warm_up > 0 && operation.ok > warm_up);
    assert_eq!(
        service.len(),
        operation.ok - warm_up,
        "counts have them, times have not"
    );
    // Of the worker with a schedule, and what it owes at the end.
    let of_schedule = outcome.clients.iter().find(|client| client.client == 2);
    let most = of_schedule.unwrap().ok + operation.unsent;
    for times in [&operation.response, &operation.lag] {
        let times = times.as_ref().unwrap().decode().unwrap();
        assert!(!times.is_empty() && times.len() < most, "{}", times.len());
    }
}

fn even_ms(every_ms: u64) -> Arrival {
    Arrival::Even {
        operations: 1,
        period_ns: every_ms * MS,
        phase_ns: 0,
    }
}

#[test]
fn an_open_loop_is_due_as_often_per_active_second() {
    let stage = Stage::new();
    let arrival = Arrival::Even {
        operations: 200,
        period_ns: 1_000 * MS,
        phase_ns: 0,
    };
    let begin = Instant::now();
    let outcome = stage.run(vec![stage.task(1, arrival, Stop::Time(DAY_NS))], |stage| {
        stage.settle();
        for _ in 0..10 {
            stage.turn(20 * MS);
            thread::sleep(Duration::from_millis(60));
        }
        stage.finish();
    });
    let pacing = outcome.operations[0].pacing.clone().unwrap();
    let active_ns = outcome.elapsed_ns;
    // On a slow machine turns are longer, and then more is due: five milliseconds apart, and the
    // one at the start.
    let due = active_ns / (5 * MS) + 1;
    let done = outcome.operations[0].ok;
    assert!(
        done <= due && done + 2 >= due.min(10 * 4),
        "{done} of {due} in {active_ns} ns"
    );
    assert!(
        begin.elapsed() > Duration::from_nanos(active_ns) + Duration::from_millis(500),
        "the clock stood still meanwhile"
    );
    assert_eq!(
        outcome.clients[0].to_ns.max(active_ns),
        active_ns,
        "the schedule ends with the step, not with the day"
    );
    assert!(pacing.seconds <= active_ns / SECOND_NS + 1, "{pacing:?}");
}

#[test]
fn finish_ends_by_time_and_leaves_the_others_to_their_own_rules() {
    let stage = Stage::new();
    let tasks = vec![
        stage.task(1, Arrival::Closed, Stop::Time(DAY_NS)),
        stage.task(1, Arrival::Closed, Stop::WithClient),
        stage.task(2, Arrival::Closed, Stop::Operations(500)),
    ];
    let outcome = stage.run(tasks, |stage| {
        stage.settle();
        stage.turn(5 * MS);
        stage.finish();
    });
    assert_eq!(outcome.ended, Ended::Finished);
    assert_eq!(
        outcome
            .clients
            .iter()
            .find(|client| client.client == 2)
            .unwrap()
            .ok,
        500
    );
}

#[test]
fn a_stop_reaches_parked_workers() {
    let stage = Stage::new();
    let outcome = stage.run(
        vec![stage.task(1, Arrival::Closed, Stop::Time(DAY_NS))],
        |stage| {
            stage.settle();
            stage.control.give(Command::Stop);
        },
    );
    assert_eq!((outcome.ended, stage.count()), (Ended::Stopped, 0));
    assert!(
        !stage.control.wait_until_parked(LIMIT),
        "there is nothing to wait for any more"
    );
}

/// An operation that takes a little more or less than a millisecond, and says when it ended.
struct Logging(Arc<TurnClock>, Arc<std::sync::Mutex<Vec<u64>>>);

impl Worker for Logging {
    fn open(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn prepare(&mut self) -> Result<Next, String> {
        Ok(Next::Operation(0))
    }

    fn execute(&mut self) -> Outcome {
        let mut log = self.1.lock().unwrap();
        thread::sleep(Duration::from_micros(500 + 300 * (log.len() as u64 % 5)));
        log.push(self.0.now_ns());
        Outcome::Done { rows: 1 }
    }
}

#[test]
fn each_turn_marks_the_first_operation_that_ends_after_its_discarded_part() {
    let stage = Stage::new();
    let log: Arc<std::sync::Mutex<Vec<u64>>> = Arc::default();
    let worker = Box::new(Logging(stage.clock.clone(), log.clone()));
    let task = Task {
        client: 7,
        kinds: vec![0],
        arrival: Arrival::Closed,
        stop: Stop::Time(DAY_NS),
        worker,
    };
    stage.run(vec![task], |stage| {
        stage.settle();
        let (deadline, mut turn) = (Instant::now() + LIMIT, 0);
        while turn < 8 {
            assert!(
                Instant::now() < deadline,
                "only {turn} turns with an operation behind their discarded part"
            );
            let from_ns = stage.clock.now_ns() + 3 * MS;
            stage.progress.begin_turn(from_ns);
            stage.turn(12 * MS);
            let of_worker = stage.progress.of_workers()[0];
            let log = log.lock().unwrap();
            assert_eq!((of_worker.client, of_worker.ok), (7, log.len() as u64));
            if of_worker.turn_start.done_ns < from_ns {
                // On a busy machine a turn may pass without one.
                assert!(
                    log.last().is_none_or(|&last| last < from_ns),
                    "an operation was not marked: {of_worker:?} {log:?}"
                );
                continue;
            }
            turn += 1;
            // The log has an end a moment before the recorder reads the clock.
            let marked = of_worker.turn_start.ok as usize - 1;
            assert!(
                of_worker.turn_start.done_ns >= from_ns
                    && log[marked] <= of_worker.turn_start.done_ns,
                "turn {turn}: {of_worker:?}"
            );
            assert!(
                log[..marked].iter().all(|&end| end < from_ns),
                "turn {turn}: an earlier operation ended after {from_ns}: {log:?}"
            );
            assert!(
                log.get(marked + 1)
                    .is_none_or(|&next| next > of_worker.turn_start.done_ns),
                "turn {turn}"
            );
        }
        stage.finish();
    });
}

/// Steps of workload files have workers of several kinds of operations.
#[test]
fn a_worker_of_several_kinds_shows_its_progress() {
    for kinds in [vec![0], vec![0, 1, 2], vec![2, 1, 0]] {
        let stage = Stage::new();
        let task = Task {
            kinds: kinds.clone(),
            ..stage.task(1, Arrival::Closed, Stop::Time(DAY_NS))
        };
        let of_turns = stage.progress.clone();
        stage.control.give(Command::Run);
        let names: Vec<String> = kinds.iter().map(|kind| format!("kind {kind}")).collect();
        let options = StepOptions {
            turn_progress: Some(of_turns.clone()),
            ..StepOptions::default()
        };
        let control = stage.control.clone();
        let mut progress = |progress: &Progress| {
            if progress.kinds.iter().any(|(ok, _)| *ok > 0) {
                assert!(
                    of_turns.has_workers() && of_turns.of_workers().len() == 1,
                    "{kinds:?}: {:?}",
                    of_turns.of_workers()
                );
                control.give(Command::Stop);
            }
        };
        run_step(
            &stage.clock,
            &names,
            vec![task],
            &stage.control,
            &options,
            StepOutputs {
                log: &mut std::io::sink(),
                progress: &mut progress,
                seconds: &mut no_series,
            },
        )
        .unwrap();
    }
}

/// The thread that hands out turns may ask before the step has said how many workers it has: all of
/// none are not all.
#[test]
fn the_first_turn_waits_for_workers_that_are_still_to_come() {
    let stage = Stage::new();
    assert!(
        !stage.control.wait_until_parked(Duration::from_millis(1)),
        "nobody has come"
    );
    let tasks = (1..=2)
        .map(|client| stage.task(client, Arrival::Closed, Stop::Time(DAY_NS)))
        .collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            assert!(stage.control.wait_until_parked(LIMIT));
            assert_eq!(
                (stage.control.parked(), stage.progress.of_workers().len()),
                (2, 2),
                "all are connected and parked"
            );
            stage.finish();
        });
        let options = StepOptions {
            turn_progress: Some(stage.progress.clone()),
            ..StepOptions::default()
        };
        let mut progress = |_: &Progress| {};
        run_step(
            &stage.clock,
            &["op"],
            tasks,
            &stage.control,
            &options,
            StepOutputs {
                log: &mut std::io::sink(),
                progress: &mut progress,
                seconds: &mut no_series,
            },
        )
        .unwrap();
    });
}

/// One operation is done, and all others fail after a millisecond.
struct FailsFromTheSecond(Arc<TurnClock>, Arc<std::sync::Mutex<Vec<u64>>>);

impl Worker for FailsFromTheSecond {
    fn open(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn prepare(&mut self) -> Result<Next, String> {
        Ok(Next::Operation(0))
    }

    fn execute(&mut self) -> Outcome {
        thread::sleep(Duration::from_millis(1));
        let mut log = self.1.lock().unwrap();
        log.push(self.0.now_ns());
        if log.len() == 1 {
            return Outcome::Done { rows: 1 };
        }
        Outcome::Failed(Failure {
            class: "statement",
            message: "it may fail".to_owned(),
        })
    }
}

/// A turn in which a client was refused all the while took no time, and its rate was that of the
/// few operations before.
#[test]
fn operations_that_fail_take_their_time_in_a_turn() {
    let stage = Stage::new();
    let log: Arc<std::sync::Mutex<Vec<u64>>> = Arc::default();
    let worker = Box::new(FailsFromTheSecond(stage.clock.clone(), log.clone()));
    let task = Task {
        client: 1,
        kinds: vec![0],
        arrival: Arrival::Closed,
        stop: Stop::Time(DAY_NS),
        worker,
    };
    let options = StepOptions {
        max_failed: Some(1.0),
        ..StepOptions::default()
    };
    let mut turns = Vec::new();
    stage.run_with(options, vec![task], |stage| {
        stage.settle();
        for _ in 1..=3 {
            let mark_ns = stage.clock.now_ns() + 3 * MS;
            stage.progress.begin_turn(mark_ns);
            stage.turn(12 * MS);
            turns.push((
                mark_ns,
                stage.progress.of_workers()[0],
                log.lock().unwrap().clone(),
            ));
        }
        stage.finish();
    });
    for (mark_ns, of_worker, log) in turns {
        assert_eq!((of_worker.ok, of_worker.turn_start.ok), (1, 1));
        // The log has an end a moment before the recorder reads the clock.
        assert!(
            of_worker.last_done_ns >= log[log.len() - 1],
            "{of_worker:?} {log:?}"
        );
        let first = log.iter().position(|&end_ns| end_ns >= mark_ns).unwrap();
        assert!(
            of_worker.turn_start.done_ns >= mark_ns
                && log
                    .get(first + 1)
                    .is_none_or(|&next_ns| of_worker.turn_start.done_ns < next_ns),
            "{of_worker:?} {log:?}"
        );
    }
}

#[test]
fn tries_that_fail_are_counted_from_turn_to_turn() {
    let stage = Stage::new();
    assert_eq!(stage.progress.unsuccessful(), 0, "nobody is there yet");
    let log: Arc<std::sync::Mutex<Vec<u64>>> = Arc::default();
    let task = Task {
        client: 1,
        kinds: vec![0],
        arrival: Arrival::Closed,
        stop: Stop::Time(DAY_NS),
        worker: Box::new(FailsFromTheSecond(stage.clock.clone(), log.clone())),
    };
    let options = StepOptions {
        max_failed: Some(1.0),
        ..StepOptions::default()
    };
    let mut counts = Vec::new();
    stage.run_with(options, vec![task], |stage| {
        stage.settle();
        for _ in 1..=3 {
            stage.turn(50 * MS);
            let tried = log.lock().unwrap().len() as u64;
            counts.push((stage.progress.unsuccessful(), tried.saturating_sub(1)));
        }
        stage.finish();
    });
    for (found, failed) in &counts {
        assert_eq!(found, failed, "all tries but the first one: {counts:?}");
    }
    assert!(counts[2].0 > 1, "{counts:?}");
}

/// A sleeper that came back at once would be sent to sleep again, over and over: on a CPU that is
/// measured.
#[test]
fn a_sleep_lasts_to_its_instant() {
    let turns = TurnClock::new(Arc::new(Control::default()));
    let clocks: [&dyn Clock; 2] = [&MonotonicClock, &turns];
    for clock in clocks {
        for _ in 0..3 {
            let until_ns = clock.now_ns() + 30 * MS;
            clock.sleep_until_ns(until_ns);
            let now_ns = clock.now_ns();
            assert!(now_ns >= until_ns, "{} ns too early", until_ns - now_ns);
        }
    }
}

/// A worker that sleeps until its next operation is due must not sleep through the end of its turn.
#[test]
fn a_command_wakes_who_sleeps() {
    for command in [Command::Park, Command::Stop] {
        let control = Arc::new(Control::default());
        let clock = TurnClock::new(control.clone());
        let begin = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| clock.sleep_until_ns(clock.now_ns() + 60 * SECOND_NS));
            thread::sleep(Duration::from_millis(50));
            control.give(command);
        });
        assert!(begin.elapsed() < LIMIT / 2, "{command:?}");
    }
}
