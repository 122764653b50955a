//! A worker whose every try is scripted.

use std::sync::Arc;

use plimsoll_core::clock::Clock;
use plimsoll_load::{Next, Outcome, Worker};

use crate::FakeClock;

/// Asks a script how long each try takes and how it ends, and lets the fake clock pass that long.
pub struct ScriptedWorker<F> {
    clock: Arc<FakeClock>,
    tries: u64,
    script: F,
}

impl<F: FnMut(u64, u64) -> (u64, Outcome) + Send> ScriptedWorker<F> {
    /// `script(try from 0, now in ns)` answers with the duration in ns and the outcome.
    pub fn new(clock: Arc<FakeClock>, script: F) -> Self {
        Self {
            clock,
            tries: 0,
            script,
        }
    }
}

impl<F: FnMut(u64, u64) -> (u64, Outcome) + Send> Worker for ScriptedWorker<F> {
    fn open(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn prepare(&mut self) -> Result<Next, String> {
        Ok(Next::Operation(0))
    }

    fn execute(&mut self) -> Outcome {
        let (duration_ns, outcome) = (self.script)(self.tries, self.clock.now_ns());
        self.tries += 1;
        self.clock.advance(duration_ns);
        outcome
    }
}
