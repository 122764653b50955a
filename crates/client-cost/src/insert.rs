//! The load step of the Insert Benchmark, for the client's CPU per row.

use std::sync::Arc;

use plimsoll_core::plan::Plan;
use plimsoll_load::{Control, Ended, MonotonicClock, Progress, StepOutputs, no_series, run_step};
use plimsoll_workload::insert_benchmark::InsertBenchmarkRun;

use crate::Failed;
use crate::server::Target;
use crate::usage::{Client, Usage};

const ROWS: u64 = 400_000;
const SEED: u64 = 42;

/// Loads `pi1` again, 100 rows a statement, and returns CPU microseconds per row of the client and
/// of the server.
pub fn load(target: &Target) -> Result<(f64, f64), Failed> {
    target
        .server
        .connect()?
        .define("drop table if exists pi1")?;
    let plan = format!(
        r#"
        name = "load"
        workload = "insert-benchmark"
        builds = ["{}"]
        configs = ["as-started"]
        steps = ["l.i0"]
        [sizes]
        clients = 1
        rows = {ROWS}
        [config.as-started]
        settings = {{}}
        "#,
        target.name
    );
    let plan = Plan::parse("load", &plan)?;
    let workload = plan
        .cells
        .first()
        .and_then(|cell| cell.workload.insert_benchmark())
        .ok_or("the plan has no cell of it")?;
    let step = workload.steps.first().ok_or("the plan has no step")?;
    let benchmark = InsertBenchmarkRun::new(workload.clone(), target.server.clone(), SEED).unwrap();
    let work = step
        .work
        .insert_benchmark()
        .ok_or("it is not a step of it")?;
    let step = benchmark.tasks(step, work)?;
    let (outcome, usage) = Usage::of(Client::Own, target, || {
        Ok(run_step(
            &Arc::new(MonotonicClock),
            &step.kinds,
            step.tasks,
            &Arc::new(Control::default()),
            &step.options,
            StepOutputs {
                log: &mut std::io::sink(),
                progress: &mut |_: &Progress| {},
                seconds: &mut no_series,
            },
        )?)
    })?;
    if outcome.ended != Ended::Finished {
        return Err(format!("{:?}", outcome.ended).into());
    }
    let rows = outcome
        .operations
        .iter()
        .map(|operation| operation.rows)
        .sum::<u64>() as f64;
    Ok((usage.client_s * 1e6 / rows, usage.server_s * 1e6 / rows))
}
