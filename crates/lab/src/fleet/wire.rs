//! What a desk and `plimsoll work` say to each other: one JSON value a line, over the standard input
//! and output of ssh. A line that announces a sealed trial is followed by as many bytes of a tar
//! stream as it says.

use std::time::Duration;

use plimsoll_core::schedule::Unit;
use plimsoll_store::header::CampaignHeader;
use serde::{Deserialize, Serialize};

use crate::message::TrialMessage;

/// Both sides say something this often.
pub(super) const BEAT: Duration = Duration::from_secs(1);

/// What the desk says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DeskLine {
    /// It lives.
    Beat,
    /// What is to be run: the answer is every sealed trial that is still there, then `ready`.
    Campaign(Box<CampaignOrder>),
    /// Run a block, or a part of one; the answer ends with `block_done`.
    Block(BlockOrder),
    /// End the step in flight; twice: end the trial's process.
    Stop,
    /// A sealed trial is safe at the desk.
    Taken { folder: String },
    /// A sealed trial came damaged: once more.
    Again { folder: String },
    /// The desk does not take it; it stays where it is.
    Kept { folder: String },
    /// No more blocks.
    End,
}

/// What is to be run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CampaignOrder {
    pub header: CampaignHeader,
    /// What the desk calls the host.
    pub host: String,
    /// A desk that says nothing for this long is gone.
    pub patience_ns: u64,
}

/// A block, a part of one, or what is left of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BlockOrder {
    #[serde(flatten)]
    pub unit: Unit,
    /// Trials by number and attempt, in the order of the schedule.
    pub trials: Vec<(u32, u32)>,
}

/// What `work` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WorkLine {
    /// It lives.
    Beat,
    /// Who is there; the first line.
    Hello(Hello),
    /// It has the campaign.
    Ready,
    /// A trial goes on.
    Notice(WorkNotice),
    /// A sealed trial: so many bytes of a tar stream follow.
    Sealed { folder: String, bytes: u64 },
    /// A block, or a part of one, is over.
    BlockDone {
        #[serde(flatten)]
        unit: Unit,
        /// Because the desk wanted it.
        is_stopped: bool,
    },
    /// It cannot go on, and ends.
    Refused { reason: String },
}

/// What a host says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Of the program.
    pub version: String,
    /// SHA-256 of the program.
    pub program_sha256: String,
    /// Nanoseconds since 1970 by the host's wall clock.
    pub unix_ns: u64,
    /// Free in the host's folder.
    pub free_bytes: u64,
    /// See `plimsoll_host::machine_id`.
    pub machine_id: Option<String>,
    /// `cpu_model`.
    pub cpu_model: String,
    /// Its CPUs.
    pub cpus: String,
    /// The builds in its cache.
    pub builds: Vec<HostBuild>,
    /// Ids of campaigns that have trials in its spool.
    pub spooled: Vec<String>,
}

impl Hello {
    /// Before anybody has said anything.
    pub(super) fn nobody() -> Self {
        Self {
            version: String::new(),
            program_sha256: String::new(),
            unix_ns: 0,
            free_bytes: 0,
            machine_id: None,
            cpu_model: String::new(),
            cpus: String::new(),
            builds: Vec::new(),
            spooled: Vec::new(),
        }
    }
}

/// A build in a host's cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostBuild {
    /// Its exact name.
    pub name: String,
    /// sha256 of its server.
    pub server_sha256: String,
    /// sha256 of each link of its server; the first is the same for any number of them.
    #[serde(default)]
    pub links: Vec<String>,
}

/// A notice of a campaign, as far as a desk shows those of hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WorkNotice {
    TrialStart { number: u32, attempt: u32 },
    Trial(TrialMessage),
    TrialBroken { cell: usize, reason: String },
    StateStart { cell: usize, load: u32 },
    Remark(String),
    Warning(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_back() {
        let lines = [
            DeskLine::Beat,
            DeskLine::Block(BlockOrder {
                unit: Unit {
                    block: 2,
                    part: None,
                },
                trials: vec![(3, 1), (4, 2)],
            }),
            DeskLine::Block(BlockOrder {
                unit: Unit {
                    block: 2,
                    part: Some(3),
                },
                trials: vec![(5, 1)],
            }),
            DeskLine::Taken {
                folder: "1-a.b-a1".into(),
            },
        ];
        for line in lines {
            let text = serde_json::to_string(&line).unwrap();
            assert!(!text.contains('\n'));
            assert_eq!(serde_json::from_str::<DeskLine>(&text).unwrap(), line);
        }
        let sealed = WorkLine::Sealed {
            folder: "1-a.b-a1".into(),
            bytes: 7,
        };
        let text = serde_json::to_string(&sealed).unwrap();
        assert_eq!(text, r#"{"sealed":{"folder":"1-a.b-a1","bytes":7}}"#);
        assert_eq!(serde_json::from_str::<WorkLine>(&text).unwrap(), sealed);
    }
}
