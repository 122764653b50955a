//! Commands, deadlines and the common start, on the real clock. No timing decides: every wait is
//! for a state.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plimsoll_load::{
    Arrival, Command, Control, Ended, MonotonicClock, Next, Outcome, Phase, Progress, StepError,
    StepOptions, StepOutcome, StepOutputs, Stop, Task, Worker, no_series, run_step,
};

/// Counts its operations; optionally fails to open, or never comes back from an operation.
#[derive(Default)]
struct Probe {
    count: Arc<AtomicU64>,
    closed: Arc<AtomicU64>,
    fails_to_open: bool,
    hangs_at: Option<u64>,
}

impl Worker for Probe {
    fn open(&mut self) -> Result<(), String> {
        if self.fails_to_open {
            Err("max_connections is reached".into())
        } else {
            Ok(())
        }
    }

    fn prepare(&mut self) -> Result<Next, String> {
        Ok(Next::Operation(0))
    }

    fn execute(&mut self) -> Outcome {
        let count = self.count.fetch_add(1, Ordering::SeqCst);
        if self.hangs_at == Some(count) {
            loop {
                std::thread::park();
            }
        }
        std::thread::sleep(Duration::from_micros(100));
        Outcome::Done { rows: 1 }
    }

    fn close(&mut self) {
        self.closed.fetch_add(1, Ordering::SeqCst);
    }
}

fn task(worker: Probe, client: u32, stop: Stop) -> Task {
    Task {
        client,
        kinds: vec![0],
        arrival: Arrival::Closed,
        stop,
        worker: Box::new(worker),
    }
}

fn run(
    tasks: Vec<Task>,
    control: &Arc<Control>,
    options: &StepOptions,
    progress: &mut dyn FnMut(&Progress),
) -> Result<StepOutcome, StepError> {
    run_step(
        &Arc::new(MonotonicClock),
        &["op"],
        tasks,
        control,
        options,
        StepOutputs {
            log: &mut std::io::sink(),
            progress,
            seconds: &mut no_series,
        },
    )
}

#[test]
fn parked_workers_hold_still_and_go_on() {
    let control = Arc::new(Control::default());
    let count = Arc::new(AtomicU64::new(0));
    let tasks = (1..=3)
        .map(|client| {
            task(
                Probe {
                    count: count.clone(),
                    ..Probe::default()
                },
                client,
                Stop::Operations(2000),
            )
        })
        .collect();
    let observed = Arc::new(Mutex::new(None));
    let (watching, commands, seen) = (count.clone(), control.clone(), observed.clone());
    let director = std::thread::spawn(move || {
        while watching.load(Ordering::SeqCst) < 100 {
            std::thread::yield_now();
        }
        commands.give(Command::Park);
        let before = watching.load(Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(300));
        *seen.lock().unwrap() = Some((before, watching.load(Ordering::SeqCst)));
        commands.give(Command::Run);
    });
    let outcome = run(tasks, &control, &StepOptions::default(), &mut |_| {}).unwrap();
    director.join().unwrap();
    let (before, after) = observed.lock().unwrap().unwrap();
    assert!(
        after <= before + 3,
        "each worker ends the operation in flight and no more: {before}, {after}"
    );
    assert!(before < 6000, "it was parked before the end");
    assert_eq!(
        (outcome.ended, outcome.operations[0].ok),
        (Ended::Finished, 6000)
    );
}

#[test]
fn stop_ends_the_step_and_every_worker_is_closed() {
    let control = Arc::new(Control::default());
    let closed = Arc::new(AtomicU64::new(0));
    let tasks = (1..=4)
        .map(|client| {
            task(
                Probe {
                    closed: closed.clone(),
                    ..Probe::default()
                },
                client,
                Stop::Operations(u64::MAX),
            )
        })
        .collect();
    let mut progress = |progress: &Progress| {
        if progress.kinds[0].0 > 50 {
            control.give(Command::Stop);
        }
    };
    let outcome = run(
        tasks,
        &control.clone(),
        &StepOptions::default(),
        &mut progress,
    )
    .unwrap();
    assert_eq!(outcome.ended, Ended::Stopped);
    assert_eq!(closed.load(Ordering::SeqCst), 4);
    assert_eq!(
        outcome.operations[0].ok,
        outcome.clients.iter().map(|client| client.ok).sum::<u64>()
    );
    control.give(Command::Run);
    assert_eq!(control.command(), Command::Stop, "stop is final");
}

