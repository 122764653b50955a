//! Campaign and trial folders: the truth on disk, from which everything else is derived.
//!
//! A [`Store`] is a folder of campaigns. A [`CampaignDir`] holds `campaign.json`, written once and
//! atomically, `lock`, held by the process that runs it, and `trials/`. A trial's folder is written
//! by one process: an [`EventWriter`] appends what happened to `events.jsonl`, [`series`] keeps one
//! row a second, and [`seal()`] closes the folder with the checksum of every file. What another
//! tool measured is a campaign too, with an [`imported`] file in place of trials. What is read back
//! is what was written, or an error that names the place; only the last line of `events.jsonl`,
//! when it lacks its newline, is forgiven: that is what a power cut leaves.

mod campaign;
mod confirm;
mod durable;
mod error;
pub mod event;
mod event_line;
mod event_log;
#[cfg(test)]
mod event_samples;
mod event_writer;
pub mod header;
pub mod imported;
mod lock;
mod profile;
mod seal;
pub mod series;
mod store;
mod trial;

pub use campaign::{CampaignDir, CampaignRecord, CampaignState, TRIALS_FOLDER};
pub use confirm::{BisectionProbe, Confirm, Design, Placement};
pub use durable::write_json_atomically;
pub use error::StoreError;
pub use event_log::{EventLog, Stamped, read_events};
pub use event_writer::EventWriter;
pub use lock::CampaignLock;
pub use profile::{PROFILES_FOLDER, Profile, ProfileAbout, read_profiles};
pub use seal::{Change, Mismatch, check_seal, seal};
pub use series::{HostSeries, OperationSecond, Turn};
pub use store::{Store, utc_now};
pub use trial::TrialRecord;
