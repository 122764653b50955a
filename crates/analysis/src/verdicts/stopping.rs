//! When a confirm campaign by blocks may end before its last block.

use plimsoll_stats::{Looks, Verdict};
use plimsoll_store::header::CampaignHeader;
use plimsoll_store::{CampaignRecord, Design};

use super::finding::ALPHA;
use super::measured::Role;
use crate::{Options, analyse};

/// Whether so many blocks are a planned look of a confirm campaign by blocks.
pub fn is_look(header: &CampaignHeader, blocks: u32) -> bool {
    let is_by_blocks = header
        .confirm
        .as_ref()
        .is_some_and(|confirm| confirm.design == Design::Blocks);
    let looks = Looks::new(header.plan.blocks.max(1) as usize, ALPHA);
    is_by_blocks
        && looks
            .all()
            .iter()
            .any(|look| look.blocks == blocks as usize)
}

/// Whether so many blocks are a look at which all throughputs are decided. More blocks would narrow
/// intervals and change no verdict.
pub fn is_decided(campaign: &CampaignRecord, blocks: u32) -> bool {
    is_look(&campaign.header, blocks)
        && analyse(std::slice::from_ref(campaign), &Options::default()).is_ok_and(|view| {
            let mut findings = view
                .findings
                .all
                .iter()
                .filter(|finding| finding.role == Role::Throughput)
                .peekable();
            findings.peek().is_some()
                && findings.all(|finding| {
                    finding
                        .verdict()
                        .is_some_and(|verdict| verdict != Verdict::Inconclusive)
                })
        })
}
