//! A confirm campaign that runs until a gate has its answer.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use plimsoll_analysis::{AaHistory, Gate, GateRequest, Stored, gate_among, is_look};
use plimsoll_store::CampaignDir;

use super::stop_rule::{Seen, StopRule};
use crate::observer::{Notice, Observer};

/// Ends steps by slices when the gate has its answer on them, and a campaign by blocks at the look
/// at which it has all, or when there is no time for another block. By slices the campaign's own
/// budget watches the time.
pub struct UntilGated<'a> {
    observer: &'a mut dyn Observer,
    request: &'a GateRequest,
    history: AaHistory<'a>,
    began: Instant,
    budget: Duration,
    seen: Seen,
}

impl<'a> UntilGated<'a> {
    /// `budget` is counted from here.
    pub fn new(
        observer: &'a mut dyn Observer,
        request: &'a GateRequest,
        stored: &'a Stored<'a>,
        budget: Duration,
    ) -> Self {
        Self {
            observer,
            request,
            history: AaHistory::new(stored),
            began: Instant::now(),
            budget,
            seen: Seen::default(),
        }
    }

    /// What the gate says now; none where it cannot say anything yet.
    fn gate(&mut self, campaign: &CampaignDir) -> Option<Gate> {
        gate_among(self.seen.look(campaign)?, &self.history, self.request).ok()
    }

    /// Whether another block, as long as those before it, would end too late.
    fn is_out_of_time(&self, blocks: u32) -> bool {
        let spent = self.began.elapsed();
        spent + spent / blocks.max(1) > self.budget
    }
}

impl Observer for UntilGated<'_> {
    fn notice(&mut self, notice: Notice<'_>) {
        self.observer.notice(notice);
    }

    fn stop_requests(&self) -> &AtomicUsize {
        self.observer.stop_requests()
    }
}

impl StopRule for UntilGated<'_> {
    fn is_enough(&mut self, campaign: &CampaignDir, block: u32) -> bool {
        if campaign.header.budget().is_some() {
            return false;
        }
        let is_decided = is_look(&campaign.header, block)
            && self.gate(campaign).is_some_and(|gate| !gate.is_open());
        if is_decided || !self.is_out_of_time(block) {
            return is_decided;
        }
        let line = format!("the budget has no room for another block after block {block}");
        self.observer.notice(Notice::Remark(&line));
        true
    }

    fn settled(&mut self, campaign: &CampaignDir) -> Option<BTreeSet<String>> {
        let gate = self.gate(campaign)?;
        Some(gate.settled().into_iter().map(str::to_owned).collect())
    }
}
