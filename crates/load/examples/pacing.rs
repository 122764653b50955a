//! How exact the open loop is: 16 workers that do nothing, 1,000 times a second each, for ten
//! seconds.
//!
//!     cargo run --release -p plimsoll-load --example pacing

use std::sync::Arc;

use plimsoll_core::record::EncodedHistogram;
use plimsoll_core::units::SECOND_NS;
use plimsoll_load::{
    Arrival, Control, MonotonicClock, Next, Outcome, Progress, StepError, StepOptions, StepOutputs,
    Stop, Task, Worker, no_series, run_step,
};

const WORKERS: u32 = 16;
const RATE: u64 = 1000;
const SECONDS: u64 = 10;

struct Nothing;

impl Worker for Nothing {
    fn open(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn prepare(&mut self) -> Result<Next, String> {
        Ok(Next::Operation(0))
    }

    fn execute(&mut self) -> Outcome {
        Outcome::Done { rows: 1 }
    }
}

fn main() -> Result<(), StepError> {
    let task = |client: u32| {
        let phase_ns = SECOND_NS / RATE * u64::from(client - 1) / u64::from(WORKERS);
        let arrival = Arrival::Even {
            operations: RATE,
            period_ns: SECOND_NS,
            phase_ns,
        };
        Task {
            client,
            kinds: vec![0],
            arrival,
            stop: Stop::Operations(RATE * SECONDS),
            worker: Box::new(Nothing),
        }
    };
    let outcome = run_step(
        &Arc::new(MonotonicClock),
        &["op"],
        (1..=WORKERS).map(task).collect(),
        &Arc::new(Control::default()),
        &StepOptions::default(),
        StepOutputs {
            log: &mut std::io::sink(),
            progress: &mut |_: &Progress| {},
            seconds: &mut no_series,
        },
    )?;
    for operation in &outcome.operations {
        if let (Some(pacing), Some(Ok(lag))) = (
            &operation.pacing,
            operation.lag.as_ref().map(EncodedHistogram::decode),
        ) {
            let us = |quantile| lag.value_at_quantile(quantile) as f64 / 1e3;
            println!(
                "achieved {:.1} of {:.1}/s = {:.5}",
                pacing.achieved_per_s,
                pacing.target_per_s,
                pacing.achieved_per_s / pacing.target_per_s
            );
            println!(
                "lateness us: p50 {:.1}, p90 {:.1}, p99 {:.1}, max {:.1}",
                us(0.5),
                us(0.9),
                us(0.99),
                us(1.0)
            );
        }
    }
    Ok(())
}
