//! When a confirm campaign may end before its last block.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;

use plimsoll_analysis::{is_decided, is_look};
use plimsoll_store::{CampaignDir, CampaignRecord};

use crate::observer::{Notice, Observer};

/// Decides after each block whether more of them would change anything.
pub trait StopRule: Observer {
    /// A block of a confirm campaign is done: whether it and those before it are enough, and the
    /// rest of the schedule need not run.
    fn is_enough(&mut self, campaign: &CampaignDir, block: u32) -> bool;

    /// The steps of a campaign with a budget that need no more starts; `None` where the widths and
    /// verdicts of steps say so.
    fn settled(&mut self, _campaign: &CampaignDir) -> Option<BTreeSet<String>> {
        None
    }
}

/// A campaign at the last look: its complete trials are not read again.
#[derive(Default)]
pub(super) struct Seen(Option<CampaignRecord>);

impl Seen {
    /// The campaign as it is now. What cannot be read now is `None`, and is read at the end, where
    /// it is an error.
    pub fn look(&mut self, campaign: &CampaignDir) -> Option<&CampaignRecord> {
        let record = match self.0.take() {
            Some(before) => campaign.load_after(before),
            None => campaign.load(),
        };
        self.0 = record.ok();
        self.0.as_ref()
    }
}

/// Ends at a planned look at which everything is decided.
pub(crate) struct PlannedLooks<'a> {
    observer: &'a mut dyn Observer,
    seen: Seen,
}

impl<'a> PlannedLooks<'a> {
    pub fn new(observer: &'a mut dyn Observer) -> Self {
        Self {
            observer,
            seen: Seen::default(),
        }
    }
}

impl Observer for PlannedLooks<'_> {
    fn notice(&mut self, notice: Notice<'_>) {
        self.observer.notice(notice);
    }

    fn stop_requests(&self) -> &AtomicUsize {
        self.observer.stop_requests()
    }
}

impl StopRule for PlannedLooks<'_> {
    fn is_enough(&mut self, campaign: &CampaignDir, block: u32) -> bool {
        if !is_look(&campaign.header, block) {
            return false;
        }
        self.seen
            .look(campaign)
            .is_some_and(|record| is_decided(record, block))
    }
}
