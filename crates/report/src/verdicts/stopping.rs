//! When a confirm campaign by blocks may end before its last block.

use plimsoll_stats::{Looks, Verdict};
use plimsoll_store::{CampaignRecord, Design};

use super::finding::ALPHA;
use crate::{Options, analyse};

/// Whether so many blocks are a planned look of a confirm campaign, and all its throughputs are decided there. More blocks would narrow
/// intervals and change no verdict.
pub fn is_decided(campaign: &CampaignRecord, blocks: u32) -> bool {
    let is_by_blocks = campaign.header.confirm.as_ref().is_some_and(|confirm| confirm.design == Design::Blocks);
    let looks = Looks::new(campaign.header.plan.blocks.max(1) as usize, ALPHA);
    let is_look = looks.all().iter().any(|look| look.blocks == blocks as usize);
    let decided = |verdict| matches!(verdict, Verdict::Regression | Verdict::Improvement | Verdict::Equivalent);
    is_by_blocks
        && is_look
        && analyse(std::slice::from_ref(campaign), &Options::default()).is_ok_and(|view| {
            let mut findings = view.findings.all.iter().filter(|finding| finding.is_throughput).peekable();
            findings.peek().is_some() && findings.all(|finding| finding.verdict().is_some_and(decided))
        })
}
