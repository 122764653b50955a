//! Between two steps: the engine drains, and the plan's wait passes.

use std::time::{Duration, Instant};

use plimsoll_core::plan::Step;
use plimsoll_engine::{DrainAction, DrainLimits, Health};
use plimsoll_load::Command;
use plimsoll_store::event::{DrainDone, DrainStep, Event};
use plimsoll_workload::{SharedServer, WorkloadRun};

use super::early_end::EarlyEnd;
use super::{DRAIN_LIMIT, Trial, send};
use crate::confirm::wait_in_turns;
use crate::message::TrialMessage;

/// Has the server do nothing by the clock until it stops; what that is, if there is such a thing.
fn hold_maintenance(server: &SharedServer) -> Result<Option<DrainAction>, EarlyEnd> {
    let started = Instant::now();
    let held = server.hold_maintenance()?;
    Ok(held.map(|what| DrainAction {
        action: format!("hold {what}"),
        seconds: started.elapsed().as_secs_f64(),
        result: String::new(),
    }))
}

impl Trial<'_> {
    /// Works off the engine's debt, then waits until the plan's wait is over.
    pub(super) fn drain(
        &mut self,
        step: &Step,
        run: &WorkloadRun,
        server: &SharedServer,
    ) -> Result<(), EarlyEnd> {
        let workload = &self.order.cell.workload;
        let wait = match self.order.has_turns {
            true => wait_in_turns(workload, step),
            false => Duration::from_nanos(workload.wait_ns(step)),
        };
        send(&TrialMessage::Draining {
            seconds: wait.as_secs_f64(),
        });
        let started = Instant::now();
        // Looked at often: a crash is noticed within a second, here as in a step.
        let is_stopped =
            || self.control.command() == Command::Stop || server.health() != Health::Running;
        let limit = started + wait.max(DRAIN_LIMIT);
        let limits = DrainLimits::new(started + wait, limit, &is_stopped);
        let mut actions = Vec::new();
        // What a server does by the clock would be another piece of work in each load of the data.
        if self.order.makes_state {
            actions.extend(hold_maintenance(server)?);
        }
        actions.extend(run.drain(step, server, self.order.makes_state, &limits)?);
        let waited_s = wait_out(started, wait, &is_stopped)?;
        self.record_drain(
            step,
            actions,
            started.elapsed().as_secs_f64() - waited_s,
            waited_s,
        )
    }

    pub(super) fn record_drain(
        &mut self,
        step: &Step,
        actions: Vec<DrainAction>,
        drained_s: f64,
        waited_s: f64,
    ) -> Result<(), EarlyEnd> {
        send(&TrialMessage::Drained {
            drained_s,
            waited_s,
        });
        self.events.append(&Event::DrainDone(DrainDone {
            step: step.name.clone(),
            actions: actions
                .into_iter()
                .map(|a| DrainStep {
                    action: a.action,
                    seconds: a.seconds,
                    result: a.result,
                })
                .collect(),
            drained_s,
            waited_s,
        }))?;
        Ok(self.events.sync()?)
    }
}

/// Waits until the plan's wait is over that began at `started`, and says for how many seconds that
/// was.
pub(super) fn wait_out(
    started: Instant,
    wait: Duration,
    is_stopped: &dyn Fn() -> bool,
) -> Result<f64, EarlyEnd> {
    let drained = Instant::now();
    while started.elapsed() < wait {
        if is_stopped() {
            return Err(EarlyEnd::Interrupted);
        }
        std::thread::sleep(Duration::from_millis(50).min(wait.saturating_sub(started.elapsed())));
    }
    Ok(drained.elapsed().as_secs_f64())
}
