//! What makes a campaign a confirm campaign: the design of its experiment.

use std::fmt;

use plimsoll_core::plan::{Budget, Step};
use serde::{Deserialize, Serialize};

/// The member `confirm` of `campaign.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Confirm {
    /// The campaign whose unusual steps are confirmed; none when a plan was confirmed directly.
    pub of: Option<String>,
    /// How candidates meet.
    pub design: Design,
    /// The steps that are confirmed, in the order in which they run.
    pub steps: Vec<String>,
    /// The label of the cell that ratios divide by.
    pub base: String,
    /// The label of the base's second instance, the A/A control.
    pub control: String,
    /// Slices: how often all servers are started on restored data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<u32>,
    /// Slices: when there are enough starts; none where all of `starts` run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Blocks: how often every cell runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u32>,
    /// Length of a turn of a step that reads, in nanoseconds.
    pub turn_ns_read: u64,
    /// Length of a turn of a step that writes, in nanoseconds.
    pub turn_ns_write: u64,
    /// Slices: how long each step takes at most, over all starts, in nanoseconds. Blocks: the
    /// length of a step that ends by time.
    pub time_ns: u64,
    /// Per cell, the steps that make the data its trials begin with: they run once, and their data
    /// is kept and copied.
    #[serde(default)]
    pub before: Vec<Vec<Step>>,
    /// How often the data of each cell is made; blocks or starts take one after the other. The
    /// control has data of its own. None in campaigns before methodology version 9, and in those
    /// of a search: once, and the control has the base's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loads: Option<u32>,
    /// For how long a step that writes writes before anything counts, in nanoseconds; none for no
    /// longer than it takes to warm up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ns: Option<u64>,
    /// Which CPUs clients and servers have; none when nothing is pinned.
    pub placement: Option<Placement>,
    /// Further placements: starts or blocks take one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_placements: Vec<Placement>,
    /// The equivalence margin as a share: 0.03 is within 3 %.
    pub delta: f64,
    /// The level of the tests.
    pub alpha: f64,
    /// How long the server of each candidate is profiled in each step, in nanoseconds, in a pass of
    /// its own after what is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile_ns: Option<u64>,
    /// The search that this campaign is one probe of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bisection: Option<BisectionProbe>,
}

/// What a campaign measures for a bisection. All campaigns of a search together are its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BisectionProbe {
    /// The id of the search's first campaign; empty in that one.
    pub search: String,
    /// The builds in their order, as cells are labelled or commits are called; the first is good,
    /// the last is bad.
    pub candidates: Vec<String>,
    /// Which of them is probed, counted from 0; none when only the good and the bad one are
    /// measured.
    pub probe: Option<usize>,
}

/// How candidates meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Design {
    /// All servers are up at once, and one after the other has a turn of some milliseconds.
    Slices,
    /// One trial after the other, every cell once per block.
    Blocks,
}

impl Confirm {
    /// All placements; none when nothing is pinned.
    pub fn placements(&self) -> impl Iterator<Item = &Placement> {
        self.placement.iter().chain(&self.more_placements)
    }

    /// The number, from 1, of the placement of a block or start, from 1. A placement stays until it
    /// has met two loads, if there are more than one.
    pub fn placement_number(&self, block: u32) -> u32 {
        let turn = block.saturating_sub(1) / self.loads.unwrap_or(1).clamp(1, 2);
        turn % self.placements().count().max(1) as u32 + 1
    }

    /// Which CPUs clients and servers have in a block or start, from 1; none when nothing is
    /// pinned.
    pub fn placement_of(&self, block: u32) -> Option<&Placement> {
        self.placements()
            .nth(self.placement_number(block) as usize - 1)
    }
}

/// CPU sets as the kernel writes them: `0`, `1-3`, `0,2`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// Of the workers.
    pub client_cpus: String,
    /// Of the servers.
    pub server_cpus: String,
}

impl fmt::Display for Placement {
    /// `clients on CPU 0, servers on CPU 1-3`.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            client_cpus,
            server_cpus,
        } = self;
        write!(
            to,
            "clients on CPU {client_cpus}, servers on CPU {server_cpus}"
        )
    }
}