#[test]
fn followers_end_with_their_own_client() {
    let count = Arc::new(AtomicU64::new(0));
    let tasks = vec![
        task(Probe::default(), 1, Stop::Operations(10)),
        task(
            Probe {
                count: count.clone(),
                ..Probe::default()
            },
            1,
            Stop::WithClient,
        ),
        task(Probe::default(), 2, Stop::Operations(1000)),
    ];
    let outcome = run(
        tasks,
        &Arc::new(Control::default()),
        &StepOptions::default(),
        &mut |_| {},
    )
    .unwrap();
    assert_eq!(outcome.ended, Ended::Finished);
    assert!(
        count.load(Ordering::SeqCst) < 1000,
        "client 1's follower did not wait for client 2"
    );
}

#[test]
fn a_worker_that_cannot_connect_fails_the_step_before_it_starts() {
    let count = Arc::new(AtomicU64::new(0));
    let tasks = vec![
        task(
            Probe {
                count: count.clone(),
                ..Probe::default()
            },
            1,
            Stop::Operations(5),
        ),
        task(
            Probe {
                fails_to_open: true,
                ..Probe::default()
            },
            2,
            Stop::Operations(5),
        ),
    ];
    let error = run(
        tasks,
        &Arc::new(Control::default()),
        &StepOptions::default(),
        &mut |_| {},
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "client 2 could not start: max_connections is reached"
    );
    assert_eq!(
        count.load(Ordering::SeqCst),
        0,
        "nobody starts without the others"
    );
}

/// A worker whose twentieth operation never returns.
fn hanging() -> Task {
    let probe = Probe {
        hangs_at: Some(20),
        ..Probe::default()
    };
    task(probe, 1, Stop::Operations(100))
}

#[test]
fn a_hanging_operation_is_called_hung() {
    let options = StepOptions {
        watchdog: Some(Duration::from_millis(300)),
        ..StepOptions::default()
    };
    let tasks = vec![hanging()];
    let error = run(tasks, &Arc::new(Control::default()), &options, &mut |_| {}).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("1 of 1 workers are still in an operation"),
        "{error}"
    );
}

/// Takes so many bytes.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self
            .0
            .checked_sub(bytes.len())
            .ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_log_that_cannot_be_written_fails_the_step_and_leaves_no_worker() {
    for room in [0, 600] {
        let closed = Arc::new(AtomicU64::new(0));
        let worker = || Probe {
            closed: closed.clone(),
            ..Probe::default()
        };
        let tasks = (1..=3)
            .map(|client| task(worker(), client, Stop::Operations(u64::MAX)))
            .collect();
        let control = Arc::new(Control::default());
        let result = run_step(
            &Arc::new(MonotonicClock),
            &["op"],
            tasks,
            &control,
            &StepOptions::default(),
            StepOutputs {
                log: &mut Full(room),
                progress: &mut |_: &Progress| {},
                seconds: &mut no_series,
            },
        );
        assert!(matches!(result, Err(StepError::Log(_))), "{result:?}");
        assert_eq!(
            closed.load(Ordering::SeqCst),
            3,
            "nobody works any more when the step is given up"
        );
    }
}

