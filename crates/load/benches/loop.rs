//! What the client itself costs: one operation through the whole loop, with both stamps and its
//! histograms.

use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use plimsoll_load::{
    Arrival, Control, MonotonicClock, Next, Outcome, Progress, StepOptions, StepOutputs, Stop,
    Task, Worker, no_series, run_step,
};

struct Nothing;

impl Worker for Nothing {
    fn open(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn prepare(&mut self) -> Result<Next, String> {
        Ok(Next::Operation(0))
    }

    fn execute(&mut self) -> Outcome {
        Outcome::Done {
            rows: std::hint::black_box(1),
        }
    }
}

fn step(operations: u64, arrival: Arrival) -> Duration {
    let task = Task {
        client: 1,
        kinds: vec![0],
        arrival,
        stop: Stop::Operations(operations),
        worker: Box::new(Nothing),
    };
    let mut progress = |_: &Progress| {};
    let outcome = run_step(
        &Arc::new(MonotonicClock),
        &["op"],
        vec![task],
        &Arc::new(Control::default()),
        &StepOptions::default(),
        StepOutputs {
            log: &mut std::io::sink(),
            progress: &mut progress,
            seconds: &mut no_series,
        },
    );
    Duration::from_nanos(outcome.expect("nothing can fail").elapsed_ns)
}

fn per_operation(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("per operation");
    group.throughput(Throughput::Elements(1));
    group.bench_function("closed loop: two stamps, service histogram", |bencher| {
        bencher.iter_custom(|operations| step(operations, Arrival::Closed));
    });
    // Due so long ago that nothing ever sleeps: the cost of stamps, service, response and lag
    // histograms.
    group.bench_function(
        "open loop: two stamps, service, response and lag histograms",
        |bencher| {
            bencher.iter_custom(|operations| {
                step(
                    operations,
                    Arrival::Even {
                        operations: u64::MAX,
                        period_ns: 1,
                        phase_ns: 0,
                    },
                )
            });
        },
    );
    group.bench_function("two readings of the clock alone", |bencher| {
        use plimsoll_core::clock::Clock;
        bencher.iter_custom(|operations| {
            let started = Instant::now();
            for _ in 0..operations {
                std::hint::black_box(MonotonicClock.now_ns());
                std::hint::black_box(MonotonicClock.now_ns());
            }
            started.elapsed()
        });
    });
    group.finish();
}

criterion_group!(benches, per_operation);
criterion_main!(benches);
