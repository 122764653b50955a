//! What is watched while a step's workers work.

use std::sync::Arc;

use plimsoll_engine::Health;
use plimsoll_load::{Command, Control, Phase, Progress};
use plimsoll_store::EventWriter;
use plimsoll_store::series::LevelSample;
use plimsoll_workload::SharedServer;

use crate::message::TrialMessage;
use crate::trial::early_end::{EarlyEnd, record_crash};
use crate::trial::measuring::Measuring;
use crate::trial::progress::ProgressMeter;
use crate::trial::send;
use crate::trial::waits::WaitSampling;
use crate::trial::watchdog::Watchdog;

/// Follows the load loop's progress: measures by its phases, reads the levels of a tree, passes
/// progress on, and notices a crash at once.
pub(super) struct Watching<'a> {
    pub events: &'a mut EventWriter,
    pub control: &'a Arc<Control>,
    pub watchdog: &'a Watchdog,
    /// By turns it follows those.
    pub waits: Option<&'a WaitSampling>,
    pub server: &'a SharedServer,
    pub step: &'a str,
    pub meter: ProgressMeter,
    pub watched: Watched,
    /// Operations done so far.
    pub operations: u64,
    /// The second of the step in which the levels are read next.
    pub next_levels_s: u32,
}

/// What was seen.
#[derive(Default)]
pub(super) struct Watched {
    /// None in turns, which have measurements of their own.
    pub measuring: Option<Measuring>,
    /// Of a log-structured tree, once a second.
    pub levels: Vec<LevelSample>,
    /// The server crashed, and an event says so.
    pub crashed: Option<EarlyEnd>,
}

impl Watching<'_> {
    /// To be called with every progress of the load loop.
    pub fn observe(&mut self, progress: &Progress) {
        let has_turns = self.watched.measuring.is_none();
        if let Some(measuring) = &mut self.watched.measuring {
            measuring.observe(progress.phase);
        }
        if let Some(waits) = self.waits {
            waits.observe(progress.phase);
        }
        // Between its turns a look at the levels would fall into somebody else's.
        if !has_turns {
            self.read_levels(progress);
        }
        let operations = progress
            .kinds
            .iter()
            .map(|(operations, _)| operations)
            .sum();
        if operations != std::mem::replace(&mut self.operations, operations) {
            self.watchdog.note_life();
        }
        if let Some(progress) = self.meter.update(progress).filter(|_| !has_turns) {
            send(&TrialMessage::Progress(progress));
        }
        self.notice_crash();
    }

    fn read_levels(&mut self, progress: &Progress) {
        let second = progress.elapsed_s as u32;
        if progress.phase != Phase::Measuring || second < self.next_levels_s {
            return;
        }
        let Ok(store) = self.server.kv() else {
            return;
        };
        self.next_levels_s = second + 1;
        let levels = store.levels().unwrap_or_default();
        self.watched
            .levels
            .extend(levels.into_iter().map(|level| LevelSample {
                second,
                level: level.level,
                files: level.files,
                bytes: level.bytes,
            }));
    }

    /// Recorded at once: the workers of a server that is gone may take a while to notice. One that
    /// hung was killed, and did not crash.
    fn notice_crash(&mut self) {
        if self.watched.crashed.is_none()
            && self.server.health() != Health::Running
            && self.watchdog.verdict().is_none()
        {
            self.watched.crashed = record_crash(self.events, self.server, Some(self.step));
            if self.watched.crashed.is_some() {
                self.control.give(Command::Stop);
            }
        }
    }
}