#[test]
fn a_step_that_hangs_ends_the_workers_that_do_not() {
    struct Waits(Arc<AtomicBool>);
    impl Worker for Waits {
        fn open(&mut self) -> Result<(), String> {
            Ok(())
        }
        fn prepare(&mut self) -> Result<Next, String> {
            Ok(Next::Later)
        }
        fn execute(&mut self) -> Outcome {
            unreachable!()
        }
        fn close(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let has_ended = Arc::new(AtomicBool::new(false));
    let options = StepOptions {
        watchdog: Some(Duration::from_millis(300)),
        ..StepOptions::default()
    };
    let waits = Task {
        client: 1,
        kinds: vec![0],
        arrival: Arrival::Closed,
        stop: Stop::Operations(1),
        worker: Box::new(Waits(has_ended.clone())),
    };
    let error = run(
        vec![waits],
        &Arc::new(Control::default()),
        &options,
        &mut |_| {},
    )
    .unwrap_err();
    assert!(matches!(error, StepError::Hung(_)), "{error}");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !has_ended.load(Ordering::SeqCst) {
        assert!(Instant::now() < deadline, "it waits for ever");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The instants at which the world may look at the server: nobody works yet, and nobody has left.
#[test]
fn a_step_tells_when_all_are_connected_and_when_all_have_ended() {
    struct Connected(Probe, Arc<AtomicI64>);
    impl Worker for Connected {
        fn open(&mut self) -> Result<(), String> {
            self.1.fetch_add(1, Ordering::SeqCst);
            self.0.open()
        }
        fn prepare(&mut self) -> Result<Next, String> {
            self.0.prepare()
        }
        fn execute(&mut self) -> Outcome {
            self.0.execute()
        }
        fn close(&mut self) {
            self.0.close();
        }
    }
    impl Drop for Connected {
        fn drop(&mut self) {
            self.1.fetch_sub(1, Ordering::SeqCst);
        }
    }
    for warm_up_ns in [0, 20_000_000] {
        let (count, connected) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicI64::new(0)));
        let worker = || {
            Box::new(Connected(
                Probe {
                    count: count.clone(),
                    ..Probe::default()
                },
                connected.clone(),
            ))
        };
        let new = |client| Task {
            client,
            kinds: vec![0],
            arrival: Arrival::Closed,
            stop: Stop::Time(20_000_000),
            worker: worker(),
        };
        let (mut seen, mut warming) = (Vec::new(), None);
        let mut progress = |progress: &Progress| {
            let state = || {
                (
                    connected.load(Ordering::SeqCst),
                    count.load(Ordering::SeqCst),
                )
            };
            match progress.phase {
                Phase::Connected => seen.push(("connected", state())),
                Phase::WarmingUp { left } => {
                    assert!(left <= Duration::from_nanos(warm_up_ns + 2_000_000));
                    warming.get_or_insert(state());
                }
                Phase::Measuring => {}
                Phase::Ended => seen.push(("ended", state())),
            }
        };
        let options = StepOptions {
            warm_up_ns,
            ..StepOptions::default()
        };
        run(
            (1..=8).map(new).collect(),
            &Arc::new(Control::default()),
            &options,
            &mut progress,
        )
        .unwrap();
        let done = count.load(Ordering::SeqCst);
        assert_eq!(seen, [("connected", (8, 0)), ("ended", (8, done))]);
        assert_eq!(
            warming,
            (warm_up_ns > 0).then_some((8, 0)),
            "told before anybody warms up"
        );
        assert_eq!(connected.load(Ordering::SeqCst), 0, "all have left");
    }
}

/// Neither the watchdog nor the time that a stop has is a limit of a step: this one outlasts both,
/// at work and parked.
#[test]
fn a_step_may_last_longer_than_the_patience_with_it() {
    let options = StepOptions {
        watchdog: Some(Duration::from_millis(800)),
        stop_timeout: Duration::from_millis(200),
        ..StepOptions::default()
    };
    let control = Arc::new(Control::default());
    let commands = control.clone();
    let director = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1500));
        commands.give(Command::Park);
        std::thread::sleep(Duration::from_millis(1500));
        commands.give(Command::Run);
    });
    let tasks = vec![task(Probe::default(), 1, Stop::Time(3_500_000_000))];
    let outcome = run(tasks, &control, &options, &mut |_| {}).unwrap();
    director.join().unwrap();
    assert_eq!(outcome.ended, Ended::Finished);
}

/// A stop, and an operation that never returns: the step ends all the same.
#[test]
fn a_stop_does_not_wait_for_ever_for_an_operation() {
    let control = Arc::new(Control::default());
    let options = StepOptions {
        watchdog: None,
        stop_timeout: Duration::from_millis(300),
        ..StepOptions::default()
    };
    let tasks = vec![hanging()];
    let commands = control.clone();
    let mut progress = |progress: &Progress| {
        if progress.kinds[0].0 == 20 {
            commands.give(Command::Stop);
        }
    };
    let error = run(tasks, &control, &options, &mut progress).unwrap_err();
    assert_eq!(
        error.to_string(),
        "1 of 1 workers are still in an operation, 0 s after the step was asked to stop"
    );
}
