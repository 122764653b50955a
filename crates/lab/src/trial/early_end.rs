//! Why a trial ends early, and how that is written down.

use std::time::{Duration, Instant};

use plimsoll_core::plan::Step;
use plimsoll_core::record::OperationRecord;
use plimsoll_engine::{EngineError, Health};
use plimsoll_store::event::{Event, ServerCrashed, StepFailed};
use plimsoll_store::{EventWriter, StoreError};
use plimsoll_workload::SharedServer;

use super::Trial;
use crate::error::LabError;

/// A server that dies closes its connections before the kernel says that it is dead: an error waits
/// this long for the reason.
const CRASH_PATIENCE: Duration = Duration::from_millis(500);

/// Why a trial ends before its last step.
pub(super) enum EarlyEnd {
    /// The user or a signal asked for it.
    Interrupted,
    /// It cannot go on.
    Failed(String),
    /// It cannot go on, and an event says why.
    Recorded(String),
}

impl From<LabError> for EarlyEnd {
    fn from(error: LabError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<EngineError> for EarlyEnd {
    fn from(error: EngineError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<StoreError> for EarlyEnd {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Trial<'_> {
    /// The cause behind what went wrong: a server that hangs or a disk that is nearly full, a
    /// server that is gone, or what it seemed to be.
    pub(super) fn explain(
        &mut self,
        server: &SharedServer,
        step: Option<&str>,
        end: EarlyEnd,
    ) -> EarlyEnd {
        if let EarlyEnd::Recorded(_) = end {
            return end;
        }
        if let Some(reason) = self.watchdog.verdict() {
            return EarlyEnd::Failed(reason.to_owned());
        }
        let is_owned = !server.processes().is_empty();
        let deadline = Instant::now() + CRASH_PATIENCE;
        while is_owned
            && matches!(end, EarlyEnd::Failed(_))
            && server.health() == Health::Running
            && Instant::now() < deadline
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        // The watchdog may have ended it meanwhile.
        match self.watchdog.verdict() {
            Some(reason) => EarlyEnd::Failed(reason.to_owned()),
            None => record_crash(&mut self.events, server, step).unwrap_or(end),
        }
    }

    /// Records that a step did not end as it should.
    pub(super) fn fail_step(
        &mut self,
        step: &Step,
        server: &SharedServer,
        end: EarlyEnd,
        operations: Vec<OperationRecord>,
    ) -> EarlyEnd {
        let end = self.explain(server, Some(&step.name), end);
        self.record_failed_step(step, end, operations)
    }

    /// Writes down why a step did not end as it should, where no event says it yet.
    pub(super) fn record_failed_step(
        &mut self,
        step: &Step,
        end: EarlyEnd,
        operations: Vec<OperationRecord>,
    ) -> EarlyEnd {
        let reason = match &end {
            EarlyEnd::Interrupted => "interrupted".to_owned(),
            EarlyEnd::Failed(reason) => reason.clone(),
            EarlyEnd::Recorded(_) => return end,
        };
        let event = Event::StepFailed(StepFailed {
            step: step.name.clone(),
            reason,
            operations,
        });
        match self.events.append(&event) {
            Ok(()) => match end {
                EarlyEnd::Failed(reason) => EarlyEnd::Recorded(format!("{}: {reason}", step.name)),
                other => other,
            },
            Err(error) => error.into(),
        }
    }
}

/// Records that a server is gone, if it is: then everything else that went wrong follows from that.
pub(super) fn record_crash(
    events: &mut EventWriter,
    server: &SharedServer,
    step: Option<&str>,
) -> Option<EarlyEnd> {
    let Health::Crashed { status, log_tail } = server.health() else {
        return None;
    };
    let during = step.map_or(String::new(), |step| format!(" during {step}"));
    let reason = format!("the server crashed{during} ({status})");
    let event = Event::ServerCrashed(ServerCrashed {
        step: step.map(str::to_owned),
        status,
        log_tail,
    });
    Some(
        events
            .append(&event)
            .and_then(|()| events.sync())
            .map_or_else(EarlyEnd::from, |()| EarlyEnd::Recorded(reason)),
    )
}
