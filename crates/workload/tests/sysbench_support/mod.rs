//! Steps of the microbenchmarks with a number of events instead of a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::plan::Step;
use plimsoll_load::{
    Control, Ended, MonotonicClock, Progress, StepOutcome, StepOutputs, Stop, no_series, run_step,
};
use plimsoll_workload::WorkloadRun;

/// A step with so many events per client, and its notes.
pub fn run_one(
    run: &mut WorkloadRun,
    step: &Step,
    events: u64,
) -> (StepOutcome, BTreeMap<String, f64>) {
    let mut tasks = run.tasks(step).unwrap();
    tasks.options.warm_up_ns = 0;
    for task in tasks
        .tasks
        .iter_mut()
        .filter(|task| matches!(task.stop, Stop::Time(_)))
    {
        task.stop = Stop::Operations(events);
    }
    let control = Arc::new(Control::default());
    let (mut log, mut progress) = (std::io::sink(), |_: &Progress| {});
    let outcome = run_step(
        &Arc::new(MonotonicClock),
        &tasks.kinds,
        tasks.tasks,
        &control,
        &tasks.options,
        StepOutputs {
            log: &mut log,
            progress: &mut progress,
            seconds: &mut no_series,
        },
    )
    .unwrap();
    assert_eq!(outcome.ended, Ended::Finished, "{}", step.name);
    run.book(step, &tasks.counts, &outcome);
    let notes = run.notes(step, &tasks.counts, &outcome);
    (outcome, notes)
}
