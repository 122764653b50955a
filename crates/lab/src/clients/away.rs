//! A client host as a step sees it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_core::record::ClientHostRecord;
use plimsoll_load::{PartHost, PartReport};
use plimsoll_workload::CountsPart;

use super::clock::Offset;
use super::link::Link;
use super::wire::{FromClient, StepOrder, ToClient};

/// Past the limit that the workers themselves have to connect, which a host says itself.
const READY_LIMIT: Duration = Duration::from_secs(75);
/// Connections are closed within this.
const LEAVE_LIMIT: Duration = Duration::from_secs(10);

/// What a host leaves of a step.
#[derive(Default)]
pub(super) struct Left {
    pub record: ClientHostRecord,
    /// None when it was lost before it could say so.
    pub counts: Option<CountsPart>,
    /// Why what it did is not valid, although its workers ended; fits after its name.
    pub problem: Option<String>,
}

/// A client host in a step.
pub(super) struct Away {
    pub link: Arc<Mutex<Link>>,
    pub left: Arc<Mutex<Left>>,
    pub order: Box<StepOrder>,
    pub name: String,
    /// Its clock before the step.
    pub before: Offset,
    /// It was asked to do the step, and lives.
    pub is_there: bool,
    /// It knows when to begin.
    pub is_started: bool,
}

impl Away {
    fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connect(&mut self) -> Result<(), (Option<u32>, String)> {
        self.link().say(&ToClient::Step(self.order.clone()));
        self.is_there = true;
        let ready = |line| match line {
            FromClient::Ready {
                query_rtt_min_ns,
                query_rtt_p50_ns,
            } => Ok(Ok((query_rtt_min_ns, query_rtt_p50_ns))),
            FromClient::Failed { client, reason } => Ok(Err((client, reason))),
            other => Err(other),
        };
        let lost = |reason| (None, reason);
        let answer = self.link().wait_for(READY_LIMIT, ready).map_err(lost)?;
        let (query_rtt_min_ns, query_rtt_p50_ns) = answer?;
        let before = self.link().offset().map_err(lost)?;
        self.before = before;
        if let Some(reason) = before.why_too_far() {
            return Err((None, reason));
        }
        let mut left = self.left();
        left.record.offset_ns = before.offset_ns;
        left.record.link_rtt_min_ns = before.rtt_min_ns;
        left.record.link_rtt_p50_ns = before.rtt_p50_ns;
        left.record.query_rtt_min_ns = query_rtt_min_ns;
        left.record.query_rtt_p50_ns = query_rtt_p50_ns;
        Ok(())
    }

    /// Takes a line; a report is given back.
    fn take(&self, line: FromClient) -> Result<Option<PartReport>, String> {
        match line {
            FromClient::Report(report) => return Ok(Some(report)),
            FromClient::Begun { margin_ns } => self.left().record.start_margin_ns = margin_ns,
            FromClient::Counted { counts, cpu_ns } => {
                let mut left = self.left();
                left.record.cpu_s = cpu_ns as f64 / 1e9;
                left.counts = Some(counts);
            }
            FromClient::Failed { reason, .. } => return Err(reason),
            _ => {}
        }
        Ok(None)
    }

    /// Behind its workers' end: what they counted, and the clock once more.
    fn conclude(&self) -> Result<(), String> {
        let deadline = std::time::Instant::now() + LEAVE_LIMIT;
        while self.left().counts.is_none() {
            let next = self.link().next()?;
            if let Some((_, line)) = next {
                self.take(line)?;
            }
            if std::time::Instant::now() > deadline {
                return Err("it has not said what its workers counted".into());
            }
        }
        let after = self.link().offset()?;
        let mut left = self.left();
        left.record.drift_ppm = after.drift_ppm_since(&self.before);
        left.problem = after.jump_since(&self.before).map(|jump_ns| {
            format!(
                "has a clock that jumped by {:+.1} ms during the step, so that its seconds are not \
                those of the others: keep the machine from being paused or moved",
                jump_ns as f64 / 1e6
            )
        });
        Ok(())
    }
}

impl PartHost for Away {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&mut self) -> Result<(), (Option<u32>, String)> {
        let connected = self.connect();
        // One that refused has nothing to leave.
        self.is_there = connected.is_ok();
        connected
    }

    fn longest_round_trip_ns(&self) -> u64 {
        self.before.rtt_max_ns
    }

    fn start(&mut self, begin_ns: u64) {
        self.is_started = true;
        let at_ns = self.before.there(begin_ns);
        self.link().say(&ToClient::Start { at_ns });
    }

    fn next(&mut self) -> Result<Option<PartReport>, String> {
        let next = self.link().next();
        let taken = match next {
            Ok(Some((_, line))) => self.take(line),
            Ok(None) => Ok(None),
            Err(reason) => Err(reason),
        };
        self.is_there &= taken.is_ok();
        taken
    }

    fn stop(&mut self) {
        self.link().say(&ToClient::Stop);
    }

    fn leave(&mut self) {
        if !self.is_there {
            return;
        }
        // One that never began has counted nothing: it is not waited for.
        let concluded = match self.is_started {
            true => self.conclude(),
            false => Ok(()),
        };
        self.link().say(&ToClient::Leave);
        let left = |line| match line {
            FromClient::Left => Ok(()),
            other => Err(other),
        };
        let gone = concluded.and_then(|()| self.link().wait_for(LEAVE_LIMIT, left));
        if let Err(reason) = gone {
            self.left().problem = Some(format!("was lost at the step's end: {reason}"));
        }
    }
}
